"""Compile a recipe and compare the results of several calls, all kept until the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import stepwell.numpy as snp
from stepwell.frontend.jit import jit
from stepwell.testing.user_programs import idioms, loops, ops
from stepwell.testing.user_programs.known import DIGITS, DTYPES, Known
from stepwell.testing.user_programs.recipe import (
    Recipe,
    operand,
    run_known,
    run_traced,
    values_of,
    widened,
)
from stepwell.testing.user_programs.spaces import Plain, Traced

assert ops and loops and idioms, "they fill the table of steps"

SLACK = 8.0
"""The factor by which an error may exceed the bound."""
THREADS = 4


class Wrong(Exception):
    """A result is wrong."""


def function_of(recipe: Recipe, seed: int) -> Callable[..., Any]:
    """Return the function of a recipe; it captures arrays drawn from ``seed``."""
    closed = [
        values_of(leaf, seed + k) if leaf.closed else None for k, leaf in enumerate(recipe.leaves)
    ]

    def program(*args: Any) -> tuple[Any, ...]:
        given = iter(args)
        leaves = [next(given) if array is None else snp.asarray(array) for array in closed]
        values = run_traced(Traced(), recipe.steps, leaves)
        return tuple(operand(n, leaves, values) for n in recipe.results)

    return program


def arguments(recipe: Recipe, seed: int) -> list[Any]:
    """Return arguments for a call."""
    return [values_of(leaf, seed + k) for k, leaf in enumerate(recipe.leaves) if not leaf.closed]


def wanted(recipe: Recipe, seed: int, turn: int) -> list[Known]:
    """Return the correct results of a call with the arguments of ``turn``."""
    leaves: list[Known] = []
    for k, leaf in enumerate(recipe.leaves):
        array = values_of(leaf, seed + k + (0 if leaf.closed else turn))
        leaves.append(Known(widened(array, leaf.dtype), leaf.dtype))
    values = run_known(Plain(), recipe.steps, leaves)
    return [operand(n, leaves, values) for n in recipe.results]


def check(
    recipe: Recipe, seed: int, target: str = "c", machine: str = "", threads: bool = False
) -> None:
    """Compare three calls, the first and last with the same arguments.

    threads : call from several threads at a time instead

    Raises `Wrong`, or any exception of the compiler.
    """
    compiled = jit(function_of(recipe, seed), target=target, machine=machine)
    turns = [0, 1000, 0] if not threads else [0, 1000] * THREADS
    calls = [(turn, arguments(recipe, seed + turn)) for turn in turns]
    before = [[a.copy() for a in args] for _, args in calls]

    def called(call: tuple[int, Any]) -> Any:
        try:
            return compiled(*call[1])
        except IndexError as error:
            return error

    first = called(calls[0])
    if threads:
        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(called, calls))
    else:
        results = [first, *map(called, calls[1:])]
    _compare_all(recipe, seed, calls, results)
    for (_, args), kept in zip(calls, before, strict=True):
        for a, b in zip(args, kept, strict=True):
            if a.tobytes() != b.tobytes():
                raise Wrong("an argument was written")


def _compare_all(
    recipe: Recipe, seed: int, calls: Sequence[tuple[int, Any]], results: Sequence[Any]
) -> None:
    expected: dict[int, list[Known] | None] = {}
    for call, ((turn, _), got) in enumerate(zip(calls, results, strict=True)):
        if turn not in expected:
            try:
                expected[turn] = wanted(recipe, seed, turn)
            except (IndexError, ValueError, OverflowError):  # these arguments are invalid
                expected[turn] = None
        if (wants := expected[turn]) is None:
            continue
        if isinstance(got, IndexError):
            raise got
        for n, (have, want) in enumerate(zip(got, wants, strict=False)):
            compare(have, want, f"result {n} of call {call}")


def compare(have: Any, want: Known, what: str) -> None:
    """Raise `Wrong` where an array differs by more than the error bound allows."""
    if have.shape != want.shape or have.dtype != DTYPES[want.dtype]:
        raise Wrong(f"{what} is {have.dtype}{have.shape}, not {want.dtype}{want.shape}")
    if want.error == np.inf or not have.size:
        return
    if want.dtype not in DIGITS:
        off = np.asarray(have != want.array)
    else:
        with np.errstate(all="ignore"):
            apart = np.abs(have.astype(np.float64) - want.array)
        off = np.asarray(~(apart <= SLACK * want.error) & np.isfinite(want.array))
    if off.any():
        at = tuple(int(i) for i in np.argwhere(off)[0])
        raise Wrong(
            f"{what} at {list(at)}: {have[at]!r}, not {want.array[at]!r} "
            f"(+- {want.error:.3g}; {int(off.sum())} of {off.size} differ)"
        )
