"""Rows of the sorts: many equal elements, NaN, infinities and both zeros among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepwell.core.shapes import Shape
from stepwell.dialects.nd import sorting
from stepwell.testing.op_rows.row import ALL, Row
from stepwell.testing.op_rows.values import anything

OPS = sorting.OPS

MATRICES = ((0, 5), (3, 0), (1, 1), (2, 33), (1, 300))


def _rows(name: str, element: str) -> tuple[Row, ...]:
    def row(
        note: str,
        shape: str,
        how: str,
        dtypes: Sequence[str] = ("f32",),
        sizes: Sequence[Shape] = ((),),
    ) -> Row:
        x, y = f"tensor<{shape}x{{e}}>", f"tensor<{shape}x{element}>"
        types = x if x == y else f"{x} -> {y}"
        text = f"%y = nd.{name} %x {{{how}}} : {types}"
        return Row(f"nd.{name}", {"x": x}, text, y, dtypes, sizes, anything, note=note)

    return (
        row("short", "3x13", "axis = 1", ALL),
        row("long", "2x150", "axis = 1", ALL),
        row("short, falling", "3x13", "axis = 1, descending", ALL),
        row("long, falling", "150", "axis = 0, descending", ALL),
        row("around the axis", "2x5x3", "axis = 1", ("f32", "i64", "i1")),
        row("long, around the axis", "2x70x3", "axis = 1", ("f32", "bf16", "ui8")),
        row("of one element", "3x1", "axis = 1"),
        row("of no element", "3x0", "axis = 1"),
        row("of unknown sizes", "?x?", "axis = 1", ("f32", "i16"), MATRICES),
        row("of unknown rows", "?x3", "axis = 0, descending", ("f64", "ui16"), ((0, 3), (33, 3))),
    )


def _narrow() -> tuple[Row, ...]:
    """Return rows of places as i32."""
    rows = _rows("argsort", "i32")[:2]
    return tuple(replace(row, note=f"{row.note}, i32", dtypes=("f32", "i64")) for row in rows)


def _statistics() -> tuple[Row, ...]:
    """Return rows of ranks, some of them beyond the ends."""

    def row(
        note: str,
        shape: str,
        many: str,
        dtypes: Sequence[str] = ("f32",),
        sizes: Sequence[Shape] = ((),),
    ) -> Row:
        x, ranks, y = f"tensor<{shape}x{{e}}>", f"tensor<{many}xi64>", f"tensor<{many}x{{e}}>"
        text = f"%y = nd.order_statistics %x, %ranks {{axis = 1}} : ({x}, {ranks}) -> {y}"
        operands = {"x": x, "ranks": ranks}
        return Row("nd.order_statistics", operands, text, y, dtypes, sizes, anything, note=note)

    return (
        row("short", "20x13", "20x2", ("f32", "i1")),
        row("long", "2x2050", "2x2"),
        row("a long line", "1x2050", "1x2", ("i16", "ui8", "bf16")),
        row("of many ranks", "1x300", "1x20", ("i64",)),
        row("of unknown sizes", "?x?", "?x3", ("f64",), ((0, 5, 0), (7, 33, 7))),
    )


ROWS = (*_statistics(), *_rows("sort", "{e}"), *_rows("argsort", "i64"), *_narrow())
