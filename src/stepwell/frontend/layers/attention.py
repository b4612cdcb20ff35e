"""Attention, and rotary position embeddings. For ``sw.nn``.

No (queries, keys) array is materialized: scores, masks and weights are fused into one kernel with
the products (note 082), and the backward pass works in blocks (`attention_blocks`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend.activations import floats
from stepwell.frontend.creation import iota
from stepwell.frontend.joining import concat
from stepwell.frontend.layers.attention_blocks import (
    Axes,
    Block,
    attended_in_blocks,
    blocks_of,
)
from stepwell.frontend.linear_algebra import dot_general
from stepwell.frontend.manipulation import expand_dims, flip, permute_dims, reshape
from stepwell.frontend.normalization import logsumexp, softmax
from stepwell.frontend.promotion import BOOL, SINGLE, as_dtype, cast, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.checkpoint import checkpoint
from stepwell.frontend.transformations.regions import derivatives

PLACE = as_dtype("i32")
"""The dtype of positions in a sequence: as wide as scores, so that a vector holds as many."""
_LOWEST = -0.7 * float(np.finfo(np.float32).max)
"""The score of a masked key: finite, so that a fully masked row has weights and not NaN."""

BAND = 128
"""Minimum number of queries of a causal band: they see about the same number of keys."""
BANDS = 8
"""Maximum number of bands of a causal attention: each band has its own kernels."""


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: Any = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Return ``softmax(query @ key.T * scale + bias) @ value`` for each head.

    query : (B, T, N, H) or (T, N, H); floats keep their dtype, integers become float32
    key, value : (B, S, K, H) or (S, K, H); K divides N, and each key serves N / K query heads
    bias : is added to the scores; broadcasts to (B, N, T, S)
    mask : booleans that broadcast to (B, N, T, S): False masks a key
    scale : a number; None is 1 / sqrt(H)
    is_causal : a query sees the keys up to its own position
    query_seq_lengths, key_value_seq_lengths : (B,) integers; positions beyond are masked, and
        their results are 0
    local_window_size : how many positions before and after its own a query sees: an int, or a pair
    implementation : None or 'xla'; has no effect
    return_residual : also return the logarithm of each query's sum of exponentials, (B, T, N)
    returns : the shape of the query. Scores and softmax are in float32 at least. A query that sees
        no key has the mean of all values
    raises ShapeError : sizes do not agree
    raises TypeError : the mask is not boolean, or lengths are not integers
    source : `jax.nn.dot_product_attention`

    >>> import numpy as np, stepwell as sw
    >>> q = np.ones((2, 1, 4), np.float32)
    >>> v = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    >>> sw.jit(lambda q, v: sw.nn.dot_product_attention(q, q, v, is_causal=True))(q, v)[:, 0]
    array([[0., 1., 2., 3.],
           [2., 3., 4., 5.]], dtype=float32)
    """
    if implementation not in (None, "xla"):
        raise ValueError(f"implementation is None or 'xla', got {implementation!r}")
    q, k, v = floats(query, key, value)
    batched = q.ndim == 4
    q, k, v = (_with_batch(each, name) for each, name in ((q, "query"), (k, "key"), (v, "value")))
    sizes = _sizes(q, k, v)
    b, t, *_, depth = sizes
    lengths = _length(query_seq_lengths, "query", b), _length(key_value_seq_lengths, "key_value", b)
    sight = Sight(_mask(mask, sizes), lengths, _reach(is_causal, local_window_size))
    seen = sight.seen(sizes)
    added = None if bias is None else _grouped(bias, "bias", sizes)
    if sizes[4] == 1 and added is not None:  # avoid an axis of one element in between
        added = _ungrouped(added)

    factor = 1 / math.sqrt(depth) if scale is None else scale
    others = mask, local_window_size, *lengths
    alone = is_causal and all(each is None for each in others)  # so every query sees a key
    parts = [
        _attended(q, k, v, factor, added, (sight, seen), part, alone, return_residual)
        for part in _bands(t, alone)
    ]
    found = concat([part[0] for part in parts], axis=1) if len(parts) > 1 else parts[0][0]
    if lengths[0] is not None:
        there = e.less(iota((t,), 0, PLACE), reshape(lengths[0], (b, 1)))
        found = e.where(reshape(there, (b, t, 1, 1)), found, 0)
    found = found if batched else reshape(found, found.shape[1:])
    if not return_residual:
        return found
    sums = concat([part[1] for part in parts], axis=-1) if len(parts) > 1 else parts[0][1]
    last = sums.ndim - 1
    residual = permute_dims(cast(sums, k.kind), (0, last, *range(1, last)))
    return found, reshape(residual, found.shape[:-1])


