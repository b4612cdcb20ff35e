"""`vmap`: apply a function of one example to a whole batch at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count as count_from
from operator import index
from typing import Any, TypeAlias

from stepwell.core.shapes import Shape, show
from stepwell.frontend.creation import iota
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, lift
from stepwell.frontend.pytree import REGISTERED, Branch, Tree, count, flatten, paths, unflatten
from stepwell.frontend.spelling import Verbatim
from stepwell.frontend.tensor import Partial, Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.axes import Axis, named, spelled
from stepwell.frontend.transformations.regions import Results, write_region
from stepwell.frontend.transformations.transformed import (
    Transformed,
    call,
    check_function,
    name_of,
    signature_of,
)
from stepwell.frontend.window_reductions import UNRETURNABLE

Axes: TypeAlias = Any
"""An axis, None, or a container of axes: a prefix of the structure of the batched values."""

UNBATCHED = -1
"""The axis that stands for None in the text."""


class Absent(Enum):
    """The value of a missing argument: the function's own default is used and is not batched."""

    ABSENT = "..."

    def __repr__(self) -> str:
        return self.value


def vmap(
    fun: Callable[..., Any],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
) -> Transformed:
    """Return a function that runs ``fun`` for each example of a batch, all at once.

    fun : takes and returns arrays of one example, in any structure
    in_axes : the batch axis of each argument (negative: from the end), or None for an argument that
        is the same for all examples. One for all arguments, or a tuple of one for each; containers
        may give the axes of an argument's parts. Keyword arguments have axis 0
    out_axes : the batch axis of the results; None for results that are the same for all examples
    axis_name : the batch's name for `sw.lax.psum` and similar functions, called within ``fun``
    spmd_axis_name : None: there is one device
    axis_size : the number of examples; needed if no argument has a batch axis

    No loop runs over the examples: matrix-vector products become matrix products, an ``if`` whose
    condition differs between examples becomes a select, a loop runs until every example is done.
    Random keys, gradients and `vmap` may be used within it, and it within them. Call the function
    in a traced function, or with NumPy arrays: then it is compiled at its first call.

    raises ValueError : batch sizes differ, an argument lacks its axis, or nothing is batched
    raises TypeError : ``in_axes`` or ``out_axes`` do not match the structure of their values
    source : `jax.vmap`

    >>> import numpy as np, stepwell as sw
    >>> sw.vmap(lambda x, y: np.dot(x, y))(np.eye(3), np.arange(9.0).reshape(3, 3))
    array([0., 4., 8.])
    >>> sw.vmap(lambda x, w: x * w, in_axes=(1, None), out_axes=1)(np.ones((2, 3)), 2.0)
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """
    check_function("vmap", fun)
    if spmd_axis_name is not None:
        raise TypeError("spmd_axis_name= of vmap is about several devices, and there is one")
    if isinstance(in_axes, list):  # JAX accepts a list
        in_axes = tuple[Any, ...](in_axes)  # pyright: ignore[reportUnknownArgumentType]
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)

    def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return Batched(function, args, kwargs, in_axes, axis_size, axis_name).run(out_axes)

    return Transformed(fun, "vmap", apply, _signature(fun))


