"""Split the feature loop of a grouped convolution into (group, feature).

Before:  kernel.func @k(%x: tensor<1x58x58x64xf32>, ...) attributes {kernel.shared = 4} {
           linalg.generic {maps: (n, i + r, j + s, (k floordiv 16) * 8 + c), (k, c, r, s), ...} }
After:   kernel.func @k(%x: tensor<1x58x58x8x8xf32>, ...) attributes {kernel.shared = 5} {
           linalg.generic {maps: (n, i + r, j + s, g, c), (g, f, c, r, s), (n, i, j, g, f)} ... }
         %xg = tensor.expand_shape %x
         %r = kernel.launch @k ins(%xg, ...)
         %y = tensor.collapse_shape %r

Afterwards each group is an ordinary convolution: the features of the group are the columns of a
register tile where they are contiguous, else its rows. A kernel with any schedule attribute, and
one whose features are groups themselves, is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.structured import (
    Index,
    array_of_maps,
    extents,
    indices,
    is_parallel,
    plain,
    quotients,
    shape,
)
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.kernel_signature import (
    Axes,
    collapsed,
    expanded,
    is_unscheduled,
    launches_of,
    put,
)
from stepwell.transforms.passes import Pass

Splits: TypeAlias = dict[int, tuple[int, int]]
"""The axes of a tensor that are split in two, and the sizes of both."""


@dataclass(frozen=True)
class SplitGroups(Pass):
    """Split the feature loop of a grouped convolution into (group, feature)."""

    name = "split-groups"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split the features of each grouped kernel, and adapt all its launches."""
        found: dict[str, _Rewriting] = {}
        for function in op.ops:
            if isinstance(function, kernel.FuncOp) and (rewriting := _read(function)):
                found[function.sym_name.data] = rewriting
        if not found:
            return
        launches = launches_of(op)
        for name, rewriting in found.items():
            rewriting.run()
            for launch in launches.get(name, []):
                rewriting.relaunch(launch)


@dataclass(frozen=True)
class Groups:
    """The feature loop of a result, the groups, and the features per group of result and image."""

    loop: int
    number: int
    features: int
    read: int

    def in_image(self, expr: AffineExpr) -> AffineExpr | None:
        """Return the index of ``expr`` within a group of the image; None where it is not one."""
        match expr:
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=first, rhs=AffineDimExpr()):
                return expr.rhs if self._is_first(first) else None
            case _:
                return AffineConstantExpr(0) if self.read == 1 and self._is_group(expr) else None

    def _is_first(self, expr: AffineExpr) -> bool:
        """Whether ``expr`` is the first feature of a group."""
        match expr:
            case AffineBinaryOpExpr(
                kind=AffineBinaryOpKind.Mul, lhs=group, rhs=AffineConstantExpr(value=by)
            ):
                return by == self.read and self._is_group(group)
            case _:
                return False

    def _is_group(self, expr: AffineExpr) -> bool:
        return expr == AffineDimExpr(self.loop) // self.features


def _read(function: kernel.FuncOp) -> _Rewriting | None:
    """Return the rewriting of a kernel, None where it has no groups or is scheduled."""
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    if not any(_divides(index) for op in ops for index in indices(op)):
        return None
    if not is_unscheduled(function):
        return None
    sums = [op for op in ops if not all(is_parallel(op))]
    if len(sums) != 1:
        return None
    shared = choices.number(function, "kernel.shared")
    for number, index in enumerate(indices(sums[0])[: len(sums[0].inputs)]):
        groups = _groups(index, sums[0], shared)
        if groups is not None:
            rewriting = _Rewriting(function, sums[0], number, groups, shared)
            return rewriting if rewriting.find(ops) else None
    return None


def _divides(index: Index) -> bool:
    return any(True for expr in index for _ in quotients(expr))


