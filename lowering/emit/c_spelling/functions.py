"""Calls, machine instructions and pragmas of GNU C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepwell.lowering.emit.c_spelling.values import CValues
from stepwell.lowering.emit.dot_instructions import dots
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling.functions import Functions
from stepwell.lowering.emit.x86 import (
    extreme,
    extreme_of_constant,
    half_conversion,
    instruction,
    integer_extreme,
)

_FMA = {
    "f32x16": ("__AVX512F__", "vfmaddps512_mask(x, y, z, -1, 4)"),
    "f64x8": ("__AVX512F__", "vfmaddpd512_mask(x, y, z, -1, 4)"),
    "f32x8": ("__FMA__", "vfmaddps256(x, y, z)"),
    "f64x4": ("__FMA__", "vfmaddpd256(x, y, z)"),
    "f32x4": ("__FMA__", "vfmaddps(x, y, z)"),
    "f64x2": ("__FMA__", "vfmaddpd(x, y, z)"),
}
"""Fused multiply-add of vectors: gcc makes sixteen calls of a loop over lanes."""

_ROUND = {"floor": 9, "ceil": 10, "trunc": 11, "rint": 8}
"""Rounding modes of x86 (with exceptions suppressed)."""

_WHOLE = frozenset({*_ROUND, "sqrt", "fma"})
"""Functions with whole-vector builtins in some compilers."""

_BUILTIN = frozenset({"floor", "ceil", "trunc", "rint", "sqrt", "fabs", "copysign", "fma"})
"""Functions that the compilers inline; the others are declared and called."""


class CFunctions(CValues, Functions):
    """Compiler builtins, else functions of the C library."""

    def each_lane(
        self, result: Kind, sources: Sequence[tuple[Kind, str]], each: Callable[..., str]
    ) -> list[str]:
        """Loop over the lanes."""
        lanes = (
            f"({name}[k] != 0)" if kind.is_mask else f"{name}[k]" if kind.lanes else name
            for kind, name in sources
        )
        value = each(*lanes)
        return [
            f"{self.type(result)} r = {{0}};",
            f"for (int k = 0; k < {result.lanes}; k++) "
            f"r[k] = {f'-({value})' if result.is_mask else value};",
            "return r;",
        ]

    def function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        """Call the C library, lane by lane if there is no vector version."""
        if kind.lanes:
            return self._vector_function(name, kind, operands)
        suffix = "f" if kind.element == "f32" else ""
        if name in _BUILTIN:
            return f"__builtin_{name}{suffix}({', '.join(operands)})"
        scalar = self.type(kind)
        called = f"{name}{suffix}"
        self.prelude.types.setdefault(
            called, f"{scalar} {called}({', '.join([scalar] * len(operands))});"
        )
        return f"{called}({', '.join(operands)})"

    def _vector_function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        parameters = [(kind, letter) for letter in "xyz"[: len(operands)]]
        loop = self.each_lane(
            kind, parameters, lambda *lanes: self.function(name, kind.scalar, lanes)
        )
        fast = _fast_paths(name, kind)
        helper = self.helper(
            f"sw_{name}_{kind}", kind, parameters, [*fast, *loop, *["#endif"][: len(fast)]]
        )
        return f"{helper}({', '.join(operands)})"

    def quick(self, what: str, kind: Kind) -> list[str]:
        """Use the builtins of gcc and clang for x86."""
        if what.startswith("dot "):
            _, x, y = what.split()
            return dots(x, y, kind, self.type)
        name, _, constant = what.partition("_")
        if constant:
            return extreme_of_constant(name, kind)
        if name.endswith(("si", "ui")):
            return integer_extreme(name, kind)
        if name.startswith(("max", "min")):
            return extreme(name, kind)
        return instruction(self, name, kind)

    def bit_count(self, what: str, kind: Kind) -> list[str]:
        """Use the compiler's builtins, which are undefined for zero."""
        unsigned = f"({self.type(kind.unsigned)})x"
        if what == "ones":
            return [f"return __builtin_popcountll({unsigned});"]
        count = "__builtin_ctzll" if what == "trailing" else "__builtin_clzll"
        less = f" - {64 - kind.bits}" if what == "leading" and kind.bits < 64 else ""
        return [f"return x == 0 ? {kind.bits} : {count}({unsigned}){less};"]

    def high_half(self, signed: bool) -> str:
        """Multiply in 128 bits."""
        if signed:
            return "(int64_t)((__int128)x * y >> 64)"
        wide = self.type(Kind("u64"))
        return f"(int64_t)((unsigned __int128)({wide})x * ({wide})y >> 64)"

    def half_conversion(self, kind: Kind, widening: bool) -> list[str]:
        """Use the builtins of gcc and clang for x86."""
        return half_conversion(self, kind, widening)

    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Use one fused instruction where the machine has it."""
        return self.function("fma", kind, (x, y, z))

    def side_by_side(self, sums: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Use OpenMP's simd pragma, which compilers accept without its library."""
        added = "".join(f" reduction({operator}:{name})" for operator, name in sums)
        return (f"#pragma omp simd{added}",)

    def unroll(self, times: int) -> str:
        """Use the pragma that gcc and clang share."""
        return f"#pragma GCC unroll {times}"

    def independent(self) -> str:
        """Use the pragma of either compiler."""
        self.prelude.types["SW_INDEPENDENT"] = (
            "#if defined(__clang__)\n"
            '#define SW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")\n'
            "#else\n"
            '#define SW_INDEPENDENT _Pragma("GCC ivdep")\n'
            "#endif"
        )
        return "SW_INDEPENDENT"


def _fast_paths(name: str, kind: Kind) -> list[str]:
    """Return preprocessor branches that compute ``name`` on whole vectors."""
    if name not in _WHOLE:
        return []
    arguments = "x, y, z" if name == "fma" else "x"
    rows = [
        f"#if SW_HAS(__builtin_elementwise_{name})",
        f"return __builtin_elementwise_{name}({arguments});",
    ]
    letter, size = ("s" if kind.element == "f32" else "d"), kind.bits * kind.lanes
    condition, call = "", ""
    if name == "fma":
        condition, call = _FMA.get(str(kind), ("", ""))
    elif size == 512:
        condition = "__AVX512F__"
        call = f"sqrtp{letter}512_mask(x, x, -1, 4)"
        if name != "sqrt":
            call = f"rndscalep{letter}_mask(x, {_ROUND[name]}, x, -1, 4)"
    elif size == 256:
        condition = "__AVX__"
        call = f"sqrtp{letter}256(x)" if name == "sqrt" else f"roundp{letter}256(x, {_ROUND[name]})"
    if condition:
        call = f"__builtin_ia32_{call}"
        builtin = call.partition("(")[0]
        rows += [f"#elif defined({condition}) && SW_HAS({builtin})", f"return {call};"]
    return [*rows, "#else"]
