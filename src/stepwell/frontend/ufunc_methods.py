"""Calls of NumPy's ufuncs and of their methods: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

Reductions with an op (sums, extremes, ...) use it. Any other ufunc of two operands is applied to
the elements in sequence, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reducing as red
from stepwell.frontend import reduction as r
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import element_numbers
from stepwell.frontend.joining import concat
from stepwell.frontend.lax_control import fori_loop, scan
from stepwell.frontend.manipulation import broadcast_to, expand_dims, moveaxis, reshape
from stepwell.frontend.nan_functions import nanmax, nanmin
from stepwell.frontend.operands import array, axes, known, stored, ufunc, with_kept
from stepwell.frontend.promotion import (
    BOOL,
    cast,
    converted,
    fresh,
    full,
    is_number,
    kind_of,
    lift,
    ours,
    wrapped_number,
)
from stepwell.frontend.promotion import as_dtype as dtype_of
from stepwell.frontend.runtime_starts import shape_at
from stepwell.frontend.subscripts import subscript
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import no_more

MAX_UNROLLED = 8
"""The most elements over which a reduction in sequence is unrolled."""


def call_method(function: Any, method: str, inputs: tuple[Any, ...], keywords: Any) -> Any:
    """Return the result of a call of a ufunc's method."""
    name = f"{function.__name__}.{method}"
    if function.nin != 2 and method != "at":
        raise ValueError(f"{method} only supported for binary functions")
    if function.nout != 1 or function.signature is not None:
        raise ValueError(f"numpy.{name}: this method is of ufuncs of one result and no core axes")
    return _METHODS[method](function, *inputs, **keywords)


def _bitwise(op: str) -> Callable[..., Any]:
    def reduce(
        a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any
    ) -> Tensor:
        value = array(a) if dtype is None else cast(array(a), dtype_of(dtype))
        if value.kind.kind == "float":
            raise TypeError(f"ufunc 'bitwise_{op}' not supported for the input types")
        value = red.chosen(value, where, value.kind.kind == "bool" or (-1 if op == "and" else 0))
        return r.folded(f"reduce_{op}", value, axis, keepdims)

    return reduce


def _logical_xor(
    a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Tensor:
    many = red.sum(e.truth(array(a)), axis, None, None, keepdims, initial, where)
    return e.equal(e.remainder(many, 2), 1)


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": red.sum,
    "multiply": red.prod,
    "maximum": lambda a, axis, dtype, out, keep, start, where: red.max(
        _as_dtype(a, dtype), axis, None, keep, start, where
    ),
    "minimum": lambda a, axis, dtype, out, keep, start, where: red.min(
        _as_dtype(a, dtype), axis, None, keep, start, where
    ),
    "fmax": lambda a, axis, dtype, out, keep, start, where: nanmax(
        _as_dtype(a, dtype), axis, None, keep, start, where
    ),
    "fmin": lambda a, axis, dtype, out, keep, start, where: nanmin(
        _as_dtype(a, dtype), axis, None, keep, start, where
    ),
    "logical_and": lambda a, axis, dtype, out, keep, start, where: red.all(
        a, axis, None, keep, where=where
    ),
    "logical_or": lambda a, axis, dtype, out, keep, start, where: red.any(
        a, axis, None, keep, where=where
    ),
    "logical_xor": _logical_xor,
    "bitwise_and": _bitwise("and"),
    "bitwise_or": _bitwise("or"),
}
"""Reductions with an op, or composed of such ops."""


def _as_dtype(a: Any, dtype: Any) -> Tensor:
    return array(a) if dtype is None else cast(array(a), dtype_of(dtype))


