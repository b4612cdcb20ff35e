"""kernel.dot: one instruction if the machine has it, else products lane by lane.

The instructions and their spellings are in `stepwell.core.dot_instructions`. x86 without VNNI
multiplies and adds pairs of shorts, once for the even bytes of two words, once for the odd ones.
"""

from __future__ import annotations

from stepwell.dialects import kernel
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.minmax import quickly
from stepwell.lowering.emit.narrow import widen
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer, emit


@emit(kernel.DotOp)
def _dot(w: Writer, op: kernel.DotOp) -> None:
    operands = w[op.total], w[op.x], w[op.w]
    w.define(op.result, dot(w.spelling, w.kind(op.result), op.elements, *operands))


def dot(
    s: Spelling, kind: Kind, elements: tuple[str, str], total: str, left: str, right: str
) -> str:
    """Return ``total`` plus the products of the elements of two words."""
    words, (x, y) = kind.of("i32"), elements
    plain = _floats(s, kind, x) if kind.element == "f32" else _bytes(s, kind, elements)
    body = quickly(s, f"dot {x} {y}", kind, plain)
    parameters = [(kind, "z"), (words, "x"), (words, "y")]
    name = s.helper(f"sw_dot_{x}_{y}_{kind}", kind, parameters, body)
    return f"{name}({total}, {left}, {right})"


def _bytes(s: Spelling, kind: Kind, elements: tuple[str, str]) -> list[str]:
    """Return the wrapping sum of four products in plain C."""
    twin = kind.unsigned
    rows = [f"{s.type(twin)} t = {s.bits(twin, 'z', kind)};"]
    for place in range(4):
        x, y = (
            _byte(s, kind, name, place, element == "i8")
            for name, element in zip("xy", elements, strict=True)
        )
        rows.append(f"t += {s.bits(twin, f'({x} * {y})', kind)};")
    return [*rows, f"return {s.bits(kind, 't', twin)};"]


def _byte(s: Spelling, kind: Kind, name: str, place: int, signed: bool) -> str:
    """Return one byte of the word ``name``, extended to a word by two shifts."""
    twin = kind.unsigned
    moved = f"{s.bits(twin, name, kind)} << {24 - 8 * place}" if place < 3 else name
    if place < 3 and signed:
        return f"({s.bits(kind, f'({moved})', twin)} >> 24)"
    if signed:
        return f"({name} >> 24)"
    moved = f"({moved})" if place < 3 else s.bits(twin, name, kind)
    return s.bits(kind, f"({moved} >> 24)", twin)


def _floats(s: Spelling, kind: Kind, element: str) -> list[str]:
    """Return the sum of two products, that of the upper halves first, as the instruction does."""
    words, halves = kind.of("i32"), Kind(element, kind.lanes)
    rows: list[str] = []
    for place in (1, 0):
        factors: list[str] = []
        for name in "xy":
            bits = s.bits(words.unsigned, name, words)
            if element == "bf16":  # the upper half of an f32
                moved = f"({bits} & 0xffff0000u)" if place else f"({bits} << 16)"
                factors.append(s.bits(kind, moved, words.unsigned))
            else:
                moved = f"({bits} >> 16)" if place else f"({bits} & 0xffff)"
                half = s.convert(halves.unsigned, moved, words.unsigned)
                factors.append(widen(s, halves, half))
        x, y = factors
        rows.append(f"z = {s.fma(kind, x, y, 'z')};")
    return [*rows, "return z;"]
