"""Bounds conditions of ops below `nd` on the tensor floors: no size or index leaves its tensor.

The conditions of `nd` are checked before it is lowered; these serve modules that begin on a lower
floor. A condition on sizes of arguments becomes a `Check` of the call; for an index computed from
data, the module itself must keep the index within its tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.traits import SymbolTable

from stepwell.core.dtypes import DTYPES
from stepwell.core.formulas import Formula, product
from stepwell.core.host_schedule import Tree
from stepwell.dialects import kernel
from stepwell.dialects.size_conditions import Shape, named
from stepwell.dialects.sizing import Sizing
from stepwell.dialects.types import dtype
from stepwell.dialects.upstream.ranges import ONE, ZERO, Range, Ranges, of_expression
from stepwell.dialects.upstream.verifiers.slices import rank_reduced

HELP = "hold it within by arith.maxsi with 0 and arith.minsi with the last place, or say it in nd"

Rule = Callable[[Any, "Accesses"], Sequence[Any]]


class Accesses(Sizing):
    """A walk of a function of structured ops that collects the conditions on sizes and indices."""

    def __init__(self, function: func.FuncOp) -> None:
        super().__init__(function)
        self.ranges = Ranges(self._numbers)
        self._times: list[Formula] = []
        """The trip counts of the enclosing loops."""

    def visit(self, op: Operation) -> None:
        """Compute the sizes of the results of ``op`` and collect its conditions."""
        rule = _RULES.get(type(op))
        if rule is None:
            if op.name.startswith(("arith.", "math.")) and not _has_unknown(op):
                super().visit(op) if type(op) in _EXACT else None
                return
            super().visit(op)
            return
        with self.speaking_of(op):
            self._define(op, rule(op, self))

    @contextmanager
    def speaking_of(self, op: Operation) -> Any:
        """Attribute messages and locations to ``op``."""
        outer, self.source = self.source, op
        try:
            yield
        finally:
            self.source = outer

    def _define(self, op: Operation, results: Sequence[Any]) -> None:
        found = list(results) or [None] * len(op.results)
        for result, each in zip(op.results, found, strict=True):
            if isinstance(each, Formula):
                self._numbers[result] = self._bounded(each)
            elif isinstance(result.type, TensorType) and each is not None:
                self._shapes[result] = self._result_shape(result, each)

    def not_too_large(self, result: SSAValue, shape: Shape) -> None:
        """Require it of elements whose bytes are known."""
        assert isinstance(result.type, TensorType)
        try:
            known = dtype(result.type.element_type)
        except KeyError:
            return
        assert known.name in DTYPES
        super().not_too_large(result, shape)

    # -- indices

    @contextmanager
    def repeated(self, times: Sequence[Formula]) -> Generator[None]:
        """Treat the body of loops with trip counts ``times``: if one is 0, it does not run."""
        self._times += times
        try:
            yield
        finally:
            del self._times[len(self._times) - len(times) :]

    def lies_within(self, low: Formula, high: Formula, size: Formula, words: Sequence[Any]) -> None:
        """Require indices from ``low`` to ``high`` to be in bounds of ``size``, if they run."""
        for difference in (low, size - high - ONE):
            least, most = difference.bounds()
            if least is not None and least >= 0:
                continue
            runs = product(self._times)
            sure = (runs.bounds()[0] or 0) > 0
            condition: Tree = 0 if most is not None and most < 0 else [">=", difference.tree(), 0]
            if not sure:
                condition = ["|", ["<=", runs.tree(), 0], condition]
            self.require(condition, words)

    def place(self, x: SSAValue, axis: int, index: SSAValue) -> None:
        """Require an index to be in bounds along an axis of ``x``."""
        size = self.shape(x)[axis]
        low, high = self.bounds_of(index, f"axis {axis} of {named(x)}")
        words = (
            f"axis {axis} of {named(x)} has size ",
            size,
            ", but is read from ",
            low,
            " to ",
            high,
        )
        self.lies_within(low, high, size, words)

    def bounds_of(self, index: SSAValue, what: str) -> tuple[Formula, Formula]:
        """Return the range of an index; raise an error if it is unknown."""
        low, high = self.ranges.of(index)
        if low is None or high is None or self.ranges.is_any(index):
            self.fail(f"nothing tells that {named(index)} lies within {what}", HELP)
        return low, high


def _has_unknown(op: Operation) -> bool:
    return any(
        isinstance(v.type, TensorType) and DYNAMIC_INDEX in v.type.get_shape() for v in op.results
    )


_EXACT = frozenset(
    {
        *(arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp),
        *(arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.MinSIOp, arith.MaxSIOp),
        *(arith.DivUIOp, arith.RemUIOp, arith.MinUIOp, arith.MaxUIOp, arith.AndIOp, arith.OrIOp),
        *(arith.XOrIOp, arith.CmpiOp, arith.SelectOp, arith.IndexCastOp, arith.ExtSIOp),
        arith.TruncIOp,
    }
)
"""Ops of arith whose results `Sizing` can express as formulas."""

_RULES: dict[type[Operation], Rule] = {}


def _rule(*kinds: type[Operation]) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def _mixed(static: Any, dynamic: Sequence[SSAValue]) -> list[int | SSAValue]:
    rest: Iterator[SSAValue] = iter(dynamic)
    return [next(rest) if n == DYNAMIC_INDEX else n for n in static.get_values()]


def _size(s: Accesses, n: int | SSAValue) -> Formula:
    return Formula.of(n) if isinstance(n, int) else s.number(n)


def _range(s: Accesses, n: int | SSAValue, what: str) -> tuple[Formula, Formula]:
    return (Formula.of(n), Formula.of(n)) if isinstance(n, int) else s.bounds_of(n, what)


# -- tensor


@_rule(tensor.EmptyOp)
def _empty(op: tensor.EmptyOp, s: Accesses) -> Sequence[Any]:
    return [_filled(op.tensor.type, op.dynamic_sizes, s)]


@_rule(tensor.SplatOp)
def _splat(op: tensor.SplatOp, s: Accesses) -> Sequence[Any]:
    return [_filled(op.result.type, op.operands[1:], s)]


def _filled(type: Any, sizes: Sequence[SSAValue], s: Accesses) -> Shape:
    rest = iter(sizes)
    shape = type.get_shape()
    return tuple(s.number(next(rest)) if n == DYNAMIC_INDEX else Formula.of(n) for n in shape)


@_rule(tensor.FromElementsOp)
def _from_elements(op: tensor.FromElementsOp, s: Accesses) -> Sequence[Any]:
    return [tuple(map(Formula.of, op.result.type.get_shape()))]


@_rule(tensor.DimOp)
def _dim(op: tensor.DimOp, s: Accesses) -> Sequence[Any]:
    axis = s.number(op.index).number
    if axis is None:
        s.fail("the axis of tensor.dim must be a constant")
    return [s.shape(op.source)[axis]]


@_rule(tensor.CastOp)
def _cast(op: tensor.CastOp, s: Accesses) -> Sequence[Any]:
    if not isinstance(op.source.type, TensorType):
        s.fail(f"{op.source.type} has no rank")
    return [s.shape(op.source)]


@_rule(tensor.ExtractOp)
def _extract(op: tensor.ExtractOp, s: Accesses) -> Sequence[Any]:
    for axis, index in enumerate(op.indices):
        s.place(op.tensor, axis, index)
    return ()


@_rule(tensor.InsertOp)
def _insert(op: tensor.InsertOp, s: Accesses) -> Sequence[Any]:
    for axis, index in enumerate(op.indices):
        s.place(op.dest, axis, index)
    return [s.shape(op.dest)]


def _part(op: Any, x: SSAValue, s: Accesses) -> Shape:
    """Require a slice to lie within ``x``; return its sizes."""
    whole = s.shape(x)
    offsets, sizes, strides = (
        _mixed(static, dynamic)
        for static, dynamic in (
            (op.static_offsets, op.offsets),
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        )
    )
    found: list[Formula] = []
    for axis, (length, n, step) in enumerate(zip(whole, sizes, strides, strict=True)):
        size, stride = _size(s, n), _size(s, step)
        found.append(size)
        what = f"axis {axis} of {named(x)}"
        low, high = _range(s, offsets[axis], what)
        s.at_least(size, ZERO, (f"{what} is cut to size ", size))
        s.at_least(stride, ONE, (f"{what} is read in steps of ", stride))
        last = high + (size - ONE) * stride
        words = (f"{what} has size ", length, ", but is read from ", low, " to ", last)
        with s.repeated([size]):
            s.lies_within(low, last, length, words)
    return tuple(found)


@_rule(tensor.ExtractSliceOp)
def _extract_slice(op: tensor.ExtractSliceOp, s: Accesses) -> Sequence[Any]:
    sizes = _part(op, op.source, s)
    return [[sizes[axis] for axis in _kept_axes(op, op.result)]]


@_rule(tensor.InsertSliceOp)
def _insert_slice(op: tensor.InsertSliceOp, s: Accesses) -> Sequence[Any]:
    sizes, have = _part(op, op.dest, s), s.shape(op.source)
    for number, axis in enumerate(_kept_axes(op, op.source)):
        words = (
            f"axis {number} of {named(op.source)} has size ",
            have[number],
            ", but is put into ",
            sizes[axis],
        )
        s.equal(have[number], sizes[axis], words)
    return [s.shape(op.dest)]


def _kept_axes(op: Any, part: SSAValue) -> Sequence[int]:
    """Return the axes of a slice that its type keeps."""
    assert isinstance(part.type, TensorType)
    kept = rank_reduced(op.static_sizes.get_values(), part.type.get_shape())
    assert kept is not None, "the verifier has seen to it"
    return kept


@_rule(tensor.CollapseShapeOp)
def _collapse(op: tensor.CollapseShapeOp, s: Accesses) -> Sequence[Any]:
    sizes = s.shape(op.src)
    return [
        [
            product([sizes[axis.value.data] for axis in group.data])
            for group in op.reassociation.data
        ]
    ]


@_rule(tensor.ExpandShapeOp)
def _expand(op: tensor.ExpandShapeOp, s: Accesses) -> Sequence[Any]:
    have = s.shape(op.src)
    sizes = [_size(s, n) for n in _mixed(op.static_output_shape, op.dynamic_output_shape)]
    for axis, group in enumerate(op.reassociation.data):
        whole = product([sizes[each.value.data] for each in group.data])
        words = (
            f"axis {axis} of {named(op.src)} has size ",
            have[axis],
            ", but is cut into ",
            whole,
        )
        s.equal(have[axis], whole, words)
    return [sizes]


@_rule(tensor.ConcatOp)
def _concat(op: tensor.ConcatOp, s: Accesses) -> Sequence[Any]:
    along = op.dim.value.data
    first, *others = op.inputs
    sizes = list(s.shape(first))
    for other in others:
        for axis, n in enumerate(s.shape(other)):
            if axis == along:
                sizes[axis] = sizes[axis] + n
            else:
                s.same_size(s.shape(first)[axis], n, first, axis, other, axis)
    return [sizes]


@_rule(tensor.PadOp)
def _pad(op: tensor.PadOp, s: Accesses) -> Sequence[Any]:
    low, high = _mixed(op.static_low, op.low), _mixed(op.static_high, op.high)
    sizes: list[Formula] = []
    for axis, n in enumerate(s.shape(op.source)):
        before, after = _size(s, low[axis]), _size(s, high[axis])
        for width in (before, after):
            s.at_least(width, ZERO, (f"axis {axis} of {named(op.source)} is padded by ", width))
        sizes.append(before + n + after)
    s.ranges.extents[op] = sizes
    s.block(op.region.block)
    return [sizes]


# -- linalg


def _structured(op: Any, s: Accesses) -> Sequence[Any]:
    maps = [each.data for each in op.get_indexing_maps()]
    operands = [(v, m) for v, m in zip(op.operands, maps, strict=True) if m.results]
    extents = _extents(operands, maps[0].num_dims, s)
    s.ranges.extents[op] = extents
    with s.repeated(extents):
        for value, map in operands:
            for axis, (expression, size) in enumerate(
                zip(map.results, s.shape(value), strict=True)
            ):
                if not isinstance(expression, AffineDimExpr):
                    low, high = of_expression(expression, extents)
                    _check_map(s, value, axis, size, (low, high))
        for region in op.regions:
            s.block(region.block)
    return [s.shape(v) for v in op.outputs if isinstance(v.type, TensorType)]


def _check_map(s: Accesses, x: SSAValue, axis: int, size: Formula, range: Range) -> None:
    low, high = range
    what = f"axis {axis} of {named(x)}"
    if low is None or high is None:
        s.fail(f"nothing tells where the map of {named(x)} reads along axis {axis}")
    words = (f"{what} has size ", size, ", but is read from ", low, " to ", high)
    s.lies_within(low, high, size, words)


def _extents(operands: Sequence[Any], loops: int, s: Accesses) -> list[Formula]:
    """Return the loops' trip counts; require every axis that they index to have that size."""
    found: dict[int, tuple[Formula, SSAValue, int]] = {}
    for value, map in operands:
        for axis, expression in enumerate(map.results):
            if not isinstance(expression, AffineDimExpr):
                continue
            size, loop = s.shape(value)[axis], expression.position
            if loop in found:
                other, x, at = found[loop]
                s.same_size(other, size, x, at, value, axis)
            else:
                found[loop] = size, value, axis
    if missing := [k for k in range(loops) if k not in found]:
        s.fail(f"no operand tells the size of loop {missing[0]}")
    return [found[k][0] for k in range(loops)]


