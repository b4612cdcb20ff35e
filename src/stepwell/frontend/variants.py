"""The programs of a jitted function: which of them serves a call, and when one more is traced."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from stepwell.compiled import Compiled
from stepwell.core.once import Once
from stepwell.frontend.calls import Call
from stepwell.frontend.captures import SMALL, TABLES, Array, Change, Outside
from stepwell.frontend.effects import Effects
from stepwell.frontend.pytree import Tree
from stepwell.frontend.retraces import MAX_TRACES, CacheInfo, Retraces
from stepwell.frontend.traced import Known, Traced

LOG = logging.getLogger("stepwell")


class Variant(NamedTuple):
    """What a function was compiled to, for one signature and one state of what is outside."""

    program: Compiled
    tree: Tree
    effects: Effects
    outside: Outside
    arrays: tuple[Array, ...] = ()
    """The arrays from outside as it was traced, for the call that it was traced for."""
    seconds: tuple[float, float] = (0.0, 0.0)
    """That it took to trace, and to compile or load."""


class Variants:
    """The programs of a function by their keys; of one key there are several if what is outside of
    the function changes.
    """

    def __init__(self, name: str, most: int = MAX_TRACES) -> None:
        self.retraces = Retraces(name, most)
        self._made: Once[Any, Variant] = Once()
        self._known: dict[Any, list[Variant]] = {}
        self._lock = threading.RLock()
        self._varying: set[str] = set()
        """Small arrays whose content has changed: they are arguments from then on."""

    def get(
        self, key: Any, call: Call, trace: Callable[[Known], Traced]
    ) -> tuple[Variant, list[Any]]:
        """Return the program that serves a call, made first where there is none, and its arrays
        from outside.
        """
        while True:
            with self._lock:
                known = list(self._known.setdefault(key, []))
            for variant in known:
                if (arrays := variant.outside.collect()) is not None:
                    return variant, arrays
            made: list[Variant] = []
            make = partial(self._make, call, trace, known, made)
            variant = self._made.get((key, len(known)), make)
            with self._lock:
                if len(self._known[key]) == len(known):
                    self._known[key].append(variant)
            if made:  # even where the function changed what it reads
                return variant, list(made[0].arrays)

    def info(self) -> CacheInfo:
        """Return how often the function was traced, and why."""
        with self._lock:
            programs = sum(map(len, self._known.values()))
            told = self.retraces
            return CacheInfo(len(told.calls), programs, told.most, tuple(told.reasons))

    def clear(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._known.clear()
            self.retraces.clear()
            self._made = Once()

    def _make(
        self,
        call: Call,
        trace: Callable[[Known], Traced],
        known: list[Variant],
        made: list[Variant],
    ) -> Variant:
        with self._lock:
            self.retraces.note(call, self._changed(known))
        made.append(self._compiled(trace))
        return made[0]._replace(arrays=())

    def _changed(self, known: list[Variant]) -> Change | None:
        """Return what is other outside than for the last program."""
        change: Change | None = None
        for variant in known:
            change = variant.outside.change()
            if change is not None and change.array:
                self._varying.add(change.path)
        return change

    def _compiled(self, trace: Callable[[Known], Traced]) -> Variant:
        start = time.perf_counter()
        traced = self._traced(trace)
        outside, middle = traced.outside, time.perf_counter()
        program = traced.compile()
        seconds = middle - start, time.perf_counter() - middle
        return Variant(
            *(program, traced.out_tree, traced.effects),
            *(outside.settled(), outside.arrays, seconds),
        )

    def _traced(self, trace: Callable[[Known], Traced]) -> Traced:
        """Trace with arrays from outside as arguments; where it needs their numbers, with these."""
        first: Exception | None = None
        for known in (self._small, self._tables, _all):
            taken: list[str] = []
            try:
                return trace(_noting(known, taken))
            except Exception as error:
                first = first or error
                LOG.debug("arrays from outside are known by their content, as: %s", error)
                if not taken:
                    break
        assert first is not None
        raise first

    def _small(self, path: str, array: Array) -> bool:
        return array.nbytes <= SMALL and path not in self._varying

    def _tables(self, path: str, array: Array) -> bool:
        return array.nbytes <= SMALL or (array.dtype.kind in "biu" and array.nbytes <= TABLES)


def _noting(known: Known, taken: list[str]) -> Known:
    """Return ``known``, which also notes the arrays that it takes as arguments."""

    def noted(path: str, array: Array) -> bool:
        if known(path, array):
            return True
        taken.append(path)
        return False

    return noted


def _all(path: str, array: Array) -> bool:
    return True
