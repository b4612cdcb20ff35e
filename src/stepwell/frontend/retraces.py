"""Retracing: one line for each retrace with its reason, and a limit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from stepwell.core.shapes import show
from stepwell.frontend.calls import Argument, Call
from stepwell.frontend.errors import TraceError
from stepwell.frontend.outside import Change, shown

LOG = logging.getLogger("stepwell")

MAX_TRACES = 64
"""The most programs per function; at about a second of compiling each they take a minute."""


class CacheInfo(NamedTuple):
    """How often a function was traced, and the reasons of the retraces."""

    traces: int
    programs: int
    """The number of cached programs."""
    max_traces: int | None
    reasons: tuple[str, ...]
    """The change that caused each trace but the first."""


def limit_of(limit: Any) -> int | None:
    """Return the most traces of a function, as given to `jit`; None for no limit."""
    if limit is not None and int(limit) < 1:
        raise ValueError(f"max_traces is how often it may be traced, got {limit}")
    return None if limit is None else int(limit)


class Retraces:
    """Counts the traces of a function, and reports the reason of each retrace."""

    def __init__(self, name: str, most: int | None) -> None:
        """most : the most traces before an error; None for no limit and no reports"""
        self.name, self.most = name, most
        self.calls: list[Call] = []
        self.reasons: list[str] = []

    def note(self, call: Call, change: Change | None) -> None:
        """Record a call that must be traced; ``change`` is the change of captured state, if any.

        raises TraceError : the function was traced too often
        """
        if self.calls and self.most is not None:
            reason = _change_text(change) if change is not None else _nearest(call, self.calls)
            self.reasons.append(reason)
            if len(self.calls) >= self.most:
                raise TraceError(
                    f"'{self.name}' was traced {self.most} times, which is its limit, and now "
                    f"{reason}; sw.jit(max_traces=...) sets another limit"
                )
            level = logging.INFO if len(self.calls) == 1 else logging.WARNING
            LOG.log(level, "'%s' is traced again (%d): %s", self.name, len(self.calls), reason)
        self.calls.append(call)

    def clear(self) -> None:
        """Forget all recorded traces."""
        self.calls.clear()
        self.reasons.clear()


def _change_text(change: Change) -> str:
    what = "has another content" if change.array else f"is {change.now}, was {change.was}"
    return (
        f"'{change.path}', read outside of the function, {what}; "
        "pass it as an argument if it changes often"
    )


def _nearest(call: Call, earlier: Sequence[Call]) -> str:
    """Describe the difference from the most similar earlier call."""
    found = [_differences(call, other) for other in reversed(earlier)]
    return min(found, key=len)[0]


def _differences(call: Call, other: Call) -> list[str]:
    reasons = [
        f"the static argument '{name}' is {shown(call.static[name])}, was "
        f"{shown(other.static[name])}; each value is a program of its own"
        for (name, key), (also, before) in zip(call.key[0], other.key[0], strict=False)
        if name == also and key != before
    ]
    here, before = call.static.keys(), other.static.keys()
    for name in (n for n in call.static if n not in before):
        reasons.append(f"'{name}' is left to its default, known while tracing, and was passed")
    for name in (n for n in other.static if n not in here):
        help = f"if its values are few, static_argnames=('{name}',) has a program for each"
        reasons.append(f"'{name}' is passed, and was left to its default; {help}")
    if here == before and call.key[1] != other.key[1]:
        names = [
            name
            for (name, tree), (_, before) in zip(call.key[1], other.key[1], strict=False)
            if tree != before
        ]
        what = f"'{names[0]}' is" if names else "the arguments are"
        return [*reasons, f"{what} built otherwise; keep the containers and their keys the same"]
    pairs = zip(call.arguments, other.arguments, strict=False)
    reasons += [_argument(now, was) for now, was in pairs if now != was]
    return reasons or ["it is called in another way, or one array is passed twice"]


def _argument(now: Argument, was: Argument) -> str:
    types = [f"{a.kind.name}[{show(a.shape)}]" for a in (now, was)]
    if now.weak != was.weak:
        kinds = [
            "a Python number" if a.weak else f"an array {t}"
            for a, t in zip((now, was), types, strict=True)
        ]
        return f"argument '{now.path}' is {kinds[0]}, was {kinds[1]}; pass it always alike"
    help = (
        "convert it with astype"
        if now.kind is not was.kind
        else (
            "a size may be any with sw.Dim in input_signature=, or dynamic='always'"
            if len(now.shape) == len(was.shape)
            else "reshape it"
        )
    )
    return f"argument '{now.path}' is {types[0]}, was {types[1]}; {help}"
