"""``a and b``, ``a < b < c`` and ``x if c else y`` in rewritten source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import as_spec, if_, is_data, joined, spec_of, truth, typed
from stepwell.frontend.promotion import BOOL, INTEGER, cast
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.unbound import ASSIGN, Undefined

CONDITIONAL = "the conditional expression"
"""The name of the variable that holds the value of a conditional expression."""


def ternary(test: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Return ``one() if test else other()``."""
    if not isinstance(test, Tensor):
        return one() if test else other()
    box: list[Any] = [Undefined(CONDITIONAL, ASSIGN)]

    def put(values: tuple[Any, ...]) -> None:
        box[0] = values[0]

    def run(of: Callable[[], Any]) -> Callable[[], None]:
        return lambda: put((of(),))

    if_(test, run(one), run(other), lambda: (box[0],), put, (CONDITIONAL,))
    return box[0]


def and_(*parts: Callable[[], Any]) -> Any:
    """Return ``a and b and ...``; traced operands are not short-circuited where that is safe."""
    value = parts[0]()
    for part in parts[1:]:
        if isinstance(value, Tensor):
            value = _both_sides(value, part, False)
        elif value:
            value = part()
        else:
            return value
    return value


def or_(*parts: Callable[[], Any]) -> Any:
    """Return ``a or b or ...``; traced operands are not short-circuited where that is safe."""
    value = parts[0]()
    for part in parts[1:]:
        if isinstance(value, Tensor):
            value = _both_sides(value, part, True)
        elif not value:
            value = part()
        else:
            return value
    return value


def _both_sides(a: Tensor, part: Callable[[], Any], first: bool) -> Any:
    """Return ``a`` where its truth is ``first``, else ``part()``, without a branch if that is safe.

    A branch is needed if ``part`` has runtime checks, which must fail only where Python evaluates
    it.
    """
    test, trace = truth(a), a.graph
    mark, count = trace.mark(), len(trace.lines)
    trace.ranges.narrowed.append({})
    try:
        trace.ranges.suppose(test, not first)
        b = part()
    finally:
        trace.ranges.narrowed.pop()
    if not any('"nd.check"' in line for line in trace.lines[count:]):
        return _selected(a, b, first)
    trace.back(mark)
    return ternary(test, *((lambda: a, part) if first else (part, lambda: a)))


def _selected(a: Tensor, b: Any, first: bool) -> Any:
    """Return ``a`` where its truth is ``first``, else ``b``."""
    if not is_data(b):
        raise TraceError(f"'and' and 'or' of a traced value need numbers, got {b!r}")
    if spec_of(a).kind is spec_of(b).kind is BOOL:
        return (e.logical_or if first else e.logical_and)(
            truth(a), truth(b) if isinstance(b, Tensor) else bool(b)
        )
    spec = joined(spec_of(a), spec_of(b))
    if spec is None:
        raise TraceError(
            f"the sides of 'and' or 'or' are {spec_of(a)} and {spec_of(b)}: compare them with 0"
        )
    one, other = as_spec(a, spec), as_spec(b, spec)
    return typed(e.where(truth(a), *((one, other) if first else (other, one))), spec)


def truth_of(value: Any) -> Any:
    """Return the truth of a part of a condition."""
    return truth(value) if isinstance(value, Tensor) else bool(value)


def not_(value: Any) -> Any:
    """Return ``not value``."""
    return e.logical_not(truth(value)) if isinstance(value, Tensor) else not value


def in_(value: Any, values: Any) -> Any:
    """Return ``value in values``: whether an element is ``value``, or equals it."""
    if isinstance(values, Tensor):
        return truth(r.any(e.equal(values, value)))
    if isinstance(values, range) and isinstance(value, Tensor) and values:
        low, high = sorted((values[0], values[-1]))
        step = abs(values.step)
        if value.kind.kind in ("signed", "unsigned") and value.kind.name != "ui64":
            value = cast(value, INTEGER)  # which holds the step and the bounds
        return _and(_and(value >= low, value <= high), value % step == low % step)
    plain = isinstance(values, list | tuple | Set | Mapping)
    if not plain or not any(isinstance(v, Tensor) for v in (value, *values)):
        return value in values
    found: Any = False
    for each in values:
        if each is value:
            return True
        found = _or(found, each == value)
    return found


def _or(a: Any, b: Any) -> Any:
    return or_(lambda: a, lambda: b)


def compare(left: Any, *parts: tuple[Callable[[Any, Any], Any], Callable[[], Any]]) -> Any:
    """Return ``a < b < c``; each operand is evaluated once."""
    result: Any = True
    for of, right in parts:
        value = right()
        holds = of(left, value)
        result = holds if result is True else _and(result, holds)
        if not isinstance(result, Tensor) and not result:
            return result
        left = value
    return result


def _and(a: Any, b: Any) -> Any:
    return and_(lambda: a, lambda: b)
