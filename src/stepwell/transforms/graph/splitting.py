"""The work of `split-derivatives` on one function.

It is imported when a function is split: it imports the rules of all derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
)
from xdsl.ir import Block, Operation, SSAValue

from stepwell.core.diagnostics import Diagnostic, is_heard, report
from stepwell.dialects.nd.gradients.keeping import choose, is_cheap, is_repeatable, listed
from stepwell.dialects.nd.gradients.reverse import reads
from stepwell.dialects.types import place_of, times_again
from stepwell.transforms.passes import fail


def split(function: func.FuncOp, part: str, counts: tuple[int, int]) -> None:
    """Keep one part of a function, "before" or "after".

    counts : of the last arguments and results, which belong to the part after
    """
    block = function.body.block
    ends = list(_terminator(block).operands)
    arguments, results = len(block.args) - counts[0], len(ends) - counts[1]
    if arguments < 0 or results < 0:
        fail(function, f"@{function.sym_name.data} has less than nd.later says")
    late = _late_values(block, arguments, ends[:results])
    if any(v in late for v in ends[:results]):
        fail(function, f"a result of the part before is made of the last {counts[0]} arguments")
    kept = _residuals(function, late, ends[results:])
    if part == "before":
        if is_heard():
            _remark_kept(function, kept)
        _return(block, [*ends[:results], *kept])
        _erase([op for op in block.ops if any(r in late for r in op.results) or _reads(op, late)])
        for argument in block.args[arguments:]:
            block.erase_arg(argument)
        _update_type(function, arguments, results)
    else:
        _keep_after(block, arguments, ends[results:], kept, late)
        _update_type(function, 0, 0)


def _terminator(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


def _reads(op: Operation, values: set[SSAValue]) -> bool:
    return any(v in values for v in reads(op))


def _late_values(block: Block, arguments: int, results: Sequence[SSAValue]) -> set[SSAValue]:
    """Return the values that depend on the late arguments, or are recomputed for those that do.

    results : the results of the part before
    """
    before = set(results)
    for op in reversed(list(block.ops)):
        if any(r in before for r in op.results):
            before.update(reads(op))
    late: set[SSAValue] = set(block.args[arguments:])
    for op in block.ops:
        again = times_again(op.location) and not any(r in before for r in op.results)
        if _reads(op, late) or again:
            late.update(op.results)
    return late


def _residuals(
    function: func.FuncOp, late: set[SSAValue], results: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return the residuals that the part before returns to the part after, in program order."""
    block = function.body.block
    needed = [
        v for op in block.ops if op is not block.last_op and _is_late(op, late) for v in reads(op)
    ]
    needed = [v for v in (*needed, *results) if v not in late]
    for again in (is_cheap, is_repeatable):
        kept = choose(needed, lambda v: False, lambda v: True, again)
        if kept is not None:
            created = [*block.args, *(r for op in block.ops for r in op.results)]
            return [v for v in created if v in kept]
    fail(function, "the second program needs a size that no array has")


def _is_late(op: Operation, late: set[SSAValue]) -> bool:
    return any(r in late for r in op.results) or _reads(op, late)


def _remark_kept(function: func.FuncOp, kept: Sequence[SSAValue]) -> None:
    said = f"the second program is passed {listed(kept)}"
    report(Diagnostic("remark", said, place_of(function)))


def _keep_after(
    block: Block,
    arguments: int,
    results: Sequence[SSAValue],
    kept: Sequence[SSAValue],
    late: set[SSAValue],
) -> None:
    """Keep only the ops that compute ``results`` from ``kept`` and the late arguments."""
    moved = [op for op in block.ops if op is not block.last_op and _is_late(op, late)]
    before = [op for op in block.ops if op is not block.last_op and op not in set(moved)]
    mapped: dict[SSAValue, SSAValue] = {}
    for number, value in enumerate(kept):
        mapped[value] = argument = block.insert_arg(value.type, arguments + number)
        argument.name_hint = value.name_hint
    wanted = {*(v for op in moved for v in reads(op)), *results} - mapped.keys()
    for op in _recomputed(before, wanted, set(kept)):
        copy = op.clone(mapped)
        block.insert_op_before(copy, moved[0] if moved else _terminator(block))
        for old, new in zip(op.results, copy.results, strict=True):
            mapped.setdefault(old, new)
    for each in (each for op in moved for each in op.walk()):
        for number, operand in enumerate(each.operands):
            each.operands[number] = mapped.get(operand, operand)
    _return(block, [mapped.get(v, v) for v in results])
    _erase(before)
    for argument in block.args[:arguments]:
        block.erase_arg(argument)


def _recomputed(
    before: Sequence[Operation], wanted: set[SSAValue], kept: set[SSAValue]
) -> list[Operation]:
    """Return the ops, in order, that are recomputed to define ``wanted``."""
    found: list[Operation] = []
    for op in reversed(before):
        if any(r in wanted for r in op.results):
            found.append(op)
            wanted.update(v for v in reads(op) if v not in kept)
    return found[::-1]


def _erase(ops: Sequence[Operation]) -> None:
    for op in reversed(ops):
        op.detach()
        op.erase()


def _return(block: Block, values: Sequence[SSAValue]) -> None:
    last = _terminator(block)
    new = func.ReturnOp(*values)
    new.location = last.location
    last.detach()
    last.erase()
    block.add_op(new)


def _update_type(function: func.FuncOp, arguments: int, results: int) -> None:
    """Update the function's type, and the attributes of its arguments and results, to its block.

    arguments, results : the numbers of leading ones whose attributes stay
    """
    block = function.body.block
    outputs = list(_terminator(block).operand_types)
    function.properties["function_type"] = FunctionType.from_lists(block.arg_types, outputs)
    for name, count, total in (
        ("arg_attrs", arguments, len(block.args)),
        ("res_attrs", results, len(outputs)),
    ):
        attributes = function.properties.get(name)
        if isinstance(attributes, ArrayAttr):
            rest = [DictionaryAttr({}) for _ in range(total - count)]
            function.properties[name] = ArrayAttr([*list(attributes)[:count], *rest])
