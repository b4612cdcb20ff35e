"""``x[:i]``, ``x[i:j]`` and ``x[i:i+3]`` with bounds known at run time only.

If the size is known, the slice is a view, as any slice. Else it is a `Window`: it supports
elementwise operations, reductions, products with windows of the same bounds, and assignment. The
trace has ops on the whole array, in which elements beyond the bounds are masked; the loops of the
compiled program skip these elements (`analysis/windows.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeGuard

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.bounds import Bounds, bounds_of, cut, flipped, length
from stepwell.frontend.checks import check
from stepwell.frontend.creation import iota
from stepwell.frontend.equal_values import is_same_value
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import gather
from stepwell.frontend.manipulation import expand_dims
from stepwell.frontend.promotion import INTEGER, cast, fresh, lift
from stepwell.frontend.table import call_named
from stepwell.frontend.tensor import Partial, Tensor
from stepwell.frontend.ufuncs import ufunc
from stepwell.frontend.window_reductions import ADVICE, limit
from stepwell.frontend.window_statistics import Statistics


class Window(Statistics, Partial, np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of ``values`` within bounds along some axes."""

    def __init__(self, values: Tensor, bounds: Sequence[Bounds | None]) -> None:
        self.values, self.bounds = values, tuple(bounds)
        self.place: tuple[Tensor, Any] | None = None
        """The array and the index that it was sliced by."""
        self.written: Any = None
        """The state of that array after the last write through this window."""

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Window:
        """The window with its axes in reverse order."""
        return Window(self.values.T, self.bounds[::-1])

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute with all elements, also those beyond the bounds."""
        out = keywords.pop("out", None)
        if method == "outer" and not keywords and out is None:
            return _outer(function, *inputs)
        if method != "__call__" or keywords:
            self.refuse()
        if function is np.matmul:
            found = product(*inputs)
        else:
            given, bounds = together(inputs)
            found = Window(ufunc(function, *given), bounds)
        if out is None:
            return found
        out[0][...] = found
        return out[0]

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Call one of the reductions."""
        name = getattr(function, "__name__", "")
        if name in ("dot", "outer") and len(args) == 2 and not keywords:
            return product(*args) if name == "dot" else _outer(np.multiply, *args)
        if name == "flip" and isinstance(args[0], Window) and not keywords.keys() - {"axis"}:
            return self._flipped(*(args[1:] or (keywords.get("axis"),)))
        if name == "take" and len(args) == 2 and isinstance(args[1], Window) and not keywords:
            return lift(args[0]).reshape(-1)[args[1]]
        if name == "put" and len(args) == 3 and isinstance(args[1], Window) and not keywords:
            args[0].reshape(-1)[args[1]] = args[2]
            return None
        if name == "delete" and isinstance(args[0], Tensor):
            return call_named(name, args, keywords)
        if name in _ELEMENTWISE:
            given, bounds = together(args)
            return Window(call_named(name, given, keywords), bounds)
        method = getattr(type(self), _NAMES.get(name, name), None)
        if method is None or name.startswith("_") or not isinstance(args[0], Window):
            self.refuse()
        if isinstance(method, property):
            return getattr(self, name)
        return method(*args, **keywords)

    def sort(self) -> Window:
        """Return the elements in order: `numpy.sort`."""
        (bounds,) = self.bounds if self.ndim == 1 else (None,)
        if bounds is None:
            self.refuse()
        last = np.nan if self.dtype.kind == "f" else limit(self.dtype, True)
        found = call_named("sort", (self.filled(last),), {})
        return Window(found, [bounds_of(slice(0, lift(length(bounds))), found.shape[0])])

    def _flipped(self, axis: Any) -> Window:
        """Return the elements in reverse order along axes."""
        axes = self.axes(axis)
        index = tuple(slice(None, None, -1 if a in axes else 1) for a in range(self.ndim))
        sizes = zip(self.bounds, self.values.shape, strict=True)
        bounds = [flipped(b, n) if a in axes else b for a, (b, n) in enumerate(sizes)]
        return Window(fresh(self.values[index]), bounds)

    def like(self, values: Tensor, bounds: Sequence[Bounds | None]) -> Window:
        """Return another window."""
        return Window(values, bounds)

    def own(self, function: Any, other: Any) -> Any:
        """Return a function of two of this array and another."""
        return function(self, other)

    def diff(self) -> Any:
        """Return the differences of neighbours."""
        if self.ndim != 1:
            self.refuse()
        return self[1:] - self[:-1]

    def copy(self) -> Window:
        """Return a copy."""
        return Window(fresh(self.values), self.bounds)

    def astype(self, dtype: Any) -> Window:
        """Return the elements in another dtype."""
        return Window(self.values.astype(dtype), self.bounds)

    def dot(self, other: Any) -> Any:
        """Return the product with another array or window."""
        return product(self, other)

    def fill(self, value: Any) -> None:
        """Write a number to every element."""
        self[...] = value

    def __len__(self) -> int:
        self.refuse()

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not Ellipsis and not (isinstance(index, slice) and index == slice(None)):
            self.refuse()
        (_, given), bounds = together((self, value))
        if [b and b.key for b in bounds] != [b and b.key for b in self.bounds]:
            self.refuse()
        kept = cast(lift(given, self.values.kind), self.values.kind)
        Tensor.operators["write_whole"](self.values, e.where(self.mask, kept, self.values))
        if self.place is not None:
            self.written = self.place[0].stamp

    def __getitem__(self, index: Any) -> Any:
        if self.ndim > 1 and isinstance(index, tuple | int | np.integer | Tensor):
            return self._part(index if isinstance(index, tuple) else (index,))
        bounds = self.bounds[0]
        if isinstance(index, slice) and index == slice(None, None, -1):
            first = flipped(bounds, self.values.shape[0])
            return Window(self.values[::-1], [first, *self.bounds[1:]])
        if index is Ellipsis or (isinstance(index, slice) and index == slice(None)):
            return self
        if isinstance(index, slice) and bounds is not None and index.step in (None, 1):
            return Window(self.values, [cut(bounds, index), *self.bounds[1:]])
        if bounds is None or self.ndim != 1 or not _is_number(index):
            self.refuse()
        return self.values[self._place(index, bounds, 0)]

    def _part(self, parts: tuple[Any, ...]) -> Any:
        """Return the elements at numbers and slices, one axis after the other."""
        if len(parts) > self.ndim or not all(_is_number(p) or isinstance(p, slice) for p in parts):
            self.refuse()
        found: Any = self
        for axis, part in reversed(list(enumerate(parts))):
            if isinstance(part, slice) and part == slice(None):
                continue
            bounds = found.bounds[axis] if isinstance(found, Window) else None
            rest = [] if not isinstance(found, Window) else list(found.bounds)
            at: Any = (*(slice(None),) * axis, part)
            if bounds is None:
                values = found[at] if not isinstance(found, Window) else found.values[at]
            elif _is_number(part):
                values = found.values[(*at[:-1], self._place(part, bounds, axis))]
            else:
                self.refuse()
            if _is_number(part) and rest:
                del rest[axis]
            found = Window(fresh(values), rest) if any(rest) else values
        return found

    def _place(self, index: int | Tensor, bounds: Bounds, axis: int) -> Any:
        """Return where an element within bounds is in the whole array."""
        count = length(bounds)
        if isinstance(index, Tensor):
            inside = e.logical_and(e.less(index, count), e.greater_equal(index, -count))
            said = ("index ", f" is out of bounds for axis {axis} with size ", "")
            check(inside, "IndexError", said, [index, lift(count)])
            first = e.where(e.less(index, 0), bounds.high, bounds.low)
            return e.add(cast(lift(first), INTEGER), cast(index, INTEGER))
        index = int(index)
        least = index + 1 if index >= 0 else -index
        said = (f"index {index} is out of bounds for axis {axis} with size ", "")
        check(lift(least <= count), "IndexError", said, [lift(count)])
        return bounds.low + index if index >= 0 else bounds.high + index

    def __iter__(self) -> Iterator[Any]:
        self.refuse()

    def __bool__(self) -> bool:
        self.refuse()

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()


