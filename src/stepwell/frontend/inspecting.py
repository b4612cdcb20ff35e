"""`f.explain` and `f.profile`: reports on a jitted function's compilation and time."""

from __future__ import annotations

import copy
import inspect
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from stepwell.core.escape import quoted
from stepwell.core.signature import Kernel
from stepwell.frontend.calls import Call
from stepwell.frontend.spelling import type_text
from stepwell.frontend.variants import Variant
from stepwell.runtime.profiling import Profile, copies_of, spans, spell_seconds

TIMED = 5
"""Calls that are timed; their median is reported."""
SHOWN = 12
"""Maximum number of lines of one kind in a report."""

_OP = re.compile(r'^ +(?:%[\w, %]+ = )?"([\w.]+)"\(', re.MULTILINE)
_LOOPS = ("nd.while", "nd.scan", "nd.if")


@dataclass(frozen=True)
class Explanation:
    """A report on a jitted function's compilation for some arguments. Prints as text."""

    function: str
    """The function's name and the line of its definition."""
    arguments: tuple[str, ...]
    """The types of arrays and the values of static arguments that it was compiled for."""
    assigned: tuple[str, ...]
    """Arguments that it assigns to."""
    captured: tuple[str, ...]
    """Captured arrays, which are hidden arguments."""
    guards: tuple[str, ...]
    """Captured values that are checked before each call."""
    traces: int
    reasons: tuple[str, ...]
    """The reason of each trace but the first."""
    ops: Mapping[str, int]
    """The number of ops of each kind in the graph."""
    kernels: tuple[Kernel, ...]
    copies: tuple[Kernel, ...]
    """Copies between the program's kernels."""
    trace_seconds: float
    compile_seconds: float
    """Measured when the function was traced: short if the disk cache had the program."""
    seconds: float
    """The time of a call."""
    plain_seconds: float | None
    """The time of a call of the plain Python function; None if that fails."""

    @property
    def pays_after(self) -> int | None:
        """How many calls amortize compilation; None if the program is not faster."""
        if self.plain_seconds is None or self.plain_seconds <= self.seconds:
            return None
        spent = self.trace_seconds + self.compile_seconds
        return max(1, math.ceil(spent / (self.plain_seconds - self.seconds)))

    def __str__(self) -> str:
        loops = [f"{self.ops[name]} {name}" for name in _LOOPS if name in self.ops]
        count = sum(self.ops.values())
        graph = f"{count} ops" + (f", of which {', '.join(loops)}" if loops else "")
        text = [self.function]
        for title, lines in (
            ("compiled for", self.arguments),
            ("assigns to", self.assigned),
            ("arrays from outside, passed along", self.captured),
            ("guarded, traced again when these change", self.guards),
            (f"traced {self.traces} times" if self.traces > 1 else "traced once", self.reasons),
            (f"graph: {graph}", ()),
            (f"kernels: {len(self.kernels)}", tuple(map(_description, self.kernels))),
            (f"copies between kernels: {len(self.copies)}", tuple(map(_description, self.copies))),
        ):
            if lines or title.startswith(("traced", "graph", "kernels", "copies")):
                text.append(title)
                text += [f"  {line}" for line in lines[:SHOWN]]
                text += [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return "\n".join([*text, *self._costs()])

    def _costs(self) -> list[str]:
        spent = spell_seconds(self.trace_seconds), spell_seconds(self.compile_seconds)
        first = [f"traced in {spent[0]}, compiled or loaded in {spent[1]}"]
        call = f"a call takes {spell_seconds(self.seconds)}"
        if self.plain_seconds is None:
            return [*first, call]
        call += f", in Python {spell_seconds(self.plain_seconds)}"
        after = self.pays_after
        if after is None:
            return [*first, f"{call}: compiling does not pay"]
        return [*first, f"{call}: it pays after {after:,} call{'s' if after > 1 else ''}"]


def _description(kernel: Kernel) -> str:
    """Describe a kernel: its name, its least work, its source location."""
    parts = [quoted(kernel.name)]
    if isinstance(kernel.flops, int):
        parts.append(f"{kernel.flops:,} operations")
    if isinstance(kernel.bytes, int) and not kernel.name.startswith("copy of"):
        parts.append(f"{kernel.bytes:,} bytes")
    where = f", from {spans(kernel.lines)}" if kernel.lines else ""
    return ", ".join(parts) + where


def explain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Return the report for these arguments; compile the function if necessary."""
    call, variant, given = function.found(args, kwargs)
    signature, info = variant.program.signature, function.cache_info()
    sizes = signature.sizes([np.shape(array) for array in given])
    effects = variant.effects
    with _kept(variant, given):
        seconds = _timed(function, args, kwargs, TIMED)
        plain_seconds = _timed_plain(function.__wrapped__, args, kwargs)
    return Explanation(
        _placed(function),
        _arguments(call),
        tuple(effects.names[i] for i in effects.written),
        tuple(f"{name}: {dtype}{list(shape)}" for name, dtype, shape in variant.outside.types),
        tuple(dict.fromkeys(variant.outside.paths)),
        info.traces,
        info.reasons,
        dict(Counter(_OP.findall(variant.program.module_text))),
        tuple(kernel.in_call(sizes) for kernel in signature.kernels),
        copies_of(variant.program.source, signature.kernels) if variant.program.native else (),
        variant.seconds[0],
        variant.seconds[1],
        seconds,
        plain_seconds,
    )


@contextmanager
def _kept(variant: Variant, given: Sequence[Any]) -> Generator[None]:
    """Restore the arrays and variables that the function assigns to, captured ones too."""
    written = [given[i] for i in variant.effects.written]
    held = [array.copy() for array in written]
    try:
        yield
    finally:
        for array, before in zip(written, held, strict=True):
            np.copyto(array, before)


def _placed(function: Any) -> str:
    code = getattr(inspect.unwrap(function.__wrapped__), "__code__", None)
    return function.__name__ + (f", {code.co_filename}:{code.co_firstlineno}" if code else "")


def _arguments(call: Call) -> tuple[str, ...]:
    arrays = [
        f"{a.path}: {type_text(a.kind, a.shape)}" + (", a Python number" if a.weak else "")
        for a in call.arguments
    ]
    return (*arrays, *(f"{name} = {value!r}, static" for name, value in call.static.items()))


def _timed(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], calls: int
) -> float:
    """Return the seconds of a call with copies of the arguments, which it may assign to."""
    found: list[float] = []
    for _ in range(calls):
        given, named = copy.deepcopy((args, kwargs))
        start = time.perf_counter()
        function(*given, **named)
        found.append(time.perf_counter() - start)
    return median(found)


def _timed_plain(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> float | None:
    try:
        with np.errstate(all="ignore"):
            return _timed(function, args, kwargs, 1)
    except Exception:  # the function may use features of tracing
        return None


def profile(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeat: int) -> Profile:
    """Return the profile of such a call; the caller's arrays are not changed."""
    args, kwargs = copy.deepcopy((args, kwargs))
    _, variant, given = function.found(args, kwargs)
    with _kept(variant, given):
        return variant.program.profile(*given, repeat=repeat, updating=bool(variant.effects))
