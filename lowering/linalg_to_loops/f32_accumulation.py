"""Accumulate products of bytes in f32, which is exact where a part of the sum is short enough.

Machines have a multiply-add for floats, with as many lanes as the i32 accumulators of such sums.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, VectorType, f32, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.type import get_element_type_or_self

from stepwell.analysis.products import byte_products
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Writer


def accumulate_in_f32(op: Structured) -> Structured:
    """Return a sum of products of bytes with a body that accumulates in f32."""
    signs = byte_products(op.body) if op.body is not None else None
    assert signs is not None and op.body is not None
    body = Block(arg_types=[*op.body.arg_types[:2], f32])
    for new, old in zip(body.args, op.body.args, strict=True):
        new.name_hint = old.name_hint
    wide = [
        (arith.ExtSIOp if signed else arith.ExtUIOp)(arg, i32)
        for arg, signed in zip(body.args, signs, strict=False)
    ]
    x, w = (arith.SIToFPOp(each.result, f32) for each in wide)
    product = arith.MulfOp(x, w)
    total = arith.AddfOp(body.args[2], product)
    for new in (*wide, x, w, product, total, linalg.YieldOp(total.result)):
        new.location = op.op.location
        body.add_op(new)
    return replace(op, body=body)


def joined(writer: Writer, before: list[SSAValue], parts: list[SSAValue]) -> list[SSAValue]:
    """Return the sums ``before`` plus the parts that were accumulated in f32."""
    whole = [
        _whole(writer, part, total.type, total.name_hint)
        for part, total in zip(parts, before, strict=True)
    ]
    return [
        writer.binary(arith.AddiOp, total, part, total.name_hint)
        for total, part in zip(before, whole, strict=True)
    ]


def _whole(writer: Writer, part: SSAValue, type: Attribute, hint: str | None) -> SSAValue:
    """Return an integer of ``type``: of a narrow type the lowest bits, as integer sums wrap."""
    element = get_element_type_or_self(type)
    if not isinstance(element, IntegerType) or element.width.data >= i32.width.data:
        return writer.result(arith.FPToSIOp.create(operands=[part], result_types=[type]), hint)
    wide = VectorType(i32, type.shape) if isinstance(type, VectorType) else i32
    whole = writer.result(arith.FPToSIOp.create(operands=[part], result_types=[wide]), hint)
    return writer.result(arith.TruncIOp.create(operands=[whole], result_types=[type]), hint)
