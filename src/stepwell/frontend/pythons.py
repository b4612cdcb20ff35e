"""Python's builtins for traced values: ``max``, ``sum``, ``range``, ``zip``, ..."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from functools import reduce
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import lists
from stepwell.frontend import reduction as r
from stepwell.frontend.checks import check
from stepwell.frontend.creation import asarray
from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import is_data, joined, spec_of, truth
from stepwell.frontend.iterables import Counted, Items, Range, counted, items_of
from stepwell.frontend.logic import and_, or_
from stepwell.frontend.masked import Masked
from stepwell.frontend.maths import MATHS
from stepwell.frontend.promotion import as_dtype, cast, full, is_number, lift
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.state.variables import TracedVariable, Variable
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import weakened


def _extreme(of: Callable[[Any, Any], Tensor]) -> Callable[..., Any]:
    """Return Python's `min` or `max`, which keep the first of equal values."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], Window | Masked):
            return args[0].max() if of is operator.gt else args[0].min()
        values = list(args[0]) if len(args) == 1 and not kwargs else list(args)
        if not _has_traced(values):
            found = max if of is operator.gt else min
            return found(*values, **kwargs) if kwargs else found(values)
        if kwargs:
            raise TraceError("min and max of traced values take no key and no default")
        if not values:
            raise ValueError("min() or max() of an empty sequence")
        best = values[0]
        for value in values[1:]:
            best = _chosen(of(value, best), value, best)
        return best

    return function


def _chosen(test: Any, value: Any, best: Any) -> Any:
    if not isinstance(test, Tensor):
        return value if test else best
    spec = joined(spec_of(value), spec_of(best)) if is_data(value) and is_data(best) else None
    if spec is None or spec.shape:
        raise TraceError("min and max compare numbers of one type; use numpy.minimum or maximum")
    found = e.where(test, *(_cast_to(v, spec.kind) for v in (value, best)))
    found.weak = spec.weak
    return found


def _cast_to(value: Any, kind: Any) -> Tensor:
    return full((), value, kind) if is_number(value) else cast(lift(value), kind)


def _has_traced(values: Any) -> bool:
    return any(isinstance(v, Tensor) for v in values)


def _any(values: Any, /) -> Any:
    found: Any = False
    for value in values:
        found = or_(_test_of(found), _test_of(value))
        if not isinstance(found, Tensor) and found:
            return True
    return truth(found) if isinstance(found, Tensor) else False


def _all(values: Any, /) -> Any:
    found: Any = True
    for value in values:
        found = and_(_test_of(found), _test_of(value))
        if not isinstance(found, Tensor) and not found:
            return False
    return truth(found) if isinstance(found, Tensor) else True


def _test_of(value: Any) -> Callable[[], Any]:
    return lambda: truth(value) if isinstance(value, Tensor) else bool(value)


GOING = (any, all, min, max, sorted, sum, isinstance, type, np.fromiter)
"""Functions that iterate over any argument, or ask for its type."""


def _sum(values: Any, /, start: Any = 0) -> Any:
    if isinstance(values, Window | Masked) and values.ndim == 1:
        return values.sum() + start
    if not isinstance(values, Tensor | Items):
        values = list(values)
        if not _has_traced(values) and not isinstance(start, Tensor):
            return sum(values, start)
    total = start
    if isinstance(values, Tensor) and values.ndim == 1 and is_number(start) and start == 0:
        kind = as_dtype("i64") if values.kind.name == "i1" else values.kind
        return r.sum(values, dtype=kind)
    for value in values:
        total = total + value
    return total


def _number(kind: str) -> Callable[..., Any]:
    def function(value: Any, *more: Any) -> Any:
        if not isinstance(value, Tensor) or more or value.size != 1:
            raise TypeError("only arrays of one element can be made Python numbers")
        value = value.reshape(())
        return weakened(e.not_equal(value, 0) if kind == "i1" else cast(value, as_dtype(kind)))

    return function


def _scalar(kind: type[np.generic]) -> Callable[..., Any]:
    return lambda value, /: asarray(value, kind, copy=True)


def _type_of(value: Any) -> type[Any] | None:
    """Return the type of what ``value`` stands for in a trace; None if it stands for itself."""
    if isinstance(value, Range):
        return range
    if isinstance(value, TracedVariable):
        return Variable
    if not isinstance(value, Tensor):
        return np.ndarray if isinstance(value, Window | Masked) else None
    if value.is_array():
        return np.ndarray
    if value.weak:
        return {"bool": bool, "float": float}.get(value.kind.kind, int)
    return value.dtype.type


