"""Dropout by counter-based random bits: the mask is recomputed, never stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.activations import floats
from stepwell.frontend.drawing import WORD, block_bits, unit_of_word
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.promotion import SINGLE, cast, is_number, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.checkpoint import checkpoint


def dropout(
    x: Any, rate: Any, key: Any, inference: Any = False, broadcast_dims: Sequence[int] = ()
) -> Tensor:
    """Set elements to 0 with probability ``rate``, and divide the others by ``1 - rate``.

    x : an array of any shape; floats keep their dtype, integers become float32
    rate : a number in [0, 1], which may be traced
    key : (2,) uint32, from `stepwell.random.key`: the same key drops the same elements. It may be
        None if ``inference`` is True or the rate is 0
    inference : a boolean, which may be traced: return ``x`` unchanged
    broadcast_dims : axes along which the mask is broadcast
    raises ValueError : the rate is not in [0, 1], or the key is missing
    raises AxisError : ``x`` has no such axis
    source : Dropout, Srivastava et al. 2014

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(lambda x: sw.nn.dropout(x, 0.5, sw.random.key(1)))(np.ones(6, np.float32))
    array([0., 0., 0., 2., 2., 0.], dtype=float32)
    """
    (value,) = floats(x)
    if is_number(rate) and not 0 <= rate <= 1:
        raise ValueError(f"the rate of a dropout is in [0, 1], got {rate}")
    known = isinstance(inference, bool | np.bool_)
    if (known and inference) or (is_number(rate) and rate == 0):
        return value
    if key is None:
        raise ValueError("dropout needs a key, such as stepwell.random.key(0)")
    together = {check_axis(a, value.ndim) for a in broadcast_dims}
    shape = tuple(1 if a in together else n for a, n in enumerate(value.shape))

    def drop(value: Tensor, rate: Any, key: Any) -> Tensor:
        words = block_bits(key, shape, WORD)
        if is_number(rate):
            return _dropped(value, words, float(rate))
        chance = cast(lift(rate), SINGLE)
        kept = e.greater_equal(unit_of_word(words, SINGLE), chance)
        left = e.subtract(1, chance)
        return e.where(kept, e.divide(value, cast(left, value.kind)), 0)

    # the backward pass recomputes the mask: a stored mask would be as large as x
    dropped = checkpoint(drop)(value, rate, key)
    return dropped if known else e.where(inference, value, dropped)


def _dropped(value: Tensor, words: Tensor, rate: float) -> Tensor:
    limit = round(rate * 2**32)
    if limit >= 1 << 32:
        return e.where(False, value, 0)
    kept = e.greater_equal(words, np.uint32(limit))
    return e.where(kept, e.multiply(value, 1 / (1 - rate)), 0)
