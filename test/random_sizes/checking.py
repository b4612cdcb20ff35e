"""Hold a program and the interpreter to the reference of a random program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

import stepwell as sw
from random_sizes.generate import generate
from random_sizes.program import Array, Program, TooLarge, Unfit
from stepwell.api.compiled import compile_for_call
from stepwell.core.diagnostics import CompileError
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.op_rows.run import parsed

SIZES = (0, 1, 2, 7, 64, 1000)
CALLS = 8
SMALL = 20
"""Sizes up to which the interpreter is asked too."""

Case = tuple[list[Array], list[Array] | None]


def cases(program: Program, first: Sequence[int], seed: int) -> list[Case]:
    """Return arguments with what the program gives, None where it must refuse them."""
    found: list[Case] = []
    random = Random(seed)
    for number in range(CALLS if program.unknown else 1):
        sizes = list(first)
        if number == 1:
            sizes = [random.choice(SIZES)] * len(first)
        elif number > 1:
            kept = random.random() < 0.5
            sizes = [n if kept and random.random() < 0.7 else random.choice(SIZES) for n in first]
        inputs = program.inputs(sizes, seed + number)
        try:
            found.append((inputs, program.expected(inputs)))
        except Unfit:
            found.append((inputs, None))
        except TooLarge:
            continue
    return found


def check(seed: int, target: str = "c") -> str:
    """Check one program; return what became of it: 'refused', or how many calls ran and failed.

    AssertionError where something differs from the reference.
    """
    program, first = generate(seed)
    tried = cases(program, first, seed)
    text = program.text
    try:
        options: dict[str, Any] = {"target": target, "name": f"seed{seed}.mlir"}
        if seed % 2:
            compiled = sw.compile(text, **options)
        else:  # first for one call, then whole when another needs it
            shapes = [x.shape for x in tried[0][0]] if tried else []
            compiled = compile_for_call(text, "main", shapes, **options)
    except CompileError as error:
        said = error.diagnostic.message
        assert "compiler bug" not in said, f"seed {seed}: {error}\n{text}"
        never = all(want is None for _, want in tried)
        assert never, f"seed {seed} is refused: {error}\n{text}"
        return "refused"
    module = parsed(text)
    for inputs, want in tried:
        sizes = [x.shape for x in inputs]
        where = f"seed {seed} at {sizes}\n{text}"
        _compare(lambda i=inputs: compiled(*i), want, f"compiled, {where}")
        if all(n <= SMALL for shape in sizes for n in shape):
            _compare(lambda i=inputs: call(Interpreter(module), "main", i), want, f"nd, {where}")
    return f"{sum(want is not None for _, want in tried)} of {len(tried)}"


def _compare(run: Callable[[], Any], want: list[Array] | None, where: str) -> None:
    try:
        got = run()
    except ValueError as error:
        assert want is None, f"refused: {error}\n{where}"
        assert "size" in str(error) or "elements" in str(error), f"{error}\n{where}"
        return
    assert want is not None, f"accepted wrong sizes, {where}"
    results = got if isinstance(got, tuple) else (got,)
    for number, (a, b) in enumerate(zip(results, want, strict=True)):
        assert np.shape(a) == np.shape(b), f"result {number}: {np.shape(a)}, {np.shape(b)}, {where}"
        assert np.array_equal(a, b), f"result {number} differs, {where}"
