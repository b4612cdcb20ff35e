"""func and scf: terminators of bodies; types of arguments, yielded values and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.traits import IsTerminator

from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.types import refuse, require


def _check_yield(region: Region, wanted: Sequence[Attribute], what: str) -> None:
    """Refuse a region whose terminator is not a yield of these types."""
    block = region.blocks.last
    last = block.last_op if block is not None else None
    given = tuple(last.operand_types) if isinstance(last, scf.YieldOp) else ()
    if given != tuple(wanted):
        refuse(f"{what} yields {_listed(given)}, it must be {_listed(wanted)}")


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "nothing"


@checks(func.FuncOp)
def _function(op: func.FuncOp) -> None:
    """Refuse a body without a terminator; an unregistered op may be one."""
    for block in op.body.blocks:
        last = block.last_op
        if last is None:
            refuse("an empty block has no terminator: there must be func.return at least")
        if not (last.has_trait(IsTerminator, value_if_unregistered=True) or _is_opaque(last)):
            refuse(f"its body ends in {last.name}, which is no terminator")


def _is_opaque(op: Operation) -> bool:
    """Whether an op's class stands for any op."""
    return isinstance(op, UnregisteredOp) or op.name in ("test.op", "test.pureop")


@checks(scf.IfOp)
def _if(op: scf.IfOp) -> None:
    kinds = op.result_types
    _check_yield(op.true_region, kinds, "the first branch")
    if op.false_region.blocks:
        _check_yield(op.false_region, kinds, "the other branch")
    elif kinds:
        refuse("an scf.if that gives something has two branches")


@checks(scf.ForOp)
def _for(op: scf.ForOp) -> None:
    kinds = op.iter_args.types
    if tuple(op.result_types) != tuple(kinds):
        refuse(f"it carries {_listed(kinds)} and gives {_listed(op.result_types)}")
    if tuple(a.type for a in op.body.block.args[1:]) != tuple(kinds):
        refuse(f"its body must take the carried types, {_listed(kinds)}")
    _check_yield(op.body, kinds, "the body")


@checks(scf.WhileOp)
def _while(op: scf.WhileOp) -> None:
    carried = tuple(op.arguments.types)
    _check_arguments(op.before_region, carried, "the test")
    condition = op.before_region.blocks.last.last_op  # pyright: ignore[reportOptionalMemberAccess]
    if not isinstance(condition, scf.ConditionOp):
        refuse("the test ends in scf.condition")
    handed = tuple(condition.args.types)
    if handed != tuple(op.result_types):
        refuse(f"the test hands on {_listed(handed)}, it gives {_listed(op.result_types)}")
    _check_arguments(op.after_region, handed, "the body")
    _check_yield(op.after_region, carried, "the body")


def _check_arguments(region: Region, wanted: Sequence[Attribute], what: str) -> None:
    block = region.blocks.first
    if block is None or tuple(a.type for a in block.args) != tuple(wanted):
        refuse(f"{what} takes {_listed(wanted)}")


@checks(scf.ExecuteRegionOp)
def _execute_region(op: scf.ExecuteRegionOp) -> None:
    for block in op.region.blocks:
        if isinstance(block.last_op, scf.YieldOp):
            given = tuple(block.last_op.operand_types)
            require(
                given == tuple(op.result_types),
                "its results must have the types that its blocks yield",
            )


@checks(scf.IndexSwitchOp)
def _index_switch(op: Any) -> None:
    for region in op.regions:
        _check_yield(region, op.result_types, "each case")


@checks(scf.ParallelOp)
def _parallel(op: scf.ParallelOp) -> None:
    if tuple(op.result_types) != tuple(op.initVals.types):
        refuse(f"it starts from {_listed(op.initVals.types)} and gives {_listed(op.result_types)}")
