"""Schedules edited at random are refused, or compute what they did before.

`EXAMPLES=300 SEED=5 python -m pytest test/unit/test_altered_schedules.py` edits so many; under
`make sanitize` a step beyond any buffer is seen as well.
"""

from __future__ import annotations

import os
import re
from random import Random

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.source import Source
from stepwell.core.targets import machine_for
from stepwell.driver.lowering import stage_text

EXAMPLES = int(os.environ.get("EXAMPLES", "8"))
SEED = int(os.environ.get("SEED", "1"))
PRODUCT = """\
func.func @main(%a: tensor<37x29xf32>, %b: tensor<29x45xf32>) -> tensor<37x45xf32> {
  %0 = nd.matmul %a, %b : (tensor<37x29xf32>, tensor<29x45xf32>) -> tensor<37x45xf32>
  %1 = nd.relu %0 : tensor<37x45xf32>
  func.return %1 : tensor<37x45xf32>
}
"""
ROWS = """\
func.func @main(%a: tensor<?x50xf32>) -> tensor<?x50xf32> {
  %0 = nd.softmax %a {axis = 1} : tensor<?x50xf32>
  func.return %0 : tensor<?x50xf32>
}
"""
RANDOM = np.random.default_rng(0)
PROGRAMS = {
    "product": (PRODUCT, [(37, 29), (29, 45)]),
    "rows": (ROWS, [(23, 50)]),
}
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 33, 64, 100, 256, 1000)
LEVEL = re.compile(r"(?:parallel|for|unroll|vector) d\d+[^,\]{]*(?: \{[^}]*\})?")
KINDS, ACTIONS = (
    ("parallel", "for", "unroll", "vector"),
    ("pack 1", "prefetch", "grain N", "nontemporal N"),
)
MORE = (
    *("kernel.in_place = [array<i64: N, N>]",),
    *("kernel.shared = N : i64", "kernel.schedule = #kernel.schedule<[for dN by N]>"),
)


def edited(text: str, random: Random) -> str:
    """Alter a level, leave one off or add one, or write what says something of memory."""
    match = random.choice(list(LEVEL.finditer(text)))
    begin, end, way = match.start(), match.end(), random.random()
    if way < 0.5 and (numbers := list(re.finditer(r"\d+", match.group()))):
        number = random.choice(numbers)
        begin, end = begin + number.start(), begin + number.end()
        return f"{text[:begin]}{random.choice(NUMBERS)}{text[end:]}"
    if way < 0.65:
        return text[:begin] + text[end + 2 * text[end:].startswith(", ") :]
    if way < 0.85:
        level = f"{random.choice(KINDS)} d{random.randrange(4)} by {random.choice(NUMBERS)}"
        action = f" {{{random.choice(ACTIONS)}}}" if random.random() < 0.3 else ""
        new = re.sub("N", lambda _: str(random.choice(NUMBERS)), level + action)
        return f"{text[:begin]}{new}, {text[begin:]}"
    new = re.sub("N", lambda _: str(random.choice(NUMBERS)), random.choice(MORE))
    place = random.choice([m.end() for m in re.finditer(r"attributes \{", text)])
    return f"{text[:place]}{new}, {text[place:]}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_edited_schedules_are_refused_or_harmless(name: str) -> None:
    text, shapes = PROGRAMS[name]
    arrays = [RANDOM.standard_normal(shape).astype(np.float32) for shape in shapes]
    kernels = stage_text(Source(text, name, "main", machine_for("c")), "kernels")
    want = sw.compile(kernels)(*arrays)
    random = Random(SEED)
    for _ in range(EXAMPLES):
        changed = edited(kernels, random)
        try:
            program = sw.compile(changed)
        except sw.CompileError as error:
            assert "compiler bug" not in str(error), changed
            continue
        got = program(*arrays)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=changed)
