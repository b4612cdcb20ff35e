"""How the programs of the corpus are told apart: by what they are run with, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

V = np.arange(5.0)
W = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0, -5.5, 3.5, 5.0, 8.0])
X = np.arange(12.0).reshape(3, 4)
M = np.sin(np.arange(100.0)).reshape(10, 10)
I = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])  # noqa: E741
F = W.astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A program, what it is called with, and what is said where it is refused."""

    function: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], ...]
    refusal: str = ""
    rtol: float = 1e-12


CASES: list[Case] = []


def captured(*arguments: tuple[Any, ...], rtol: float = 1e-12) -> Callable[[Any], Any]:
    """Say that a program gives what NumPy gives, for each of ``arguments``."""

    def add(function: Any) -> Any:
        CASES.append(Case(function, arguments, rtol=rtol))
        return function

    return add


def refused(message: str, *arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Say that a program is refused with ``message``, for each of ``arguments``."""

    def add(function: Any) -> Any:
        CASES.append(Case(function, arguments, message))
        return function

    return add
