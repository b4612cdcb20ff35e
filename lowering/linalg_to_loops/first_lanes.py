"""The first lanes of a vector: load, store and replace as many as a launch has left."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import SSAValue

from stepwell.analysis.structured import bits_of, element, zero_of
from stepwell.lowering.linalg_to_loops.builder import vector_type
from stepwell.lowering.linalg_to_loops.writer import Index, Writer


def load_first(
    writer: Writer,
    buffer: SSAValue,
    at: Sequence[Index],
    width: int,
    left: SSAValue,
    hint: str | None,
) -> SSAValue:
    """Load the first ``left`` lanes of a vector; the others are 0."""
    type = vector_type(element(buffer), width)
    none = writer.splat(zero_of(type.element_type), width)
    operands = [buffer, *(writer.value(i) for i in at), _mask(writer, width, left), none]
    return writer.result(vector.MaskedLoadOp.create(operands=operands, result_types=[type]), hint)


def between(writer: Writer, width: int, high: SSAValue, low: SSAValue) -> SSAValue:
    """Return a mask of the lanes before ``high`` that are not before ``low``, at most ``high``."""
    before, until = _mask(writer, width, high), _mask(writer, width, low)
    return writer.shared(
        ("between", before, until), lambda: writer.result(arith.XOrIOp(before, until), "lanes")
    )


def all_or_none(writer: Writer, condition: SSAValue, lanes: SSAValue) -> SSAValue:
    """Return a mask of the same lanes where a condition holds, of none elsewhere."""

    def make() -> SSAValue:
        assert isinstance(lanes.type, VectorType)
        none = writer.splat(IntegerAttr(0, i1), lanes.type.get_shape()[0])
        return writer.result(arith.SelectOp(condition, lanes, none), "lanes")

    return writer.shared(("all or none", condition, lanes), make)


def store_first(
    writer: Writer,
    value: SSAValue,
    buffer: SSAValue,
    at: Sequence[Index],
    left: SSAValue,
    at_once: bool = False,
) -> None:
    """Store the first ``left`` lanes of a vector.

    at_once : whether under a mask, for which loads wait long that overlap it
    """
    assert isinstance(value.type, VectorType)
    width = value.type.get_shape()[0]
    mask = between(writer, width, left, writer.index(0)) if at_once else _mask(writer, width, left)
    operands = [buffer, *(writer.value(i) for i in at), mask, value]
    writer.insert(vector.MaskedStoreOp.create(operands=operands))


def replace_first(writer: Writer, new: SSAValue, old: SSAValue, left: SSAValue) -> SSAValue:
    """Return ``new`` in the first ``left`` lanes, ``old`` in the others."""
    type = old.type
    assert isinstance(type, VectorType)
    element, width = type.element_type, type.get_shape()[0]
    number = IntegerType(bits_of(element))  # a byte at least: i1 does not count lanes
    count = writer.result(arith.IndexCastOp(left, number))
    type = vector_type(number, width)
    numbers = DenseIntOrFPElementsAttr.from_list(type, list(range(width)))
    lanes = writer.constant(numbers, type, "lanes")
    inside = writer.result(arith.CmpiOp(lanes, writer.broadcast(count, width), "slt"))
    return writer.result(arith.SelectOp(inside, new, old), old.name_hint)


def _mask(writer: Writer, width: int, left: SSAValue) -> SSAValue:
    def make() -> SSAValue:
        op = vector.CreateMaskOp.create(operands=[left], result_types=[vector_type(i1, width)])
        return writer.result(op, "first")

    return writer.shared(("first", width, left), make)
