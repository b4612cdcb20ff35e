"""Random loops of plain Python over numbers and elements give what they give in NumPy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import stepwell as sw

SIZE = 10
INDICES = ("{v}", "k[{v}]", "9 - {v}", "t % 10", "(t + {v}) % 10", "3")
FLOATS = ("s", "x[{i}]", "y[{i}]", "m[{i}, {j}]", "t * 0.25", "max(x[{i}], s)", "(y[{i}] - s)")
INTEGERS = ("t", "k[{i}]", "{v}", "t // 3", "({v} * 3 - t)", "(t + k[{j}])")
STATEMENTS = (
    "s = {f} * 0.5",
    "t = {n} % 23",
    "x[{i}] = ({f} + {g}) * 0.5",
    "y[{j}] += 0.25 * {f}",
    "m[{i}, {j}] = {f} * {g} * 0.1",
    "k[{i}] = {n} % 10",
    "x[{i}], x[{j}] = x[{j}], x[{i}]",
)
RANGES = ("10", "1, 10", "9, -1, -1", "0, 10, 3", "{v}", "{v} + 1, 10", "{v}, -1, -1", "0")
CONDITIONS = ("{f} > {g}", "{n} < {o}", "{n} % 2 == 0", "k[{i}] == k[{j}]")


class Programs:
    """Draws programs."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def filled(self, text: str, counter: str) -> str:
        """Return a text with numbers, indices and expressions in its places."""
        choose = self.random.choice
        i, j = (choose(INDICES).format(v=counter) for _ in range(2))
        names = {"v": counter, "i": i, "j": j}
        f, g = (choose(FLOATS).format(**names) for _ in range(2))
        n, o = (choose(INTEGERS).format(**names) for _ in range(2))
        return text.format(**names, f=f, g=g, n=n, o=o)

    def body(self, counters: str, depth: int) -> list[str]:
        """Return some statements, indented; ``counters`` are those of the loops around."""
        rows: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            rows += self.statement(counters, depth)
        return ["    " + row for row in rows]

    def statement(self, counters: str, depth: int) -> list[str]:
        """Return a statement: a branch, a loop, or an assignment."""
        kind, counter = self.random.random(), counters[-1]
        if kind < 0.2 and depth < 3:
            condition = self.filled(self.random.choice(CONDITIONS), counter)
            rows = [f"if {condition}:", *self.body(counters, depth + 1)]
            other = ["else:", *self.body(counters, depth + 1)]
            return [*rows, *other] if self.random.random() < 0.6 else rows
        if kind < 0.4 and len(counters) < 3:
            inner = "ijl"[len(counters)]
            bounds = self.random.choice(RANGES).format(v=counter)
            return [f"for {inner} in range({bounds}):", *self.body(counters + inner, depth + 1)]
        return [self.filled(self.random.choice(STATEMENTS), counter)]

    def program(self) -> str:
        """Return a function of arrays and numbers."""
        rows = ["x, y, m, k = x.copy(), y.copy(), m.copy(), k.copy()"]
        for bounds in self.random.sample(["10", "1, 10", "9, -1, -1"], 2):
            rows += [f"for i in range({bounds}):", *self.body("i", 1)]
        rows.append("return x, y, m, k, s, t")
        return "def program(x, y, m, k, s, t):\n" + "".join(f"    {row}\n" for row in rows)


def written(text: str, path: Path) -> Callable[..., Any]:
    """Return the function that a file with that text defines."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 60))]
)
def test_as_in_numpy(seed: int, tmp_path: Path) -> None:
    program = written(Programs(seed).program(), tmp_path / f"program_{seed}.py")
    values = np.random.default_rng(seed)
    arrays = values.normal(size=SIZE), values.normal(size=SIZE), values.normal(size=(SIZE, SIZE))
    given = *arrays, values.integers(0, SIZE, SIZE)
    want = program(*given, np.float64(0.7), np.int64(5))
    for got, right in zip(sw.jit(program)(*given, 0.7, 5), want, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-12)
