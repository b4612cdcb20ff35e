"""Choose vectors for the loops of scalar code, and whether its tasks run in parallel."""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, IntegerAttr, TensorType, UnitAttr

from stepwell.analysis.levels import write_schedule
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.dialects.kernel.levels import PARALLEL, Level, Schedule
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import CHUNK

WORK_PER_ELEMENT = 16
"""Work assumed for each element that a task writes, at least."""


def choose_lanes(function: kernel.FuncOp, machine: Machine) -> None:
    """Write the number of lanes on loops that are marked as vectorisable.

    ``kernel.simd`` marks loops that accumulate their carried values, ``kernel.columns`` others.
    """
    for op in function.walk():
        if not isinstance(op, scf.ForOp):
            continue
        for name in ("kernel.simd", "kernel.columns"):
            if not isinstance(op.attributes.get(name), UnitAttr):
                continue
            lanes = machine.full_lanes(max(_widths(op, name), default=machine.vector_bits))
            if lanes > 1:
                op.attributes[name] = choices.spelled(lanes)


def _widths(loop: scf.ForOp, name: str) -> list[int]:
    """Return the bits of the floats that a loop carries or writes; [] for other types."""
    if name == "kernel.simd":
        types = [v.type for v in loop.iter_args]
    else:
        types = [op.scalar.type for op in loop.walk() if isinstance(op, tensor.InsertOp)]
    floats = [8 * t.compile_time_size for t in types if isinstance(t, AnyFloat)]
    return floats if len(floats) == len(types) else []


def share_tasks(function: kernel.FuncOp) -> None:
    """Parallelise loops with independent iterations that have enough work for two threads."""
    for op in function.body.block.ops:
        if not isinstance(op, scf.ForOp) or INDEPENDENT not in op.attributes:
            continue
        elements = sum(_elements(r.type) for r in op.results)
        if elements * WORK_PER_ELEMENT < 2 * CHUNK or _runs_once(op):
            explain_choice(function, lambda: "serial: the tasks are not worth a second thread")
            continue
        write_schedule(function, Schedule((Level(PARALLEL, 0),)))
        explain_choice(
            function, lambda: "its tasks have nothing to do with each other: threads share them"
        )


def _runs_once(op: scf.ForOp) -> bool:
    """Whether a loop has at most one iteration, the first being number 0."""
    end = op.ub.owner
    value = end.value if isinstance(end, arith.ConstantOp) else None
    return isinstance(value, IntegerAttr) and value.value.data < 2


def _elements(type: object) -> int:
    """Return the elements of a result; `CHUNK` where they are known at run time only."""
    if not isinstance(type, TensorType):
        return 0
    shape = type.get_shape()
    return CHUNK if DYNAMIC_INDEX in shape else prod(shape)
