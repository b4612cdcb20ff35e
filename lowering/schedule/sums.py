"""Choose vectors for the loops of scalar code that may have them."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import AnyFloat, UnitAttr

from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.lowering.schedule.vectors import Vectors


def choose_lanes(function: kernel.FuncOp, machine: Vectors) -> None:
    """Write how many iterations run at once where a loop says that they may: ``kernel.simd``."""
    for op in function.walk():
        if not isinstance(op, scf.ForOp) or not isinstance(
            op.attributes.get("kernel.simd"), UnitAttr
        ):
            continue
        carried = [v.type for v in op.iter_args]
        widths = [8 * t.compile_time_size for t in carried if isinstance(t, AnyFloat)]
        if len(widths) < len(carried) or not widths:
            continue
        lanes = min(machine.bits // max(widths), machine.lanes)
        if lanes > 1:
            op.attributes["kernel.simd"] = choices.spelled(lanes)
