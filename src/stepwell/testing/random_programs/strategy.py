"""The strategy: random arguments, then random ops on existing values, then random results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from stepwell.testing.random_programs import control, moving, pointwise, reducing
from stepwell.testing.random_programs.program import FLOATS, INTEGERS, Program, Size

SHAPES: tuple[tuple[Size, ...], ...] = (
    *((5,), ("n",), (3, 5), ("n", 5), ("n", "m"), (), (3, "n")),
    *((2, 3, 5), ("n", 3, 4), (1, 5), (0, 3), (17, 3), (1,)),
)
DTYPES = ("f32", "f32", "i32", *FLOATS, *INTEGERS, "i1")
PLAIN = (*pointwise.OPS, *moving.OPS, *reducing.OPS)


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any], most: int = 10) -> Program:
    """Draw a program of at most ``most`` ops, not counting bodies of control flow."""
    p = Program(draw)
    for _ in range(p.number(1, 3)):
        p.argument(p.pick(SHAPES), p.pick(DTYPES))
    for _ in range(p.number(1, most)):
        if p.number(0, 9) == 9:
            p.pick(control.OPS)(p, _operand(p), _steps)
        else:
            _steps(p, 1)
    created = [v for v in reversed(p.values)]
    p.results = [created[0]]
    for _ in range(p.number(0, 2)):
        p.results.append(p.pick(created))
    return p


def _operand(p: Program) -> Any:
    return p.pick(p.values[::-1][:6])


def _steps(p: Program, count: int) -> None:
    for _ in range(count):
        p.pick(PLAIN)(p, _operand(p))
