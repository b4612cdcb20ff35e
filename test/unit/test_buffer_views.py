"""Views of buffers: strides of unit axes, slices of slices, and parts, against NumPy."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr, f32

from stepwell.analysis.sizes import Dim, Size, Sizes
from stepwell.lowering.bufferize.views import (
    Reshape,
    Slice,
    covers,
    disjoint,
    in_one_slice,
    outside,
    part,
    same_or_apart,
    same_place,
)

WHOLE = np.arange(5 * 6 * 4).reshape(5, 6, 4)
KNOWN = Sizes(())


def test_an_element_seen_with_more_axes() -> None:
    one = Size.of(1)
    element = MemRefType(f32, [], StridedLayoutAttr([], None))
    seen = Reshape((), (one, one), True).result(element)
    assert seen == MemRefType(f32, [1, 1], StridedLayoutAttr([1, 1], None))


def test_unit_axes_seen_as_one() -> None:
    one, many = Size.of(1), Size.of(4)
    rows = MemRefType(f32, [1, 1, 4], StridedLayoutAttr([440, 110, 11], None))
    seen = Reshape(((0, 1), (2,)), (one, one, many), False).result(rows)
    assert seen == MemRefType(f32, [1, 4], StridedLayoutAttr([440, 11], None))


def drawn(draw: random.Random, shape: Sequence[int], dense: bool = False) -> Slice:
    """Return a slice of an array of that shape."""
    steps = [1 if dense else draw.choice([1, 1, 2]) for _ in shape]
    counts = [draw.randint(1, -(-n // step)) for n, step in zip(shape, steps, strict=True)]
    rows = zip(shape, steps, counts, strict=True)
    starts = [draw.randint(0, n - 1 - (count - 1) * step) for n, step, count in rows]
    kept = [a for a, n in enumerate(counts) if dense or n > 1 or draw.random() < 0.5]
    offsets, sizes, strides = (tuple(map(Size.of, each)) for each in (starts, counts, steps))
    return Slice(offsets, sizes, strides, tuple(kept))


def numbers(shape: Sequence[Size]) -> list[int]:
    return [n.number for n in shape if n.number is not None]


def taken(array: NDArray[np.int64], view: Slice) -> NDArray[np.int64]:
    """Return the elements of a slice."""
    rows = zip(*(map(numbers, view.places)), strict=True)
    found = array[tuple(slice(a, a + n * step, step) for a, n, step in rows)]
    return found.reshape([found.shape[axis] for axis in view.kept])


def test_slices_of_slices() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        a = drawn(draw, WHOLE.shape)
        b = drawn(draw, taken(WHOLE, a).shape)
        want = taken(taken(WHOLE, a), b)
        np.testing.assert_array_equal(taken(WHOLE, a.then(b)), want)
        assert same_place((a, b), (a.then(b),))
        assert in_one_slice((a, b)) == (a.then(b),)
        other = drawn(draw, WHOLE.shape)
        common = set(want.flat) & set(taken(WHOLE, other).flat)
        assert not (disjoint(KNOWN, part((a, b)), part((other,))) and common)
        if covers(KNOWN, part((other,)), part((a, b))):
            assert common == set(want.flat)
        if same_or_apart(KNOWN, (a, b), (other,)):
            assert not common or np.array_equal(want.ravel(), taken(WHOLE, other).ravel())


def test_rows_are_equal_or_disjoint() -> None:
    sizes = Sizes(())
    first, second = (sizes.atom(Dim(n)) for n in range(2))
    one, four = Size.of(1), Size.of(4)

    def rows(start: Size, count: Size) -> Slice:
        return Slice((start, Size()), (count, four), (one, one), (0, 1))

    assert same_or_apart(sizes, (rows(first, one),), (rows(second, one),))
    assert not same_or_apart(sizes, (rows(first, four),), (rows(second, four),))
    assert same_or_apart(sizes, (rows(first, four),), (rows(first + four, four),))


def test_what_is_outside_of_a_box() -> None:
    for seed in range(100):
        draw = random.Random(seed)
        box, whole = drawn(draw, WHOLE.shape, dense=True), drawn(draw, WHOLE.shape, dense=True)
        found = outside(KNOWN, box, whole)
        assert found is not None
        elements = [n for each in found for n in taken(WHOLE, each).flat]
        assert len(elements) == len(set(elements))
        assert set(elements) == set(taken(WHOLE, whole).flat) - set(taken(WHOLE, box).flat)
