"""A program whose loops permute, keep, replace and update tensors; NumPy runs it.

It is a tree of statements on square matrices. Results may stand for arguments that are updated in
place. `on_host` and `on_nd` write it as text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
N = 4
T, ROW = f"tensor<{N}x{N}xf32>", f"tensor<1x{N}xf32>"


@dataclass
class Launch:
    """``result`` = a kernel of ``inputs``, perhaps added to what ``into`` holds."""

    kernel: str
    result: str
    inputs: list[str]
    into: str = ""


@dataclass
class Row:
    """``result`` = ``into`` with its row ``to`` replaced by row ``at`` of ``source``."""

    result: str
    into: str
    to: str
    source: str
    at: str


@dataclass
class Loop:
    """A loop with a counter: of so many iterations, or as many as an argument says.

    Where ``test`` is set it is a while whose first region has statements too, and hands on
    ``given``, named ``names`` in the second one, instead of what is carried.
    """

    results: list[str]
    slots: list[str]
    inits: list[str]
    count: int | str
    body: list[Statement]
    yields: list[str]
    counter: str
    test: list[Statement] | None = None
    given: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])


@dataclass
class Branch:
    """One side or the other, as a counter is odd or even, or an argument."""

    results: list[str]
    of: str
    sides: tuple[list[Statement], list[Statement]]
    yields: tuple[list[str], list[str]]


Statement = Launch | Row | Loop | Branch


@dataclass
class Program:
    """A function of ``arguments`` and of two integers, which the run alone knows."""

    arguments: list[str]
    body: list[Statement]
    results: list[str]
    into: dict[int, int]
    """For results that replace arguments: which, by numbers."""


class Writer:
    """Draws a program.

    rows : loops often replace several rows of what they carry and keep the others
    """

    def __init__(self, seed: int, tests: bool = True, rows: bool = False) -> None:
        self.random, self.tests, self.rows = random.Random(seed), tests, rows
        self.fresh = 0
        self.loops = 0

    def name(self, stem: str = "v") -> str:
        self.fresh += 1
        return f"%{stem}{self.fresh}"

    def program(self) -> Program:
        r = self.random
        arguments = [f"%x{k}" for k in range(r.randint(1, 3))]
        known = list(arguments)
        body = self.statements(known, [], r.randint(1, 4), 0)
        if not self.loops:
            body.append(self.loop(known, [], 0))
        recent = known[-3:]
        results = [r.choice(recent if r.random() < 0.7 else known) for _ in range(r.randint(1, 3))]
        into = {}
        for argument in range(len(arguments)):
            free = [n for n in range(len(results)) if n not in into]
            if free and r.random() < 0.4:
                into[r.choice(free)] = argument
        return Program(arguments, body, results, into)

    def statements(
        self, known: list[str], counters: list[str], count: int, depth: int
    ) -> list[Statement]:
        """Draw statements; what they make joins ``known``."""
        return [self.statement(known, counters, depth) for _ in range(count)]

    def statement(self, known: list[str], counters: list[str], depth: int) -> Statement:
        r, form = self.random, self.random.random()
        if form < 0.25 and depth < 3 and self.loops < 4:
            return self.loop(known, counters, depth)
        if form < 0.35 and depth < 3:
            return self.branch(known, counters, depth)
        a, b, y = r.choice(known), r.choice(known), self.name()
        known.append(y)
        if form < 0.55:
            return Row(y, a, self.index(counters), b, self.index(counters))
        kernel = r.choice(["double", "flip", "add", "sum", "more", "fill"])
        inputs = {"add": [a, b], "sum": [a, b], "fill": []}.get(kernel, [a])
        return Launch(kernel, y, inputs, b if kernel == "more" else "")

    def index(self, counters: list[str]) -> str:
        r = self.random
        return r.choice([str(r.randrange(N)), *counters, *counters])

    def ends(self, own: list[str], known: list[str], count: int) -> list[str]:
        """Draw what a region hands on: its arguments in any order, new values, old ones."""
        r = self.random
        if own and len(own) == count and r.random() < 0.35:
            ends = list(own)
            r.shuffle(ends)
        else:
            ends = [r.choice(own or known) for _ in range(count)]
        new = [v for v in known if v not in own]
        for k in range(count):
            if r.random() < 0.45:
                ends[k] = r.choice(new[-4:] if new and r.random() < 0.85 else known)
        return ends

    def loop(self, known: list[str], counters: list[str], depth: int) -> Loop:
        r = self.random
        self.loops += 1
        count = r.randint(1, 3)
        slots = [self.name("s") for _ in range(count)]
        inits = [r.choice(known) for _ in range(count)]
        counter = self.name("i")
        times = r.choice([0, 1, 2, 3, "%k0", "%k0", "%k1"])
        test, given, names = None, list(slots), list(slots)
        inside = [*known, *slots]
        if r.random() < 0.2:
            test = []
        elif r.random() < 0.25 and self.tests:
            test = self.statements(first := [*inside], [*counters, counter], r.randint(0, 1), 9)
            given = self.ends(slots, first, count)
            names = [self.name("t") for _ in range(count)]
            inside = [*known, *names]
        body = self.statements(inside, [*counters, counter], r.randint(0, 3), depth + 1)
        yields = self.ends(names, inside, count)
        if self.rows and r.random() < 0.7:
            slot = r.randrange(count)
            body += (replaced := self.replaced_rows(names[slot], inside))
            yields[slot] = replaced[-1].result
        results = [self.name("r") for _ in range(count)]
        known += results
        return Loop(results, slots, inits, times, body, yields, counter, test, given, names)

    def replaced_rows(self, value: str, known: list[str]) -> list[Row]:
        """Draw rows of ``value`` that take the place of others, some of the same number."""
        r, found = self.random, list[Row]()
        for to in r.sample(range(N), r.randint(2, N)):
            row = Row(
                self.name(), value, str(to), r.choice(known), str(r.choice([to, r.randrange(N)]))
            )
            value = row.result
            found.append(row)
        return found

    def branch(self, known: list[str], counters: list[str], depth: int) -> Branch:
        r = self.random
        count = r.randint(1, 2)
        of = r.choice([*counters, *counters, "%k0", "%k1"])
        sides: list[list[Statement]] = []
        yields: list[list[str]] = []
        for _ in range(2):
            inside = list(known)
            sides.append(self.statements(inside, counters, r.randint(0, 2), depth + 1))
            yields.append([r.choice(inside[-4:]) for _ in range(count)])
        results = [self.name("b") for _ in range(count)]
        known += results
        return Branch(results, of, (sides[0], sides[1]), (yields[0], yields[1]))


# -- by NumPy

HALF = np.float32(0.5)


def kernel(name: str, inputs: Sequence[Matrix], into: Matrix | None) -> Matrix:
    """Return what a kernel computes."""
    match name:
        case "double":
            return inputs[0] * HALF + 1
        case "flip":
            return inputs[0].T + 1
        case "add" | "sum":
            x, y = inputs
            return (x + y) * HALF if name == "add" else (x + y + y.T) * HALF
        case "more":
            assert into is not None
            return (inputs[0] + into) * HALF
        case _:
            return np.ones((N, N), np.float32)


@dataclass
class _Run:
    """Runs statements."""

    values: dict[str, Any]

    def number(self, text: int | str) -> int:
        """Return an integer, or the one that a name stands for."""
        return int(self.values.get(str(text), text))

    def of(self, names: Sequence[str]) -> list[Matrix]:
        """Return what names stand for."""
        return [self.values[v] for v in names]

    def bind(self, names: Sequence[str], values: Sequence[Matrix]) -> None:
        """Let names stand for values."""
        self.values.update(zip(names, values, strict=True))

    def statements(self, rows: list[Statement]) -> None:
        """Run statements in order."""
        for row in rows:
            match row:
                case Launch():
                    into = self.values[row.into] if row.into else None
                    self.values[row.result] = kernel(row.kernel, self.of(row.inputs), into)
                case Row():
                    made = self.values[row.into].copy()
                    made[self.number(row.to)] = self.values[row.source][self.number(row.at)]
                    self.values[row.result] = made
                case Branch():
                    side = 0 if self.number(row.of) % 2 else 1
                    self.statements(row.sides[side])
                    self.bind(row.results, self.of(row.yields[side]))
                case Loop():
                    self.loop(row)

    def loop(self, row: Loop) -> None:
        """Run a loop."""
        carried, i = self.of(row.inits), 0
        while True:
            self.bind(row.slots, carried)
            self.values[row.counter] = i
            if row.test is not None:
                self.statements(row.test)
                carried = self.of(row.given)
            if i >= self.number(row.count):
                break
            self.bind(row.names, carried)
            self.statements(row.body)
            carried, i = self.of(row.yields), i + 1
        self.bind(row.results, carried)


def run(program: Program, inputs: Sequence[Matrix], numbers: Sequence[int]) -> list[Matrix]:
    """Return what the program gives."""
    values: dict[str, Any] = {f"%k{k}": n for k, n in enumerate(numbers)}
    runs = _Run({**values, **dict(zip(program.arguments, inputs, strict=True))})
    runs.statements(program.body)
    return [np.array(v) for v in runs.of(program.results)]


def inputs_of(program: Program, seed: int) -> tuple[list[Matrix], list[int]]:
    """Return arrays and integers for a program."""
    random = np.random.default_rng(seed)
    arrays = [random.integers(0, 1 << 12, (N, N)).astype(np.float32) for _ in program.arguments]
    return arrays, [int(n) for n in random.integers(0, 3, 2)]


def types(values: Sequence[str]) -> str:
    """Return the types of so many matrices."""
    return ", ".join([T] * len(values))


def signature(program: Program) -> str:
    """Spell the first line of the function."""
    arguments = [f"{a}: {T}" for a in program.arguments] + ["%k: tensor<2xi64>"]
    told = [
        T + (f" {{nd.into = {program.into[n]} : i64}}" if n in program.into else "")
        for n in range(len(program.results))
    ]
    return f"func.func @main({', '.join(arguments)}) -> ({', '.join(told)}) {{"