def _is_number(index: Any) -> TypeGuard[int | Tensor]:
    if isinstance(index, Tensor):
        return not index.shape and index.kind.kind in ("signed", "unsigned")
    return isinstance(index, int | np.integer) and not isinstance(index, bool)


_ELEMENTWISE = frozenset(
    ("where", "clip", "round", "around", "nan_to_num", "isclose", "zeros_like", "ones_like")
)
_NAMES = {"amin": "min", "amax": "max"}


def together(inputs: Sequence[Any]) -> tuple[list[Any], list[Bounds | None]]:
    """Return operands with their elements within the bounds aligned, and the bounds."""
    rank = max(map(_rank, inputs))
    bounds: list[Bounds | None] = [None] * rank
    for value in inputs:
        if isinstance(value, Window):
            for axis, each in enumerate(value.bounds, rank - value.ndim):
                bounds[axis] = bounds[axis] or each
    given = [_fitted(v, bounds) for v in inputs]
    for axis, each in enumerate(bounds):
        if each is not None:
            given = _cropped(given, axis - rank, each)
    return given, bounds


def _cropped(given: list[Any], axis: int, bounds: Bounds) -> list[Any]:
    """Return operands cropped to one size along ``axis`` (negative), which holds the bounds."""
    own = [v.shape[axis] if _rank(v) >= -axis else 1 for v in given]
    sizes = {n for n in own if n != 1}
    if len(sizes) < 2:
        return given
    least = min(sizes)
    check(lift(e.less_equal(bounds.high, least)), "ValueError", ["operands of different sizes"])
    index = (..., slice(least), *(slice(None),) * (-axis - 1))
    return [v[index] if n > least else v for v, n in zip(given, own, strict=True)]


