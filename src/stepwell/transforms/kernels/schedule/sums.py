"""Choose vectors for the loops of scalar code that may have them; which kernels are one sum."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import AnyFloat, UnitAttr

from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.schedule.vectors import Loops, Vectors


def choose_lanes(function: kernel.FuncOp, machine: Vectors) -> None:
    """Write how many iterations run at once where a loop says that they may.

    ``kernel.simd`` is of loops that add up what they carry, ``kernel.columns`` of others.
    """
    for op in function.walk():
        if not isinstance(op, scf.ForOp):
            continue
        for name in ("kernel.simd", "kernel.columns"):
            if not isinstance(op.attributes.get(name), UnitAttr):
                continue
            lanes = min(machine.bits // max(_widths(op, name), default=machine.bits), machine.lanes)
            if lanes > 1:
                op.attributes[name] = choices.spelled(lanes)


def _widths(loop: scf.ForOp, name: str) -> list[int]:
    """Return how many bits the floats have that a loop carries, or writes; none beside others."""
    if name == "kernel.simd":
        types = [v.type for v in loop.iter_args]
    else:
        types = [op.scalar.type for op in loop.walk() if isinstance(op, tensor.InsertOp)]
    floats = [8 * t.compile_time_size for t in types if isinstance(t, AnyFloat)]
    return floats if len(floats) == len(types) else []


def is_full_reduction(ops: Sequence[Loops]) -> bool:
    """Whether every op reduces all it reads by known combiners, or works on what those leave."""
    loops = [each for each in ops if each.parallel]
    return bool(loops) and all(
        each.free and not any(each.parallel) and not each.writes_along for each in loops
    )
