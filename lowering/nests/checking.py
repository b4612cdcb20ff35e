"""The rules for the levels of a kernel with groups."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import FOR, GROUP, LANE, Schedule
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.nests.kinds import KINDS
from stepwell.lowering.nests.steps import Step, steps_of
from stepwell.transforms.passes import fail


def check(function: kernel.FuncOp, ops: Sequence[Structured], schedule: Schedule) -> None:
    """Refuse a schedule that the ops of a kernel cannot have."""
    groups = [level for level in schedule.levels if level.kind == GROUP]
    sizes = {level.loop: level.step for level in groups if not level.parts}
    for number, op in enumerate(ops):
        if groups[0].parts and not op.carried:
            continue
        inner = schedule.of(number)[len(groups) :]
        steps = [Step(level, 0) for level in groups] + steps_of(inner, sizes)
        for step in steps:
            if step.loop >= len(op.reductions):
                fail(function, f"'{step.level}': op {number} has no loop d{step.loop}")
            if step.kind not in KINDS:
                fail(function, f"'{step.level}' does not go with groups")
            if said := KINDS[step.kind].check(op, step):
                fail(function, f"'{step.level}': {said}")
        _check_actions(function, op, steps)
        if len(ops) > 1 and any(level.actions for level in schedule.levels):
            fail(function, "operands are staged at the levels of one op", "write 'op N [...]'")
        _check_ends(function, number, op, steps)


def _check_actions(function: kernel.FuncOp, op: Structured, steps: Sequence[Step]) -> None:
    """Check that operands are staged by all lanes together, and that there is no other action."""
    first = next((n for n, step in enumerate(steps) if step.kind == LANE), len(steps))
    for at, step in enumerate(steps):
        for action in step.level.actions:
            if action.name != "stage":
                fail(function, f"'{step.level}': groups know no '{action.name}'")
            if step.kind not in (GROUP, FOR) or at > first:
                fail(function, f"'{step.level}': operands are staged before there are lanes")
            if action.number is None or action.number >= len(op.inputs):
                fail(function, f"'{step.level}': the op has {len(op.inputs)} operands to be read")


def _check_ends(
    function: kernel.FuncOp, number: int, op: Structured, steps: Sequence[Step]
) -> None:
    """Check that the levels of every loop end in single iterations or a vector."""
    for k in range(len(op.reductions)):
        sizes = [s.size for s in steps if s.loop == k and s.kind != "vector"]
        vectors = [s.size for s in steps if s.loop == k and s.kind == "vector"]
        if not sizes and not vectors:
            fail(function, f"no level of op {number} walks through d{k}")
        if min(sizes, default=0) != (vectors or [1])[0] and not (vectors and not sizes):
            fail(function, f"the levels of d{k} of op {number} leave more than one iteration")
