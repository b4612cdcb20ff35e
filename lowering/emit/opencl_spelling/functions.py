"""The built-in functions of OpenCL C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.opencl_spelling.values import OpenCLValues
from stepwell.lowering.emit.spelling.functions import Functions

_WRONG_IN_VECTORS = frozenset({"sin", "cos", "tan"})
"""PoCL's are off by 0.01 for tiny numbers in vectors, but correct for scalars."""

_WHOLE = {"fabs": "abs", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
"""Vector functions that clang has as builtins: in PoCL's library each is a call of 1.2 ns or more,
instead of 0.1 to 0.3 ns (vectors of eight f32 on an AMD EPYC)."""

HAS = """\
#ifdef __has_builtin
#define SW_HAS(name) __has_builtin(name)
#else
#define SW_HAS(name) 0
#endif"""

FMA = """\
#if defined(__clang__) && defined(__FMA__)
#pragma OPENCL FP_CONTRACT ON
#define SW_FMA(x, y, z) ((x) * (y) + (z))
#else
#define SW_FMA(x, y, z) fma(x, y, z)
#endif"""
"""A multiply-add that is rounded once. clang contracts the expression to one instruction where the
processor has it; ``fma`` of PoCL's library takes twenty times as long."""


class OpenCLFunctions(OpenCLValues, Functions):
    """Built-in functions on vectors."""

    def each_lane(
        self, result: Kind, sources: Sequence[tuple[Kind, str]], each: Callable[..., str]
    ) -> list[str]:
        """Build the vector from its lanes."""
        rows: list[str] = []
        for number in range(result.lanes):
            lanes = (
                self.lane(kind, name, str(number)) if kind.lanes else name for kind, name in sources
            )
            tested = (
                f"({lane} != 0)" if kind.is_mask else lane
                for lane, (kind, _) in zip(lanes, sources, strict=True)
            )
            rows.append(f"-({each(*tested)})" if result.is_mask else each(*tested))
        return [f"return {self.lanes_of(result, rows)};"]

    def function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        """Call a built-in function; OpenCL has all of C's, also for vectors."""
        self.type(kind)
        if name in _WHOLE and kind.lanes:
            plain, whole = f"{name}(x)", f"__builtin_elementwise_{_WHOLE[name]}"
            self.prelude.types["SW_HAS"] = HAS
            rows = [f"#if SW_HAS({whole})", f"return {whole}(x);", "#else", f"return {plain};"]
            helper = self.helper(f"sw_{name}_{kind}", kind, [(kind, "x")], [*rows, "#endif"])
            return f"{helper}({operands[0]})"
        if name in _WRONG_IN_VECTORS and kind.lanes:
            lanes = [f"{name}({self.lane(kind, 'x', str(k))})" for k in range(kind.lanes)]
            rows = [f"return {self.lanes_of(kind, lanes)};"]
            return f"{self.helper(f'sw_{name}_{kind}', kind, [(kind, 'x')], rows)}({operands[0]})"
        return f"{name}({', '.join(operands)})"

    def high_half(self, signed: bool) -> str:
        """Use ``mul_hi``."""
        return "mul_hi(x, y)" if signed else "(long)mul_hi((ulong)x, (ulong)y)"

    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Use an expression that clang contracts if the processor can, else ``fma``."""
        self.type(kind)
        self.prelude.types["SW_FMA"] = FMA
        return f"SW_FMA({x}, {y}, {z})"
