"""The ops whose backward is timed: a row of each that has a gradient, on shapes that take time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stepwell.testing.op_rows.row import Row

MANY = "tensor<1048576xf32>"
MATRIX = "tensor<1024x1024xf32>"
ROW = "tensor<1024xf32>"
IMAGES = "tensor<8x32x56x56xf32>"
HALVES = "tensor<8x32x28x28xf32>"

REASONS = {
    "integers, truth values or places come out": (
        "iota random_bits not popcount clz and or xor shift_left shift_right eq ne lt le gt ge"
        " isnan isinf isfinite reduce_and reduce_or argmax argmin argsort dim from_index bitcast"
    ),
    "it has no argument that is an array of floats": "constant full",
    "its derivative is 0": "stop_gradient",
    "it only gives a name": "checkpoint_name",
    "it is there only within a vmap that names its axis": "all_sum all_gather reduce_scatter",
    "it is part of another op": "yield condition",
    "it runs Python, checks, or is a transformation itself": (
        "callback check vjp jvp vmap custom_vjp custom_jvp checkpoint"
    ),
    "it costs what the function costs that it calls": "call",
}
"""Why some ops are not measured."""
_EQUALS = "it counts how many elements are the least or greatest, which share the cotangent"
_PRODUCTS = "products of all others are made from both sides, for a quotient fails where one is 0"
_WINDOWS = "of equal elements the first is looked for, and rows are written at steps of two"
_ROWS = "the rows are read once more, for sums over all of them"
_BORDERS = "the image is copied within a border of zeros, which the forward pass does not make"
EXCEPTIONS: dict[str, str] = {
    "nd.convolution-depthwise": _BORDERS,
    "nd.convolution-depthwise-dilated": _BORDERS,
    "nd.gather": "rows are added to an array of zeros, which is written first",
    "nd.reduce_prod-rows": _PRODUCTS,
    "nd.reduce_prod-columns": _PRODUCTS,
    "nd.cumulative_prod-rows": _PRODUCTS,
    "nd.cumulative_prod-columns": _PRODUCTS,
    "nd.while": "each of ten steps keeps its array, 40 MB that are written and read",
    "nd.scan": "each step keeps its rows, which are written and read",
    "nd.scatter_mul": "factors that are 0 are counted, and the product of all others made again",
    "nd.scatter_min": _EQUALS,
    "nd.scatter_max": _EQUALS,
    "nd.window_max": _WINDOWS,
    "nd.window_min": _WINDOWS,
    "nd.max_pool": _WINDOWS,
    "nd.rms_norm": _ROWS,
    "nd.layer_norm": _ROWS,
}
"""Rows that may take longer than the others, and why."""


CONVOLUTIONS = (
    ("3x3", ("8x32x56x56", "32x32x3x3", "8x32x56x56"), "low = [1, 1], high = [1, 1]"),
    ("1x1", ("8x32x56x56", "64x32x1x1", "8x64x56x56"), ""),
    (
        "strided",
        ("8x32x56x56", "32x32x3x3", "8x32x28x28"),
        "strides = [2, 2], low = [1, 1], high = [0, 0]",
    ),
    (
        "depthwise",
        ("8x32x56x56", "32x1x3x3", "8x32x56x56"),
        "groups = 32, low = [1, 1], high = [1, 1]",
    ),
    ("1x1-strided", ("4x64x56x56", "128x64x1x1", "4x128x28x28"), "strides = [2, 2]"),
    (
        "stem",
        ("4x3x112x112", "64x3x7x7", "4x64x56x56"),
        "strides = [2, 2], low = [3, 3], high = [3, 3]",
    ),
    (
        "depthwise-strided",
        ("4x96x56x56", "96x1x5x5", "4x96x28x28"),
        "groups = 96, strides = [2, 2], low = [1, 1], high = [2, 2]",
    ),
    (
        "depthwise-dilated",
        ("8x32x56x56", "32x1x3x3", "8x32x56x56"),
        "groups = 32, low = [2, 2], high = [2, 2], rhs_dilation = [2, 2]",
    ),
    (
        "depthwise-small",
        ("8x672x7x7", "672x1x5x5", "8x672x7x7"),
        "groups = 672, low = [2, 2], high = [2, 2]",
    ),
    (
        "depthwise-features-last",
        ("8x56x56x32", "3x3x1x32", "8x56x56x32"),
        "groups = 32, low = [1, 1], high = [1, 1], x_layout = [0, 3, 1, 2],"
        " w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2]",
    ),
    (
        "depthwise-multiplied",
        ("4x32x56x56", "64x1x3x3", "4x64x56x56"),
        "groups = 32, low = [1, 1], high = [1, 1]",
    ),
    (
        "groups",
        ("4x128x28x28", "128x4x3x3", "4x128x28x28"),
        "groups = 32, low = [1, 1], high = [1, 1]",
    ),
    (
        "groups-strided",
        ("4x256x28x28", "256x8x3x3", "4x256x14x14"),
        "groups = 32, strides = [2, 2], low = [1, 1], high = [1, 1]",
    ),
    ("groups-1x1", ("4x128x28x28", "128x32x1x1", "4x128x28x28"), "groups = 4"),
    ("sound", ("8x64x1000", "64x64x9", "8x64x1000"), "low = [4], high = [4]"),
    ("sound-strided", ("8x32x2000", "64x32x8", "8x64x500"), "strides = [4], low = [2], high = [2]"),
    ("sound-causal", ("8x64x1000", "64x64x2", "8x64x1000"), "low = [8], rhs_dilation = [8]"),
    (
        "sound-depthwise",
        ("8x128x500", "128x1x31", "8x128x500"),
        "groups = 128, low = [15], high = [15]",
    ),
    (
        "volume",
        ("2x16x8x28x28", "32x16x3x3x3", "2x32x8x28x28"),
        "low = [1, 1, 1], high = [1, 1, 1]",
    ),
    (
        "volume-depthwise",
        ("4x32x16x28x28", "32x1x3x3x3", "4x32x8x14x14"),
        "groups = 32, strides = [2, 2, 2], low = [1, 1, 1], high = [1, 1, 1]",
    ),
)
"""Convolutions as networks have them: sizes of images, filters and results, and how they move."""


def _below_one(random: np.random.Generator, dtype: Any, shape: Any) -> Any:
    """Draw from where every function is smooth; places are within all axes."""
    if dtype.kind == "float":
        return random.uniform(0.1, 0.9, shape)
    return random.integers(0, 2 if dtype.kind == "bool" else 1024, shape)


def _above_one(random: np.random.Generator, dtype: Any, shape: Any) -> Any:
    return random.uniform(1.1, 2.0, shape)


def _row(op: str, arguments: Mapping[str, str], how: str, result: str, **more: Any) -> Row:
    """Return a row of an op of all arguments; ``how`` is what stands between them and the types."""
    names = ", ".join(f"%{n}" for n in arguments)
    types = ", ".join(arguments.values())
    text = f"%y = nd.{op} {names}{how} : ({types}) -> {result}"
    return Row(f"nd.{op}", dict(arguments), text, result, ("f32",), values=_below_one, **more)


def _elementwise() -> Iterator[Row]:
    one = "neg abs sign square reciprocal ceil floor round trunc sqrt rsqrt exp exp2 expm1 log log2"
    one += " log10 log1p cbrt sin cos tan asin acos atan sinh cosh tanh asinh atanh erf erfc"
    one += " relu relu6 sigmoid silu softplus gelu"
    for name in one.split():
        yield Row(
            f"nd.{name}",
            {"a": MANY},
            f"%y = nd.{name} %a : {MANY}",
            MANY,
            ("f32",),
            values=_below_one,
        )
    text = f"%y = nd.acosh %a : {MANY}"
    yield Row("nd.acosh", {"a": MANY}, text, MANY, ("f32",), values=_above_one)
    two = "add sub mul div rem mod floor_div pow atan2 hypot max min copysign"
    for name in two.split():
        text = f"%y = nd.{name} %a, %b : {MANY}"
        yield Row(f"nd.{name}", {"a": MANY, "b": MANY}, text, MANY, ("f32",), values=_below_one)
    three = dict.fromkeys("abc", MANY)
    for name in ("fma", "clamp"):
        text = f"%y = nd.{name} %a, %b, %c : {MANY}"
        yield Row(f"nd.{name}", three, text, MANY, ("f32",), values=_below_one)
    chosen = {"c": "tensor<1048576xi1>", "a": MANY, "b": MANY}
    text = f"%y = nd.select %c, %a, %b : {MANY}"
    yield Row("nd.select", chosen, text, MANY, ("f32",), values=_below_one)
    wide = "tensor<1048576xf64>"
    text = f"%y = nd.cast %a : {MANY} -> {wide}"
    yield Row("nd.cast", {"a": MANY}, text, wide, ("f32",), values=_below_one)


def _moves() -> Iterator[Row]:
    x = {"x": MATRIX}
    yield _row("broadcast", {"x": ROW}, " {dims = [1]}", MATRIX)
    yield _row("reshape", x, "", MANY)
    yield _row("transpose", x, " {permutation = [1, 0]}", MATRIX)
    yield _row("slice", x, "[100:900, ::2]", "tensor<800x512xf32>")
    pad = " {low = [1, 1], high = [1, 1], interior = [0, 0]}"
    yield _row("pad", {**x, "v": "tensor<f32>"}, pad, "tensor<1026x1026xf32>")
    yield _row("concat", {"x": MATRIX, "z": MATRIX}, " {axis = 1}", "tensor<1024x2048xf32>")
    yield _row("reverse", x, " {axes = [0, 1]}", MATRIX)


def _places() -> Iterator[Row]:
    some, all = "tensor<512x1024xf32>", f"({MATRIX}, tensor<512xi32>)"
    x = {"x": MATRIX, "i": "tensor<512xi32>"}
    text = f"%y = nd.gather %x, indices(%i) {{axes = [0]}} : {all} -> {some}"
    yield Row("nd.gather", x, text, some, ("f32",), values=_below_one)
    x = {"x": MATRIX, "u": some, "i": "tensor<512xi32>"}
    types = f"({MATRIX}, {some}, tensor<512xi32>) -> {MATRIX}"
    for name in ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
        text = f"%y = nd.{name} %x, %u, indices(%i) {{axes = [0]}} : {types}"
        yield Row(f"nd.{name}", x, text, MATRIX, ("f32",), values=_below_one)
    at, begin = "tensor<i32>", "starts(%i) {axes = [0]"
    text = f"%y = nd.dynamic_slice %x, {begin}, sizes = [512]}} : ({MATRIX}, {at}) -> {some}"
    yield Row("nd.dynamic_slice", {"x": MATRIX, "i": at}, text, some, ("f32",), values=_below_one)
    types = f"({MATRIX}, {some}, {at}) -> {MATRIX}"
    text = f"%y = nd.dynamic_update_slice %x, %u, {begin}}} : {types}"
    x = {"x": MATRIX, "u": some, "i": at}
    yield Row("nd.dynamic_update_slice", x, text, MATRIX, ("f32",), values=_below_one)


def _reductions() -> Iterator[Row]:
    x = {"x": MATRIX}
    for note, axis in (("rows", 1), ("columns", 0)):
        for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "mean", "logsumexp"):
            yield _row(name, x, f" {{axes = [{axis}]}}", ROW, note=note)
        for name in ("sum", "prod", "max", "min"):
            yield _row(f"cumulative_{name}", x, f" {{axis = {axis}}}", MATRIX, note=note)
        for name in ("softmax", "log_softmax"):
            yield _row(name, x, f" {{axis = {axis}}}", MATRIX, note=note)
    for name in ("sum", "max", "min"):
        how = " {window = [1, 1, 3, 3], strides = [1, 1, 2, 2], low = [0, 0, 1, 1]}"
        yield _row(f"window_{name}", {"x": IMAGES}, how, HALVES)
    for name in ("max_pool", "avg_pool"):
        how = " {window = [1, 1, 2, 2], strides = [1, 1, 2, 2]}"
        yield _row(name, {"x": IMAGES}, how, HALVES)
    yield _row("sort", x, " {axis = 1}", MATRIX)
    ranks = {"x": MATRIX, "ranks": "tensor<1024x2xi64>"}
    yield _row("order_statistics", ranks, " {axis = 1}", "tensor<1024x2xf32>")


def _norms() -> Iterator[Row]:
    how = "{axis = 1, eps = 0.001}"
    rows = {"x": MATRIX, "scale": ROW, "bias": ROW}
    yield _row("layer_norm", rows, f" {how}", MATRIX)
    yield _row("rms_norm", {"x": MATRIX, "scale": ROW}, f" {how}", MATRIX)
    features = dict.fromkeys(("scale", "bias", "mean", "variance"), "tensor<32xf32>")
    yield _row("batch_norm", {"x": IMAGES, **features}, f" {how}", IMAGES)


def _contractions() -> Iterator[Row]:
    half = "tensor<512x512xf32>"
    yield _row("matmul", {"x": half, "w": half}, "", half)
    stack = "tensor<16x128x128xf32>"
    how = " batch [0] x [0] contract [2] x [1]"
    yield _row("dot_general", {"x": stack, "w": stack}, how, stack)
    for note, (x, w, y), how in CONVOLUTIONS:
        images, filters, results = (f"tensor<{sizes}xf32>" for sizes in (x, w, y))
        how = f" {{{how}}}"
        yield _row("convolution", {"x": images, "w": filters}, how, results, note=note)


def _control() -> Iterator[Row]:
    branch = f"""%y = nd.if %c -> {MATRIX} {{
      %s = nd.sin %x : {MATRIX}
      nd.yield %s : {MATRIX}
    }} else {{
      nd.yield %x : {MATRIX}
    }}"""
    yield Row(
        "nd.if", {"c": "tensor<i1>", "x": MATRIX}, branch, MATRIX, ("f32",), values=_below_one
    )
    types = f"({ROW}, {MATRIX}) -> ({ROW}, {MATRIX})"
    scan = f"""%last, %y = nd.scan (%h = %s) over (%x = %xs) : {types} {{
      %a = nd.mul %h, %x : {ROW}
      %b = nd.sin %a : {ROW}
      nd.yield %b, %b : {ROW}, {ROW}
    }}"""
    given = {"s": ROW, "xs": MATRIX}
    yield Row("nd.scan", given, scan, MATRIX, ("f32",), values=_below_one)
    loop = f"""%zero = nd.full 0 : tensor<i32>
    %one = nd.full 1 : tensor<i32>
    %ten = nd.full 10 : tensor<i32>
    %n, %y = nd.while (%i = %zero, %a = %x) : tensor<i32>, {MATRIX} {{
      %go = nd.lt %i, %ten : tensor<i32> -> tensor<i1>
      nd.condition %go
    }} do (%i, %a) {{
      %j = nd.add %i, %one : tensor<i32>
      %b = nd.sin %a : {MATRIX}
      nd.yield %j, %b : tensor<i32>, {MATRIX}
    }}"""
    yield Row("nd.while", {"x": MATRIX}, loop, MATRIX, ("f32",), values=_below_one)


def rows() -> Sequence[Row]:
    """Return all rows."""
    parts = (_elementwise, _moves, _places, _reductions, _norms, _contractions, _control)
    return tuple(row for part in parts for row in part())