def _fitted(value: Any, bounds: Sequence[Bounds | None]) -> Any:
    if not _rank(value):
        return value
    own = _bounds_of(value)
    found = value.values if isinstance(value, Window) else value
    for axis, each in enumerate(own):
        wanted = bounds[len(bounds) - len(own) + axis]
        if wanted is None or (each is None and found.shape[axis] == 1):
            continue
        if each is None:
            raise TraceError(f"an array meets a slice of another size; {ADVICE}")
        found = _moved(found, axis, each, wanted)
    return found


def _moved(x: Tensor, axis: int, given: Bounds, wanted: Bounds) -> Tensor:
    """Return ``x`` with its elements within ``given`` moved to the places within ``wanted``."""
    if given.key == wanted.key or _are_same(given, wanted):
        return x
    sure = given.extent == wanted.extent
    if sure and given.first.root == wanted.first.root:
        by = wanted.first.offset - given.first.offset
        return call_named("roll", (x, by), {"axis": axis})
    apart = e.subtract(lift(wanted.low), lift(given.low))
    places = e.subtract(iota((x.shape[axis],), 0, INTEGER), apart)
    if not sure:
        sizes = [length(wanted), length(given)]
        single = e.equal(sizes[1], 1)
        fits = e.logical_or(single, e.equal(*sizes))
        said = ("operands could not be broadcast together with shapes (", ",) (", ",) ")
        check(fits, "ValueError", said, sizes)
        places = e.where(single, cast(lift(given.low), INTEGER), places)
    return gather(x, [places], (axis,))  # elements beyond the bounds are arbitrary


def _are_same(a: Bounds, b: Bounds) -> bool:
    """Whether bounds are the same computation of the same values."""
    return all(
        is_same_value(fresh(x), fresh(y))
        if isinstance(x, Tensor) and isinstance(y, Tensor)
        else type(x) is type(y) is int and x == y
        for x, y in ((a.low, b.low), (a.high, b.high))
    )


def product(a: Any, b: Any) -> Any:
    """Return ``a @ b`` of windows or arrays with one or two axes each."""
    if max(_rank(a), _rank(b)) > 2 or min(_rank(a), _rank(b)) < 1:
        raise TraceError(f"@ of slices with traced bounds takes vectors and matrices; {ADVICE}")
    own, other = _bounds_of(a), _bounds_of(b)
    shared = own[-1] or other[0]
    summed = min(len(own), len(other)) == 1 and not _is_narrow(a, b)
    one, two = (
        v if not isinstance(v, Window) else v.values if summed else v.filled(0) for v in (a, b)
    )
    if shared is not None:
        if own[-1] is None or other[0] is None:
            raise TraceError(f"an array meets a slice of another size; {ADVICE}")
        two = _moved(two, 0, other[0], own[-1])
        one, two = _cropped([one, two.T], -1, own[-1])
        two = two.T
    left = [*own[:-1], *other[1:]]
    found = _summed(one, two, own, left) if summed else ufunc(np.matmul, one, two)
    return Window(found, left) if any(left) else found


def _is_narrow(a: Any, b: Any) -> bool:
    """Whether the accumulator of products needs a wider dtype than their own."""
    return min(lift(_values(v)).kind.bytes for v in (a, b)) < 4


def _values(value: Any) -> Any:
    return value.values if isinstance(value, Window) else value


def _summed(
    one: Any, two: Any, own: Sequence[Bounds | None], left: Sequence[Bounds | None]
) -> Tensor:
    """Return the product with a vector as a masked sum: elements beyond the bounds add 0."""
    axis = len(own) - 1
    if _rank(one) < _rank(two):
        products = ufunc(np.multiply, expand_dims(lift(one), 1), two)
    else:
        products = ufunc(np.multiply, one, two)
    bounds = [*left[:axis], own[-1], *left[axis:]]
    given = Window(products, bounds).filled(0) if any(bounds) else products
    return call_named("sum", (given,), {"axis": axis, "dtype": given.dtype})


def _rank(value: Any) -> int:
    return value.ndim if isinstance(value, Tensor | Window) else np.ndim(value)


def _bounds_of(value: Any) -> tuple[Bounds | None, ...]:
    return value.bounds if isinstance(value, Window) else (None,) * _rank(value)


def _outer(function: Any, a: Any, b: Any) -> Any:
    one = a.values if isinstance(a, Window) else a
    two = b.values if isinstance(b, Window) else b
    if _rank(a) != 1 or _rank(b) != 1:
        raise TraceError(f"the outer product takes two vectors; {ADVICE}")
    found = ufunc(function, expand_dims(lift(one), 1), expand_dims(lift(two), 0))
    return Window(found, [*_bounds_of(a), *_bounds_of(b)])
