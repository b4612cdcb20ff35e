"""Ops that create tensors: constants, fills, iota, random bits."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import ConstantLike
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.nd.base import I1, NUMBER, NdOp, TensorOf, check_elements, tensor_of
from stepwell.dialects.nd.syntax import int_attr, parse_fields, print_fields
from stepwell.dialects.readings import Array, reference, shape
from stepwell.dialects.types import array, dtype, element_type

OpT = TypeVar("OpT", bound="Creation")

KEY = TensorType(element_type("ui32"), [2])
COUNTER = TensorType(element_type("ui64"), [])


@irdl_attr_definition
class ResourceAttr(ParametrizedAttribute):
    """An array stored beside the module: its name in the table and the SHA-256 of its bytes.

    Syntax: ``#nd.resource<"weight", "9f86d081...">``; with a missing or empty hash nothing is
    checked.
    """

    name = "nd.resource"
    key: StringAttr = param_def()
    sha256: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<"name", "sha256">``; the hash is optional."""
        with parser.in_angle_brackets():
            key = parser.parse_str_literal()
            stated = parser.parse_optional_punctuation(",") is not None
            return StringAttr(key), StringAttr(parser.parse_str_literal() if stated else "")

    def print_parameters(self, printer: Printer) -> None:
        """Print the form that `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.key.data)
            printer.print_string(", ")
            printer.print_string_literal(self.sha256.data)


@irdl_op_definition
class ConstantOp(NdOp):
    """``y`` = an array known at compile time: a few numbers, or a named resource.

    Syntax: ``nd.constant dense<[1, 2]> : tensor<2xi32>``, or
    ``nd.constant #nd.resource<"weight", "9f86..."> : tensor<64x10xf32>``.
    For a tensor with one value in all elements, prefer nd.full.

    * (C1) The type of ``y`` is static, and equals that of the dense value.
    """

    name = "nd.constant"
    value = prop_def(DenseIntOrFPElementsAttr | ResourceAttr)
    y = result_def(TensorType)
    traits = traits_def(ConstantLike())

    def __init__(
        self, value: DenseIntOrFPElementsAttr | ResourceAttr, type: TensorOf | None = None
    ) -> None:
        if isinstance(value, DenseIntOrFPElementsAttr):
            type = TensorType(value.get_element_type(), value.get_shape())
        assert type is not None
        super().__init__(properties={"value": value}, result_types=[type])

    def verify_(self) -> None:
        """Check C1."""
        type = tensor_of(self.y)
        if not type.has_static_shape():  # constant_c1
            raise VerifyException(f"a constant has a static shape, got {type}")
        if isinstance(self.value, DenseIntOrFPElementsAttr) and self.value.type != type:
            raise VerifyException(f"result must be {self.value.type}, got {type}")  # constant_c1

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        """Parse ``dense<...> : T`` or ``#nd.resource<...> : T``."""
        attributes = parse_fields(parser)
        start = parser.pos
        value = parser.parse_attribute()
        if isinstance(value, DenseIntOrFPElementsAttr):
            type: Attribute = value.type
        elif isinstance(value, ResourceAttr):
            parser.parse_punctuation(":")
            type = parser.parse_type()
        else:
            parser.raise_error("expected dense<...> or #nd.resource<...>", start, parser.pos)
        return cls.create(properties={"value": value}, attributes=attributes, result_types=[type])

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        print_fields(printer, self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)
        if isinstance(self.value, ResourceAttr):
            printer.print_string(" : ")
            printer.print_attribute(self.y.type)


