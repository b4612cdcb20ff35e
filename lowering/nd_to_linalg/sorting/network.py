"""Short axes: Batcher's odd-even merge sort, with the same exchanges for many rows at once.

Rows are sorted in blocks of as many as fill a cache line. Words in the required order are in
scratch, one lane per row, so that an exchange of two words is one of cache lines: a minimum and
a maximum without branches. The exchanges depend on the length alone, in loops of little code for
any length. A word is a key, or a key with the index of its element below; if both do not fit into
64 bits, indices have scratch of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, SSAValue

from stepwell.core.dtypes import DTYPES, DType
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body, signless_element
from stepwell.lowering.nd_to_linalg.nests import (
    UNROLL,
    Operands,
    Places,
    loop,
    read,
    tasks,
    written,
)
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.sorting.keys import Sort

LINE = 64
"""Bytes of a cache line, which is the unit of an exchange."""
TASKS = 64
"""The number of tasks, enough for threads to share; the blocks of one use the same scratch."""
_AtElement: TypeAlias = Callable[[Body, list[SSAValue], SSAValue, SSAValue, Operands], Operands]
"""``(body, index in x, element, lane, carried) -> carried``."""
_Change: TypeAlias = Callable[[Body, Operands, SSAValue], Sequence[SSAValue]]
"""``(body, words, element) -> words``."""


def exchanges(n: int) -> int:
    """Return the number of exchanges that sort ``n`` elements, a power of two or slightly fewer.

    >>> exchanges(8), exchanges(64)
    (19, 543)
    """
    p = max(n - 1, 0).bit_length()
    return ((p * p - p + 4) << p) // 4 - 1 if p else 0


@dataclass
class Network:
    """The sort of the rows of one tensor, whose length is static."""

    sort: Sort
    word: DType = field(init=False)
    apart: bool = field(init=False)
    """Whether indices are stored apart from the words."""
    lanes: int = field(init=False)

    def __post_init__(self) -> None:
        bytes = self.sort.keys.kind.bytes
        places = self.sort.places is not None
        self.apart = places and bytes == 8
        self.word = DTYPES[f"ui{8 * (max(2 * bytes, 4) if places and bytes < 8 else bytes)}"]
        self.lanes = LINE // self.word.bytes

    @property
    def n(self) -> int:
        """The number of elements of a row."""
        n = self.sort.n
        assert isinstance(n, int)
        return n

    def write(self) -> SSAValue:
        """Return the sorted elements, or their indices."""
        sort, sizes = self.sort, Sizes(self.sort.lowering)
        x, groups = self._flat(sort.x)
        axis = next(k for k, group in enumerate(groups) if sort.axis in group)
        extents = sizes.all_of(x)
        others = [k for k in range(len(extents)) if k != axis]
        rows: Size = extents[others[-1]] if others else 1
        outer: Size = extents[others[0]] if len(others) == 2 else 1
        blocks = sizes.div(sizes.add(rows, self.lanes - 1), self.lanes)
        total = sizes.mul(outer, blocks)
        count = min(TASKS, total) if isinstance(total, int) else TASKS
        each = sizes.div(sizes.add(total, count - 1), count) if count else 0
        into = [sizes.empty(extents, sort.result)]
        for type in [signless_element(self.word), *([i64] if self.apart else [])]:
            into.append(sizes.empty([count, self.n, self.lanes], type))
        last = sizes.value(sizes.max(sizes.sub(rows, 1), 0))
        whole = sizes.value(sizes.sub(rows, self.lanes))
        block = _Block(self, x, axis, rows, last, whole)
        ends = [sizes.value(n) for n in (total, each, blocks)]

        def at_each(b: Body, loops: Operands, carried: Operands) -> Operands:
            at, (task,) = Places(b), loops
            first = at.mul(task, ends[1])
            last = at.min(at.add(first, ends[1]), ends[0])

            def run(b: Body, number: SSAValue, carried: Operands) -> Operands:
                at = Places(b)
                if len(others) < 2:
                    where, lane = None, at.mul(number, self.lanes)
                else:
                    where, left = at.div(number, ends[2])
                    lane = at.mul(left, self.lanes)
                return block.sorted(b, task, where, lane, carried)

            return loop(b, (first, last), carried, run)

        y = tasks(sort.lowering, count, into, at_each, self.word)[0]
        return self._shaped(y, groups)

    def _flat(self, x: SSAValue) -> tuple[SSAValue, list[list[int]]]:
        """Return ``x`` with the axes before the sorted one collapsed, and those behind it."""
        rank, axis = self.sort.rank, self.sort.axis
        groups = [g for g in (range(axis), [axis], range(axis + 1, rank)) if g]
        found = [list(g) for g in groups]
        if len(found) == rank:
            return x, found
        shape = tensor_type(x).get_shape()
        merged = [prod(shape[a] for a in g) for g in found]
        op = tensor.CollapseShapeOp.build(
            operands=[x],
            properties={"reassociation": _reassociation(found)},
            result_types=[TensorType(tensor_type(x).element_type, merged)],
        )
        return self.sort.lowering.insert(op).result, found

    def _shaped(self, y: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
        shape = tensor_type(self.sort.x).get_shape()
        if len(groups) == len(shape):
            return y
        type = TensorType(self.sort.result, shape)
        op = tensor.ExpandShapeOp(y, [], _reassociation(groups), shape, type)
        return self.sort.lowering.insert(op).result


def _reassociation(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr(ArrayAttr(IntegerAttr(a, i64) for a in g) for g in groups)


@dataclass
class _Block:
    """A block of as many rows as lanes."""

    network: Network
    x: SSAValue
    axis: int
    rows: Size
    last: SSAValue
    """The number of the last row; lanes beyond it duplicate that row."""
    whole: SSAValue
    """The last row at which a full block begins."""

    def sorted(
        self, b: Body, task: SSAValue, where: SSAValue | None, lane: SSAValue, carried: Operands
    ) -> Operands:
        """Return result and scratch after the rows from ``lane`` on are sorted.

        where : the index along the collapsed axis before, if there is one
        """
        y, *scratch = carried

        def load(b: Body, at: list[SSAValue], i: SSAValue, k: SSAValue, now: Operands) -> Operands:
            raw = self.network.sort.keys.bits_of(b, read(b, self.x, at))
            return (written(b, _as(b, raw, b.type), now[0], [task, i, k]), *now[1:])

        scratch = self._each(b, where, lane, scratch, load)
        scratch = self._changed(b, task, scratch, self._words)
        scratch = self._exchanged(b, task, scratch)
        scratch = self._changed(b, task, scratch, self._bits_of_word)
        held = scratch[int(self.network.apart)]

        def store(b: Body, at: list[SSAValue], i: SSAValue, k: SSAValue, now: Operands) -> Operands:
            return (written(b, self._stored_part(b, read(b, held, [task, i, k])), now[0], at),)

        return [*self._each(b, where, lane, [y], store), *scratch]

    def _changed(self, b: Body, task: SSAValue, scratch: Operands, change: _Change) -> Operands:
        """Change each word of a block in place."""

        def at_place(b: Body, i: SSAValue, now: Operands) -> Operands:
            def at_lane(b: Body, k: SSAValue, now: Operands) -> Operands:
                words = change(b, [read(b, held, [task, i, k]) for held in now], i)
                pairs = zip(words, now, strict=True)
                return [written(b, word, held, [task, i, k]) for word, held in pairs]

            return loop(b, (0, self.network.lanes), now, at_lane, mark=INDEPENDENT)

        return loop(b, (0, self.network.n), scratch, at_place)

    def _each(
        self,
        b: Body,
        where: SSAValue | None,
        lane: SSAValue,
        carried: Operands,
        body: _AtElement,
    ) -> Operands:
        """Visit each element of a block, the lanes of each index side by side.

        In a full block the lanes' indices are visibly equidistant, without clamps.
        """
        lanes = self.network.lanes
        if self.rows == 1 or (isinstance(self.rows, int) and self.rows < lanes):
            return self._visited(b, where, lane, carried, body, within=False)
        if isinstance(self.rows, int) and self.rows % lanes == 0:
            return self._visited(b, where, lane, carried, body, within=True)
        blocks: list[Block] = []
        for within in (True, False):
            inside = Body(Block(), b.dtype)
            now = self._visited(inside, where, lane, carried, body, within)
            inside.block.add_op(scf.YieldOp(*now))
            blocks.append(inside.block)
        whole = b.emit(arith.CmpiOp(lane, self.whole, "sle"))
        op = scf.IfOp(whole, [v.type for v in carried], blocks[:1], blocks[1:])
        b.block.add_op(op)
        return op.results

    def _visited(
        self,
        b: Body,
        where: SSAValue | None,
        lane: SSAValue,
        carried: Operands,
        body: _AtElement,
        within: bool,
    ) -> Operands:
        def at_place(b: Body, i: SSAValue, now: Operands) -> Operands:
            def at_lane(b: Body, k: SSAValue, now: Operands) -> Operands:
                at = Places(b)
                others = [where] if where is not None else []
                if tensor_type(self.x).get_num_dims() > 1:
                    row = at.add(lane, k)
                    others.append(row if within else at.min(row, self.last))
                place = [*others[: self.axis], i, *others[self.axis :]]
                return body(b, place, i, k, now)

            beside = self.axis + 1 < tensor_type(self.x).get_num_dims()
            mark = INDEPENDENT if beside else UNROLL
            return loop(b, (0, self.network.lanes), now, at_lane, mark=mark)

        return loop(b, (0, self.network.n), carried, at_place)

    def _words(self, b: Body, words: Operands, i: SSAValue) -> list[SSAValue]:
        """Return the words of an element, from its bits."""
        network, keys = self.network, self.network.sort.keys
        raw = _as(b, words[0], signless_element(keys.dtype))
        key, b = keys.of_bits(b, raw), b.of(network.word)
        if network.sort.places is None:
            return [key]
        place = b.emit(arith.IndexCastOp(i, i64 if network.apart else b.type))
        if network.apart:
            return [key, place]
        key = b.emit(arith.ShLIOp(b.emit(arith.ExtUIOp(key, b.type)), b.number(self._half)))
        return [b.either(key, place)]

    @property
    def _half(self) -> int:
        return 4 * self.network.word.bytes

    def _bits_of_word(self, b: Body, words: Operands, i: SSAValue) -> list[SSAValue]:
        """Return the bits of the element, or its index, from a word."""
        network = self.network
        if network.sort.places is None:
            return [network.sort.keys.back_to_bits(b, words[0])]
        if network.apart:
            return list(words)
        return [b.both(words[0], b.of(network.word).number((1 << self._half) - 1))]

    def _stored_part(self, b: Body, word: SSAValue) -> SSAValue:
        """Return the part of a word that is stored."""
        if (places := self.network.sort.places) is not None:
            return _as(b, word, places)
        return self.network.sort.keys.element(b, word)

    def _exchanged(self, b: Body, task: SSAValue, scratch: Operands) -> Operands:
        """Sort the words of each lane: merge runs of 1, then of 2, 4, ..."""
        n = self.network.n
        levels = max(n - 1, 0).bit_length()

        def level(b: Body, number: SSAValue, now: Operands) -> Operands:
            run = b.emit(arith.ShLIOp(b.constant(1, INDEX), number))
            twice = Places(b).sub(0, Places(b).add(run, run))  # the mask of two runs

            def step(b: Body, k: SSAValue, now: Operands) -> Operands:
                at = Places(b)
                apart = b.emit(arith.ShRUIOp(run, k))
                inner = b.emit(arith.CmpiOp(apart, run, "ne"))
                first = b.select(inner, apart, b.constant(0, INDEX))

                def pairs(b: Body, j: SSAValue, now: Operands) -> Operands:
                    at = Places(b)
                    other = at.add(j, apart)
                    differ = b.both(b.differ(j, other), twice)
                    alike = b.emit(arith.CmpiOp(differ, b.constant(0, INDEX), "eq"))
                    width = at.min(apart, at.sub(n, other))
                    end = at.add(j, b.select(alike, width, b.constant(0, INDEX)))

                    def one(b: Body, i: SSAValue, now: Operands) -> Operands:
                        return self._exchange(b, task, i, Places(b).add(i, apart), now)

                    return loop(b, (j, end), now, one)

                return loop(b, (first, at.sub(n, apart)), now, pairs, step=at.add(apart, apart))

            return loop(b, (0, Places(b).add(number, 1)), now, step)

        return loop(b, (0, levels), scratch, level)

    def _exchange(
        self, b: Body, task: SSAValue, i: SSAValue, j: SSAValue, now: Operands
    ) -> Operands:
        """Exchange two words of each lane so that the lesser is first."""

        def lane(b: Body, k: SSAValue, now: Operands) -> Operands:
            b = b.of(self.network.word)
            here, there = [task, i, k], [task, j, k]
            low, high = ([read(b, held, at) for held in now] for at in (here, there))
            if self.network.apart:
                alike = b.compare("eq", high[0], low[0])
                ends = [b.select(alike, place, key) for key, place in (high, low)]
                goes = b.compare("lt", *ends)  # a single comparison gives a vector mask
                first = [b.select(goes, y, x) for x, y in zip(low, high, strict=True)]
                last = [b.select(goes, x, y) for x, y in zip(low, high, strict=True)]
            else:
                first, last = [b.min(low[0], high[0])], [b.max(low[0], high[0])]
            now = [written(b, v, held, here) for v, held in zip(first, now, strict=True)]
            return [written(b, v, held, there) for v, held in zip(last, now, strict=True)]

        return loop(b, (0, self.network.lanes), now, lane, mark=INDEPENDENT)


def _as(b: Body, place: SSAValue, type: Attribute) -> SSAValue:
    """Return an unsigned integer, which fits, converted to another type."""
    assert isinstance(place.type, IntegerType) and isinstance(type, IntegerType)
    have, want = place.type.width.data, type.width.data
    if have == want:
        return place
    return b.emit((arith.TruncIOp if have > want else arith.ExtUIOp)(place, type))
