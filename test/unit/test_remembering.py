"""Answers that a process remembers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from stepwell.core.remembering import Remembered


def test_threads_share_few_answers() -> None:
    squares = Remembered[int](2)

    def ask(n: int) -> bool:
        return squares.get(n % 7, lambda: (n % 7) ** 2) == (n % 7) ** 2

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(2000)))
    assert len(squares.found) == 2
