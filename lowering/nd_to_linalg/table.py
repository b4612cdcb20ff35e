"""The rule table of the lowering, and the builder that its rules use."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from xdsl.dialects.builtin import (
    FunctionType,
    IntegerType,
    LocationAttr,
    Signedness,
    TensorType,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.core.rules import RuleTable
from stepwell.dialects.nd.creation import ResourceAttr
from stepwell.transforms.passes import fail

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class Resource:
    """A weight that has become an argument."""

    name: str
    sha256: str
    element: Attribute
    """Its original element type, which may be unsigned."""
    value: SSAValue


@dataclass
class Lowering:
    """Builds the new body of a function beside the old one, so that rules still see `nd` types.

    Inserted ops take the location of the op being lowered.
    """

    block: Block
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Maps every old value to its new value."""
    source: Operation | None = None
    """The op being lowered."""
    resources: dict[str, Resource] = field(default_factory=dict[str, "Resource"])
    """The weights that the function reads, by name."""
    updates: dict[Any, tuple[Any, int]] = field(default_factory=dict[Any, tuple[Any, int]])
    """For each update the first of those that it continues, and how many elements they write."""
    entry: Block = field(init=False)
    """The block whose arguments are those of the function."""

    def __post_init__(self) -> None:
        self.entry = self.block

    def insert(self, op: OpT) -> OpT:
        """Append ``op`` to the new body and set its location."""
        assert self.source is not None
        _locate(op, self.source.location)
        self.block.add_op(op)
        return op

    def resource(self, attribute: ResourceAttr, type: TensorType[Attribute]) -> SSAValue:
        """Return the argument for a weight, adding it on first use."""
        name = attribute.key.data
        if (known := self.resources.get(name)) is None:
            known = self._adopted(name, attribute.sha256.data, type.element_type, signless(type))
        elif signless(type) != known.value.type:
            assert self.source is not None
            fail(self.source, f"resource {name!r} is used as {type} and as {known.value.type}")
        return known.value

    def adopt(self, resource: Resource) -> None:
        """Add a weight of a called function to this function."""
        self._adopted(resource.name, resource.sha256, resource.element, resource.value.type)

    def _adopted(self, name: str, sha256: str, element: Attribute, type: Attribute) -> Resource:
        value = self.entry.insert_arg(type, len(self.entry.args))
        value.name_hint = name if SSAValue.is_valid_name(name) else None
        self.resources[name] = Resource(name, sha256, element, value)
        return self.resources[name]

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Insert into ``block`` instead, for the op being lowered."""
        outer, source = self.block, self.source
        self.block = block
        yield
        self.block, self.source = outer, source

    def region(self, old: Region, end: Callable[[Sequence[SSAValue]], None]) -> Region:
        """Return the lowered copy of a region of one block.

        ``end`` gets the lowered operands of its terminator and inserts the new one.
        """
        block = Block(arg_types=[signless(t) for t in old.block.arg_types])
        with self.inside(block):
            for was, now in zip(old.block.args, block.args, strict=True):
                self.values[was] = now
                now.name_hint, now.location = was.name_hint, was.location
            end(lower_block(self, old.block))
        return Region(block)


lower: RuleTable[Callable[[Lowering, Any, Sequence[SSAValue]], Sequence[SSAValue]]] = RuleTable(
    "lowering"
)
"""``(lowering, op, lowered operands) -> the new values of its results``."""


def lower_block(lowering: Lowering, block: Block) -> Sequence[SSAValue]:
    """Lower every op of ``block`` in order; return the lowered operands of its terminator.

    Ops of other dialects are copied; the terminator is left to the caller.
    """
    for op in block.ops:
        lowering.source = op
        operands = [lowering.values[v] for v in op.operands]
        if op.name in _TERMINATORS:
            return operands
        if (rule := lower.get(type(op))) is not None:
            results = rule(lowering, op, operands)
        else:
            results = lowering.insert(op.clone(lowering.values)).results
        for old, new in zip(op.results, results, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            lowering.values[old] = new
    return []


_TERMINATORS = frozenset({"func.return", "nd.yield", "nd.condition"})


def signless(type: Attribute) -> Attribute:
    """Return ``type`` with signless integers, as upstream's arithmetic requires."""
    match type:
        case TensorType():
            return TensorType(signless(type.element_type), type.get_shape())
        case IntegerType() if type.signedness.data != Signedness.SIGNLESS:
            return IntegerType(type.width.data)
        case FunctionType():
            inputs, outputs = type.inputs.data, type.outputs.data
            return FunctionType.from_lists(
                [signless(t) for t in inputs], [signless(t) for t in outputs]
            )
        case _:
            return type


def _locate(root: Operation, location: LocationAttr) -> None:
    """Set the location of ``root`` and its nested ops that have none."""
    new = [root]
    while new:
        op = new.pop()
        if isinstance(op.location, UnknownLoc):
            op.location = location
        elif op is not root:
            continue
        for region in op.regions:
            for block in region.blocks:
                new += block.ops
