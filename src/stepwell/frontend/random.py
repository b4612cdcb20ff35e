"""Random numbers from keys: `stepwell.random`.

``key = sw.random.key(0)``; ``sw.random.normal(key, (3, 4))`` is always the same array: on every
machine and target, for any number of threads, in a function given to `stepwell.jit` and outside of
one. A key is used once: `split` makes several of one, `fold_in` one for each step of a loop.

Element n of a drawn array depends on the key and on n alone: the counter-based generator
Threefry-2x32-20 encrypts n under the key. Bits, integers and uniform numbers are the same to the
last bit everywhere; what is computed of them (`normal`, ...) as far as `log` and `exp` are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.indexing import take
from stepwell.frontend.jit import jit
from stepwell.frontend.lax import random_bits, while_loop
from stepwell.frontend.manipulation import reshape, stack
from stepwell.frontend.normal_quantile import normal_quantile
from stepwell.frontend.operands import WIDE, array, dtype_of
from stepwell.frontend.promotion import BOOL, INTEGER, as_dtype, broadcast, cast, full, is_number
from stepwell.frontend.sorting import argsort, searchsorted
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "integers",
    "key",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "rayleigh",
    "shuffle",
    "split",
    "t",
    "truncated_normal",
    "uniform",
]

SPLIT, FOLD, SECOND = 1 << 63, 3 << 62, 1 << 61
"""Where the counters begin that make keys, and the second half of what takes two blocks."""
ROUND = 1 << 40
"""How far apart the counters of rounds of rejection are: more than any array has elements."""
WORD, LONG = as_dtype("ui32"), as_dtype("ui64")

F = TypeVar("F", bound=Callable[..., Any])


def _drawing(*static: str) -> Callable[[F], F]:
    """Let a function be called outside of a trace: it is compiled for those arguments then."""

    def decorate(function: F) -> F:
        names = tuple(n for n in static if n in signature(function).parameters)
        compiled = jit(function, static_argnames=names)

        @wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if active_trace() is not None:
                return function(*args, **keywords)
            return compiled(*args, **keywords)

        return call  # pyright: ignore[reportReturnType]

    return decorate


def key(seed: Any) -> Any:
    """Return the key of a seed, two words of uint32.

    seed : an int of up to 64 bits, or a traced integer
    raises TypeError : it is no integer

    >>> key(7)
    array([0, 7], dtype=uint32)
    """
    if isinstance(seed, Tensor):
        if seed.kind.kind == "float" or seed.shape:
            raise TypeError(f"a seed is one integer, got {seed!r}")
        words = cast(seed, LONG)
        return stack([cast(e.bitwise_right_shift(words, 32), WORD), cast(words, WORD)])
    number = operator.index(seed)
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"a seed has up to 64 bits, got {number}")
    return np.array([number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF], np.uint32)


def _words(key: Any) -> Tensor:
    value = array(key)
    if value.shape != (2,) or value.kind is not WORD:
        raise TypeError(
            f"a key is uint32 of shape (2,), as stepwell.random.key(seed) gives it, got "
            f"{value.dtype} of shape {value.shape}"
        )
    return value


def _bits(key: Any, shape: Shape, kind: DType, start: int = 0) -> Tensor:
    return random_bits(_words(key), np.uint64(start), shape, kind)


def _as_keys(blocks: Tensor) -> Tensor:
    words = [cast(e.bitwise_right_shift(blocks, 32), WORD), cast(blocks, WORD)]
    return stack(words, axis=-1)


@_drawing("num")
def split(key: Any, num: Any = 2) -> Tensor:
    """Return ``num`` further keys, as uint32 of shape (num, 2), or of shape (*num, 2)."""
    return _as_keys(_bits(key, checked_shape(num), LONG, SPLIT))


@_drawing()
def fold_in(key: Any, data: Any) -> Tensor:
    """Return another key for each integer ``data``, which may be traced: the step of a loop."""
    number = array(data)
    if number.kind.kind == "float" or number.shape:
        raise TypeError(f"a key is folded with one integer, got {number!r}")
    start = e.add(e.bitwise_and(cast(number, LONG), np.uint64((1 << 62) - 1)), np.uint64(FOLD))
    return _as_keys(random_bits(_words(key), start, (), LONG))


@_drawing("shape", "dtype")
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Tensor:
    """Return random bits, as an unsigned or signed integer dtype."""
    kind = as_dtype(dtype)
    if kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"bits are integers, got {kind.name}")
    return cast(_bits(key, checked_shape(shape), LONG if kind.bytes == 8 else WORD), kind)


def _floating(dtype: Any) -> DType:
    kind = dtype_of(dtype)
    if kind.kind != "float":
        raise TypeError(f"these numbers are floats, got dtype {kind.name}")
    return kind


def _unit(key: Any, shape: Shape, kind: DType, start: int = 0) -> Tensor:
    """Return numbers in [0, 1), as many bits of each as a dtype holds: multiples of its epsilon."""
    if kind.bytes == 8:
        return _unit_of_long(_bits(key, shape, LONG, start))
    return _unit_of_word(_bits(key, shape, WORD, start), kind)


def _unit_of_long(words: Tensor) -> Tensor:
    """Return f64 in [0, 1) of 52 bits: those of 1 <= x < 2, less 1."""
    mantissa = e.bitwise_or(e.bitwise_right_shift(words, 12), np.uint64(0x3FF << 52))
    return e.subtract(e.bitcast(mantissa, np.float64), 1.0)


def _unit_of_word(words: Tensor, kind: DType) -> Tensor:
    """Return floats in [0, 1) of 24 bits, or of those that fewer bytes hold."""
    held = {"f32": 24, "f16": 11, "bf16": 8}[kind.name]
    whole = cast(cast(e.bitwise_right_shift(words, 32 - held), as_dtype("i32")), as_dtype("f32"))
    return cast(e.multiply(whole, float(2.0**-held)), kind)


def _open(unit: Tensor) -> Tensor:
    """Return numbers in (0, 1) of numbers in [0, 1): each in the middle of its step."""
    half = {"f64": 2.0**-53, "f32": 2.0**-25, "f16": 2.0**-12, "bf16": 2.0**-9}[unit.kind.name]
    found = e.add(unit, half)
    most = {"f64": 1 - 2.0**-53, "f32": 1 - 2.0**-24, "f16": 1 - 2.0**-11, "bf16": 1 - 2.0**-8}
    return e.minimum(found, most[unit.kind.name])


def _wide(kind: DType) -> DType:
    """Return the dtype that numbers of fewer than 32 bits are computed in."""
    return kind if kind.bytes > 2 else as_dtype("f32")


def _shape_of(value: Any) -> Shape:
    return value.shape if isinstance(value, Tensor) else np.shape(value)


def _spread(shape: Any, *parameters: Any) -> Shape:
    """Return ``shape``, or where there is none that of the parameters together."""
    own = np.broadcast_shapes(*(_shape_of(p) for p in parameters))
    if shape is None:
        return own
    sizes = checked_shape(shape)
    if np.broadcast_shapes(own, sizes) != sizes:
        raise ValueError(f"parameters of shape {own} do not broadcast to shape {sizes}")
    return sizes


def _parameter(value: Any, kind: DType) -> Any:
    return value if is_number(value) else cast(array(value), kind)


@_drawing("shape", "dtype")
def uniform(
    key: Any, shape: Any = None, dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0
) -> Tensor:
    """Return numbers evenly spread over [minval, maxval); rounding may give maxval itself.

    shape : an int or a tuple of them; None means that of the parameters
    dtype : of floats; float is float64. The numbers are multiples of 2^-52 in float64, 2^-24 in
        float32
    raises TypeError : the dtype is none of floats, or the key is no key
    """
    kind = _floating(dtype)
    unit = _unit(key, _spread(shape, minval, maxval), kind)
    if is_number(minval) and is_number(maxval) and (minval, maxval) == (0, 1):
        return unit
    low, high = _parameter(minval, kind), _parameter(maxval, kind)
    wide = high - low
    return cast(e.add(e.multiply(unit, wide), low), kind)


@_drawing("shape", "dtype")
def normal(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return numbers of the normal distribution of mean ``loc`` and deviation ``scale``."""
    kind = _floating(dtype)
    found = _normal(key, _spread(shape, loc, scale), kind)
    return _moved(found, loc, scale)


