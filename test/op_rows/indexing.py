"""Rows of gather, scatter and dynamic slices: indices out of range, twice the same, of any width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.dialects.nd import indexing
from stepwell.testing.op_rows.row import ALL, FLOATS, NUMBERS, Array, Row, Values
from stepwell.testing.op_rows.values import anything

OPS = indexing.OPS


def near(limit: int) -> Values:
    """Return what draws indices from a little below 0 (where there is a sign) to beyond a limit."""

    def draw(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
        low = 0 if dtype.kind == "unsigned" else -2
        return random.integers(low, limit + 2, shape)

    return draw


def whole(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw small whole numbers, whose sums and products are exact, and some infinities and NaN."""
    low = 0 if dtype.kind in ("unsigned", "bool") else -2
    numbers = random.integers(low, 3, shape)
    if dtype.kind != "float":
        return numbers
    special = random.choice(np.array([np.inf, -np.inf, np.nan]), shape)
    return np.where(random.random(shape) < 0.05, special, numbers)


def _gather(
    note: str,
    x: str,
    indices: Sequence[str],
    axes: Sequence[int],
    y: str,
    sizes: Sequence[Shape] = ((),),
    dtypes: Sequence[str] = ("f32",),
) -> Row:
    names = ["i", "j", "k"][: len(indices)]
    x, y = f"tensor<{x}{{e}}>", f"tensor<{y}{{e}}>"
    types = [f"tensor<{i}>" for i in indices]
    return Row(
        "nd.gather",
        {"x": x, **dict(zip(names, types, strict=True))},
        f"%y = nd.gather %x, indices({', '.join(f'%{n}' for n in names)}) {{axes = {list(axes)}}} : "
        f"({', '.join([x, *types])}) -> {y}",
        y,
        dtypes,
        sizes,
        {n: near(5) for n in names},
        note=note,
    )


def _scatter(
    kind: str,
    note: str,
    x: str,
    u: str,
    indices: Sequence[str],
    axes: Sequence[int],
    sizes: Sequence[Shape] = ((),),
    dtypes: Sequence[str] = NUMBERS,
) -> Row:
    names = ["i", "j", "k"][: len(indices)]
    x, u = f"tensor<{x}{{e}}>", f"tensor<{u}{{e}}>"
    types = [f"tensor<{i}>" for i in indices]
    return Row(
        f"nd.{kind}",
        {"x": x, "u": u, **dict(zip(names, types, strict=True))},
        f"%y = nd.{kind} %x, %u, indices({', '.join(f'%{n}' for n in names)}) "
        f"{{axes = {list(axes)}}} : ({', '.join([x, u, *types])}) -> {x}",
        x,
        dtypes,
        sizes,
        {"x": whole, "u": whole, **{n: near(5) for n in names}},
        note=note,
    )


GATHERS = (
    _gather("rows", "5x3x", ["7xi32"], [0], "7x3x", dtypes=ALL),
    _gather("columns", "3x5x", ["2x2xui8"], [1], "3x2x2x"),
    _gather("elements", "5x5x", ["7xi64", "7xi8"], [0, 1], "7x"),
    _gather("around an axis", "5x2x5x", ["7xui64", "7xui16"], [0, 2], "7x2x"),
    _gather("one", "5x3x", ["i16"], [0], "3x"),
    _gather("no index", "5x3x", ["0xi32"], [0], "0x3x"),
    _gather("of unknown sizes", "?x?x", ["?xi32"], [0], "?x?x", ((5, 3), (1, 0), (33, 17))),
)
SCATTERS = (
    _scatter("scatter", "rows", "5x3x", "7x3x", ["7xi32"], [0], dtypes=ALL),
    _scatter("scatter", "elements", "5x5x", "7x", ["7xi64", "7xui8"], [0, 1], dtypes=("f32",)),
    _scatter("scatter", "one", "5x3x", "3x", ["i32"], [0], dtypes=("f32",)),
    _scatter("scatter", "none", "5x3x", "0x3x", ["0xi32"], [0], dtypes=("f32",)),
    _scatter("scatter_add", "columns", "3x5x", "3x7x", ["7xi64"], [1]),
    _scatter(
        "scatter_add", "of unknown sizes", "?x?x", "?x?x", ["?xi32"], [0], ((5, 5), (1, 1)), FLOATS
    ),
    _scatter("scatter_add", "blocks of columns", "3x130x", "5x130x", ["5xi32"], [0], dtypes=FLOATS),
    _scatter(
        "scatter_add", "blocks of heads", "3x5x33x", "5x5x33x", ["5xi32"], [0], dtypes=("f32",)
    ),
    _scatter("scatter_mul", "", "5x", "9x", ["9xui64"], [0]),
    _scatter("scatter_min", "", "5x", "9x", ["9xi8"], [0], dtypes=ALL),
    _scatter("scatter_max", "", "5x", "9x", ["9xi16"], [0], dtypes=ALL),
)

