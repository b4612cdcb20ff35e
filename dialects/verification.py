"""Verify a module: every op's constraints, and that definitions dominate uses."""

from __future__ import annotations

from typing import NoReturn

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.dialects.dominance import dominators
from stepwell.dialects.faults import in_words
from stepwell.dialects.types import place_of
from stepwell.dialects.upstream.unchanged import unchanged
from stepwell.dialects.upstream.verifiers import check, check_counts

_GRAPHS = frozenset({"builtin.module", "hw.module", "test.op", "test.graph_region"})
"""Ops whose regions are graph regions, known to xDSL; unregistered ops may have some too."""


def verify(module: ModuleOp) -> None:
    """Raise `CompileError` at the first op that violates a constraint or dominance."""
    with unchanged():
        _verify_op(module)
        for region in module.regions:
            _verify_region(region, set(), graph=True)


def _verify_op(op: Operation) -> None:
    try:
        check_counts(op)
        op.verify(verify_nested_ops=False)
        check(op)
    except VerifyException as error:
        _fail(op, f"'{op.name}': {_first_line(error)}")
    except (RecursionError, MemoryError):
        raise
    except Exception as error:  # a verifier failed on an op that it does not handle
        raise CompileError(
            Diagnostic("error", f"'{op.name}': {in_words(error)}", place_of(op))
        ) from error


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text.removeprefix("Operation does not verify: ").rstrip(".")


def _fail(op: Operation, message: str) -> NoReturn:
    raise CompileError(Diagnostic("error", message, place_of(op))) from None


def _is_graph(op: Operation) -> bool:
    """Whether uses may precede definitions in regions of ``op`` of one block."""
    return isinstance(op, UnregisteredOp) or op.name in _GRAPHS


def _verify_region(region: Region, visible: set[SSAValue], graph: bool = False) -> None:
    first = region.first_block
    if first is None:
        return
    if first.next_block is None:
        early = {value for op in first.ops for value in op.results} if graph else set()
        early -= visible
        visible |= early
        visible.difference_update(_verify_block(first, visible))
        visible -= early
        return
    _check_entry(region, first)
    children, unreached = dominators(region)
    waiting: list[Block | list[SSAValue]] = [first]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Block):
            waiting.append(_verify_block(at, visible))
            waiting += reversed(children[at])
        else:
            visible.difference_update(at)
    if unreached:  # in unreachable blocks every value counts as defined
        anything = {
            v for b in region.blocks for v in (*b.args, *(v for op in b.ops for v in op.results))
        }
        for block in unreached:
            _verify_block(block, visible | anything)


def _check_entry(region: Region, first: Block) -> None:
    """Refuse a branch to the entry block of a region, whose arguments come from outside."""
    for block in region.blocks:
        if block.last_op is not None and first in block.last_op.successors:
            _fail(block.last_op, f"'{block.last_op.name}' goes to the first block of its region")


def _verify_block(block: Block, visible: set[SSAValue]) -> list[SSAValue]:
    """Verify a block in which the values ``visible`` are defined; return those it adds to them."""
    added: list[SSAValue] = list(block.args)
    visible.update(added)
    for op in block.ops:
        for number, value in enumerate(op.operands):
            if value not in visible:
                _undominated(op, number, value)
        _verify_op(op)
        inside: set[SSAValue] = set() if op.has_trait(IsolatedFromAbove) else visible
        for region in op.regions:
            _verify_region(region, inside, _is_graph(op))
        visible.update(op.results)
        added.extend(op.results)
    return added


def _undominated(op: Operation, number: int, value: SSAValue) -> NoReturn:
    name = f"%{value.name_hint}" if value.name_hint else f"operand #{number}"
    error = Diagnostic("error", f"'{op.name}': {name} is used before it is defined", place_of(op))
    if isinstance(value, OpResult):
        if value.op.get_toplevel_object() is not op.get_toplevel_object():
            error = Diagnostic(
                "error", f"'{op.name}': {name} comes from an op outside the module", place_of(op)
            )
        else:
            error = error.with_note("it is defined here", place_of(value.op))
    raise CompileError(error)
