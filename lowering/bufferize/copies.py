"""A copy from one tensor to another, and the buffers that a loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.views import Slice, Steps

Kind: TypeAlias = Literal["update", "insert", "slice", "branch", "init", "next", "hand", "exit"]


@dataclass(eq=False)
class Copy:
    """A copy of ``value`` to a part of ``into``, at the op ``at``."""

    kind: Kind
    at: Operation
    value: SSAValue
    into: SSAValue
    steps: Steps = ()
    """The view of ``into`` that is written."""
    seen: Steps = ()
    """The view of ``value`` that is read."""
    why: str = ""
    """Why the copy could not be removed."""
    exchanged: bool = False
    """Whether the loop swaps the buffers instead of copying."""


@dataclass(eq=False)
class Halo:
    """A slot whose next value is the slot with the loop-invariant ``boxes`` overwritten."""

    copy: Copy
    slot: BlockArgument
    value: SSAValue
    boxes: list[Slice]
    between: list[SSAValue]
    """The result of each of these insertions."""


@dataclass(eq=False)
class Loop:
    """The slots that a loop carries between iterations, and the buffers that it exchanges."""

    op: scf.ForOp | scf.WhileOp
    slots: Sequence[BlockArgument]
    yields: scf.YieldOp
    nexts: list[Copy] = field(default_factory=list[Copy])
    halos: list[Halo] = field(default_factory=list[Halo])
    carried: list[Storage] = field(default_factory=list[Storage])
    """The exchanged buffers by their names in the body: those of slots, then the spare ones."""
    outside: list[Storage] = field(default_factory=list[Storage])
    """The buffer that each of them is in the first iteration."""
    following: list[int] = field(default_factory=list[int])
    """The permutation of the exchanged buffers from one iteration to the next, by number."""
    ends: list[list[Storage]] = field(default_factory=list[list[Storage]])
    """The buffers of `outside` that each of them may be after the last iteration."""
    results: dict[int, Storage] = field(default_factory=dict[int, Storage])
    """The buffer after the loop, by number, of each that has several possible ends."""
    spare_halos: list[tuple[int, BlockArgument, list[Slice]]] = field(
        default_factory=list[tuple[int, BlockArgument, list[Slice]]]
    )
    """Spare buffers, by number, that need the halo of a slot's init: all outside of the boxes."""
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """For each slot that exchanges its buffer, the index of that in ``carried``."""
