"""Random integers, permutations and choices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import checked_shape, iota
from stepwell.frontend.distributions import standard_gumbel
from stepwell.frontend.drawing import LONG, block_bits, drawing, spread, unit
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.indexing import take
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.operands import WIDE, array
from stepwell.frontend.promotion import INTEGER, as_dtype, broadcast, cast, full, is_number
from stepwell.frontend.sorting import argsort, searchsorted, sort
from stepwell.frontend.tensor import Tensor


def _product_above(a: Tensor, b: Tensor) -> Tensor:
    """Return the upper 64 bits of the product of two 64-bit numbers."""
    mask = np.uint64(0xFFFFFFFF)
    low_a, high_a = e.bitwise_and(a, mask), e.bitwise_right_shift(a, 32)
    low_b, high_b = e.bitwise_and(b, mask), e.bitwise_right_shift(b, 32)
    inner = e.multiply(high_a, low_b)
    middle = e.add(inner, e.bitwise_right_shift(e.multiply(low_a, low_b), 32))
    other = e.add(e.multiply(low_a, high_b), e.bitwise_and(middle, mask))
    above = e.add(e.bitwise_right_shift(middle, 32), e.bitwise_right_shift(other, 32))
    return e.add(e.multiply(high_a, high_b), above)


def _short_product_above(a: Tensor, b: int) -> Tensor:
    """Return the upper 64 bits of the product with a 32-bit number."""
    low = e.multiply(e.bitwise_and(a, np.uint64(0xFFFFFFFF)), np.uint64(b))
    high = e.multiply(e.bitwise_right_shift(a, 32), np.uint64(b))
    return e.bitwise_right_shift(e.add(high, e.bitwise_right_shift(low, 32)), 32)


def integers(
    key: Any,
    low: Any,
    high: Any = None,
    shape: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Tensor:
    """Return random integers in [low, high), or in [0, low) without a high.

    key : (2,) uint32, from `key`
    low, high : integers or arrays of them
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : an integer dtype
    endpoint : whether high is included
    raises ValueError : the interval is empty; if it is traced, the result is low instead
    raises TypeError : a bound or the dtype is not of integers, or the key is invalid

    The integers are equally probable up to one part in 2^64 of their number.
    source : `numpy.random.Generator.integers`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.integers(sw.random.key(7), 0, 100, 4)
    array([45, 90,  5, 41])
    """
    if high is None:
        low, high = 0, low
    kind = as_dtype(dtype)
    if kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"integers have an integer dtype, got {kind.name}")
    for bound in (low, high):
        if isinstance(bound, float) or (kind_of(bound) if is_array(bound) else "i") not in "iu":
            raise TypeError(f"integers lie between integers, got {bound!r}")
    if isinstance(low, int) and isinstance(high, int):
        _check_bounds(low, high + endpoint, kind)
        if high + endpoint >= 1 << 63:
            return _wide_integers(key, low, high + endpoint, shape, kind.numpy.name)
    return _integers(key, low, high, shape, kind.numpy.name, endpoint)


def is_array(value: Any) -> bool:
    """Whether ``value`` has a dtype."""
    return hasattr(value, "dtype")


def kind_of(value: Any) -> str:
    """Return NumPy's letter for an array's kind of dtype."""
    return np.dtype(value.dtype).kind


def _check_bounds(low: int, high: int, kind: DType) -> None:
    limits = np.iinfo(kind.numpy)
    if low >= high:
        raise ValueError(f"low >= high: there is no integer from {low} to below {high}")
    if low < limits.min or high - 1 > limits.max:
        raise ValueError(f"{low} or {high} is out of bounds for {kind.name}")


@drawing("low", "high", "shape", "dtype")
def _wide_integers(key: Any, low: int, high: int, shape: Any, dtype: str) -> Tensor:
    return _known_integers(block_bits(key, spread(shape), LONG), low, high, as_dtype(dtype))


def _known_integers(words: Tensor, low: int, high: int, kind: DType) -> Tensor:
    many = high - low
    if many < 1 << 32:
        words = _short_product_above(words, many)
    elif many < 1 << 64:
        words = _product_above(words, full(words.shape, many, LONG))
    return cast(e.add(words, np.uint64(low % (1 << 64))), kind)


@drawing("shape", "dtype", "endpoint")
def _integers(key: Any, low: Any, high: Any, shape: Any, dtype: str, endpoint: bool) -> Tensor:
    kind = as_dtype(dtype)
    sizes = spread(shape, low, high)
    words = block_bits(key, sizes, LONG)
    if isinstance(low, int) and isinstance(high, int):
        return _known_integers(words, low, high + endpoint, kind)
    first, last = (cast(array(v), INTEGER) for v in (low, high))
    last = e.add(last, int(endpoint))
    many = cast(e.where(e.less(first, last), e.subtract(last, first), 0), LONG)
    found = _product_above(words, broadcast(many, sizes))
    return cast(e.add(found, cast(first, LONG)), kind)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Tensor:
    """Return random integers in [minval, maxval): `integers` with arguments in JAX's order.

    key, shape, minval, maxval, dtype : as in `integers`
    raises ValueError, TypeError : as `integers` does
    source : `jax.random.randint`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.randint(sw.random.key(7), 4, 0, 100)
    array([45, 90,  5, 41])
    """
    return integers(key, minval, maxval, shape, dtype)


def _random_order(key: Any, shape: Shape, axis: int = 0) -> Tensor:
    """Return a random permutation of 0, 1, ... n - 1 along an axis.

    It sorts 64-bit words whose upper bits are random and whose lower bits are the positions.
    """
    held = max(shape[axis] - 1, 0).bit_length()
    places = np.uint64((1 << held) - 1)
    upper = e.bitwise_and(block_bits(key, shape, LONG), ~places)
    words = sort(e.bitwise_or(upper, iota(shape, axis, LONG)), axis=axis)
    return cast(e.bitwise_and(words, places), INTEGER)


@drawing("x")
def _permuted_range(key: Any, x: int) -> Tensor:
    return _random_order(key, (x,))


@drawing("axis", "independent")
def _permuted(key: Any, x: Any, axis: int, independent: bool) -> Tensor:
    value = array(x)
    at = check_axis(axis, value.ndim)
    if independent:
        order = _random_order(key, value.shape, at)
        return Tensor.operators["take_along_axis"](value, order, axis=at)
    return take(value, _random_order(key, (value.shape[at],)), axis=at)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """Return the slices of ``x`` along ``axis`` in random order; of an int, 0, 1, ... x - 1.

    key : (2,) uint32, from `key`
    x : an array, or an int
    independent : permute each row independently
    returns : the shape and dtype of ``x``; (x,) int64 of an int
    raises AxisError : ``x`` has no such axis
    source : `jax.random.permutation`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.permutation(sw.random.key(7), 5)
    array([2, 3, 0, 4, 1])
    """
    if is_number(x):
        return _permuted_range(key, operator.index(x))
    return _permuted(key, x, axis, independent)


def shuffle(key: Any, x: Any, axis: int = 0) -> Any:
    """Return ``x`` with its slices along ``axis`` in random order; ``x`` itself does not change.

    key : (2,) uint32, from `key`
    x : an array, of at least one axis
    returns : the shape and dtype of ``x``
    raises TypeError : ``x`` is a number
    source : `jax.random.shuffle`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.shuffle(sw.random.key(7), np.arange(5))
    array([2, 3, 0, 4, 1])
    """
    if is_number(x):
        raise TypeError(f"shuffle takes an array, got {x!r}; use permutation")
    return _permuted(key, x, axis, False)


@drawing("a", "shape", "replace")
def _chosen_places(key: Any, a: int, shape: Any, replace: bool, p: Any) -> Tensor:
    sizes = checked_shape(shape)
    count = math.prod(sizes)
    if not a and count:
        raise ValueError("a cannot be empty unless no samples are taken")
    if replace and p is None:
        return integers(key, 0, max(a, 1), sizes)
    if not replace and count > a:
        raise ValueError(f"cannot take {count} of {a} elements without replacement")
    if p is None:
        return reshape(_random_order(key, (a,))[:count], sizes)
    share = cast(array(p), WIDE)
    if share.shape != (a,):
        raise ValueError(f"p has shape {share.shape}, there are {a} elements")
    if replace:
        total = r.cumulative_sum(share, axis=0)
        place = searchsorted(total, e.multiply(unit(key, sizes, WIDE), total[-1]), side="right")
        return e.minimum(place, a - 1)
    order = argsort(e.add(standard_gumbel(key, (a,), WIDE), e.log(share)), descending=True)
    return reshape(order[:count], sizes)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Return random elements of ``a`` along ``axis``, or of 0, 1, ... a - 1.

    key : (2,) uint32, from `key`
    a : an array, or an int
    shape : an int or a tuple of them
    replace : whether an element may be drawn again
    p : the elements' weights, which need not sum to 1
    raises ValueError : more elements than exist are to be drawn without replacement, or ``p`` has
        another size
    source : `jax.random.choice`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.choice(sw.random.key(7), np.array([10, 20, 30]), 4)
    array([20, 30, 10, 20])
    """
    if is_number(a):
        return _chosen_places(key, operator.index(a), shape, replace, p)
    size = np.shape(a) if not isinstance(a, Tensor) else a.shape
    places = _chosen_places(key, size[check_axis(axis, len(size))], shape, replace, p)
    found: Any = places  # an array, outside a trace
    return take(a, found, axis=axis) if isinstance(found, Tensor) else np.take(a, found, axis)


@drawing("axis", "shape")
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Tensor:
    """Return random categories along ``axis``, with probabilities proportional to exp(logits).

    key : (2,) uint32, from `key`
    logits : log probabilities, up to a constant; integers become float64
    shape : of the result; it ends with the shape of the logits without ``axis``, the default
    returns : int64
    raises ValueError : the shape ends otherwise
    source : `jax.random.categorical`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.categorical(sw.random.key(7), np.log([0.2, 0.8]), shape=5)
    array([1, 1, 0, 1, 1])
    """
    value = array(logits)
    if value.kind.kind != "float":
        value = cast(value, WIDE)
    at = check_axis(axis, value.ndim)
    own = (*value.shape[:at], *value.shape[at + 1 :])
    sizes = own if shape is None else checked_shape(shape)
    lead = sizes[: len(sizes) - len(own)]
    if sizes[len(lead) :] != own:
        raise ValueError(f"shape {sizes} does not end with that of the logits without axis: {own}")
    value = broadcast(value, (*lead, *value.shape))
    noise = standard_gumbel(key, value.shape, value.kind)
    return r.argmax(e.add(noise, value), axis=len(lead) + at)
