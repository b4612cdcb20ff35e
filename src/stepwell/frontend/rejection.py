"""Random distributions by rejection sampling: redraw until every element is accepted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.compressed import packed
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.distributions import moved, standard_normal
from stepwell.frontend.drawing import (
    LONG,
    ROUND,
    SECOND,
    WORD,
    bits_of_blocks,
    drawing,
    float_dtype,
    opened,
    split,
    spread,
    unit,
    unit_of_long,
    unit_of_word,
    wide_dtype,
    words_of,
)
from stepwell.frontend.indexing import take
from stepwell.frontend.lax_control import cond, while_loop
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.normal_quantile import normal_quantile
from stepwell.frontend.operands import WIDE, array
from stepwell.frontend.promotion import BOOL, INTEGER, as_dtype, broadcast, cast, full
from stepwell.frontend.random_bits import random_bits
from stepwell.frontend.tensor import Tensor

MIN_GATHERED = 1 << 14
"""The fewest elements of an array whose rejected ones are gathered; smaller arrays redraw all."""
SHARE = 16
"""The number of elements divided by this is the size of a batch of gathered rejected ones."""


@dataclass(frozen=True)
class _Elements:
    """The elements that a round draws, all or some."""

    key: Any
    shape: Shape
    numbers: Tensor | None = None
    """Their indices, one row of uint64; None for all elements."""

    def unit(self, kind: DType, number: Tensor, stream: int) -> Tensor:
        """Return uniform numbers in (0, 1) for one round of rejection."""
        first = e.multiply(e.add(e.multiply(cast(number, LONG), 4), stream), np.uint64(ROUND))
        if self.numbers is not None:
            drawn = bits_of_blocks(self.key, e.add(self.numbers, first))
            drawn = drawn if kind.bytes == 8 else cast(drawn, WORD)
        else:
            word = LONG if kind.bytes == 8 else WORD
            drawn = random_bits(words_of(self.key), first, self.shape, word)
        return opened(unit_of_long(drawn) if kind.bytes == 8 else unit_of_word(drawn, kind))

    def of(self, parameter: Tensor) -> Tensor:
        """Return the values of a parameter for these elements."""
        if self.numbers is None:
            return broadcast(parameter, self.shape)
        if parameter.size == 1:
            return broadcast(reshape(parameter, (1,)), self.numbers.shape)
        return take(reshape(broadcast(parameter, self.shape), (-1,)), cast(self.numbers, INTEGER))


def _scattered(x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    """Return a row with elements replaced; updates with places out of range are dropped."""
    result = [(x.kind, x.shape)]
    return x.graph.emit("scatter", [x, updates, places], result, (), axes=(0,))[0]


_Propose: TypeAlias = Callable[[_Elements, Tensor], tuple[Tensor, Tensor]]
"""Takes elements and the number of the round; returns proposals and whether each is accepted."""


def _until_accepted(key: Any, shape: Shape, kind: DType, propose: _Propose) -> Tensor:
    """Return for each element the first accepted proposal."""
    every = _Elements(key, shape)
    n = math.prod(shape)
    if n < MIN_GATHERED:
        begin = full((), 0, INTEGER), full(shape, False, BOOL), full(shape, 0.0, kind)
        return _rounds(every, begin, propose)
    found, done = propose(every, full((), 0, INTEGER))
    found, done = reshape(found, (n,)), reshape(done, (n,))
    size = n // SHARE

    def going(carry: Any) -> Any:
        return e.logical_not(r.all(carry[0]))

    def again(carry: Any) -> Any:
        done, found = carry
        places = packed(e.logical_not(done), size)
        none = e.less(places, 0)
        some = _Elements(key, shape, cast(e.maximum(places, 0), LONG))
        new = _rounds(some, (full((), 1, INTEGER), none, full((size,), 0.0, kind)), propose)
        where = e.where(none, n, places)  # places out of range are dropped
        done = _scattered(done, where, full((size,), True, BOOL))
        return done, _scattered(found, where, new)

    return reshape(while_loop(going, again, (done, found))[1], shape)


def _rounds(elements: _Elements, begin: tuple[Tensor, ...], propose: _Propose) -> Tensor:
    """Return accepted proposals for these elements, redrawing all of them in each round."""

    def going(carry: Any) -> Any:
        return e.logical_not(r.all(carry[1]))

    def again(carry: Any) -> Any:
        number, done, found = carry
        proposal, accepted = propose(elements, number)
        new = e.logical_and(accepted, e.logical_not(done))
        return e.add(number, 1), e.logical_or(done, accepted), e.where(new, proposal, found)

    return while_loop(going, again, begin)[2]


@drawing("shape", "dtype")
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = float, scale: Any = 1.0) -> Tensor:
    """Return numbers of the gamma distribution, by Marsaglia and Tsang's method.

    key : (2,) uint32, a key made by `key`
    a : the shape parameter, above 0, a number or an array
    shape : an int or a tuple of them; None means the broadcast shape of the parameters
    dtype : a float dtype; float is float64
    scale : a number or an array
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.gamma`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.gamma(sw.random.key(7), 2.0, 3).round(4)
    array([1.5255, 4.0003, 0.3501])
    """
    kind = float_dtype(dtype)
    wide = wide_dtype(kind)
    sizes = spread(shape, a, scale)
    order = cast(array(a), wide)
    return moved(cast(_gamma(key, order, sizes), kind), 0, scale)


def _gamma(key: Any, order: Tensor, sizes: Shape) -> Tensor:
    kind = order.kind
    small = e.less(order, 1.0)
    lifted = e.where(small, e.add(order, 1.0), order)

    def propose(elements: _Elements, number: Tensor) -> tuple[Tensor, Tensor]:
        d = e.subtract(elements.of(lifted), 1.0 / 3.0)
        c = e.divide(1.0 / 3.0, e.sqrt(d))
        x = normal_quantile(elements.unit(kind, number, 0))
        drawn = elements.unit(kind, number, 1)
        root = e.add(e.multiply(c, x), 1.0)
        v = e.multiply(e.multiply(root, root), root)
        inside = e.greater(v, 0.0)
        log_v = e.log(e.where(inside, v, 1.0))
        bound = e.add(
            e.multiply(e.multiply(x, x), 0.5), e.multiply(d, e.add(e.subtract(1.0, v), log_v))
        )
        return e.multiply(d, v), e.logical_and(inside, e.less(e.log(drawn), bound))

    found = _until_accepted(key, sizes, kind, propose)

    def boosted() -> Tensor:
        boost = opened(unit(key, sizes, kind, SECOND))
        power = e.exp(e.divide(e.log(boost), e.where(small, order, 1.0)))
        return e.where(small, e.multiply(found, power), found)

    return cond(r.any(small), boosted, lambda: found)


@drawing("shape", "dtype")
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return numbers of the beta distribution.

    key : (2,) uint32, a key made by `key`
    a, b : its parameters, above 0, numbers or arrays
    shape : an int or a tuple of them; None means the broadcast shape of the parameters
    dtype : a float dtype; float is float64
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.beta`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.beta(sw.random.key(7), 2.0, 3.0, 3).round(4)
    array([0.1766, 0.8565, 0.4573])
    """
    kind = float_dtype(dtype)
    wide = wide_dtype(kind)
    sizes = spread(shape, a, b)
    keys = split(key)
    x, y = (_gamma(keys[i], cast(array(v), wide), sizes) for i, v in enumerate((a, b)))
    return cast(e.divide(x, e.add(x, y)), kind)


@drawing("shape", "dtype")
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return vectors of the Dirichlet distribution, each of which adds up to 1.

    key : (2,) uint32, a key made by `key`
    alpha : (..., n), above 0
    shape : the batch shape, before n; None means that of ``alpha``
    dtype : a float dtype; float is float64
    returns : (*shape, n)
    raises ValueError : alpha has no axis
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    source : `jax.random.dirichlet`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.dirichlet(sw.random.key(7), np.ones(3)).sum().round(4)
    np.float64(1.0)
    """
    kind = float_dtype(dtype)
    order = cast(array(alpha), wide_dtype(kind))
    if not order.ndim:
        raise ValueError("alpha needs at least one axis")
    lead = order.shape[:-1] if shape is None else checked_shape(shape)
    sizes = (*lead, order.shape[-1])
    found = _gamma(key, order, sizes)
    return cast(e.divide(found, r.sum(found, axis=-1, keepdims=True)), kind)


