"""Arguments that partly overlap in memory, where the function assigns to one of them.

As in NumPy, a write to one is visible in the others: the program takes the base array, which owns
the memory, and the arguments are views of it in the trace.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from stepwell.frontend import flowing
from stepwell.frontend.calls import Call
from stepwell.frontend.effects import PartlyShared
from stepwell.frontend.pytree import Tree, count, flatten, unflatten

MAX_PROGRAMS = 64
"""The most programs of a function for ways of overlapping: the same as its most traces."""

MAX_AXES = 4
"""The most axes besides the first in a guessed shape of a base: bounds the number of guesses."""
OF_ARGUMENTS = {"dynamic", "input_signature", "donate_argnames", "donate_argnums"}
"""Options of `sw.jit` that refer to the function's own arguments."""


@dataclass(frozen=True)
class View:
    """An argument as a view of a base array: ``base[index]``, with its axes in the given order."""

    base: int
    index: tuple[Any, ...]
    order: tuple[int, ...]

    def of(self, base: Any) -> Any:
        """Return this view of ``base``, an array or a traced value."""
        part = base[self.index]
        return part if self.order == tuple(range(len(self.order))) else part.transpose(self.order)


@dataclass
class OnBases:
    """A function of base arrays, and of the arguments that are not views of them."""

    function: Callable[..., Any]
    signature: inspect.Signature
    static: Mapping[str, Any]
    trees: Sequence[tuple[str, Tree]]
    views: Sequence[View | None]
    """For each leaf of the arguments, in order."""

    __name__ = "on_bases"

    def __call__(self, bases: tuple[Any, ...], others: tuple[Any, ...]) -> Any:
        """Call the function while it is traced.

        Return its results that are not views, and a dict whose key has the structure of its result
        and the argument number of each leaf that is a view: each program has its own.
        """
        rest = iter(others)
        leaves = [next(rest) if v is None else v.of(bases[v.base]) for v in self.views]
        bound = inspect.BoundArguments(self.signature, self._arguments(leaves))
        values, tree = flatten(flowing.call(self.function, *bound.args, **bound.kwargs))
        views = {id(leaf): i for i, leaf in enumerate(leaves) if self.views[i] is not None}
        returned = tuple(views.get(id(value)) for value in values)
        plain = tuple(v for v, i in zip(values, returned, strict=True) if i is None)
        return plain, {(tree, returned): None}

    def _arguments(self, leaves: Sequence[Any]) -> Any:
        left = iter(leaves)
        data = {
            n: unflatten(tree, [next(left) for _ in range(count(tree))]) for n, tree in self.trees
        }
        given = {**self.static, **data}
        return {name: given[name] for name in self.signature.parameters if name in given}


class Overlapping:
    """The programs of a jitted function for overlapping arguments, one for each way of overlap."""

    def __init__(
        self, signature: inspect.Signature, options: Mapping[str, Any], jitted: Callable[..., Any]
    ) -> None:
        """Begin without programs.

        options : the options of `sw.jit` for the function
        jitted : returns a jitted function; takes a function, its static arguments, and options
        """
        self._signature = signature
        self._options = {k: v for k, v in options.items() if k not in OF_ARGUMENTS}
        self._jitted = jitted
        self._programs: dict[Any, Any] = {}

    def call(
        self, function: Callable[..., Any], call: Call, leaves: Sequence[Any], error: PartlyShared
    ) -> Any:
        """Call ``function`` with overlapping arguments; return its result and write its effects.

        leaves : all arguments that are not static, as they were passed
        raises error : the arguments are not slices of a common array that programs can write to
        """
        if (found := _on_common(leaves)) is None:
            raise error
        views, bases = found
        spelled = tuple(v and (v.base, repr(v.index), v.order) for v in views)
        key = call.key, spelled, tuple((base.shape, base.dtype) for base in bases)
        if key not in self._programs:
            if len(self._programs) >= MAX_PROGRAMS:
                raise PartlyShared(f"{error}: it has {MAX_PROGRAMS} programs for overlaps already")
            on_bases = OnBases(function, self._signature, call.static, call.trees, views)
            self._programs[key] = self._jitted(on_bases, (), (), self._options)
        program = self._programs[key]
        others = tuple(leaf for leaf, view in zip(leaves, views, strict=True) if view is None)
        plain, built = program(tuple(bases), others)
        results, ((tree, returned),) = iter(plain), built
        return unflatten(tree, [next(results) if i is None else leaves[i] for i in returned])


