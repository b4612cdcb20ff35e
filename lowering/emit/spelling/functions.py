"""Functions, machine instructions and pragmas of loops in a C-like language."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling.values import Values


class Functions(Values):
    """The syntax of calls, lane by lane or of whole vectors, and of the pragmas of loops."""

    @abstractmethod
    def each_lane(
        self, result: Kind, sources: Sequence[tuple[Kind, str]], each: Callable[..., str]
    ) -> list[str]:
        """Return a function body: ``each`` applied lane by lane."""

    @abstractmethod
    def function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        """Call a function of the math library by its C name without suffix."""

    def quick(self, what: str, kind: Kind) -> list[str]:
        """Return rows that compute ``what`` of ``x`` and ``y`` by an instruction of the machine.

        They end in `#else`; [] if the language has no such instructions. ``what`` is ``maximum``,
        ``minnum`` etc., optionally with ``_of_constant`` appended, or the name of a function's
        ``kernel.instruction``; or ``dot`` and both operands' elements, words whose products are
        added to ``z``.
        """
        del what, kind
        return []

    def bit_count(self, what: str, kind: Kind) -> list[str]:
        """Return the body of a bit count of the scalar ``x``; [] if a loop must do it."""
        return []

    @abstractmethod
    def high_half(self, signed: bool) -> str:
        """Return the upper 64 bits of the product of the i64 ``x`` and ``y``."""

    def half_conversion(self, kind: Kind, widening: bool) -> list[str]:
        """Return lines that convert f16 by the machine's instructions, under ``#if``."""
        return []

    @abstractmethod
    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Return ``x * y + z``, rounded once."""

    def side_by_side(self, sums: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Return the pragmas that vectorize a loop with independent iterations.

        sums : operators and variables of its reductions, which may be reassociated
        """
        return ()

    def unroll(self, times: int) -> str:
        """Return the pragma that unrolls the next loop; "" if there is none."""
        return ""

    def independent(self) -> str:
        """Return the pragma that the next loop's iterations are independent, or ""."""
        return ""
