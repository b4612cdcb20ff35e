"""Find where a program may be cut so that its kernels stay the same.

A value that crosses a cut must be in memory in any case, and no kernel may have ops of both sides:

* It is the result of an elementwise op, a reduction or a product; readers merge views and casts.
* A product reads it that is large enough to be a kernel without its operands (`outline-kernels`),
  or it is a result of the program, or it is computed in the epilogue of a product and has several
  readers. So `fuse-elementwise` merges its producer into no reader.
* Each other reader waits for a product that begins later, and so cannot move to its producer. Nor
  can it move to an earlier reader: ops that read one tensor might become one op.
* The layer has a product of which both operands depend on results of other layers, such as the
  scores of attention. The product needs one operand as a whole, so that no band of rows of
  `fuse-bands` extends across the cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from stepwell.analysis.costs import SERIAL
from stepwell.dialects.nd.contraction import DotGeneralOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.creation import ConstantOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.reduction import ReduceOp
from stepwell.dialects.nd.shape import ReshapeOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.transforms.graph.outline_layers.instances import Instance
from stepwell.transforms.graph.outline_layers.sequence import Sequences


class Boundaries:
    """The cuts of a sequence into instances of one period."""

    def __init__(self, sequences: Sequences, starts: Sequence[int], period: int) -> None:
        self.ops, self.copied = sequences.ops, sequences.copied
        self.instances = [Instance(sequences, self.ops[n : n + period]) for n in starts]
        self.instance_of = {op: each for each in self.instances for op in each.ops}

    def equal_instances(self) -> Sequence[Instance]:
        """Return the largest number of equal instances with clean cuts."""
        clean = [each for each in self.instances if self._is_clean(each)]
        groups: Counter[Hashable] = Counter(each.key for each in clean)
        (most, _), *_ = groups.most_common(1) or [(None, 0)]
        return [each for each in clean if each.key == most]

    def _is_clean(self, instance: Instance) -> bool:
        crossing = [v for v in instance.inputs if not isinstance(v.owner, Block | ConstantOp)]
        return (
            all(self._may_cross(v) for v in (*crossing, *instance.outputs))
            and all(self._are_apart(v) for v in instance.inputs)
            and (not crossing or self._needs_whole(instance, crossing))
        )

    def _may_cross(self, value: SSAValue) -> bool:
        """Whether a value is in memory in any case, and its readers in other kernels."""
        made_by = value.owner
        computed = isinstance(made_by, Elementwise | ReduceOp | DotGeneralOp)
        if not computed or isinstance(made_by, CastOp):
            return False
        home, here = self.instance_of.get(made_by), self.position[made_by]
        readers = [use.operation for use in value.uses]
        others = [op for op in readers if home is None or self.instance_of.get(op) is not home]
        whole = [op for op in others if _reads_whole(op)]
        stays = whole or (len(readers) > 1 and _finishes_product(made_by))
        return bool(stays) and all(op in whole or self._waits(op, here) for op in others)

    def _are_apart(self, value: SSAValue) -> bool:
        """Whether no reader of a value can move to one in another layer."""
        readers = sorted(
            _readers(value, self.copied), key=lambda op: self.position.get(op, len(self.ops))
        )
        return all(
            self.instance_of.get(a) is self.instance_of.get(b)
            or _reads_whole(b)
            or self._waits(b, self.position[a])
            for a, b in pairwise(readers)
        )

    def _waits(self, op: Operation, position: int) -> bool:
        """Whether an op needs the result of a product after ``position``."""
        return self.latest.get(op, -1) > position

    @cached_property
    def position(self) -> dict[Operation, int]:
        """The position of each op of the sequence."""
        return {op: n for n, op in enumerate(self.ops)}

    @cached_property
    def latest(self) -> dict[Operation, int]:
        """The position of the last product whose result each op needs, if there is one."""
        found: dict[Operation, int] = {}
        for op in self.ops:
            owners = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
            needed = [self.position[o] for o in owners if isinstance(o, DotGeneralOp)]
            found[op] = max([*needed, *(found.get(o, -1) for o in owners)], default=-1)
        return found

    def _needs_whole(self, instance: Instance, crossing: Sequence[SSAValue]) -> bool:
        """Whether both operands of some product derive from what crosses into its layer."""
        derived: set[SSAValue] = set(crossing)
        for op in instance.ops:
            reads = [v in derived for v in op.operands]
            if any(reads):
                derived.update(op.results)
            if isinstance(op, DotGeneralOp) and all(reads):
                return True
        return False


def _reads_whole(op: Operation) -> bool:
    """Whether an op is a large product of all its operands' elements, or returns them."""
    if isinstance(op, ReshapeOp):
        return all(_reads_whole(use.operation) for use in op.results[0].uses)
    if isinstance(op, func.ReturnOp):
        return True
    if not isinstance(op, DotGeneralOp):
        return False
    (result,) = op.results
    depth = prod(shape_of(op.operands[0])[axis] for axis in op.contract[0])
    return prod(shape_of(result)) * depth > SERIAL


def _finishes_product(op: Operation) -> bool:
    """Whether an elementwise op is computed in the epilogue of a product."""
    above = [op]
    while above:
        for value in above.pop().operands:
            if value.has_one_use():
                if isinstance(value.owner, DotGeneralOp):
                    return True
                if isinstance(value.owner, Elementwise):
                    above.append(value.owner)
    return False


def _readers(value: SSAValue, copied: Container[Operation]) -> list[Operation]:
    """Return the readers of a value, through ops that layers copy."""
    found: list[Operation] = []
    for use in value.uses:
        op = use.operation
        found += _readers(op.results[0], copied) if op in copied else [op]
    return found
