"""Random programs that write to arrays in place; NumPy running the same source is the oracle.

A program takes three arrays of two shapes and two integers that only the run knows. It assigns to
elements, rows, columns, blocks, steps and views of them, moves and exchanges rows, binds names to
other arrays, and does so in loops and branches. `python -m in_place_programs SEED SECONDS [FOLDER]`
looks for one that goes wrong; programs that do stay in the folder, a temporary one if none is told.
"""

from __future__ import annotations

import importlib.util
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import stepwell as sw

SHAPES = [(11, 13), (13, 11), (12, 12), (9, 1), (1, 9), (1, 1), (2, 17), (10, 10)]
LOOPS = "kt"


@dataclass
class Writer:
    """Writes one program."""

    random: random.Random
    shape: tuple[int, int]
    lines: list[str] = field(default_factory=list[str])
    depth: int = 1
    names: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    indices: dict[str, int] = field(default_factory=dict[str, int])
    """Integers that only the run knows: each is below the size it is told with."""
    fresh: int = 0
    rolled: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)

    def index(self, n: int) -> tuple[str, int | None]:
        """Return an index of an axis, and how many elements it means, None for one."""
        r = self.random
        known = [name for name, most in self.indices.items() if most <= n]
        form = r.random()
        if known and form < 0.35:
            return r.choice(known), None
        if form < 0.45 and n:
            return str(r.randrange(-n, n)), None
        if form < 0.6:
            return ":", n
        if form < 0.68 and n > 2:
            step = r.choice([2, 3, -1, -2])
            return f"::{step}", len(range(n)[::step])
        a = r.randrange(0, n)
        b = r.randrange(a, n) + 1
        return f"{a}:{b if r.random() < 0.7 or b == n else b - n}", b - a

    def place(self, wanted: tuple[int, ...] | None = None) -> tuple[str, tuple[int, ...]]:
        """Return part of an array, of a shape where one is wanted."""
        for _ in range(40):
            name = self.random.choice(list(self.names))
            found = [self.index(n) for n in self.names[name]]
            shape = tuple(n for _, n in found if n is not None)
            turned = len(shape) == 2 and self.random.random() < 0.15
            if turned:
                shape = shape[::-1]
            if wanted is None or shape == wanted:
                text = f"{name}[{', '.join(text for text, _ in found)}]"
                return (f"{text}.T" if turned else text), shape
        return "", ()

    def value(self, shape: tuple[int, ...], depth: int = 2) -> str:
        """Return an expression that can be assigned to what has a shape."""
        r = self.random
        if depth and r.random() < 0.65:
            a, b = self.value(shape, depth - 1), self.value(shape, depth - 1)
            return r.choice(
                [
                    f"({a} + {b}) * 0.5",
                    f"({a} - {b})",
                    f"np.minimum({a}, {b})",
                    f"-{a}",
                    f"{a} * 0.5",
                ]
            )
        if r.random() < 0.85:
            text, _ = self.place(shape)
            if text:
                return f"{text}.copy()" if r.random() < 0.1 else text
            if len(shape) == 2:
                text, _ = self.place(shape[1:])
                if text:
                    return text
        return str(r.choice([0.0, 1.0, -0.5, 2.0]))

    def statement(self) -> None:
        """Write one statement, or a loop or branch of several."""
        form = self.random.random()
        if form < 0.5:
            self.assignment()
        elif form < 0.6:
            self.move()
        elif form < 0.66 and self.depth == 1:
            self.fresh += 1
            text, shape = self.place()
            if shape:
                self.line(f"w{self.fresh} = {text}{self.choice('', '', '.copy()')}")
                self.names[f"w{self.fresh}"] = shape
        elif form < 0.72 and self.depth == 1:
            self.line(self.choice("A, B = B, A", "B = B.copy()", "A = A + 0.0"))
        elif form < 0.86 and self.depth < 3 and self.rolled < 3:
            self.loop()
        elif self.depth < 3:
            self.branch()

    def assignment(self) -> None:
        """Assign to part of an array, or change it in place."""
        text, shape = self.place()
        if not text.endswith(".T"):
            op = self.choice("=", "=", "=", "+=", "-=", "*=")
            self.line(f"{text} {op} {self.value(shape) if op != '*=' else '0.5'}")

    def move(self) -> None:
        """Move a row, or exchange two."""
        r = self.random
        name = r.choice([n for n, s in self.names.items() if len(s) == 2])
        n = self.names[name][0]
        i, j = (self.one(n) for _ in "ij")
        if r.random() < 0.4:
            self.line(f"{name}[{i}] = {name}[{j}]")
        elif r.random() < 0.6:
            self.fresh += 1
            self.line(f"kept{self.fresh} = {name}[{i}].copy()")
            self.line(f"{name}[{i}] = {name}[{j}]")
            self.line(f"{name}[{j}] = kept{self.fresh}")
        else:
            i, j = r.randrange(n), r.randrange(n)
            self.line(f"{name}[[{i}, {j}]] = {name}[[{j}, {i}]]")

    def one(self, n: int) -> str:
        known = [name for name, most in self.indices.items() if most <= n]
        return self.random.choice([*known, str(self.random.randrange(n))])

    def loop(self) -> None:
        free = [k for k in LOOPS if k not in self.indices]
        if not free:
            return
        self.rolled += 1
        n = self.random.choice([*self.shape, 9])
        head = self.choice(f"range({n})", f"range({n})", f"range({n - 1}, -1, -1)")
        self.line(f"for {free[0]} in {head}:")
        self.indices[free[0]] = n
        self.body()
        del self.indices[free[0]]

    def branch(self) -> None:
        text, _ = self.place(())
        self.line(f"if {text or 'v[0]'} > {self.choice('0.0', '0.5', 'v[0]')}:")
        self.body()
        if self.random.random() < 0.6:
            self.line("else:")
            self.body()

    def body(self) -> None:
        self.depth += 1
        before = len(self.lines)
        for _ in range(self.random.randrange(1, 4)):
            self.statement()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1


