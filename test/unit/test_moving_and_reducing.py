"""The families shape, indexing and reduction: lowered, every op means what it meant before.

Each row builds one op on arguments of awkward sizes, once with known sizes and once with every
size `?`, and runs it in the reference interpreter before and after nd-to-linalg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.core.dtypes import DTYPES
from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.shape import END
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.nd import indexing, reduction, shape, sizes
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import element_type
from stepwell.lowering.nd_to_linalg import NdToLinalg, scatter

assert upstream, "imported for its rules"

Make = Callable[..., Operation]
Spec = tuple[tuple[int, ...], str]
"""Shape and dtype of an argument; dtype `i32<5` holds indices a little beyond 0..5."""


def arrays(specs: Sequence[Spec], seed: int) -> list[Any]:
    """Return arguments whose sums are exact: small whole numbers, with NaN and infinities."""
    random = np.random.default_rng(seed)
    made: list[Any] = []
    for extents, name in specs:
        name, _, limit = name.partition("<")
        kind = DTYPES[name]
        if limit:
            low = 0 if kind.kind == "unsigned" else -2
            x = random.integers(low, int(limit) + 2, extents)
        else:
            x = random.integers(0 if kind.kind in ("unsigned", "bool") else -2, 3, extents)
        x = np.asarray(x).astype(kind.numpy)
        if kind.kind == "float" and seed % 2 and x.size:
            x.flat[random.integers(x.size)] = random.choice([np.nan, np.inf, -np.inf])
        made.append(x)
    return made


def module(specs: Sequence[Spec], make: Make, dynamic: bool) -> ModuleOp:
    """Return a module whose @main returns what ``make`` makes of its arguments."""
    types = [
        TensorType(element_type(name.partition("<")[0]), [DYNAMIC] * len(n) if dynamic else n)
        for n, name in specs
    ]
    block = Block(arg_types=types)
    with ImplicitBuilder(block):
        op = make(*block.args)
        func.ReturnOp(*op.results)
    function = func.FuncOp("main", (types, list(op.result_types)), Region(block))
    made = ModuleOp([function])
    made.verify()
    return made


def check(specs: Sequence[Spec], make: Make, seed: int, dynamic: bool) -> None:
    """Run before and after lowering and compare bit by bit (all NaN are one)."""
    arguments = arrays(specs, seed)
    before = module(specs, make, dynamic)
    wanted = Interpreter(before).call("main", arguments)
    NdToLinalg().apply(Context(), after := before.clone())
    after.verify()
    signless = [a.view(f"i{a.itemsize}") if a.dtype.kind == "u" else a for a in arguments]
    got = Interpreter(after).call("main", signless)
    for want, have in zip(wanted, got, strict=True):
        have = have.view(want.dtype) if want.dtype.kind == "u" else have
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want, str(after))


def _index(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result


def _broadcast(dims: Sequence[int], result: Sequence[int]) -> Make:
    def make(x: SSAValue) -> Operation:
        sizes = dict(zip(dims, shape_of(x), strict=True))
        return shape.BroadcastOp(x, dims, [sizes.get(a, n) for a, n in enumerate(result)])

    return make


def _reshape(result: Sequence[int]) -> Make:
    """Reshape to known sizes, or to `?` told by constants."""

    def make(x: SSAValue) -> Operation:
        if DYNAMIC not in shape_of(x):
            return shape.ReshapeOp(x, result)
        unknown = [DYNAMIC] * len(result)
        told = [_index(n) for n in result]
        return shape.ReshapeOp(x, unknown, told if len(told) != 1 or len(shape_of(x)) != 1 else [])

    return make


def _pad(low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Make:
    return lambda x, v: shape.PadOp(x, v, low, high, interior)


SHAPE: list[tuple[list[Spec], Make]] = [
    ([((3, 1, 4), "f32")], lambda x: shape.TransposeOp(x, [2, 0, 1])),
    ([((0, 5), "i8")], lambda x: shape.TransposeOp(x, [1, 0])),
    ([((), "bf16")], lambda x: shape.TransposeOp(x, [])),
    ([((7, 5), "f32")], lambda x: shape.SliceOp(x, [1, 0], [END, END], [2, 3])),
    ([((7, 5), "f16")], lambda x: shape.SliceOp(x, [0, 2], [-1, END])),
    ([((7, 5), "ui8")], lambda x: shape.SliceOp(x, [-3, 0], [END, 2], [2, 1])),
    ([((7, 5), "f32")], lambda x: shape.SliceOp(x, [5, -9], [2, 9])),
    ([((7, 5), "f32")], lambda x: shape.SliceOp(x, [9, 1], [END, -5])),
    ([((0, 5), "f32")], lambda x: shape.SliceOp(x, [1, 1], [END, 4], [3, 2])),
    ([((7,), "i1")], lambda x: shape.SliceOp(x, [-5], [-2], [2])),
    ([((), "f32")], lambda x: shape.SliceOp(x, [], [])),
    ([((5, 3), "f32")], lambda x: shape.ReverseOp(x, [0, 1])),
    ([((5, 0), "f32")], lambda x: shape.ReverseOp(x, [0])),
    ([((1, 6), "i64")], lambda x: shape.ReverseOp(x, [1])),
    ([((2, 3), "f32"), ((), "f32")], _pad([1, 0], [0, 2], [0, 0])),
    ([((4, 1), "f16"), ((), "f16")], _pad([0, 3], [1, 0], [2, 5])),
    ([((0, 3), "bf16"), ((), "bf16")], _pad([1, 0], [1, 0], [3, 1])),
    ([((2, 3), "f32"), ((4, 3), "f32"), ((0, 3), "f32")], lambda *x: shape.ConcatOp(x, 0)),
    ([((2, 3), "i1"), ((2, 1), "i1")], lambda *x: shape.ConcatOp(x, 1)),
    ([((5,), "f32")], lambda x: shape.ConcatOp([x], 0)),
    ([((4, 6), "f32")], _reshape([24])),
    ([((4, 6), "f32")], _reshape([2, 2, 6])),
    ([((4, 6), "f32")], _reshape([3, 8])),
    ([((4, 6), "f32")], _reshape([1, 4, 1, 3, 2, 1])),
    ([((1, 4, 1, 6, 1), "f32")], _reshape([4, 6])),
    ([((1, 1), "f32")], _reshape([])),
    ([((), "f32")], _reshape([1, 1])),
    ([((0, 3), "f32")], _reshape([5, 0])),
    ([((7,), "f32")], _reshape([7])),
    ([((2, 3, 4), "f32")], _reshape([6, 4])),
    ([((2, 3, 4, 5), "f32")], _reshape([2, 12, 5])),
    ([((3,), "f32")], _broadcast([1], [4, 3])),
    ([((), "f32")], _broadcast([], [2, 3])),
    ([((3, 4), "i8")], _broadcast([0, 2], [3, 2, 4])),
    ([((0,), "f32")], _broadcast([1], [4, 0])),
]


def _gather(axes: Sequence[int]) -> Make:
    return lambda x, *i: indexing.GatherOp(x, i, axes)


def _scatter(axes: Sequence[int], kind: Any = indexing.ScatterOp) -> Make:
    return lambda x, u, *i: kind(x, u, i, axes)


def _from_index(x: SSAValue) -> Operation:
    return sizes.FromIndexOp(sizes.DimOp(x, 1).n)


def _update(x: SSAValue, u: SSAValue, i: SSAValue) -> Operation:
    return indexing.DynamicUpdateSliceOp(x, u, [i], [1])


INDEXING: list[tuple[list[Spec], Make]] = [
    ([((5, 3), "f32"), ((4,), "i64<5")], _gather([0])),
    ([((5, 3), "f16"), ((2, 2), "i32<3")], _gather([1])),
    ([((5, 3, 2), "i8"), ((4,), "ui8<5"), ((4,), "i16<2")], _gather([0, 2])),
    ([((5, 3), "f32"), ((), "i8<5")], _gather([0])),
    ([((5, 3), "f32"), ((0,), "i32<5")], _gather([0])),
    ([((300,), "f32"), ((7,), "ui8<250")], _gather([0])),
    ([((6,), "bf16"), ((7,), "ui64<9")], _gather([0])),
    ([((6,), "bf16"), ((7,), "i8<9")], _gather([0])),
    ([((5, 3), "f32"), ((4, 3), "f32"), ((4,), "i64<5")], _scatter([0])),
    ([((5, 3), "f16"), ((5, 4), "f16"), ((4,), "ui8<3")], _scatter([1], indexing.ScatterAddOp)),
    ([((5, 3), "bf16"), ((5, 4), "bf16"), ((4,), "i8<3")], _scatter([1], indexing.ScatterMulOp)),
    ([((5,), "i1"), ((9,), "i1"), ((9,), "i32<5")], _scatter([0], indexing.ScatterMaxOp)),
    ([((5,), "ui8"), ((9,), "ui8"), ((9,), "ui64<5")], _scatter([0], indexing.ScatterMinOp)),
    ([((5,), "f32"), ((9,), "f32"), ((9,), "i32<5")], _scatter([0], indexing.ScatterMaxOp)),
    (
        [((4, 2, 3), "i32"), ((6, 2), "i32"), ((6,), "i64<4"), ((6,), "i64<3")],
        _scatter([0, 2], indexing.ScatterAddOp),
    ),
    ([((5,), "f32"), ((), "f32"), ((), "i32<5")], _scatter([0])),
    ([((5,), "f32"), ((0,), "f32"), ((0,), "i32<5")], _scatter([0])),
    ([((0,), "f32"), ((3,), "f32"), ((3,), "i32<1")], _scatter([0])),
    (
        [((5, 7), "f32"), ((), "i32<5"), ((), "ui64<7")],
        lambda x, i, j: indexing.DynamicSliceOp(x, [i, j], [0, 1], [2, 3]),
    ),
    ([((5, 7), "i1"), ((), "i8<7")], lambda x, i: indexing.DynamicSliceOp(x, [i], [1], [7])),
    ([((5, 7), "f32"), ((5, 2), "f32"), ((), "i32<7")], _update),
    ([((5, 7), "f32"), ((5, 7), "f32"), ((), "i32<7")], _update),
    ([((5, 0), "f32")], _from_index),
]


def reductions() -> Iterator[tuple[list[Spec], Make]]:
    """Yield rows of every reduction, in dtypes it is defined for."""
    for kind in reduction.REDUCTIONS:
        bits = kind.COMBINER in (reduction.AND, reduction.OR)
        names = ("i1", "ui8", "i32") if bits else ("f32", "f16", "bf16", "f64", "ui8", "i64")
        for name in (*names, *(("i1",) if kind.COMBINER in (reduction.MAX, reduction.MIN) else ())):
            for axes in ([], [1], [0, 2], [0, 1, 2]):
                yield [((3, 4, 2), name)], lambda x, k=kind, a=axes: k(x, a)
            yield [((3, 0, 2), name)], lambda x, k=kind: k(x, [1])
            yield [((3, 0, 2), name)], lambda x, k=kind: k(x, [0])
    for kind in (reduction.ArgmaxOp, reduction.ArgminOp):
        for name in ("f32", "f16", "bf16", "ui8", "i16", "i1"):
            yield [((3, 5), name)], lambda x, k=kind: k(x, 1)
            yield [((5, 3), name)], lambda x, k=kind: k(x, 0, element_type("i32"))
        yield [((1, 3), "f32")], lambda x, k=kind: k(x, 0)
    for kind in reduction.CUMULATIVES:
        for name in ("f32", "f16", "bf16", "ui8", "i32"):
            for flags in ({}, {"reverse": True}, {"exclusive": True, "reverse": True}):
                yield [((4, 3), name)], lambda x, k=kind, f=flags: k(x, 0, **f)
        yield [((2, 5), "f64")], lambda x, k=kind: k(x, 1, exclusive=True)
        yield [((0, 5), "f32")], lambda x, k=kind: k(x, 0, exclusive=True)
        yield [((5,), "f32")], lambda x, k=kind: k(x, 0)


def windowed() -> Iterator[tuple[list[Spec], Make]]:
    """Yield rows of every windowed reduction."""
    for kind in reduction.WINDOWS:
        for name in ("f32", "f16", "bf16", "ui8", "i32"):
            yield (
                [((1, 7, 5), name)],
                lambda x, k=kind: k(x, [1, 3, 2], [1, 2, 1], [0, 1, 0], [0, 1, 2], [1, 1, 2]),
            )
        yield [((5, 4), "f32")], lambda x, k=kind: k(x, [1, 1], [2, 1])
        yield [((5, 4), "f32")], lambda x, k=kind: k(x, [1, 1], [1, 1], [1, 0], [0, 1])
        yield [((2, 4), "f32")], lambda x, k=kind: k(x, [3, 1])
        yield [((0, 4), "f32")], lambda x, k=kind: k(x, [2, 3], [1, 1], [2, 1], [1, 1])
        yield [((), "f32")], lambda x, k=kind: k(x, [])


ROWS = [*SHAPE, *INDEXING, *reductions(), *windowed()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_lowered_means_the_same(row: int, dynamic: bool) -> None:
    specs, make = ROWS[row]
    for seed in range(2):
        check(specs, make, seed, dynamic)


WRITTEN: list[tuple[list[Spec], Make]] = [
    ([((5, 23), "f32"), ((9, 23), "f32"), ((9,), "i64<5")], _scatter([0], indexing.ScatterAddOp)),
    ([((5, 9), "f16"), ((9, 9), "f16"), ((9,), "ui8<5")], _scatter([0], indexing.ScatterMaxOp)),
    ([((5, 7, 2), "bf16"), ((9, 7, 2), "bf16"), ((9,), "i32<5")], _scatter([0])),
    (
        [((4, 3, 5), "i32"), ((6, 5), "i32"), ((6,), "i64<4"), ((6,), "i64<3")],
        _scatter([0, 1], indexing.ScatterAddOp),
    ),
    ([((3, 6), "f64"), ((9, 6), "f64"), ((9,), "i32<3")], _scatter([0], indexing.ScatterMulOp)),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("row", range(len(WRITTEN)))
def test_scatters_in_blocks(row: int, dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share parts of rows: thresholds are low here."""
    for name, value in {"LINE": 8, "BLOCK": 16}.items():
        monkeypatch.setattr(scatter, name, value)
    specs, make = WRITTEN[row]
    NdToLinalg().apply(Context(), lowered := module(specs, make, dynamic))
    shared = any("kernel.independent" in op.attributes for op in lowered.walk())
    assert shared
    for seed in range(2):
        check(specs, make, seed, dynamic)
