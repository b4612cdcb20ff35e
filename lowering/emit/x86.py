"""Single x86 instructions for operations that take several operators in C, as function bodies."""

from __future__ import annotations

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling.values import Values

_LETTERS = {"f32x16": "ps", "f64x8": "pd"}
"""The kinds that fill an AVX-512 register, and the suffixes of their instructions."""


def extreme(name: str, kind: Kind) -> list[str]:
    """Return the extremum of ``x`` and ``y`` by VRANGE, which orders zeros but ignores NaN."""
    size = kind.bits * kind.lanes
    if kind.element not in ("f32", "f64") or size not in (128, 256, 512):
        return []
    letters, rounding = ("ps" if kind.element == "f32" else "pd"), ", 4" if size == 512 else ""
    mode = 5 if name.startswith("max") else 4
    other, lanes = "x", "-1"
    if name.endswith("imum"):  # if one operand is NaN, so is the sum
        other, lanes = "x + y", f"__builtin_ia32_cmp{letters}{size}_mask(x, y, 7, -1{rounding})"
    call = f"__builtin_ia32_range{letters}{size}_mask(x, y, {mode}, {other}, {lanes}{rounding})"
    shorter = "" if size == 512 else " && defined(__AVX512VL__)"
    return [f"#if defined(__AVX512DQ__){shorter}", f"return {call};", "#else"]


def extreme_of_constant(name: str, kind: Kind) -> list[str]:
    """Return the same for a nonzero constant ``y``: if an operand is NaN the second is taken."""
    letters = _LETTERS.get(str(kind))
    if letters is None:
        return []
    builtin = f"__builtin_ia32_{name[:3]}{letters}512_mask"
    operands = "y, x" if name.endswith("imum") else "x, y"
    condition = f"#if defined(__AVX512F__) && SW_HAS({builtin})"
    return [condition, f"return {builtin}({operands}, x, -1, 4);", "#else"]


_INSTRUCTIONS = {
    "ldexp": ("__AVX512F__", "__builtin_ia32_scalef{letters}_mask(x, y, x, -1{rounding})"),
    "bounded": ("__AVX512DQ__", "x"),
    "tamed": (
        "__AVX512DQ__",
        "__builtin_ia32_range{letters}_mask(x, {one}, 2, x, -1{rounding})",
    ),
}
"""Functions of ``x``, or ``x`` and ``y``: the condition, and the builtin call.

`bounded` and `tamed` only work together, so they have the same condition.
"""


