"""Rows of the composites: they are compared with their decompositions lowered."""

from __future__ import annotations

from op_rows.contraction import terms
from stepwell.core.shapes import Shape
from stepwell.dialects.nd import composite, normalization, pooling
from stepwell.testing.op_rows.row import FLOATS, NUMBERS, Row

OPS = (*composite.OPS, *normalization.OPS, *pooling.OPS)

SIZES: tuple[Shape, ...] = ((0,), (1,), (37,))
X = "tensor<?x5x{e}>"


def _activation(name: str, dtypes: tuple[str, ...] = FLOATS, how: str = "", note: str = "") -> Row:
    type = "tensor<?x{e}>"
    text = f"%y = nd.{name} %x {how} : {type}"
    return Row(
        f"nd.{name}", {"x": type}, text, type, dtypes, SIZES, ulps=4, absolute=1e-6, note=note
    )


def _over(name: str, how: str, result: str, note: str, arguments: str = "") -> Row:
    """Return the row of a composite of x and of as many parameters %p as ``arguments`` says."""
    names = ["x", *(f"p{i}" for i, _ in enumerate(arguments.split()))]
    types = [X, *(f"tensor<{t}{{e}}>" for t in arguments.split())]
    return Row(
        f"nd.{name}",
        dict(zip(names, types, strict=True)),
        f"%y = nd.{name} {', '.join(f'%{n}' for n in names)} {how} : ({', '.join(types)}) "
        f"-> {result}",
        result,
        FLOATS,
        SIZES,
        terms,
        ulps=16,
        absolute=1e-5,
        note=note,
    )


def _pool(name: str, x: str, y: str, how: str, note: str, sizes: tuple[Shape, ...]) -> Row:
    return Row(
        f"nd.{name}",
        {"x": f"tensor<{x}{{e}}>"},
        f"%y = nd.{name} %x {how} : tensor<{x}{{e}}> -> tensor<{y}{{e}}>",
        f"tensor<{y}{{e}}>",
        NUMBERS if name == "max_pool" else FLOATS,
        sizes,
        terms,
        ulps=4,
        absolute=1e-5,
        note=note,
    )


MOVES = "{window = [3, 2], strides = [2, 1], low = [1, 0], high = [1, 1]}"

ROWS: tuple[Row, ...] = (
    _activation("relu", NUMBERS),
    _activation("relu6", NUMBERS),
    _activation("sigmoid"),
    _activation("silu"),
    _activation("softplus"),
    _activation("gelu"),
    _activation("gelu", how='{approximate = "tanh"}', note="tanh"),
    _over("softmax", "{axis = 1}", X, "rows"),
    _over("softmax", "{axis = 0}", X, "columns"),
    _over("log_softmax", "{axis = 1}", X, "rows"),
    _over("log_softmax", "{axis = 0}", X, "columns"),
    _over("mean", "{axes = [1]}", "tensor<?x{e}>", "rows"),
    _over("mean", "{axes = [0]}", "tensor<5x{e}>", "columns"),
    _over("mean", "{axes = [0, 1]}", "tensor<{e}>", "all"),
    _over("mean", "{axes = []}", X, "none"),
    _over("logsumexp", "{axes = [0]}", "tensor<5x{e}>", "columns"),
    _over("logsumexp", "{axes = [0, 1]}", "tensor<{e}>", "all"),
    _over("layer_norm", "{axis = 1, eps = 0.001}", X, "bare"),
    _over("layer_norm", "{axis = 1, eps = 0.001}", X, "scaled", "5x"),
    _over("layer_norm", "{axis = 1, eps = 0.001}", X, "rows", "5x 5x"),
    _over("layer_norm", "{axis = 0, eps = 0.001}", X, "all", "?x5x ?x5x"),
    _over("rms_norm", "{axis = 1, eps = 0.001}", X, "rows", "5x"),
    _over("batch_norm", "{axis = 1, eps = 0.001}", X, "columns", "5x 5x 5x 5x"),
    _pool("max_pool", "?x4x5x", "?x2x5x", MOVES, "padded", ((0,), (1,), (3,))),
    _pool("max_pool", "7x", "3x", "{window = [2]}", "plain", ((),)),
    _pool("avg_pool", "?x4x5x", "?x2x5x", MOVES, "padded", ((0,), (1,), (3,))),
    _pool("avg_pool", "4x?x", "2x?x", MOVES, "unknown", ((2,), (9,))),
    _pool(
        "avg_pool",
        "2x5x",
        "2x3x",
        "{window = [3], strides = [2], low = [1], high = [1], count_include_pad}",
        "included",
        ((),),
    ),
)