def _on_common(leaves: Sequence[Any]) -> tuple[tuple[View | None, ...], list[Any]] | None:
    """Return ``leaves`` as views of common arrays, and these arrays; None if that is impossible.

    An array with a single view among the leaves is not a common one.
    """
    owners = [_owner(leaf) for leaf in leaves]
    bases: list[Any] = []
    views: list[View | None] = [None] * len(leaves)
    for i, owner in enumerate(owners):
        parts = [k for k, other in enumerate(owners) if other is owner]
        if owner is None or len(parts) < 2 or parts[0] != i:
            continue
        given = [leaves[k] for k in parts]
        for base in _shapes(owner, given):
            found = [_view(leaf, base, len(bases)) for leaf in given]
            if None not in found:
                break
        else:
            return None
        bases.append(base)
        for k, view in zip(parts, found, strict=True):
            views[k] = view
    return tuple(views), bases


def _shapes(owner: Any, leaves: Sequence[Any]) -> Iterator[Any]:
    """Yield ``owner`` in shapes that ``leaves`` may be slices of, guessed from their strides.

    NumPy keeps the array that owns the memory, but not the shape that was sliced.
    """
    yield owner
    strides = {abs(t) // owner.itemsize for leaf in leaves for t in leaf.strides} - {0, 1}
    for some in range(1, min(len(strides), MAX_AXES) + 1):
        for chosen in combinations(sorted(strides, reverse=True), some):
            inner = [a // b for a, b in pairwise((*chosen, 1))]
            whole = owner.size // chosen[0] * chosen[0]
            if math.prod(inner) == chosen[0]:
                yield owner.reshape(-1)[:whole].reshape(-1, *inner)


def _owner(leaf: Any) -> Any:
    """Return the array that owns the memory of ``leaf``, if programs can write to it."""
    if not isinstance(leaf, np.ndarray):
        return None
    while isinstance(leaf.base, np.ndarray):
        leaf = leaf.base
    return leaf if leaf.flags.c_contiguous and leaf.flags.writeable else None


def _view(leaf: Any, owner: Any, number: int) -> View | None:
    """Return ``leaf`` as a view of ``owner`` by slices, integers and an order of axes."""
    first = leaf.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    if leaf.dtype != owner.dtype or first % owner.itemsize or not leaf.size:
        return None
    places = list(np.unravel_index(first // owner.itemsize, owner.shape))
    index: list[Any] = [int(place) for place in places]
    axes: list[int] = []
    for size, stride in zip(leaf.shape, leaf.strides, strict=True):
        axis = _axis(owner, index, size, stride)
        if axis is None:
            return None
        step = stride // owner.strides[axis] if size > 1 else 1
        stop = index[axis] + step * size
        index[axis] = slice(index[axis], None if stop < 0 else stop, step)
        axes.append(axis)
    order = tuple(sorted(axes).index(axis) for axis in axes)
    view = View(number, tuple(index), order)
    return view if _same_memory(view.of(owner), leaf) else None


def _axis(owner: Any, index: Sequence[Any], size: int, stride: int) -> int | None:
    """Return the unsliced axis of ``owner`` along which an axis of a view lies."""
    for axis, (extent, step) in enumerate(zip(owner.shape, owner.strides, strict=True)):
        if isinstance(index[axis], slice):
            continue
        last = index[axis] + (size - 1) * (stride // step)
        if size == 1 or (stride and stride % step == 0 and 0 <= last < extent):
            return axis
    return None


def _same_memory(a: Any, b: Any) -> bool:
    """Whether two arrays have the same elements at the same addresses."""
    strides = [[t for t, n in zip(x.strides, x.shape, strict=True) if n > 1] for x in (a, b)]
    start = [x.__array_interface__["data"][0] for x in (a, b)]
    return a.shape == b.shape and strides[0] == strides[1] and start[0] == start[1]