BLOCKS = (
    Row(
        "nd.dynamic_slice",
        {"x": "tensor<5x7x{e}>", "i": "tensor<i32>", "j": "tensor<ui64>"},
        "%y = nd.dynamic_slice %x, starts(%i, %j) {axes = [0, 1], sizes = [2, 3]} : "
        "(tensor<5x7x{e}>, tensor<i32>, tensor<ui64>) -> tensor<2x3x{e}>",
        "tensor<2x3x{e}>",
        ALL,
        values={"x": anything, "i": near(5), "j": near(7)},
        note="static",
    ),
    Row(
        "nd.dynamic_slice",
        {"x": "tensor<?x?xf32>", "i": "tensor<i8>"},
        "%y = nd.dynamic_slice %x, starts(%i) {axes = [1], sizes = [2]} : "
        "(tensor<?x?xf32>, tensor<i8>) -> tensor<?x2xf32>",
        "tensor<?x2xf32>",
        ("f32",),
        ((3, 2), (0, 5), (4, 17)),
        {"x": anything, "i": near(5)},
        note="of unknown sizes",
    ),
    Row(
        "nd.dynamic_slice",
        {"x": "tensor<?x?x{e}>", "i": "tensor<i8>", "v": "tensor<?xi8>"},
        "%n = nd.dim %v {axis = 0} : tensor<?xi8>\n"
        "  %y = nd.dynamic_slice %x, starts(%i, %n), sizes(2, %n) {axes = [0, 1]} : "
        "(tensor<?x?x{e}>, tensor<i8>, index) -> tensor<2x?x{e}>",
        "tensor<2x?x{e}>",
        ("f32", "i64", "i1"),
        ((3, 4), (4, 17)),
        {"x": anything, "i": near(5), "v": near(5)},
        note="of sizes that a call tells",
    ),
    Row(
        "nd.dynamic_update_slice",
        {"x": "tensor<5x7x{e}>", "u": "tensor<5x2x{e}>", "i": "tensor<i64>"},
        "%y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [1]} : "
        "(tensor<5x7x{e}>, tensor<5x2x{e}>, tensor<i64>) -> tensor<5x7x{e}>",
        "tensor<5x7x{e}>",
        ALL,
        values={"x": anything, "u": anything, "i": near(7)},
        note="static",
    ),
    Row(
        "nd.dynamic_update_slice",
        {"x": "tensor<5x7x{e}>", "u": "tensor<2x3x{e}>", "i": "tensor<i64>", "j": "tensor<i64>"},
        "%y = nd.dynamic_update_slice %x, %u, starts(%i, %j) {axes = [0, 1], strides = [3, 2]} : "
        "(tensor<5x7x{e}>, tensor<2x3x{e}>, tensor<i64>, tensor<i64>) -> tensor<5x7x{e}>",
        "tensor<5x7x{e}>",
        ALL,
        values={"x": anything, "u": anything, "i": near(5), "j": near(7)},
        note="with steps",
    ),
    Row(
        "nd.dynamic_update_slice",
        {"x": "tensor<?x?xf32>", "u": "tensor<?x2xf32>", "i": "tensor<i32>"},
        "%y = nd.dynamic_update_slice %x, %u, starts(%i, %i) {axes = [0, 1], strides = [1, 2]} : "
        "(tensor<?x?xf32>, tensor<?x2xf32>, tensor<i32>, tensor<i32>) -> tensor<?x?xf32>",
        "tensor<?x?xf32>",
        ("f32",),
        ((5, 4, 3), (9, 3, 9)),
        {"x": anything, "u": anything, "i": near(5)},
        note="with steps, of unknown sizes",
    ),
    Row(
        "nd.dynamic_update_slice",
        {"x": "tensor<?x3xf32>", "u": "tensor<1x3xf32>", "i": "tensor<i32>"},
        "%y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0]} : "
        "(tensor<?x3xf32>, tensor<1x3xf32>, tensor<i32>) -> tensor<?x3xf32>",
        "tensor<?x3xf32>",
        ("f32",),
        ((1,), (7,)),
        {"x": anything, "u": anything, "i": near(7)},
        note="of unknown sizes",
    ),
)

ROWS = (*GATHERS, *SCATTERS, *BLOCKS)
