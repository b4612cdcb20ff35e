"""Intervals that are added one by one, and found by an interval that they overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")


class Intervals(Generic[T]):
    """Items by closed intervals of numbers.

    Adding one of n items takes O(log² n) on average, and finding k of them O((k + 1) log² n): they
    are in sorted runs, of which a new one takes up all that are not longer.

    >>> found = Intervals[str]()
    >>> found.add(0, 4, "a")
    >>> found.add(3, 9, "b")
    >>> list(found.overlapping(4, 4)), list(found.overlapping(5, 7))
    (['b', 'a'], ['b'])
    """

    def __init__(self) -> None:
        self._runs: list[_Run[T]] = []

    def add(self, begin: float, end: float, item: T) -> None:
        """Add an item."""
        rows = [(begin, end, item)]
        while self._runs and len(self._runs[-1].rows) <= len(rows):
            rows += self._runs.pop().rows
        self._runs.append(_Run(rows))

    def overlapping(self, begin: float, end: float) -> Iterator[T]:
        """Yield the items whose intervals overlap this one, in any order."""
        for run in self._runs:
            yield from run.overlapping(begin, end)


class _Run(Generic[T]):
    """Intervals sorted by their begin, under a binary tree of the greatest ends."""

    def __init__(self, rows: list[tuple[float, float, T]]) -> None:
        self.rows = rows = sorted(rows, key=itemgetter(0))
        self._begins = [row[0] for row in rows]
        self._leaves = leaves = 1 << (len(rows) - 1).bit_length()
        low = [float("-inf")]
        self._ends = ends = low * leaves + [row[1] for row in rows] + low * (leaves - len(rows))
        for node in range(leaves - 1, 0, -1):
            ends[node] = max(ends[2 * node], ends[2 * node + 1])

    def overlapping(self, begin: float, end: float) -> Iterator[T]:
        """Yield the items whose intervals overlap this one, the last ones first."""
        count, leaves, ends = bisect_right(self._begins, end), self._leaves, self._ends
        waiting = [(1, 0, leaves)] if count else []
        while waiting:
            node, first, width = waiting.pop()
            if ends[node] < begin or first >= count:
                continue
            if width == 1:
                yield self.rows[first][2]
                continue
            half = width // 2
            waiting += ((2 * node, first, half), (2 * node + 1, first + half, half))
