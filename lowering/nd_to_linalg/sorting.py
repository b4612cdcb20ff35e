"""Sorts by integer keys that are in the order wanted: short axes by counting, long ones by digits.

Along a short axis an element's place is how many go before it, and where an element comes from is
found by asking each: generics that run in vectors and threads. A long axis is sorted by one digit
of the key after the other, from the lowest (a radix sort): how often each digit occurs tells where
the elements that have it begin, and elements are written there in the order in which they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from stepwell.core.dtypes import DTYPES, DType
from stepwell.dialects.nd.sorting import ArgsortOp, OrderOp, SortOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body, signless_element
from stepwell.lowering.nd_to_linalg.generic import constant, filled, generic, mapped
from stepwell.lowering.nd_to_linalg.indexing import clamped_index
from stepwell.lowering.nd_to_linalg.nests import Operands, nest, read, written
from stepwell.lowering.nd_to_linalg.shape import iterators
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

COUNTED = 16
"""Elements of an axis, for each byte of one, that are sorted by counting at most.

On an AMD EPYC with AVX-512 counting takes 0.2 ns for a pair of elements, sorting by digits 3 to
5 ns for a byte of an element, tables of counts left aside.
"""

DIGIT_BITS, DIGITS = 8, 256
"""A table of a count for each digit stays in the first-level cache."""

_NAN_BITS = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}
"""The bits of infinity; those of any NaN, without the sign, are more."""


@lower(SortOp, ArgsortOp)
def _order(lowering: Lowering, op: OrderOp, operands: Operands) -> Operands:
    (x,) = operands
    n = shape_of(op.x)[op.axis.value.data]
    sort = _Sort(lowering, op, x)
    short = 0 <= n <= COUNTED * sort.key.bytes
    return (sort.by_counting() if short else sort.by_digits(),)


@dataclass
class _Sort:
    """One sort, and what all its loops need."""

    lowering: Lowering
    op: OrderOp
    x: SSAValue
    axis: int = field(init=False)
    rank: int = field(init=False)
    kind: DType = field(init=False)
    """Of the elements of x."""
    key: DType = field(init=False)
    """Of the keys: unsigned, as wide as the elements."""
    extents: list[Size] = field(init=False)
    """Of x."""

    def __post_init__(self) -> None:
        self.axis, self.rank = self.op.axis.value.data, len(shape_of(self.op.x))
        self.kind = dtype(element(self.op.x))
        self.key = DTYPES[f"ui{8 * self.kind.bytes}"]
        self.extents = Sizes(self.lowering).all_of(self.x)

    @property
    def places(self) -> Attribute | None:
        """The type of the places that are asked for; None where the elements are."""
        return element(self.op.y) if isinstance(self.op, ArgsortOp) else None

    def key_of(self, b: Body, x: SSAValue) -> SSAValue:
        """Return an unsigned integer that is less exactly where an element goes before."""
        b, bits = b.of(self.key), 8 * self.key.bytes
        sign = 1 << bits - 1
        match self.kind.kind:
            case "bool":
                key = b.emit(arith.ExtUIOp(x, IntegerType(8)))
            case "signed":
                key = b.differ(x, b.number(sign))
            case "float":
                raw = b.emit(arith.BitcastOp(x, IntegerType(bits)))
                size = b.both(raw, b.number(sign - 1))
                negative = b.compare("ge", raw, b.number(sign))
                order = b.differ(raw, b.select(negative, b.number(-1), b.number(sign)))
                zero = b.compare("eq", size, b.number(0))
                nan = b.compare("gt", size, b.number(_NAN_BITS[self.kind.name]))
                key = b.select(zero, b.number(sign), b.select(nan, b.number(-1), order))
            case _:
                key = x
        return b.differ(key, b.number(-1)) if self.op.descending else key

    # ---- short axes ----

    def by_counting(self) -> SSAValue:
        """Compare each element with each, then ask each place whose it is."""
        lowering, loops = self.lowering, self.rank + 1
        here = AffineMap(loops, 0, tuple(AffineExpr.dimension(d) for d in range(self.rank)))
        along = [loops - 1 if d == self.axis else d for d in range(self.rank)]
        other = AffineMap(loops, 0, tuple(AffineExpr.dimension(d) for d in along))
        each = iterators(loops, [loops - 1])
        counted = DTYPES["i32"]
        zero = constant(lowering, 0, counted)
        type = signless_element(self.key)
        (keys,) = mapped(lowering, [self.x], type, lambda b, x, _: self.key_of(b, x), self.key)

        def before(b: Body, mine: SSAValue, its: SSAValue, count: SSAValue) -> SSAValue:
            earlier = b.emit(arith.CmpiOp(b.index(loops - 1), b.index(self.axis), "slt"))
            goes = b.either(b.compare("lt", its, mine), b.both(b.compare("eq", its, mine), earlier))
            return b.of(counted).add(count, b.emit(arith.ExtUIOp(goes, i32)))

        start = filled(lowering, zero, Sizes(lowering).empty(self.extents, i32))
        maps = [here, other, here]
        (ranks,) = generic(lowering, [keys, keys], [start], maps, each, before, self.key)

        def comes_from(b: Body, rank: SSAValue, place: SSAValue) -> SSAValue:
            at = b.emit(arith.IndexCastOp(b.index(self.axis), i32))
            its = b.emit(arith.IndexCastOp(b.index(loops - 1), i32))
            return b.add(place, b.select(b.compare("eq", rank, at), its, b.number(0)))

        start = filled(lowering, zero, Sizes(lowering).empty(self.extents, i32))
        (places,) = generic(lowering, [ranks], [start], [other, here], each, comes_from, counted)
        if self.places is None:
            return self._read_at(places)
        if self.places == i32:
            return places

        def wide(b: Body, at: SSAValue, _: SSAValue) -> SSAValue:
            return b.emit(arith.ExtSIOp(at, i64))

        return mapped(lowering, [places], i64, wide, counted)[0]

    def _read_at(self, places: SSAValue) -> SSAValue:
        """Return the elements of x at places along its axis."""
        n = self.extents[self.axis]
        assert isinstance(n, int)
        if n == 0:
            return self.x

        def body(b: Body, place: SSAValue, _: SSAValue) -> SSAValue:
            at = [b.index(d) for d in range(self.rank)]
            at[self.axis] = clamped_index(b, place, n - 1)
            return read(b, self.x, at)

        of = tensor_type(self.x).element_type
        return mapped(self.lowering, [places], of, body, DTYPES["i32"])[0]

    # ---- long axes ----

    def by_digits(self) -> SSAValue:
        """Move the elements, or their places beside them, once for each digit."""
        sizes = Sizes(self.lowering)
        now: list[SSAValue] = [self.x]
        count = range(self.key.bytes)
        for digit in count:
            offsets = self._offsets(now[0], digit)
            into = [] if self.places and digit == count[-1] else [tensor_type(self.x).element_type]
            into += [self.places] if self.places else []
            fresh = [sizes.empty(self.extents, type) for type in into]
            now = list(self._moved(now, fresh, offsets, digit))
        return now[-1]

    @property
    def _rows(self) -> list[Size]:
        return [n for axis, n in enumerate(self.extents) if axis != self.axis]

    @property
    def _counts(self) -> DType:
        n = self.extents[self.axis]
        return DTYPES["i32" if isinstance(n, int) and n < 1 << 31 else "i64"]

    def _at(self, loops: Operands, place: SSAValue) -> list[SSAValue]:
        """Return the indices of x for loops over the other axes and a place along its own."""
        rows = list(loops[: self.rank - 1])
        return [*rows[: self.axis], place, *rows[self.axis :]]

    def _digit(self, b: Body, x: SSAValue, digit: int) -> SSAValue:
        b = b.of(self.key)
        key = self.key_of(b, x)
        if digit:
            key = b.emit(arith.ShRUIOp(key, b.number(DIGIT_BITS * digit)))
        if self.key.bytes < 4:
            key, b = b.emit(arith.ExtUIOp(key, i32)), b.of(DTYPES["ui32"])
        return b.emit(arith.IndexCastOp(b.both(key, b.number(DIGITS - 1)), INDEX))

    def _offsets(self, x: SSAValue, digit: int) -> SSAValue:
        """Return where the elements that have a digit begin, for each row and digit."""
        lowering, sizes, kind = self.lowering, Sizes(self.lowering), self._counts
        table: list[Size] = [*self._rows, DIGITS]
        type = signless_element(kind)
        zero = constant(lowering, 0, kind)
        none = filled(lowering, zero, sizes.empty(table, type))

        def count(b: Body, loops: Operands, carried: Operands) -> Operands:
            (counts,) = carried
            at = [*loops[:-1], self._digit(b, read(b, x, self._at(loops, loops[-1])), digit)]
            more = b.add(read(b, counts, at), b.number(1))
            return (written(b, more, counts, at),)

        (counts,) = nest(lowering, [*self._rows, self.extents[self.axis]], [none], count, kind)

        def before(b: Body, n: SSAValue, _: SSAValue, sum: SSAValue) -> Sequence[SSAValue]:
            return sum, b.add(sum, n)

        rank = len(table)
        rows = AffineMap(rank, 0, tuple(AffineExpr.dimension(d) for d in range(rank - 1)))
        total = filled(lowering, zero, sizes.empty(self._rows, type))
        maps = [AffineMap.identity(rank), AffineMap.identity(rank), rows]
        into = [sizes.empty(table, type), total]
        return generic(lowering, [counts], into, maps, iterators(rank, [rank - 1]), before, kind)[0]

    def _moved(
        self, now: Sequence[SSAValue], fresh: Sequence[SSAValue], offsets: SSAValue, digit: int
    ) -> Operands:
        """Return elements, places or both, in the order of a digit."""
        kind, sizes = self._counts, Sizes(self.lowering)
        n = self.extents[self.axis]
        last = sizes.sub(n, 1)
        held = sizes.value(last) if not isinstance(last, int) else None

        def move(b: Body, loops: Operands, carried: Operands) -> Operands:
            *into, offsets = carried
            from_ = self._at(loops, loops[-1])
            x = read(b, now[0], from_)
            at = [*loops[:-1], self._digit(b, x, digit)]
            place = read(b, offsets, at)
            offsets = written(b, b.add(place, b.number(1)), offsets, at)
            to = self._at(loops, self._held(b, place, last, held))
            what: list[SSAValue] = [x]
            if self.places and len(now) == 1:
                what.append(b.emit(arith.IndexCastOp(loops[-1], self.places)))
            elif self.places:
                what.append(read(b, now[1], from_))
            what = what[-len(into) :]  # the last digit's elements are not asked for
            return [*(written(b, v, y, to) for v, y in zip(what, into, strict=True)), offsets]

        carried = [*fresh, offsets]
        return nest(self.lowering, [*self._rows, n], carried, move, kind)[:-1]

    def _held(self, b: Body, place: SSAValue, last: Size, held: SSAValue | None) -> SSAValue:
        """Return a place as an index that is seen to lie within the axis."""
        if isinstance(last, int):
            return clamped_index(b, place, last)
        assert held is not None
        zero = b.constant(0, INDEX)
        at = b.emit(arith.IndexCastOp(place, INDEX))
        return b.emit(arith.MinSIOp(b.emit(arith.MaxSIOp(at, zero)), held))
