"""Rows of the ops that move elements: known and unknown sizes, 0 and 1 and primes among them."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.shapes import Shape
from stepwell.dialects.nd import shape, sizes
from stepwell.testing.op_rows.row import ALL, Row

OPS = (*sizes.OPS, *shape.OPS)

SOME = ("f32", "bf16", "ui8", "i64", "i1")
MATRICES = ((0, 5), (1, 1), (3, 0), (7, 33))


def _row(
    name: str,
    note: str,
    x: str,
    y: str,
    how: str = "",
    sizes: Sequence[Shape] = ((),),
    dtypes: Sequence[str] = ("f32",),
    before: str = "",
) -> Row:
    """Return the row of an op on one tensor; ``how`` is what stands between ``%x`` and the types."""
    x, y = f"tensor<{x}{{e}}>", f"tensor<{y}{{e}}>"
    text = f"{before}\n  %y = nd.{name} %x{how} : {x} -> {y}"
    return Row(f"nd.{name}", {"x": x}, text, y, dtypes, sizes, note=note)


N = "%n = nd.dim %x {axis = 0} : tensor<?x?x{e}>"
M = "%m = nd.dim %x {axis = 1} : tensor<?x?x{e}>"

SIZES = (
    Row(
        "nd.from_index",
        {"x": "tensor<?x?xf32>"},
        "%n = nd.dim %x {axis = 1} : tensor<?x?xf32>\n %y = nd.from_index %n : index -> tensor<i64>",
        "tensor<i64>",
        ("f32",),
        MATRICES,
    ),
    Row(
        "nd.dim",
        {"x": "tensor<?x3xf32>"},
        "%n = nd.dim %x {axis = 0} : tensor<?x3xf32>\n  %m = nd.dim %x {axis = 1} : tensor<?x3xf32>\n"
        "  %s = arith.muli %n, %m : index\n  %y = nd.from_index %s : index -> tensor<i64>",
        "tensor<i64>",
        ("f32",),
        ((0,), (5,)),
    ),
)

VIEWS = (
    _row("broadcast", "new axes", "3x5x", "2x3x4x5x", " {dims = [1, 3]}", dtypes=ALL),
    _row("broadcast", "unit axes", "3x1x", "3x7x", " {dims = [0, 1]}", dtypes=SOME),
    _row("broadcast", "of a scalar", "", "3x7x", " {dims = []}", dtypes=SOME),
    _row("broadcast", "told", "?x?x", "?x4x?x", " {dims = [0, 2]}", MATRICES),
    _row("broadcast", "sized", "?x?x", "?x?x?x", ", sizes(%m) {dims = [1, 2]}", MATRICES, before=M),
    _row("reshape", "merge", "2x3x5x", "6x5x", dtypes=ALL),
    _row("reshape", "split", "12x5x", "3x2x2x5x"),
    _row("reshape", "neither", "4x6x", "3x8x"),
    _row("reshape", "units", "1x4x1x", "4x1x1x"),
    _row("reshape", "to a scalar", "1x1x", ""),
    _row("reshape", "from a scalar", "", "1x1x"),
    _row("reshape", "of nothing", "0x3x", "2x0x"),
    _row("reshape", "told", "?x6x", "2x?x3x", sizes=((0,), (2,), (34,))),
    _row(
        "reshape",
        "flat",
        "?x?x",
        "?x",
        ", sizes(%p)",
        MATRICES,
        before=f"{N}\n  {M}\n  %p = arith.muli %n, %m : index",
    ),
    _row("reshape", "swapped", "?x?x", "?x?x", ", sizes(%m, %n)", MATRICES, before=f"{N}\n  {M}"),
    _row("transpose", "static", "3x1x5x", "5x3x1x", " {permutation = [2, 0, 1]}", dtypes=ALL),
    _row("transpose", "of unknown sizes", "?x?x", "?x?x", " {permutation = [1, 0]}", MATRICES),
    _row("reverse", "static", "3x1x5x", "3x1x5x", " {axes = [0, 2]}", dtypes=ALL),
    _row("reverse", "of unknown sizes", "?x?x", "?x?x", " {axes = [0, 1]}", MATRICES),
)

PARTS = (
    _row("slice", "strided", "7x5x", "3x2x", "[1::2, :4:3]", dtypes=ALL),
    _row("slice", "of the beginning", "7x5x", "6x2x", "[:-1, :2]", dtypes=SOME),
    _row("slice", "of nothing", "7x5x", "0x5x", "[4:2, :]"),
    _row("slice", "from the end", "?x?x", "?x?x", "[-3:, -4:-1:2]", MATRICES),
    _row("slice", "up to the end", "?x?x", "?x?x", "[1:, 2::3]", MATRICES),
    _row("slice", "without the end", "?x?x", "?x?x", "[:-1, :5]", MATRICES),
    Row(
        "nd.pad",
        {"x": "tensor<3x2x{e}>", "v": "tensor<{e}>"},
        "%y = nd.pad %x, %v {low = [1, 0], high = [0, 2], interior = [0, 3]} : "
        "(tensor<3x2x{e}>, tensor<{e}>) -> tensor<4x7x{e}>",
        "tensor<4x7x{e}>",
        ALL,
        note="static",
    ),
    Row(
        "nd.pad",
        {"x": "tensor<?x?xf32>"},
        "%v = nd.full 2.5 : tensor<f32>\n"
        "  %y = nd.pad %x, %v {low = [1, 0], high = [3, 2], interior = [2, 0]} : "
        "(tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>",
        "tensor<?x?xf32>",
        ("f32",),
        MATRICES,
        note="of unknown sizes",
    ),
    Row(
        "nd.concat",
        {"a": "tensor<3x2x{e}>", "b": "tensor<3x0x{e}>", "c": "tensor<3x5x{e}>"},
        "%y = nd.concat %a, %b, %c {axis = 1} : "
        "(tensor<3x2x{e}>, tensor<3x0x{e}>, tensor<3x5x{e}>) -> tensor<3x7x{e}>",
        "tensor<3x7x{e}>",
        ALL,
        note="static",
    ),
    Row(
        "nd.concat",
        {"a": "tensor<?x?xf32>", "b": "tensor<1x?xf32>"},
        "%y = nd.concat %a, %a, %b {axis = 0} : "
        "(tensor<?x?xf32>, tensor<?x?xf32>, tensor<1x?xf32>) -> tensor<?x?xf32>",
        "tensor<?x?xf32>",
        ("f32",),
        ((0, 0), (1, 1), (7, 7)),
        note="of unknown sizes",
    ),
)

ROWS = (*SIZES, *VIEWS, *PARTS)
