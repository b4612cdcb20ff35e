"""memref: buffers and their elements."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    i64,
)
from xdsl.traits import SymbolTable

from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.types import (
    check_axis,
    check_indices,
    is_float,
    is_integer,
    refuse,
)
from stepwell.dialects.upstream.verifiers.views import check_layout, ranked


@checks(memref.AllocOp, memref.AllocaOp)
def _allocate(op: Any) -> None:
    type = op.memref.type
    check_layout(type)
    symbols = 0
    if isinstance(type.layout, AffineMapAttr):
        symbols = type.layout.data.num_symbols
    elif isinstance(type.layout, StridedLayoutAttr):
        symbols = [*type.layout.strides.data, type.layout.offset].count(NoneAttr())
    if len(op.symbol_operands) != symbols:
        refuse(f"the layout of {type} has {symbols} symbols, {len(op.symbol_operands)} are given")


@checks(memref.LoadOp, memref.StoreOp)
def _access(op: Any) -> None:
    check_layout(op.memref.type)
    check_indices(op.memref.type, op.indices, "a buffer")


@checks(memref.DimOp)
def _dim(op: memref.DimOp) -> None:
    check_axis(op.source.type, op.index)


KINDS = 16
"""The number of kinds of atomic updates (arith's atomic_rmw_kind)."""
_OF_FLOATS = frozenset({0, 4, 5, 8, 9, 12})
_OF_INTEGERS = frozenset({1, 2, 6, 7, 10, 11, 13, 14, 15})


@checks(memref.AtomicRMWOp)
def _update(op: memref.AtomicRMWOp) -> None:
    buffer = ranked(op.memref)
    check_indices(buffer, op.indices, "a buffer")
    kind = op.kind
    if kind.type != i64 or not 0 <= kind.value.data < KINDS:
        refuse(f"there is no way {kind} to update an element")
    number = kind.value.data
    if buffer.element_type != op.value.type:
        refuse(f"an element of {buffer} is not updated with {op.value.type}")
    if (number in _OF_INTEGERS and not is_integer(op.value.type)) or (
        number in _OF_FLOATS and not is_float(op.value.type)
    ):
        refuse(f"an element of type {op.value.type} is not updated in way {number}")


@checks(memref.GetGlobalOp)
def _get_global(op: memref.GetGlobalOp) -> None:
    table = op.parent_op()
    while table is not None and not table.has_trait(SymbolTable):
        table = table.parent_op()
    found = SymbolTable.lookup_symbol(table, op.name_) if table is not None else None
    name = op.name_.string_value()
    if not isinstance(found, memref.GlobalOp):
        refuse(f"there is no memref.global @{name}")
    if found.type != op.memref.type:
        refuse(f"@{name} is {found.type}, not {op.memref.type}")


@checks(memref.GlobalOp)
def _global(op: memref.GlobalOp) -> None:
    value, type = op.initial_value, op.type
    if min(type.get_shape(), default=0) < 0:
        refuse(f"a global is a buffer of known sizes, not {type}")
    if isinstance(value, DenseIntOrFPElementsAttr):
        if not isinstance(value.type, TensorType):
            refuse(f"the value of @{op.sym_name.data} is a tensor, not {value.type}")
        same = value.get_shape() == type.get_shape()
        if not same or value.get_element_type() != type.element_type:
            refuse(f"@{op.sym_name.data} is {type}, its value is {value.type}")