def program(seed: int) -> tuple[str, tuple[int, int]]:
    """Return the source of a function `f(A, B, v, i, j)`, and the shape of A and B."""
    r = random.Random(seed)
    shape = r.choice(SHAPES)
    w = Writer(r, shape, names={"A": shape, "B": shape, "v": shape[1:]})
    w.indices = {"i": shape[0], "j": min(shape)}
    for _ in range(r.randrange(2, 7)):
        w.statement()
    w.line(r.choice(["return A, B", "return A[0] + 0.0", "return None", "return B, A + v"]))
    return "\n".join(["import numpy as np", "", "", "def f(A, B, v, i, j):", *w.lines, ""]), shape


def oracle(text: str) -> str:
    """Return a program in which what is assigned is copied first.

    NumPy itself writes row by row where a row and a column meet in one element: of a one-dimensional
    place and value with different strides it does not look whether they overlap.
    """
    return re.sub(r"^( *\w+\[.*\]) = (.*)$", r"\1 = np.array(\2)", text, flags=re.MULTILINE)


def load(text: str, file: Path) -> Callable[..., Any]:
    """Return the function of a program, whose source is kept in a file."""
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def check(seed: int, folder: Path) -> str:
    """Run one program both ways; return what differs, "" where nothing does, or why it is refused."""
    text, shape = program(seed)
    function = load(text, folder / f"in_place_{seed}.py")
    in_numpy = load(oracle(text), folder / f"in_numpy_{seed}.py")
    jitted, rng = sw.jit(function), np.random.default_rng(seed)
    for call in range(2):
        given = [
            rng.uniform(-1, 1, shape),
            rng.uniform(-1, 1, shape),
            rng.uniform(-1, 1, shape[1:]),
        ]
        ints = [np.int64(rng.integers(shape[0])), np.int64(rng.integers(min(shape)))]
        wanted = [x.copy() for x in given]
        try:
            expected = in_numpy(*wanted, *ints)
        except (ValueError, IndexError):
            return "no program"
        try:
            found = jitted(*given, *ints)
        except sw.TraceError as error:
            return f"refused: {str(error).splitlines()[0]}"
        what = zip(
            ("A", "B", "v", *(f"result {k}" for k in range(9))),
            (*given, *_results(found)),
            (*wanted, *_results(expected)),
            strict=False,
        )
        for name, got, want in what:
            if not np.allclose(got, want, rtol=1e-9, atol=1e-9, equal_nan=True):
                return f"wrong: call {call}, {name}\n{text}"
    return ""


def _results(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


if __name__ == "__main__":
    start, seconds = int(sys.argv[1]), float(sys.argv[2])
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
    end, seed, said = time.monotonic() + seconds, start, {}
    while time.monotonic() < end:
        try:
            found = check(seed, folder)
        except Exception as error:
            found = f"crash: {type(error).__name__}: {error}\n{program(seed)[0]}"
        kind = found.partition("\n")[0][:90]
        said[kind] = said.get(kind, 0) + 1
        if found.startswith(("wrong", "crash")):
            print(f"seed {seed}: {found}", flush=True)
        else:
            (folder / f"in_place_{seed}.py").unlink(missing_ok=True)
        seed += 1
    for kind, count in sorted(said.items(), key=lambda pair: -pair[1]):
        print(count, kind or "right")
