"""A copy from one tensor to another, and the buffers that a loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.views import Steps

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
    removed: bool = False
    """Whether a loop does without it: it exchanges buffers, or made the copy before it began."""


@dataclass(eq=False)
class Loop:
    """The slots that a loop carries between iterations, and the buffers that it exchanges."""

    op: scf.ForOp | scf.WhileOp
    slots: Sequence[BlockArgument]
    yields: scf.YieldOp
    nexts: list[Copy] = field(default_factory=list[Copy])
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
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The index in ``carried`` of the buffer of each slot that exchanges it, and of its value."""
