"""Loops with elementwise steps as structured ops, like cumulative sums with other bodies.

The elements of a row are then independent: they can be vectorized and shared by threads, and
producers and consumers of the rows can be fused. A step is lowered in a temporary block, from
which the scalar code of its ops is moved to the body of the single op.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from stepwell.analysis.equal_sizes import SizeClasses, note_sizes
from stepwell.analysis.structured import cost, is_parallel
from stepwell.core.dtypes import DTYPES
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.control import ScanOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.body import Body
from stepwell.lowering.nd_to_linalg.generic import generic
from stepwell.lowering.nd_to_linalg.shape import iterators, turned_along
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower_block, signless

MAX_TENSORS = 16
"""The most tensors that a step may read to become one op, ..."""
CHEAP = 16
"""... and its highest cost in additions: each step of a row waits for the previous one, and a few
vectors of a row do not hide that latency; a loop over steps does, with all vectors of the row."""


def running(lowering: Lowering, op: ScanOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Return the results of a loop as those of one structured op; () if it cannot be one.

    Nested loops stay loops: the outer one may become scalar code as a whole.
    """
    carried = operands[: len(op.carried)]
    xs = operands[len(carried) : len(carried) + len(op.xs)]
    if lowering.block is not lowering.entry or op.steps is not None or not (xs or carried):
        return ()
    if op.count == DYNAMIC and (op.reverse is not None or not xs):
        return ()
    (row, *others) = [
        *(shape_of(v) for v in op.carried),
        *(shape_of(v)[1:] for v in (*op.xs, *op.stacked)),
    ] or [()]
    if not row or any(other != row for other in others):
        return ()
    step = _Step(lowering, len(row))
    results = step.lowered(op)
    if (
        results is None
        or len(step.captured) + len(xs) > MAX_TENSORS
        or step.cost > CHEAP
        or (DYNAMIC in row and not step.has_one_size(carried, xs, results))
    ):
        step.forget()
        return ()
    return _written(lowering, op, step, (carried, xs, results))


def _written(
    lowering: Lowering,
    op: ScanOp,
    step: _Step,
    values: tuple[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]],
) -> Sequence[SSAValue]:
    carried, xs, results = values
    sizes, rank = Sizes(lowering), step.rank + 1
    count: Size = sizes.of(xs[0], 0) if op.count == DYNAMIC else op.count
    rows = sizes.all_of(xs[0])[1:] if xs else sizes.all_of(carried[0])
    walk: AffineMap | None = AffineMap.identity(rank)
    if op.reverse is not None:
        walk = turned_along(rank, 0, count)
    assert walk is not None
    dims = [AffineExpr.dimension(k) for k in range(rank)]
    row = AffineMap(rank, 0, tuple(dims[1:]))
    extent = sizes.empty([count], signless(tensor_type(op.results[0]).element_type))
    stacked = [
        sizes.empty([count, *rows], signless(tensor_type(y).element_type)) for y in op.stacked
    ]
    captured = list(step.captured)
    maps = [walk] * len(xs)
    maps += [row if shape_of(v) else AffineMap(rank, 0, ()) for v in captured]
    maps += [AffineMap(rank, 0, (dims[0],)), *([walk] * len(stacked)), *([row] * len(carried))]

    def body(b: Body, *scalars: SSAValue) -> Sequence[SSAValue]:
        given = scalars[: len(xs) + len(captured)]
        before = scalars[len(scalars) - len(carried) :]
        found = step.inlined(b.block, [*before, *given[: len(xs)]], given[len(xs) :], results)
        return [*found[len(carried) :], *found[: len(carried)]]

    inputs, outputs = [*xs, *captured, extent], [*stacked, *carried]
    loops = iterators(rank, [0])
    found = generic(lowering, inputs, outputs, maps, loops, body, DTYPES["f32"])
    step.forget()
    return [*found[len(stacked) :], *found[: len(stacked)]]


def _sizing_ops(values: Iterable[SSAValue]) -> Iterator[Operation]:
    """Yield the ops that define sizes and tensors, and those that define the sizes of these."""
    pending, seen = [*values], set[Operation]()
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in seen:
            seen.add(op)
            yield op
            if isinstance(op, linalg.ops.GenericOp | linalg.ops.FillOp):
                pending += op.outputs
            elif isinstance(op, tensor.EmptyOp):
                pending += op.operands


