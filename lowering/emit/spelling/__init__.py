"""The syntax of a C-like language: values, memory, functions and guards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import FAULT
from stepwell.lowering.emit.spelling.functions import Functions
from stepwell.lowering.emit.spelling.memory import Memory


class Spelling(Memory, Functions):
    """One C-like language; its own methods spell guards."""

    @abstractmethod
    def pinned(self, kind: Kind, x: str) -> str:
        """Return the scalar ``x``, which must not be loaded from memory again."""

    def fault(self, number: int, a: str, b: str) -> str:
        """Return the statement that records the first guard to fail, and two numbers."""
        integer, long = self.type(Kind("i32")), self.type(Kind("i64"))
        head, first = self.noting()
        self.prelude.types["sw_fault"] = (
            f"struct sw_fault {{ {integer} number; {long} values[2]; }};"
        )
        self.prelude.functions["sw_fault"] = "\n".join(
            (
                f"{head} *fault, {integer} number, {long} a, {long} b) {{",
                *(f"  {row}" for row in first),
                "  fault->values[0] = a;",
                "  fault->values[1] = b;",
                "}",
            )
        )
        return f"sw_fault({FAULT}, {number}, {a}, {b});"

    @abstractmethod
    def noting(self) -> tuple[str, Sequence[str]]:
        """Return the beginning of the function that records a fault, up to its argument's type.

        Then the rows that record its number, and return if another was recorded before.
        """

    @abstractmethod
    def faulted(self) -> str:
        """Return the condition that some guard has failed."""
