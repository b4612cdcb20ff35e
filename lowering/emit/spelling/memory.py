"""Loads and stores in a C-like language."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from stepwell.lowering.emit.kinds import INDEX, LANES, Kind
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

    def load_first(self, kind: Kind, pointer: str) -> str:
        """Return a function of address, number of first lanes, and the values of the others."""
        quick = self.masked_at_once(kind, self._first_bits("n", kind.lanes))
        return self._load_some(f"sw_load_first_{kind}", kind, [(pointer, "p"), (INDEX, "n")], quick)

    def load_range(self, kind: Kind, pointer: str) -> str:
        """Return a function of address, bits of a range of lanes, and the values of the others."""
        quick, parameters = self.masked_at_once(kind, "m"), [(pointer, "p"), (LANES, "m")]
        return self._load_some(f"sw_load_range_{kind}", kind, parameters, quick)

    def _load_some(
        self,
        name: str,
        kind: Kind,
        parameters: Sequence[tuple[Kind | str, str]],
        quick: Sequence[str],
    ) -> str:
        """Return a helper that loads lanes at once where it can, else lane by lane."""
        test = "k < n" if parameters[-1][1] == "n" else "m >> k & 1"
        rows = [f"for (int k = 0; k < {kind.lanes}; k++) if ({test}) y[k] = p[k];", "return y;"]
        lines = [*quick, *rows, *["#endif"][: len(quick)]]
        return self.helper(name, kind, [*parameters, (kind, "y")], lines)

    def store_range(self, kind: Kind, pointer: str) -> str:
        """Return a function of address, bits of a range of lanes, and vector."""
        quick = self.masked_at_once(kind, "m", "x")
        rows = [f"for (int k = 0; k < {kind.lanes}; k++) if (m >> k & 1) p[k] = x[k];"]
        lines = [*quick, *rows, *["#endif"][: len(quick)]]
        parameters = [(pointer, "p"), (LANES, "m"), (kind, "x")]
        return self.helper(f"sw_store_range_{kind}", None, parameters, lines)

    def range_of_lanes(self, lanes: int) -> str:
        """Return a function that sets the bits of lanes which only one of two numbers counts."""
        bits = " ^ ".join(self._first_bits(number, lanes) for number in ("n", "m"))
        parameters = [(INDEX, "n"), (INDEX, "m")]
        return self.helper(f"sw_range_{lanes}", LANES, parameters, [f"return {bits};"])

    def _first_bits(self, number: str, lanes: int) -> str:
        """Set the first bits, without branches: the number is bounded by minima first."""
        some = f"({number} < 0 ? 0 : {number} > {lanes} ? {lanes} : {number})"
        one = f"({self.type(LANES)})"
        if lanes == LANES.bits:  # shifting by all bits is undefined
            return f"({number} <= 0 ? 0 : {one}-1 >> ({lanes} - {some}))"
        return f"(({one}1 << {some}) - 1)"

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

    def masked_at_once(self, kind: Kind, bits: str, stored: str = "") -> list[str]:
        """Return lines that load, or store, the lanes of some bits at once, under ``#if``."""
        del kind, bits, stored
        return []
