"""Batches of every op, compiled: each example is as the reference says for it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pytest
from batched_rows import batched, draw
from op_rows import ROWS, Row

import stepwell as sw
from stepwell.testing.op_rows.row import Array, Case
from stepwell.testing.op_rows.run import reference
from stepwell.testing.op_rows.together import inside, outside

EXAMPLES, TOGETHER = 3, 45
"""How many examples a batch has, and how many rows a program."""


@dataclass(frozen=True)
class Member:
    """A row as a function of a program, along axes that are drawn."""

    row: Row
    number: int

    @property
    def case(self) -> Case:
        """The dtype and sizes that it is run for."""
        random = np.random.default_rng(crc32(self.row.name.encode()))
        return next(self.row.cases([self.row.dtypes[int(random.integers(len(self.row.dtypes)))]]))

    @property
    def axes(self) -> dict[str, int]:
        """For each argument the axis that counts examples, or -1."""
        random = np.random.default_rng(crc32(self.row.name.encode()) + 1)
        ranks = {n: t.replace("{e}", "f").count("x") for n, t in self.row.arguments.items()}
        drawn = {n: int(random.integers(-1, rank + 1)) for n, rank in ranks.items()}
        return drawn if max(drawn.values()) >= 0 else dict.fromkeys(drawn, 0)

    @property
    def function(self) -> str:
        """The function, and the types of its arguments and results."""
        count = 1 if isinstance(self.row.results, str) else len(self.row.results)
        text = batched(self.row, self.case.dtype, self.axes, [0] * count, EXAMPLES)
        return text.replace("func.func @main", f"func.func private @row{self.number}")

    @property
    def types(self) -> tuple[list[str], list[str]]:
        """Types of arguments and of results."""
        head = self.function.partition("(")[2].partition(" {")[0]
        inputs, _, outputs = head.partition(") -> (")
        return [a.split(": ")[1] for a in inputs.split(", ")], outputs.removesuffix(")").split(", ")

    def given(self, lanes: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the arguments of the batch."""
        found = [
            lanes[0][k] if axis == -1 else np.stack([lane[k] for lane in lanes], axis)
            for k, axis in enumerate(self.axes[n] for n in self.row.arguments)
        ]
        return [outside(x, type) for x, type in zip(found, self.types[0], strict=True)]


def program(members: Sequence[Member]) -> str:
    """Return a module whose @main calls all functions."""
    arguments, results, calls = list[str](), list[str](), list[str]()
    for m in members:
        inputs, outputs = m.types
        names = [f"%r{m.number}_x{k}" for k in range(len(inputs))]
        made = [f"%r{m.number}_y{k}" for k in range(len(outputs))]
        arguments += [f"{n}: {t}" for n, t in zip(names, inputs, strict=True)]
        results += made
        types = f"({', '.join(inputs)}) -> ({', '.join(outputs)})"
        calls.append(f"{', '.join(made)} = nd.call @row{m.number}({', '.join(names)}) : {types}")
    types = ", ".join(t for m in members for t in m.types[1])
    body = "\n  ".join([*calls, f"func.return {', '.join(results)} : {types}"])
    functions = "".join(m.function for m in members)
    return f"{functions}func.func @main({', '.join(arguments)}) -> ({types}) {{\n  {body}\n}}\n"


@pytest.mark.slow
def test_rows() -> None:
    rows = [r for r in ROWS if r.arguments and "index" not in r.arguments.values()]
    for first in range(0, len(rows), TOGETHER):
        members = [Member(r, first + k) for k, r in enumerate(rows[first : first + TOGETHER])]
        lanes = [draw(m.row, m.case, m.axes, EXAMPLES) for m in members]
        compiled = sw.compile(program(members))
        results = iter(
            compiled(*(x for m, ls in zip(members, lanes, strict=True) for x in m.given(ls)))
        )
        for m, examples in zip(members, lanes, strict=True):
            got = [inside(next(results), type) for type in m.types[1]]
            for k, arguments in enumerate(examples):
                case = Case(m.row, m.case.dtype, m.case.sizes, m.case.module, arguments)
                case.check([y[k] for y in got], reference(case))
