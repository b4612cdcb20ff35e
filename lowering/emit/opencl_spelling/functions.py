"""The built-in functions of OpenCL C."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.opencl_spelling.values import HAS, OpenCLValues
from stepwell.lowering.emit.spelling.functions import Functions
from stepwell.lowering.emit.x86 import extreme, half_conversion, instruction, shuffled

_WRONG_IN_VECTORS = frozenset({"sin", "cos", "tan"})
"""PoCL's are off by 0.01 for tiny numbers in vectors, but correct for scalars."""

_WHOLE = {"fabs": "abs", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
"""Vector functions that clang has as builtins: in PoCL's library each is a call of 1.2 ns or more,
instead of 0.1 to 0.3 ns (vectors of eight f32 on an AMD EPYC)."""

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
            rows = [f"#if SW_HAS({whole})", f"return {whole}(x);", "#else", f"return {plain};"]
            rows = self._with_tests([*rows, "#endif"])
            helper = self.helper(f"sw_{name}_{kind}", kind, [(kind, "x")], rows)
            return f"{helper}({operands[0]})"
        if name in _WRONG_IN_VECTORS and kind.lanes:
            lanes = [f"{name}({self.lane(kind, 'x', str(k))})" for k in range(kind.lanes)]
            rows = [f"return {self.lanes_of(kind, lanes)};"]
            return f"{self.helper(f'sw_{name}_{kind}', kind, [(kind, 'x')], rows)}({operands[0]})"
        return f"{name}({', '.join(operands)})"

    def quick(self, what: str, kind: Kind) -> list[str]:
        """Use clang's builtins for x86; its optimizer finds the other instructions."""
        name, _, constant = what.partition("_")
        if constant or name.endswith(("si", "ui")) or name == "dot":
            return []
        if name.startswith(("max", "min")):
            return self._with_tests(extreme(name, kind))
        return self._with_tests(instruction(self, name, kind))

    def half_conversion(self, kind: Kind, widening: bool) -> list[str]:
        """Use clang's builtins for x86."""
        return self._with_tests(half_conversion(self, kind, widening))

    def permuted(self, table: Kind, which: Kind, x: str, y: str) -> list[str]:
        """Use clang's builtins for x86: `shuffle` of PoCL's library goes through memory."""
        condition, found = shuffled(table) if table.lanes == which.lanes else ("", "")
        call = f"return {found}({x}, {y});"
        return self._with_tests([f"#if {condition}", call, "#else"] if found else [])

    def _with_tests(self, rows: list[str]) -> list[str]:
        """Define the macro that tests for builtins."""
        if rows:
            self.prelude.types["SW_HAS"] = HAS
        return rows

    def high_half(self, signed: bool) -> str:
        """Use ``mul_hi``."""
        return "mul_hi(x, y)" if signed else "(long)mul_hi((ulong)x, (ulong)y)"

    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Use an expression that clang contracts if the processor can, else ``fma``."""
        self.type(kind)
        self.prelude.types["SW_FMA"] = FMA
        return f"SW_FMA({x}, {y}, {z})"