@dataclass
class _Step:
    """One lowered step, on rows."""

    lowering: Lowering
    rank: int
    """The rank of a row."""
    block: Block = field(default_factory=Block)
    captured: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Tensors captured from outside the loop."""

    @property
    def cost(self) -> int:
        """The cost per element of a row, in additions."""
        bodies = (op.body.block for op in self.block.ops if isinstance(op, linalg.ops.GenericOp))
        return sum(map(cost, bodies))

    def lowered(self, op: ScanOp) -> Sequence[SSAValue] | None:
        """Return the lowered results of a step; None if it is not elementwise."""
        types = [signless(v.type) for v in op.body.block.args]
        self.block = Block(arg_types=types)
        with self.lowering.inside(self.block):
            for was, now in zip(op.body.block.args, self.block.args, strict=True):
                self.lowering.values[was] = now
                now.name_hint = was.name_hint
            results = lower_block(self.lowering, op.body.block)
        if not all(self._is_elementwise(each) for each in self.block.ops):
            return None
        for value in results:
            self._capture(value)
        return results

    def has_one_size(
        self, carried: Sequence[SSAValue], xs: Sequence[SSAValue], results: Sequence[SSAValue]
    ) -> bool:
        """Whether the unknown sizes of all rows, and of all results, are proved to be equal."""
        classes, rows = SizeClasses(), self.block.args
        note_sizes(classes, self.block.ops)
        sizes = [n for op in self.block.ops if isinstance(op, tensor.EmptyOp) for n in op.operands]
        note_sizes(classes, _sizing_ops([*sizes, *carried, *xs, *self.captured]))
        for value, row in zip((*carried, *xs), rows, strict=True):
            for axis in range(self.rank):  # of a row, the last axes
                whole = tensor_type(value).get_num_dims() - self.rank + axis
                classes.unite(classes.axis(value, whole), classes.axis(row, axis))
        for row, result in zip(rows[: len(carried)], results, strict=False):
            classes.same_shape(row, result)  # a step does not change the sizes of a carried value
        return all(
            len({classes.find(classes.axis(value, axis)) for value in (*rows, *results)}) == 1
            for axis in range(self.rank)
        )

    def _is_elementwise(self, op: Operation) -> bool:
        match op:
            case tensor.EmptyOp() | tensor.DimOp():
                return True
            case arith.ConstantOp():  # a scalar; the elements of a row may differ
                return not isinstance(op.result.type, ShapedType)
            case linalg.ops.FillOp():
                return not isinstance(op.inputs[0].type, ShapedType)
            case linalg.ops.GenericOp():
                return self._is_plain(op)
            case _:
                return False

    def _is_plain(self, op: linalg.ops.GenericOp) -> bool:
        """Whether an op is elementwise, on a row or on a scalar."""
        rank = len(op.iterator_types)
        if rank not in (0, self.rank) or not all(is_parallel(op)):
            return False
        for value, map in zip(op.operands, op.indexing_maps, strict=True):
            if map.data != AffineMap.identity(rank) and map.data.results:
                return False
            if not isinstance(value.type, ShapedType):
                return False
            self._capture(value)
        body, n = op.body.block, len(op.inputs)
        if any(a.first_use is not None for a in body.args[n:]):
            return False
        for each in body.ops:
            if each.regions or isinstance(each, tensor.ExtractOp):
                return False
            outer = (v.owner for v in each.operands)
            if any((o if isinstance(o, Block) else o.parent) is not body for o in outer):
                return False
        return True

    def _capture(self, value: SSAValue) -> None:
        owner = value.owner
        if (owner if isinstance(owner, Block) else owner.parent) is not self.block:
            self.captured[value] = None

    def inlined(
        self,
        into: Block,
        arguments: Sequence[SSAValue],
        captured: Sequence[SSAValue],
        results: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """Append the scalar code of the step to a block; return the values of ``results``."""
        known: dict[SSAValue, SSAValue] = {
            **dict(zip(self.block.args, arguments, strict=True)),
            **dict(zip(self.captured, captured, strict=True)),
        }
        for op in self.block.ops:
            match op:
                case arith.ConstantOp():
                    known[op.result] = _copied(op, {}, into)[0]
                case linalg.ops.FillOp():
                    known[op.results[0]] = known.get(op.inputs[0], op.inputs[0])
                case linalg.ops.GenericOp():
                    self._inline(op, known, into)
                case _:
                    pass
        return [known[v] for v in results]

    def _inline(
        self, op: linalg.ops.GenericOp, known: dict[SSAValue, SSAValue], into: Block
    ) -> None:
        block = op.body.block
        scalars: dict[SSAValue, SSAValue] = {
            argument: known[value]
            for argument, value in zip(block.args, op.inputs, strict=False)
            if argument.first_use is not None
        }
        for each in block.ops:
            if isinstance(each, linalg.ops.YieldOp):
                for result, value in zip(op.results, each.operands, strict=True):
                    known[result] = scalars[value]
                    known[result].name_hint = known[result].name_hint or result.name_hint
                return
            copies = _copied(each, scalars, into)
            if isinstance(
                each, linalg.ops.IndexOp
            ):  # shift the index: the loop over steps precedes those of rows
                (index,) = copies
                assert isinstance(index.owner, linalg.ops.IndexOp)
                index.owner.properties["dim"] = linalg.ops.IndexOp(each.dim.value.data + 1).dim
            scalars.update(zip(each.results, copies, strict=True))

    def forget(self) -> None:
        """Erase the temporary ops."""
        for op in reversed(list(self.block.ops)):
            op.detach()
            op.erase()


def _copied(op: Operation, known: dict[SSAValue, SSAValue], into: Block) -> Sequence[SSAValue]:
    copy = op.clone(dict(known))
    into.add_op(copy)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name_hint = old.name_hint
    return copy.results
