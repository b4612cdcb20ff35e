"""Numbers that the host of an OpenCL program computes, as trees of its schedule."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import SSAValue

from stepwell.analysis.launch_sizes import SIGNS
from stepwell.core.host_schedule import Tree
from stepwell.lowering.emit.kinds import NARROW, element_name
from stepwell.lowering.emit.places import add, multiply
from stepwell.transforms.passes import fail

Number: TypeAlias = Callable[[Any, Sequence[Tree]], Tree]
"""``(op, operands) -> its result``."""

_INFIX: dict[type[Any], str] = {
    **SIGNS,
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
}
_FOLDED: dict[str, Callable[[Tree, Tree], Tree]] = {"+": add, "*": multiply}
_COMPARE_INTEGERS = ("==", "!=", "<", "<=", ">", ">=", "u<", "u<=", "u>", "u>=")
_COMPARE_FLOATS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}


def _constant(op: arith.ConstantOp, _: Sequence[Tree]) -> Tree:
    match op.value:
        case IntegerAttr(value=value, type=IntegerType(width=width)) if width.data == 1:
            return bool(value.data)
        case FloatAttr() if is_narrow(op.result):
            return _bits(op.result, op.value.value.data)
        case FloatAttr(value=value) if not isfinite(value.data):
            (bits,) = struct.unpack("<q", struct.pack("<d", value.data))
            return ["f64", bits]
        case IntegerAttr(value=value) | FloatAttr(value=value):
            return value.data
        case other:
            fail(op, f"{other} cannot be on the host of an OpenCL program")


def _bits(value: SSAValue, number: float) -> int:
    """Return the bits of a 16-bit float, as a signed number."""
    element = element_name(value.type)
    assert element is not None
    return int.from_bytes(_packed(element, number), "little", signed=True)


def _infix(op: Any, operands: Sequence[Tree]) -> Tree:
    sign, type = _INFIX[op.__class__], op.result.type
    narrow = not isinstance(type, IndexType) and type.width.data < 64
    if sign in ("u/", "u%") and narrow:
        fail(op, "an unsigned division of few bits cannot run on the host of an OpenCL program")
    tree = _FOLDED[sign](*operands) if sign in _FOLDED else [sign, *operands]
    if isinstance(type, IntegerType) and type.width.data > 1 and isinstance(tree, list):
        tree = ["wrap", tree, type.width.data]
    return tree


def _cmpi(op: arith.CmpiOp, operands: Sequence[Tree]) -> Tree:
    return [_COMPARE_INTEGERS[op.predicate.value.data], *operands]


def _cmpf(op: arith.CmpfOp, operands: Sequence[Tree]) -> Tree:
    sign = _COMPARE_FLOATS.get(op.predicate.value.data)
    if sign is None:
        fail(op, "this comparison cannot run on the host of an OpenCL program")
    return [sign, *(_float(v, tree) for v, tree in zip(op.operands, operands, strict=True))]


def is_narrow(value: SSAValue) -> bool:
    """Whether the host has only the bits of a float: true for 16-bit floats."""
    return element_name(value.type) in NARROW


def _float(value: SSAValue, tree: Tree) -> Tree:
    """Return the tree of a float's value, converted from its bits if necessary."""
    return [element_name(value.type), tree] if is_narrow(value) else tree


def _extf(op: arith.ExtFOp, operands: Sequence[Tree]) -> Tree:
    return _float(op.input, operands[0])


def _select(op: arith.SelectOp, operands: Sequence[Tree]) -> Tree:
    return ["select", *operands]


def _operand(op: Any, operands: Sequence[Tree]) -> Tree:
    return operands[0]


def _extui(op: arith.ExtUIOp, operands: Sequence[Tree]) -> Tree:
    assert isinstance(op.input.type, IntegerType)
    width = op.input.type.width.data
    return ["select", operands[0], 1, 0] if width == 1 else ["&", operands[0], (1 << width) - 1]


def _extsi(op: arith.ExtSIOp, operands: Sequence[Tree]) -> Tree:
    one_bit = op.input.type == IntegerType(1)
    return ["select", operands[0], -1, 0] if one_bit else operands[0]


def _trunci(op: arith.TruncIOp, operands: Sequence[Tree]) -> Tree:
    assert isinstance(op.result.type, IntegerType)
    width = op.result.type.width.data
    return ["!=", ["&", operands[0], 1], 0] if width == 1 else ["wrap", operands[0], width]


NUMBERS: dict[type[Any], Number] = {
    arith.ConstantOp: _constant,
    **dict.fromkeys(_INFIX, _infix),
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _select,
    arith.IndexCastOp: _operand,
    arith.ExtSIOp: _extsi,
    arith.ExtFOp: _extf,
    arith.ExtUIOp: _extui,
    arith.TruncIOp: _trunci,
}
"""Ops with one result that the host evaluates."""

_FORMATS = {"f64": "d", "f32": "f", "f16": "e", "bf16": "f"}


def _packed(element: str, value: float) -> bytes:
    """Return the bytes of a float in the format ``element``."""
    data = struct.pack(f"<{_FORMATS[element]}", value)
    return data[2:] if element == "bf16" else data


def constant_bytes(op: memref.GlobalOp) -> bytes:
    """Return the bytes in memory of a constant array."""
    values, type = op.initial_value, op.type
    if not isinstance(values, DenseIntOrFPElementsAttr):
        fail(op, "an array without values cannot be on the host of an OpenCL program")
    element = element_name(type.element_type)
    if element is None:
        fail(op, f"elements of type {type.element_type} have no place in memory")
    numbers: list[Any] = list(values.get_values())
    count = 1
    for n in type.get_shape():
        count *= n
    if numbers:
        numbers *= count // len(numbers)
    if element in _FORMATS:
        return b"".join(_packed(element, value) for value in numbers)
    width = type.element_type.width.data if isinstance(type.element_type, IntegerType) else 64
    size, mask = max(width // 8, 1), (1 << width) - 1
    return b"".join((int(value) & mask).to_bytes(size, "little") for value in numbers)
