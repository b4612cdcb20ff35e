"""Rows of the reductions: whole numbers, so that the order of a sum does not show, and NaN."""

from __future__ import annotations

from collections.abc import Sequence

from op_rows.indexing import whole
from stepwell.core.shapes import Shape
from stepwell.dialects.nd import reduction
from stepwell.testing.op_rows.row import ALL, INTEGERS, NUMBERS, Row

OPS = reduction.OPS

MATRICES = ((0, 5), (3, 0), (1, 1), (7, 33), (1, 130))


def _row(
    name: str,
    note: str,
    x: str,
    y: str,
    how: str,
    dtypes: Sequence[str] = ("f32",),
    sizes: Sequence[Shape] = ((),),
) -> Row:
    """Return a row of an op on one tensor; ``y`` with ``{e}`` is its result type."""
    x = f"tensor<{x}x{{e}}>"
    text = f"%y = nd.{name} %x {{{how}}} : {x} -> tensor<{y}>"
    return Row(f"nd.{name}", {"x": x}, text, f"tensor<{y}>", dtypes, sizes, whole, note=note)


def _reduction(name: str, dtypes: Sequence[str]) -> tuple[Row, ...]:
    return (
        _row(name, "of the inner axis", "3x37", "3x{e}", "axes = [1]", dtypes),
        _row(name, "of the outer axis", "7x17", "17x{e}", "axes = [0]", dtypes[:2]),
        _row(name, "of all", "3x5x2", "{e}", "axes = [0, 1, 2]", dtypes[:2]),
        _row(name, "around an axis", "3x5x2", "5x{e}", "axes = [0, 2]", dtypes[:2]),
        _row(name, "of no axis", "3x5", "3x5x{e}", "axes = []", dtypes[:1]),
        _row(name, "of unknown sizes", "?x?", "?x{e}", "axes = [1]", dtypes[:1], MATRICES),
        _row(name, "of unknown rows", "?x?", "?x{e}", "axes = [0]", dtypes[:1], MATRICES),
    )


def _place(name: str) -> tuple[Row, ...]:
    some = ((1, 1), (3, 7), (0, 4), (7, 130))
    return (
        _row(name, "of the inner axis", "3x37", "3xi64", "axis = 1", ALL),
        _row(name, "of the outer axis", "7x17", "17xi32", "axis = 0"),
        _row(name, "of unknown sizes", "?x?", "?xi32", "axis = 1", sizes=some),
    )


def _running(name: str) -> tuple[Row, ...]:
    return (
        _row(name, "down", "5x3", "5x3x{e}", "axis = 0", NUMBERS),
        _row(name, "exclusive", "3x5", "3x5x{e}", "axis = 1, exclusive"),
        _row(name, "reverse", "3x5", "3x5x{e}", "axis = 1, reverse", ("f32", "f16", "ui8")),
        _row(name, "of unknown sizes", "?x?", "?x?x{e}", "axis = 0", sizes=MATRICES),
        _row(
            name, "reverse of unknown sizes", "?x?", "?x?x{e}", "axis = 1, reverse", sizes=MATRICES
        ),
    )


def _window(name: str) -> tuple[Row, ...]:
    every = "window = [1, 3, 2], strides = [1, 2, 1], low = [0, 1, 0], high = [0, 1, 2], dilation = [1, 1, 2]"
    border = "window = [3, 2], low = [1, 0], high = [1, 1]"
    return (
        _row(name, "with everything", "2x7x5", "2x4x5x{e}", every, NUMBERS),
        _row(name, "plain", "5x7", "4x5x{e}", "window = [2, 3]"),
        _row(name, "strided", "5x7", "3x7x{e}", "window = [1, 1], strides = [2, 1]"),
        _row(name, "too large", "2x7", "0x7x{e}", "window = [3, 1]"),
        _row(name, "of unknown sizes", "?x?", "?x?x{e}", border, sizes=MATRICES),
        _row(
            name,
            "strided of unknown sizes",
            "?x?",
            "?x?x{e}",
            "window = [3, 4], strides = [2, 3]",
            sizes=MATRICES,
        ),
    )


BITS = ("i1", *INTEGERS)

ROWS = (
    *_reduction("reduce_sum", NUMBERS),
    *_reduction("reduce_prod", NUMBERS),
    *_reduction("reduce_max", ALL),
    *_reduction("reduce_min", ALL),
    *_reduction("reduce_and", BITS),
    *_reduction("reduce_or", BITS),
    *(row for name in ("argmax", "argmin") for row in _place(name)),
    *(row for kind in ("sum", "prod", "max", "min") for row in _running(f"cumulative_{kind}")),
    *(row for kind in ("sum", "max", "min") for row in _window(f"window_{kind}")),
)
