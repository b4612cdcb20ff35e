"""Ops of `nd` that reshape a tensor or move its elements, without arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, TensorType
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
from stepwell.core.shapes import shape as rules
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.groups import GroupedOp, like
from stepwell.dialects.nd.syntax import (
    AXES,
    SpelledOp,
    axes,
    axes_attr,
    element,
    int_attr,
    lists,
    parse_fields,
    parse_types,
    print_fields,
    print_types,
    shape_of,
)
from stepwell.dialects.readings import Array, reference, shape


def _check_sizes(op: BroadcastOp | ReshapeOp, unknown: Shape) -> None:
    if len(op.sizes) != len(unknown):  # broadcast_c3, reshape_c2
        raise VerifyException(
            f"sizes must tell axes {list(unknown)} of {op.y.type}, got {len(op.sizes)} of them"
        )


def _check_element(op: BroadcastOp | ReshapeOp) -> None:
    if element(op.x) != element(op.y):  # broadcast_c4, reshape_c3
        raise VerifyException(f"result must have elements {element(op.x)}, got {element(op.y)}")


@irdl_op_definition
class BroadcastOp(GroupedOp):
    """y[j] = x[i], where i[k] = j[dims[k]], or 0 where ``x`` has size 1: repeat along new axes.

    * (C1) dims names one axis of y for each axis of x, in ascending order.
    * (C2) Each axis of x has size 1, or the size of its axis of y.
    * (C3) sizes holds the size of each `?` of y that does not come from a `?` of x, in order.
    * (C4) y has the element type of x.
    """

    name = "nd.broadcast"
    x = operand_def(TensorType)
    sizes = var_operand_def(IndexType)
    y = result_def(TensorType)
    dims = prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        dims: Sequence[int],
        result: Sequence[int],
        sizes: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(
            operands=[x, list(sizes)],
            result_types=[like(x, tuple(result))],
            properties={"dims": axes_attr(dims)},
        )

    def verify_(self) -> None:
        """Check C1 to C4."""
        super().verify_()
        x, y = shape_of(self.x), shape_of(self.y)
        _check_sizes(self, rules.broadcast_unknown(x, axes(self.dims), y))
        _check_element(self)


@shape(BroadcastOp)
def _broadcast_shape(op: BroadcastOp) -> Sequence[Attribute]:
    rules.broadcast(shape_of(op.x), axes(op.dims), shape_of(op.y))
    return (op.y.type,)


@reference(BroadcastOp)
def _broadcast_reference(op: BroadcastOp, operands: Sequence[Array]) -> Array:
    x, *sizes = operands
    dims, shape = axes(op.dims), list(shape_of(op.y))
    for axis, to in enumerate(dims):
        if shape[to] == DYNAMIC and shape_of(op.x)[axis] == DYNAMIC:
            shape[to] = x.shape[axis]
    dynamic = iter(sizes)
    shape = [int(next(dynamic)) if n == DYNAMIC else n for n in shape]
    aligned = [1] * len(shape)
    for axis, to in enumerate(dims):
        aligned[to] = x.shape[axis]
    return np.broadcast_to(x.reshape(aligned), shape)


@irdl_op_definition
class ReshapeOp(GroupedOp):
    """y = the elements of ``x`` in row-major order, in another shape.

    The product of sizes known only at run time must give the number of elements of ``x``.

    * (C1) y has as many elements as x, as far as that is known.
    * (C2) sizes holds the size of each `?` of y, in order; none if x and y have one `?` each and
      equal known sizes.
    * (C3) y has the element type of x.
    """

    name = "nd.reshape"
    x = operand_def(TensorType)
    sizes = var_operand_def(IndexType)
    y = result_def(TensorType)

    def __init__(self, x: SSAValue, result: Sequence[int], sizes: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[x, list(sizes)], result_types=[like(x, tuple(result))])

    def verify_(self) -> None:
        """Check C1 to C3."""
        super().verify_()
        _check_sizes(self, rules.reshape_unknown(shape_of(self.x), shape_of(self.y)))
        _check_element(self)


@shape(ReshapeOp)
def _reshape_shape(op: ReshapeOp) -> Sequence[Attribute]:
    rules.reshape(shape_of(op.x), shape_of(op.y))
    return (op.y.type,)


@reference(ReshapeOp)
def _reshape_reference(op: ReshapeOp, operands: Sequence[Array]) -> Array:
    x, *sizes = operands
    dynamic = iter(sizes)
    target = [int(next(dynamic, -1)) if n == DYNAMIC else n for n in shape_of(op.y)]
    return x.reshape(target)


@irdl_op_definition
class TransposeOp(SpelledOp):
    """y[j] = x[i], where i[permutation[k]] = j[k]: axis k of ``y`` is axis permutation[k] of ``x``.

    * (C1) permutation names each axis of x once.
    """

    name = "nd.transpose"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    permutation = prop_def(AXES)

    def __init__(self, x: SSAValue, permutation: Sequence[int]) -> None:
        result = rules.transpose(shape_of(x), permutation)
        super().__init__(
            operands=[x],
            result_types=[like(x, result)],
            properties={"permutation": axes_attr(permutation)},
        )


@shape(TransposeOp)
def _transpose_shape(op: TransposeOp) -> Sequence[Attribute]:
    return (like(op.x, rules.transpose(shape_of(op.x), axes(op.permutation))),)


@reference(TransposeOp)
def _transpose_reference(op: TransposeOp, operands: Sequence[Array]) -> Array:
    return operands[0].transpose(axes(op.permutation))


@irdl_op_definition
class SliceOp(SpelledOp):
    """y = x[starts:limits:strides] with Python's rules: negative from the end, clamped.

    The syntax is Python's, ``nd.slice %x[2:, :-1, ::2]``; a missing limit is the axis's end.

    * (C1) There is one range for each axis of x.
    * (C2) strides are positive.
    """

    name = "nd.slice"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    starts = prop_def(AXES)
    limits = prop_def(AXES)
    strides = prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        starts: Sequence[int],
        limits: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> None:
        strides = [1] * len(starts) if strides is None else strides
        super().__init__(
            operands=[x],
            result_types=[like(x, rules.slice_(shape_of(x), starts, limits, strides))],
            properties=lists(starts=starts, limits=limits, strides=strides),
        )

    @property
    def ranges(self) -> list[tuple[int, int, int]]:
        """Start, limit and stride of each axis; a missing limit is `END`."""
        return list(zip(axes(self.starts), axes(self.limits), axes(self.strides), strict=True))

    @classmethod
    def parse(cls, parser: Parser) -> SliceOp:
        """Parse ``%x[2:, :-1, ::2] {fields} : T -> R``."""
        x = parser.parse_unresolved_operand()
        ranges = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: _parse_range(parser)
        )
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        (input_,), (output,) = parse_types(parser, 1)
        starts, limits, strides = zip(*ranges, strict=True) if ranges else ((), (), ())
        return cls.create(
            operands=[parser.resolve_operand(x, input_)],
            result_types=[output],
            properties=lists(starts=starts, limits=limits, strides=strides),
            attributes=fields,
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.x)
        printer.print_string(f"[{', '.join(_spell_range(*r) for r in self.ranges)}]")
        print_fields(printer, self.attributes)
        printer.print_string(" : ")
        print_types(printer, self.operand_types, self.result_types)


def _parse_bound(parser: Parser) -> int | None:
    at = parser.pos
    if parser.parse_optional_unresolved_operand() is not None:
        parser.raise_error(
            "bounds of nd.slice are numbers; nd.dynamic_slice takes starts and sizes that a call "
            "tells: starts(%i), sizes(%n)",
            at,
            parser.pos,
        )
    return parser.parse_optional_integer(allow_boolean=False)


def _parse_range(parser: Parser) -> tuple[int, int, int]:
    start = _parse_bound(parser)
    parser.parse_punctuation(":")
    limit = _parse_bound(parser)
    stride = None
    if parser.parse_optional_punctuation(":"):
        stride = parser.parse_integer(allow_boolean=False)
    return start or 0, END if limit is None else limit, 1 if stride is None else stride


def _spell_range(start: int, limit: int, stride: int) -> str:
    text = f"{start or ''}:{'' if limit == END else limit}"
    return text if stride == 1 else f"{text}:{stride}"


@shape(SliceOp)
def _slice_shape(op: SliceOp) -> Sequence[Attribute]:
    ranges = (axes(op.starts), axes(op.limits), axes(op.strides))
    return (like(op.x, rules.slice_(shape_of(op.x), *ranges)),)


@reference(SliceOp)
def _slice_reference(op: SliceOp, operands: Sequence[Array]) -> Array:
    return operands[0][tuple(slice(*r) for r in op.ranges)]


@irdl_op_definition
class PadOp(SpelledOp):
    """y = x with ``low`` times ``value`` before it and ``high`` times after, along each axis.

    ``interior`` more lie between any two neighbouring elements; the default is 0.

    * (C1) low, high and interior have one entry for each axis of x; none is negative.
    * (C2) value is a 0-d tensor with the element type of x.
    """

    name = "nd.pad"
    x = operand_def(TensorType)
    value = operand_def(TensorType)
    y = result_def(TensorType)
    low = prop_def(AXES)
    high = prop_def(AXES)
    interior = opt_prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        value: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> None:
        interior = [0] * len(low) if interior is None else interior
        super().__init__(
            operands=[x, value],
            result_types=[like(x, rules.pad(shape_of(x), low, high, interior))],
            properties=lists(low=low, high=high, interior=interior if any(interior) else None),
        )

    @property
    def amounts(self) -> tuple[Shape, Shape, Shape]:
        """The padding along each axis: before, after, and between neighbouring elements."""
        low = axes(self.low)
        interior = (0,) * len(low) if self.interior is None else axes(self.interior)
        return low, axes(self.high), interior

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()
        if self.value.type != (want := like(self.x, ())):  # pad_c2
            raise VerifyException(f"value must be {want}, got {self.value.type}")


@shape(PadOp)
def _pad_shape(op: PadOp) -> Sequence[Attribute]:
    return (like(op.x, rules.pad(shape_of(op.x), *op.amounts)),)


@reference(PadOp)
def _pad_reference(op: PadOp, operands: Sequence[Array]) -> Array:
    x, value = operands
    low, high, interior = op.amounts
    y = np.full(rules.pad(x.shape, low, high, interior), value, x.dtype)
    y[
        tuple(
            slice(a, a + n * (c + 1), c + 1) for n, a, c in zip(x.shape, low, interior, strict=True)
        )
    ] = x
    return y


@irdl_op_definition
class ConcatOp(SpelledOp):
    """y = the tensors ``xs`` concatenated along ``axis``.

    * (C1) There is at least one operand; all have the same element type and rank above axis.
    * (C2) Their sizes agree along all other axes.
    """

    name = "nd.concat"
    xs = var_operand_def(TensorType)
    y = result_def(TensorType)
    axis = prop_def(IntegerAttr[I64])

    def __init__(self, xs: Sequence[SSAValue], axis: int) -> None:
        result = rules.concat([shape_of(x) for x in xs], axis)
        super().__init__(
            operands=[list(xs)],
            result_types=[like(xs[0], result)],
            properties={"axis": int_attr(axis)},
        )


@shape(ConcatOp)
def _concat_shape(op: ConcatOp) -> Sequence[Attribute]:
    result = rules.concat([shape_of(x) for x in op.xs], op.axis.value.data)
    elements = [element(x) for x in op.xs]
    if any(e != elements[0] for e in elements):  # concat_c1
        raise ShapeError(f"operands differ in dtype: {', '.join(map(str, elements))}")
    return (like(op.xs[0], result),)


@reference(ConcatOp)
def _concat_reference(op: ConcatOp, operands: Sequence[Array]) -> Array:
    return np.concatenate(operands, op.axis.value.data)


@irdl_op_definition
class ReverseOp(SpelledOp):
    """y[i] = x[j], where j[k] = size - 1 - i[k] for k in ``axes``.

    * (C1) axes are axes of x, in ascending order.
    """

    name = "nd.reverse"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    axes = prop_def(AXES)

    def __init__(self, x: SSAValue, axes: Sequence[int]) -> None:
        rules.reverse(shape_of(x), axes)
        super().__init__(operands=[x], result_types=[x.type], properties={"axes": axes_attr(axes)})


@shape(ReverseOp)
def _reverse_shape(op: ReverseOp) -> Sequence[Attribute]:
    rules.reverse(shape_of(op.x), axes(op.axes))
    return (op.x.type,)


@reference(ReverseOp)
def _reverse_reference(op: ReverseOp, operands: Sequence[Array]) -> Array:
    return np.flip(operands[0], axes(op.axes))


OPS = (BroadcastOp, ReshapeOp, TransposeOp, SliceOp, PadOp, ConcatOp, ReverseOp)
