"""Runtime checks: conditions that raise an exception at the user's line when they fail."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.escape import literal
from stepwell.core.guards import RAISED, VALUES
from stepwell.frontend import elementwise as e
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import BOOL, INTEGER, cast, fresh, full
from stepwell.frontend.ranges import is_integer
from stepwell.frontend.spelling import Verbatim
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace


def check(
    condition: Tensor, kind: str, words: Sequence[str], values: Sequence[Tensor] = ()
) -> None:
    """Raise ``kind`` when the program runs and ``condition``, a boolean scalar, is false.

    words : the parts of the message, with a number of ``values`` between any two
    """
    trace = condition.graph
    _check_uncaught(trace, kind)
    numbers = [cast(v, INTEGER) for v in values]
    spelled = Verbatim(f"[{', '.join(map(literal, words))}]")
    trace.emit("check", [condition, *numbers], (), (), kind=kind, words=spelled)
    trace.ranges.suppose(condition, True)


def _check_uncaught(trace: Any, kind: str) -> None:
    """Refuse a runtime exception inside a ``try`` that would catch it."""
    raised = getattr(builtins, kind)
    for caught in trace.trying:
        types = [t for each in caught() for t in (each if isinstance(each, tuple) else (each,))]
        if any(issubclass(raised, t) for t in types):
            raise TraceError(
                f"a program cannot catch the {kind} that it may raise here when it runs; test the "
                "condition before, with if, or move this out of the try"
            )


def fits(value: Any, kind: DType) -> Tensor | None:
    """Return whether a traced Python integer fits into an integer dtype, as a traced boolean.

    None if it surely fits, and for every other value.
    """
    if not isinstance(value, Tensor) or not value.weak or value.kind is not INTEGER:
        return None
    if kind.kind not in ("signed", "unsigned") or kind is INTEGER:
        return None
    limits, known = np.iinfo(kind.numpy), value.graph.ranges.of(value)
    least, most = int(limits.min), min(int(limits.max), np.iinfo(np.int64).max)
    if known is not None and known[0] >= least and known[1] <= most:
        return None
    plain = fresh(value)
    return e.logical_and(e.greater_equal(plain, least), e.less_equal(plain, most))


def check_fits(value: Any, kind: DType) -> None:
    """Raise OverflowError, when the program runs, if a Python integer does not fit a dtype.

    Loops and branches are not checked.
    """
    if not isinstance(value, Tensor) or len(value.graph.scopes) > 1:
        return
    if (test := fits(value, kind)) is not None:
        words = "Python integer ", f" out of bounds for {kind.numpy}"
        check(test, "OverflowError", words, [fresh(value)])


def check_index(index: Tensor, size: int, axis: int) -> None:
    """Raise IndexError, as NumPy does, if an index is out of range for an axis."""
    trace = index.graph
    index.refresh()
    found = trace.ranges.of(index)
    if not trace.check_bounds or not index.size or found is None:
        return
    low, high = found
    if low == high and not -size <= low < size and len(trace.scopes) == 1:
        raise IndexError(out_of_bounds(low, axis, size))
    words = ("index ", f" is out of bounds for axis {axis} with size {size}")
    below, above = low < -size, high >= size
    if not index.shape:
        tests = [e.less(index, size)] if above else []
        tests += [e.greater_equal(index, -size)] if below else []
        if tests:
            test = tests[0] if len(tests) == 1 else e.logical_and(*tests)
            check(test, "IndexError", words, [index])
    else:
        for op, wanted in (("reduce_max", above), ("reduce_min", below)):
            if wanted:
                most = _extreme(index, op)
                limit = full((), size if op == "reduce_max" else -size, most.kind)
                test = (e.less if op == "reduce_max" else e.greater_equal)(most, limit)
                check(test, "IndexError", words, [most])
    trace.ranges.tell(index, -size, size - 1)


def raise_in_branch(make: Callable[[], Any]) -> NoReturn:
    """Trace a ``raise`` statement in a traced branch.

    make : returns the exception of the statement
    """
    raised: list[Any] = []

    def message() -> Any:
        raised.append(make())
        return _message(raised[0])

    _, words, values = message_of(message)
    check(full((), False, BOOL), _kind_of(raised[0]), words, values)
    raise ended(current_trace().scopes[-1])


def ended(scope: int) -> TraceError:
    """Return the error that ends the tracing of a branch which raises; elsewhere it is refused."""
    error = TraceError(
        "an exception is raised in a loop, or on each way through a branch, that only the run "
        "decides; raise it under an if, after which the function goes on"
    )
    error.ends = scope
    return error


def _message(error: Any) -> Any:
    """Return the message of an exception."""
    arguments = () if isinstance(error, type) else error.args
    return arguments[0] if len(arguments) == 1 else arguments or None


def _kind_of(error: Any) -> str:
    """Return the name of the exception's class, which must be a built-in that checks support."""
    kind = error if isinstance(error, type) else type(error)
    if kind.__name__ not in RAISED or kind.__module__ != "builtins":
        raise TraceError(
            f"{kind.__name__} is raised in a branch that only the run decides, where it can be "
            f"{', '.join(RAISED[:-1])} or {RAISED[-1]}"
        )
    return kind.__name__


def message_of(message: Callable[[], Any]) -> tuple[Any, list[str], list[Tensor]]:
    """Return an exception's argument, the parts of its text, and the traced integers between them.

    There is one more part than integers. The argument is None if there is no message.
    """
    trace = current_trace()
    values: list[Tensor] = []

    def spelled(value: Tensor, spec: str) -> str:
        if value.shape or not is_integer(value.kind) or spec or len(values) == VALUES:
            raise TraceError(
                f"a message can have {VALUES} integers without axes or format that only the run "
                f"knows, not {value!r}"
            )
        values.append(value)
        return _MARK

    before, trace.spelled = trace.spelled, spelled
    try:
        given = message()
        text = "" if given is None else str(given)
    finally:
        trace.spelled = before
    words = text.split(_MARK)
    if len(words) != len(values) + 1:
        raise TraceError("the message of an exception must have each traced value once")
    return given, words, values


_MARK = "\0"
"""The placeholder of a number in a message."""


def _extreme(index: Tensor, op: str) -> Tensor:
    """Return an index array's minimum or maximum, computed outside the loop that needs it."""
    trace = index.graph
    with trace.where(index.scope):
        axes = tuple(range(index.ndim))
        return trace.emit(op, [index], [(index.kind, ())], (), axes=axes)[0]


def out_of_bounds(index: int, axis: int, size: int) -> str:
    """Return NumPy's message for an index out of range."""
    return f"index {index} is out of bounds for axis {axis} with size {size}"
