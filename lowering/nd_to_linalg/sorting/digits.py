"""Long axes: a radix sort by the digits of the keys, from the lowest to the highest.

A histogram of each digit gives the offsets at which the elements with it begin; they are written
there in their current order, so that the sort is stable. Rows are tasks that threads share, each
with its own keys, counts and indices; two adjacent digits that are equal in all keys are skipped. A
very long axis is cut into parts that are counted and moved in parallel, their number depending
on the length alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from stepwell.core.dtypes import DTYPES, DType
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.lowering.nd_to_linalg.body import INDEX, Body, signless_element
from stepwell.lowering.nd_to_linalg.indexing import clamped_index
from stepwell.lowering.nd_to_linalg.nests import Operands, Places, loop, read, tasks, written
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.sorting.keys import Sort

DIGIT_BITS, DIGITS = 8, 256
"""The digit size in bits, and the entries of a histogram, which fits in the first-level cache."""
TASKS = 64
"""The number of tasks, enough for threads to share; the rows of one use the same scratch."""
PART = 1 << 16
"""The number of elements in a part of a very long axis that is worth a histogram of its own."""
PARTS = 64

_Ends: TypeAlias = tuple[SSAValue, SSAValue]
_AtPart: TypeAlias = Callable[[Body, SSAValue, SSAValue, _Ends, Operands], Operands]
"""``(body, task, row, first and last element, carried) -> carried``."""


def parts(n: Size, rows: Size) -> int:
    """Return the number of parts of an axis: one if there are enough rows to share."""
    if not isinstance(n, int) or not isinstance(rows, int) or rows >= PARTS // 4:
        return 1
    return max(min(n // PART, PARTS), 1)


@dataclass
class Radix:
    """The base class of sorts by rows and by parts."""

    sort: Sort

    @property
    def sizes(self) -> Sizes:
        """Arithmetic on sizes."""
        return Sizes(self.sort.lowering)

    @cached_property
    def rows(self) -> Size:
        """The number of sorts."""
        return self.sort.rows()

    @property
    def key(self) -> DType:
        """The dtype of keys."""
        return self.sort.keys.dtype

    @property
    def counts(self) -> DType:
        """The dtype of counts."""
        n = self.sort.n
        return DTYPES["i32" if isinstance(n, int) and n < 1 << 31 else "i64"]

    def at(self, b: Body, row: SSAValue, i: SSAValue) -> list[SSAValue]:
        """Return the indices in x of element ``i`` of a row."""
        rest, found = row, list[SSAValue]()
        for n in reversed(self.sort.others[1:]):
            rest, left = Places(b).div(rest, n)
            found.insert(0, left)
        if self.sort.others:
            found.insert(0, rest)
        return [*found[: self.sort.axis], i, *found[self.sort.axis :]]

    def digit(self, b: Body, key: SSAValue, digit: int) -> SSAValue:
        """Return a digit of a key as an index."""
        b = b.of(self.key)
        if digit:
            key = b.emit(arith.ShRUIOp(key, b.number(DIGIT_BITS * digit)))
        if self.key.bytes < 4:
            key, b = b.emit(arith.ExtUIOp(key, i32)), b.of(DTYPES["ui32"])
        return b.emit(arith.IndexCastOp(b.both(key, b.number(DIGITS - 1)), INDEX))

    def more(self, b: Body, table: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
        """Return a histogram with one entry incremented."""
        b = b.of(self.counts)
        return written(b, b.add(read(b, table, at), b.number(1)), table, at)

    def cleared(
        self, b: Body, table: SSAValue, at: Sequence[SSAValue], digits: int = DIGITS
    ) -> SSAValue:
        """Return a histogram with all counts 0."""

        def clear(b: Body, v: SSAValue, now: Operands) -> Operands:
            return (written(b, b.of(self.counts).number(0), now[0], [*at, v]),)

        return loop(b, (0, digits), [table], clear, mark=INDEPENDENT)[0]

    def place_type(self) -> Attribute | None:
        """Return the type of the indices that are moved with the keys."""
        return self.sort.places and signless_element(self.counts)


@dataclass
class Rows(Radix):
    """Each row is sorted by one thread."""

    def write(self) -> SSAValue:
        """Return the sorted elements, or their indices."""
        sort, sizes, n = self.sort, self.sizes, self.sort.n
        count = min(TASKS, self.rows) if isinstance(self.rows, int) else TASKS
        each = sizes.div(sizes.add(self.rows, count - 1), count)
        ends = [sizes.value(size) for size in (each, self.rows, n)]
        keys = signless_element(self.key)
        table = sizes.empty([count, self.key.bytes, DIGITS], signless_element(self.counts))
        both = [sizes.empty([count, n], keys) for _ in range(2)]
        if (type := self.place_type()) is not None:
            both += [sizes.empty([count, n], type) for _ in range(2)]

        def at_each(b: Body, loops: Operands, carried: Operands) -> Operands:
            (task,) = loops
            first = Places(b).mul(task, ends[0])
            last = Places(b).min(Places(b).add(first, ends[0]), ends[1])

            def run(b: Body, row: SSAValue, now: Operands) -> Operands:
                y, table, *both = now
                table, both = self._histograms(b, task, row, ends[2], table, both)
                table = self._offsets(b, task, table)
                table, both = self._passes(b, task, ends[2], table, both)
                return [self._stored(b, task, row, ends[2], y, both), table, *both]

            return loop(b, (first, last), carried, run)

        into = [sizes.empty(sort.extents, sort.result), table, *both]
        return tasks(sort.lowering, count, into, at_each, self.key)[0]

    def _histograms(
        self, b: Body, task: SSAValue, row: SSAValue, n: SSAValue, table: SSAValue, both: Operands
    ) -> tuple[SSAValue, list[SSAValue]]:
        """Return the histograms of all digits, and the keys of a row with their indices."""
        for digit in range(self.key.bytes):
            table = self.cleared(b, table, [task, Places(b).value(digit)])

        def begin(b: Body, i: SSAValue, now: Operands) -> Operands:
            table, keys, *places = now
            key = self.sort.keys.of(b, read(b, self.sort.x, self.at(b, row, i)))
            keys = written(b, key, keys, [task, i])
            for digit in range(self.key.bytes):
                at = [task, Places(b).value(digit), self.digit(b, key, digit)]
                table = self.more(b, table, at)
            if (type := self.place_type()) is not None:
                place = b.emit(arith.IndexCastOp(i, type))
                places = [written(b, place, places[0], [task, i])]
            return [table, keys, *places]

        table, *begun = loop(b, (0, n), [table, *both[::2]], begin)
        return table, [value for pair in zip(begun, both[1::2], strict=True) for value in pair]

    def _offsets(self, b: Body, task: SSAValue, table: SSAValue) -> SSAValue:
        """Return the offsets at which the elements with each digit begin."""

        def of_digit(b: Body, digit: SSAValue, now: Operands) -> Operands:
            def add(b: Body, v: SSAValue, now: Operands) -> Operands:
                table, before = now
                b = b.of(self.counts)
                count = read(b, table, [task, digit, v])
                return written(b, before, table, [task, digit, v]), b.add(before, count)

            return loop(b, (0, DIGITS), [*now, b.of(self.counts).number(0)], add)[:1]

        return loop(b, (0, self.key.bytes), [table], of_digit)[0]

    def _passes(
        self, b: Body, task: SSAValue, n: SSAValue, table: SSAValue, both: Operands
    ) -> tuple[SSAValue, list[SSAValue]]:
        """Move keys, and indices with them, back and forth for each two digits."""
        now: list[SSAValue] = [table, *both]
        if self.key.bytes == 1:
            moved = self._moved(b, task, n, table, both, 0)
            return moved[0], moved[1:]
        for digit in range(0, self.key.bytes, 2):
            there = Body(Block(), b.dtype)
            moved = self._moved(there, task, n, now[0], now[1:], digit)
            moved = self._moved(there, task, n, moved[0], _swapped_pairs(moved[1:]), digit + 1)
            there.block.add_op(scf.YieldOp(moved[0], *_swapped_pairs(moved[1:])))
            differ = self._differ(b, task, n, now[0], now[1], digit)
            here = Block([scf.YieldOp(*now)])
            op = scf.IfOp(differ, [v.type for v in now], [there.block], [here])
            b.block.add_op(op)
            now = list(op.results)
        return now[0], now[1:]

    def _differ(
        self, b: Body, task: SSAValue, n: SSAValue, table: SSAValue, keys: SSAValue, digit: int
    ) -> SSAValue:
        """Return whether the keys of a row differ in one of two digits.

        They do not if the first key's digit begins at offset 0 and the next digit at the end.
        """
        zero = b.constant(0, INDEX)
        some = b.emit(arith.CmpiOp(n, zero, "sgt"))
        inside = Body(Block(), b.dtype)
        key = read(inside, keys, [task, zero])
        found: SSAValue | None = None
        for each in (digit, digit + 1):
            value = self.digit(inside, key, each)
            where = [task, Places(inside).value(each), value]
            first = inside.emit(arith.IndexCastOp(read(inside, table, where), INDEX))
            top = inside.constant(DIGITS - 1, INDEX)
            next = inside.emit(arith.MinSIOp(Places(inside).add(value, 1), top))
            behind = read(inside, table, [*where[:2], next])
            behind = inside.emit(arith.IndexCastOp(behind, INDEX))
            greatest = inside.emit(arith.CmpiOp(value, top, "eq"))
            behind = inside.select(greatest, n, behind)
            other = inside.emit(arith.CmpiOp(Places(inside).sub(behind, first), n, "ne"))
            found = other if found is None else inside.either(found, other)
        assert found is not None
        inside.block.add_op(scf.YieldOp(found))
        none = Body(Block(), b.dtype)
        none.block.add_op(scf.YieldOp(none.constant(0, found.type)))
        return b.emit(scf.IfOp(some, [found.type], [inside.block], [none.block]))

    def _moved(
        self,
        b: Body,
        task: SSAValue,
        n: SSAValue,
        table: SSAValue,
        both: Operands,
        digit: int,
    ) -> list[SSAValue]:
        """Return keys and indices in the order of a digit; every second of ``both`` is a target."""
        source, target = both[::2], both[1::2]

        def move(b: Body, i: SSAValue, now: Operands) -> Operands:
            table, *into = now
            what = [read(b, x, [task, i]) for x in source]
            at = [task, Places(b).value(digit), self.digit(b, what[0], digit)]
            place = read(b, table, at)
            kind = b.of(self.counts)
            table = written(b, kind.add(place, kind.number(1)), table, at)
            to = [task, b.emit(arith.IndexCastOp(place, INDEX))]
            return [table, *(written(b, v, y, to) for v, y in zip(what, into, strict=True))]

        table, *moved = loop(b, (0, n), [table, *target], move)
        return [table, *(v for pair in zip(source, moved, strict=True) for v in pair)]

    def _stored(
        self, b: Body, task: SSAValue, row: SSAValue, n: SSAValue, y: SSAValue, both: Operands
    ) -> SSAValue:
        held = both[int(self.key.bytes == 1) :: 2][-1]

        def store(b: Body, i: SSAValue, now: Operands) -> Operands:
            value = read(b, held, [task, i])
            found = self.found(b, value)
            return (written(b, found, now[0], self.at(b, row, i)),)

        return loop(b, (0, n), [y], store, mark=INDEPENDENT)[0]

    def found(self, b: Body, value: SSAValue) -> SSAValue:
        """Return the element of a key, or an index in the result's type."""
        if self.sort.places is None:
            return self.sort.keys.back(b, value)
        return as_place(b, value, self.sort.places)


