"""Sums of products: general dot product, matrix product, convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import DType
from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.core.shapes import contraction as shapes
from stepwell.dialects.nd.base import ANY, NdOp, check_elements, tensor_of
from stepwell.dialects.nd.shape import ReshapeOp, TransposeOp
from stepwell.dialects.nd.syntax import (
    AXES,
    SpelledOp,
    axes,
    axes_attr,
    element,
    int_attr,
    lists,
    parse_fields,
    print_fields,
    shape_of,
)
from stepwell.dialects.readings import Array, decomposition, products, reference, shape
from stepwell.dialects.types import dtype

Pairs = tuple[Sequence[int], Sequence[int]]


class ContractionOp(NdOp):
    """A sum of products of the elements of ``x`` and ``w``.

    * (C1) ``x`` and ``w`` have the same element type, a float or an integer of at least 8 bits.
    * (C2) ``dtype``, if given, is of the same kind and at least as wide: products are computed and
      accumulated in it, as in i8 by i8 to i32.
    * f16 and bf16 are accumulated in f32 and rounded once; for bf16, elements and sums below 2^-126
      in magnitude may count as zero, as some machine instructions do. Integers wrap.
    * An empty sum is 0.
    """

    x = operand_def(TensorType)
    w = operand_def(TensorType)
    dtype = opt_prop_def(Attribute)
    y = result_def(TensorType)

    def verify_(self) -> None:
        """Check C1 and C2, then the result's type."""
        of, other = element(self.x), element(self.w)
        check_elements(tensor_of(self.x), ANY)
        if of != other or of == IntegerType(1):  # contraction_c1
            raise VerifyException(f"operands must be numbers of one type, got {of} and {other}")
        if self.dtype is not None:
            narrow, wide = dtype(of), _dtype(self.dtype)
            if wide.kind != narrow.kind or wide.bytes < narrow.bytes:  # contraction_c2
                raise VerifyException(
                    f"dtype must be {narrow.kind}, at least as wide as {of}, got {self.dtype}"
                )
        super().verify_()

    @property
    def element(self) -> Attribute:
        """The element type of the result."""
        return self.dtype or element(self.x)


def _dtype(element: Attribute) -> DType:
    try:
        return dtype(element)
    except KeyError:
        raise VerifyException(f"{element} is no element type of nd") from None


