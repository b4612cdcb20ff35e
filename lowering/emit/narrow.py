"""f16 and bf16: stored as bits, computed as f32.

Sums, differences, products, quotients and square roots computed this way are correctly rounded,
since f32 has more than twice the digits. All code is arithmetic on bits, so that it is the same on
every compiler; if the machine converts f16 itself, the `Spelling` says how.
"""

from __future__ import annotations

from stepwell.lowering.emit.kinds import NARROW, Kind
from stepwell.lowering.emit.spelling import Spelling


def widen(s: Spelling, kind: Kind, x: str) -> str:
    """Return ``x`` as f32 if it is a narrow float."""
    if kind.element not in NARROW:
        return x
    body = _from_half(s, kind) if kind.element == "f16" else _from_bf16(s, kind)
    return f"{s.helper(f'sw_f32_from_{kind}', kind.of('f32'), [(kind, 'h')], body)}({x})"


def narrow(s: Spelling, kind: Kind, x: str) -> str:
    """Return the f32 ``x`` rounded to nearest even to ``kind``, if that is narrow."""
    if kind.element not in NARROW:
        return x
    body = _to_half(s, kind) if kind.element == "f16" else _to_bf16(s, kind)
    return f"{s.helper(f'sw_{kind}_from_f32', kind, [(kind.of('f32'), 'x')], body)}({x})"


def _from_bf16(s: Spelling, kind: Kind) -> list[str]:
    u32 = kind.of("u32")
    wide = f"({s.convert(u32, 'h', kind.unsigned)} << 16)"
    return [f"return {s.bits(kind.of('f32'), wide, u32)};"]


def _to_bf16(s: Spelling, kind: Kind) -> list[str]:
    """Add just under half of the last kept place, plus its last bit; NaN stays a quiet NaN."""
    u32, f32 = kind.of("u32"), kind.of("f32")
    nan = s.choose(u32, s.compared(f32, "x != x"), "(u >> 16 | 0x40)", "r")
    return [
        f"const {s.type(u32)} u = {s.bits(u32, 'x', f32)};",
        f"const {s.type(u32)} r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;",
        f"return {s.convert(kind.unsigned, nan, u32)};",
    ]


def _from_half(s: Spelling, kind: Kind) -> list[str]:
    """Shift the bits and scale by 2^112, which is exact for subnormal numbers too."""
    u32, f32 = kind.of("u32"), kind.of("f32")
    infinite = s.compared(u32, "(w & 0x7c00) == 0x7c00")
    fast = s.half_conversion(kind, widening=True)
    return [
        *fast,
        f"const {s.type(u32)} w = {s.convert(u32, 'h', kind.unsigned)};",
        f"const {s.type(u32)} low = (w & 0x7fff) << 13;",
        f"const {s.type(f32)} scaled = {s.bits(f32, 'low', u32)} * 0x1p112f;",
        f"const {s.type(u32)} r = "
        f"{s.choose(u32, infinite, '(low | 0x7f800000)', s.bits(u32, 'scaled', f32))};",
        f"return {s.bits(f32, '(r | (w & 0x8000) << 16)', u32)};",
        *["#endif"][: len(fast)],
    ]


def _to_half(s: Spelling, kind: Kind) -> list[str]:
    """Round by an addition: of floats for subnormal numbers, of integers for others."""
    u32, f32 = kind.of("u32"), kind.of("f32")

    def constant(text: str) -> str:
        return s.splat(u32, text) if kind.lanes else text

    type = s.type(u32)
    is_nan, is_tiny, is_huge = (
        s.compared(u32, test) for test in ("a > 0x7f800000", "a < 0x38800000", "a >= 0x47800000")
    )
    nudged = f"({s.bits(f32, 'a', u32)} + 0.5f)"
    fast = s.half_conversion(kind, widening=False)
    return [
        *fast,
        f"const {type} u = {s.bits(u32, 'x', f32)};",
        f"const {type} sign = u & 0x80000000u;",
        f"const {type} a = u ^ sign;",
        f"const {type} tiny = {s.bits(u32, nudged, f32)} - 0x3f000000;",
        f"const {type} huge = {s.choose(u32, is_nan, constant('0x7e00'), constant('0x7c00'))};",
        f"const {type} normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;",
        f"const {type} finite = {s.choose(u32, is_tiny, 'tiny', 'normal')};",
        f"const {type} r = {s.choose(u32, is_huge, 'huge', 'finite')};",
        f"return {s.convert(kind.unsigned, '(r | sign >> 16)', u32)};",
        *["#endif"][: len(fast)],
    ]
