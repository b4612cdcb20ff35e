"""Where the results of loops are that exchange buffers: in one of those, which the run decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation

from stepwell.lowering.bufferize.exchanges import Exchanges
from stepwell.lowering.bufferize.places import Places, Storage
from stepwell.lowering.bufferize.ties import Loop, Tie
from stepwell.lowering.bufferize.unions import Unions
from stepwell.lowering.bufferize.views import Steps

_End: TypeAlias = tuple[Storage, list[tuple[Storage, Steps]]]


@dataclass
class Ends:
    """Settles where the results of exchanging loops of one host function are."""

    places: Places
    unions: Unions
    exchanges: Exchanges
    found: dict[tuple[Operation, int], _End] = field(
        default_factory=dict[tuple[Operation, int], _End]
    )
    """By loop and number of the buffer: the result, and in which buffers it may be."""

    def settle(self, tie: Tie, loop: Loop, refused: bool) -> bool:
        """Settle an exit; False where what ends there is in no buffer that the loop exchanges.

        refused : whether the result must be copied
        """
        if (number := loop.which(tie.into, self.places)) is None:
            return False
        inner, _ = self.places.of(tie.value)
        ends = self.exchanges.ends(loop, number)
        if self.places.of(tie.into)[1]:
            tie.broken = "it is part of what a loop exchanges"
        elif len(ends) == 1:
            tie.broken = self._joined(inner, *ends[0])
        elif refused:
            tie.broken = "which buffer the loop ends in is not known, and one is written too early"
        elif (other := self.found.get((loop.op, number))) is not None:
            tie.broken = self._joined(inner, other[0], ())
        else:
            inner.kind = "result"
            self.found[loop.op, number] = inner, ends
        return True

    def _joined(self, inner: Storage, outer: Storage, steps: Steps) -> str:
        """Unite two buffers, or return why they cannot be one."""
        if not (why := self.unions.clash(inner, outer, steps)):
            self.places.unite(inner, outer, steps)
        return why

    def clash(self) -> Operation | None:
        """Return a loop of whose buffers one is written while a result in it is still read."""
        for (loop, _), (inner, ends) in self.found.items():
            if any(self.unions.clash(inner, *self.places.root(*end)) for end in ends):
                return loop
        return None

    def of(self, storage: Storage) -> list[Storage]:
        """Return the buffers in which what is in ``storage`` may be: one, but after some loops."""
        ends = next((e for inner, e in self.found.values() if inner is storage), [(storage, ())])
        return [self.places.root(*end)[0] for end in ends]