@irdl_op_definition
class DotGeneralOp(ContractionOp):
    """Multiply and sum: ``y[b.., i.., j..] = sum(k..) x[b.., i.., k..] * w[b.., j.., k..]``.

    Axes of ``x`` and ``w`` are paired as batch or as contracted, the rest are free. The result
    has the batch axes, the free axes of ``x``, the free axes of ``w``.

    * (C3) Each axis is named at most once, and paired axes have the same size.
    """

    name = "nd.dot_general"
    x_batch = prop_def(AXES)
    w_batch = prop_def(AXES)
    x_contract = prop_def(AXES)
    w_contract = prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        w: SSAValue,
        batch: Pairs = ((), ()),
        contract: Pairs = ((), ()),
        dtype: Attribute | None = None,
    ) -> None:
        inferred = shapes.dot_general(shape_of(x), shape_of(w), batch, contract)
        super().__init__(
            operands=[x, w],
            result_types=[TensorType(dtype or element(x), inferred)],
            properties=_pairs(batch, contract) | ({"dtype": dtype} if dtype else {}),
        )

    @property
    def batch(self) -> tuple[Shape, Shape]:
        """The batch axes of both operands."""
        return axes(self.x_batch), axes(self.w_batch)

    @property
    def contract(self) -> tuple[Shape, Shape]:
        """The contracted axes of both operands."""
        return axes(self.x_contract), axes(self.w_contract)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%x, %w batch [0] x [0] contract [2] x [1] {dtype = i32} : function type``."""
        at = parser.pos
        x = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        w = parser.parse_unresolved_operand()
        batch, contract = _parse_pairs(parser, "batch"), _parse_pairs(parser, "contract")
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        result = {"dtype": fields.pop("dtype")} if "dtype" in fields else {}
        return cls.create(
            operands=parser.resolve_operands([x, w], type.inputs.data, at),
            result_types=type.outputs.data,
            properties=_pairs(batch, contract) | result,
            attributes=fields,
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        for name, (left, right) in (("batch", self.batch), ("contract", self.contract)):
            if left:
                printer.print_string(f" {name} {list(left)} x {list(right)}")
        result = {"dtype": self.dtype} if self.dtype else {}
        print_fields(printer, {**result, **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


def _pairs(batch: Pairs, contract: Pairs) -> dict[str, Attribute]:
    (x_batch, w_batch), (x_contract, w_contract) = batch, contract
    return lists(x_batch=x_batch, w_batch=w_batch, x_contract=x_contract, w_contract=w_contract)


def _parse_pairs(parser: Parser, keyword: str) -> Pairs:
    if parser.parse_optional_keyword(keyword) is None:
        return (), ()

    def numbers() -> Sequence[int]:
        return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)

    left = numbers()
    parser.parse_keyword("x")
    return left, numbers()


@shape(DotGeneralOp)
def _dot_general_shape(op: DotGeneralOp) -> Sequence[Attribute]:
    # dot_general_c3
    inferred = shapes.dot_general(shape_of(op.x), shape_of(op.w), op.batch, op.contract)
    return (TensorType(op.element, inferred),)


@reference(DotGeneralOp)
def _dot_general_reference(op: DotGeneralOp, operands: Sequence[Array]) -> Array:
    """Bring both to (batch, free, contracted) and accumulate the products in row-major order."""
    x, w = _in_accumulator(op, operands)
    (bx, bw), (cx, cw) = op.batch, op.contract
    fx = shapes.free_axes(x.ndim, bx, cx)
    fw = shapes.free_axes(w.ndim, bw, cw)
    left = x.transpose(*bx, *fx, *cx).reshape(_size(x, bx), _size(x, fx), _size(x, cx))
    right = w.transpose(*bw, *cw, *fw).reshape(_size(w, bw), _size(w, cw), _size(w, fw))
    total = np.zeros((left.shape[0], left.shape[1], right.shape[2]), x.dtype)
    for k in range(left.shape[2]):
        total += left[:, :, k, None] * right[:, k, None, :]
    sizes = [x.shape[a] for a in (*bx, *fx)] + [w.shape[a] for a in fw]
    return _rounded(op, total.reshape(sizes))


def _size(x: Array, axes: Sequence[int]) -> int:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


def _in_accumulator(op: ContractionOp, operands: Sequence[Array]) -> Sequence[Array]:
    """Return the operands in the accumulator's type."""
    kept = dtype(op.element)
    numpy = np.dtype(np.float32) if kept.name in ("f16", "bf16") else kept.numpy
    return [np.asarray(x).astype(numpy) for x in operands]


def _rounded(op: ContractionOp, y: Array) -> Array:
    return dtype(op.element).round(y)


@irdl_op_definition
class MatmulOp(ContractionOp, SpelledOp):
    """Multiply matrices as NumPy's ``x @ w``: the last axis of ``x``, the last but one of ``w``.

    A vector is a row on the left and a column on the right; the result lacks that axis.

    * (C3) Leading axes are batch axes: they are equal, or one operand has none. They are not
      broadcast implicitly; use nd.broadcast.
    """

    name = "nd.matmul"

    def __init__(self, x: SSAValue, w: SSAValue, dtype: Attribute | None = None) -> None:
        inferred = shapes.matmul(shape_of(x), shape_of(w))
        super().__init__(
            operands=[x, w],
            result_types=[TensorType(dtype or element(x), inferred)],
            properties={"dtype": dtype} if dtype else {},
        )


@shape(MatmulOp)
def _matmul_shape(op: MatmulOp) -> Sequence[Attribute]:
    # matmul_c3
    return (TensorType(op.element, shapes.matmul(shape_of(op.x), shape_of(op.w))),)


LARGE = 1 << 20
"""A matrix of at least this many elements is read from the last cache or from memory, ..."""
WIDE = 512
"""... which is fast where at least this many neighbours in a row are read together: half a page."""
_PLAIN = {"strides": 1, "low": 0, "high": 0, "lhs_dilation": 1, "rhs_dilation": 1}
"""The default of each entry of a convolution's lists."""