class Creation(NdOp, ABC):
    """An op that creates a tensor: static sizes are in its type, the others are operands.

    * (C1) There is one operand in ``sizes`` for each ``?`` of the result, in order.
    """

    FIXED: ClassVar[tuple[Attribute, ...]] = ()
    """The types of the operands before the sizes."""

    sizes = var_operand_def(IndexType)
    y = result_def(TensorType)

    def verify_(self) -> None:
        """Check C1."""
        type = tensor_of(self.y)
        if (wanted := type.get_shape().count(DYNAMIC)) != len(self.sizes):  # creation_c1
            raise VerifyException(
                f"{type} needs {wanted} operands in sizes(...), got {len(self.sizes)}"
            )

    @classmethod
    def parse(cls: type[OpT], parser: Parser) -> OpT:
        """Parse ``%a, %b, sizes(%n) {fields} : T``."""
        start = parser.pos
        operands: list[UnresolvedOperand] = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            parser.parse_optional_punctuation(",")
        if len(operands) != len(cls.FIXED):
            parser.raise_error(
                f"{cls.name} takes {len(cls.FIXED)} operands, got {len(operands)}",
                start,
                parser.pos,
            )
        values = [parser.resolve_operand(o, t) for o, t in zip(operands, cls.FIXED, strict=True)]
        sizes = _parse_sizes(parser)
        fields = parse_fields(parser)
        known = cls.get_irdl_definition().properties
        parser.parse_punctuation(":")
        return cls.create(
            operands=[*values, *sizes],
            result_types=[parser.parse_type()],
            properties={k: v for k, v in fields.items() if k in known},
            attributes={k: v for k, v in fields.items() if k not in known},
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        fixed = self.operands[: len(self.FIXED)]
        if fixed:
            printer.print_string(" ")
            printer.print_list(fixed, printer.print_operand)
        _print_sizes(printer, self.sizes, ", " if fixed else " ")
        print_fields(printer, {**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.y.type)


def _parse_sizes(parser: Parser) -> list[SSAValue]:
    if parser.parse_optional_keyword("sizes") is None:
        return []
    sizes = parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    return [parser.resolve_operand(size, IndexType()) for size in sizes]


def _print_sizes(printer: Printer, sizes: Sequence[SSAValue], before: str) -> None:
    if sizes:
        printer.print_string(f"{before}sizes(")
        printer.print_list(sizes, printer.print_operand)
        printer.print_string(")")


@irdl_op_definition
class FullOp(Creation):
    """``y[i] = value`` everywhere.

    Written ``nd.full 1.5 : tensor<4xf32>``, ``nd.full 0, sizes(%n) : tensor<?xi32>``.

    * (C1) There is one operand in ``sizes`` for each ``?`` of the result, in order.
    * (C2) The value has the element type of the result.
    """

    name = "nd.full"
    value = prop_def(IntegerAttr | FloatAttr)

    def __init__(
        self,
        value: IntegerAttr[Any] | FloatAttr[Any],
        type: TensorOf,
        sizes: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(operands=[sizes], properties={"value": value}, result_types=[type])

    @classmethod
    def of(cls, value: Any, type: TensorOf, sizes: Sequence[SSAValue] = ()) -> FullOp:
        """Return a tensor filled with a Python number."""
        return cls(scalar(value, type.element_type), type, sizes)

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()  # full_c1
        if (got := self.value.type) != (want := tensor_of(self.y).element_type):  # full_c2
            raise VerifyException(f"value must be of type {want}, got {got}")

    @classmethod
    def parse(cls, parser: Parser) -> FullOp:
        """Parse ``NUMBER, sizes(%n) {attributes} : T``."""
        start = parser.pos
        hexadecimal = parser._current_token.text[:2] in ("0x", "0X")  # pyright: ignore[reportPrivateUsage]
        value = parser.parse_number(allow_boolean=True)
        end = parser.pos
        sizes = _parse_sizes(parser) if parser.parse_optional_punctuation(",") else []
        attributes = parse_fields(parser)
        parser.parse_punctuation(":")
        type = parser.parse_type()
        element = type.element_type if isinstance(type, TensorType) else type
        try:
            number = _number(value, element, hexadecimal)
        except (KeyError, TypeError, OverflowError, VerifyException):
            parser.raise_error(f"{value} is no value of {element}", start, end)
        return cls.create(
            operands=sizes,
            result_types=[type],
            properties={"value": number},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        if isinstance(self.value, FloatAttr):
            printer.print_float(self.value.value.data, self.value.type)
        else:
            printer.print_int(self.value.value.data, self.value.type)
        _print_sizes(printer, self.sizes, ", ")
        print_fields(printer, self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.y.type)


def scalar(value: Any, element: Attribute) -> IntegerAttr[Any] | FloatAttr[Any]:
    """Return a number as an attribute of an element type; integers wrap."""
    kind = dtype(element)
    rounded = kind.round(value)[()]
    if kind.kind == "float":
        return FloatAttr(float(rounded), element)  # pyright: ignore
    assert isinstance(element, IntegerType)
    return IntegerAttr(int(rounded), element)


def number(value: IntegerAttr[Any] | FloatAttr[Any]) -> float:
    """Return the Python number of an attribute; true is 1."""
    if isinstance(value, FloatAttr):
        return value.value.data
    return value.value.data & 1 if value.type == I1 else value.value.data


def _number(value: float, element: Attribute, hexadecimal: bool) -> Attribute:
    """Return the attribute of a literal for elements of this type; hex digits are its bits."""
    if dtype(element).kind != "float":
        if isinstance(value, float):
            raise TypeError
        return IntegerAttr(int(value), element)  # pyright: ignore
    assert hasattr(element, "unpack")
    if hexadecimal:
        width = dtype(element).bytes
        (value,) = element.unpack(int(value).to_bytes(width, "little"), 1)  # pyright: ignore
    return FloatAttr(float(value), element)  # pyright: ignore


@irdl_op_definition
class IotaOp(Creation):
    """``y[i] = i[axis]``: counts along one axis. Integers wrap; floats are rounded.

    Written ``nd.iota {axis = 1} : tensor<4x8xi32>``, ``nd.iota sizes(%n) {axis = 0} : ...``.

    * (C1) There is one operand in ``sizes`` for each ``?`` of the result, in order.
    * (C2) 0 ≤ axis < rank.
    * (C3) The elements are floating point or integer.
    """

    name = "nd.iota"
    axis = prop_def(IntegerAttr.constr(i64))

    def __init__(self, type: TensorOf, axis: int = 0, sizes: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[sizes], properties={"axis": int_attr(axis)}, result_types=[type])

    def verify_(self) -> None:
        """Check C1, C2 and C3."""
        super().verify_()  # iota_c1
        type = tensor_of(self.y)
        if not 0 <= self.axis.value.data < type.get_num_dims():  # iota_c2
            raise VerifyException(
                f"axis must lie in 0..{type.get_num_dims() - 1}, got {self.axis.value.data}"
            )
        check_elements(type, NUMBER)  # iota_c3


@irdl_op_definition
class RandomBitsOp(Creation):
    """``y[i]`` = random bits of element i, made by the counter-based generator Threefry-2x32-20.

    Syntax: ``nd.random_bits %key, %start : tensor<4x8xui32>``.
    With n the row-major number of the element, the block cipher encrypts ``start + n`` (modulo
    2^64, low word first) under ``key``. An element of ui32 is the first word of the result; one of
    ui64 has the second word above the first.

    * (C1) There is one operand in ``sizes`` for each ``?`` of the result, in order.
    * (C2) ``key`` is tensor<2xui32>, ``start`` is tensor<ui64>.
    * (C3) The elements are ui32 or ui64.
    """

    name = "nd.random_bits"
    FIXED: ClassVar = (KEY, COUNTER)
    key = operand_def(TensorType)
    start = operand_def(TensorType)
    sizes = var_operand_def(IndexType)

    def __init__(
        self, key: SSAValue, start: SSAValue, type: TensorOf, sizes: Sequence[SSAValue] = ()
    ) -> None:
        super().__init__(operands=[key, start, sizes], result_types=[type])

    def verify_(self) -> None:
        """Check C1, C2 and C3."""
        super().verify_()  # random_bits_c1
        if (self.key.type, self.start.type) != self.FIXED:  # random_bits_c2
            raise VerifyException(
                f"key and start must be {KEY} and {COUNTER}, got {self.key.type}, {self.start.type}"
            )
        type = tensor_of(self.y)
        if dtype(type.element_type).name not in ("ui32", "ui64"):  # random_bits_c3
            raise VerifyException(f"elements must be ui32 or ui64, got {type}")


shape(ConstantOp, FullOp, IotaOp, RandomBitsOp)(lambda op: (op.y.type,))


@reference(ConstantOp)
def _constant_reference(op: ConstantOp, operands: Sequence[Array]) -> Array:
    if isinstance(op.value, ResourceAttr):
        raise LookupError(f"{op.value} lies outside the module")
    return array(op.value)


@evaluate(ConstantOp)
def _constant_evaluate(
    interpreter: Interpreter, op: ConstantOp, operands: Sequence[Value]
) -> Sequence[Value]:
    """Look up a resource; bf16 may be stored as its bits in ui16."""
    if not isinstance(op.value, ResourceAttr):
        return (array(op.value),)
    found, kind = np.asarray(interpreter.resources[op.value.key.data]), _dtype_of(op)
    if kind.name == "bf16" and found.dtype == np.uint16:
        return ((found.astype(np.uint32) << 16).view(np.float32),)
    return (kind.round(found),)


@reference(FullOp)
def _full_reference(op: FullOp, operands: Sequence[Array]) -> Array:
    return np.full(_sizes(op, operands), number(op.value), _dtype_of(op).numpy)


@reference(IotaOp)
def _iota_reference(op: IotaOp, operands: Sequence[Array]) -> Array:
    shape, axis = _sizes(op, operands), op.axis.value.data
    count = _dtype_of(op).round(_counted(_dtype_of(op), shape[axis]))
    return np.broadcast_to(
        count.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape
    )


def _counted(kind: DType, n: int) -> Array:
    """Return 0, 1, ..., n - 1; for f16 and bf16 they are rounded to f32 first."""
    return np.arange(n, dtype=np.float32 if kind.kind == "float" and kind.bytes == 2 else np.int64)


@reference(RandomBitsOp)
def _random_bits_reference(op: RandomBitsOp, operands: Sequence[Array]) -> Array:
    key, start, *sizes = operands
    shape = _sizes(op, sizes)
    counter = np.uint64(start) + np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64)
    low, high = threefry(key, counter.astype(np.uint32), (counter >> 32).astype(np.uint32))
    if _dtype_of(op).bytes == 4:
        return low.reshape(shape)
    return (low.astype(np.uint64) | high.astype(np.uint64) << 32).reshape(shape)


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry(key: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Encrypt counters under two words of key: Threefry-2x32 with 20 rounds (Salmon et al. 2011).

    >>> words = threefry(np.zeros(2, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    >>> [hex(w[0]) for w in words]
    ['0x6b200159', '0x99ba4efe']
    """
    keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(PARITY)]
    with np.errstate(over="ignore"):
        low, high = low + keys[0], high + keys[1]
        for group in range(5):
            for turn in ROTATIONS[group % 2]:
                low = low + high
                high = ((high << turn) | (high >> (32 - turn))) ^ low
            low = low + keys[(group + 1) % 3]
            high = high + keys[(group + 2) % 3] + np.uint32(group + 1)
    return low, high


def _dtype_of(op: ConstantOp | Creation) -> DType:
    return dtype(tensor_of(op.y).element_type)


def _sizes(op: Creation, operands: Sequence[Array]) -> tuple[int, ...]:
    """Return the shape of the result of ``op``, given the values of its sizes."""
    dynamic = iter(operands)
    shape = tensor_of(op.y).get_shape()
    return tuple(int(next(dynamic)) if n == DYNAMIC else n for n in shape)


OPS = (ConstantOp, FullOp, IotaOp, RandomBitsOp)
ATTRIBUTES = (ResourceAttr,)
