"""Eliminate common subexpressions.

Before:  %a = nd.exp %x : tensor<4xf32>
         %b = nd.exp %x : tensor<4xf32>
         %y = nd.add %a, %b : tensor<4xf32>
After:   %a = nd.exp %x : tensor<4xf32>
         %y = nd.add %a, %a : tensor<4xf32>

Afterwards no op without memory effects repeats one that dominates it in its block or an enclosing
block. Fresh tensors (tensor.empty, linalg.fill) stay apart: each is the destination of one result.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import FusedLoc, LocationAttr, ModuleOp, NameLoc, TensorType
from xdsl.ir import Block, IRNode, Operation, OpResult, SSAValue
from xdsl.traits import Commutative, IsolatedFromAbove, IsTerminator

from stepwell.analysis.effects import is_pure
from stepwell.dialects.types import fuse_locations, times_again
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class CommonSubexpressions(Pass):
    """Merge ops that are equal and pure; the remaining one gets the locations of both."""

    name = "cse"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge throughout the module."""
        merging = _Merging()
        merging.inside(op, {})
        for stays, locations in merging.places.items():
            stays.location = fuse_locations(locations)


Places: TypeAlias = dict[Operation, list[LocationAttr]]
"""The locations of merged ops, fused only at the end: one op may replace thousands."""

_APART = frozenset({tensor.EmptyOp, linalg.ops.FillOp})


@dataclass
class _Merging:
    """The state of one module while its ops are merged."""

    places: Places = field(default_factory=dict[Operation, list[LocationAttr]])
    pure: dict[Operation, bool] = field(default_factory=dict[Operation, bool])
    """Caches which ops with regions have no memory effects."""

    def inside(self, op: Operation, known: dict[Hashable, list[Operation]]) -> None:
        """Merge inside the regions of ``op``, where the ops ``known`` so far are visible."""
        inherited = {} if op.has_trait(IsolatedFromAbove) else known
        for region in op.regions:
            for block in region.blocks:
                self.block(block, inherited)

    def block(self, block: Block, known: dict[Hashable, list[Operation]]) -> None:
        """Merge the ops of one block."""
        added: list[list[Operation]] = []
        for op in list(block.ops):
            if op.regions:
                self.inside(op, known)
            if not (_kind(type(op)) and op.results and is_pure(op, self.pure)):
                continue
            key = _key(op)
            alike = known.setdefault(key, [])
            twin = next((a for a in alike if _are_equal(a, op)), None) if alike else None
            if twin is None:
                alike.append(op)
                added.append(alike)
            else:
                _merge(twin, op, self.places)
        for alike in reversed(added):
            alike.pop()


@cache
def _kind(kind: type[Operation]) -> bool:
    """Whether ops of a class may be merged."""
    return kind not in _APART and not kind.has_trait(IsTerminator)


@cache
def _commutes(kind: type[Operation]) -> bool:
    return kind.has_trait(Commutative)


def _key(op: Operation) -> Hashable:
    """Return the key that equal ops share, with what their regions read from outside.

    Result types hash slowly, so they are left out where operands nearly always determine them.
    """
    operands: Hashable = tuple(map(_identity, op.operands))
    types = tuple(r.type for r in op.results) if not operands else len(op.results)
    if _commutes(type(op)) and len(op.operands) == 2:
        operands = (len({*op.operands}), frozenset(op.operands))
    return (
        type(op),
        operands,
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
        types,
        _captured(op) if op.regions else (),
        times_again(op.location) if type(op.location) in _NAMED and _is_of_tensors(op) else 0,
    )


def _captured(op: Operation) -> tuple[SSAValue, ...]:
    """Return the values from outside that the regions of an op read, in order."""
    inside, found = set[SSAValue](), list[SSAValue]()
    for each in op.walk():
        if each is not op:
            found += [value for value in each.operands if value not in inside]
        inside.update(each.results)
        inside.update(a for region in each.regions for block in region.blocks for a in block.args)
    return tuple(found)


def _is_of_tensors(op: Operation) -> bool:
    return bool(op.operands) and isinstance(op.results[0].type, TensorType)


_NAMED = (NameLoc, FusedLoc)
"""Locations that may mark an op as a deliberate recomputation."""


_FRESH = frozenset({tensor.EmptyOp, linalg.ops.FillOp})
"""Ops of tensors whose equal results are fresh, as ops that write to them return other tensors."""


def _identity(value: SSAValue) -> Hashable:
    """Return the identity of ``value``; fresh tensors of equal type and contents share it."""
    if type(value) is not OpResult or type(value.op) not in _FRESH:
        return value
    match value.op:
        case tensor.EmptyOp() as empty:
            return (tensor.EmptyOp, tuple(empty.dynamic_sizes), value.type)
        case linalg.ops.FillOp() as fill:
            return (linalg.ops.FillOp, tuple(map(_identity, fill.operands)))
        case _:
            return value


def _are_equal(a: Operation, b: Operation) -> bool:
    """Whether two ops with the same key are equal."""
    if any(one.type != other.type for one, other in zip(a.results, b.results, strict=True)):
        return False
    context: dict[IRNode | SSAValue, IRNode | SSAValue] = {}
    return all(
        one.is_structurally_equivalent(other, context)
        for one, other in zip(a.regions, b.regions, strict=True)
    )


def _merge(stays: Operation, goes: Operation, places: Places) -> None:
    for old, new in zip(goes.results, stays.results, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    _unite(stays, goes, places)
    if goes.regions:
        for a, b in zip(stays.walk(), goes.walk(), strict=True):
            _unite(a, b, places)
    goes.detach()
    goes.erase()


def _unite(stays: Operation, goes: Operation, places: Places) -> None:
    """Add the location of the erased op to that of the remaining op."""
    gone = places.pop(goes, None) or [goes.location]
    if stays in places or gone != [stays.location]:
        places.setdefault(stays, [stays.location]).extend(gone)
