"""linalg: yielded values and results of structured ops."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.types import element, refuse


def _check(op: Any) -> None:
    """Refuse a structured op whose body or results do not match its operands."""
    targets = [value.type for value in op.outputs]
    for type in targets:
        if not isinstance(type, TensorType | MemRefType):
            refuse(f"a destination is a tensor or a buffer, not {type}")
    wanted = [type for type in targets if isinstance(type, TensorType)]
    if [value.type for value in op.results] != wanted:
        refuse("it gives a tensor of the type of each destination that is a tensor")
    _check_body(op, [value.type for value in (*op.inputs, *op.outputs)], targets)


def _check_body(op: Any, operands: list[Any], targets: list[Any]) -> None:
    block = op.body.block
    arguments = [a.type for a in block.args]
    if arguments != [element(type) for type in operands]:
        refuse("the body takes an element of each operand")
    last = block.last_op
    given = list(last.operand_types) if isinstance(last, linalg.YieldOp) else None
    if given is None:
        refuse("the body ends in linalg.yield")
    elements = [element(type) for type in targets]
    if given != elements:
        said = ", ".join(map(str, given)) or "nothing"
        refuse(f"the body yields {said}, but the destinations' elements are {_listed(elements)}")


def _listed(types: list[Any]) -> str:
    return ", ".join(map(str, types))


@checks(
    *(linalg.GenericOp, linalg.AddOp, linalg.SubOp, linalg.MulOp, linalg.MaxOp, linalg.MinOp),
    *(linalg.ExpOp, linalg.LogOp, linalg.SqrtOp, linalg.CopyOp),
)
def _structured(op: Any) -> None:
    _check(op)


@checks(linalg.TransposeOp)
def _transpose(op: linalg.TransposeOp) -> None:
    axes = op.permutation.get_values()
    if sorted(axes) != list(range(len(axes))):
        refuse(f"a permutation names each of {len(axes)} axes once, not {list(axes)}")
    _check(op)


@checks(linalg.FillOp)
def _fill(op: linalg.FillOp) -> None:
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        refuse("it fills one destination with one number")
    if op.inputs[0].type != element(op.outputs[0].type):
        refuse(f"{op.outputs[0].type} is not filled with {op.inputs[0].type}")
    _check(op)


@checks(linalg.MatmulOp)
def _product(op: linalg.MatmulOp) -> None:
    _check(op)
    maps = [each.data for each in op.get_indexing_maps()]
    if not all(isinstance(e, AffineDimExpr) for map in maps for e in map.results):
        refuse("its operands are read along loops, at each step one element further")
    total, *_ = op.body.block.last_op.operands  # pyright: ignore[reportOptionalMemberAccess]
    arguments = op.body.block.args
    added = total.owner.operands if isinstance(total.owner, _SUMS) else ()
    products = [v.owner for v in added if v is not arguments[2]]
    if len(products) != 1 or not isinstance(products[0], _PRODUCTS):
        refuse("the body adds a product to what is there")
    if {_widened(v) for v in products[0].operands} != {arguments[0], arguments[1]}:
        refuse("the body multiplies an element of each operand")


_SUMS = (arith.AddfOp, arith.AddiOp, arith.OrIOp)
_PRODUCTS = (arith.MulfOp, arith.MuliOp, arith.AndIOp)


def _widened(value: SSAValue) -> SSAValue:
    """Return the operand of a conversion, or the value itself."""
    op = value.owner
    return op.operands[0] if isinstance(op, Operation) and len(op.operands) == 1 else value


@checks(linalg.BroadcastOp, linalg.ReduceOp)
def _moved(op: Any) -> None:
    source, target = op.input.type, op.init.type
    wanted = [target] if isinstance(target, TensorType) else []
    if [value.type for value in op.results] != wanted:
        refuse("it gives a tensor of the type of its destination, where that is a tensor")
    kinds = [element(source), element(target)]
    if kinds[0] != kinds[1] and isinstance(op, linalg.BroadcastOp):
        refuse(f"{source} and {target} have different elements")
    block = op.regions[0].block
    last = block.last_op
    given = list(last.operand_types) if isinstance(last, linalg.YieldOp) else None
    if given != kinds[1:] or [a.type for a in block.args] != kinds:
        refuse(f"the body takes {_listed(kinds)} and yields {kinds[1]}")


@checks(linalg.IndexOp)
def _index(op: linalg.IndexOp) -> None:
    above = op.parent_op()
    if not isinstance(above, linalg.GenericOp):
        return
    loops = len(above.iterator_types.data)
    if not 0 <= op.dim.value.data < loops:
        refuse(f"there is no loop {op.dim.value.data}: there are {loops}, counted from 0")
