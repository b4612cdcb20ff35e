"""Backward pass of attention by blocks of examples and queries: scores are never all in memory.

The vjp of the whole is a loop over blocks. Each block recomputes its scores and propagates its
cotangents; cotangents of keys and values, which several blocks read, are accumulated in the order
of the blocks. A block's scores stay in cache, so this is also faster than all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from stepwell.core.dtypes import DType
from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import filled, iota
from stepwell.frontend.indexing import dynamic_slice, dynamic_update_slice
from stepwell.frontend.lax_control import fori_loop
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import INTEGER, SINGLE, cast
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.checkpoint import checkpoint
from stepwell.frontend.transformations.custom import made_otherwise
from stepwell.frontend.transformations.products import vjp

SCORES = 1 << 20
"""Maximum scores of a block: with temporaries they take some megabytes, as caches hold."""
QUERIES = 128
"""Minimum queries of a block (or all queries): each block reads the keys once."""
LINE = 16
"""A block's number of queries is a multiple of this, unless it divides that of all queries."""

Axes: TypeAlias = tuple[int | None, int | None]
"""The axes of examples and of queries of a value; None if it has no such axis."""


@dataclass(frozen=True)
class Blocks:
    """How attention is split: the number of blocks, and of examples and queries in each.

    The last block of queries is aligned to their end; it may overlap the block before.
    """

    batches: int
    examples: int
    bands: int
    queries: int
    length: int
    """The number of queries."""

    @property
    def overlap(self) -> int:
        """How many queries of the last block are also in the block before."""
        return self.bands * self.queries - self.length


def blocks_of(batch: int, heads: int, queries: int, keys: int) -> Blocks | None:
    """Return the split for the backward pass; None if one block suffices."""
    of_one = heads * queries * keys
    if batch * of_one <= SCORES:
        return None
    if of_one <= SCORES:
        fits = range(1, SCORES // of_one + 1)
        examples = max(n for n in fits if batch % n == 0)
        return Blocks(batch // examples, examples, 1, queries, queries)
    rows = min(max(SCORES // (heads * keys), QUERIES), queries)
    whole = [n for n in range(rows, rows // 2, -1) if queries % n == 0]
    size = whole[0] if whole else min(-(-queries // -(-queries // rows) // LINE) * LINE, queries)
    bands = -(-queries // size)
    return None if batch * bands == 1 else Blocks(batch, 1, bands, size, queries)


@dataclass(frozen=True)
class Block:
    """One block, while tracing."""

    of: Blocks
    example: Any
    """The index of the block's first example."""
    query: Any
    """The index of the block's first query."""
    new: Any
    """The index of the first query that the block of the queries before does not have."""

    @staticmethod
    def number(of: Blocks, i: Any) -> Block:
        """Return block ``i``: the last queries come first, so that overlaps are overwritten."""
        band = 0 if of.bands == 1 else e.subtract(of.bands - 1, e.remainder(i, of.bands))
        batch = 0 if of.batches == 1 else e.floor_divide(i, of.bands) if of.bands > 1 else i
        new = e.multiply(band, of.queries) if of.bands > 1 else 0
        last = of.length - of.queries
        return Block(
            of,
            e.multiply(batch, of.examples) if of.batches > 1 else 0,
            e.minimum(new, last) if of.overlap else new,
            new,
        )

    def _where(self, x: Tensor, axes: Axes) -> tuple[list[Any], list[int]]:
        """Return the start and the sizes of the block's part of ``x``."""
        starts: list[Any] = [0] * x.ndim
        sizes = list(x.shape)
        parts = zip(
            axes, (self.example, self.query), (self.of.examples, self.of.queries), strict=True
        )
        for axis, start, size in parts:
            if axis is not None and x.shape[axis] != size:
                starts[axis], sizes[axis] = start, size
        return starts, sizes

    def cut(self, x: Tensor, axes: Axes) -> Tensor:
        """Return the block's part of ``x``."""
        starts, sizes = self._where(x, axes)
        return x if sizes == list(x.shape) else dynamic_slice(x, starts, sizes)

    def put(self, total: Tensor, part: Tensor, axes: Axes) -> Tensor:
        """Store the block's cotangents in the total; add them if several blocks contribute."""
        part = cast(part, total.kind)
        several = (self.of.batches > 1 and axes[0] is None) or (
            self.of.bands > 1 and axes[1] is None
        )
        if several:
            part = e.add(self.cut(total, axes), part)
        if part.shape == total.shape:
            return part
        return dynamic_update_slice(total, part, self._where(total, axes)[0])

    def own(self, x: Tensor, axis: int) -> Tensor:
        """Return cotangents, zeroed for queries that the block before has as well."""
        if not self.of.overlap:
            return x
        place = e.add(iota((self.of.queries,), 0, INTEGER), self.query)
        shape = [1] * x.ndim
        shape[axis] = self.of.queries
        return e.where(reshape(e.greater_equal(place, self.new), shape), x, 0)


def _wide(x: Tensor) -> DType:
    """Return the dtype of accumulated cotangents: float32 at least."""
    return x.kind if x.kind.bytes >= SINGLE.bytes else SINGLE


Attend: TypeAlias = Callable[[Sequence[Tensor], Block | None], Sequence[Tensor]]
"""Computes the attention of some values, all of them or a block's."""


def attended_in_blocks(
    attend: Attend,
    values: Sequence[Tensor],
    axes: Sequence[Axes],
    given: Sequence[Axes],
    of: Blocks,
) -> Sequence[Tensor]:
    """Return the attention of all values, with a vjp that works block by block.

    axes : the axes of each value
    given : the axes of each result
    """

    def whole(*values: Tensor) -> Sequence[Tensor]:
        return attend(values, None)

    def backward(values: Sequence[Tensor], cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
        @checkpoint
        def step(
            i: Any, values: Sequence[Tensor], cotangents: Sequence[Tensor]
        ) -> Sequence[Tensor]:
            block = Block.number(of, i)
            parts = [block.cut(v, a) for v, a in zip(values, axes, strict=True)]
            cut = [block.cut(c, a) for c, a in zip(cotangents, given, strict=True)]
            cut = [
                c if a[1] is None else block.own(c, a[1]) for c, a in zip(cut, given, strict=True)
            ]
            _, pull = vjp(lambda *parts: tuple(attend(parts, block)), *parts)
            return pull(tuple(cut))

        def add(i: Any, totals: Sequence[Tensor]) -> Sequence[Tensor]:
            block = Block.number(of, i)
            more = step(i, values, cotangents)
            return tuple(block.put(t, m, a) for t, m, a in zip(totals, more, axes, strict=True))

        totals = tuple(filled(v.shape, 0, _wide(v)) for v in values)
        found = fori_loop(0, of.batches * of.bands, add, totals)
        return tuple(cast(t, v.kind) for t, v in zip(found, values, strict=True))

    return made_otherwise(whole, lambda *values: (whole(*values), values), backward)(*values)
