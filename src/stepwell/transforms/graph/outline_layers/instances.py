"""One occurrence of a repeated sequence of ops, with its inputs and its outputs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from stepwell.transforms.graph.outline_layers.sequence import Sequences, signature


@dataclass(eq=False)
class Instance:
    """Adjacent ops of a sequence."""

    sequences: Sequences
    ops: Sequence[Operation]
    inputs: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The values from outside in order of their first use, numbered."""
    pattern: Hashable = field(init=False)
    """How its ops are connected: equal ones compute the same of their inputs."""

    def __post_init__(self) -> None:
        results = [r for op in self.ops for r in op.results]
        inside: dict[SSAValue, int] = {r: n for n, r in enumerate(results)}
        copies: dict[Operation, Hashable] = {}

        def source(value: SSAValue) -> Hashable:
            if value in inside:
                return inside[value]
            owner = value.owner
            if not isinstance(owner, Operation) or owner not in self.sequences.copied:
                return "input", self.inputs.setdefault(value, len(self.inputs))
            if owner not in copies:
                copies[owner] = (signature(owner), tuple(map(source, owner.operands)))
            return copies[owner]

        self.pattern = tuple(tuple(map(source, op.operands)) for op in self.ops)

    @cached_property
    def members(self) -> set[Operation]:
        """Its ops."""
        return set(self.ops)

    @cached_property
    def outputs(self) -> list[SSAValue]:
        """The results that ops outside use."""
        members = self.members
        return [
            result
            for op in self.ops
            for result in op.results
            if any(use.operation not in members for use in result.uses)
        ]

    @cached_property
    def key(self) -> Hashable:
        """What equal instances share."""
        used = set(self.outputs)
        results = (result for op in self.ops for result in op.results)
        return self.pattern, tuple(n for n, result in enumerate(results) if result in used)