def _groups(index: Index, op: linalg.GenericOp, shared: int) -> Groups | None:
    """Return the groups by which an image is read."""
    sizes = extents(op)
    for expr in index:
        for loop, features in quotients(expr):
            if loop < shared and sizes[loop] % features == 0 < sizes[loop]:
                others = [d for d in expr.used_dims() if d != loop]
                read = sizes[others[0]] if others else 1
                groups = Groups(loop, sizes[loop] // features, features, read)
                return groups if read > 0 and groups.in_image(expr) is not None else None
    return None


@dataclass
class _Rewriting:
    """Rewrites one kernel, and its launches."""

    function: kernel.FuncOp
    sum: linalg.GenericOp
    image: int
    groups: Groups
    shared: int
    alike: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For each tensor, the first tensor of its chain of in-place updates."""
    splits: dict[SSAValue, Splits] = field(default_factory=dict[SSAValue, Splits])
    """For each such first tensor, the axes that are split."""
    arguments: list[Splits] = field(default_factory=list[Splits])

    def find(self, ops: Sequence[linalg.GenericOp]) -> bool:
        """Find the axes to split; return whether all tensors agree."""
        for op in self.function.body.block.ops:
            if isinstance(op, linalg.GenericOp | linalg.FillOp):
                for result, into in zip(op.results, op.outputs, strict=True):
                    self.alike[result] = self.alike.get(into, into)
        for op in ops:
            for value, index in zip(op.operands, indices(op), strict=True):
                splits = self._splits(index, shape(value))
                first = self.alike.get(value, value)
                if splits is None or self.splits.setdefault(first, splits) != splits:
                    return False
            if any(
                isinstance(each, linalg.IndexOp) and each.dim.value.data == self.groups.loop
                for each in op.body.walk()
            ):
                return False
        self.arguments = [self.splits.get(a, {}) for a in self.function.body.block.args]
        return True

    def _splits(self, index: Index, sizes: Sequence[int]) -> Splits | None:
        """Return the axes to split; None where the loop is used in another way."""
        found: Splits = {}
        groups = self.groups
        for axis, expr in enumerate(index):
            if groups.loop not in expr.used_dims():
                continue
            if plain(expr) == groups.loop:
                found[axis] = groups.number, groups.features
            elif groups.in_image(expr) is not None:
                found[axis] = groups.number, groups.read
            else:
                return None
            if sizes[axis] != found[axis][0] * found[axis][1]:
                return None
        return found

    def run(self) -> None:
        """Rewrite the kernel."""
        block = self.function.body.block
        order = self._order()
        values = [*block.args, *(r for op in block.ops for r in op.results)]
        for value in values:
            if splits := self.splits.get(self.alike.get(value, value)):
                value._type = _split(value.type, splits)  # pyright: ignore[reportPrivateUsage]
        for op in block.ops:
            if isinstance(op, linalg.GenericOp):
                self._loops(op, order)
        returned = block.last_op
        assert returned is not None
        results = [v.type for v in returned.operands]
        kind = FunctionType.from_lists([a.type for a in block.args], results)
        self.function.properties["function_type"] = kind
        self.function.attributes["kernel.shared"] = choices.spelled(self.shared + 1)

    def _order(self) -> list[int | None]:
        """Return the new order of the shared loops, None standing for the loop over groups.

        Contiguous features stay last, and all pixels of an image read a group's filters; otherwise
        features are the rows of a tile, which all read the same elements.
        """
        loop, last = self.groups.loop, self.shared - 1
        if loop == last:
            row = self._row()
            others = [k for k in range(last) if k != row]
            return [None, *others, *([] if row is None else [row]), loop]
        before = [None if k == loop else k for k in range(last)]
        return [*before, loop, last]

    def _row(self) -> int | None:
        """Return the loop over the features of the image's group, if it is a loop over results.

        It is one in gradients of filters: the rows of a tile then read contiguous elements, and are
        more than a short window has.
        """
        image, sizes = indices(self.sum)[self.image], extents(self.sum)
        inner = [e for expr in image if (e := self.groups.in_image(expr)) is not None]
        own = [d for e in inner for d in e.used_dims() if d < self.shared - 1]
        return own[0] if own and sizes[own[0]] > sizes[self.shared - 2] else None

    def _loops(self, op: linalg.GenericOp, order: Sequence[int | None]) -> None:
        """Rewrite the maps of ``op``, its own loops in the order of the image's axes in memory."""
        own = list(range(self.shared, len(op.iterator_types)))
        if op is self.sum:
            image = indices(op)[self.image]
            axes = {d: axis for axis, expr in enumerate(image) for d in expr.used_dims()}
            own.sort(key=lambda d: axes.get(d, -1))
        loops = [*order, *own]
        new = {d: AffineDimExpr(k) for k, d in enumerate(loops) if d is not None}
        group = AffineDimExpr(loops.index(None))
        dims: list[AffineExpr] = [new[d] for d in range(len(op.iterator_types))]
        where: list[Index] = []
        for index in indices(op):
            exprs: list[AffineExpr] = []
            for expr in index:
                inner = self.groups.in_image(expr)
                if plain(expr) == self.groups.loop or inner is not None:
                    exprs.append(group)
                exprs.append((inner or expr).replace_dims_and_symbols(dims, ()))
            where.append(tuple(exprs))
        kinds = op.iterator_types.data
        parallel = kinds[self.groups.loop]
        op.properties["indexing_maps"] = array_of_maps(len(loops), where)
        op.properties["iterator_types"] = ArrayAttr(
            parallel if d is None else kinds[d] for d in loops
        )
        for inner in op.body.walk():
            if isinstance(inner, linalg.IndexOp):
                place = loops.index(inner.dim.value.data)
                inner.properties["dim"] = IntegerAttr(place, i64)

    def relaunch(self, launch: kernel.LaunchOp) -> None:
        """Launch the kernel on the same tensors, with more axes."""
        given = [
            _expand(launch, value, splits)
            for value, splits in zip(launch.operands, self.arguments, strict=True)
        ]
        count = len(launch.inputs)
        new = kernel.LaunchOp(launch.callee.string_value(), given[:count], given[count:])
        new.attributes.update(launch.attributes)
        put(launch, new)
        results = zip(launch.results_, new.results_, self.arguments[count:], strict=True)
        for old, now, splits in results:
            now.name_hint = old.name_hint
            assert isinstance(old.type, TensorType)
            axes = _axes(len(shape(old)), splits)
            shown = collapsed(launch, now, axes, old.type) if splits else now
            old.replace_all_uses_with(shown)
        launch.detach()
        launch.erase()


def _split(type: Attribute, splits: Splits) -> TensorType[Attribute]:
    assert isinstance(type, TensorType)
    sizes = [n for k, size in enumerate(type.get_shape()) for n in splits.get(k, (size,))]
    return TensorType(type.get_element_type(), sizes)


def _expand(launch: kernel.LaunchOp, value: SSAValue, splits: Splits) -> SSAValue:
    """Return ``value`` with axes split; an empty destination is created so."""
    if not splits:
        return value
    kind = _split(value.type, splits)
    if isinstance(value.owner, tensor.EmptyOp):
        empty = tensor.EmptyOp(value.owner.dynamic_sizes, kind)
        put(launch, empty)
        return empty.tensor
    return expanded(launch, value, _axes(len(shape(value)), splits), kind, value)


def _axes(rank: int, splits: Splits) -> Axes:
    """Return the axes that each axis becomes."""
    axes: list[tuple[int, ...]] = []
    for axis in range(rank):
        first = axes[-1][-1] + 1 if axes else 0
        axes.append((first, first + 1) if axis in splits else (first,))
    return tuple(axes)
