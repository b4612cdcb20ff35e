"""Choose the results of kernels that are written with nontemporal stores.

An ordinary store fetches the line that it overwrites. That costs nothing where the cache still
holds the line from the last call, and the next reader finds the result in the cache; but a launch
that touches more than the last-level cache holds finds nothing there and leaves little.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, tensor
from xdsl.ir import SSAValue

from stepwell.analysis.costs import operations
from stepwell.analysis.levels import (
    KernelLevels,
    levels_of_versions,
    rebuilt,
    schedule_of,
    write_all,
)
from stepwell.analysis.levels.stores import why_not_nontemporal
from stepwell.analysis.structured import tensor_bytes
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import PEEL, Schedule
from stepwell.transforms.kernels.schedule.reasons import explain_choice, spell_bytes
from stepwell.transforms.passes import remark

MIN_PART = 16
"""The smallest part of a launch's bytes, 1/16, for which nontemporal stores are chosen."""
MAX_OPS_PER_BYTE = 64
"""Operations per byte beyond which a kernel does not wait for memory."""


def store_past_caches(
    function: kernel.FuncOp, launches: Sequence[kernel.LaunchOp], machine: Machine
) -> None:
    """Mark the results that launches only return to the caller, or that are larger than the cache.

    A launch must touch more than the last-level cache holds. Results whose size is known at run
    time only are left out.
    """
    schedule = schedule_of(function)
    if not machine.l2 or not launches or schedule is None or schedule.has_groups:
        return
    sizes = [tensor_bytes(a) for a in function.body.block.args]
    touched, count = sum(sizes), len(function.function_type.outputs.data)
    if touched <= machine.l3:
        return
    first = len(sizes) - count
    chosen = [
        n
        for n, size in enumerate(sizes[first:])
        if size * MIN_PART >= touched
        and (size > machine.l3 or all(_is_only_returned(each.results[n]) for each in launches))
    ]
    if not chosen or operations(function) > MAX_OPS_PER_BYTE * touched:
        return
    old = levels_of_versions(function)
    new = [_with_nontemporal(each, chosen) for each in old]
    if new == [each.schedule for each in old]:
        return
    write_all(function, new)
    why = (
        f"{spell_bytes(sum(sizes[first + n] for n in chosen))} are written past the caches: a "
        f"launch touches {spell_bytes(touched)}, more than the {spell_bytes(machine.l3)} of the "
        "last one"
    )
    explain_choice(function, lambda: why)
    remark(function, f"@{function.sym_name.data}: {why}")


def _with_nontemporal(levels: KernelLevels, chosen: list[int]) -> Schedule:
    """Return levels in which results of a kernel, by number, have nontemporal stores."""
    end = levels.function.body.block.last_op
    assert isinstance(end, kernel.ReturnOp)
    lanes, values = list(levels.lanes), [end.operands[n] for n in chosen]
    for number, op in enumerate(levels.ops):
        found = lanes[number]
        outputs = tuple(
            output
            for output, value in enumerate(op.results)
            if value in values and not why_not_nontemporal(levels, op, found, output)
        )
        if outputs:  # no line is written twice
            tail = PEEL if found.axis >= levels.shared else found.tail
            lanes[number] = found._replace(tail=tail, nontemporal=outputs)
    return rebuilt(levels, lanes=lanes)


def _is_only_returned(value: SSAValue) -> bool:
    """Whether a result, or the tensor that it is inserted into, is only returned to the caller."""
    for use in value.uses:
        match use.operation:
            case func.ReturnOp() | tensor.DimOp():
                pass
            case (
                tensor.InsertSliceOp()
                | tensor.ExpandShapeOp()
                | tensor.CollapseShapeOp()
                | tensor.CastOp()
                | kernel.StackOp() as part
            ):
                if not _is_only_returned(part.results[0]):
                    return False
            case _:
                return False
    return True
