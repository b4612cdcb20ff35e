"""Rows of the contractions: every pairing of axes, every way a window moves, awkward sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.dialects.nd import contraction
from stepwell.testing.op_rows.row import FLOATS, NUMBERS, Array, Row, Values
from stepwell.testing.op_rows.values import spread

OPS = contraction.OPS


def terms(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw numbers whose sums do not overflow, a few infinities and NaN among them."""
    if dtype.kind != "float":
        return spread(random, dtype, shape)
    special = random.choice(np.array([np.inf, -np.inf, np.nan]), shape)
    return np.where(random.random(shape) < 0.01, special, random.normal(size=shape))


def _finite(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw numbers whose sums do not overflow."""
    return random.normal(size=shape) if dtype.kind == "float" else spread(random, dtype, shape)


MEETING_ZEROS: Mapping[str, Values] = {"x": terms, "w": _finite}
"""What zeros between the elements of x meet is taken to be finite."""


def _dot(note: str, x: str, w: str, how: str, y: str, sizes: tuple[Shape, ...] = ((),)) -> Row:
    return Row(
        "nd.dot_general",
        {"x": f"tensor<{x}{{e}}>", "w": f"tensor<{w}{{e}}>"},
        f"%y = nd.dot_general %x, %w {how} : (tensor<{x}{{e}}>, tensor<{w}{{e}}>) "
        f"-> tensor<{y}{{e}}>",
        f"tensor<{y}{{e}}>",
        NUMBERS,
        sizes,
        terms,
        ulps=4,
        absolute=1e-5,
        note=note,
    )


def _matmul(note: str, x: str, w: str, y: str) -> Row:
    return Row(
        "nd.matmul",
        {"x": f"tensor<{x}{{e}}>", "w": f"tensor<{w}{{e}}>"},
        f"%y = nd.matmul %x, %w : (tensor<{x}{{e}}>, tensor<{w}{{e}}>) -> tensor<{y}{{e}}>",
        f"tensor<{y}{{e}}>",
        ("f32", "bf16", "ui8"),
        values=terms,
        ulps=4,
        absolute=1e-5,
        note=note,
    )


def _convolution(
    note: str,
    x: str,
    w: str,
    y: str,
    how: str = "",
    sizes: tuple[Shape, ...] = ((),),
    dtypes: tuple[str, ...] = ("f32", "f16", "i32"),
    values: Values | Mapping[str, Values] = terms,
) -> Row:
    return Row(
        "nd.convolution",
        {"x": f"tensor<{x}{{e}}>", "w": f"tensor<{w}{{e}}>"},
        f"%y = nd.convolution %x, %w {how} : (tensor<{x}{{e}}>, tensor<{w}{{e}}>) "
        f"-> tensor<{y}{{e}}>",
        f"tensor<{y}{{e}}>",
        dtypes,
        sizes,
        values,
        ulps=4,
        absolute=1e-5,
        note=note,
    )


def _wider(name: str, narrow: str, wide: str) -> Row:
    how = "contract [1] x [0] " if name == "nd.dot_general" else ""
    return Row(
        name,
        {"x": f"tensor<3x7x{narrow}>", "w": f"tensor<7x5x{narrow}>"},
        f"%y = {name} %x, %w {how}{{dtype = {wide}}} : "
        f"(tensor<3x7x{narrow}>, tensor<7x5x{narrow}>) -> tensor<3x5x{wide}>",
        f"tensor<3x5x{wide}>",
        (wide,),
        values=terms,
        ulps=4,
        absolute=1e-5,
        note=f"{narrow}-{wide}",
    )


ROWS: tuple[Row, ...] = (
    _dot(
        "batched",
        "?x2x3x",
        "?x3x7x",
        "batch [0] x [0] contract [2] x [1]",
        "?x2x7x",
        ((0,), (1,), (5,)),
    ),
    _dot("outer", "3x", "1x2x", "", "3x1x2x"),
    _dot("all", "3x4x", "4x3x", "contract [0, 1] x [1, 0]", ""),
    _dot("unknown", "5x?x", "?x3x", "contract [1] x [0]", "5x3x", ((0,), (1,), (13,))),
    _dot("half-known", "?x4x", "4x2x3x", "batch [0] x [0] contract [] x []", "4x4x2x3x", ((4,),)),
    _dot("middle", "2x3x5x", "3x5x2x7x", "batch [2] x [1] contract [0] x [2]", "5x3x3x7x"),
    *(_wider("nd.dot_general", *types) for types in (("i8", "i32"), ("ui8", "ui32"))),
    *(_wider("nd.matmul", *types) for types in (("f16", "f32"), ("bf16", "f64"), ("i8", "i8"))),
    _matmul("vectors", "7x", "7x", ""),
    _matmul("row", "3x", "3x5x", "5x"),
    _matmul("column", "2x3x", "3x", "2x"),
    _matmul("rows", "3x", "4x3x5x", "4x5x"),
    _matmul("columns", "4x2x3x", "3x", "4x2x"),
    _matmul("left-batch", "2x4x2x3x", "3x5x", "2x4x2x5x"),
    _matmul("right-batch", "2x3x", "4x1x3x5x", "4x1x2x5x"),
    _matmul("both", "4x2x3x", "4x3x5x", "4x2x5x"),
    _convolution("plain", "2x3x7x6x", "4x3x3x2x", "2x4x5x5x", dtypes=(*FLOATS, "i8", "ui16")),
    _convolution("vector", "2x3x", "4x3x", "2x4x"),
    _convolution(
        "moving",
        "1x2x9x8x",
        "3x2x3x2x",
        "1x3x5x5x",
        "{strides = [2, 2], low = [1, 2], high = [1, 1], rhs_dilation = [1, 2]}",
    ),
    _convolution(
        "transposed",
        "1x2x4x5x",
        "3x2x3x3x",
        "1x3x8x9x",
        "{low = [1, 1], high = [2, 1], lhs_dilation = [2, 2]}",
        values=MEETING_ZEROS,
    ),
    _convolution("groups", "2x4x7x", "6x2x3x", "2x6x5x", "{groups = 2}"),
    _convolution("depthwise", "2x4x7x", "4x1x3x", "2x4x5x", "{groups = 4}"),
    _convolution(
        "batch-groups",
        "6x2x7x",
        "4x2x5x",
        "3x4x2x",
        "{batch_groups = 2, strides = [2], low = [1]}",
    ),
    _convolution(
        "taps",
        "3x2x9x8x",
        "3x2x3x4x",
        "1x3x5x4x",
        "{batch_groups = 3, strides = [2, 1], low = [1, 1], rhs_dilation = [1, 2], high = [1, 1]}",
        dtypes=("f32", "bf16", "i32"),
    ),
    _convolution(
        "groups-last",
        "2x7x4x",
        "3x2x6x",
        "2x5x6x",
        "{groups = 2, x_layout = [0, 2, 1], w_layout = [2, 1, 0], y_layout = [0, 2, 1]}",
    ),
    _convolution(
        "channels-last",
        "2x7x6x3x",
        "3x2x3x4x",
        "2x5x5x4x",
        "{x_layout = [0, 3, 1, 2], w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2]}",
    ),
    _convolution("nothing-fits", "1x2x2x", "3x2x5x", "1x3x0x"),
    _convolution("no-features", "1x0x4x", "3x0x2x", "1x3x3x"),
    _convolution(
        "unknown",
        "?x2x?x",
        "3x2x3x",
        "?x3x?x",
        "{strides = [2], low = [1], high = [1]}",
        ((1, 7), (2, 1), (0, 5), (3, 0)),
    ),
    _convolution(
        "edges",
        "2x3x5x23x",
        "5x3x3x5x",
        "2x5x4x12x",
        "{strides = [1, 2], low = [1, 2], high = [0, 2]}",
    ),
    _convolution(
        "unknown-transposed",
        "2x2x?x",
        "3x2x3x",
        "2x3x?x",
        "{low = [1], high = [2], lhs_dilation = [3]}",
        ((0,), (1,), (5,)),
        values=MEETING_ZEROS,
    ),
    _convolution("unknown-window", "2x2x9x", "5x2x?x", "2x5x?x", "", ((1,), (4,), (10,))),
    _convolution("three-axes", "1x2x3x4x5x", "2x2x2x2x2x", "1x2x2x3x2x", "{strides = [1, 1, 2]}"),
)
