"""What the program says goes on as what: the joints at which buffers are united, or copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.lowering.bufferize.places import Places, Storage
from stepwell.lowering.bufferize.views import Slice, Step, Steps

What: TypeAlias = Literal["update", "insert", "branch", "init", "next", "hand", "exit", "output"]


@dataclass(eq=False)
class Edges:
    """A loop makes ``value``, the next one of ``slot``, of that by inserting ``boxes``."""

    loop: Loop
    slot: BlockArgument
    value: SSAValue
    boxes: list[Slice]
    between: list[SSAValue]
    """What is there after each of these insertions."""


@dataclass(eq=False)
class Tie:
    """``value`` goes on as ``step`` of ``into``; a copy, if there must be one, is at ``at``."""

    what: What
    at: Operation
    value: SSAValue
    into: SSAValue
    step: Step | None = None
    position: int = 0
    broken: str = ""
    """Why the tie could not be kept."""
    seen: Steps = ()
    """How the part that ``step`` takes is seen, if not as it is."""
    edges: Edges | None = None
    """Set where a loop leaves what lies around the parts inserted as it is."""

    @property
    def write(self) -> tuple[Operation, Step | None]:
        """What the copy would write of ``into``."""
        return self.at, self.step

    @property
    def steps(self) -> Steps:
        """How ``into`` shows what ``value`` goes on as."""
        return (() if self.step is None else (self.step,)) + self.seen


@dataclass(eq=False)
class Loop:
    """What a loop hands from one iteration to the next by exchanging buffers."""

    op: scf.ForOp | scf.WhileOp
    slots: Sequence[BlockArgument]
    yields: scf.YieldOp
    ties: list[Tie] = field(default_factory=list[Tie])
    carried: list[Storage] = field(default_factory=list[Storage])
    """The buffers exchanged, as the body sees them: of rotating slots, then the spare ones."""
    outside: list[Storage] = field(default_factory=list[Storage])
    """The buffers they are before the first iteration."""
    following: list[int] = field(default_factory=list[int])
    """Which of them each one is in the next iteration, by number."""
    edges: list[tuple[int, BlockArgument, list[Slice]]] = field(
        default_factory=list[tuple[int, BlockArgument, list[Slice]]]
    )
    """Spare buffers, by number, that must begin as a slot does, except for some boxes."""
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """For each slot that rotates, its number among ``carried``."""
    begins: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """For what is written before the first iteration, the number of the buffer."""

    def which(self, value: SSAValue, places: Places) -> int | None:
        """Return the number of the exchanged buffer that holds what a region is given, if one."""
        storage = places.of(value)[0] if value in places else None
        return self.carried.index(storage) if storage in self.carried else None

    def exchanges(self, a: Storage, b: Storage, places: Places) -> bool:
        """Whether each of two buffers is, or contains, one of those exchanged."""
        roots = [places.root(storage, ())[0] for storage in self.outside]
        return a in roots and b in roots
