"""Size-polymorphic programs: infer a function's text for any size from a few traces (note 046).

Python code may branch on sizes, so only a trace shows the ops of a function at a size. A template
comes from traces that differ in one size each: their texts may differ only in numbers that are
linear in the sizes. These become `?`, or index arithmetic where an op needs a size as an operand.
A call with new sizes is traced, in a millisecond: if the text matches the template, its program
serves the call.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepwell.frontend.calls import Call
from stepwell.frontend.traced import Traced

STEPS = (1, 3)
"""How much one size grows in the traces that show its effect: two points test linearity."""

_NUMBER = re.compile(r"(\d+)")
MARK = re.compile(r"@(\d+)@")
"""A number of a template, by its position."""
_LOCATION = re.compile(r' loc\("(?:[^"\\]|\\.)*":\d+:\d+\)')
"""Where an op was traced: ops of our own functions are said to be at the line of the call, which
may be another one for each call."""


class NotGeneralError(Exception):
    """The function's text changes with its sizes in more than linear numbers."""


@dataclass(frozen=True)
class Growth:
    """A number ``constant`` + sum of ``by`` * sizes; ``by`` is None if it is not linear in them."""

    by: tuple[int, ...] | None
    constant: int = 0

    def at(self, sizes: Sequence[int]) -> int | None:
        """Return the number at these sizes; None if it is not linear."""
        if self.by is None:
            return None
        return self.constant + sum(k * n for k, n in zip(self.by, sizes, strict=True))

    def __sub__(self, other: Growth) -> int | None:
        """Return the difference if it is a constant, else None."""
        if self.by is None or self.by != other.by:
            return None
        return self.constant - other.constant


@dataclass(frozen=True)
class Axis:
    """An axis of an argument: its size is ``constant`` plus ``by`` times a symbol."""

    argument: int
    axis: int
    symbol: int
    by: int = 1
    constant: int = 0


@dataclass(frozen=True)
class Sizes:
    """The symbolic sizes of a call: which axes of its arguments depend on which symbol."""

    axes: tuple[Axis, ...]
    count: int

    def of(self, call: Call) -> tuple[int, ...] | None:
        """Return the symbols' values in a call; None if its sizes are inconsistent with them."""
        found: dict[int, int] = {}
        for axis in self.axes:
            size = call.arguments[axis.argument].shape[axis.axis] - axis.constant
            value, rest = divmod(size, axis.by)
            if rest or value < 0 or found.setdefault(axis.symbol, value) != value:
                return None
        return tuple(found[k] for k in range(self.count))

    def call(self, call: Call, values: Sequence[int]) -> Call:
        """Return ``call`` with shapes in which the symbols have these values."""
        shapes = [list(a.shape) for a in call.arguments]
        for axis in self.axes:
            shapes[axis.argument][axis.axis] = axis.constant + axis.by * values[axis.symbol]
        arguments = tuple(
            replace(a, shape=tuple(s)) for a, s in zip(call.arguments, shapes, strict=True)
        )
        return replace(call, arguments=arguments)

    def rest(self, call: Call) -> tuple[Any, ...]:
        """Return the part of a call's shapes that no symbol determines, as a key."""
        return tuple(a.shape for a in self.call(call, [2] * self.count).arguments)


def differing(call: Call, other: Call) -> Sizes | None:
    """Return the axes whose sizes differ between two calls, as symbols; equal pairs share one.

    None if no size differs, or one is 0 or 1: these have rules of their own (broadcasting).
    """
    return _grouped(
        (number, axis, (n, m))
        for number, (a, b) in enumerate(zip(call.arguments, other.arguments, strict=True))
        for axis, (n, m) in enumerate(zip(a.shape, b.shape, strict=True))
        if n != m
    )


def every(call: Call) -> Sizes | None:
    """Return all axes of a call except those of size 0 or 1; equal sizes share a symbol."""
    return _grouped(
        (number, axis, (n, n))
        for number, a in enumerate(call.arguments)
        for axis, n in enumerate(a.shape)
        if n > 1
    )


def _grouped(found: Any) -> Sizes | None:
    symbols: dict[tuple[int, int], int] = {}
    axes: list[Axis] = []
    for number, axis, sizes in found:
        if min(sizes) < 2:
            return None
        axes.append(Axis(number, axis, symbols.setdefault(sizes, len(symbols))))
    return Sizes(tuple(axes), len(symbols)) if axes else None


def _at_another_size(trace: Callable[[Call], Traced], call: Call) -> Traced:
    """Trace at sizes that the user did not ask for; turn any exception into `NotGeneralError`."""
    try:
        return trace(call)
    except Exception as error:
        name = type(error).__name__
        raise NotGeneralError(f"at another size it raises {name}: {error}") from error


