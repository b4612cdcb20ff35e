"""Random keys, and the random bits and numbers in [0, 1) that all distributions use."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.jit import jit
from stepwell.frontend.joining import stack
from stepwell.frontend.operands import array, dtype_of
from stepwell.frontend.promotion import as_dtype, cast, is_number
from stepwell.frontend.random_bits import random_bits
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace

SPLIT, FOLD, SECOND = 1 << 63, 3 << 62, 1 << 61
"""First counters of derived keys, and of the second half of draws that take two blocks."""
ROUND = 1 << 40
"""The distance between the counters of rejection rounds: more than any array has elements."""
WORD, LONG = as_dtype("ui32"), as_dtype("ui64")

F = TypeVar("F", bound=Callable[..., Any])


def drawing(*static: str) -> Callable[[F], F]:
    """Decorate a function to be compiled, with these static arguments, outside a trace."""

    def decorate(function: F) -> F:
        names = tuple(n for n in static if n in signature(function).parameters)
        compiled = jit(function, static_argnames=names, max_traces=None)

        @wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if active_trace() is not None:
                return function(*args, **keywords)
            return compiled.served(*args, **keywords)  # also under `sw.disable_jit`

        return call  # pyright: ignore[reportReturnType]

    return decorate


def key(seed: Any) -> Any:
    """Return the key of a seed, two words of uint32.

    seed : an int of up to 64 bits, or a traced integer
    returns : (2,) uint32
    raises TypeError : the seed is not an integer
    raises OverflowError : it has more than 64 bits
    source : `jax.random.key`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.key(7)
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


def words_of(key: Any) -> Tensor:
    """Return a key as a traced value, after checking it."""
    value = array(key)
    if value.shape != (2,) or value.kind is not WORD:
        raise TypeError(
            f"a key is uint32 of shape (2,), as stepwell.random.key(seed) gives it, got "
            f"{value.dtype} of shape {value.shape}"
        )
    return value


def block_bits(key: Any, shape: Shape, kind: DType, start: int = 0) -> Tensor:
    """Return the blocks from index ``start`` on, as words of 32 or 64 bits."""
    return random_bits(words_of(key), np.uint64(start), shape, kind)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def bits_of_blocks(key: Any, numbers: Tensor) -> Tensor:
    """Return the blocks at these uint64 indices, as words of 64 bits.

    For consecutive indices it equals `stepwell.lax.random_bits`: Threefry-2x32 with 20 rounds.
    """
    words = words_of(key)
    first, second = words[0], words[1]
    keys = (first, second, e.bitwise_xor(e.bitwise_xor(first, second), np.uint32(_PARITY)))
    low = e.add(cast(numbers, WORD), keys[0])
    high = e.add(cast(e.bitwise_right_shift(numbers, 32), WORD), keys[1])
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            low = e.add(low, high)
            turned = e.bitwise_or(
                e.bitwise_left_shift(high, turn), e.bitwise_right_shift(high, 32 - turn)
            )
            high = e.bitwise_xor(turned, low)
        low = e.add(low, keys[(group + 1) % 3])
        high = e.add(e.add(high, keys[(group + 2) % 3]), np.uint32(group + 1))
    return e.bitwise_or(cast(low, LONG), e.bitwise_left_shift(cast(high, LONG), 32))


def _as_keys(blocks: Tensor) -> Tensor:
    words = [cast(e.bitwise_right_shift(blocks, 32), WORD), cast(blocks, WORD)]
    return stack(words, axis=-1)


@drawing("num")
def split(key: Any, num: Any = 2) -> Tensor:
    """Return new keys, whose random numbers are independent.

    key : (2,) uint32, from `key`
    num : how many, or the shape of the result without its last axis
    returns : (num, 2) uint32, or (*num, 2)
    raises TypeError : the key is invalid
    source : `jax.random.split`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.split(sw.random.key(7)).shape
    (2, 2)
    """
    return _as_keys(block_bits(key, checked_shape(num), LONG, SPLIT))


