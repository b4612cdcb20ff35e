"""`sw.lax.associative_scan`: prefix results of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.lax_control import call, check_functions, lifted
from stepwell.frontend.pytree import unflatten
from stepwell.frontend.table import call_named
from stepwell.frontend.tensor import Tensor


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Return the prefix results of an associative ``fn``: e0, fn(e0, e1), ...

    fn : combines two structures like ``elems``, of any size along ``axis``, element by element
    elems : any structure of values of one size along ``axis``
    reverse : scan from the last element to the first
    raises AxisError : the elements have no such axis
    raises ShapeError : the elements have different sizes along ``axis``
    source : `jax.lax.associative_scan`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def highest(x):
    ...     return sw.lax.associative_scan(np.maximum, x)
    >>> highest(np.array([1, 3, 2, 5]))
    array([1, 3, 3, 5])
    """
    check_functions("what is given to associative_scan", fn)
    values, tree = lifted(elems)
    if not values:
        raise ValueError("associative_scan needs elements")
    at = check_axis(axis, values[0].ndim)
    if len(sizes := {v.shape[at] for v in values}) > 1:
        listed = " and ".join(str(n) for n in sorted(sizes))
        raise ShapeError(f"elements of associative_scan must have one size, got {listed}")
    if reverse:
        values = [_cut(v, at, slice(None, None, -1)) for v in values]

    def combined(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        found = call(fn, unflatten(tree, a), unflatten(tree, b))
        return lifted(found)[0]

    found = _prefixes(values, at, combined)
    if reverse:
        found = [_cut(v, at, slice(None, None, -1)) for v in found]
    return unflatten(tree, found)


def _cut(x: Tensor, axis: int, part: slice) -> Tensor:
    return x[(slice(None),) * axis + (part,)]


def _prefixes(
    values: list[Tensor],
    axis: int,
    combined: Callable[[list[Tensor], list[Tensor]], list[Tensor]],
) -> list[Tensor]:
    """Return the prefix results: recursively those of pairs, then the ones in between."""
    size = values[0].shape[axis]
    if size < 2:
        return values

    def every(given: list[Tensor], *part: int | None) -> list[Tensor]:
        return [_cut(v, axis, slice(*part)) for v in given]

    odd = _prefixes(
        combined(every(values, 0, size - 1, 2), every(values, 1, None, 2)), axis, combined
    )
    begin = every(odd, 0, (size - 1) // 2)
    rest = combined(begin, every(values, 2, None, 2)) if size > 2 else every(values, 0, 0)
    even = [
        call_named("concatenate", ((first, more),), {"axis": axis})
        for first, more in zip(every(values, 0, 1), rest, strict=True)
    ]
    return [_interleaved(a, b, axis, size) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor, axis: int, size: int) -> Tensor:
    """Return the elements of both, interleaved."""
    count = odd.shape[axis]
    pairs = call_named("stack", ((_cut(even, axis, slice(count)), odd),), {"axis": axis + 1})
    shape = (*even.shape[:axis], 2 * count, *even.shape[axis + 1 :])
    found = call_named("reshape", (pairs, shape), {})
    if size == 2 * count:
        return found
    return call_named(
        "concatenate", ((found, _cut(even, axis, slice(count, None))),), {"axis": axis}
    )
