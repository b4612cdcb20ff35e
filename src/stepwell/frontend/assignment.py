"""Assignment to arrays: ``x[...] = v``, ``x += v``, ``out=x``, and views that write to a base.

A traced value is a handle of a mutable array: a write makes it refer to a new SSA value. A basic
index returns a view: it knows its index in its base, reads the base again when that has changed,
and writes through to the base.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.checks import check_fits
from stepwell.frontend.compressed import chosen_places
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import read_at, scatter_at
from stepwell.frontend.indirect import has_window, read_through, write_through
from stepwell.frontend.known import NotKnown, content, handled, is_known, known_array
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.mask_places import MaskPlace, mask_place
from stepwell.frontend.mask_reductions import widened
from stepwell.frontend.masked import Masked, for_each, masked, unmasked
from stepwell.frontend.promotion import BOOL, broadcast, cast, check_castable, full, is_number, lift
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.runtime_starts import shape_at
from stepwell.frontend.strides import has_traced_step, write_steps
from stepwell.frontend.subscripts import subscript
from stepwell.frontend.tensor import Tensor, has_traced_bounds
from stepwell.frontend.windowed import is_own_window, windowed


def getitem(x: Any, index: Any, /) -> Any:
    """Return ``x[index]``: a view if NumPy would return one."""
    value = lift(x)
    if has_traced_bounds(index):
        return windowed(value, index)
    index = _unmasked_places(index)
    if has_window(index):
        return read_through(value, index)
    if (place := mask_place(value, index)) is not None:
        view = _masked_view(value, place)
        return masked(view, place.mask, place.axis)
    try:
        return _known_part(value, index)
    except NotKnown:
        pass
    place = subscript(value, index)
    found = read_at(value, place)
    arrays = [part for part in map(place.parts.__getitem__, place.fancy) if part.shape]
    if arrays or place.shape != value.shape:
        return found
    if found is not value:  # x[:] is x, with all its aliases
        found.shared = []

    def read(base: Tensor) -> Tensor:
        return read_at(base, place)

    def write(base: Tensor, part: Tensor) -> None:
        write_whole(base, scatter_at(base, place, part))

    return found.part_of(value, read, write, index)


def _unmasked_places(index: Any) -> Any:
    """Return an index with the elements that masks choose side by side."""
    if type(index) is Masked:
        return index.packed()
    if type(index) is tuple and Masked in map(type, index):
        return tuple(map(unmasked, index))
    return index


def _known_part(x: Tensor, index: Any) -> Any:
    """Return ``x[index]`` if both are known: a number, or a known array."""
    at = content(index)
    found = content(x)[at]
    if not isinstance(found, np.ndarray) or not found.shape or found.base is None:
        return handled(found)

    def read(base: Tensor) -> Tensor:
        if is_known(base):
            return known_array(content(base)[at].copy())
        return read_at(base, subscript(base, at))

    def write(base: Tensor, part: Tensor) -> None:
        if is_known(base) and is_known(part):
            write_whole(base, _changed(base, at, content(part)))
            return
        place = subscript(base, at)
        write_whole(base, scatter_at(base, place, part))

    return known_array(found.copy()).part_of(x, read, write, index)


def _changed(x: Tensor, at: Any, value: Any) -> Tensor:
    """Return a known array ``x`` with ``value`` at ``at``."""
    changed = content(x).copy()
    changed[at] = value
    return known_array(changed)


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """Execute ``x[index] = value``."""
    if not x.shape:
        raise TypeError(
            f"{x!r} is a number, which cannot be assigned to; use an array of shape (1,)"
        )
    if has_traced_bounds(index):
        if has_traced_step(index):
            write_steps(x, index, value)
        elif not is_own_window(x, index, value):
            windowed(x, index)[...] = unmasked(value)
        return
    index = _unmasked_places(index)
    if has_window(index):
        write_through(x, index, unmasked(value))
        return
    if (place := mask_place(x, index)) is not None:
        _set_masked(_masked_view(x, place), place, value)
        return
    if _is_own_view(x, index, value):
        return
    try:
        write_whole(x, _changed(x, content(index), content(value)))
        return
    except NotKnown:
        pass
    _write_at(x, index, value)


def _write_at(x: Tensor, index: Any, value: Any) -> None:
    """Execute ``x[index] = value`` for an index whose result has a known shape."""
    place = subscript(x, index)
    shape = shape_at(place)
    if not shape and x.kind is not BOOL and not _has_ellipsis(index):
        _check_element(value)
    given = fitting(value, x, shape)
    if not math.prod(shape):
        return
    if place.shape == x.shape:
        write_whole(x, scatter_at(x, place, given))
    else:  # True in an index adds an axis
        wide = scatter_at(reshape(x, place.shape), place, given)
        write_whole(x, reshape(wide, x.shape))


def _has_ellipsis(index: Any) -> bool:
    return any(part is ... for part in (index if isinstance(index, tuple) else (index,)))


def _check_element(value: Any) -> None:
    """Raise NumPy's own error, if any, for an array of one element used as a number."""
    shape = np.shape(value)
    if shape and math.prod(shape) == 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.zeros(1)[0] = np.zeros(shape)