def _type(*args: Any, **kwargs: Any) -> Any:
    found = _type_of(args[0]) if len(args) == 1 else None
    return type(*args, **kwargs) if found is None else found


def _isinstance(value: Any, kinds: Any, /) -> bool:
    found = None if isinstance(value, kinds) else _type_of(value)
    return isinstance(value, kinds) if found is None else issubclass(found, kinds)


def _range(*bounds: Any) -> Any:
    for bound in bounds:
        if isinstance(bound, Tensor) and (bound.shape or bound.kind.kind == "float"):
            raise TypeError(f"a bound of a range is an integer, got {bound!r}")
    return Range(
        *(weakened(cast(b, as_dtype("i64"))) if isinstance(b, Tensor) else b for b in bounds)
    )


def _reversed(values: Any) -> Any:
    if isinstance(values, Range):
        return values.backwards()
    found = items_of(values)
    if found is None:
        raise TypeError(f"{type(values).__name__!r} object is not reversible")
    return Items(len(found), lambda k: found.get(len(found) - 1 - k))


def _length(*values: Any) -> Any:
    (value,) = values if len(values) == 1 else (None,)
    if isinstance(value, Range):
        return value.count()
    return value.shape[0] if isinstance(value, Window | Masked) else len(*values)


def _enumerate(values: Any, start: Any = 0) -> Any:
    if (some := counted(values)) is not None:
        return Counted(some.length, lambda k: (k + start, some.get(k)))
    found = items_of(values)
    if found is None:
        return enumerate(values, start)
    return Items(len(found), lambda k: (k + start, found.get(k)))


def _zip(*values: Any, strict: bool = False) -> Any:
    found = [counted(v) or items_of(v) for v in values]
    some = [f for f in found if f is not None]
    if len(some) == len(found) and any(isinstance(f, Counted) for f in some):
        for f in some[1:] if strict else ():
            same = e.equal(lift(f.length), lift(some[0].length))
            check(same, "ValueError", ["zip() has arguments of different lengths"])
        most = reduce(np.minimum, [f.length for f in some])
        return Counted(most, lambda k: tuple(f.get(k) for f in some))
    found = [items_of(v) for v in values]
    if any(f is None for f in found):
        return zip(*values, strict=strict)
    lengths = {len(f) for f in found if f is not None}
    if strict and len(lengths) > 1:
        return zip(*values, strict=True)
    return Items(min(lengths), lambda k: tuple(f.get(k) for f in found if f is not None))


def _ndenumerate(values: Any) -> Items:
    x = lift(values)

    def get(k: Any) -> Any:
        index: list[Any] = []
        for n in reversed(x.shape):
            index.insert(0, k % n)
            k = k // n
        return tuple(index), x[tuple(index)]

    return Items(x.size, get)


def _fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    values = list(iter if count < 0 else islice(iter, count))
    if not _has_traced(values):
        return np.fromiter(values, dtype, count)
    if len(values) < count:
        said = f"iterator too short: Expected {count} but iterator had only {len(values)}"
        raise ValueError(said)
    return asarray(values, dtype)


def _nditer(*_: Any, **__: Any) -> NoReturn:
    raise TraceError(
        "numpy.nditer goes through numbers that a traced value does not have yet; "
        "write for i in range(len(x)), or compute with the whole array"
    )


SCALARS = tuple(np.dtype(code).type for code in "?bhilqBHILQefd")
"""NumPy's types of numbers, called to convert a value; `l` and `q` are one or two types."""

PYTHONS: dict[Any, Callable[..., Any]] = {
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.all: _all,
    builtins.any: _any,
    builtins.bool: _number("i1"),
    builtins.float: _number("f64"),
    builtins.int: _number("i64"),
    builtins.isinstance: _isinstance,
    builtins.len: _length,
    builtins.max: _extreme(operator.gt),
    builtins.min: _extreme(operator.lt),
    builtins.range: _range,
    builtins.reversed: _reversed,
    builtins.sorted: lists.sorted,
    builtins.sum: _sum,
    builtins.type: _type,
    np.ndenumerate: _ndenumerate,
    np.nditer: _nditer,
    np.fromiter: _fromiter,
    **{kind: _scalar(kind) for kind in SCALARS},
    **MATHS,
}
"""The replacements of Python's builtins for traced values, by the builtin."""
