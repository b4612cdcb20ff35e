"""Choose vectors for the loops of scalar code; recognise kernels that are one full reduction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import AnyFloat, UnitAttr

from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.schedule.vectors import Loops


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
            lanes = min(
                machine.vector_bits // max(_widths(op, name), default=machine.vector_bits),
                machine.vector_lanes,
            )
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


def is_full_reduction(ops: Sequence[Loops]) -> bool:
    """Whether every op is a full reduction by known combiners, or works on the results of these."""
    loops = [each for each in ops if each.parallel]
    return bool(loops) and all(
        each.free and not any(each.parallel) and not each.writes_along for each in loops
    )