def integer_extreme(name: str, kind: Kind) -> list[str]:
    """Return the extremum of integers by one instruction, where gcc emits three."""
    size, letter = kind.bits * kind.lanes, "bwdq"[(kind.bits // 8).bit_length() - 1]
    if size not in (256, 512) or (size == 256 and letter == "q"):
        return []
    condition = ("AVX512BW" if letter in "bw" else "AVX512F") if size == 512 else "AVX2"
    whole = {"b": "char", "w": "short", "d": "int", "q": "long long"}[letter]
    vector = f"{whole} __attribute__((vector_size({size // 8})))"
    builtin = f"__builtin_ia32_p{name[:4]}{letter}{size}"
    operands = f"({vector})x, ({vector})y"
    if size == 512:
        builtin, operands = f"{builtin}_mask", f"{operands}, ({vector})x, -1"
    signed = kind.signed
    element = f"__INT{signed.bits}_TYPE__ __attribute__((vector_size({size // 8})))"
    condition = f"#if defined(__{condition}__) && SW_HAS({builtin})"
    return [condition, f"return ({element}){builtin}({operands});", "#else"]


def instruction(s: Values, name: str, kind: Kind) -> list[str]:
    """Return the function ``name`` as one instruction, [] if there is none."""
    size = kind.bits * kind.lanes
    if name not in _INSTRUCTIONS or kind.element not in ("f32", "f64"):
        return []
    if size not in (128, 256, 512):
        return []
    machine, call = _INSTRUCTIONS[name]
    shorter, rounding = (" && defined(__AVX512VL__)", "") if size < 512 else ("", ", 4")
    letters = f"{'ps' if kind.element == 'f32' else 'pd'}{size}"
    call = call.format(letters=letters, one=s.splat(kind, "1.0f"), rounding=rounding)
    return [f"#if defined({machine}){shorter}", f"return {call};", "#else"]


def shuffled(kind: Kind) -> tuple[str, str]:
    """Return the condition and clang's builtin for lanes ``y`` of ``x``; "" if there is none."""
    if str(kind) != "f32x16":
        return "", ""
    builtin = "__builtin_ia32_permvarsf512"
    return f"defined(__AVX512F__) && SW_HAS({builtin})", builtin


def half_conversion(s: Values, kind: Kind, widening: bool) -> list[str]:
    """Return the conversion of f16 by AVX-512 or F16C; the rounding is the same."""
    if kind.lanes == 16:
        condition, size, mask = "defined(__AVX512F__)", "512_mask", ", {zero}, -1"
    elif kind.lanes == 8:
        condition = "defined(__F16C__) && SW_HAS(__builtin_ia32_vcvtph2ps256)"
        size, mask = "256", ""
    else:
        return []
    shorts, wide = kind.of("i16"), kind.of("f32")
    if widening:
        extra = mask.format(zero=s.splat(wide, "0.0f")) + (", 4" if mask else "")
        call = f"return __builtin_ia32_vcvtph2ps{size}({s.bits(shorts, 'h', kind)}{extra});"
    else:
        extra = mask.format(zero=s.splat(shorts, "0"))
        found = f"__builtin_ia32_vcvtps2ph{size}(x, 0{extra})"
        call = f"return {s.bits(kind, found, shorts)};"
    return [f"#if {condition}", call, "#else"]


_MASKED = {8: "qi", 16: "hi", 32: "si", 64: "di"}
"""Letters of the masked loads of integers, by bits."""


def masked_at_once(kind: Kind, bits: str, stored: str = "") -> list[str]:
    """Load, or store, the lanes of a vector whose bits are set, by AVX-512.

    The compilers disagree whether the address is that of a number or of a vector.

    stored : the vector to store
    """
    size, letters = kind.bits * kind.lanes, _MASKED.get(kind.bits)
    if size not in (128, 256, 512) or letters is None:
        return []
    whole, name = {8: "char", 16: "short", 32: "int", 64: "long long"}[kind.bits], f"dqu{letters}"
    if kind.element in ("f32", "f64"):
        whole, name = ("float", "ups") if kind.bits == 32 else ("double", "upd")
    vector = f"{whole} __attribute__((vector_size({size // 8})))"
    needs = ["AVX512F"] + ["AVX512BW"] * (kind.bits < 32) + ["AVX512VL"] * (size < 512)
    builtin = f"__builtin_ia32_{'store' if stored else 'load'}{name}{size}_mask"
    condition = " && ".join(f"defined(__{each}__)" for each in needs)
    test = f"#if {condition} && SW_HAS({builtin})"
    if stored:
        return [test, f"{builtin}((void *)p, ({vector}){stored}, {bits});", "#else"]
    call = f"{builtin}((const void *)p, ({vector})y, {bits})"
    return [test, f"return (__typeof__(y)){call};", "#else"]


_STREAMING = {64: ("__AVX512F__", "512"), 32: ("__AVX__", "256"), 16: ("__SSE__", "")}
"""By vector size in bytes: the condition for non-temporal stores, and their suffix."""


def streaming(kind: Kind, name: str) -> list[str]:
    """Return a non-temporal store of ``x`` of type ``name`` at ``p``, if aligned.

    clang has a builtin for every machine.
    """
    size = kind.bits // 8 * kind.lanes
    if size not in _STREAMING:
        return []
    condition, width = _STREAMING[size]
    floats = f"(float __attribute__((vector_size({size}))))"
    aligned = f"if (((__UINTPTR_TYPE__)p & {size - 1}) == 0) {{"
    return [
        "#if SW_HAS(__builtin_nontemporal_store)",
        aligned,
        f"  __builtin_nontemporal_store(x, ({name} *)p);",
        "  return;",
        "}",
        f"#elif defined({condition})",
        aligned,
        f"  __builtin_ia32_movntps{width}(p, {floats}x);",
        "  return;",
        "}",
        "#endif",
    ]


_DOUBLED = {8: "bw", 16: "wd", 32: "dq"}


def doubled(to: Kind, source: Kind) -> list[str]:
    """Return the conversion to integers of twice the width; gcc would do it in two halves."""
    size, name = to.bits * to.lanes, _DOUBLED.get(source.bits)
    whole = to.element[0] in "iu" and source.element[0] in "iu"
    if not whole or size not in (256, 512) or to.bits != 2 * source.bits or name is None:
        return []
    builtin = f"__builtin_ia32_pmov{'z' if source.element[0] == 'u' else 's'}x{name}{size}"
    letters = {8: "char", 16: "short", 32: "int", 64: "long long"}
    factor, result = (
        f"{letters[kind.bits]} __attribute__((vector_size({kind.bits * kind.lanes // 8})))"
        for kind in (source, to)
    )
    arguments = f"({factor})x"
    if size == 512:
        builtin, arguments = f"{builtin}_mask", f"{arguments}, ({result}){{0}}, -1"
    macro = "AVX2" if size == 256 else "AVX512BW" if name == "bw" else "AVX512F"
    element = f"__{'U' if to.element[0] == 'u' else ''}INT{to.bits}_TYPE__"
    type = f"{element} __attribute__((vector_size({size // 8})))"
    return [
        f"#if defined(__{macro}__) && SW_HAS({builtin})",
        f"return ({type}){builtin}({arguments});",
        "#else",
    ]
