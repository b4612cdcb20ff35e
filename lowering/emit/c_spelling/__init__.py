"""C with the vector extensions of gcc and clang: no includes, only compiler builtins."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.lowering.emit.c_spelling.functions import CFunctions
from stepwell.lowering.emit.c_spelling.memory import CMemory
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import FAULT
from stepwell.lowering.emit.spelling import Spelling


class CSpelling(CMemory, CFunctions, Spelling):
    """GNU C11."""

    def pinned(self, kind: Kind, x: str) -> str:
        """Hide the value of ``x`` by an empty asm, so that no earlier fact about it is used."""
        rows = ['__asm__("" : "+r"(x));', "return x;"]
        return f"{self.helper(f'sw_pinned_{kind}', kind, [(kind, 'x')], rows)}({x})"

    def noting(self) -> tuple[str, Sequence[str]]:
        """Record the guard of the first thread to fail, by a compare-and-swap."""
        head = "__attribute__((cold, noinline, unused)) static void sw_fault(struct sw_fault"
        swap = "__atomic_compare_exchange_n(&fault->number, &none, number, 0, "
        swap += "__ATOMIC_RELAXED, __ATOMIC_RELAXED)"
        return head, (f"{self.type(Kind('i32'))} none = 0;", f"if (!{swap}) return;")

    def faulted(self) -> str:
        """Read the number atomically, as other threads may write it."""
        return f"__atomic_load_n(&{FAULT}->number, __ATOMIC_RELAXED)"