def _signature(fun: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a batched function: keyword arguments are collected in ``**kwargs``.

    Positional parameters are renamed, so that no keyword argument is bound to them.
    """
    given = list(signature_of(fun).parameters.values())
    names = {p.name for p in given}
    found: list[inspect.Parameter] = []
    for p in given:
        name = next(n for k in count_from(1) if (n := p.name + "_" * k) not in names)
        names.add(name)
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.replace(name=name, kind=p.POSITIONAL_ONLY, default=Absent.ABSENT))
        elif p.kind is p.VAR_POSITIONAL:
            found.append(p.replace(name=name))
    named = next(n for k in count_from(1) if (n := "kwargs" + "_" * k) not in names)
    found.append(inspect.Parameter(named, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(found)


def _check_axes(what: str, axes: Axes) -> None:
    for leaf in flatten(axes)[0]:
        if isinstance(leaf, bool) or not hasattr(leaf, "__index__"):
            raise TypeError(f"{what}= of vmap is made of integers and None, got {leaf!r}")


@dataclass(frozen=True)
class Leaf:
    """A leaf of an argument: the user's name of it, its value and its batch axis."""

    path: str
    value: Any
    axis: int | None


class Batched:
    """A call of a function on a batch."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        in_axes: Axes,
        axis_size: int | None,
        axis_name: Hashable | None = None,
    ) -> None:
        self.axis_name = axis_name
        self.function, self.name = function, name_of(function)
        args = tuple(a for a in args if a is not Absent.ABSENT)
        self.trees: list[Tree] = []
        self.keywords = list(kwargs)
        self.leaves: list[Leaf] = []
        names = _names(function, len(args))
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(
                f"in_axes= of vmap is a tuple of {len(in_axes)}, but '{self.name}' is called with "  # pyright: ignore[reportUnknownArgumentType]
                f"{len(args)} argument{'s' if len(args) != 1 else ''} by position"
            )
        each: Sequence[Any] = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        for name, value, axes in zip(names, args, each, strict=True):
            self._take("in_axes", name, value, axes)
        for name, value in kwargs.items():
            self._take("in_axes", name, value, 0)
        self.size = self._size(axis_size)

    def _take(self, what: str, name: str, value: Any, axes: Axes) -> None:
        """Record the leaves of an argument."""
        leaves, tree = flatten(value)
        self.trees.append(tree)
        given_axes = spread(axes, tree, f"{what}= of vmap", f"argument '{name}' of '{self.name}'")
        for path, leaf, axis in zip(paths(tree, name), leaves, given_axes, strict=True):
            self.leaves.append(self._leaf(path, leaf, axis))

    def _leaf(self, path: str, value: Any, axis: int | None) -> Leaf:
        if axis is None:
            return Leaf(path, lift(value) if isinstance(value, Tensor) else value, None)
        try:
            found = lift(value)
        except TypeError:
            raise TypeError(
                f"argument '{path}' of '{self.name}' is {type(value).__name__}, of which vmap has "
                "no examples: say None for it in in_axes="
            ) from None
        rank = len(found.shape)
        if not -rank <= axis < rank:
            said = f"{found.kind.name}[{show(found.shape)}]"
            help = "say None for it in in_axes=, if it is the same for all examples"
            raise ValueError(
                f"vmap takes axis {axis} of argument '{path}' of '{self.name}', which is {said}"
                + (f": {help}" if not rank else "")
            )
        return Leaf(path, found, axis % rank)

    def _size(self, given_axes: int | None) -> int:
        """Return the number of examples."""
        sizes = {
            leaf.path: leaf.value.shape[leaf.axis] for leaf in self.leaves if leaf.axis is not None
        }
        if given_axes is not None:
            sizes = {"axis_size=": index(given_axes), **sizes}
        if not sizes:
            raise ValueError(
                f"vmap of '{self.name}' has no examples: no argument has an axis of them by "
                "in_axes=, and axis_size= is not given"
            )
        (first, size), *others = sizes.items()
        for path, other in others:
            if other != size:
                axes = {leaf.path: leaf.axis for leaf in self.leaves}
                mine = f"axis {axes[first]} of '{first}'" if first in axes else first
                raise ValueError(
                    f"vmap of '{self.name}' is given different numbers of examples: {mine} has "
                    f"{size}, axis {axes[path]} of '{path}' has {other}"
                )
        return size

    def run(self, out_axes: Axes) -> Any:
        """Write ``nd.vmap``; return the function's results for all examples."""
        given = [leaf for leaf in self.leaves if isinstance(leaf.value, Tensor)]
        values: list[Tensor] = [leaf.value for leaf in given]
        shapes = [_without_axis(leaf.value.shape, leaf.axis) for leaf in given]

        def trace(seen: list[Tensor]) -> tuple[Any, Any]:
            if self.axis_name is None:
                return self._called(seen), ()
            with named(Axis(self.axis_name, self.size, seen[-1])):
                return self._called(seen[:-1]), ()

        self._kwargs: dict[str, Any] = {}
        names = [leaf.path for leaf in given]
        inside = [UNBATCHED if leaf.axis is None else leaf.axis for leaf in given]
        if self.axis_name is not None:  # the index of each example
            values.append(iota((self.size,), 0, as_dtype("i32")))
            for each, more in ((shapes, ()), (names, "axis_index"), (inside, 0)):
                each.append(more)  # pyright: ignore
        region = write_region("vmap", self.name, values, names, trace, shapes)
        main = region.main
        axes = self._out(out_axes, main)
        results = current_trace().emit(
            "vmap",
            values,
            [
                (v.kind, v.shape if axis is None else _with_axis(v.shape, axis, self.size))
                for v, axis in zip(main.values, axes, strict=True)
            ],
            region.text,
            axis_name=None if self.axis_name is None else spelled(self.axis_name),
            in_axes=inside,
            out_axes=[UNBATCHED if axis is None else axis for axis in axes],
            size=self.size,
            operandSegmentSizes=Verbatim(f"array<i32: {len(values)}, 0>"),
        )
        return main.of(results)

    def _called(self, seen: Sequence[Tensor]) -> Any:
        return self._lifted(call(self.function, *self._args(seen), **self._kwargs))

    def _args(self, seen: Sequence[Tensor]) -> list[Any]:
        """Return the positional arguments of one example, and record the keyword arguments."""
        found = iter(seen)
        put = iter(
            [next(found) if isinstance(leaf.value, Tensor) else leaf.value for leaf in self.leaves]
        )
        args = [unflatten(t, [next(put) for _ in range(count(t))]) for t in self.trees]
        by_position = len(args) - len(self.keywords)
        self._kwargs.update(zip(self.keywords, args[by_position:], strict=True))
        return args[:by_position]

    def _lifted(self, returned: Any) -> Any:
        """Return the function's result, with every leaf converted to a traced value."""
        leaves, tree = flatten(returned)
        found: list[Tensor] = []
        for path, leaf in zip(paths(tree, "its result"), leaves, strict=True):
            if isinstance(leaf, Partial):
                raise TraceError(f"'{self.name}', given to vmap, returned {UNRETURNABLE}")
            try:
                found.append(lift(leaf))
            except TypeError:
                raise TypeError(
                    f"vmap needs '{self.name}' to return arrays and numbers, got "
                    f"{type(leaf).__name__} as {path}"
                ) from None
        return unflatten(tree, found)

    def _out(self, axes: Axes, main: Results) -> list[int | None]:
        """Return the batch axis of each result, counted from 0."""
        given_axes = spread(axes, main.tree, "out_axes= of vmap", f"what '{self.name}' returns")
        found: list[int | None] = []
        for value, axis in zip(main.values, given_axes, strict=True):
            rank = len(value.shape) + 1
            if axis is not None and not -rank <= axis < rank:
                raise ValueError(
                    f"vmap puts the examples along axis {axis} of what '{self.name}' returns, of "
                    f"which each is {value.kind.name}[{show(value.shape)}]"
                )
            found.append(None if axis is None else axis % rank)
        return found


def spread(axes: Axes, tree: Tree, what: str, of: str) -> list[int | None]:
    """Return an axis or None for each leaf of ``tree``; ``axes`` is a prefix of its structure."""
    if axes is None or hasattr(axes, "__index__"):
        return [None if axes is None else index(axes)] * count(tree)
    inside = flatten(axes)[1]
    if isinstance(inside, Branch) and isinstance(tree, Branch):
        parts = _children(axes, inside)
        same = (inside.kind, inside.keys) == (tree.kind, tree.keys)
        if same and len(parts) == len(tree.children):
            pairs = zip(parts, tree.children, strict=True)
            return [n for part, t in pairs for n in spread(part, t, what, of)]
    raise ValueError(f"{what} must be built like {of}, or be a part of that: got {axes!r}")


def _children(axes: Any, tree: Branch) -> list[Any]:
    """Return the children of a container of axes."""
    if isinstance(axes, Mapping):
        return [axes[k] for k in tree.keys or ()]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(axes, tuple | list):
        return list(axes)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if (known := REGISTERED.get(type(axes))) is not None:
        return list(known[0](axes)[0])
    return [getattr(axes, k) for k in tree.keys or ()]


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the positional arguments."""
    found: list[str] = []
    for p in signature_of(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            found += [f"{p.name}[{k}]" for k in range(count - len(found))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.name)
    return [*found[:count], *(f"argument {k}" for k in range(len(found), count))]


def _without_axis(shape: Shape, axis: int | None) -> Shape:
    return shape if axis is None else (*shape[:axis], *shape[axis + 1 :])


def _with_axis(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis:])
