"""Check the ops that a pass leaves: every op must have a lowering.

The pass that lowers a floor fails over ops of that floor that it leaves, and suggests a lowering.
"""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, UnregisteredOp
from xdsl.dialects.linalg.ops import FillOp, GenericOp, IndexOp, YieldOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.dialects.types import place_of
from stepwell.driver.pipeline import STAGES, Stage

Introduced: TypeAlias = dict[type[Operation], str]
"""Maps a class of ops to the pass of another package that created the first of them."""

ANYWHERE = frozenset({"kernel.check", "kernel.callback", "kernel.stack"})
"""Ops that every floor below nd allows."""
_STRUCTURED = (GenericOp, FillOp, YieldOp, IndexOp)
"""The ops of linalg that kernels are made from."""


def is_foreign(thing: ModulePass | Operation) -> bool:
    """Whether the class of a pass or an op belongs to another package."""
    return type(thing).__module__.partition(".")[0] not in ("stepwell", "xdsl")


def load_dialects(ctx: Context, pass_: ModulePass) -> None:
    """Load the dialects that ``pass_`` declares, with the rules of their ops."""
    loaded = {dialect.name for dialect in ctx.loaded_dialects}
    for name in getattr(pass_, "dialects", ()):
        if name in loaded:
            continue
        if name not in ctx.registered_dialect_names:
            message = f"pass '{pass_.name}' declares the dialect '{name}', which nothing registers"
            help = "name it in all_dialects of the package's universe"
            raise CompileError(Diagnostic("error", message, help=help))
        ctx.load_registered_dialect(name)


def note_introduced(
    ctx: Context,
    module: ModuleOp,
    pass_: ModulePass,
    before: set[type[Operation]],
    into: Introduced,
) -> None:
    """Record the classes of ops that ``pass_`` created; fail over undeclared dialects."""
    loaded = {dialect.name for dialect in ctx.loaded_dialects}
    for op in module.walk():
        kind = type(op)
        if kind in before or kind in into or isinstance(op, UnregisteredOp):
            continue
        dialect = op.name.partition(".")[0]
        if dialect not in loaded and is_foreign(op):
            message = f"pass '{pass_.name}' makes {op.name}, a dialect it does not declare"
            help = f'write dialects = ("{dialect}",) in the class {type(pass_).__name__}'
            raise CompileError(Diagnostic("error", message, place_of(op), help=help))
        into[kind] = pass_.name


def check_left(stage: Stage, pass_: str, module: ModuleOp, introduced: Introduced) -> None:
    """Fail where ``pass_``, which lowers the floor above ``stage``, leaves an op of that floor."""
    fine: set[type[Operation]] = set()
    for op in module.walk():
        if type(op) in fine:
            continue
        if not _may_stay(op, stage):
            _complain(op, stage, pass_, introduced.get(type(op), ""))
        fine.add(type(op))


def _may_stay(op: Operation, stage: Stage) -> bool:
    dialect = op.name.partition(".")[0]
    if op.name in ANYWHERE:
        return True
    if dialect == "linalg" and stage.name != "structured":
        return isinstance(op, _STRUCTURED)
    return dialect in stage.leaves or (is_foreign(op) and _is_written(op))


def _is_written(op: Operation) -> bool:
    """Whether an op of a package is never lowered, because an emit rule prints it."""
    if has_tensors(op):
        return False
    return import_module("stepwell.lowering.emit").emit.get(type(op)) is not None


def has_tensors(op: Operation) -> bool:
    """Whether an op has a tensor operand or result."""
    return any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))


def _complain(op: Operation, stage: Stage, pass_: str, maker: str) -> NoReturn:
    created = f", which pass '{maker}' made" if maker else ""
    message = f"pass '{pass_}' leaves {op.name}{created}: nothing lowers it"
    raise CompileError(
        Diagnostic("error", message, place_of(op), help=_suggestion(op, stage, maker))
    )


def _suggestion(op: Operation, stage: Stage, maker: str) -> str:
    """Return a suggestion for lowering ``op``."""
    dialect = op.name.partition(".")[0]
    above = STAGES[STAGES.index(_named(stage)) - 1]
    if dialect == "linalg":
        return (
            "make it a linalg.generic: "
            "--pass 'linalg-generalize-named-ops@before:propagate-layouts'"
        )
    if maker and (dialect == "nd" or _has_lowering(op)):
        return f"place '{maker}' before nd-to-linalg, which lowers {op.name}"
    if is_foreign(op):
        kind = type(op).__name__
        rule = f"give {kind} a decomposition or a rule by @lower({kind}), or " * (
            stage.converts == "nd-to-linalg"
        )
        rule += f"write it in C by @emit({kind}), or " * (not has_tensors(op))
        return f"{rule}place a pass that lowers it: --pass 'PASS@before:{stage.converts}'"
    names = ", ".join(sorted(above.leaves))
    return f"write it in {names}, or place a pass that does: --pass 'PASS@before:{stage.converts}'"


def _named(stage: Stage) -> Stage:
    """Return the stage of `STAGES` with the same name; ``stage`` may have placed passes too."""
    return next(s for s in STAGES if s.name == stage.name)


def _has_lowering(op: Operation) -> bool:
    """Whether an op of a third party has a rule for lowering beside those of `nd`."""
    return import_module("stepwell.lowering.nd_to_linalg.table").lower.get(type(op)) is not None
