"""Vectors under a mask, which enables the first lanes of the last vector of a loop.

Other lanes are neither loaded nor stored; what is computed in them is dropped.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i1

from stepwell.analysis.levels.masks import is_harmless
from stepwell.analysis.structured import in_panels
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import element_of


def can_mask(plan: Plan, op: Structured, k: int, width: int) -> bool:
    """Whether vectors of ``op`` along loop ``k`` may be partly disabled.

    Lanes lie side by side or are one element, in every operand but images read by masks.
    """
    if width < 2 or not is_harmless(op.op):
        return False
    accesses = [a for a in (*op.inputs, *op.outputs) if not _is_masked(plan, a)]
    return all(
        access.buffer not in plan.padding
        and not plan.buffers[access.buffer].nontemporal
        and (lanes := lanes_at(access, k, width)) >= 0
        and (lanes == 0 or element_of(access.buffer) != i1)
        and in_panels(tuple(access.exprs), k) is None
        for access in accesses
    )


def _is_masked(plan: Plan, access: Access) -> bool:
    """Whether an access reads an image whose virtual padding masks tell apart."""
    padding = plan.padding.get(access.buffer)
    return padding is not None and padding.masked