def _swapped_pairs(both: Operands) -> list[SSAValue]:
    """Return each pair with its members swapped."""
    pairs = zip(both[::2], both[1::2], strict=True)
    return [value for there, back in pairs for value in (back, there)]


def as_place(b: Body, place: SSAValue, type: IntegerType) -> SSAValue:
    """Return an index, which fits, converted to another integer."""
    if place.type == type:
        return place
    return b.emit((arith.ExtSIOp if type == i64 else arith.TruncIOp)(place, type))


@dataclass
class Parts(Radix):
    """Parts of rows are counted and moved by threads."""

    n: int = field(init=False)
    count: int = field(init=False)
    """The number of parts of a row."""
    each: int = field(init=False)
    """The number of elements of a part."""
    differ: SSAValue = field(init=False)
    """For each row, the bits in which keys differ: a digit equal in all keys is skipped."""

    def write(self) -> SSAValue:
        """Return the sorted elements, or their indices."""
        sort, sizes, n = self.sort, self.sizes, self.sort.n
        assert isinstance(n, int) and isinstance(self.rows, int)
        self.count = parts(n, self.rows)
        self.each = -(-n // self.count)
        self.n = n
        keys, type = signless_element(self.key), self.place_type()
        shape: list[Size] = [self.rows, n]
        now: list[SSAValue] = []
        last = self.key.bytes - 1
        self.differ = self._differences()
        for digit in range(self.key.bytes):
            offsets = self._offsets(now, digit)
            into: list[SSAValue] = []
            if digit < last:
                into = [sizes.empty(shape, t) for t in (keys, type) if t is not None]
            else:
                into = [sizes.empty(sort.extents, sort.result)]
            now = self._moved(now, into, offsets, digit)
        return now[0]

    def _tasks(self, carried: Operands, body: _AtPart) -> Operands:
        rows = self.rows
        assert isinstance(rows, int)

        def at_each(b: Body, loops: Operands, now: Operands) -> Operands:
            (task,) = loops
            at = Places(b)
            row, part = at.div(task, self.count)
            first = at.mul(part, self.each)
            last = at.min(at.add(first, self.each), self.n)
            return body(b, task, row, (first, last), now)

        return tasks(self.sort.lowering, rows * self.count, carried, at_each, self.key)

    def _key(self, b: Body, now: Operands, row: SSAValue, i: SSAValue) -> SSAValue:
        if now:
            return read(b, now[0], [row, i])
        return self.sort.keys.of(b, read(b, self.sort.x, self.at(b, row, i)))

    def _differences(self) -> SSAValue:
        """Return the bits in which the keys of a row differ."""
        rows = self.rows
        assert isinstance(rows, int)
        keys = signless_element(self.key)
        found = self.sizes.empty([rows * self.count], keys)

        def of_part(b: Body, task: SSAValue, row: SSAValue, ends: _Ends, was: Operands) -> Operands:
            first = self._key(b, (), row, b.constant(0, INDEX))

            def one(b: Body, i: SSAValue, was: Operands) -> Operands:
                return (b.either(was[0], b.differ(self._key(b, (), row, i), first)),)

            (bits,) = loop(b, ends, [b.of(self.key).number(0)], one)
            return (written(b, bits, was[0], [task]),)

        (found,) = self._tasks([found], of_part)

        def of_row(b: Body, loops: Operands, was: Operands) -> Operands:
            def one(b: Body, part: SSAValue, was: Operands) -> Operands:
                at = Places(b).add(Places(b).mul(loops[0], self.count), part)
                return (b.either(was[0], read(b, found, [at])),)

            (bits,) = loop(b, (0, self.count), [b.of(self.key).number(0)], one)
            return (written(b, bits, was[0], [loops[0]]),)

        into = self.sizes.empty([rows], keys)
        return tasks(self.sort.lowering, rows, [into], of_row, self.key)[0]

    def _moving(self, b: Body, row: SSAValue, ends: _Ends, digit: int) -> SSAValue:
        """Return the end of the elements of a part to move by a digit: none if it is skipped."""
        bits = self.digit(b, read(b, self.differ, [row]), digit)
        some = b.emit(arith.CmpiOp(bits, b.constant(0, INDEX), "ne"))
        return b.select(some, ends[1], ends[0])

    def _offsets(self, now: Operands, digit: int) -> SSAValue:
        """Return the offsets at which the elements of each part with each digit begin."""
        rows = self.rows
        assert isinstance(rows, int)
        table = self.sizes.empty([rows * self.count, DIGITS], signless_element(self.counts))

        def count(b: Body, task: SSAValue, row: SSAValue, ends: _Ends, was: Operands) -> Operands:
            table = self.cleared(b, was[0], [task])

            def one(b: Body, i: SSAValue, was: Operands) -> Operands:
                value = self.digit(b, self._key(b, now, row, i), digit)
                return (self.more(b, was[0], [task, value]),)

            return loop(b, (ends[0], self._moving(b, row, ends, digit)), [table], one)

        (table,) = self._tasks([table], count)

        def at_row(b: Body, loops: Operands, was: Operands) -> Operands:
            def at_digit(b: Body, v: SSAValue, was: Operands) -> Operands:
                def at_part(b: Body, part: SSAValue, was: Operands) -> Operands:
                    table, before = was
                    b = b.of(self.counts)
                    at = [Places(b).add(Places(b).mul(loops[0], self.count), part), v]
                    many = read(b, table, at)
                    return written(b, before, table, at), b.add(before, many)

                return loop(b, (0, self.count), was, at_part)

            return loop(b, (0, DIGITS), [*was, b.of(self.counts).number(0)], at_digit)[:1]

        return tasks(self.sort.lowering, rows, [table], at_row, self.key)[0]

    def _moved(
        self, now: Operands, into: Operands, offsets: SSAValue, digit: int
    ) -> list[SSAValue]:
        """Return keys and indices, or finally the result, in the order of a digit."""
        last = digit == self.key.bytes - 1

        def move(b: Body, task: SSAValue, row: SSAValue, ends: _Ends, was: Operands) -> Operands:
            def one(b: Body, i: SSAValue, was: Operands) -> Operands:
                offsets, *into = was
                key = self._key(b, now, row, i)
                at = [task, self.digit(b, key, digit)]
                kind = b.of(self.counts)
                place = read(b, offsets, at)
                offsets = written(b, kind.add(place, kind.number(1)), offsets, at)
                to = clamped_index(kind, place, self.n - 1)
                what = self._values_to_move(b, now, key, row, i, last)
                where = self.at(b, row, to) if last else [row, to]
                pairs = zip(what, into, strict=True)
                return [offsets, *(written(b, v, y, where) for v, y in pairs)]

            def stays(b: Body, i: SSAValue, was: Operands) -> Operands:
                what = self._values_to_move(b, now, self._key(b, now, row, i), row, i, last)
                where = self.at(b, row, i) if last else [row, i]
                return [written(b, v, y, where) for v, y in zip(what, was, strict=True)]

            middle = self._moving(b, row, ends, digit)
            offsets, *into = loop(b, (ends[0], middle), was, one)
            return [offsets, *loop(b, (middle, ends[1]), into, stays, mark=INDEPENDENT)]

        return list(self._tasks([offsets, *into], move)[1:])

    def _values_to_move(
        self, b: Body, now: Operands, key: SSAValue, row: SSAValue, i: SSAValue, last: bool
    ) -> list[SSAValue]:
        """Return the values to move: the key and its index, or finally the result's elements."""
        place: list[SSAValue] = []
        if (type := self.place_type()) is not None:
            place = [read(b, now[1], [row, i]) if now else b.emit(arith.IndexCastOp(i, type))]
        if not last:
            return [key, *place]
        if self.sort.places is None:
            return [self.sort.keys.back(b, key)]
        return [as_place(b, place[0], self.sort.places)]
