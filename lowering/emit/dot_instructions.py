"""The instructions of `stepwell.core.dot_instructions` in C, as function bodies.

An instruction without a builtin in every gcc, or with another name in clang, is inline assembly.
"""

from __future__ import annotations

from collections.abc import Callable

from stepwell.core.dot_instructions import WORD, DotInstruction, instructions_for
from stepwell.lowering.emit.kinds import Kind

_PAIRS = {
    16: ("__AVX512BW__", "pmaddwd512_mask(X, Y, Z, -1)"),
    8: ("__AVX2__", "pmaddwd256(X, Y)"),
    4: ("__SSE2__", "pmaddwd128(X, Y)"),
}
"""For a number of words: the macro and the instruction to multiply and add pairs of shorts."""


def dots(x: str, y: str, kind: Kind, type: Callable[[Kind], str]) -> list[str]:
    """Return rows, ending in `#else`, that add products of elements of ``x`` and ``y`` to ``z``."""
    found = [
        way
        for row, exchanged in instructions_for(x, y, kind.lanes or 1)
        for way in _ways(row, "yx" if exchanged else "xy", kind.lanes)
    ]
    if kind.element == "i32" and kind.lanes in _PAIRS:
        condition, call = _PAIRS[kind.lanes]
        builtin = f"__builtin_ia32_{call.partition('(')[0]}"
        signed = x == "i8", y == "i8"
        rows = _in_pairs(signed, kind, type, call)
        found.append((f"defined({condition}) && SW_HAS({builtin})", rows))
    if not found:
        return []
    lines = [
        line
        for n, (condition, rows) in enumerate(found)
        for line in (f"#{'elif' if n else 'if'} {condition}", *rows)
    ]
    return [*lines, "#else"]


def _ways(row: DotInstruction, factors: str, lanes: int) -> list[tuple[str, list[str]]]:
    """Return the ways to call one instruction, by builtin or assembly, with their conditions."""
    x, y = factors
    letter = "v" if row.header == "immintrin.h" else "w"
    found: list[tuple[str, list[str]]] = []
    for builtin in row.builtins:
        name = builtin.name.format(lanes=lanes)
        parts = [row.defined, f"SW_HAS({name})", *filter(None, [builtin.condition])]
        call, rows = f"return {name}(z, {x}, {y});", list[str]()
        if builtin.factor:
            size = WORD // 8 * lanes
            rows = [f"typedef {builtin.factor} factor __attribute__((vector_size({size})));"]
            call = f"return {name}(z, (factor){x}, (factor){y});"
        found.append((" && ".join(parts), [*rows, call]))
    text = f'__asm__("{row.text}" : "+{letter}"(z) : "{letter}"({x}), "{letter}"({y}));'
    return [*found, (row.defined, [text, "return z;"])]


def _in_pairs(
    signed: tuple[bool, bool], kind: Kind, type: Callable[[Kind], str], call: str
) -> list[str]:
    """Return the sum of the dot products of the even bytes and of the odd bytes, as shorts."""
    shorts, twin = Kind("i16", 2 * kind.lanes), kind.unsigned
    whole, unsigned = type(shorts), type(shorts.unsigned)
    rows: list[str] = []
    for name, sign in zip("xy", signed, strict=True):
        even, odd = f"({whole})({name} & 0xff00ff)", f"({whole})(({unsigned}){name} >> 8)"
        if sign:
            even = f"({whole})(({unsigned}){name} << 8) >> 8"
            odd = f"({whole}){name} >> 8"
        rows += [f"const {whole} {name}0 = {even}, {name}1 = {odd};"]
    zero = f"({type(kind)}){{0}}"
    sums = [
        f"({type(twin)})__builtin_ia32_{call}".replace("X", f"x{n}")
        .replace("Y", f"y{n}")
        .replace("Z", zero)
        for n in "01"
    ]
    return [*rows, f"return ({type(kind)})(({type(twin)})z + {sums[0]} + {sums[1]});"]
