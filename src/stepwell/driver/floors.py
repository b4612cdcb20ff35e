"""Determine the floor of a module, and with it the first stage of its lowering."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.guards import GUARDED
from stepwell.dialects import kernel
from stepwell.dialects.types import place_of
from stepwell.driver.check_lowered import ANYWHERE, has_tensors, is_foreign
from stepwell.driver.pipeline import STAGE_NAMES, STAGES

LOOPS = STAGE_NAMES.index("loops")


def first_stage(module: ModuleOp) -> int:
    """Return the number of the first stage to run; one more than the last if none is needed.

    A module of tensors begins with the first stage that allows all of its dialects. A module of
    buffers is past that: its structured ops, if any, become loops, and loops are printed.
    """
    found: dict[str, Operation] = {}
    for op in module.walk():
        if op.name in ANYWHERE and not any(isinstance(v.type, MemRefType) for v in op.operands):
            continue
        if not is_foreign(op) or has_tensors(op):  # a package's scalar ops may be on any floor
            found.setdefault(op.name.partition(".")[0], op)
    buffers = next((op for op in module.walk() if _is_on_buffers(op)), None)
    if buffers is not None:
        _check_no_tensors(module, buffers)
        return LOOPS if "linalg" in found else LOOPS + 1
    fitting = (k for k, stage in enumerate(STAGES) if stage.leaves >= found.keys())
    first = next(fitting, 0)
    lower = [op for name, op in found.items() if name in ("kernel", "linalg")]
    if "nd" in found and lower:
        message = f"{lower[0].name} stands beside {found['nd'].name}, but a module is of one floor"
        help = "write all of it in nd, or begin with 'stepwell compile --stage structured'"
        raise CompileError(Diagnostic("error", message, place_of(lower[0]), help=help))
    return first


def guard(module: ModuleOp, first: int) -> None:
    """Mark a module as guarded if its addresses are its own; an existing mark is replaced.

    first : the number of the first stage of its lowering
    """
    module.attributes.pop(GUARDED, None)
    if first >= LOOPS:
        module.attributes[GUARDED] = UnitAttr()


def _is_on_buffers(op: Operation) -> bool:
    if op.name.startswith(("memref.", "vector.")):
        return True
    if not isinstance(op, kernel.FuncOp | func.FuncOp):
        return False
    return any(isinstance(type, MemRefType) for type in _types(op))


def _check_no_tensors(module: ModuleOp, buffers: Operation) -> None:
    """Fail where a module of buffers also has tensors."""
    for op in module.walk():
        if any(isinstance(type, TensorType) for type in _types(op)):
            message = f"{op.name} has tensors, beside {buffers.name} of the floor of buffers"
            help = "a module is of one floor: tensors alone, or buffers alone"
            raise CompileError(Diagnostic("error", message, place_of(op), help=help))


def _types(op: Operation) -> Iterator[Attribute]:
    """Yield the types of an op's results and of its regions' arguments."""
    yield from (result.type for result in op.results)
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.args)