def _reduce(
    function: Any,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    value = array(a)
    if not value.ndim and axis in (0, -1, None):
        axis = ()
    ours = _REDUCTIONS.get(function.__name__)
    bitwise = function.__name__.startswith(("bitwise", "logical"))
    if ours is not None and not (bitwise and initial is not None):
        return stored(ours(value, axis, dtype, None, keepdims, initial, where), out, casting=True)
    if where is not True:
        raise TraceError(f"numpy.{function.__name__}.reduce: where= is not known to Stepwell")
    along = axes(axis, value.ndim)
    if len(along) != 1:
        raise ValueError(
            f"reduction operation '{function.__name__}' is not reorderable, "
            "so at most one axis may be specified"
        )
    rows = moveaxis(_operands(function, value, dtype), along[0], 0)
    if initial is not None:
        start = broadcast_to(cast(array(initial), rows.kind), rows.shape[1:])
        rows = concat([expand_dims(start, 0), rows])
    if not rows.shape[0]:
        raise ValueError(
            f"zero-size array to reduction operation {function.__name__} which has no identity"
        )
    found = rows[0]
    if rows.shape[0] <= MAX_UNROLLED:
        for i in range(1, rows.shape[0]):
            found = cast(ufunc(function, found, rows[i]), rows.kind)
    else:
        found = scan(lambda c, x: (_step(function, c, x), None), found, rows[1:])[0]
    return stored(with_kept(fresh(found), value.shape, axis, keepdims), out, casting=True)


def _operands(function: Any, value: Tensor, dtype: Any) -> Tensor:
    """Return ``value`` in a dtype that the ufunc maps to itself, for the accumulator."""
    if dtype is not None:
        return cast(value, dtype_of(dtype))
    if function.__name__ in ("add", "multiply") and value.kind.kind != "float":
        return red.sum(expand_dims(value, 0), 0)
    kind = np.dtype(function.resolve_dtypes((value.dtype, value.dtype, None))[-1])
    return e.truth(value) if kind.kind == "b" else cast(value, dtype_of(kind))


def _step(function: Any, carry: Tensor, x: Tensor) -> Tensor:
    return cast(ufunc(function, carry, x), carry.kind)


_RUNNING: dict[str, Callable[..., Any]] = {
    "add": r.cumulative_sum,
    "multiply": r.cumulative_prod,
    "maximum": r.cumulative_max,
    "minimum": r.cumulative_min,
}


def _accumulate(function: Any, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    value = array(a)
    if not value.ndim:
        raise TypeError("cannot accumulate on a scalar")
    at = check_axis(axis, value.ndim)
    rows = _operands(function, value, dtype)
    if rows.kind is BOOL and function.__name__ in ("logical_and", "minimum"):
        return stored(r.cumulative_min(rows, axis=at), out, casting=True)
    if rows.kind is BOOL and function.__name__ in ("logical_or", "maximum"):
        return stored(r.cumulative_max(rows, axis=at), out, casting=True)
    if (ours := _RUNNING.get(function.__name__)) is not None:
        return stored(cast(ours(rows, axis=at), rows.kind), out, casting=True)
    rows = moveaxis(rows, at, 0)
    if rows.shape[0] < 2:
        return stored(fresh(moveaxis(rows, 0, at)), out, casting=True)

    def step(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        found = _step(function, carry, x)
        return found, found

    rest = scan(step, rows[0], rows[1:])[1]
    return stored(moveaxis(concat([rows[:1], rest]), 0, at), out, casting=True)


def _outer(
    function: Any, a: Any, b: Any, /, out: Any = None, dtype: Any = None, **more: Any
) -> Any:
    no_more(f"{function.__name__}.outer", more)
    x, y = (lift(v) if is_number(v) else array(v) for v in (a, b))
    x = reshape(x, (*x.shape, *(1,) * y.ndim))
    return stored(ufunc(function, x, y, dtype=dtype), out)


_AT = {"add": "add", "subtract": "add", "multiply": "multiply", "maximum": "max", "minimum": "min"}


def _changes_at_once(function: Any, write: str, x: Tensor, index: Any, value: Any) -> bool:
    """Apply `ufunc.at` by one op if the ufunc computes in the dtype of ``x``; return whether."""
    subscript(x, index)  # raises for a wrong index
    if not x.size:
        return True
    given = function.resolve_dtypes((kind_of(x), kind_of(value), None))
    kind = ours(given[0])
    if kind is not x.kind and not (write == "add" and kind.kind == x.kind.kind != "float"):
        return False
    if is_number(value):
        wrapped = wrapped_number(value, kind)
        if wrapped != value and write in ("max", "min"):
            return False
        value = full((), wrapped, kind)
    changes = converted(value, ours(given[1]))
    if function is np.subtract:
        changes = e.negative(changes)
    x.write(cast(getattr(cast(x, kind).at[index], write)(changes), x.kind))
    return True


def _check_values(x: Tensor, index: Any, values: Any) -> None:
    """Check that the shape of values fits the index, even if it selects no elements."""
    shape, given = shape_at(subscript(x, index)), np.shape(values)
    if given and (len(given) > len(shape) or np.broadcast_shapes(shape, given) != shape):
        raise ValueError("array is not broadcastable to correct shape")


def _at(function: Any, a: Any, indices: Any, b: Any = None) -> None:
    """Change elements in place; an element whose index occurs twice is changed twice."""
    if not isinstance(a, Tensor):
        raise TraceError(
            f"numpy.{function.__name__}.at writes to an array that is not part of the trace; "
            "pass it as an argument, or make it in the function"
        )
    if (b is None) != (function.nin == 1):
        raise ValueError("second operand needed for ufunc" if b is None else "too many operands")
    _check_values(a, indices, b)
    if b is not None and (a.kind is BOOL or not a.size):
        function.resolve_dtypes((a.dtype, np.dtype(kind_of(b)), None))
    write = _AT.get(function.__name__)
    once = write is not None and a.kind is not BOOL
    if once and _changes_at_once(function, write or "", a, indices, b):
        return
    flat = reshape(a, (a.size,))
    places = element_numbers(a, indices)
    if not places.size:
        return
    numbers = reshape(places, (places.size,))
    values = None
    if b is not None:
        given = array(np.asarray(b) if is_number(b) else b)  # NumPy converts numbers to arrays here
        values = reshape(broadcast_to(given, places.shape), (places.size,))

    def body(i: Any, whole: Tensor) -> Tensor:
        place = numbers[i]
        operands = [whole[place]] if values is None else [whole[place], values[i]]
        return whole.at[place].set(cast(ufunc(function, *operands), whole.kind))

    a.write(reshape(fori_loop(0, places.size, body, flat), a.shape))


def _reduceat(
    function: Any, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    value = array(a)
    at = check_axis(axis, value.ndim)
    n = value.shape[at]
    places = known(indices, f"the places of numpy.{function.__name__}.reduceat must be known")
    head = (slice(None),) * at
    parts: list[Tensor] = []
    for i, first in enumerate(places.tolist()):
        if not 0 <= first < n:
            raise IndexError(
                f"index {first} out-of-bounds in {function.__name__}.reduceat [0, {n})"
            )
        last = int(places[i + 1]) if i + 1 < len(places) else n
        part = value[(*head, slice(first, max(last, first + 1)))]
        parts.append(_reduce(function, part, at, dtype, None, True))
    return stored(concat(parts, axis=at), out, casting=True)


_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
    "reduceat": _reduceat,
}