@irdl_op_definition
class ConvolutionOp(ContractionOp, SpelledOp):
    """Slide ``w`` over ``x`` and sum the products, along any number of spatial axes.

    ``y[n, o, p..] = sum(c, k..) x'[n, g*I + c, p*stride + k*rhs_dilation ..] * w[o, c, k..]``
    where ``I`` is the number of features of ``w``, ``g`` the group of ``o``, and ``x'`` is ``x``
    with its elements ``lhs_dilation`` apart and padded by ``low`` and ``high`` zeros. The window is
    not flipped. Products with the zeros between elements may be omitted: the elements of ``w`` that
    meet them are assumed finite. An infinity or NaN in ``x`` reaches every position whose window
    contains it; for f32 and windows of 3x3 (Winograd's algorithm), positions up to 3 away may
    become NaN, and all of the result if that 3x3 window is a sum over all positions (a gradient).

    ``x_layout`` lists the batch axis of ``x``, then its feature axis, then its spatial axes;
    ``y_layout`` does the same for ``y``; ``w_layout`` lists output features, input features,
    spatial axes. The default is 0, 1, 2, ...: NCHW and OIHW. A transposed convolution is one with
    ``lhs_dilation`` above 1.

    ``batch_groups`` splits the batch into this many groups; group ``h`` of the output features uses
    group ``h``: ``y[n, o, p..] = sum(c, k..) x'[h*N + n, c, ..] * w[o, c, k..]`` for ``N`` images
    in a group. The gradient of the filters of a grouped convolution has this form.

    * (C3) ``x`` and ``w`` have the same rank of at least 2, and layouts name each axis once.
    * (C4) Strides and dilations are at least 1, padding at least 0, one number per spatial axis.
    * (C5) Groups divide the output features; ``x`` has groups times the input features of ``w``.
    * (C6) Batch groups divide the batch and the output features, and exclude other groups.
    """

    name = "nd.convolution"
    strides = prop_def(AXES)
    low = prop_def(AXES)
    high = prop_def(AXES)
    lhs_dilation = prop_def(AXES)
    rhs_dilation = prop_def(AXES)
    groups = prop_def(IntegerAttr)
    batch_groups = prop_def(IntegerAttr)
    x_layout = prop_def(AXES)
    w_layout = prop_def(AXES)
    y_layout = prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        w: SSAValue,
        *,
        groups: int = 1,
        batch_groups: int = 1,
        dtype: Attribute | None = None,
        **given: Sequence[int],
    ) -> None:
        of_batch = {"batch_groups": int_attr(batch_groups)}
        fields = lists(**given) | {"groups": int_attr(groups)} | of_batch
        properties = self.complete(fields, len(shape_of(x)))
        how = _how(w, properties)
        inferred = shapes.convolution(shape_of(x), shape_of(w), *how, batch_groups)
        super().__init__(
            operands=[x, w],
            result_types=[TensorType(dtype or element(x), inferred)],
            properties=properties | ({"dtype": dtype} if dtype else {}),
        )

    @classmethod
    def complete(cls, fields: dict[str, Attribute], rank: int) -> dict[str, Attribute]:
        """Return ``fields`` with defaults for missing ones."""
        natural = axes_attr(range(rank))
        defaults: dict[str, Attribute] = {
            **{k: axes_attr((n,) * (rank - 2)) for k, n in _PLAIN.items()},
            "groups": int_attr(1),
            "batch_groups": int_attr(1),
            "x_layout": natural,
            "w_layout": natural,
            "y_layout": natural,
        }
        return defaults | fields

    @property
    def how(self) -> tuple[shapes.Window, int, shapes.Layout]:
        """The geometry of the window, the number of groups, and the layout of axes."""
        return _how(self.w, self.properties)

    @property
    def parts(self) -> int:
        """The number of groups of the batch."""
        return self.batch_groups.value.data

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse the op and fill in defaults."""
        op = super().parse(parser)
        op.properties = cls.complete(op.properties, len(shape_of(op.x)))
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        plain = self.complete({}, len(shape_of(self.x)))
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        written = {k: v for k, v in self.properties.items() if plain.get(k) != v}
        print_fields(printer, {**written, **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


def _how(w: SSAValue, fields: Mapping[str, Any]) -> tuple[shapes.Window, int, shapes.Layout]:
    sizes = shape_of(w)
    layout = shapes.Layout(*(axes(fields[f"{name}_layout"]) for name in "xwy"))
    window = shapes.Window(
        tuple(sizes[a] for a in layout.w[2:] if 0 <= a < len(sizes)),
        *(axes(fields[name]) for name in _PLAIN),
    )
    return window, fields["groups"].value.data, layout


@shape(ConvolutionOp)
def _convolution_shape(op: ConvolutionOp) -> Sequence[Attribute]:
    # convolution_c3, convolution_c4, convolution_c5, convolution_c6
    x, w = shape_of(op.x), shape_of(op.w)
    return (TensorType(op.element, shapes.convolution(x, w, *op.how, op.parts)),)


@reference(ConvolutionOp)
def _convolution_reference(op: ConvolutionOp, operands: Sequence[Array]) -> Array:
    """Sum over input features, then over the window, all positions at once."""
    x, w = _in_accumulator(op, operands)
    window, groups, layout = op.how
    x, w = _spread(x.transpose(layout.x), window), w.transpose(layout.w)
    if op.parts > 1:  # groups of images become groups of features
        groups = op.parts
        x = x.reshape(groups, x.shape[0] // groups, *x.shape[1:]).swapaxes(0, 1)
    else:
        x = x.reshape(x.shape[0], groups, w.shape[1], *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    sizes = [
        shapes.places(n, shapes.dilated(k, apart), stride)
        for n, k, stride, apart in zip(
            x.shape[3:], w.shape[3:], window.strides, window.rhs_dilation, strict=True
        )
    ]
    y = np.zeros((x.shape[0], groups, w.shape[1], *sizes), x.dtype)
    for c, *spot in np.ndindex(*w.shape[2:]):
        seen = [
            slice(k * apart, k * apart + (n - 1) * stride + 1 if n else k * apart, stride)
            for k, n, stride, apart in zip(
                spot, sizes, window.strides, window.rhs_dilation, strict=True
            )
        ]
        weights = w[:, :, c, *spot].reshape(groups, w.shape[1], *(1 for _ in spot))
        y += x[:, :, c, *seen][:, :, None] * weights
    y = y.reshape(y.shape[0], groups * w.shape[1], *sizes)
    return _rounded(op, y.transpose(np.argsort(layout.y)))


def _spread(x: Array, window: shapes.Window) -> Array:
    """Return ``x`` dilated and padded."""
    sizes = list(x.shape[:2])
    inside: list[slice] = [slice(None), slice(None)]
    for n, low, high, apart in zip(
        x.shape[2:], window.low, window.high, window.lhs_dilation, strict=True
    ):
        extent = shapes.dilated(n, apart)
        sizes.append(low + extent + high)
        inside.append(slice(low, low + extent, apart))
    spread = np.zeros(sizes, x.dtype)
    spread[tuple(inside)] = x
    return spread


@decomposition(MatmulOp)
def _matmul_decomposition(builder: Builder, op: MatmulOp) -> Sequence[SSAValue]:
    """Write the product as nd.dot_general, batch axes first.

    If only the right operand has batch axes, they come after the rows and are transposed.
    """
    if (product := _of_row(builder, op)) is not None:
        return (product,)
    x, w = len(shape_of(op.x)), len(shape_of(op.w))
    inner = (max(w - 2, 0),)
    both = range(x - 2) if x > 2 and w > 2 else range(0)
    dot = builder.insert(DotGeneralOp(op.x, op.w, (both, both), ((x - 1,), inner), op.dtype))
    if x != 2 or w <= 2:
        return (dot.y,)
    dot.y.name_hint = "dot"
    permutation = [*range(1, w - 1), 0, w - 1]
    return (builder.insert(TransposeOp(dot.y, permutation)).y,)


def _of_row(builder: Builder, op: MatmulOp) -> SSAValue | None:
    """Return a vector times a large matrix as the product of a row; None for other products.

    The product of a row reads long contiguous parts of a few rows of the matrix at a time. A
    transposed matrix times a vector is the product of a row with the untransposed matrix.
    """
    vector, matrix = op.x, op.w
    if len(shape_of(matrix)) == 1 and isinstance(matrix_of := vector.owner, TransposeOp):
        vector, matrix = matrix, matrix_of.x
    if len(shape_of(vector)) != 1 or len(shape_of(matrix)) != 2:
        return None
    rows, columns = shape_of(matrix)
    if DYNAMIC in (rows, columns) or columns < WIDE or rows * columns < LARGE:
        return None
    row = builder.insert(ReshapeOp(vector, (1, rows))).y
    dot = builder.insert(DotGeneralOp(row, matrix, ((), ()), ((1,), (0,)), op.dtype)).y
    row.name_hint, dot.name_hint = vector.name_hint, "dot"
    return builder.insert(ReshapeOp(dot, (columns,))).y


products.update((DotGeneralOp, ConvolutionOp))
OPS = (DotGeneralOp, MatmulOp, ConvolutionOp)
