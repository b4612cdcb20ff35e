"""Select elements of given ranks without a full sort: by the digits of keys, from the highest.

A histogram of the highest digit tells the digit of the element with a rank. The elements with that
digit are gathered, and the next digit is searched among them alone. If only few are left, all
pairs of them are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Block, SSAValue

from stepwell.core.dtypes import DTYPES, DType
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body, signless_element
from stepwell.lowering.nd_to_linalg.generic import mapped
from stepwell.lowering.nd_to_linalg.indexing import clamped_index
from stepwell.lowering.nd_to_linalg.nests import Operands, Places, loop, read, tasks, written
from stepwell.lowering.nd_to_linalg.sizes import Sizes
from stepwell.lowering.nd_to_linalg.sorting.digits import TASKS, Radix
from stepwell.lowering.nd_to_linalg.table import Lowering

MAX_COMPARED = 48
"""The most elements of a row from which one is selected by comparing all pairs."""
MIN_WIDE_COUNTS = 1 << 13
"""The number of elements of a row from which histograms have 2048 entries instead of 256."""

_KeyAt: TypeAlias = Callable[[Body, SSAValue, SSAValue], SSAValue]
"""``(body, number, keys gathered so far) -> key``."""


def chosen(lowering: Lowering, x: SSAValue, ranks: SSAValue, axis: int) -> SSAValue:
    """Return the elements of the sorted ``x`` at ranks along an axis."""
    sizes = Sizes(lowering)
    n = sizes.of(x, axis)
    last = sizes.sub(n, 1)
    if not isinstance(last, int):
        last = lowering.insert(arith.IndexCastOp(last, i64)).result

    def body(b: Body, rank: SSAValue, _: SSAValue) -> SSAValue:
        at = [b.index(d) for d in range(tensor_type(x).get_num_dims())]
        at[axis] = clamped_index(b, rank, last)
        return read(b, x, at)

    of = tensor_type(x).element_type
    return mapped(lowering, [ranks], of, body, DTYPES["i64"])[0]


@dataclass
class Selection(Radix):
    """The elements of some ranks of each row."""

    ranks: SSAValue

    @property
    def digit_bits(self) -> int:
        """The number of bits of a digit."""
        n = self.sort.n
        return min(8 if isinstance(n, int) and n < MIN_WIDE_COUNTS else 11, self.sort.keys.bits)

    @property
    def levels(self) -> int:
        """The number of digits of a key."""
        return -(-self.sort.keys.bits // self.digit_bits)

    def write(self) -> SSAValue:
        """Return the elements."""
        sort, sizes = self.sort, self.sizes
        count = min(TASKS, self.rows) if isinstance(self.rows, int) else TASKS
        each = sizes.div(sizes.add(self.rows, count - 1), count)
        many = sizes.of(self.ranks, sort.axis)
        ends = [sizes.value(size) for size in (each, self.rows, sort.n, many)]
        table = sizes.empty([count, 1 << self.digit_bits], signless_element(self.counts))
        held = sizes.empty([count, sort.n], signless_element(self.key))
        into = sizes.empty(sizes.all_of(self.ranks), sort.result)

        def at_each(b: Body, loops: Operands, carried: Operands) -> Operands:
            (task,) = loops
            first = Places(b).mul(task, ends[0])
            last = Places(b).min(Places(b).add(first, ends[0]), ends[1])

            def run(b: Body, row: SSAValue, now: Operands) -> Operands:
                def one(b: Body, j: SSAValue, now: Operands) -> Operands:
                    return self._found(b, task, row, j, ends[2], now)

                return loop(b, (0, ends[3]), now, one)

            return loop(b, (first, last), carried, run)

        return tasks(sort.lowering, count, [into, table, held], at_each, self.key)[0]

    def _found(
        self, b: Body, task: SSAValue, row: SSAValue, j: SSAValue, n: SSAValue, now: Operands
    ) -> Operands:
        """Return result, histogram and scratch after one element is found."""
        y, table, held = now
        at = Places(b)
        place = self.at(b, row, j)
        rank = b.emit(arith.IndexCastOp(read(b, self.ranks, place), INDEX))
        rank = b.emit(arith.MaxSIOp(rank, b.constant(0, INDEX)))
        rank = at.min(rank, at.sub(n, 1))

        def key_at(b: Body, i: SSAValue, _: SSAValue) -> SSAValue:
            return self.sort.keys.of(b, read(b, self.sort.x, self.at(b, row, i)))

        shift = b.constant(self.sort.keys.bits - self.digit_bits, INDEX)
        table, held, rank, left = self._narrowed(b, task, table, held, (rank, n, shift), key_at)

        def level(b: Body, number: SSAValue, now: Operands) -> Operands:
            table, held, rank, left = now
            at, bits = Places(b), self.digit_bits
            below = at.mul(at.add(number, 1), bits)
            shift = at.sub(self.sort.keys.bits, at.min(below, self.sort.keys.bits))

            def again(b: Body, i: SSAValue, held: SSAValue) -> SSAValue:
                return read(b, held, [task, i])

            inner = Body(Block(), b.dtype)
            after = self._narrowed(inner, task, table, held, (rank, left, shift), again)
            inner.block.add_op(scf.YieldOp(*after))
            many = b.emit(arith.CmpiOp(left, b.constant(MAX_COMPARED, INDEX), "sgt"))
            types = [v.type for v in now]
            op = scf.IfOp(many, types, [inner.block], [Block([scf.YieldOp(*now)])])
            b.block.add_op(op)
            return op.results

        start = [table, held, rank, left]
        table, held, rank, left = loop(b, (1, self.levels), start, level)
        key = self._among_few(b, task, held, rank, left)
        y = written(b, self.sort.keys.back(b, key), y, place)
        return [y, table, held]

    def _narrowed(
        self,
        b: Body,
        task: SSAValue,
        table: SSAValue,
        held: SSAValue,
        what: tuple[SSAValue, SSAValue, SSAValue],
        key_at: _KeyAt,
    ) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
        """Gather the keys with the same digit as the element of a rank; the digit begins at a bit.

        what : the rank, the number of keys, and the bit
        returns : histogram, keys, the rank among them, their number
        """
        rank, n, shift = what
        table = self.cleared(b, table, [task], 1 << self.digit_bits)

        def count(b: Body, i: SSAValue, now: Operands) -> Operands:
            digit = self._digit_at(b, key_at(b, i, held), shift)
            return (self.more(b, now[0], [task, digit]),)

        (table,) = loop(b, (0, n), [table], count)
        zero = b.constant(0, INDEX)

        def find(b: Body, v: SSAValue, now: Operands) -> Operands:
            before, digit, below = now
            end = Places(b).add(before, b.emit(arith.IndexCastOp(read(b, table, [task, v]), INDEX)))
            here = b.both(
                b.emit(arith.CmpiOp(before, rank, "sle")), b.emit(arith.CmpiOp(rank, end, "slt"))
            )
            return end, b.select(here, v, digit), b.select(here, before, below)

        _, digit, below = loop(b, (0, 1 << self.digit_bits), [zero, zero, zero], find)

        def gather(b: Body, i: SSAValue, now: Operands) -> Operands:
            held, place = now
            key = key_at(b, i, held)
            mine = b.emit(arith.CmpiOp(self._digit_at(b, key, shift), digit, "eq"))
            held = written(b, key, held, [task, place])  # a key with another digit is overwritten
            return held, b.select(mine, Places(b).add(place, 1), place)

        held, left = loop(b, (0, n), [held, zero], gather)
        return table, held, Places(b).sub(rank, below), left

    def _digit_at(self, b: Body, key: SSAValue, shift: SSAValue) -> SSAValue:
        """Return the digit of a key that begins at a bit, as an index."""
        b = b.of(self.key)
        by = b.emit(arith.IndexCastOp(shift, b.type))
        key = b.emit(arith.ShRUIOp(key, by))
        if self.key.bytes < 4:
            key, b = b.emit(arith.ExtUIOp(key, i32)), b.of(DTYPES["ui32"])
        return b.emit(arith.IndexCastOp(b.both(key, b.number((1 << self.digit_bits) - 1)), INDEX))

    def _among_few(
        self, b: Body, task: SSAValue, held: SSAValue, rank: SSAValue, left: SSAValue
    ) -> SSAValue:
        """Return the key of a rank among few, or among more that are all equal."""
        few, zero = Places(b).min(left, MAX_COMPARED), b.constant(0, INDEX)
        first = read(b, held, [task, zero])
        kind: DType = self.key

        def at_key(b: Body, i: SSAValue, now: Operands) -> Operands:
            mine = read(b, held, [task, i])

            def compare(b: Body, k: SSAValue, now: Operands) -> Operands:
                less, most = now
                b, one = b.of(kind), b.constant(1, INDEX)
                its, none = read(b, held, [task, k]), b.constant(0, INDEX)
                less = Places(b).add(less, b.select(b.compare("lt", its, mine), one, none))
                return less, Places(b).add(most, b.select(b.compare("le", its, mine), one, none))

            less, most = loop(b, (0, few), [zero, zero], compare)
            here = b.both(
                b.emit(arith.CmpiOp(less, rank, "sle")), b.emit(arith.CmpiOp(rank, most, "slt"))
            )
            return (b.select(here, mine, now[0]),)

        return loop(b, (0, few), [first], at_key)[0]
