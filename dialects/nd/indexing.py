"""Ops of `nd` that read or write at computed indices."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError
from stepwell.core.shapes import indexing as rules
from stepwell.dialects.nd.base import I1
from stepwell.dialects.nd.groups import INDEX, GroupedOp, like
from stepwell.dialects.nd.syntax import (
    AXES,
    SpelledOp,
    axes,
    axes_attr,
    element,
    lists,
    parse_fields,
    parse_types,
    print_fields,
    print_types,
    shape_of,
)
from stepwell.dialects.readings import Array, reference, shape
from stepwell.dialects.types import dtype


def _check_integers(values: Sequence[SSAValue], what: str) -> None:
    for value in values:
        kind = value.type.element_type if isinstance(value.type, TensorType) else value.type
        if not isinstance(kind, IntegerType) or kind.width.data == 1:
            raise VerifyException(f"{what} must be integers, got {value.type}")


def _check_scalars(starts: Sequence[SSAValue]) -> None:
    for start in starts:
        if isinstance(start.type, IndexType):
            continue
        if isinstance(start.type, TensorType) and start.type.get_shape():
            raise VerifyException(f"starts must be 0-d tensors, got {start.type}")
        _check_integers([start], "starts")


@irdl_op_definition
class GatherOp(GroupedOp):
    """y[a, i, b] = x[a, indices(i), b]: ``x`` read at ``indices`` along ``axes``.

    The indices' axes replace the first of ``axes``. With one index tensor this is NumPy's `take`;
    with one for every axis it reads single elements. An index below 0 reads the first element of
    its axis, an index beyond the end the last; the axis must have an element.

    * (C1) axes are axes of x, in ascending order, with one index tensor for each.
    * (C2) The index tensors have the same shape.
    * (C3) indices are integers, of any width, signed or not.
    * (C4) No axis read from has size 0, unless there are no indices.
    """

    name = "nd.gather"
    GROUP: ClassVar = "indices"
    x = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    y = result_def(TensorType)
    axes = prop_def(AXES)

    def __init__(self, x: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int]) -> None:
        result = rules.gather(shape_of(x), [shape_of(i) for i in indices], axes)
        super().__init__(
            operands=[x, list(indices)],
            result_types=[like(x, result)],
            properties={"axes": axes_attr(axes)},
        )

    def verify_(self) -> None:
        """Check C1 to C4."""
        super().verify_()
        _check_integers(self.indices, "indices")  # gather_c3


@shape(GatherOp)
def _gather_shape(op: GatherOp) -> Sequence[Attribute]:
    indices = [shape_of(i) for i in op.indices]
    return (like(op.x, rules.gather(shape_of(op.x), indices, axes(op.axes))),)


@reference(GatherOp)
def _gather_reference(op: GatherOp, operands: Sequence[Array]) -> Array:
    x, *indices = operands
    along = axes(op.axes)
    rank = indices[0].ndim
    places = [
        np.minimum(np.maximum(i, 0).astype(np.uint64), np.uint64(max(x.shape[a] - 1, 0)))
        for i, a in zip(indices, along, strict=True)
    ]
    if 0 in (x.shape[a] for a in along):
        kept = [n for a, n in enumerate(x.shape) if a not in along]
        y_shape = (*kept[: along[0]], *indices[0].shape, *kept[along[0] :])
        return np.zeros(y_shape, x.dtype)
    first = np.moveaxis(x, along, range(len(along)))
    read = first[tuple(p.astype(np.intp) for p in places)]
    return np.moveaxis(read, range(rank), range(along[0], along[0] + rank))


class ScatterOpBase(GroupedOp, ABC):
    """The base of the scatters: ``x`` with ``updates`` written at ``indices`` along ``axes``."""

    GROUP: ClassVar = "indices"
    x = operand_def(TensorType)
    updates = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    y = result_def(TensorType)
    axes = prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        updates: SSAValue,
        indices: Sequence[SSAValue],
        axes: Sequence[int],
    ) -> None:
        index_shapes = [shape_of(i) for i in indices]
        rules.scatter(shape_of(x), index_shapes, shape_of(updates), axes)
        super().__init__(
            operands=[x, updates, list(indices)],
            result_types=[x.type],
            properties={"axes": axes_attr(axes)},
        )

    def verify_(self) -> None:
        """Check C1 to C5."""
        super().verify_()
        _check_integers(self.indices, "indices")  # scatter_c3
        if element(self.updates) != element(self.x):  # scatter_c4
            raise VerifyException(
                f"updates must have elements {element(self.x)}, got {element(self.updates)}"
            )
        if isinstance(self, ScatterAddOp | ScatterMulOp) and element(self.x) == I1:  # scatter_c5
            raise VerifyException("sums and products of i1 are not defined; cast to integers first")


@irdl_op_definition
class ScatterOp(ScatterOpBase):
    """y = x, but y[a, indices(i), b] = updates[a, i, b].

    If several updates address the same element, the last in row-major order of ``updates`` wins.
    An update whose index is out of range is dropped.

    * (C1) axes are axes of x, in ascending order, with one index tensor for each, all of one shape.
    * (C2) updates has the shape of nd.gather's result.
    * (C3) indices are integers, of any width, signed or not.
    * (C4) updates has the element type of x.
    * (C5) x is not i1 if updates are added or multiplied.
    """

    name = "nd.scatter"


@irdl_op_definition
class ScatterAddOp(ScatterOpBase):
    """y = x, with updates[a, i, b] added to y[a, indices(i), b].

    They are added one by one, in row-major order of ``updates``. Constraints and dropped updates
    are those of nd.scatter.
    """

    name = "nd.scatter_add"


@irdl_op_definition
class ScatterMulOp(ScatterOpBase):
    """y = x, with y[a, indices(i), b] multiplied by updates[a, i, b]; else like nd.scatter_add."""

    name = "nd.scatter_mul"


@irdl_op_definition
class ScatterMinOp(ScatterOpBase):
    """y = x, with y[a, indices(i), b] at most updates[a, i, b]; otherwise like nd.scatter_add."""

    name = "nd.scatter_min"


@irdl_op_definition
class ScatterMaxOp(ScatterOpBase):
    """y = x, with y[a, indices(i), b] at least updates[a, i, b]; otherwise like nd.scatter_add."""

    name = "nd.scatter_max"


SCATTERS: dict[type[ScatterOpBase], np.ufunc | None] = {
    ScatterOp: None,
    ScatterAddOp: np.add,
    ScatterMulOp: np.multiply,
    ScatterMinOp: np.minimum,
    ScatterMaxOp: np.maximum,
}
"""The function by which each scatter combines the old element and the update."""


@shape(*SCATTERS)
def _scatter_shape(op: ScatterOpBase) -> Sequence[Attribute]:
    indices = [shape_of(i) for i in op.indices]
    rules.scatter(shape_of(op.x), indices, shape_of(op.updates), axes(op.axes))
    return (op.x.type,)


@reference(*SCATTERS)
def _scatter_reference(op: ScatterOpBase, operands: Sequence[Array]) -> Array:
    x, updates, *indices = operands
    along = axes(op.axes)
    kind, combine, rank = dtype(element(op.x)), SCATTERS[type(op)], indices[0].ndim
    y = np.array(x)
    first = np.moveaxis(y, along, range(len(along)))
    new = np.moveaxis(updates, range(along[0], along[0] + rank), range(rank))
    for place in np.ndindex(indices[0].shape):
        at = tuple(int(i[place]) for i in indices)
        if all(0 <= i < n for i, n in zip(at, first.shape, strict=False)):
            update = new[place]
            first[at] = update if combine is None else kind.round(combine(first[at], update))
    return y


@irdl_op_definition
class DynamicSliceOp(SpelledOp):
    """y = the slice of ``x`` of ``sizes`` elements along ``axes`` that begins at ``starts``.

    A start is clamped so that the slice lies inside x; x must be large enough. Sizes known only at
    run time are operands in a group with the others, ``sizes(4, %n)``; then there is no list of
    sizes, and y has a `?` for each of these operands.

    * (C1) axes are axes of x, in ascending order, with one start and one size for each.
    * (C2) No size is larger than its axis.
    * (C3) starts are 0-d integer tensors or index values.
    """

    name = "nd.dynamic_slice"
    x = operand_def(TensorType)
    places = var_operand_def()
    """The starts, then the sizes known only at run time."""
    y = result_def(TensorType)
    axes = prop_def(AXES)
    lengths = prop_def(AXES, prop_name="sizes")

    def __init__(
        self,
        x: SSAValue,
        starts: Sequence[SSAValue],
        axes: Sequence[int],
        sizes: Sequence[int | SSAValue],
    ) -> None:
        static = [n if isinstance(n, int) else DYNAMIC for n in sizes]
        dynamic = [n for n in sizes if not isinstance(n, int)]
        result = rules.dynamic_slice(shape_of(x), axes, static, len(starts))
        super().__init__(
            operands=[x, [*starts, *dynamic]],
            result_types=[like(x, result)],
            properties=lists(axes=axes, sizes=static),
        )

    @property
    def starts(self) -> Sequence[SSAValue]:
        """The start of the slice along each of the axes."""
        return self.places[: len(axes(self.axes))]

    @property
    def unknown_sizes(self) -> Sequence[SSAValue]:
        """The sizes known only at run time, in order."""
        return self.places[len(axes(self.axes)) :]

    def verify_(self) -> None:
        """Check C1 to C3."""
        super().verify_()
        _check_scalars(self.starts)  # dynamic_slice_c3
        if any(not isinstance(n.type, IndexType) for n in self.unknown_sizes):
            raise VerifyException("sizes that are not known must be index values")

    @classmethod
    def parse(cls, parser: Parser) -> DynamicSliceOp:
        """Parse ``%x, starts(%i), sizes(4, %n) {fields} : (T, S) -> R``."""
        at = parser.pos
        x = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("starts")
        starts = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        mixed: list[Any] = []
        if parser.parse_optional_punctuation(","):
            parser.parse_keyword("sizes")
            mixed = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN,
                lambda: (
                    parser.parse_optional_unresolved_operand()
                    or parser.parse_integer(allow_boolean=False)
                ),
            )
        fields = parse_fields(parser)
        if mixed:
            if "sizes" in fields:
                parser.raise_error("sizes are given twice", at)
            fields |= lists(sizes=[n if isinstance(n, int) else DYNAMIC for n in mixed])
        parser.parse_punctuation(":")
        inputs, outputs = parse_types(parser, 1 + len(starts))
        dynamic = [n for n in mixed if not isinstance(n, int)]
        types = [*inputs, *(INDEX for _ in dynamic)]
        known = set(cls.get_irdl_definition().properties)
        return cls.create(
            operands=parser.resolve_operands([x, *starts, *dynamic], types, at),
            result_types=outputs,
            properties={k: v for k, v in fields.items() if k in known},
            attributes={k: v for k, v in fields.items() if k not in known},
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.x)
        printer.print_string(", starts(")
        printer.print_list(self.starts, printer.print_ssa_value)
        printer.print_string(")")
        written = dict(self.properties)
        if self.unknown_sizes:
            del written["sizes"]
            dynamic = iter(self.unknown_sizes)
            printer.print_string(", sizes(")
            sizes = [next(dynamic) if n == DYNAMIC else n for n in axes(self.lengths)]
            printer.print_list(
                sizes,
                lambda n: (
                    printer.print_string(str(n))
                    if isinstance(n, int)
                    else printer.print_ssa_value(n)
                ),
            )
            printer.print_string(")")
        print_fields(printer, {**written, **self.attributes})
        printer.print_string(" : ")
        print_types(printer, [v.type for v in (self.x, *self.starts)], self.result_types)


@shape(DynamicSliceOp)
def _dynamic_slice_shape(op: DynamicSliceOp) -> Sequence[Attribute]:
    sizes = axes(op.lengths)
    starts = len(op.places) - sizes.count(DYNAMIC)  # dynamic_slice_c1
    return (like(op.x, rules.dynamic_slice(shape_of(op.x), axes(op.axes), sizes, starts)),)


def _window(x: Array, starts: Sequence[Array], along: Shape, sizes: Shape) -> tuple[slice, ...]:
    """Return the slice of ``x`` at the clamped starts."""
    place = [slice(None)] * x.ndim
    for start, axis, size in zip(starts, along, sizes, strict=True):
        begin = min(max(int(start), 0), max(x.shape[axis] - size, 0))
        place[axis] = slice(begin, begin + size)
    return tuple(place)


@reference(DynamicSliceOp)
def _dynamic_slice_reference(op: DynamicSliceOp, operands: Sequence[Array]) -> Array:
    x, *starts = operands
    dynamic = iter(starts[len(op.starts) :])
    sizes = tuple(int(next(dynamic)) if n == DYNAMIC else n for n in axes(op.lengths))
    return x[_window(x, starts[: len(op.starts)], axes(op.axes), sizes)]


@irdl_op_definition
class DynamicUpdateSliceOp(GroupedOp):
    """y = x, with ``update`` written at ``starts`` along ``axes``.

    A start is clamped so that the update lies inside x; x must be large enough.

    * (C1) axes are axes of x, in ascending order, with one start for each.
    * (C2) update has the rank and elements of x, and fits into it; other axes have the same size.
    * (C3) starts are 0-d integer tensors or index values.
    * (C4) strides, if present, are 1 or more, one for each of axes: the distance in x between
      neighbouring elements of the update.
    """

    name = "nd.dynamic_update_slice"
    GROUP: ClassVar = "starts"
    x = operand_def(TensorType)
    update = operand_def(TensorType)
    starts = var_operand_def()
    y = result_def(TensorType)
    axes = prop_def(AXES)
    strides = opt_prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        update: SSAValue,
        starts: Sequence[SSAValue],
        axes: Sequence[int],
        strides: Sequence[int] = (),
    ) -> None:
        rules.dynamic_update_slice(shape_of(x), shape_of(update), axes, len(starts), strides)
        optional = {"strides": axes_attr(strides)} if strides else {}
        super().__init__(
            operands=[x, update, list(starts)],
            result_types=[x.type],
            properties={"axes": axes_attr(axes), **optional},
        )

    @property
    def steps(self) -> Shape:
        """The stride of the update along each of ``axes``."""
        return axes(self.strides) if self.strides is not None else (1,) * len(axes(self.axes))

    def verify_(self) -> None:
        """Check C1 to C3."""
        super().verify_()
        _check_scalars(self.starts)  # dynamic_update_slice_c3


@shape(DynamicUpdateSliceOp)
def _dynamic_update_slice_shape(op: DynamicUpdateSliceOp) -> Sequence[Attribute]:
    x, update = shape_of(op.x), shape_of(op.update)
    rules.dynamic_update_slice(x, update, axes(op.axes), len(op.starts), op.steps)
    if element(op.x) != element(op.update):  # dynamic_update_slice_c2
        raise ShapeError(f"update must have elements {element(op.x)}, got {element(op.update)}")
    return (op.x.type,)


@reference(DynamicUpdateSliceOp)
def _dynamic_update_slice_reference(op: DynamicUpdateSliceOp, operands: Sequence[Array]) -> Array:
    x, update, *starts = operands
    along, steps = axes(op.axes), op.steps
    y = np.array(x)
    spans = tuple((update.shape[a] - 1) * s + 1 for a, s in zip(along, steps, strict=True))
    place = list(_window(x, starts, along, spans))
    for a, s in zip(along, steps, strict=True):
        place[a] = slice(place[a].start, place[a].stop, s) if update.shape[a] else slice(0, 0)
    y[tuple(place)] = update
    return y


OPS = (GatherOp, *SCATTERS, DynamicSliceOp, DynamicUpdateSliceOp)
