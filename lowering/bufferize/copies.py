"""A copy from one tensor to another, and the copies with which a loop goes on."""

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
    """``value`` is copied to a part of ``into``, at ``at``."""

    kind: Kind
    at: Operation
    value: SSAValue
    into: SSAValue
    steps: Steps = ()
    """Which part, and how it is seen."""
    seen: Steps = ()
    """How ``value`` is seen."""
    why: str = ""
    """Why it could not be removed."""
    exchanged: bool = False
    """Whether a loop exchanges the buffers instead."""


@dataclass(eq=False)
class Edges:
    """A loop makes the next value of a slot of that by inserting ``boxes``, alike in each turn."""

    copy: Copy
    slot: BlockArgument
    value: SSAValue
    boxes: list[Slice]
    between: list[SSAValue]
    """What is there after each of these insertions."""


@dataclass(eq=False)
class Loop:
    """What a loop hands from one iteration to the next, and which buffers it exchanges."""

    op: scf.ForOp | scf.WhileOp
    slots: Sequence[BlockArgument]
    yields: scf.YieldOp
    nexts: list[Copy] = field(default_factory=list[Copy])
    surrounded: list[Edges] = field(default_factory=list[Edges])
    carried: list[Storage] = field(default_factory=list[Storage])
    """The buffers exchanged, as the body sees them: of slots, then the spare ones."""
    outside: list[Storage] = field(default_factory=list[Storage])
    """The buffers they are before the first iteration."""
    following: list[int] = field(default_factory=list[int])
    """Which of them each one is in the next iteration, by number."""
    ends: list[list[Storage]] = field(default_factory=list[list[Storage]])
    """In which of those outside each one may be after the last iteration."""
    results: dict[int, Storage] = field(default_factory=dict[int, Storage])
    """What one is then, by number, where its end is not known."""
    edges: list[tuple[int, BlockArgument, list[Slice]]] = field(
        default_factory=list[tuple[int, BlockArgument, list[Slice]]]
    )
    """Spare buffers, by number, that must begin as a slot does, except for some boxes."""
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """For each slot that exchanges its buffer, its number among ``carried``."""