def _normal(key: Any, shape: Shape, kind: DType, start: int = 0) -> Tensor:
    wide = _wide(kind)
    return cast(normal_quantile(_open(_unit(key, shape, wide, start))), kind)


def _moved(found: Tensor, loc: Any, scale: Any) -> Tensor:
    if not (is_number(scale) and scale == 1):
        found = e.multiply(found, _parameter(scale, found.kind))
    if not (is_number(loc) and loc == 0):
        found = e.add(found, _parameter(loc, found.kind))
    return found


@_drawing("shape", "dtype")
def truncated_normal(
    key: Any, lower: Any = -2.0, upper: Any = 2.0, shape: Any = None, dtype: Any = float
) -> Tensor:
    """Return numbers of the normal distribution that lie in [lower, upper]."""
    kind = _floating(dtype)
    wide = _wide(kind)
    low, high = (cast(array(v), wide) for v in (lower, upper))
    first, last = (e.multiply(e.erfc(e.multiply(v, -math.sqrt(0.5))), 0.5) for v in (low, high))
    unit = _open(_unit(key, _spread(shape, lower, upper), wide))
    found = normal_quantile(e.add(first, e.multiply(unit, e.subtract(last, first))))
    return cast(e.minimum(e.maximum(found, low), high), kind)


@_drawing("shape", "dtype")
def exponential(key: Any, shape: Any = None, dtype: Any = float, scale: Any = 1.0) -> Tensor:
    """Return numbers of the exponential distribution of mean ``scale``."""
    kind = _floating(dtype)
    unit = _unit(key, _spread(shape, scale), _wide(kind))
    return _moved(cast(e.negative(e.log1p(e.negative(unit))), kind), 0, scale)


