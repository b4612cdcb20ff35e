"""Check that a public function and its caller agree on the size of every array.

Its arguments and helper functions (`@NAME.shapes`, `@NAME.arena`) may come from text, which can
be wrong: another element type than in memory, gaps between rows, two arenas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Operation

from stepwell.core.dtypes import DTYPES
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import kernel
from stepwell.lowering.emit.buffers import row_major
from stepwell.lowering.emit.kinds import BITS, element_name
from stepwell.transforms.passes import fail


def check_argument(op: func.FuncOp, number: int, type: MemRefType[Any], dtype: str) -> None:
    """Fail if an argument's arrays would be smaller than the memory accessed through it."""
    element = element_name(type.element_type)
    where = f"argument {number} of @{op.sym_name.data}"
    if element is None or not _fits(dtype, element):
        fail(op, f"{where} has elements of type {type.element_type}, not {dtype}")
    strides = [None if n is None else str(n) for n in type.get_strides() or ()]
    sizes = [str(n) for n in type.get_shape()]
    plain = isinstance(type.layout, NoneAttr) or (
        DYNAMIC not in type.get_shape()
        and strides == list(row_major(sizes))
        and (not isinstance(type.layout, StridedLayoutAttr) or _is_zero(type.layout.offset))
    )
    if not plain:
        said = f"{where} is {type}, but an array of a caller is contiguous and row-major"
        fail(op, said, "take it without a layout; memref.reinterpret_cast makes another view")


def _fits(dtype: str, element: str) -> bool:
    """Whether NumPy's arrays of a dtype have these elements."""
    if DTYPES[dtype].kind in ("float", "bool"):
        return dtype == element
    signless = element if element[0] == "i" and element != "index" else ""
    return dtype in (signless, f"u{signless}", "i64" if element == "index" else "")


def _is_zero(offset: Any) -> bool:
    return getattr(offset, "data", None) == 0


def check_arenas(op: func.FuncOp, types: Sequence[MemRefType[Any]]) -> None:
    """Fail if there are several arenas, or one that is not a row of bytes."""
    if len(types) > 1:
        fail(op, f"@{op.sym_name.data} has {len(types)} arenas, but is given one")
    for type in types:
        if type.get_num_dims() != 1 or BITS.get(element_name(type.element_type) or "") != 8:
            fail(op, f"the arena of @{op.sym_name.data} is a row of bytes, not {type}")


def check_beside(
    op: func.FuncOp, beside: func.FuncOp | None, unknown: int, results: int | None
) -> None:
    """Fail if a function of sizes has other numbers of arguments or results, or side effects.

    unknown : the number of sizes it takes; ``results`` : the number it returns, None for any
    """
    if beside is None:
        return
    name, type = beside.sym_name.data, beside.function_type
    wanted = [IndexType()] * unknown
    if list(type.inputs) != wanted:
        said = f"@{name} takes the sizes of @{op.sym_name.data} that are not known: {unknown} index"
        fail(beside, said)
    given = list(type.outputs)
    if given != [IndexType()] * (len(given) if results is None else results):
        fail(beside, f"@{name} gives {results} index, not {len(given)} results of its types")
    for each in _reached(beside, {name}):
        touched = [v.type for v in (*each.operands, *each.results)]
        numbers = all(isinstance(t, IndexType | IntegerType) for t in touched)
        if not numbers or isinstance(each, kernel.LaunchOp):
            said = f"{each.name} has no place in @{name}, which computes sizes of numbers alone"
            fail(each, said, "whatever it is asked, it must give the same each time")


def _reached(function: func.FuncOp, seen: set[str]) -> Iterator[Operation]:
    """Yield every op that a call of a function may execute."""
    if not function.body.blocks:
        fail(function, f"@{function.sym_name.data} has no body")
    for op in function.body.walk():
        yield op
        if isinstance(op, func.CallOp) and (name := op.callee.string_value()) not in seen:
            seen.add(name)
            module = function.parent_op()
            for each in module.regions[0].block.ops if module is not None else ():
                if isinstance(each, func.FuncOp) and each.sym_name.data == name:
                    yield from _reached(each, seen)
