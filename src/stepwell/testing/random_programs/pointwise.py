"""Elementwise ops, and ops that create tensors."""

from __future__ import annotations

from stepwell.testing.random_programs.program import EXACT, FLOATS, INTEGERS, Program, Value

_BITS = {"i1": 0, "i8": 8, "ui8": 8, "i16": 16, "ui16": 16}
GENTLE = 16.0
"""The largest operand of functions that grow quickly."""


def unary(p: Program, x: Value) -> Value:
    """Add an op that is exact on integers."""
    same = (x.shape, x.dtype)
    if x.dtype == "i1":
        return p.op(f"nd.not %{x.name}", *same)
    if not x.floats:
        return p.op(f"nd.{p.pick(('neg', 'abs', 'not', 'square', 'popcount'))} %{x.name}", *same)
    if not x.exact:
        return p.op(f"nd.{p.pick(('neg', 'abs', 'relu', 'tanh', 'sigmoid'))} %{x.name}", *same)
    assert x.bound is not None
    name = p.pick(("neg", "abs", "relu", "relu6", "sign", "floor", "round", "trunc", "square"))
    bound = x.bound**2 if name == "square" else max(x.bound, 1.0)
    return p.op(f"nd.{name} %{x.name}", *same, bound)


def transcendental(p: Program, x: Value) -> Value:
    """Add a function of small integers."""
    if not x.floats or x.bound is None or x.bound > GENTLE:
        return unary(p, x)
    names = ("exp", "tanh", "sigmoid", "gelu", "silu", "softplus", "erf", "sin", "cos", "atan")
    return p.op(f"nd.{p.pick(names)} %{x.name}", x.shape, x.dtype)


def root(p: Program, x: Value) -> Value:
    """Add a function of non-negative numbers."""
    if not x.floats or x.bound is None:
        return unary(p, x)
    positive = p.op(f"nd.abs %{x.name}", x.shape, x.dtype, x.bound)
    one = (
        p.op(f"nd.full 1.0{p.sizes(x.shape)}", x.shape, x.dtype, 1.0) if p.has_sizes(x.shape) else x
    )
    if one is x:
        return p.op(f"nd.sqrt %{positive.name}", x.shape, x.dtype)
    away = p.op(f"nd.add %{positive.name}, %{one.name}", x.shape, x.dtype, x.bound + 1)
    if p.chance():
        return p.op(f"nd.div %{x.name}, %{away.name}", x.shape, x.dtype)
    return p.op(f"nd.{p.pick(('sqrt', 'log', 'rsqrt'))} %{away.name}", x.shape, x.dtype)


def binary(p: Program, x: Value) -> Value:
    """Add an op of two tensors of one type."""
    y = p.like(x)
    if x.dtype == "i1":
        names: tuple[str, ...] = ("and", "or", "xor")
    elif x.floats:
        names = ("add", "sub", "mul", "max", "min")
    else:
        names = ("add", "sub", "mul", "max", "min", "xor", "div", "rem", "mod", "floor_div")
    name = p.pick(names)
    x, y = (y, x) if p.chance() else (x, y)
    return p.op(f"nd.{name} %{x.name}, %{y.name}", x.shape, x.dtype, _bound(name, x, y))


def _bound(name: str, x: Value, y: Value) -> float | None:
    if x.bound is None or y.bound is None:
        return None
    if name in ("max", "min"):
        return max(x.bound, y.bound)
    return x.bound * y.bound if name == "mul" else x.bound + y.bound


def compare(p: Program, x: Value) -> Value:
    """Add a comparison, or a test of one float."""
    if not x.exact:
        return unary(p, x)
    arrow = f"{x.type} -> {Value('', x.shape, 'i1').type}"
    if x.floats and p.number(0, 3) == 3:
        name = p.pick(("isnan", "isfinite", "isinf"))
        return p.op(f"nd.{name} %{x.name}", x.shape, "i1", types=arrow)
    y = p.like(x, exact=True)
    name = p.pick(("lt", "ge", "eq", "ne", "gt", "le"))
    return p.op(f"nd.{name} %{x.name}, %{y.name}", x.shape, "i1", types=arrow)


def select(p: Program, x: Value) -> Value:
    """Add a selection between two tensors by a third."""
    y = p.like(x)
    where = p.some(lambda v: v.dtype == "i1" and v.shape == x.shape)
    if where is None:
        known = x if x.exact else y
        where = compare(p, known) if known.exact else None
    if where is None or where.dtype != "i1":
        return unary(p, x)
    bound = None if x.bound is None or y.bound is None else max(x.bound, y.bound)
    return p.op(f"nd.select %{where.name}, %{x.name}, %{y.name}", x.shape, x.dtype, bound)


def cast(p: Program, x: Value) -> Value:
    """Add a cast; only exact values are cast to integers."""
    to = p.pick((*FLOATS, *(INTEGERS if x.exact else ()), *(("i1",) if x.exact else ())))
    bound = x.bound if x.floats else 2.0 ** _BITS.get(x.dtype, 64)
    if bound is not None and to in FLOATS and bound > EXACT[to]:
        bound = None
    if x.floats and not x.exact:
        p.widened.add(x.dtype)
    arrow = f"{x.type} -> {Value('', x.shape, to).type}"
    return p.op(f"nd.cast %{x.name}", x.shape, to, bound, types=arrow)


def clamp(p: Program, x: Value) -> Value:
    """Add a clamp between two other values, or a fused multiply-add."""
    y, z = p.like(x), p.like(x)
    if x.dtype == "i1":
        return binary(p, x)
    bounds = [v.bound for v in (x, y, z)]
    bound = None
    fused = x.floats and p.chance()
    if all(b is not None for b in bounds):
        a, b, c = (v or 0.0 for v in bounds)
        bound = a * b + c if fused else max(a, b, c)
    name = "fma" if fused else "clamp"
    return p.op(f"nd.{name} %{x.name}, %{y.name}, %{z.name}", x.shape, x.dtype, bound)


def full(p: Program, x: Value) -> Value:
    """Add a tensor of the type of ``x``: a splat, or iota along an axis."""
    if not p.has_sizes(x.shape) or x.dtype == "i1":
        return unary(p, x)
    if x.shape and p.chance():
        axis = p.number(0, len(x.shape) - 1)
        sizes = p.sizes(x.shape).removeprefix(",")
        return p.op(f"nd.iota{sizes} {{axis = {axis}}}", x.shape, x.dtype, 100.0)
    number = p.pick((1, 2, 0, 7))
    written = f"{number}.0" if x.floats else str(number)
    return p.op(f"nd.full {written}{p.sizes(x.shape)}", x.shape, x.dtype, float(number))


def constant(p: Program, x: Value) -> Value:
    """Add a constant table, of the shape of ``x`` if that is static."""
    if not all(isinstance(n, int) for n in x.shape) or x.dtype == "i1":
        return full(p, x)
    suffix = ".0" if x.floats else ""

    def table(shape: tuple[int, ...], seed: int) -> str:
        if not shape:
            return f"{seed % 5}{suffix}"
        return f"[{', '.join(table(shape[1:], 3 * seed + i) for i in range(shape[0]))}]"

    shape = tuple(n for n in x.shape if isinstance(n, int))
    if 0 in shape:
        return full(p, x)
    return p.op(f"nd.constant dense<{table(shape, p.number(0, 4))}>", x.shape, x.dtype, 4.0)


OPS = (unary, binary, binary, transcendental, root, compare, select, cast, clamp, full, constant)
