"""Levels written at random are refused, or are obeyed and compute what they should.

`EXAMPLES=300 SEED=5 python -m pytest test/unit/test_random_levels.py` tries so many.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.utils.exceptions import VerifyException

import stepwell as sw
from stepwell.analysis.levels import schedule_of
from stepwell.core.diagnostics import CompileError
from stepwell.core.machine import Machine
from stepwell.core.targets import machine_for
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Action, Level, Schedule, schedule_from
from stepwell.driver.lowering import Lowering, Source
from stepwell.transforms.kernels.schedule import Schedule as SchedulePass

EXAMPLES = int(os.environ.get("EXAMPLES", "40"))
COMPILED = EXAMPLES // 8
"""Of those that are accepted so many are compiled."""
SEED = int(os.environ.get("SEED", "1"))
PRODUCT = """\
func.func @main(%a: tensor<37x29xf32>, %b: tensor<29x45xf32>) -> tensor<37x45xf32> {
  %0 = nd.matmul %a, %b : (tensor<37x29xf32>, tensor<29x45xf32>) -> tensor<37x45xf32>
  %1 = nd.tanh %0 : tensor<37x45xf32>
  func.return %1 : tensor<37x45xf32>
}
"""
TOTAL = """\
func.func @main(%a: tensor<3050xf32>) -> tensor<f32> {
  %0 = nd.reduce_sum %a {axes = [0]} : tensor<3050xf32> -> tensor<f32>
  func.return %0 : tensor<f32>
}
"""
RANDOM = np.random.default_rng(0)
A, B, C = (RANDOM.uniform(-1, 1, s).astype(np.float32) for s in ((37, 29), (29, 45), 3050))
PROGRAMS = {"product": (PRODUCT, [A, B], np.tanh(A @ B)), "total": (TOTAL, [C], C.sum())}


def product_levels(random: Random) -> Schedule:
    """Levels that a product followed by another op may have, or nearly."""
    width = random.choice([1, 4, 8, 16])
    rows, vectors = random.randint(1, 6), random.randint(1, 4)
    row, column = rows * random.randint(1, 5), width * vectors * random.randint(1, 2)
    outer = random.choice(["parallel", "for"])
    levels = [Level(outer, 0, row), Level(random.choice([outer, "for"]), 1, column)]
    if random.random() < 0.6:
        actions = [Action("pack", 1, random.choice(["", "first"]))]
        actions += [Action("prefetch")] if random.random() < 0.3 else []
        levels.append(Level("for", 1, width * vectors))
        levels.append(Level("for", 2, random.choice([4, 8, 32]), actions=tuple(actions)))
    levels += [Level("for", 0, rows), Level("for", 1, width * vectors)]
    own = (Level("unroll", 0), Level("unroll", 1, width), Level("vector", 1, width))
    lists = [[*levels], [Level("for", 2), *own], [*own]]
    for each in lists:
        if random.random() < 0.2 and each:
            each.pop(random.randrange(len(each)))
    plain = [tuple(without_effect(each)) for each in lists]
    return Schedule(plain[0], {0: plain[1], 1: plain[2]})


def without_effect(levels: list[Level]) -> Iterator[Level]:
    """Yield the levels that have more than one step."""
    steps: dict[int, int] = {}
    for level in levels:
        if level.kind == "vector" and level.step == 1:
            continue
        if level.kind == "vector" or steps.get(level.loop) != level.step:
            yield level
        steps[level.loop] = level.step


def total_levels(random: Random) -> Schedule:
    """Levels that a sum over all elements may have, or nearly."""
    width, many = random.choice([1, 4, 8, 16]), random.randint(1, 4)
    levels = [Level("parallel", 0, parts=random.choice([2, 7, 32])), Level("for", 0, width * many)]
    levels += [Level("unroll", 0, width), Level("vector", 0, width)]
    return Schedule(tuple(without_effect(levels[random.randint(0, 1) :])))


def obeyed(text: str, levels: Schedule, machine: Machine) -> str | None:
    """Return a module whose kernel has these levels; None where they are refused."""
    descent = Lowering.of(Source(text, "<test>", "main", machine))
    descent.kernels_outlined()
    (function,) = (op for op in descent.module.ops if isinstance(op, kernel.FuncOp))
    function.attributes["kernel.schedule"] = kernel.ScheduleAttr(levels)
    written = str(descent.module)
    try:
        SchedulePass().apply(Context(), descent.module)
    except (CompileError, VerifyException):
        return None
    assert schedule_of(function) == levels
    return written


@pytest.mark.parametrize("name", PROGRAMS)
def test_levels_at_random(name: str) -> None:
    random, machine = Random(f"{SEED} {name}"), machine_for("c")
    text, arrays, want = PROGRAMS[name]
    compiled = 0
    for _ in range(EXAMPLES):
        levels = (product_levels if name == "product" else total_levels)(random)
        try:
            assert schedule_from(str(levels)) == levels
        except VerifyException:
            continue
        scheduled = obeyed(text, levels, machine)
        if scheduled is not None and compiled < COMPILED:
            compiled += 1
            try:
                program = sw.compile(scheduled)
            except CompileError as error:
                raise AssertionError(f"{levels} is accepted, but {error}") from error
            got = program(*arrays)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5, err_msg=str(levels))
    assert compiled == COMPILED
