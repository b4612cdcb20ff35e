"""Replace the many small products that a loop accumulates by one large product.

Before:  %w = nd.scan (%s = %zero) over (%x = %xs, %g = %gs) {
           %p = nd.dot_general %x, %g contract [0] x [0]
           %t = nd.add %s, %p
           nd.yield %t }
After:   %p = nd.dot_general %xs, %gs contract [0, 1] x [0, 1]
         %w = nd.add %zero, %p

The pass rewrites scans that accumulate products of operands that they iterate over or stack, or
could stack in no more memory than the accumulator takes. Afterwards the operands of all steps are
multiplied at once, behind the loop. The backward pass of a recurrent network consists of such
products; it would otherwise read and write the gradient of its weights in each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.arithmetic import AddOp
from stepwell.dialects.nd.contraction import DotGeneralOp
from stepwell.dialects.nd.control import ScanOp, YieldOp
from stepwell.dialects.nd.reduction import ReduceSumOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.types import dtype
from stepwell.transforms.passes import Numerics, Pass

Summed = DotGeneralOp | ReduceSumOp


@dataclass(frozen=True)
class SumAfterLoops(Pass):
    """Accumulate the products of a loop in one product behind the loop.

    Before:
        %w = nd.scan (%s = %zero) over (%x = %xs, %g = %gs) : ... {
          %p = nd.dot_general %x, %g contract [0] x [0] : ...
          %t = nd.add %s, %p : tensor<8x4xf32>
          nd.yield %t : tensor<8x4xf32>
        }
    After:
        %p = nd.dot_general %xs, %gs contract [0, 1] x [0, 1] : ...
        %w = nd.add %zero, %p : tensor<8x4xf32>
    Afterwards: no scan accumulates products of values that it iterates over or stacks.
    """

    name = "sum-after-loops"
    one_block = True
    numerics: ClassVar[Numerics] = "reassociating"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every scan, nested ones first."""
        scans = [each for each in op.walk() if isinstance(each, ScanOp)]
        for scan in reversed(scans):
            found = {k: s for k in range(len(scan.carried)) if (s := _sum_of(scan, k)) is not None}
            if found:
                _move(scan, found)


def _sum_of(scan: ScanOp, k: int) -> Summed | None:
    """Return the accumulation in carried value ``k``, None where it must stay in the loop."""
    block = scan.body.block
    argument = block.args[k]
    ends = _ends(block)
    total = ends[k].owner
    if not isinstance(total, AddOp) or not _used_once(argument) or not _used_once(ends[k]):
        return None
    if argument is total.a:
        summand = total.b
    elif argument is total.b:
        summand = total.a
    else:
        return None
    created = summand.owner
    if not isinstance(created, DotGeneralOp | ReduceSumOp) or created.parent is not block:
        return None
    if not _used_once(summand) or not all(_varies(v, scan) for v in created.operands):
        return None
    stacked = set(ends[len(scan.carried) :])
    more = [v for v in created.operands if v not in stacked and _slice_of(v, scan) is None]
    sizes = [_bytes(v) for v in more]
    if any(size is None for size in sizes):
        return None
    room = _bytes(argument)
    return created if not more or (room is not None and sum(filter(None, sizes)) <= room) else None


def _ends(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    assert isinstance(last, YieldOp)
    return last.operands


def _used_once(value: SSAValue) -> bool:
    return value.first_use is not None and value.has_one_use()


def _varies(value: SSAValue, scan: ScanOp) -> bool:
    """Whether ``value`` is defined in the body of ``scan``, not captured."""
    block = value.owner if isinstance(value, BlockArgument) else value.owner.parent
    return block is scan.body.block


def _slice_of(value: SSAValue, scan: ScanOp) -> SSAValue | None:
    """Return the tensor of which ``value`` is the current slice, if the scan iterates over one."""
    first = len(scan.carried)
    if isinstance(value, BlockArgument) and value.index >= first:
        return scan.xs[value.index - first]
    return None


def _bytes(value: SSAValue) -> int | None:
    """Return the bytes of ``value``, None where they are dynamic."""
    shape = shape_of(value)
    return None if DYNAMIC in shape else prod(shape) * dtype(element(value)).bytes


def _move(scan: ScanOp, found: dict[int, Summed]) -> None:
    """Move the accumulations ``found``, keyed by carried value, behind ``scan``."""
    block, ends = scan.body.block, list(_ends(scan.body.block))
    count = len(scan.carried)
    stacked = ends[count:]
    for created in found.values():
        for value in created.operands:
            if value not in stacked and _slice_of(value, scan) is None:
                stacked.append(value)
    kept = [k for k in range(count) if k not in found]
    last = block.last_op
    assert last is not None
    new_last = YieldOp([*(ends[k] for k in kept), *stacked])
    new_last.location = last.location
    block.insert_op_before(new_last, last)
    _erase(last)
    for k, created in found.items():
        total = ends[k].owner
        assert isinstance(total, Operation)
        _erase(total)
        created.detach()
        block.erase_arg(block.args[k - sum(n < k for n in found)])
    body: Region = scan.detach_region(scan.body)
    new = ScanOp(
        [scan.carried[k] for k in kept],
        list(scan.xs),
        body,
        length=scan.steps or (scan.length.value.data if scan.length is not None else None),
        sizes=list(scan.sizes),
        reverse=scan.reverse is not None,
    )
    new.location = scan.location
    new.attributes = dict(scan.attributes)
    around = scan.parent
    assert around is not None
    around.insert_op_before(new, scan)
    rows = dict(zip(stacked, new.stacked, strict=True))
    results: list[SSAValue] = list(new.outputs[: len(kept)])
    for k in sorted(found):
        results.insert(k, _behind(scan, new, k, found[k], rows))
    results += new.outputs[len(kept) : len(kept) + len(scan.stacked)]
    for old, now in zip(scan.outputs, results, strict=True):
        if old.name_hint is not None:
            now.name_hint = old.name_hint
        old.replace_all_uses_with(now)
    for created in found.values():
        created.erase()
    _erase(scan)


def _behind(
    scan: ScanOp, new: ScanOp, k: int, created: Summed, rows: Mapping[SSAValue, SSAValue]
) -> SSAValue:
    """Write the accumulation of carried value ``k`` of ``scan`` behind the loop."""

    def whole(value: SSAValue) -> SSAValue:
        if (row := rows.get(value)) is not None:
            return row
        assert isinstance(value, BlockArgument)
        return new.xs[value.index - len(new.carried)]

    if isinstance(created, DotGeneralOp):
        (bx, bw), (cx, cw) = created.batch, created.contract
        batch = [a + 1 for a in bx], [a + 1 for a in bw]
        contract = [0, *(a + 1 for a in cx)], [0, *(a + 1 for a in cw)]
        summed: Summed = DotGeneralOp(
            whole(created.x), whole(created.w), batch, contract, created.dtype
        )
    else:
        summed = ReduceSumOp(whole(created.x), [0, *(a + 1 for a in axes(created.axes))])
    total = AddOp(scan.carried[k], summed.y)
    around = scan.parent
    assert around is not None
    for op in (summed, total):
        op.location = created.location
        around.insert_op_before(op, scan)
    summed.y.name_hint = created.y.name_hint
    return total.y


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