_rule(
    *(linalg.GenericOp, linalg.FillOp, linalg.AddOp, linalg.SubOp, linalg.MulOp, linalg.MaxOp),
    *(linalg.MinOp, linalg.ExpOp, linalg.LogOp, linalg.SqrtOp, linalg.CopyOp, linalg.MatmulOp),
    linalg.TransposeOp,
)(_structured)


@_rule(linalg.IndexOp)
def _index(op: linalg.IndexOp, s: Accesses) -> Sequence[Any]:
    return ()


# -- scf


def _carried(s: Accesses, before: Sequence[SSAValue], inside: Sequence[SSAValue]) -> None:
    """Set the sizes of loop-carried block arguments to those of the initial values."""
    for value, argument in zip(before, inside, strict=True):
        if isinstance(value.type, TensorType):
            s._shapes[argument] = s.shape(value)  # pyright: ignore[reportPrivateUsage]


def _same_sizes(s: Accesses, before: Sequence[SSAValue], after: Sequence[SSAValue]) -> list[Any]:
    """Require loop-carried values to keep their sizes; return these."""
    for old, new in zip(before, after, strict=True):
        if isinstance(old.type, TensorType):
            s.same_shapes(old, new)
    return [s.shape(v) if isinstance(v.type, TensorType) else None for v in before]