@drawing("shape", "dtype")
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return numbers of the chi-square distribution.

    key : (2,) uint32, a key made by `key`
    df : the degrees of freedom, above 0, a number or an array
    shape : an int or a tuple of them; None means the broadcast shape of the parameters
    dtype : a float dtype; float is float64
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.chisquare`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.chisquare(sw.random.key(7), 2.0, 3).round(4)
    array([1.1578, 4.8304, 0.0616])
    """
    kind = float_dtype(dtype)
    sizes = spread(shape, df)
    half = e.multiply(cast(array(df), wide_dtype(kind)), 0.5)
    return cast(e.multiply(_gamma(key, half, sizes), 2.0), kind)


@drawing("shape", "dtype")
def t(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return numbers of Student's t distribution.

    key : (2,) uint32, a key made by `key`
    df : the degrees of freedom, above 0, a number or an array
    shape : an int or a tuple of them; None means the broadcast shape of the parameters
    dtype : a float dtype; float is float64
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.t`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.t(sw.random.key(7), 5.0, 3).round(4)
    array([-0.7936,  2.6993, -0.6976])
    """
    kind = float_dtype(dtype)
    wide = wide_dtype(kind)
    sizes = spread(shape, df)
    keys = split(key)
    half = e.multiply(cast(array(df), wide), 0.5)
    wider = e.sqrt(e.divide(half, _gamma(keys[1], half, sizes)))
    return cast(e.multiply(standard_normal(keys[0], sizes, wide), wider), kind)


@drawing("shape", "dtype")
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = np.int64) -> Tensor:
    """Return integers of the Poisson distribution.

    key : (2,) uint32, a key made by `key`
    lam : the mean, 0 or more, a number or an array
    shape : an int or a tuple of them; None means the broadcast shape of the parameters
    dtype : an integer dtype
    raises TypeError : the key is invalid
    raises ValueError : the parameters do not broadcast to the shape

    Uses search from 0 if lam < 10, Hoermann's transformed rejection otherwise; in float64.
    source : `jax.random.poisson`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.poisson(sw.random.key(7), 4.0, 3)
    array([3, 1, 4])
    """
    kind = as_dtype(dtype)
    sizes = spread(shape, lam)
    mean = cast(array(lam), WIDE)
    small = e.less(mean, 10.0)
    none = full(sizes, 0.0, WIDE)
    few = cond(
        r.any(small),
        lambda: _poisson_by_search(unit(key, sizes, WIDE, SECOND), e.where(small, mean, 0.0)),
        lambda: none,
    )
    many = cond(
        r.all(small),
        lambda: none,
        lambda: _poisson_by_rejection(key, e.where(small, 10.0, mean), sizes),
    )
    return cast(e.where(small, few, many), kind)


def _poisson_by_search(drawn: Tensor, mean: Tensor) -> Tensor:
    def going(carry: Any) -> Any:
        return r.any(e.greater_equal(drawn, carry[2]))

    def again(carry: Any) -> Any:
        number, share, below = carry
        beyond = e.greater_equal(drawn, below)
        number = e.where(beyond, e.add(number, 1.0), number)
        share = e.where(beyond, e.divide(e.multiply(share, mean), number), share)
        found = e.add(below, share)  # no growth: the sum has converged
        return number, share, e.where(e.equal(found, below), e.where(beyond, 2.0, below), found)

    first = broadcast(e.exp(e.negative(mean)), drawn.shape)
    return while_loop(going, again, (full(drawn.shape, 0.0, WIDE), first, first))[0]


def _poisson_by_rejection(key: Any, means: Tensor, sizes: Shape) -> Tensor:
    def propose(elements: _Elements, number: Tensor) -> tuple[Tensor, Tensor]:
        mean = elements.of(means)
        root = e.sqrt(mean)
        b = e.add(e.multiply(root, 2.53), 0.931)
        a = e.add(e.multiply(b, 0.02483), -0.059)
        alpha = e.add(e.divide(1.1328, e.subtract(b, 3.4)), 1.1239)
        sure = e.subtract(0.9277, e.divide(3.6224, e.subtract(b, 2.0)))
        u = e.subtract(elements.unit(WIDE, number, 0), 0.5)
        v = elements.unit(WIDE, number, 1)
        us = e.subtract(0.5, e.abs(u))
        place = e.multiply(e.add(e.divide(e.multiply(a, 2.0), us), b), u)
        k = e.floor(e.add(e.add(place, mean), 0.43))
        quick = e.logical_and(e.greater_equal(us, 0.07), e.less_equal(v, sure))
        out = e.logical_and(e.less(us, 0.013), e.greater(v, us))
        out = e.logical_or(out, e.less(k, 0.0))
        whole = e.maximum(k, 0.0)
        scale = e.add(e.divide(a, e.multiply(us, us)), b)
        left = e.subtract(e.add(e.log(v), e.log(alpha)), e.log(scale))
        right = e.subtract(e.multiply(whole, e.log(mean)), mean)
        right = e.subtract(right, _log_factorial(whole))
        slow = e.logical_and(e.logical_not(out), e.less_equal(left, right))
        return k, e.logical_or(quick, slow)

    return _until_accepted(key, sizes, WIDE, propose)


def _log_factorial(k: Tensor) -> Tensor:
    """Return log(k!) by Stirling's series at k + 9; the error is below 1e-13."""
    x = e.add(k, 9.0)
    product = e.add(k, 1.0)
    for step in range(2, 9):
        product = e.multiply(product, e.add(k, float(step)))
    inverse = e.divide(1.0, x)
    square = e.multiply(inverse, inverse)
    series = e.add(e.multiply(square, 1 / 1260), -1 / 360)
    series = e.multiply(e.add(e.multiply(series, square), 1 / 12), inverse)
    whole = e.subtract(e.multiply(e.subtract(x, 0.5), e.log(x)), x)
    whole = e.add(e.add(whole, 0.5 * math.log(2 * math.pi)), series)
    return e.subtract(whole, e.log(product))