def _is_own_view(x: Tensor, index: Any, value: Any) -> bool:
    """Whether ``value`` is ``x[index]`` itself, as after ``x[index] += v``."""
    if not isinstance(value, Tensor) or value.part is None or value.part.base is not x:
        return False
    return value.part.index is index and value.seen == x.stamp


def write(x: Tensor, value: Any, what: str) -> None:
    """Write ``value`` to all of ``x``, as ``x op= y`` and ``out=x``: never to a lower kind.

    what : the function that computed the value, for messages
    """
    given = value if isinstance(value, Tensor) else lift(value, x.kind)
    check_castable(what or "the function", given.kind, x.kind)
    if given.shape != x.shape and np.broadcast_shapes(given.shape, x.shape) != x.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast "
            f"shape {np.broadcast_shapes(given.shape, x.shape)}"
        )
    if is_known(x) and is_known(given):
        write_whole(x, _changed(x, ..., content(given)))
        return
    write_whole(x, broadcast(cast(given, x.kind), x.shape))


def write_whole(x: Tensor, value: Tensor) -> None:
    """Make ``x`` refer to ``value``; if ``x`` is a view, write through to its base."""
    if x.part is None:
        x.become(value)
        return
    base = x.part.base
    x.refresh()
    x.become(value)
    x.part.write(base, value)
    x.seen = base.stamp


def fitting(value: Any, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Convert ``value`` to the dtype of ``x``, as an assignment does, and broadcast it."""
    if is_number(value):
        return full(shape, _number(value, x), x.kind)
    if isinstance(value, str):
        place = np.zeros(1, x.kind.numpy)
        place[0] = value  # NumPy parses a number given as text
        value = place[0]
    if isinstance(value, list | tuple):
        if any(isinstance(v, Tensor) for v in value):
            value = Tensor.operators["stack"](list(value))
        else:
            value = np.asarray(value)
    check_fits(value, x.kind)
    given = cast(lift(value), x.kind)
    while given.ndim > len(shape) and given.shape[0] == 1:
        given = reshape(given, given.shape[1:])
    try:
        fits = np.broadcast_shapes(given.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"could not broadcast input array from shape {given.shape} into shape {shape}"
        )
    return broadcast(given, shape)


def _number(value: Any, x: Tensor) -> Any:
    """Return a number as NumPy stores it in the dtype of ``x``; raise if it does not fit."""
    if x.kind.kind == "float":
        return float(value)
    place = np.zeros((), x.kind.numpy)
    place[()] = value
    return place.item()


def _masked_view(x: Tensor, place: MaskPlace) -> Tensor:
    """Return the view of ``x`` whose first axes the mask is over."""
    if not place.basic:
        _check_mask(x, place.mask)
        return x
    view = place.masked_first(getitem(x, place.basic))
    _check_mask(view, place.mask)
    return view


def _set_masked(x: Tensor, place: MaskPlace, value: Any) -> None:
    """Execute ``x[mask] = value``, with one value or one row of values for all positions."""
    mask = place.mask
    if isinstance(value, Masked):
        value.check(mask)
        if value.values.shape != x.shape or value.axis != place.axis:
            raise TraceError("x[mask] = y[mask] needs x and y of one shape")
        write_whole(x, e.where(value.wide, cast(value.values, x.kind), x))
        return
    if isinstance(value, Window) and mask.ndim == x.ndim == 1:
        write_through(x, chosen_places(mask)[0], value)
        return
    rest = x.shape[mask.ndim :]
    given = fitting(value, x, rest) if is_number(value) else lift(value)
    while given.ndim > len(rest) + 1 and given.shape[0] == 1:
        given = reshape(given, given.shape[1:])
    each = given if is_number(value) else for_each(given, len(rest) + 1, place.axis)
    if each is None:
        raise TraceError(
            "how many values a mask wants is not known while tracing: one value, or one row, can "
            "be assigned to all places; use numpy.where(mask, values, x) to choose among arrays"
        )
    given = fitting(each, x, rest)
    write_whole(x, e.where(widened(mask, x.shape), given, x))


def _check_mask(x: Tensor, mask: Tensor) -> None:
    if mask.shape == x.shape[: mask.ndim]:
        return
    if mask.ndim > x.ndim:
        raise IndexError(f"too many indices: a mask of {mask.ndim} axes for {x.ndim}")
    axis = next(a for a, n in enumerate(mask.shape) if n != x.shape[a])
    raise IndexError(
        f"boolean index did not match indexed array along axis {axis}; size of axis is "
        f"{x.shape[axis]} but size of corresponding boolean axis is {mask.shape[axis]}"
    )
