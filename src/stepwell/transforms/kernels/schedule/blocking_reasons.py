"""Explanations of the choice between blocks, strips and tiles of a contraction."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from stepwell.transforms.kernels.schedule.reasons import spell_bytes

NO_SCRATCH = "not in blocks: the target has no scratch to pack an operand into"
NO_SINGLE_SUM = (
    "not in blocks: they are for one sum, started by a fill, of an operand that varies with "
    "the rows and one that varies with the columns"
)
FAR = "what is read next is asked for while a block computes, for it exceeds L2"
ASKED = "rows that a tile reads later are asked for while it computes, for they come from beyond L2"
NOT_ALONG = "not in blocks: the results of neighbouring columns do not lie side by side"


def why_in_place(rows: tuple[int, int], narrow: bool, bytes: int, enough: int) -> str:
    """Return why no operand is packed; ``rows`` is the number of rows and the least number."""
    if rows[0] < rows[1]:
        return f"not in blocks: {rows[0]} rows read what would be packed, {rows[1]} repay it"
    if narrow:
        return "not in blocks: the columns do not fill a vector"
    size, most = spell_bytes(bytes), spell_bytes(enough)
    return f"not in blocks: {size} are read where they lie, as up to {most} are well enough"


def why_packed(operand: SSAValue, bytes: int, enough: int, l2: int, free: bool) -> str:
    """Return why an operand is packed."""
    name = f"%{operand.name_hint}" if operand.name_hint else "the operand of the columns"
    if free:
        return f"in blocks, {name} packed: it is the same in every call, so that costs nothing"
    if bytes <= enough:
        return f"in blocks, {name} packed: it begins anywhere in a line, so loads would read two"
    least = (
        "lies across its rows" if enough < l2 // 4 else f"exceeds a quarter of L2 ({l2 >> 10} KB)"
    )
    return f"in blocks, {name} packed: it has {spell_bytes(bytes)} and {least}"


def why_in_strips(operand: SSAValue, high: int, strip: tuple[int, int]) -> str:
    """Return why an operand is read in strips."""
    name = f"%{operand.name_hint}" if operand.name_hint else "the operand of the columns"
    return (
        f"{name} is read in place, {strip[1]} rows at a time along {strip[0]} columns: "
        f"a product of {high} row{'s' if high > 1 else ''} waits for memory alone"
    )


def why_in_tiles(operand: SSAValue, high: int) -> str:
    """Return why an operand of few rows is read in tiles."""
    name = f"%{operand.name_hint}" if operand.name_hint else "the operand of the columns"
    return f"{name} is read in place by tiles of {high} rows: it stays in the last cache"


def why_sizes(tile: tuple[int, int], block: tuple[int, ...], bytes: int) -> str:
    """Return the explanation of the sizes of tile and block."""
    *rows, columns, deep = block
    panel, part = spell_bytes(columns * deep * bytes), spell_bytes(prod(rows) * deep * bytes)
    return (
        f"{tile[0]} rows by {tile[1]} vectors in registers leave least over at the edges; a block "
        f"of {' x '.join(map(str, rows))} rows, {columns} columns and a depth of {deep} reads "
        f"a packed panel of {panel} and {part} of the other operand from L2"
    )
