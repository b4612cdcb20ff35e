"""Random calls of ufuncs, of their methods, and of operators."""

from __future__ import annotations

from functools import cache

import numpy as np

from stepwell.frontend.facade import facades
from stepwell.testing.numpy_calls.values import Call, Draw

NEAR = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh"),
    *("cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "arctan2"),
    *("power", "float_power", "cbrt", "hypot", "logaddexp", "logaddexp2"),
}
"""Ufuncs whose results may differ by a few units in the last place."""
FREE_ZEROS = {"maximum", "minimum", "fmax", "fmin"}
OPERATORS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "floor_divide",
    "%": "remainder",
    "**": "power",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "left_shift",
    ">>": "right_shift",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "@": "matmul",
}


@cache
def names() -> list[str]:
    """Return the names of ufuncs to draw from."""
    return sorted(n for n, f in facades().items() if hasattr(f, "nin"))


def _rounding(own: str) -> str:
    return "near" if own in NEAR else "sums" if own in ("matmul", "vecdot") else "exact"


def ufunc(g: Draw) -> Call:
    """Return a call of a ufunc."""
    name = g.name(names())
    theirs = getattr(np, name)
    own = theirs.__name__
    if own in ("matmul", "vecdot", "matvec", "vecmat"):
        return _product(g, f"m.{name}({{}}, {{}})", own)
    shape = g.shape()
    operands = [g.array(shape)]
    operands += [g.operand(shape) for _ in range(theirs.nin - 1)]
    if theirs.nin == 2 and g.chance(0.3):
        operands.reverse()
    if theirs.nin == 1 and g.chance(0.05):
        operands = [g.scalar()]
    more = ", dtype=np.float64" if g.chance(0.03) else ""
    text = f"r = m.{name}({', '.join(operands)}{more})"
    module = g.pick(("np", "snp"))
    return Call(text, g.arrays, name, module, _rounding(own), own in FREE_ZEROS)


def _product(g: Draw, text: str, own: str) -> Call:
    g.tame = True
    k, batch = g.pick((0, 1, 2, 4)), g.shape(0, 2)
    if own == "vecdot":
        shapes = [(*batch, k), (*g.like(batch), k)]
    else:
        left = [(k,), (3, k), (*batch, 2, k), (1, k)]
        right = [(k,), (k, 3), (*g.like(batch), k, 2), (k, 1)]
        shapes = [g.pick(left), g.pick(right)]
    a, b = (g.array(s) for s in shapes)
    return Call(f"r = {text.format(a, b)}", g.arrays, own, "np", "sums")


def operator(g: Draw) -> Call:
    """Return an operator between arrays and numbers."""
    sign = g.pick(list(OPERATORS))
    own = OPERATORS[sign]
    if sign == "@":
        return _product(g, "{} @ {}", own)
    if sign in ("&", "|", "^", "<<", ">>") and g.chance(0.8):
        kinds = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
        shape = g.shape()
        a = g.array(shape, g.pick(kinds))
        b = g.array(g.like(shape), g.pick(kinds)) if g.chance(0.6) else g.pick(("1", "3", "True"))
    else:
        shape = g.shape()
        a, b = g.array(shape), g.operand(shape)
    if g.chance(0.25):
        a, b = b, a
    if g.chance(0.15) and a in g.arrays and np.ndim(g.of(a)):
        text = f"y = {a}.copy(); y {sign}= {b}; r = y"
        if sign in ("==", "!=", "<", "<=", ">", ">="):
            text = f"r = {a} {sign} {b}"
    else:
        text = f"r = {a} {sign} {b}"
    return Call(text, g.arrays, sign, "np", _rounding(own))


def unary(g: Draw) -> Call:
    """Return an operator of one array."""
    sign = g.pick(("-", "+", "~", "abs", "divmod", "round"))
    a = g.array()
    if sign == "divmod":
        return Call(f"r = divmod({a}, {g.operand(g.of(a).shape)})", g.arrays, sign)
    if sign in ("abs", "round"):
        return Call(f"r = {'abs' if sign == 'abs' else 'np.round'}({a})", g.arrays, sign)
    return Call(f"r = {sign}{a}", g.arrays, f"{sign}x")


def of_ufunc(g: Draw) -> Call:
    """Return a call of a method of a ufunc."""
    g.tame = True
    method = g.pick(("reduce", "accumulate", "outer"))
    if method == "outer":
        name = g.pick(("add", "multiply", "subtract", "maximum", "less", "power", "divide"))
        text = f"r = m.{name}.outer({g.array(g.shape(0, 2))}, {g.array(g.shape(0, 2))})"
        return Call(text, g.arrays, f"{name}.outer", g.pick(("np", "snp")), _rounding(name), True)
    name = g.pick(("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"))
    name = name if method == "reduce" or not name.startswith("logical") else "add"
    a = g.array(g.shape(1))
    rank = g.of(a).ndim
    axis = "" if g.chance(0.3) else f", axis={g.axis(rank, none=method == 'reduce')}"
    text = f"r = m.{name}.{method}({a}{axis})"
    return Call(text, g.arrays, f"{name}.{method}", g.pick(("np", "snp")), "sums", True)