@drawing()
def fold_in(key: Any, data: Any) -> Tensor:
    """Return a new key for each integer, such as the step of a loop.

    key : (2,) uint32, from `key`
    data : an integer, which may be traced
    returns : (2,) uint32
    raises TypeError : the data is not an integer, or the key is invalid
    source : `jax.random.fold_in`

    >>> import numpy as np, stepwell as sw
    >>> key = sw.random.key(7)
    >>> bool((sw.random.fold_in(key, 1) == sw.random.fold_in(key, 2)).all())
    False
    """
    number = array(data)
    if number.kind.kind == "float" or number.shape:
        raise TypeError(f"a key is folded with one integer, got {number!r}")
    start = e.add(e.bitwise_and(cast(number, LONG), np.uint64((1 << 62) - 1)), np.uint64(FOLD))
    return _as_keys(random_bits(words_of(key), start, (), LONG))


@drawing("shape", "dtype")
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Tensor:
    """Return uniformly random bits.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them
    dtype : an integer dtype
    raises TypeError : the dtype is not of integers, or the key is invalid
    source : `jax.random.bits`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.bits(sw.random.key(7), 3, np.uint8)
    array([139,  72, 110], dtype=uint8)
    """
    kind = as_dtype(dtype)
    if kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"bits are integers, got {kind.name}")
    return cast(block_bits(key, checked_shape(shape), LONG if kind.bytes == 8 else WORD), kind)


def float_dtype(dtype: Any) -> DType:
    """Return a dtype of floats; raise `TypeError` for others."""
    kind = dtype_of(dtype)
    if kind.kind != "float":
        raise TypeError(f"these numbers are floats, got dtype {kind.name}")
    return kind


def unit(key: Any, shape: Shape, kind: DType, start: int = 0) -> Tensor:
    """Return numbers in [0, 1) with as many random bits as the dtype holds."""
    if kind.bytes == 8:
        return unit_of_long(block_bits(key, shape, LONG, start))
    return unit_of_word(block_bits(key, shape, WORD, start), kind)


def unit_of_long(words: Tensor) -> Tensor:
    """Return f64 in [0, 1) with 52 random bits: the mantissa of a number in [1, 2), minus 1."""
    mantissa = e.bitwise_or(e.bitwise_right_shift(words, 12), np.uint64(0x3FF << 52))
    return e.subtract(e.bitcast(mantissa, np.float64), 1.0)


def unit_of_word(words: Tensor, kind: DType) -> Tensor:
    """Return floats in [0, 1) with 24 random bits, or as many as a narrower dtype holds."""
    held = {"f32": 24, "f16": 11, "bf16": 8}[kind.name]
    whole = cast(cast(e.bitwise_right_shift(words, 32 - held), as_dtype("i32")), as_dtype("f32"))
    return cast(e.multiply(whole, float(2.0**-held)), kind)


def opened(drawn: Tensor) -> Tensor:
    """Move numbers in [0, 1) into (0, 1): to the middle of their step."""
    half = {"f64": 2.0**-53, "f32": 2.0**-25, "f16": 2.0**-12, "bf16": 2.0**-9}[drawn.kind.name]
    found = e.add(drawn, half)
    most = {"f64": 1 - 2.0**-53, "f32": 1 - 2.0**-24, "f16": 1 - 2.0**-11, "bf16": 1 - 2.0**-8}
    return e.minimum(found, most[drawn.kind.name])


def wide_dtype(kind: DType) -> DType:
    """Return the dtype in which numbers of fewer than 32 bits are computed."""
    return kind if kind.bytes > 2 else as_dtype("f32")


def shape_of(value: Any) -> Shape:
    """Return the shape of a traced value or of any array-like."""
    return value.shape if isinstance(value, Tensor) else np.shape(value)


def spread(shape: Any, *parameters: Any) -> Shape:
    """Return ``shape``; if it is None, the broadcast shape of the parameters."""
    own = np.broadcast_shapes(*(shape_of(p) for p in parameters))
    if shape is None:
        return own
    sizes = checked_shape(shape)
    if np.broadcast_shapes(own, sizes) != sizes:
        raise ValueError(f"parameters of shape {own} do not broadcast to shape {sizes}")
    return sizes


def parameter(value: Any, kind: DType) -> Any:
    """Return a parameter of a distribution: a number, or a value of dtype ``kind``."""
    return value if is_number(value) else cast(array(value), kind)