@_drawing("shape", "dtype")
def gumbel(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return numbers of the Gumbel distribution."""
    kind = _floating(dtype)
    return _moved(_gumbel(key, _spread(shape, loc, scale), kind), loc, scale)


def _gumbel(key: Any, shape: Shape, kind: DType) -> Tensor:
    unit = _open(_unit(key, shape, _wide(kind)))
    return cast(e.negative(e.log(e.negative(e.log(unit)))), kind)


@_drawing("shape", "dtype")
def laplace(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return numbers of the Laplace distribution."""
    kind = _floating(dtype)
    unit = _open(_unit(key, _spread(shape, loc, scale), _wide(kind)))
    rises = e.log(e.multiply(unit, 2.0))
    falls = e.negative(e.log(e.multiply(e.subtract(1.0, unit), 2.0)))
    return _moved(cast(e.where(e.less(unit, 0.5), rises, falls), kind), loc, scale)


@_drawing("shape", "dtype")
def logistic(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return numbers of the logistic distribution."""
    kind = _floating(dtype)
    unit = _open(_unit(key, _spread(shape, loc, scale), _wide(kind)))
    found = e.subtract(e.log(unit), e.log1p(e.negative(unit)))
    return _moved(cast(found, kind), loc, scale)


@_drawing("shape", "dtype")
def cauchy(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return numbers of the Cauchy distribution."""
    kind = _floating(dtype)
    unit = _open(_unit(key, _spread(shape, loc, scale), _wide(kind)))
    return _moved(cast(e.tan(e.multiply(e.subtract(unit, 0.5), math.pi)), kind), loc, scale)


@_drawing("shape", "dtype")
def rayleigh(key: Any, shape: Any = None, dtype: Any = float, scale: Any = 1.0) -> Tensor:
    """Return numbers of the Rayleigh distribution."""
    kind = _floating(dtype)
    unit = _unit(key, _spread(shape, scale), _wide(kind))
    found = e.sqrt(e.multiply(e.log1p(e.negative(unit)), -2.0))
    return _moved(cast(found, kind), 0, scale)


@_drawing("shape")
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Tensor:
    """Return booleans that are true with probability ``p``."""
    sizes = _spread(shape, p)
    return e.less(_unit(key, sizes, WIDE), _parameter(p, WIDE))


def _product_above(a: Tensor, b: Tensor) -> Tensor:
    """Return the upper 64 bits of the product of two numbers of 64 bits."""
    mask = np.uint64(0xFFFFFFFF)
    low_a, high_a = e.bitwise_and(a, mask), e.bitwise_right_shift(a, 32)
    low_b, high_b = e.bitwise_and(b, mask), e.bitwise_right_shift(b, 32)
    inner = e.multiply(high_a, low_b)
    middle = e.add(inner, e.bitwise_right_shift(e.multiply(low_a, low_b), 32))
    other = e.add(e.multiply(low_a, high_b), e.bitwise_and(middle, mask))
    above = e.add(e.bitwise_right_shift(middle, 32), e.bitwise_right_shift(other, 32))
    return e.add(e.multiply(high_a, high_b), above)


def _short_product_above(a: Tensor, b: int) -> Tensor:
    """Return the upper 64 bits of the product with a number of 32 bits."""
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
    """Return integers in [low, high), or in [0, low) without a high.

    endpoint : whether high is among them. Each comes as often as any other, up to one part in 2^64
        of their number
    raises ValueError : there are none between low and high; where only the run knows, it is low
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
            return _wide_integers(key, low, high + endpoint, shape, kind.name)
    return _integers(key, low, high, shape, kind.name, endpoint)


def is_array(value: Any) -> bool:
    """Whether ``value`` has a dtype."""
    return hasattr(value, "dtype")


def kind_of(value: Any) -> str:
    """Return the letter of NumPy's for what kind of numbers an array has."""
    return np.dtype(value.dtype).kind


def _check_bounds(low: int, high: int, kind: DType) -> None:
    limits = np.iinfo(kind.numpy)
    if low >= high:
        raise ValueError(f"low >= high: there is no integer from {low} to below {high}")
    if low < limits.min or high - 1 > limits.max:
        raise ValueError(f"{low} or {high} is out of bounds for {kind.name}")


@_drawing("low", "high", "shape", "dtype")
def _wide_integers(key: Any, low: int, high: int, shape: Any, dtype: str) -> Tensor:
    return _known_integers(_bits(key, _spread(shape), LONG), low, high, as_dtype(dtype))


def _known_integers(words: Tensor, low: int, high: int, kind: DType) -> Tensor:
    many = high - low
    if many < 1 << 32:
        words = _short_product_above(words, many)
    elif many < 1 << 64:
        words = _product_above(words, full(words.shape, many, LONG))
    return cast(e.add(words, np.uint64(low % (1 << 64))), kind)


@_drawing("shape", "dtype", "endpoint")
def _integers(key: Any, low: Any, high: Any, shape: Any, dtype: str, endpoint: bool) -> Tensor:
    kind = as_dtype(dtype)
    sizes = _spread(shape, low, high)
    words = _bits(key, sizes, LONG)
    if isinstance(low, int) and isinstance(high, int):
        return _known_integers(words, low, high + endpoint, kind)
    first, last = (cast(array(v), INTEGER) for v in (low, high))
    last = e.add(last, int(endpoint))
    many = cast(e.where(e.less(first, last), e.subtract(last, first), 0), LONG)
    found = _product_above(words, broadcast(many, sizes))
    return cast(e.add(found, cast(first, LONG)), kind)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Tensor:
    """Return integers in [minval, maxval): `integers` with the arguments in JAX's order."""
    return integers(key, minval, maxval, shape, dtype)


@_drawing("x")
def _permuted_range(key: Any, x: int) -> Tensor:
    return argsort(_bits(key, (x,), LONG))


@_drawing("axis", "independent")
def _permuted(key: Any, x: Any, axis: int, independent: bool) -> Tensor:
    value = array(x)
    at = check_axis(axis, value.ndim)
    if independent:
        order = argsort(_bits(key, value.shape, LONG), axis=at)
        return Tensor.operators["take_along_axis"](value, order, axis=at)
    return take(value, argsort(_bits(key, (value.shape[at],), LONG)), axis=at)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """Return the parts of ``x`` along ``axis`` in random order; of an int, 0, 1, ... x - 1.

    independent : whether each row is put in an order of its own
    """
    if is_number(x):
        return _permuted_range(key, operator.index(x))
    return _permuted(key, x, axis, independent)


def shuffle(key: Any, x: Any, axis: int = 0) -> Any:
    """Return ``x`` in random order: `permutation` of an array. ``x`` itself does not change."""
    if is_number(x):
        raise TypeError(f"shuffle takes an array, got {x!r}; use permutation")
    return _permuted(key, x, axis, False)


@_drawing("a", "shape", "replace")
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
        return reshape(argsort(_bits(key, (a,), LONG))[:count], sizes)
    share = cast(array(p), WIDE)
    if share.shape != (a,):
        raise ValueError(f"p has shape {share.shape}, there are {a} elements")
    if replace:
        total = r.cumulative_sum(share, axis=0)
        place = searchsorted(total, e.multiply(_unit(key, sizes, WIDE), total[-1]), side="right")
        return e.minimum(place, a - 1)
    order = argsort(e.add(_gumbel(key, (a,), WIDE), e.log(share)), descending=True)
    return reshape(order[:count], sizes)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Return elements of ``a`` along ``axis``, or of 0, 1, ... a - 1, taken at random.

    replace : whether an element may be taken again
    p : how probable each element is; numbers that need not add up to 1
    raises ValueError : more elements are to be taken than there are, without replacement
    """
    if is_number(a):
        return _chosen_places(key, operator.index(a), shape, replace, p)
    size = np.shape(a) if not isinstance(a, Tensor) else a.shape
    places = _chosen_places(key, size[check_axis(axis, len(size))], shape, replace, p)
    found: Any = places  # an array, outside of a trace
    return take(a, found, axis=axis) if isinstance(found, Tensor) else np.take(a, found, axis)


@_drawing("axis", "shape")
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Tensor:
    """Return which of the categories along ``axis``, whose probabilities are exp(logits), as int64.

    shape : of the result; it ends with that of the logits without ``axis``, which None means
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
    noise = _gumbel(key, value.shape, value.kind)
    return r.argmax(e.add(noise, value), axis=len(lead) + at)


def _until_accepted(
    shape: Shape, kind: DType, propose: Callable[[Tensor], tuple[Tensor, Tensor]]
) -> Tensor:
    """Return proposals: each element the first of its own that is accepted.

    propose : returns proposals and whether each is accepted, of the number of the round
    """

    def going(carry: Any) -> Any:
        return e.logical_not(r.all(carry[1]))

    def again(carry: Any) -> Any:
        number, done, found = carry
        proposal, accepted = propose(number)
        new = e.logical_and(accepted, e.logical_not(done))
        return e.add(number, 1), e.logical_or(done, accepted), e.where(new, proposal, found)

    begin = full((), 0, INTEGER), full(shape, False, BOOL), full(shape, 0.0, kind)
    return while_loop(going, again, begin)[2]


def _round_unit(key: Any, shape: Shape, kind: DType, number: Tensor, stream: int) -> Tensor:
    """Return numbers in (0, 1) of one round of rejection."""
    first = e.multiply(e.add(e.multiply(cast(number, LONG), 4), stream), np.uint64(ROUND))
    word = LONG if kind.bytes == 8 else WORD
    drawn = random_bits(_words(key), first, shape, word)
    return _open(_unit_of_long(drawn) if kind.bytes == 8 else _unit_of_word(drawn, kind))


@_drawing("shape", "dtype")
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = float, scale: Any = 1.0) -> Tensor:
    """Return numbers of the gamma distribution of shape parameter ``a`` > 0.

    By Marsaglia and Tsang's method: most elements take one round of three draws.
    """
    kind = _floating(dtype)
    wide = _wide(kind)
    sizes = _spread(shape, a, scale)
    order = broadcast(cast(array(a), wide), sizes)
    return _moved(cast(_gamma(key, order, sizes), kind), 0, scale)


def _gamma(key: Any, order: Tensor, sizes: Shape) -> Tensor:
    kind = order.kind
    small = e.less(order, 1.0)
    lifted = e.where(small, e.add(order, 1.0), order)
    d = e.subtract(lifted, 1.0 / 3.0)
    c = e.divide(1.0 / 3.0, e.sqrt(d))

    def propose(number: Tensor) -> tuple[Tensor, Tensor]:
        x = normal_quantile(_round_unit(key, sizes, kind, number, 0))
        unit = _round_unit(key, sizes, kind, number, 1)
        root = e.add(e.multiply(c, x), 1.0)
        v = e.multiply(e.multiply(root, root), root)
        inside = e.greater(v, 0.0)
        log_v = e.log(e.where(inside, v, 1.0))
        bound = e.add(
            e.multiply(e.multiply(x, x), 0.5), e.multiply(d, e.add(e.subtract(1.0, v), log_v))
        )
        return e.multiply(d, v), e.logical_and(inside, e.less(e.log(unit), bound))

    found = _until_accepted(sizes, kind, propose)
    boost = _open(_unit(key, sizes, kind, SECOND))
    power = e.exp(e.divide(e.log(boost), e.where(small, order, 1.0)))
    return e.where(small, e.multiply(found, power), found)


@_drawing("shape", "dtype")
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return numbers of the beta distribution of parameters ``a`` and ``b`` > 0."""
    kind = _floating(dtype)
    wide = _wide(kind)
    sizes = _spread(shape, a, b)
    keys = split(key)
    x, y = (
        _gamma(keys[i], broadcast(cast(array(v), wide), sizes), sizes) for i, v in enumerate((a, b))
    )
    return cast(e.divide(x, e.add(x, y)), kind)


@_drawing("shape", "dtype")
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return vectors of the Dirichlet distribution: ``shape``, then the last axis of ``alpha``."""
    kind = _floating(dtype)
    order = cast(array(alpha), _wide(kind))
    if not order.ndim:
        raise ValueError("alpha needs at least one axis")
    lead = order.shape[:-1] if shape is None else checked_shape(shape)
    sizes = (*lead, order.shape[-1])
    found = _gamma(key, broadcast(order, sizes), sizes)
    return cast(e.divide(found, r.sum(found, axis=-1, keepdims=True)), kind)


@_drawing("shape", "dtype")
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return numbers of the chi-square distribution of ``df`` degrees of freedom."""
    kind = _floating(dtype)
    sizes = _spread(shape, df)
    half = broadcast(e.multiply(cast(array(df), _wide(kind)), 0.5), sizes)
    return cast(e.multiply(_gamma(key, half, sizes), 2.0), kind)


@_drawing("shape", "dtype")
def t(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Tensor:
    """Return numbers of Student's distribution of ``df`` degrees of freedom."""
    kind = _floating(dtype)
    wide = _wide(kind)
    sizes = _spread(shape, df)
    keys = split(key)
    half = broadcast(e.multiply(cast(array(df), wide), 0.5), sizes)
    spread = e.sqrt(e.divide(half, _gamma(keys[1], half, sizes)))
    return cast(e.multiply(_normal(keys[0], sizes, wide), spread), kind)


@_drawing("shape", "dtype")
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = np.int64) -> Tensor:
    """Return integers of the Poisson distribution of mean ``lam`` >= 0.

    By search from 0 where lam < 10, by Hoermann's transformed rejection beyond; as float64 does it.
    """
    kind = as_dtype(dtype)
    sizes = _spread(shape, lam)
    mean = broadcast(cast(array(lam), WIDE), sizes)
    small = e.less(mean, 10.0)
    few = _poisson_by_search(_unit(key, sizes, WIDE, SECOND), e.where(small, mean, 0.0))
    many = _poisson_by_rejection(key, e.where(small, 10.0, mean), sizes)
    return cast(e.where(small, few, many), kind)


