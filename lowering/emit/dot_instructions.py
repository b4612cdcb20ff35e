"""Instructions that add products of four bytes to each word, as bodies of functions.

What gcc has no builtin for in every version, and clang not under one name, is written in assembly.
"""

from __future__ import annotations

from collections.abc import Callable

from stepwell.lowering.emit.kinds import Kind

_NARROW = (
    ("defined(__AVX512VNNI__) && defined(__AVX512VL__)", ""),
    ("defined(__AVXVNNI__)", "{vex} "),
)
_VNNI = {16: (("defined(__AVX512VNNI__)", ""),), 8: _NARROW, 4: _NARROW}
_PAIRS = {
    16: ("__AVX512BW__", "pmaddwd512_mask(X, Y, Z, -1)"),
    8: ("__AVX2__", "pmaddwd256(X, Y)"),
    4: ("__SSE2__", "pmaddwd128(X, Y)"),
}
"""For so many words: where pairs of shorts can be multiplied and added, and by what."""
_ARM = {
    "ss": ("__ARM_FEATURE_DOTPROD", "sdot %0.4s, %1.16b, %2.16b"),
    "uu": ("__ARM_FEATURE_DOTPROD", "udot %0.4s, %1.16b, %2.16b"),
    "us": ("__ARM_FEATURE_MATMUL_INT8", "usdot %0.4s, %1.16b, %2.16b"),
    "su": ("__ARM_FEATURE_MATMUL_INT8", "usdot %0.4s, %2.16b, %1.16b"),
}


def dots(signs: str, kind: Kind, type: Callable[[Kind], str]) -> list[str]:
    """Return rows, ending in `#else`, that add products of bytes of ``x`` and ``y`` to ``z``."""
    if kind.lanes not in _PAIRS:
        return []
    found: list[tuple[str, list[str]]] = []
    if signs in ("us", "su"):
        x, y = "xy" if signs == "us" else "yx"
        builtin = f"__builtin_ia32_vpdpbusd_v{kind.lanes}si"
        for condition, prefix in _VNNI[kind.lanes]:
            call = [f"return {builtin}(z, {x}, {y});"]
            found.append((f"({condition}) && SW_HAS({builtin})", call))
            text = f'__asm__("{prefix}vpdpbusd %2, %1, %0" : "+v"(z) : "v"({x}), "v"({y}));'
            found.append((condition, [text, "return z;"]))
    condition, call = _PAIRS[kind.lanes]
    builtin = f"__builtin_ia32_{call.partition('(')[0]}"
    found.append((f"defined({condition}) && SW_HAS({builtin})", _in_pairs(signs, kind, type, call)))
    if kind.lanes == 4:
        condition, text = _ARM[signs]
        rows = [f'__asm__("{text}" : "+w"(z) : "w"(x), "w"(y));', "return z;"]
        found.append((f"defined({condition}) && defined(__aarch64__)", rows))
    lines = [
        row
        for n, (condition, rows) in enumerate(found)
        for row in (f"#{'elif' if n else 'if'} {condition}", *rows)
    ]
    return [*lines, "#else"]


def _in_pairs(signs: str, kind: Kind, type: Callable[[Kind], str], call: str) -> list[str]:
    """Return the sum of what the even bytes and the odd ones give, as shorts."""
    shorts, twin = Kind("i16", 2 * kind.lanes), kind.unsigned
    signed, unsigned = type(shorts), type(shorts.unsigned)
    rows: list[str] = []
    for name, sign in zip("xy", signs, strict=True):
        even, odd = f"({signed})({name} & 0xff00ff)", f"({signed})(({unsigned}){name} >> 8)"
        if sign == "s":
            even = f"({signed})(({unsigned}){name} << 8) >> 8"
            odd = f"({signed}){name} >> 8"
        rows += [f"const {signed} {name}0 = {even}, {name}1 = {odd};"]
    zero = f"({type(kind)}){{0}}"
    sums = [
        f"({type(twin)})__builtin_ia32_{call}".replace("X", f"x{n}")
        .replace("Y", f"y{n}")
        .replace("Z", zero)
        for n in "01"
    ]
    return [*rows, f"return ({type(kind)})(({type(twin)})z + {sums[0]} + {sums[1]});"]
