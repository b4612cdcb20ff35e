"""The programs of a jitted function: select the one for a call, or trace another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from stepwell.api.compiled import Compiled
from stepwell.core.diagnostics import CompileError
from stepwell.core.once import Once
from stepwell.frontend.calls import Call
from stepwell.frontend.captures import MAX_COMPARED_BYTES, TABLES
from stepwell.frontend.effects import Effects
from stepwell.frontend.general_programs import GeneralPrograms
from stepwell.frontend.outside import Array, Change, Outside
from stepwell.frontend.pytree import Tree
from stepwell.frontend.retraces import MAX_TRACES, CacheInfo, Retraces
from stepwell.frontend.traced import Known, Traced

if TYPE_CHECKING:  # imported with the first program for any size
    from stepwell.frontend.general import Sizes

Tracer: TypeAlias = Callable[[Call, Known, bool], Traced]
"""Traces the function for a call; the last argument: for any size (`frontend.general`)?"""

LOG = logging.getLogger("stepwell")


class Variant(NamedTuple):
    """A compiled program, for one signature and one captured state."""

    program: Compiled
    tree: Tree
    effects: Effects
    outside: Outside
    arrays: tuple[Array, ...] = ()
    """The captured arrays at trace time, for the call that caused the trace."""
    seconds: tuple[float, float] = (0.0, 0.0)
    """The durations of tracing, and of compiling or loading."""
    sizes: bytes | None = None
    """The value of each `?` size of the program's arguments in the call."""


class Variants:
    """The programs of a function by key; a key has several if the captured state changes."""

    def __init__(self, name: str, most: int | None = MAX_TRACES, dynamic: str = "auto") -> None:
        self.general = GeneralPrograms(name, dynamic)
        self.retraces = Retraces(name, most)
        self._made: Once[Any, Variant] = Once()
        self._first: Once[Any, Variant] = Once()
        """The first program of each group of calls that one for any size is made for at once."""
        self._known: dict[Any, list[Variant]] = {}
        self._lock = threading.RLock()
        self._varying: set[str] = set()
        """Small arrays whose content has changed: they are arguments from then on."""

    def get(
        self, key: Any, call: Call, trace: Tracer, sizes: Sizes | None = None
    ) -> tuple[Variant, list[Any]]:
        """Return the program for a call, traced if there is none yet, and its captured arrays.

        sizes : the axes that the user declared as variable
        """
        while True:
            with self._lock:
                known = list(self._known.setdefault(key, []))
            for variant in known:
                if (arrays := variant.outside.collect()) is not None:
                    return variant, arrays
            created: list[Variant] = []
            make = partial(self._make, key, call, trace, known, created, sizes)
            make = partial(self._made.get, (key, len(known)), make)
            if key is call.key and (group := self.general.first(call, sizes)) is not None:
                self._first.get(group, make)  # other sizes wait: one program serves them all
            variant = make()
            with self._lock:
                if len(self._known[key]) == len(known):
                    self._known[key].append(variant)
            if created:  # use it even if the function changed its own captured state
                return variant, list(created[0].arrays)

    def info(self) -> CacheInfo:
        """Return the number of traces, and their reasons."""
        with self._lock:
            programs = len({id(v.program) for each in self._known.values() for v in each})
            retraces = self.retraces
            return CacheInfo(len(retraces.calls), programs, retraces.most, tuple(retraces.reasons))

    def clear(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._known.clear()
            self.retraces.clear()
            self.general.clear()
            self._made, self._first = Once(), Once()

    def _make(
        self,
        key: Any,
        call: Call,
        trace: Tracer,
        known: list[Variant],
        created: list[Variant],
        sizes: Sizes | None,
    ) -> Variant:
        general = key is call.key and (sizes is not None or self.general.mode != "never")
        variant = self._served(call, trace) if general else None
        if variant is None:
            with self._lock:
                earlier = [] if known else list(self.retraces.calls)
                self.retraces.note(call, self._changed(known))
            if general:
                variant = self._made_general(call, trace, earlier, sizes)
        created.append(variant or self._compiled(call, trace))
        return created[0]._replace(arrays=())

    def _served(self, call: Call, trace: Tracer) -> Variant | None:
        """Return a program for any size that serves a call; None if there is none."""
        if not (created := self.general.of(call)):
            return None
        from stepwell.frontend.general import NotGeneralError

        for template, program in created:
            if (values := template.serves(call)) is not None:
                traced = self._traced(call, trace, general=True)
                try:
                    template.check(traced, values)
                except NotGeneralError as error:
                    self.general.log(error)
                    continue
                return _variant(program, traced, template.packed_sizes(call))
        return None

    def _made_general(
        self, call: Call, trace: Tracer, earlier: Sequence[Call], declared: Sizes | None
    ) -> Variant | None:
        """Return a new program for any size; None if none is wanted or possible."""
        if (sizes := self.general.wanted(call, earlier, declared)) is None:
            return None
        from stepwell.frontend.general import NotGeneralError, Template

        try:
            template = Template.of(partial(self._traced, trace=trace, general=True), call, sizes)
            traced = self._traced(call, trace, general=True)
            values = template.serves(call)
            assert values is not None
            template.check(traced, values)
            program = self.general.compiled(template, call, traced)
        except (NotGeneralError, CompileError) as error:
            self.general.refused(call, error)
            return None
        return _variant(program, traced, template.packed_sizes(call))

    def _changed(self, known: list[Variant]) -> Change | None:
        """Return the difference of the captured state from the last program's."""
        change: Change | None = None
        for variant in known:
            change = variant.outside.change()
            if change is not None and change.array:
                self._varying.add(change.path)
        return change

    def _compiled(self, call: Call, trace: Tracer) -> Variant:
        start = time.perf_counter()
        traced = self._traced(call, trace)
        middle = time.perf_counter()
        program = traced.compile()
        return _variant(program, traced, None, (middle - start, time.perf_counter() - middle))

    def _traced(self, call: Call, trace: Tracer, general: bool = False) -> Traced:
        """Trace with captured arrays as arguments; if it fails, with more of them as constants."""
        first: Exception | None = None
        for known in (self._small, self._tables, _all):
            taken: list[str] = []
            try:
                return trace(call, _noting(known, taken), general)
            except Exception as error:
                first = first or error
                LOG.debug("arrays from outside are known by their content, as: %s", error)
                if not taken:
                    break
        assert first is not None
        raise first

    def _small(self, path: str, array: Array) -> bool:
        return array.nbytes <= MAX_COMPARED_BYTES and path not in self._varying

    def _tables(self, path: str, array: Array) -> bool:
        return array.nbytes <= MAX_COMPARED_BYTES or (
            array.dtype.kind in "biu" and array.nbytes <= TABLES
        )


def _variant(
    program: Compiled,
    traced: Traced,
    sizes: bytes | None,
    seconds: tuple[float, float] = (0.0, 0.0),
) -> Variant:
    outside = traced.outside
    tree, effects = traced.built_by(program), traced.effects
    return Variant(program, tree, effects, outside.settled(), outside.arrays, seconds, sizes)


def _noting(known: Known, taken: list[str]) -> Known:
    """Return ``known``, which also records the arrays that become arguments."""

    def noted(path: str, array: Array) -> bool:
        if known(path, array):
            return True
        taken.append(path)
        return False

    return noted


def _all(path: str, array: Array) -> bool:
    return True