@dataclass(frozen=True)
class Template:
    """A function's text at symbolic sizes: ``@3@`` stands for ``numbers[3]``."""

    sizes: Sizes
    rest: tuple[Any, ...]
    text: str
    numbers: tuple[Growth, ...]
    like: Traced
    """The trace at the original sizes."""

    @classmethod
    def of(cls, trace: Callable[[Call], Traced], call: Call, sizes: Sizes) -> Template:
        """Infer the template of a function from traces around the sizes of ``call``.

        raises NotGeneralError : the texts at other sizes differ in more than linear numbers
        """
        values = sizes.of(call)
        assert values is not None
        first = trace(sizes.call(call, values))
        traces: list[list[Traced]] = []
        for k in range(sizes.count):
            steps = [[n + s * (i == k) for i, n in enumerate(values)] for s in STEPS]
            traces.append([_at_another_size(trace, sizes.call(call, step)) for step in steps])
        texts = [_NUMBER.split(t.module.text) for t in (first, *(t for ts in traces for t in ts))]
        if any(len(t) != len(texts[0]) or t[::2] != texts[0][::2] for t in texts):
            raise NotGeneralError("its text at another size " + _first_difference(texts))
        for other in (t for ts in traces for t in ts):
            check_alike(first, other)
        numbers: list[Growth] = []
        out = list(texts[0])
        for place in range(1, len(out), 2):
            values_at = [int(t[place]) for t in texts]
            if any(n != values_at[0] for n in values_at):
                out[place] = f"@{len(numbers)}@"
                numbers.append(_growth(values_at, values))
        return cls(sizes, sizes.rest(call), "".join(out), tuple(numbers), first)

    def serves(self, call: Call) -> tuple[int, ...] | None:
        """Return the symbols' values in a call if its other sizes are the template's, else None."""
        return self.sizes.of(call) if self.sizes.rest(call) == self.rest else None

    def packed_sizes(self, call: Call) -> bytes:
        """Pack the sizes of a call that are `?` in the program, for the dispatcher."""
        axes = {(a.argument, a.axis) for a in self.sizes.axes}
        found = [call.arguments[n].shape[a] for n, a in sorted(axes)]
        return struct.pack(f"{len(found)}q", *found)

    def check(self, traced: Traced, sizes: Sequence[int]) -> None:
        """Raise `NotGeneralError` if a trace at some sizes does not match the template."""
        mine = MARK.split(_LOCATION.sub("", self.text))
        others = _LOCATION.sub("", traced.module.text)
        at = 0
        for k, part in enumerate(mine):
            if k % 2 == 0:
                if not others.startswith(part, at):
                    raise NotGeneralError(f"it does something else where sizes are {list(sizes)}")
                at += len(part)
                continue
            digits = re.compile(r"\d+").match(others, at)
            want = self.numbers[int(part)].at(sizes)
            if digits is None or (want is not None and int(digits[0]) != want):
                raise NotGeneralError(f"it computes other sizes where sizes are {list(sizes)}")
            at = digits.end()
        if at != len(others):
            raise NotGeneralError(f"it does more where sizes are {list(sizes)}")
        check_alike(self.like, traced)


def check_alike(one: Traced, other: Traced) -> None:
    """Raise `NotGeneralError` if two traces differ outside their text."""
    if one.out_tree != other.out_tree or one.effects != other.effects:
        raise NotGeneralError("it returns something else at another size")
    if one.outside.types != other.outside.types:
        raise NotGeneralError("it reads other arrays at another size")
    mine, others = one.module.resources, other.module.resources
    if mine.keys() != others.keys() or any(not _is_same(mine[k], others[k]) for k in mine):
        raise NotGeneralError("its constants are others at another size")


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.__array_interface__["data"] == b.__array_interface__["data"] or (
        a.tobytes() == b.tobytes()
    )


def _first_difference(texts: Sequence[Sequence[str]]) -> str:
    lines = ["".join(t).splitlines() for t in texts]
    plain = [[_NUMBER.sub("0", line) for line in each] for each in lines]
    for k, line in enumerate(plain[0]):
        for other, text in zip(plain[1:], lines[1:], strict=True):
            if k >= len(other) or other[k] != line:
                found = re.search(r'loc\("(.*?)":(\d+)', text[k] if k < len(text) else lines[0][k])
                return f"differs from {found[1]}:{found[2]} on" if found else "differs"
    return "is longer"


def _growth(seen: Sequence[int], values: Sequence[int]) -> Growth:
    by: list[int] = []
    for k in range(len(values)):
        one, other = seen[1 + 2 * k] - seen[0], seen[2 + 2 * k] - seen[0]
        if one * STEPS[1] != other * STEPS[0] or one % STEPS[0]:
            return Growth(None)
        by.append(one // STEPS[0])
    return Growth(tuple(by), seen[0] - sum(b * n for b, n in zip(by, values, strict=True)))
