"""Loads and stores in a C-like language."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from stepwell.lowering.emit.kinds import INDEX, Kind
from stepwell.lowering.emit.spelling.values import Values


class Memory(Values):
    """The syntax of loads, stores, masks and prefetching."""

    @abstractmethod
    def address(self, pointer: str) -> str:
        """Return a pointer converted to an integer."""

    @abstractmethod
    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Return the vector at ``address``, which need not be aligned.

        space : the address space, if the language has several
        """

    @abstractmethod
    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Return the statement that writes ``x`` at ``address``."""

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Return the statement for a non-temporal store of ``x``, or a plain one."""
        return self.store(kind, address, x, space)

    def fence(self) -> str:
        """Return the fence that makes non-temporal stores visible to others; "" if not needed."""
        return ""

    def prefetch(self, address: str) -> str:
        """Return the statement that prefetches the cache line at ``address``, or ""."""
        del address
        return ""

    @abstractmethod
    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Return a function of address, mask and the values of disabled lanes."""

    @abstractmethod
    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Return a function of address, mask and vector."""

    def load_first(self, kind: Kind, pointer: str, numbers: Sequence[str] = ("n",)) -> str:
        """Return a function of address, number of first lanes, and the values of the others.

        numbers : names of the numbers; of two, lanes that only one of them counts are loaded
        """
        test = " != ".join(f"(k < {number})" for number in numbers)
        rows = [f"for (int k = 0; k < {kind.lanes}; k++) if ({test}) y[k] = p[k];", "return y;"]
        parameters = [(pointer, "p"), *((INDEX, number) for number in numbers), (kind, "y")]
        quick = self.first_lanes(kind, *numbers)
        name = f"sw_load_{'first' if len(numbers) == 1 else 'between'}_{kind}"
        return self.helper(name, kind, parameters, [*quick, *rows, *["#endif"][: len(quick)]])

    def store_first(self, kind: Kind, pointer: str) -> str:
        """Return a function of address, number of first lanes, and vector.

        It stores halves, quarters and so on: loads wait long for a masked store that they overlap.
        """
        rows = [
            f"if (n >= {kind.lanes}) {{",
            f"  {self.store(kind, 'p', 'x', '')}",
            "  return;",
            "}",
            "if (n < 1) return;",
        ]
        x, lanes, now = "x", kind.lanes // 2, kind
        while lanes:
            half = Kind(kind.element, lanes if lanes > 1 else 0)
            low, high = (self._part(now, x, lanes, first) for first in (0, lanes))
            if lanes == 1:
                rows += ["if (n & 1) {", f"  p[0] = {low};", "}"]
                break
            rows += [f"{self.type(half)} x{lanes} = {low};", f"if (n & {lanes}) {{"]
            rows += [f"  {self.store(half, 'p', f'x{lanes}', '')}", f"  p += {lanes};"]
            rows += [f"  x{lanes} = {high};", "}"]
            x, now, lanes = f"x{lanes}", half, lanes // 2
        parameters = [(pointer, "p"), (INDEX, "n"), (kind, "x")]
        return self.helper(f"sw_store_first_{kind}", None, parameters, rows)

    def _part(self, kind: Kind, x: str, lanes: int, first: int) -> str:
        """Return some lanes of a vector, or one."""
        if lanes == 1:
            return self.lane(kind, x, str(first))
        return self.shuffle(Kind(kind.element, lanes), x, x, kind, range(first, first + lanes))

    def first_lanes(self, kind: Kind, *numbers: str) -> list[str]:
        """Return lines that load the first lanes at once, under ``#if``.

        numbers : how many; of two, lanes that only one of them counts are loaded
        """
        del kind, numbers
        return []
