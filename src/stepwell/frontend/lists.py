"""Python's lists of traced numbers: ``x.tolist()``, `sorted`, and methods of lists that compare.

Each number of such a list is a value of the program.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from stepwell.frontend import elementwise as e
from stepwell.frontend.checks import check
from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import as_spec, is_data, joined, spec_of
from stepwell.frontend.instances import own
from stepwell.frontend.joining import stack
from stepwell.frontend.promotion import INTEGER, cast
from stepwell.frontend.sorting import sort
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import item, weakened

MOST = 64
"""The most numbers that a traced array is made a list of: each is an op of the program."""


def tolist(x: Tensor) -> Any:
    """Return the elements as nested lists of Python numbers."""
    _check_few(x, "x.tolist()")
    return _nested(x)


def _nested(x: Tensor) -> Any:
    return [_nested(row) for row in x] if x.shape else item(x)


def _check_few(x: Tensor, what: str) -> None:
    if x.size > MOST:
        raise TraceError(
            f"{what} of {x.size} traced numbers is a list of as many values of the program; "
            "compute with the array (a loop may go through it: for v in x), or return it"
        )


def sorted(values: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """Return a sorted list; traced numbers are compared when the program runs."""
    if isinstance(values, Tensor) and values.ndim == 1 and key is None:
        _check_few(values, "sorted(x)")
        return own([*sort(values, descending=bool(reverse))])
    values = list(values)
    keys = values if key is None else [key(v) for v in values]
    if not any(isinstance(v, Tensor) for v in keys):
        order = builtins.sorted(range(len(values)), key=keys.__getitem__, reverse=reverse)
        return own([values[k] for k in order])  # each key is computed once
    if key is not None:
        raise TraceError(
            "sorted with a key of traced values has an order that only the run knows; "
            "index an array by numpy.argsort(keys)"
        )
    found = _row_of(values)
    row = sort(found, descending=bool(reverse))
    return own([weakened(v) if found.weak else v for v in row])


def _row_of(values: Sequence[Any]) -> Tensor:
    """Return traced and Python's numbers as an array, of the type that `max` gives them."""
    spec = spec_of(values[0]) if is_data(values[0]) else None
    for value in values[1:]:
        spec = joined(spec, spec_of(value)) if spec is not None and is_data(value) else None
    if spec is None or spec.shape:
        raise TraceError("sorted compares numbers of one type; use numpy.sort of an array")
    found = stack([as_spec(v, spec) for v in values])
    found.weak = spec.weak
    return found


def _equal(values: Sequence[Any], value: Any) -> list[Any]:
    """Return for each element whether it is or equals ``value``: a bool or a traced one."""
    tests: list[Any] = [True if each is value else each == value for each in values]
    if any(isinstance(test, Tensor) and test.shape for test in tests):
        raise ValueError("The truth value of an array with more than one element is ambiguous.")
    return tests


def _index(values: Sequence[Any], value: Any, start: int = 0, stop: int = sys.maxsize) -> Any:
    place: Any = len(values)
    for at in reversed(range(len(values))[start:stop]):
        (test,) = _equal([values[at]], value)
        place = e.where(test, at, place) if isinstance(test, Tensor) else at if test else place
    if not isinstance(place, Tensor):
        return values.index(value, start, stop)
    place = cast(place, INTEGER)
    check(e.less(place, len(values)), "ValueError", ["list.index(x): x not in list"])
    return weakened(place)


def _count(values: Sequence[Any], value: Any) -> Any:
    found: Any = 0
    for test in _equal(values, value):
        found = found + (cast(test, INTEGER) if isinstance(test, Tensor) else int(test))
    return weakened(found) if isinstance(found, Tensor) else found


def _sort(values: list[Any], **options: Any) -> None:
    values[:] = sorted(values, **options)


def _remove(values: list[Any], value: Any) -> NoReturn:
    raise TraceError(
        "which element of a list is removed is not known while tracing; "
        "mark it in an array, and choose with numpy.where"
    )


READING: dict[str, Callable[..., Any]] = {"index": _index, "count": _count}
"""Methods of lists and tuples that compare elements, as they are for traced numbers."""
CHANGING: dict[str, Callable[..., Any]] = {"sort": _sort, "remove": _remove}
"""Such methods that change the list."""


def method(
    methods: dict[str, Callable[..., Any]], function: Any, args: Sequence[Any]
) -> Callable[..., Any] | None:
    """Return a method of a list or tuple for traced numbers; None for any other function."""
    owner: Any = getattr(function, "__self__", None)
    if type(owner) not in (list, tuple) or function.__name__ not in methods:
        return None
    if not any(isinstance(v, Tensor) for v in (*owner, *args)):
        return None
    return partial(methods[function.__name__], owner)
