"""Collectives of `jax.lax` over a batch: sums, means, gathers, exchanges.

They are called in a function given to `sw.vmap`, whose ``axis_name=`` names the batch. The
derivative of such a function is that of the sum of all examples' results, as in JAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import joining as j
from stepwell.frontend import manipulation as m
from stepwell.frontend import reduction as r
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.promotion import BOOL, as_dtype, cast, fresh, full, is_number, lift
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.axes import Axis, axis_called

COUNT = as_dtype("i32")
"""The dtype in which booleans are counted, as in JAX."""

Names: TypeAlias = Hashable | Sequence[Hashable]


def psum(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """Return the sum over all examples of the batch ``axis_name``, the same for each.

    x : arrays and numbers in any structure; booleans are counted, as i32
    axis_name : the ``axis_name=`` of `sw.vmap`; several names sum over all these batches
    axis_index_groups : must be None: `sw.vmap` supports no groups, as in JAX

    A Python number is multiplied by the number of examples, and stays a Python number.

    raises NameError : no enclosing `sw.vmap` has this name
    raises NotImplementedError : ``axis_index_groups`` is given
    source : `jax.lax.psum`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: x / sw.lax.psum(x, "n"), axis_name="n")(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    axes = _axes("psum", axis_name, axis_index_groups)
    return _each(x, lambda leaf: _sum(leaf, axes))


def pmean(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """Return the mean over all examples of the batch ``axis_name``, the same for each.

    x : arrays and numbers in any structure; integers have a float mean
    axis_name, axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    source : `jax.lax.pmean`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: x - sw.lax.pmean(x, "n"), axis_name="n")(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    axes = _axes("pmean", axis_name, axis_index_groups)
    count = math.prod(axis.size for axis in axes)
    return _each(x, lambda leaf: _sum(leaf, axes) / count)


def pmax(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """Return the elementwise maximum over all examples of the batch ``axis_name``.

    x : arrays and numbers in any structure
    axis_name, axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    source : `jax.lax.pmax`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: x - sw.lax.pmax(x, "n"), axis_name="n")(np.array([1.0, 3.0]))
    array([-2.,  0.])
    """
    axes = _axes("pmax", axis_name, axis_index_groups)
    return _each(x, lambda leaf: _reduced(r.max, leaf, axes))


def pmin(x: Any, axis_name: Names, *, axis_index_groups: Any = None) -> Any:
    """Return the elementwise minimum over all examples of the batch ``axis_name``.

    x : arrays and numbers in any structure
    axis_name, axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    source : `jax.lax.pmin`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: x - sw.lax.pmin(x, "n"), axis_name="n")(np.array([1.0, 3.0]))
    array([0., 2.])
    """
    axes = _axes("pmin", axis_name, axis_index_groups)
    return _each(x, lambda leaf: _reduced(r.min, leaf, axes))


def axis_index(axis_name: Names) -> Tensor:
    """Return the index of the example in the batch ``axis_name``, as i32.

    axis_name : several names give one index over all these batches, the last one fastest

    raises NameError : no enclosing `sw.vmap` has this name
    source : `jax.lax.axis_index`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: x * sw.lax.axis_index("n"), axis_name="n")(np.array([5, 5, 5]))
    array([ 0,  5, 10])
    """
    return _index(_axes("axis_index", axis_name))


def axis_size(axis_name: Names) -> int:
    """Return the number of examples of the batch ``axis_name``.

    raises NameError : no enclosing `sw.vmap` has this name
    source : `jax.lax.axis_size`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: x * sw.lax.axis_size("n"), axis_name="n")(np.array([1, 2]))
    array([2, 4])
    """
    return math.prod(axis.size for axis in _axes("axis_size", axis_name))


def all_gather(
    x: Any,
    axis_name: Names,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """Return the ``x`` of all examples along a new axis, the same for each example.

    x : arrays and numbers in any structure
    axis : the position of the new axis; with ``tiled`` the existing axis along which to concatenate
    axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    raises ValueError : there is no such axis
    source : `jax.lax.all_gather`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: sw.lax.all_gather(x, "n"), axis_name="n")(np.array([1, 2]))
    array([[1, 2],
           [1, 2]])
    """
    axes = _axes("all_gather", axis_name, axis_index_groups)

    def gathered(leaf: Any) -> Tensor:
        value = lift(leaf)
        at = check_axis(axis, value.ndim + (not tiled))
        found = m.moveaxis(_gathered(value, axes), 0, at)
        if not tiled:
            return fresh(found)
        shape = list(found.shape)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
        return fresh(m.reshape(found, tuple(shape)))

    return _each(x, gathered)


def ppermute(x: Any, axis_name: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """Exchange ``x`` by pairs ``(source, target)`` of ``perm``: each target gets its source's
    value, and an example that is no target gets zeros.

    x : arrays and numbers in any structure

    raises NameError : as `psum`
    raises ValueError : an example is a source or a target twice, or does not exist
    source : `jax.lax.ppermute`

    >>> import numpy as np, stepwell as sw
    >>> shift = [(0, 1), (1, 2)]
    >>> sw.vmap(lambda x: sw.lax.ppermute(x, "n", shift), axis_name="n")(np.array([5, 6, 7]))
    array([0, 5, 6])
    """
    (axis,) = _one("ppermute", axis_name)
    pairs = [(int(source), int(target)) for source, target in perm]
    for which in zip(*pairs, strict=True):
        if len(set(which)) < len(which) or not all(0 <= n < axis.size for n in which):
            raise ValueError(
                f"perm= of ppermute names sources and targets once, below {axis.size}: got {perm}"
            )
    source_of = {target: source for source, target in pairs}

    def permuted(leaf: Any) -> Tensor:
        rows = _gathered(lift(leaf), [axis])
        zeros = full((1, *rows.shape[1:]), 0, rows.kind)
        table = np.array([source_of.get(n, axis.size) for n in range(axis.size)], np.int32)
        return fresh(j.concat([rows, zeros])[lift(table)[axis.place]])

    return _each(x, permuted)


def pshuffle(x: Any, axis_name: Names, perm: Sequence[int]) -> Any:
    """Return a permutation of ``x`` over the examples: example ``i`` gets that of ``perm[i]``.

    x : arrays and numbers in any structure
    perm : a permutation of the indices of the examples

    raises NameError : as `psum`
    raises ValueError : ``perm`` is not a permutation
    source : `jax.lax.pshuffle`

    >>> import numpy as np, stepwell as sw
    >>> f = sw.vmap(lambda x: sw.lax.pshuffle(x, "n", [2, 0, 1]), axis_name="n")
    >>> f(np.array([5, 6, 7]))
    array([7, 5, 6])
    """
    (axis,) = _one("pshuffle", axis_name)
    if sorted(perm) != list(range(axis.size)):
        raise ValueError(f"perm= of pshuffle is an order of {axis.size} examples, got {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(axis.size), strict=True)))


def pbroadcast(x: Any, axis_name: Names, source: int) -> Any:
    """Return the ``x`` of example ``source`` for all examples.

    x : arrays and numbers in any structure

    raises NameError : as `psum`
    raises ValueError : the example does not exist
    source : `jax.lax.pbroadcast`

    >>> import numpy as np, stepwell as sw
    >>> f = sw.vmap(lambda x: sw.lax.pbroadcast(x, "n", 1), axis_name="n")
    >>> f(np.array([5, 6, 7]))
    array([6, 6, 6])
    """
    axes = _axes("pbroadcast", axis_name)
    if not 0 <= source < math.prod(axis.size for axis in axes):
        raise ValueError(f"source= of pbroadcast is the number of an example, got {source}")
    return _each(x, lambda leaf: fresh(_gathered(lift(leaf), axes)[source]))


def pswapaxes(x: Any, axis_name: Names, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Return ``x`` with its axis ``axis``, of the size of the batch, and the batch exchanged.

    x : arrays in any structure
    axis_name, axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    raises ValueError : the axis has another size than the batch
    source : `jax.lax.pswapaxes`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x: sw.lax.pswapaxes(x, "n", 0), axis_name="n")(np.array([[1, 2], [3, 4]]))
    array([[1, 3],
           [2, 4]])
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def all_to_all(
    x: Any,
    axis_name: Names,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Split ``x`` along ``split_axis``, send a part to each example, and join the parts received.

    x : arrays in any structure; ``split_axis`` has the size of the batch and is dropped, the parts
        are stacked along a new axis ``concat_axis``
    tiled : ``split_axis`` has a multiple of that size and stays; parts are concatenated along
        ``concat_axis``
    axis_name, axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    raises ValueError : the axis has another size
    source : `jax.lax.all_to_all`

    >>> import numpy as np, stepwell as sw
    >>> f = sw.vmap(lambda x: sw.lax.all_to_all(x, "n", 0, 0), axis_name="n")
    >>> f(np.array([[1, 2], [3, 4]]))
    array([[1, 3],
           [2, 4]])
    """
    axes = _axes("all_to_all", axis_name, axis_index_groups)

    def exchanged(leaf: Any) -> Tensor:
        parts = _parts("all_to_all", lift(leaf), split_axis, axes, tiled)
        mine = _gathered(parts, axes)[:, _index(axes)]
        found = m.moveaxis(mine, 0, check_axis(concat_axis, mine.ndim - tiled))
        if not tiled:
            return fresh(found)
        shape = list(found.shape)
        at = check_axis(concat_axis, mine.ndim - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
        return fresh(m.reshape(found, tuple(shape)))

    return _each(x, exchanged)


def psum_scatter(
    x: Any,
    axis_name: Names,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Return one part of the sum over all examples to each example.

    x : arrays in any structure; ``scatter_dimension`` has the size of the batch and is dropped
    tiled : the dimension has a multiple of that size and stays
    axis_name, axis_index_groups : as in `psum`

    raises NameError, NotImplementedError : as `psum`
    raises ValueError : the axis has another size
    source : `jax.lax.psum_scatter`

    >>> import numpy as np, stepwell as sw
    >>> f = sw.vmap(lambda x: sw.lax.psum_scatter(x, "n"), axis_name="n")
    >>> f(np.array([[1, 2], [3, 4]]))
    array([4, 6])
    """
    axes = _axes("psum_scatter", axis_name, axis_index_groups)

    def scattered(leaf: Any) -> Tensor:
        value = _counted(lift(leaf))
        parts = _parts("psum_scatter", value, scatter_dimension, axes, tiled)
        for axis in axes[:-1]:  # the combined index counts the last batch fastest
            parts = _emit("all_sum", parts, axis, parts.shape)
        if len(axes) > 1:
            sizes = tuple(a.size for a in axes)
            parts = m.reshape(parts, (*sizes, *parts.shape[1:]))
            for axis in axes[:-1]:
                parts = parts[axis.place]
        return fresh(_emit("reduce_scatter", parts, axes[-1], parts.shape[1:]))

    return _each(x, scattered)


def _axes(what: str, names: Names, groups: Any = None) -> list[Axis]:
    """Return the batches with these names."""
    if groups is not None:
        raise NotImplementedError(f"{what}: axis_index_groups= is not supported with vmap")
    given = names if isinstance(names, tuple | list) else (names,)
    return [axis_called(what, name) for name in given]


def _one(what: str, names: Names) -> list[Axis]:
    found = _axes(what, names)
    if len(found) != 1:
        raise NotImplementedError(f"{what} is over one batch, got {names!r}")
    return found


def _each(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return ``x`` with ``change`` applied to each leaf."""
    leaves, tree = flatten(x)
    return unflatten(tree, [change(leaf) for leaf in leaves])


def _emit(op: str, value: Tensor, axis: Axis, shape: Sequence[int]) -> Tensor:
    type = value.kind, tuple(shape)
    return current_trace().emit(op, [value], [type], (), over=axis.text)[0]


def _counted(value: Tensor) -> Tensor:
    """Return booleans in the dtype in which they are counted."""
    return cast(value, COUNT) if value.kind is BOOL else value


def _sum(leaf: Any, axes: Sequence[Axis]) -> Any:
    if is_number(leaf):
        return leaf * math.prod(axis.size for axis in axes)
    value = _counted(lift(leaf))
    for axis in axes:
        value = _emit("all_sum", value, axis, value.shape)
    return value


def _gathered(value: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Return all examples along one leading axis."""
    count = len(axes)
    for axis in reversed(axes):
        value = _emit("all_gather", value, axis, (axis.size, *value.shape))
    if count == 1:
        return value
    return m.reshape(value, (math.prod(value.shape[:count]), *value.shape[count:]))


def _reduced(reduce: Callable[..., Tensor], leaf: Any, axes: Sequence[Axis]) -> Tensor:
    return reduce(_gathered(lift(leaf), axes), axis=0)


def _index(axes: Sequence[Axis]) -> Tensor:
    found = axes[0].place
    for axis in axes[1:]:
        found = e.add(e.multiply(found, axis.size), axis.place)
    return found


def _parts(what: str, value: Tensor, axis: int, axes: Sequence[Axis], tiled: bool) -> Tensor:
    """Return an axis split into a part for each example, along a leading axis."""
    at, count = check_axis(axis, value.ndim), math.prod(a.size for a in axes)
    size = value.shape[at]
    if size % count if tiled and count else size != count:
        most = "a multiple of " if tiled else ""
        raise ValueError(f"{what}: axis {axis} has size {size}, but must have {most}{count}")
    if tiled:
        shape = (*value.shape[:at], count, size // count, *value.shape[at + 1 :])
        value = m.reshape(value, shape)
    return m.moveaxis(value, at, 0)
