"""Loads and stores of OpenCL C."""

from __future__ import annotations

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.opencl_spelling.values import OpenCLValues
from stepwell.lowering.emit.spelling.memory import Memory

MEMORY = """\
#ifdef __clang__
#define SW_LOAD(space, type, lanes, p) (*(space const type##_at *)(p))
#define SW_STORE(space, type, lanes, p, x) (*(space type##_at *)(p) = (x))
#else
#define SW_LOAD(space, type, lanes, p) vload##lanes(0, p)
#define SW_STORE(space, type, lanes, p, x) vstore##lanes(x, 0, p)
#endif
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store) && defined(__SSE__)
#define SW_PAST(x, p) __builtin_nontemporal_store(x, p)
#endif
#endif"""
"""Vector loads and stores: PoCL's ``vloadn`` and ``vstoren`` are function calls too."""


class OpenCLMemory(OpenCLValues, Memory):
    """Accesses in an address space, which the type of a pointer begins with."""

    def address(self, pointer: str) -> str:
        """Cast the pointer to an integer."""
        return f"(ulong){pointer}"

    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Load through a type with the alignment of an element."""
        return f"SW_LOAD({space.strip()}, {self._unaligned(kind)}, {kind.lanes}, {address})"

    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Store through the same type."""
        type = self._unaligned(kind)
        return f"SW_STORE({space.strip()}, {type}, {kind.lanes}, {address}, {x});"

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Write aligned vectors with non-temporal stores, where the compiler has them."""
        type = self.type(kind)
        rows = [
            "#ifdef SW_PAST",
            f"if (((ulong)p & {kind.bits // 8 * kind.lanes - 1}) == 0) {{",
            f"  SW_PAST(x, ({space}{type} *)p);",
            "  return;",
            "}",
            "#endif",
            self.store(kind, "p", "x", space),
        ]
        pointer = f"{space}{self.type(kind.scalar)} *"
        name = f"sw_stream_{space.strip(' _')}_{type}"
        return f"{self.helper(name, None, [(pointer, 'p'), (kind, 'x')], rows)}({address}, {x});"

    def _unaligned(self, kind: Kind) -> str:
        """Declare a vector type with the alignment of an element; return its name."""
        type = self.type(kind)
        self.prelude.types["SW_LOAD"] = MEMORY
        self.prelude.types[f"{type}_at"] = (
            f"typedef {type} {type}_at __attribute__((aligned({kind.bits // 8})));"
        )
        return type

    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Load lane by lane."""
        rows = [
            f"if ({self.lane(mask, 'm', str(k))}) {self.set_lane(kind, 'y', str(k), f'p[{k}]')}"
            for k in range(kind.lanes)
        ]
        space = pointer.split()[0].strip("_")
        parameters = [(pointer, "p"), (mask, "m"), (kind, "y")]
        name = f"sw_load_{space}_{kind}_{mask}"
        return self.helper(name, kind, parameters, [*rows, "return y;"])

    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Store lane by lane."""
        rows = [
            f"if ({self.lane(mask, 'm', str(k))}) p[{k}] = {self.lane(kind, 'x', str(k))};"
            for k in range(kind.lanes)
        ]
        space = pointer.split()[0].strip("_")
        parameters = [(pointer, "p"), (mask, "m"), (kind, "x")]
        return self.helper(f"sw_store_{space}_{kind}_{mask}", None, parameters, rows)