@_rule(scf.ForOp)
def _for(op: scf.ForOp, s: Accesses) -> Sequence[Any]:
    _carried(s, op.iter_args, op.body.block.args[1:])
    low, (_, high) = s.ranges.of(op.lb)[0], s.ranges.of(op.ub)
    times = [high - low] if low is not None and high is not None else []
    with s.repeated(times):
        s.block(op.body.block)
    return _same_sizes(s, op.iter_args, _yielded(op.body))


def _yielded(region: Any) -> Sequence[SSAValue]:
    last = region.block.last_op
    return last.operands if isinstance(last, scf.YieldOp) else ()


@_rule(scf.IfOp)
def _if(op: scf.IfOp, s: Accesses) -> Sequence[Any]:
    with s.ranges.where(op.cond):
        s.block(op.true_region.block)
    if not op.false_region.blocks:
        return ()
    s.block(op.false_region.block)
    return _same_sizes(s, _yielded(op.true_region), _yielded(op.false_region))


@_rule(scf.WhileOp)
def _while(op: scf.WhileOp, s: Accesses) -> Sequence[Any]:
    before, after = op.before_region.block, op.after_region.block
    _carried(s, op.arguments, before.args)
    s.block(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    _carried(s, condition.args, after.args)
    s.block(after)
    _same_sizes(s, op.arguments, _yielded(op.after_region))
    return [s.shape(v) if isinstance(v.type, TensorType) else None for v in condition.args]


# -- kernels


@_rule(kernel.LaunchOp)
def _launch(op: kernel.LaunchOp, s: Accesses) -> Sequence[Any]:
    callee = SymbolTable.lookup_symbol(op, op.callee)
    if not isinstance(callee, kernel.FuncOp):
        s.fail(f"there is no kernel {op.callee}")
    body = callee.body.block
    for value, argument in zip(op.operands, body.args, strict=True):
        s._bind(value, argument)  # pyright: ignore[reportPrivateUsage]
    s.block(body)
    last = body.last_op
    assert last is not None
    given = [s.shape(v) for v in last.operands]
    for target, found, wanted in zip(op.outputs, last.operands, given, strict=True):
        for axis, (a, b) in enumerate(zip(s.shape(target), wanted, strict=True)):
            s.same_size(a, b, target, axis, found, axis)
    return given