def _poisson_by_search(unit: Tensor, mean: Tensor) -> Tensor:
    def going(carry: Any) -> Any:
        return r.any(e.greater_equal(unit, carry[2]))

    def again(carry: Any) -> Any:
        number, share, below = carry
        beyond = e.greater_equal(unit, below)
        number = e.where(beyond, e.add(number, 1.0), number)
        share = e.where(beyond, e.divide(e.multiply(share, mean), number), share)
        found = e.add(below, share)  # where it grows no more, it is all there is
        return number, share, e.where(e.equal(found, below), e.where(beyond, 2.0, below), found)

    first = e.exp(e.negative(mean))
    return while_loop(going, again, (full(unit.shape, 0.0, WIDE), first, first))[0]


def _poisson_by_rejection(key: Any, mean: Tensor, sizes: Shape) -> Tensor:
    root = e.sqrt(mean)
    b = e.add(e.multiply(root, 2.53), 0.931)
    a = e.add(e.multiply(b, 0.02483), -0.059)
    alpha = e.add(e.divide(1.1328, e.subtract(b, 3.4)), 1.1239)
    sure = e.subtract(0.9277, e.divide(3.6224, e.subtract(b, 2.0)))

    def propose(number: Tensor) -> tuple[Tensor, Tensor]:
        u = e.subtract(_round_unit(key, sizes, WIDE, number, 0), 0.5)
        v = _round_unit(key, sizes, WIDE, number, 1)
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

    return _until_accepted(sizes, WIDE, propose)


def _log_factorial(k: Tensor) -> Tensor:
    """Return log(k!) by Stirling's series of k + 9, whose error is below 1e-13."""
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
