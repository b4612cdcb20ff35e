"""Loads and stores of GNU C."""

from __future__ import annotations

from stepwell.lowering.emit.c_spelling.values import CValues
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling.memory import Memory
from stepwell.lowering.emit.x86 import masked_at_once, streaming


class CMemory(CValues, Memory):
    """Accesses through types that may be unaligned, and builtins."""

    def address(self, pointer: str) -> str:
        """Cast the pointer to an integer."""
        return f"(__UINTPTR_TYPE__){pointer}"

    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Load through a type that may be unaligned and alias anything."""
        return f"*(const {self.type(kind)}_u *){address}"

    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Store through the same type."""
        return f"*({self.type(kind)}_u *){address} = {x};"

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Use non-temporal stores for aligned vectors; test the alignment at run time."""
        type = self.type(kind)
        if not (rows := streaming(kind, type)):
            return self.store(kind, address, x)
        body = [*rows, self.store(kind, "p", "x")]
        name = self.helper(f"sw_stream_{type}", None, [("void *", "p"), (kind, "x")], body)
        return f"{name}({address}, {x});"

    def fence(self) -> str:
        """Use a store fence: on x86 a release does not order non-temporal stores."""
        rows = ["#if defined(__SSE__)", "__builtin_ia32_sfence();", "#endif"]
        return f"{self.helper('sw_fence', None, [], rows)}();"

    def prefetch(self, address: str) -> str:
        """Prefetch for reading, into the second-level cache."""
        return f"__builtin_prefetch({address}, 0, 2);"

    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Load lane by lane."""
        body = [
            f"for (int k = 0; k < {kind.lanes}; k++) if (m[k]) y[k] = p[k];",
            "return y;",
        ]
        parameters = [(pointer, "p"), (mask, "m"), (kind, "y")]
        return self.helper(f"sw_load_{kind}_{mask}", kind, parameters, body)

    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Store lane by lane."""
        body = [f"for (int k = 0; k < {kind.lanes}; k++) if (m[k]) p[k] = x[k];"]
        parameters = [(pointer, "p"), (mask, "m"), (kind, "x")]
        return self.helper(f"sw_store_{kind}_{mask}", None, parameters, body)

    def masked_at_once(self, kind: Kind, bits: str, stored: str = "") -> list[str]:
        """Use AVX-512."""
        return masked_at_once(kind, bits, stored)
