"""Arrays that a traced function creates: their content is known until they meet a traced value.

Such an array is a handle like any traced value (it can be assigned to, and has views), but its
value's name is a `Known`, which holds the content. It becomes a constant op when an op uses it.
NumPy computes functions of known arrays at once: the results serve as masks, indices, shapes,
bounds of loops and conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.core.dtypes import dtype_of
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Known, current_trace, place_of, users_frame

LARGEST = 1 << 20
"""Maximum bytes of a known array: a larger one is an op, since each write would copy it."""


def known_array(array: NDArray[Any]) -> Tensor:
    """Make a new array, to which nothing else writes, part of the trace."""
    trace = current_trace()
    kind = dtype_of(array.dtype)
    if kind is None:
        return trace.constant(array)  # refuses it
    name = Known.of(trace.name("known"), array)
    location = place_of(users_frame())
    found = Tensor(trace, name, kind, array.shape, trace.scopes[-1], location)
    return trace.solid(found) if array.nbytes > LARGEST else found


def content(value: Any) -> Any:
    """Replace handles in ``value`` by their arrays; raise `NotKnown` for traced values."""
    if isinstance(value, Tensor):
        value.refresh()
        if type(value.name) is not Known:
            raise NotKnown
        return value.name.array
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(content(v) for v in value)
    if isinstance(value, dict):
        return {k: content(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(content(value.start), content(value.stop), content(value.step))
    if hasattr(value, "__array_ufunc__") and not isinstance(value, np.ndarray | np.generic):
        raise NotKnown
    return value


class NotKnown(Exception):
    """The value is traced: it is known only when the program runs."""


def is_known(value: Any) -> bool:
    """Whether ``value`` is a handle with known content."""
    if not isinstance(value, Tensor):
        return False
    value.refresh()
    return type(value.name) is Known


def rearranged(x: Tensor, how: Callable[[NDArray[Any]], NDArray[Any]]) -> Tensor | None:
    """Return a known array's elements rearranged by ``how``; None for a traced value."""
    return known_array(how(content(x)).copy(order="C")) if is_known(x) else None


def handled(found: Any) -> Any:
    """Return NumPy's result with its arrays, unless zero-dimensional, as parts of the trace."""
    if type(found) is np.ndarray and found.shape and dtype_of(found.dtype) is not None:
        if found.base is not None or not found.flags.writeable:
            found = found.copy()
        return known_array(found)
    if isinstance(found, tuple | list) and not hasattr(found, "_fields"):
        return type(found)(handled(v) for v in found)
    return found


_VIEWS = {
    *("asarray", "asanyarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays"),
    *("broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose"),
    *("moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "rot90", "split", "squeeze"),
    *("swapaxes", "transpose", "hsplit", "vsplit", "array_split", "atleast_3d", "real"),
}
_WRITING = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}


def by_numpy(function: Callable[..., Any], args: Any, keywords: Any) -> Any:
    """Return NumPy's result for known arrays; raise `NotKnown` if an argument is traced."""
    name = getattr(function, "__name__", "")
    if name in _VIEWS or name in _WRITING or keywords.get("out") is not None:
        raise NotKnown
    if not (any(map(_has_known, args)) or any(map(_has_known, keywords.values()))):
        raise NotKnown
    return handled(function(*content(tuple(args)), **content(dict(keywords))))


def _has_known(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_known, value))
    return is_known(value)


METHODS = frozenset(
    (
        *("all", "any", "argmax", "argmin", "argsort", "astype", "clip", "copy", "cumprod"),
        *("cumsum", "dot", "flatten", "item", "max", "mean", "min", "nonzero", "prod", "repeat"),
        *("round", "searchsorted", "std", "sum", "take", "tolist", "var"),
    )
)
"""Methods that neither write to an array nor return a view of it."""


def known_method(x: Tensor, name: str) -> Callable[..., Any] | None:
    """Return the method ``name`` of a known array; None for a traced value."""
    if name not in METHODS or not is_known(x):
        return None
    method = getattr(content(x), name)

    def call(*args: Any, **keywords: Any) -> Any:
        try:
            if keywords.get("out") is None:
                return handled(method(*content(args), **content(keywords)))
        except NotKnown:
            pass
        return Tensor.operators["method"](name)(x, *args, **keywords)

    return call


def content_of(x: Tensor) -> Any:
    """Return the content of a known array; None for a traced value."""
    return content(x) if is_known(x) else None
