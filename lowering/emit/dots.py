"""kernel.dot4: one instruction where the machine has it, else products of the bytes of each place.

x86 multiplies unsigned by signed bytes; without VNNI it multiplies and adds pairs of shorts, which
the even bytes of two words are, and the odd ones. ARM has an instruction for each choice of signs.
"""

from __future__ import annotations

from stepwell.dialects import kernel
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.minmax import quickly
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer, emit

NAMES = {(True, True): "ss", (False, True): "us", (True, False): "su", (False, False): "uu"}


@emit(kernel.Dot4Op)
def _dot4(w: Writer, op: kernel.Dot4Op) -> None:
    kind, s, signs = w.kind(op.result), w.spelling, NAMES[op.signs]
    body = quickly(s, f"dot4{signs}", kind, _plain(s, kind, op.signs))
    parameters = [(kind, "z"), (kind, "x"), (kind, "y")]
    name = s.helper(f"sw_dot4{signs}_{kind}", kind, parameters, body)
    w.define(op.result, f"{name}({w[op.total]}, {w[op.x]}, {w[op.w]})")


def _plain(s: Spelling, kind: Kind, signs: tuple[bool, bool]) -> list[str]:
    """Return the sum of four products as the C compiler knows them, wrapping around."""
    twin = kind.unsigned
    rows = [f"{s.type(twin)} t = {s.bits(twin, 'z', kind)};"]
    for place in range(4):
        x = _byte(s, kind, "x", place, signs[0])
        y = _byte(s, kind, "y", place, signs[1])
        rows.append(f"t += {s.bits(twin, f'({x} * {y})', kind)};")
    return [*rows, f"return {s.bits(kind, 't', twin)};"]


def _byte(s: Spelling, kind: Kind, name: str, place: int, signed: bool) -> str:
    """Spell one byte of the word ``name`` as a whole word: moved up, then down again."""
    twin = kind.unsigned
    moved = f"{s.bits(twin, name, kind)} << {24 - 8 * place}" if place < 3 else name
    if place < 3 and signed:
        return f"({s.bits(kind, f'({moved})', twin)} >> 24)"
    if signed:
        return f"({name} >> 24)"
    moved = f"({moved})" if place < 3 else s.bits(twin, name, kind)
    return s.bits(kind, f"({moved} >> 24)", twin)
