"""Damaged texts: a result or one clear message, never a traceback, a hang or a lost word."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from any_text.modes import fault, tried
from any_text.mutations import mutated
from any_text.pool import Fault, outcomes
from any_text.texts import texts

COUNT = 60
"""Of 20,000, which the slow lane tries, of xDSL's files too."""


def told(count: int, seed: int) -> list[str]:
    """Return what is wrong with ``count`` mutations."""
    found = [each for each in outcomes(texts(), seed, range(count)) if isinstance(each, Fault)]
    return [f"{each.mode}: {each.what}: {each.said}\n{each.text}" for each in found]


def test_a_sample() -> None:
    assert told(COUNT, seed=3) == []


def test_a_mutation_is_told_by_its_number() -> None:
    known = texts()
    once, again = ([mutated(known, random.Random(f"1/{k}")) for k in range(50)] for _ in range(2))
    assert once == again and len(set(once)) > 45


@pytest.mark.parametrize(
    ("mode", "text", "wrong"),
    [
        ("read", '"test.op"() : () -> ()', ""),
        ("read", '"test.op"() : () ->', ""),
        ("generic", "func.func @f() {\n  func.return\n}", ""),
    ],
)
def test_answers_are_judged(mode: str, text: str, wrong: str, tmp_path: Path) -> None:
    what, answer = tried(mode, text, tmp_path / "text.mlir")
    assert what == wrong == fault(answer)
