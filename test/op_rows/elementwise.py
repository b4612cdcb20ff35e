"""Rows of the elementwise ops: all dtypes, boundary values, sizes 0, 1 and an odd many."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.dialects.nd import arithmetic, bitwise, compare, convert, transcendental
from stepwell.testing.op_rows.row import ALL, FLOATS, INTEGERS, NUMBERS, Row
from stepwell.testing.op_rows.values import spread

OPS = (*arithmetic.OPS, *transcendental.OPS, *bitwise.OPS, *compare.OPS, *convert.OPS)

SIZES = ((0,), (1,), (1201,))


def _row(
    name: str,
    operands: int,
    dtypes: Sequence[str],
    ulps: float = 0,
    to: str = "",
    note: str = "",
    absolute: float = 0,
) -> Row:
    """Return the row of an op whose operands are all tensors of one type."""
    names = ["a", "b", "c"][:operands]
    type, result = "tensor<?x{e}>", f"tensor<?x{to or '{e}'}>"
    arrow = f" -> {result}" if to else ""
    return Row(
        f"nd.{name}",
        dict.fromkeys(names, type),
        f"%y = nd.{name} {', '.join(f'%{n}' for n in names)} : {type}{arrow}",
        result,
        dtypes,
        SIZES,
        ulps=ulps,
        note=note,
        absolute=absolute,
    )


ARITHMETIC = (
    *(_row(name, 1, NUMBERS) for name in ("neg", "abs", "sign", "square")),
    *(_row(name, 1, FLOATS) for name in ("reciprocal", "ceil", "floor", "round", "trunc")),
    *(_row(name, 2, NUMBERS) for name in ("add", "sub", "mul", "div", "rem", "mod", "floor_div")),
    _row("fma", 3, FLOATS),
)
TRANSCENDENTAL = (
    _row("sqrt", 1, FLOATS, ulps=0.5),
    _row("rsqrt", 1, FLOATS, ulps=2),
    *(
        _row(name, 1, FLOATS, ulps=4)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
            *("asinh", "acosh", "atanh", "erf", "erfc"),
        )
    ),
    _row("atan2", 2, FLOATS, ulps=4),
    _row("hypot", 2, FLOATS, ulps=4),
    _row("pow", 2, FLOATS, ulps=4),
    _row("pow", 2, INTEGERS, note="integer"),
)
BITWISE = (
    _row("not", 1, (*INTEGERS, "i1")),
    *(_row(name, 1, INTEGERS) for name in ("popcount", "clz")),
    *(_row(name, 2, (*INTEGERS, "i1")) for name in ("and", "or", "xor")),
    *(_row(name, 2, INTEGERS) for name in ("shift_left", "shift_right")),
)
COMPARE = (
    *(_row(name, 2, ALL, to="i1") for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(_row(name, 1, FLOATS, to="i1") for name in ("isnan", "isinf", "isfinite")),
    *(_row(name, 2, NUMBERS) for name in ("max", "min")),
    _row("copysign", 2, FLOATS),
    _row("clamp", 3, NUMBERS),
    Row(
        "nd.select",
        {"c": "tensor<3x?xi1>", "a": "tensor<3x?x{e}>", "b": "tensor<3x?x{e}>"},
        "%y = nd.select %c, %a, %b : tensor<3x?x{e}>",
        "tensor<3x?x{e}>",
        ALL,
        SIZES,
    ),
)
CONVERT = (
    *(_row("cast", 1, ALL, to=to, note=f"to-{to}") for to in ALL),
    *(
        _row("bitcast", 1, same, to=to, note=f"to-{to}")
        for same in (
            ("f64", "i64", "ui64"),
            ("f32", "i32", "ui32"),
            ("f16", "bf16", "i16", "ui16"),
            ("i8", "ui8"),
        )
        for to in same
    ),
    Row(
        "nd.cast",
        {"x": "tensor<2x3x{e}>"},
        "%y = nd.cast %x : tensor<2x3x{e}> -> tensor<2x3xi32>",
        "tensor<2x3xi32>",
        FLOATS,
        values=spread,
        note="static",
    ),
)
ROWS: tuple[Row, ...] = (*ARITHMETIC, *TRANSCENDENTAL, *BITWISE, *COMPARE, *CONVERT)
