"""Attention backward by blocks of examples and queries: never are all scores in memory.

The rule of the whole is a loop over blocks. Each computes its scores again and carries its
cotangents back; those of what several blocks read (keys and values) are added up in the order of
the blocks. A block's scores stay in caches, so this is also faster than all at once.
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
"""So many scores a block has at most: with what is made of them some megabytes, as caches have."""
QUERIES = 128
"""So many queries a block has at least, if there are as many: keys are read once for each block."""
LINE = 16
"""The number of queries of a block is a multiple of this, where it does not divide all queries."""

Axes: TypeAlias = tuple[int | None, int | None]
"""The axes of examples and of queries of a value; None where it has none."""


@dataclass(frozen=True)
class Blocks:
    """Into how many blocks of how many examples, and how many queries, attention is cut.

    The last block of queries ends where they do; its first may be queries of the block before.
    """

    batches: int
    examples: int
    bands: int
    queries: int
    length: int
    """How many queries there are."""

    @property
    def overlap(self) -> int:
        """How many queries of the last block are also of the one before."""
        return self.bands * self.queries - self.length


def blocks_of(batch: int, heads: int, queries: int, keys: int) -> Blocks | None:
    """Return in which blocks to go backward; None where that is one."""
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
    """One of the blocks, while tracing."""

    of: Blocks
    example: Any
    """The number of its first example."""
    query: Any
    """The number of its first query."""
    new: Any
    """The number of its first query that no block after it has."""

    @staticmethod
    def number(of: Blocks, i: Any) -> Block:
        """Return block ``i``: the last queries come first, and overlapping ones are mended."""
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
        """Return where the block's part of ``x`` begins, and its sizes."""
        starts: list[Any] = [0] * x.ndim
        sizes = list(x.shape)
        told = zip(
            axes, (self.example, self.query), (self.of.examples, self.of.queries), strict=True
        )
        for axis, start, size in told:
            if axis is not None and x.shape[axis] != size:
                starts[axis], sizes[axis] = start, size
        return starts, sizes

    def cut(self, x: Tensor, axes: Axes) -> Tensor:
        """Return the block's part of ``x``."""
        starts, sizes = self._where(x, axes)
        return x if sizes == list(x.shape) else dynamic_slice(x, starts, sizes)

    def put(self, total: Tensor, part: Tensor, axes: Axes) -> Tensor:
        """Return cotangents so far with those of the block: added, or in the place of its own."""
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
        """Return cotangents, zero for queries that the block before has as well."""
        if not self.of.overlap:
            return x
        place = e.add(iota((self.of.queries,), 0, INTEGER), self.query)
        shape = [1] * x.ndim
        shape[axis] = self.of.queries
        return e.where(reshape(e.greater_equal(place, self.new), shape), x, 0)


def _wide(x: Tensor) -> DType:
    """Return what cotangents are added up in: float32 at least."""
    return x.kind if x.kind.bytes >= SINGLE.bytes else SINGLE


Attend: TypeAlias = Callable[[Sequence[Tensor], Block | None], Sequence[Tensor]]
"""Returns the attention of some values, all of them or a block's."""


def attended_in_blocks(
    attend: Attend,
    values: Sequence[Tensor],
    axes: Sequence[Axes],
    given: Sequence[Axes],
    of: Blocks,
) -> Sequence[Tensor]:
    """Return the attention of all values, with a rule that goes backward block by block.

    axes : those of each value
    given : those of each result
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
