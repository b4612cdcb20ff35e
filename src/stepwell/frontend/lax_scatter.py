"""`gather` and `scatter` of `jax.lax`: blocks at positions given by index arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import manipulation as m
from stepwell.frontend.creation import iota
from stepwell.frontend.indexing import gather as _gathered
from stepwell.frontend.promotion import BOOL, INTEGER, cast, fresh, full, lift
from stepwell.frontend.tensor import Tensor


class GatherDimensionNumbers(NamedTuple):
    """The correspondence of axes of the result, the operand and the indices.

    offset_dims : axes of the result that index into a block
    collapsed_slice_dims : axes of the operand, of block size 1, that blocks omit
    start_index_map : for each start its axis of the operand
    operand_batching_dims, start_indices_batching_dims : pairs of batch axes
    source : `jax.lax.GatherDimensionNumbers`

    >>> import stepwell as sw
    >>> sw.lax.GatherDimensionNumbers((1,), (0,), (0,)).offset_dims
    (1,)
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The correspondence of axes of the updates, the operand and the indices.

    update_window_dims : axes of the updates that index into a block
    inserted_window_dims : axes of the operand, of block size 1, that blocks omit
    scatter_dims_to_operand_dims : for each start its axis of the operand
    operand_batching_dims, scatter_indices_batching_dims : pairs of batch axes
    source : `jax.lax.ScatterDimensionNumbers`

    >>> import stepwell as sw
    >>> sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)).inserted_window_dims
    (0,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(Enum):
    """How blocks out of bounds are treated: clamped, or filled and dropped.

    value, names, module, qualname, type, start, boundary : of `enum.Enum`
    source : `jax.lax.GatherScatterMode`

    >>> import stepwell as sw
    >>> sw.lax.GatherScatterMode.from_any("clip").name
    'CLIP'
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2

    @staticmethod
    def from_any(s: Any) -> GatherScatterMode:
        """Return the mode of a name; None is FILL_OR_DROP."""
        if isinstance(s, GatherScatterMode):
            return s
        named = {"clip": 0, "fill": 1, "drop": 1, None: 1, "promise_in_bounds": 2}
        if s not in named:
            raise ValueError(f'Unknown gather mode "{s}"')
        return GatherScatterMode(named[s])


class _Places(NamedTuple):
    indices: list[Tensor]
    """The indices along each axis of the operand, of the shape (batch axes, window axes)."""
    inside: Tensor
    """Whether each block is in bounds, of the shape of the batch axes and axes of size 1."""
    batch: int


def _element_indices(
    shape: Sequence[int],
    starts: Tensor,
    sizes: Sequence[int],
    index_map: Sequence[int],
    gone: Sequence[int],
    batching: Sequence[tuple[int, int]],
) -> _Places:
    """Return the indices of each element of the blocks in an operand of ``shape``.

    starts : integers, of the batch axes and one of the size of ``index_map``
    sizes : of a block along each axis        gone : axes that blocks omit
    batching : pairs of batch axes, of the operand and the starts
    """
    batch = starts.shape[:-1]
    window = [a for a in range(len(shape)) if a not in gone]
    whole = (*batch, *(sizes[a] for a in window))
    tail = (1,) * len(window)
    inside = full((*batch, *tail), True, BOOL)
    indices: list[Tensor] = []
    for axis, n in enumerate(shape):
        place = full((*batch, *tail), 0, INTEGER)
        if axis in index_map:
            start = cast(starts[..., list(index_map).index(axis)], INTEGER)
            start = m.reshape(start, (*batch, *tail))
            last = n - sizes[axis]
            fits = e.logical_and(e.greater_equal(start, 0), e.less_equal(start, last))
            inside = e.logical_and(inside, fits)
            place = e.clip(start, 0, max(last, 0))
        for mine, theirs in batching:
            if mine == axis:
                place = e.add(place, iota((*batch, *tail), theirs, INTEGER))
        if axis in window:
            offset = len(batch) + window.index(axis)
            place = e.add(place, iota(whole, offset, INTEGER))
        indices.append(m.broadcast_to(place, whole))
    return _Places(indices, inside, len(batch))


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Tensor:
    """Return the blocks of ``slice_sizes`` that begin at ``start_indices``.

    start_indices : integers; the last axis has one start for each axis of ``start_index_map``
    mode : 'clip', the default, clamps starts so that blocks are in bounds; 'fill' returns
        ``fill_value`` for blocks out of bounds; 'promise_in_bounds' equals 'clip'
    fill_value : by default NaN, the minimum of signed and the maximum of other dtypes
    """
    value, starts, numbers = lift(operand), lift(start_indices), dimension_numbers
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    batching = list(
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    )
    _check_sizes(slice_sizes, value.shape, starts, numbers.start_index_map)
    found = _element_indices(
        value.shape, starts, slice_sizes, numbers.start_index_map, gone, batching
    )
    if value.ndim and math.prod(found.indices[0].shape):
        result = _gathered(value, found.indices, tuple(range(value.ndim)))
    else:
        result = full(found.indices[0].shape, 0, value.kind) if found.indices else value
    chosen = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode
    if GatherScatterMode.from_any(chosen) is GatherScatterMode.FILL_OR_DROP:
        filling = cast(lift(_filling(value, fill_value), value.kind), value.kind)
        result = e.where(found.inside, result, filling)
    rank = result.ndim
    offsets = list(numbers.offset_dims)
    rest = [a for a in range(rank) if a not in offsets]
    order = [0] * rank
    for source, target in enumerate((*rest, *offsets)):
        order[target] = source
    return fresh(m.permute_dims(result, order))


def _check_sizes(
    sizes: Sequence[int], shape: Sequence[int], starts: Tensor, index_map: Sequence[int]
) -> None:
    if len(tuple(sizes)) != len(shape) or any(k > n for k, n in zip(sizes, shape, strict=True)):
        raise TypeError(f"slice_sizes {tuple(sizes)} do not fit into {tuple(shape)}")
    if not starts.ndim or starts.shape[-1] != len(tuple(index_map)):
        raise TypeError(
            f"the last axis of the indices must have the size of {tuple(index_map)}, got "
            f"{starts.shape}"
        )


def _filling(value: Tensor, fill_value: Any) -> Any:
    if fill_value is not None:
        return fill_value
    if value.kind.kind == "float":
        return math.nan
    if value.kind is BOOL:
        return True
    limits = np.iinfo(value.kind.numpy)
    return int(limits.min if value.kind.kind == "signed" else limits.max)


def _scatter(
    how: str, operand: Any, indices: Any, updates: Any, numbers: ScatterDimensionNumbers, mode: Any
) -> Tensor:
    value, starts = lift(operand), lift(indices)
    new = cast(lift(updates, value.kind), value.kind)
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    windows = list(numbers.update_window_dims)
    new = m.permute_dims(new, [*(a for a in range(new.ndim) if a not in windows), *windows])
    blocks = iter(new.shape[new.ndim - len(windows) :])
    sizes = [1 if a in gone else next(blocks) for a in range(value.ndim)]
    to = numbers.scatter_dims_to_operand_dims
    _check_sizes(sizes, value.shape, starts, to)
    batching = list(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    found = _element_indices(value.shape, starts, sizes, to, gone, batching)
    if not value.ndim:
        return new
    if not new.size:
        return fresh(value)
    first = found.indices[0]
    if GatherScatterMode.from_any(mode) is not GatherScatterMode.CLIP:
        first = e.where(found.inside, first, value.shape[0])  # dropped
    place = value.at[(first, *found.indices[1:])]
    return getattr(place, how)(m.broadcast_to(new, first.shape), mode="drop")


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """Return ``operand`` with the blocks at ``scatter_indices`` replaced by ``updates``.

    scatter_indices : integers; the last axis has one start for each axis of
        ``scatter_dims_to_operand_dims``
    mode : 'clip' clamps starts so that blocks are in bounds; others drop blocks out of bounds
    """
    return _scatter("set", operand, scatter_indices, updates, dimension_numbers, mode)


def scatter_add(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """Return ``operand`` with ``updates`` added; arguments as in `scatter`."""
    return _scatter("add", operand, scatter_indices, updates, dimension_numbers, mode)


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """Return ``operand`` with ``updates`` subtracted; arguments as in `scatter`."""
    less = e.negative(lift(updates))
    return _scatter("add", operand, scatter_indices, less, dimension_numbers, mode)


def scatter_mul(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """Return ``operand`` multiplied by ``updates``; arguments as in `scatter`."""
    return _scatter("multiply", operand, scatter_indices, updates, dimension_numbers, mode)


def scatter_min(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """Return the minimum of ``operand`` and ``updates``; arguments as in `scatter`."""
    return _scatter("min", operand, scatter_indices, updates, dimension_numbers, mode)


def scatter_max(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """Return the maximum of ``operand`` and ``updates``; arguments as in `scatter`."""
    return _scatter("max", operand, scatter_indices, updates, dimension_numbers, mode)