def _bands(queries: int, trimmed: bool) -> list[slice]:
    """Split the queries into bands: several if each sees only a prefix of the keys."""
    if not trimmed or queries < 2 * BAND:
        return [slice(0, queries)]
    size = max(BAND, -(-queries // BANDS // BAND) * BAND)
    return [slice(first, min(first + size, queries)) for first in range(0, queries, size)]


def _attend(
    q: Tensor, k: Tensor, v: Tensor, scale: Any, added: Any, seen: Any, return_residual: bool
) -> Sequence[Tensor]:
    """Return the attention of queries to keys; ``seen`` is true where a query sees a key."""
    sizes = _sizes(q, k, v)
    scores = e.multiply(_scores(_wide(q), _wide(k), sizes), scale)
    if added is not None:
        scores = cast(e.add(scores, cast(added, scores.kind)), scores.kind)
    if seen is not None:
        scores = e.where(seen, scores, _LOWEST)
    found = _weighted(cast(softmax(scores), v.kind), v, sizes)
    return (found, logsumexp(scores, -1)) if return_residual else (found,)


def _attended(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: Any,
    added: Tensor | None,
    which: tuple[Sight, Tensor | None],
    part: slice,
    trimmed: bool,
    return_residual: bool,
) -> Sequence[Tensor]:
    """Return the attention of a band, and the logarithms of its sums of exponentials.

    Neither scores nor weights are kept for the backward pass.
    """
    sight, seen = which
    keys = slice(0, min(part.stop, k.shape[1]) if trimmed else k.shape[1])
    whole = (part, keys) == (slice(0, q.shape[1]), slice(0, k.shape[1]))
    if not whole:
        q, k, v = q[:, part], k[:, keys], v[:, keys]
        added, seen = (None if x is None else _cut(x, part, keys) for x in (added, seen))
    b, t, s, heads, groups, _ = _sizes(q, k, v)
    blocks = blocks_of(b, heads * groups, t, s)

    def attend(
        q: Tensor, k: Tensor, v: Tensor, scale: Any, added: Any, seen: Any = seen
    ) -> Sequence[Tensor]:
        return _attend(q, k, v, scale, added, seen, return_residual)

    if blocks is None or not derivatives():
        return checkpoint(attend)(q, k, v, scale, added)
    values = {"q": q, "k": k, "v": v}
    axes: dict[str, Axes] = {"q": (0, 1), "k": (0, None), "v": (0, None)}
    if isinstance(scale, Tensor) and scale.kind.kind == "float":
        values["scale"], axes["scale"] = scale, (None, None)
    if added is not None:
        values["added"] = cast(added, _wide(q).kind)
        axes["added"] = _varying(added)

    def of_block(parts: Sequence[Tensor], block: Block | None) -> Sequence[Tensor]:
        given = dict(zip(values, parts, strict=True))
        q, k, v = (given[name] for name in "qkv")
        now = seen if block is None else sight.seen(_sizes(q, k, v), block, part.start)
        return attend(q, k, v, given.get("scale", scale), given.get("added"), now)

    results: list[Axes] = [(0, 1), (0, 2 + (groups > 1))]
    return attended_in_blocks(
        of_block,
        list(values.values()),
        list(axes.values()),
        results[: 1 + return_residual],
        blocks,
    )


def _varying(x: Tensor) -> Axes:
    """Return the axes along which a bias or mask varies: that of examples, and that of queries."""
    return 0 if x.shape[0] > 1 else None, x.ndim - 2 if x.shape[-2] > 1 else None


def _cut(x: Tensor, queries: slice, keys: slice) -> Tensor:
    """Return the part of a bias or mask for some queries and keys."""
    rows = slice(None) if x.shape[-2] == 1 else queries
    columns = slice(None) if x.shape[-1] == 1 else keys
    return x[..., rows, columns]


def _scores(q: Tensor, k: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return q @ k.T for each head: (batch, key heads, query heads per key head, T, S).

    If each query head has its own key head, the axis of query heads is missing.
    """
    b, t, _, heads, groups, depth = sizes
    if groups == 1:
        return dot_general(q, k, ((0, 2), (0, 2)), ((3,), (3,)))
    q = reshape(q, (b, t, heads, groups, depth))
    found = dot_general(q, k, ((0, 2), (0, 2)), ((4,), (3,)))  # (B, K, T, G, S)
    return permute_dims(found, (0, 1, 3, 2, 4))


def _weighted(weights: Tensor, v: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return weights @ v for each head: (batch, T, heads, size)."""
    b, t, _, heads, groups, depth = sizes
    if groups == 1:
        found = dot_general(weights, v, ((0, 1), (0, 2)), ((3,), (1,)))  # (B, K, T, H)
        return permute_dims(found, (0, 2, 1, 3))
    found = dot_general(weights, v, ((0, 1), (0, 2)), ((4,), (1,)))  # (B, K, G, T, H)
    return reshape(permute_dims(found, (0, 3, 1, 2, 4)), (b, t, heads * groups, depth))


def _ungrouped(x: Tensor) -> Tensor:
    """Drop the axis of query heads per key head from a bias or mask."""
    return reshape(x, (*x.shape[:2], *x.shape[3:])) if x.ndim == 5 else x


def _wide(x: Tensor) -> Tensor:
    """Return ``x`` in the dtype of scores: float32 at least."""
    return cast(x, SINGLE) if x.kind.bytes < SINGLE.bytes else x


def _with_batch(x: Tensor, name: str) -> Tensor:
    if x.ndim not in (3, 4):
        raise ShapeError(
            f"the {name} of attention is (batch, length, heads, size) or (length, heads, size), "
            f"got shape {x.shape}"
        )
    return x if x.ndim == 4 else reshape(x, (1, *x.shape))


def _sizes(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, int, int, int, int, int]:
    """Return batch, queries, keys, key heads, query heads per key head, and the head's size."""
    b, t, n, h = q.shape
    s, heads = k.shape[1:3]
    if (k.shape[0], k.shape[3]) != (b, h) or v.shape != k.shape:
        raise ShapeError(
            f"keys and values are ({b}, length, heads, {h}) as the query is {q.shape}, got shapes "
            f"{k.shape} and {v.shape}"
        )
    if not heads or n % heads:
        raise ShapeError(f"{heads} heads of keys do not divide {n} heads of queries")
    return b, t, s, heads, n // heads, h


def _grouped(x: Any, name: str, sizes: Sequence[int]) -> Tensor:
    """Reshape a bias or mask to broadcast with (batch, key heads, heads per key head, T, S)."""
    b, t, s, heads, groups, _ = sizes
    value = lift(x)
    full = (b, heads * groups, t, s)
    own = (*(1,) * (4 - value.ndim), *value.shape)
    if len(own) != 4 or any(n not in (1, m) for n, m in zip(own, full, strict=True)):
        raise ShapeError(f"the {name} of attention broadcasts to {full}, got shape {value.shape}")
    split = (1, 1) if own[1] == 1 else (heads, groups)
    return reshape(value, (own[0], *split, *own[2:]))


def _length(given: Any, name: str, batch: int) -> Tensor | None:
    if given is None:
        return None
    found = lift(given)
    if found.kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"{name}_seq_lengths are integers, got {found.dtype}")
    if found.shape != (batch,):
        raise ShapeError(f"{name}_seq_lengths are ({batch},), got shape {found.shape}")
    return cast(found, PLACE)


def _mask(mask: Any, sizes: Sequence[int]) -> Tensor | None:
    if mask is None:
        return None
    chosen = lift(mask)
    if chosen.kind is not BOOL:
        raise TypeError(f"the mask of attention is booleans, got {chosen.dtype}; use bias=")
    return _grouped(chosen, "mask", sizes)


@dataclass(frozen=True)
class Sight:
    """Determines which keys a query sees."""

    mask: Tensor | None
    """The mask, with five axes."""
    lengths: tuple[Tensor | None, Tensor | None]
    """The number of queries and of keys of each example, (B,)."""
    reach: tuple[int | None, int | None]
    """How many positions before and after its own a query sees; None for all."""

    def seen(
        self, sizes: Sequence[int], block: Block | None = None, first: int = 0
    ) -> Tensor | None:
        """Return a mask of the keys that each query, of all or of a block, sees; None for all keys.

        sizes : of the whole attention, or of the block
        first : the position of the first query of the band that the block is from
        """
        t, s, _, groups = sizes[1:5]
        parts: list[Tensor] = []
        if self.mask is not None:
            parts.append(_of_block(self.mask, _varying(self.mask), block))
        if any(limit is not None for limit in (*self.reach, *self.lengths)):
            row, column = (iota((t, s), axis, PLACE) for axis in (0, 1))
            if block is not None:
                row = e.add(row, cast(lift(e.add(lift(block.query), first)), PLACE))
            parts += _within(row, column, self.reach)
            for place, length in zip((row, column), self.lengths, strict=True):
                if length is not None:
                    own = _of_block(length, (0, None), block)
                    parts.append(e.less(place, reshape(own, (*own.shape, 1, 1, 1, 1))))
        seen = parts[0] if parts else None
        for part in parts[1:]:
            seen = e.logical_and(seen, part)
        # avoid an axis of one element in between
        return seen if seen is None or groups > 1 else _ungrouped(seen)


def _of_block(x: Tensor, axes: Axes, block: Block | None) -> Tensor:
    return x if block is None else block.cut(x, axes)


def _within(row: Tensor, column: Tensor, reach: tuple[int | None, int | None]) -> list[Tensor]:
    before, after = reach
    found = [] if before is None else [e.less_equal(e.subtract(row, column), before)]
    if after == 0:
        return [*found, e.greater_equal(row, column)]
    return found if after is None else [*found, e.greater_equal(e.subtract(row, column), -after)]


def _reach(is_causal: bool, window: Any) -> tuple[int | None, int | None]:
    """Return how many positions before and after its own a query sees; None for all of them."""
    if window is None:
        return None, 0 if is_causal else None
    before, after = (window, window) if isinstance(window, int) else window
    return int(before), min(int(after), 0) if is_causal else int(after)


def rotary_embedding(
    x: Any, positions: Any = None, *, base: float = 10000.0, interleaved: bool = False
) -> Tensor:
    """Rotate pairs of features by angles that grow with their position.

    x : (..., T, N, H) with H even: queries or keys of N heads; floats keep their dtype, integers
        become float32; angles, sines and cosines are float32 at least
    positions : integers or floats that broadcast to (..., T); None is 0, 1, ...
    base : pair i of H / 2 is rotated by ``position / base ** (2 * i / H)``
    interleaved : whether a pair is features 2 i and 2 i + 1, or else i and i + H / 2
    raises ShapeError : ``x`` has fewer than 3 axes, or H is odd
    source : RoFormer, Su et al. 2021

    >>> import numpy as np, stepwell as sw
    >>> x = np.float32([[[1, 0]], [[1, 0]]])
    >>> sw.jit(sw.nn.rotary_embedding)(x)[:, 0].round(3)
    array([[1.   , 0.   ],
           [0.54 , 0.841]], dtype=float32)
    """
    (value,) = floats(x)
    if value.ndim < 3 or value.shape[-1] % 2:
        raise ShapeError(
            f"a rotary embedding turns (..., length, heads, even size), got shape {value.shape}"
        )
    length, size = value.shape[-3], value.shape[-1]
    wide = _wide(value)
    place = iota((length,), 0, PLACE) if positions is None else lift(positions)
    slower = base ** (-np.arange(0, size, 2) / size)
    angle = e.multiply(
        cast(reshape(place, (*place.shape, 1, 1)), wide.kind), slower.astype(wide.kind.numpy)
    )
    turned = (e.cos(angle), e.sin(angle))
    return cast(_rotated(wide, turned, interleaved), value.kind)


def _rotated(x: Tensor, angle: tuple[Tensor, Tensor], interleaved: bool) -> Tensor:
    """Return pairs of the last axis rotated by an angle with this cosine and sine.

    Each pair is read twice, the second time flipped: a flip is a view and needs no copy.
    """
    half = x.shape[-1] // 2
    axis = x.ndim if interleaved else x.ndim - 1
    pairs = reshape(x, (*x.shape[:-1], *((half, 2) if interleaved else (2, half))))
    cos, sin = (expand_dims(v, -1 if interleaved else -2) for v in angle)
    sign = np.array([-1, 1], x.kind.numpy).reshape((2,) if interleaved else (2, 1))
    own, other = e.multiply(pairs, cos), e.multiply(flip(pairs, axis), e.multiply(sin, sign))
    return reshape(e.add(own, other), x.shape)
