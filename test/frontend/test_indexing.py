"""Random index expressions mean what they mean in NumPy: reading, writing, known and traced."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted
from same_as_numpy import as_in_numpy

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.shapes import ShapeError

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@dataclass(frozen=True)
class Given:
    """An array of an index that is an argument of the traced function."""

    array: Any


@dataclass(frozen=True)
class Expression:
    """``x[parts]``, and what is done there."""

    x: Any
    parts: tuple[Any, ...]
    update: str = ""
    """What `.at` is asked to do; "" to read."""

    def index(self, given: Iterator[Any]) -> Any:
        return tuple(next(given) if isinstance(p, Given) else p for p in self.parts)

    @property
    def given(self) -> list[Any]:
        return [p.array for p in self.parts if isinstance(p, Given)]


class Generator:
    """Draws index expressions."""

    def __init__(self, seed: int, outside: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.outside = outside
        """Whether arrays that are arguments may hold what is out of range."""

    def expression(self) -> Expression:
        r = self.random
        shape = tuple(
            int(n)
            for n in r.choice(
                [0, 1, 2, 3, 4, 5], r.integers(1, 5), p=[0.05, 0.15, 0.2, 0.2, 0.2, 0.2]
            )
        )
        if r.random() < 0.15:  # beyond what 8 bits hold
            shape = (*shape[:1], int(r.choice([127, 128, 200, 256, 300])))
            shape = shape if r.random() < 0.5 else shape[::-1]
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        block = tuple(int(n) for n in r.integers(0 if r.random() < 0.1 else 1, 4, r.integers(0, 3)))
        parts: list[Any] = []
        axes = list(shape)
        kinds = ["slice", "int", "known", "given", "mask", "stop"]
        weights = np.array([3, 2, 2, 4, 0.5, 1.0])
        dots = False
        while axes:
            while r.random() < 0.25:
                parts.append(None)
            if not dots and r.random() < 0.15:
                dots = True
                parts.append(...)
                axes = axes[int(r.integers(0, len(axes) + 1)) :]
                continue
            kind = str(r.choice(kinds, p=weights / weights.sum()))
            if kind == "stop":
                break
            if kind == "mask":
                rank = int(r.integers(0, min(len(axes), 2) + 1))
                parts.append(self.mask(axes[:rank]))
                del axes[:rank]
                continue
            parts.append(self.part(kind, axes.pop(0), block))
        while r.random() < 0.2:
            parts.append(None)
        update = str(r.choice(["", "", "set", "add", "multiply", "min", "max"]))
        return Expression(x, tuple(parts), update)

    def part(self, kind: str, size: int, block: Sequence[int]) -> Any:
        r = self.random
        if kind == "slice":
            ends = [
                None if r.random() < 0.4 else int(r.integers(-size - 2, size + 3)) for _ in range(2)
            ]
            step = None if r.random() < 0.5 else int(r.choice([-3, -2, -1, 1, 2, 3]))
            return slice(ends[0], ends[1], step)
        if kind == "int":
            number = int(
                r.integers(-size - (r.random() < 0.03), max(size, 1) + (r.random() < 0.03))
            )
            return (
                (int, np.int32, np.int8)[r.integers(3)](number) if -128 <= number < 128 else number
            )
        shape = list(block[int(r.integers(0, len(block) + 1)) :])
        shape = [1 if r.random() < 0.2 else n for n in shape]
        if r.random() < 0.02:
            shape.append(2)
        dtype = np.dtype(str(r.choice(INTEGERS)))
        reach = 3 if self.outside and kind == "given" else 0
        limits = np.iinfo(dtype)
        low, high = max(-size - reach, int(limits.min)), min(max(size, 1) + reach, int(limits.max))
        array = r.integers(low, high, shape).astype(dtype)
        if self.outside and kind == "given" and array.size and r.random() < 0.1:
            array[...] = limits.min if r.random() < 0.5 else limits.max
        if kind == "given":
            return Given(array)
        return array.tolist() if r.random() < 0.3 and array.ndim else array

    def mask(self, sizes: Sequence[int]) -> Any:
        sizes = [n + (self.random.random() < 0.02) for n in sizes]
        mask = self.random.random(sizes) < self.random.choice([0.2, 0.6, 1.0])
        return np.asarray(mask) if self.random.random() < 0.5 or not sizes else mask.tolist()


def in_range(e: Expression, size_of: Callable[[int, int], int]) -> list[Any] | None:
    """Return the given arrays as NumPy takes them: ``size_of(index, size)`` of each number.

    None where an axis has no element to read.
    """
    found: list[Any] = []
    for axis, array in zip(given_axes(e), e.given, strict=True):
        size = e.x.shape[axis]
        wide = [int(i) for i in array.reshape(-1)]
        places = [size_of(i + size if i < 0 else i, size) for i in wide]
        found.append(np.array(places, np.int64).reshape(array.shape))
    return found


def given_axes(e: Expression) -> list[int]:
    """Return the axes of the arrays that are arguments."""

    def taken(part: Any) -> int:
        if part is None or part is ...:
            return 0
        if isinstance(part, Given | slice):
            return 1
        array = np.asarray(part)
        return array.ndim if array.dtype == bool else 1

    rest = e.x.ndim - sum(map(taken, e.parts))
    axes: list[int] = []
    axis = 0
    for part in e.parts:
        if isinstance(part, Given):
            axes.append(axis)
        axis += rest if part is ... else taken(part)
    return axes


def expected(e: Expression) -> Any:
    """Return what NumPy says, with the rules of ours for what is out of range in arguments."""
    clipped = in_range(e, lambda i, n: min(max(i, 0), max(n - 1, 0)))
    read = as_in_numpy(e.x, e.index(iter(clipped or ())))
    if not e.update:
        return np.array(read)
    numbers = np.arange(e.x.size).reshape(e.x.shape)
    for axis in set(given_axes(e)):  # one more along each, which is nowhere
        pad = [(0, int(a == axis)) for a in range(e.x.ndim)]
        numbers = np.pad(numbers, pad, constant_values=-1)
    marked = in_range(e, lambda i, n: i if 0 <= i < n else n)
    places = numbers[e.index(iter(marked or ()))]
    y = e.x.reshape(-1).copy()
    combine = {
        "set": lambda old, new: new,
        "add": lambda old, new: old + new,
        "multiply": lambda old, new: old * new,
        "min": min,
        "max": max,
    }[e.update]
    for at, value in zip(places.reshape(-1), values(read.shape).reshape(-1), strict=True):
        if at >= 0:
            y[at] = combine(y[at], value)
    return y.reshape(e.x.shape)


def values(shape: Any) -> Any:
    return (np.arange(np.prod(shape, dtype=int), dtype=np.float32) % 7 - 3).reshape(shape)


def ours(e: Expression, x: Any, given: Iterator[Any]) -> Any:
    index = e.index(given)
    index = index[0] if len(index) == 1 else index
    if not e.update:
        return x[index]
    place = x.at[index]
    return getattr(place, e.update)(values(place.get().shape))


def alone(e: Expression) -> Callable[[Any, Any], Any]:
    return lambda x, given: ours(e, x, iter(given))


def check(expressions: Sequence[Expression], run: Callable[..., Any]) -> None:
    """Compare all with NumPy, in one program; what NumPy refuses has to be refused."""
    fine: list[tuple[Expression, Any]] = []
    for e in expressions:
        try:
            fine.append((e, expected(e)))
        except IndexError:
            with pytest.raises((IndexError, ShapeError)):
                sw.jit(alone(e)).trace(e.x, e.given)
    taken = [e for e, _ in fine]

    def all_of(xs: Any, given: Any) -> Any:
        return [ours(e, x, iter(g)) for e, x, g in zip(taken, xs, given, strict=True)]

    got = run(all_of, [e.x for e in taken], [e.given for e in taken], check_bounds=False)
    for (e, want), result in zip(fine, got, strict=True):
        assert result.shape == want.shape, e
        np.testing.assert_array_equal(result, want, err_msg=repr(e))


def compiled(function: Any, *args: Any, **options: Any) -> Any:
    return sw.jit(function, **options)(*args)


def batches(count: int, seed: int, size: int) -> Iterator[list[Expression]]:
    for number in range(count // size):
        generator = Generator(seed + number, outside=number % 2 == 1)
        yield [generator.expression() for _ in range(size)]


def test_a_sample_in_the_interpreter() -> None:
    for batch in batches(400, 100_000, 50):
        check(batch, interpreted)


def test_a_sample_compiled() -> None:
    for batch in batches(50, 200_000, 25):
        check(batch, compiled)


def test_arguments_out_of_bounds_raise_where_numpy_does() -> None:
    """What is said names an index that is out of bounds, its axis and its size, as NumPy does."""
    raised = 0
    for batch in batches(800, 300_000, 50):
        for e in (e for e in batch if not e.update and e.given):
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                wanted = said(lambda e=e: as_in_numpy(e.x, e.index(iter(e.given))))
            found = said(lambda e=e: interpreted(alone(e), e.x, e.given))
            assert bool(found) == bool(wanted), (found, wanted, e)
            if re.fullmatch(OUT_OF_BOUNDS, wanted) and 0 not in e.x.shape:
                raised += 1
                shown = re.fullmatch(OUT_OF_BOUNDS, found)
                assert shown is not None, (found, e)
                index, axis, size = map(int, shown.groups())
                if any(np.asarray(p).ndim == 0 and np.asarray(p).dtype == bool for p in e.parts):
                    continue  # NumPy counts axes of its own
                assert e.x.shape[axis] == size and not -size <= index < size, (found, e)
                if all(a.size == 1 for a in e.given):
                    assert found == wanted, e
    assert raised > 20


OUT_OF_BOUNDS = r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)"


def said(call: Callable[[], Any]) -> str:
    try:
        call()
    except (IndexError, ShapeError, OverflowError) as error:
        return str(error)
    return ""


X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
PLACES = np.array([2, 0, -1], np.int32)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, i: x[:, None, i],
        lambda x, i: x[None, i % 2],
        lambda x, i: x[0, None, i],
        lambda x, i: x[i % 2, None, i],
        lambda x, i: x[i % 2, :, None, i],
        lambda x, i: x[0, ..., None, i],
        lambda x, i: x[:, i, ..., None, 1],
        lambda x, i: x[None, 0, i[:, None], None, i],
        lambda x, i: x[np.array([True, False]), i[:1]],
        lambda x, i: x[True, i % 2, None],
        lambda x, i: x[:, np.eye(3, 4) > 0],
    ],
)
def test_new_axes_beside_arrays(use: Callable[[Any, Any], Any]) -> None:
    want = use(X, PLACES)
    for got in (interpreted(use, X, PLACES), compiled(use, X, PLACES)):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [100, 127, 128, 200, 255, 256, 300])
def test_indices_of_few_bits(dtype: str, size: int) -> None:
    """Numbers that the dtype of an index does not hold are no matter: the axis may be longer."""
    x = np.arange(size, dtype=np.float32)
    limits = np.iinfo(dtype)
    numbers = [n for n in (0, 1, 99, 127, 128, size - 1) if n <= min(limits.max, size - 1)]
    numbers += [-1, -2, -100, -128] if limits.min else []
    index = np.array([n for n in numbers if -size <= n], dtype)
    rows = np.stack([x, x * 2])

    def reads(x: Any, rows: Any, index: Any) -> Any:
        along = snp.stack([index, index])
        changed = x.at[index].add(1.0)
        return (
            x[index],
            rows[:, index],
            snp.take(x, index),
            snp.take_along_axis(rows, along, -1),
            changed,
        )

    changed = x.copy()
    np.add.at(changed, index, 1)
    along = np.stack([index, index]).astype(np.int64)
    want = (
        x[index],
        rows[:, index],
        np.take(x, index.astype(np.int64)),
        np.take_along_axis(rows, along, -1),
        changed,
    )
    for got in (interpreted(reads, x, rows, index), compiled(reads, x, rows, index)):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_unchecked_reads_take_the_end_and_writes_are_left_out() -> None:
    x = np.arange(5, dtype=np.float32)
    index = np.array([-7, -6, -5, 4, 5, 9, 2**62], np.int64)

    def f(x: Any, index: Any) -> Any:
        far = snp.astype(index, "uint64")
        return x[index], x.at[index].set(9.0), snp.take(x, index), x[far], x.at[far].set(9.0)

    end = x[[0, 0, 0, 4, 4, 4, 4]]
    want = end, np.array([9, 1, 2, 3, 9]), end, x[[4, 4, 4, 4, 4, 4, 4]], np.array([0, 1, 2, 3, 9])
    unchecked = {"check_bounds": False}
    for got in (interpreted(f, x, index, **unchecked), compiled(f, x, index, **unchecked)):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_take_has_numpys_modes() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for dtype in INTEGERS:
        index = np.array([0, 3, 7, 100] + ([-1, -9, -128] if dtype[0] == "i" else [250]), dtype)
        for mode, axis in itertools.product(("clip", "wrap"), (None, 0, 1)):
            want = np.take(x, index.astype(np.int64), axis=axis, mode=mode)
            np.testing.assert_array_equal(interpreted(taking(axis, mode), x, index), want)


def taking(axis: int | None, mode: str) -> Callable[[Any, Any], Any]:
    return lambda x, index: snp.take(x, index, axis=axis, mode=mode)


@pytest.mark.parametrize("start", [-100, -8, -7, -6, -2, -1, 0, 1, 4, 5, 6, 7, 100])
def test_starts_count_from_the_end_and_blocks_lie_inside(start: int) -> None:
    """So says jax.lax.dynamic_slice."""
    x = np.arange(7 * 3, dtype=np.float32).reshape(7, 3)
    begin = min(max(start + 7 if start < 0 else start, 0), 7 - 3)
    written = x.copy()
    written[begin : begin + 3] = -1
    block = np.full((3, 3), -1, np.float32)

    def known(x: Any) -> Any:
        part = sw.lax.dynamic_slice(x, (start, 0), (3, 3))
        return part, sw.lax.dynamic_update_slice(x, block, (start, 0))

    def traced(x: Any, start: Any) -> Any:
        part = sw.lax.dynamic_slice(x, (start, 0), (3, 3))
        return part, sw.lax.dynamic_update_slice(x, block, (start, 0))

    results = [interpreted(known, x), compiled(known, x)]
    results += [
        interpreted(traced, x, np.array(start, kind)) for kind in ("int8", "int32", "int64")
    ]
    results.append(compiled(traced, x, np.array(start, np.int8)))
    for part, changed in results:
        np.testing.assert_array_equal(part, x[begin : begin + 3])
        np.testing.assert_array_equal(changed, written)


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda x: x[2], "index 2 is out of bounds for axis 0 with size 2"),
        (lambda x: x[:, [0, 3]], "index 3 is out of bounds for axis 1 with size 3"),
        (lambda x: x[:, np.array([-4])], "index -4 is out of bounds for axis 1 with size 3"),
        (lambda x: x.at[[2]].set(0), "index 2 is out of bounds for axis 0 with size 2"),
        (lambda x: snp.take(x, 5, axis=1), "index 5 is out of bounds for axis 1 with size 3"),
        (lambda x: x[..., np.zeros(2, np.float32)], "an index must be an integer, got float32"),
        (lambda x: x["a"], "an index must be an integer, got 'a'"),
        (lambda x: x[[True]], r"a mask of \[1\] for axes of \[2\]"),
        (lambda x: x[:, :, np.eye(3) > 0], "4 indices for 3 axes"),
        (lambda x: x[[0, 1], [0, 1, 2]], r"indices \[2\] and \[3\] do not fit together"),
        (lambda x: x[..., ...], "one ellipsis"),
        (lambda x: x[x > 0], "a result whose shape is not known while tracing"),
        (lambda x: x[[x[0, 0, 0]]], "an index must be an integer, got float32"),
        (lambda x: x[:, x[0, 0, 0] :], "slice indices must be integers or None"),
        (lambda x: x[:0][snp.zeros(1, "int32")], "axis 0 has size 0"),
        (lambda x: snp.take(x[:0], snp.zeros(1, "int32"), axis=0), "axis 0 has size 0"),
        (lambda x: snp.take(x, 0, axis=0, mode="none"), "mode must be 'clip', 'wrap' or 'raise'"),
        (
            lambda x: sw.lax.dynamic_slice(x, (0, 0), (1, 1)),
            "one start is needed for each of 3 axes",
        ),
        (
            lambda x: sw.lax.dynamic_slice(x, (0, 0, 0), (3, 1, 1)),
            "cannot take 3 elements along axis 0",
        ),
        (
            lambda x: sw.lax.dynamic_slice(x, (0.5, 0, 0), (1, 1, 1)),
            "a start must be an integer, got 0.5",
        ),
        (
            lambda x: sw.lax.dynamic_slice(x, (x[0, 0, 0], 0, 0), (1, 1, 1)),
            "a start must be an integer",
        ),
        (
            lambda x: sw.lax.dynamic_update_slice(x, x, (0, 0)),
            "one start is needed for each of 3 axes",
        ),
        (lambda x: sw.lax.dynamic_update_slice(x[:1], x, (0, 0, 0)), "does not fit into"),
    ],
)
def test_what_means_nothing_is_refused(use: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((IndexError, ValueError, TypeError), match=message):
        sw.jit(use).trace(X)


@pytest.mark.slow
def test_twenty_thousand() -> None:
    for batch in batches(20_000, 300_000, 50):
        check(batch, interpreted)


@pytest.mark.slow
def test_two_thousand_compiled() -> None:
    for batch in batches(2_000, 400_000, 25):
        check(batch, compiled)


@pytest.mark.parametrize("i", [0, -1, -3, -4, 3, 99])
def test_at_has_the_modes_of_jax(i: int) -> None:
    x = np.arange(6.0).reshape(3, 2)

    def f(x: Any, i: Any) -> Any:
        return (
            x.at[i].set(9.0),
            x.at[i].set(9.0, mode="clip"),
            x.at[i, 0].add(1.0, mode="drop"),
            x.at[i].get(mode="clip"),
            x.at[i].get(mode="fill"),
            x.at[i, 1].get(mode="fill", fill_value=-1.0),
            x.at[i].apply(lambda v: v * 10),
            snp.astype(x, "int8").at[i].get(mode="fill"),
            snp.astype(x, "uint8").at[i].get(mode="fill"),
        )

    inside = -3 <= i < 3
    near = min(max(i + 3 if i < 0 else i, 0), 2)
    kept = x.copy()
    clipped, added, applied = x.copy(), x.copy(), x.copy()
    clipped[near] = 9
    if inside:
        kept[i], applied[i] = 9, x[i] * 10
        added[i, 0] += 1
    want = (
        *(kept, clipped, added, x[near], x[i] if inside else np.full(2, np.nan)),
        *(x[i, 1] if inside else -1.0, applied),
        x[i] if inside else np.full(2, -128),
        x[i] if inside else np.full(2, 255),
    )
    for g, w in zip(sw.jit(f)(x, i), want, strict=True):
        np.testing.assert_array_equal(g, w)
    with pytest.raises(ValueError, match="mode must be 'drop', 'fill', 'clip'"):
        sw.jit(lambda x: x.at[0].set(1, mode="wrap")).trace(x)
