"""Rules that add one call: pointwise, moves, indexing, reductions, products."""

from __future__ import annotations

from math import prod

from stepwell.testing.user_programs.draw import PRODUCTS, Draw, is_float, is_number, need
from stepwell.testing.user_programs.known import DIGITS, INTEGERS, Known

Rule = int | None


def unary(g: Draw) -> Rule:
    """Add an elementwise op of one operand."""
    x = need(g.any())
    k = g.known(x)
    if k.dtype == "bool":
        return g.add("not", x)
    if k.floats and g.chance(0.4):
        names = ("tanh", "sin", "decay", "log1p", "root", "logistic")
        return g.add(g.pick(names), need(g.tame(x, 8)))
    name = g.pick(("neg", "abs", "relu", "square", "plus", "from", "times", "clip", "positive"))
    if name in ("plus", "from", "times"):
        return g.add(name, x, by=g.pick((1, 2, 3)))
    if name == "clip":
        return g.tame(x, g.pick((1, 3)))
    if name in ("neg", "from") and k.dtype[0] == "u":
        name = "relu"
    return g.add(name, x)


def integer(g: Draw) -> Rule:
    """Add an op of integers only."""
    x = need(g.any(lambda k: k.dtype in INTEGERS))
    if g.chance(0.3) and g.known(x).dtype in ("i32", "u32", "i64"):
        return g.add("hash", x)
    return g.add(g.pick(("floor_divide", "remainder")), x, by=g.pick((2, 3, 7)))


def other(g: Draw, x: int) -> int:
    """Return an operand to combine with ``x``: of its shape, or one that broadcasts to it."""
    k = g.known(x)
    if g.chance(0.6):
        return g.like(x)

    def fits(o: Known) -> bool:
        if o.dtype != k.dtype or len(o.shape) > len(k.shape):
            return False
        tail = k.shape[len(k.shape) - len(o.shape) :]
        return all(n in (1, m) for n, m in zip(o.shape, tail, strict=True))

    found = g.any(fits)
    return g.like(x) if found is None else found


def binary(g: Draw) -> Rule:
    """Add an elementwise op of two operands."""
    x = need(g.any(is_number))
    y = other(g, x)
    names = ("add", "sub", "mul", "maximum", "minimum", "add", "less", "greater_equal", "equal")
    name = g.pick((*names, "over") if g.known(x).floats else names)
    if g.known(x).dtype[0] == "u" and name == "sub":
        name = "add"
    return g.add(name, x, y)


def choose(g: Draw) -> Rule:
    """Add a call of where."""
    x = need(g.any())
    shape = g.known(x).shape
    c = g.any(lambda k: k.dtype == "bool" and k.shape in (shape, ()))
    if c is None:
        c = g.add("positive", need(g.any(lambda k: is_number(k) and k.shape == shape)))
    elif g.chance(0.3):
        c = g.add("both", c, g.like(c))
    if g.chance(0.3) and g.known(x).dtype != "bool":
        return g.add("masked", need(c), x)
    return g.add("where", need(c), x, g.like(x))


def cast(g: Draw) -> Rule:
    """Add a cast to another dtype."""
    x = need(g.any())
    dtype = g.pick(g.kinds)
    k = g.known(x)
    if k.floats and dtype not in DIGITS:
        x = need(g.tame(x, 6))
        if g.known(x).greatest and dtype[0] == "u":
            x = need(g.add("abs", x))
    return g.add("cast", x, dtype=dtype)


def move(g: Draw) -> Rule:
    """Add a transpose, reshape, broadcast, reversal, slice or the like."""
    x = need(g.any())
    shape = list(g.known(x).shape)
    rank = len(shape)
    if not rank:
        return g.add("broadcast_to", x, shape=g.pick(((7,), (127,), (3, 4))))
    return g.pick((_reshaped, _longer, _turned))(g, x, shape, g.random.randrange(rank))


def _reshaped(g: Draw, x: int, shape: list[int], axis: int) -> Rule:
    n = shape[axis]
    match g.random.randrange(4):
        case 0 if n % 2 == 0 and n:
            return g.add("reshape", x, shape=(*shape[:axis], 2, n // 2, *shape[axis + 1 :]))
        case 1:
            return g.add("expand_dims", x, axis=axis)
        case 2 if len(shape) > 1:
            return g.add("transpose", x, axes=tuple(g.random.sample(range(len(shape)), len(shape))))
        case _:
            return g.add("reshape", x, shape=(prod(shape),))


def _longer(g: Draw, x: int, shape: list[int], axis: int) -> Rule:
    match g.random.randrange(4):
        case 0 if prod(shape) < 8192:
            return g.add("broadcast_to", x, shape=(g.pick((2, 5)), *shape))
        case 1 if prod(shape) < 8192:
            return g.add("repeat", x, by=2, axis=axis)
        case 2:
            return g.add("pad", x, widths=tuple((g.pick((0, 1, 2)), g.pick((0, 1))) for _ in shape))
        case _:
            return g.add(g.pick(("concat", "stack")), x, g.like(x), axis=axis)


def _turned(g: Draw, x: int, shape: list[int], axis: int) -> Rule:
    match g.random.randrange(4):
        case 0:
            return g.add("flip", x, axis=axis)
        case 1:
            return g.add("roll", x, by=g.pick((1, 2, -1)), axis=axis)
        case 2 if len(shape) > 1:
            return g.add(g.pick(("tril", "triu")), x)
        case _:
            return g.add("slice", x, at=_some(g, shape))


def _some(g: Draw, shape: list[int]) -> tuple[object, ...]:
    at: list[object] = []
    for n in shape:
        whole = slice(None)
        parts = (whole, whole, slice(1, None), slice(None, -1), slice(None, None, 2))
        more = (slice(None, None, -1), slice(n // 4, n // 4 + max(n // 2, 1)))
        at.append(g.pick((*parts, *more)) if n > 1 else whole)
        if n > 1 and g.chance(0.1):
            at[-1] = g.pick((0, -1, n // 2))
    return tuple(at)


def places(g: Draw, n: int, distinct: bool) -> int:
    """Return an operand of indices into an axis of size ``n``."""

    def fits(k: Known) -> bool:
        inside = bool(((k.array >= 0) & (k.array < n)).all()) if k.is_index else False
        once = len(set(k.array.reshape(-1).tolist())) == k.array.size if inside else False
        return inside and len(k.shape) == 1 and k.array.size > 0 and (once or not distinct)

    found = g.any(fits) if g.chance(0.4) else None
    if found is not None:
        return found
    if distinct or g.chance(0.3):
        return g.leaf("i32", (n,), "permutation")
    return g.leaf(g.pick(("i32", "i32", "i64")), (g.pick((1, 4, n, 20)),), low=0, high=n)


def gather(g: Draw) -> Rule:
    """Add a read at computed indices."""
    x = need(g.any(lambda k: len(k.shape) > 0 and k.shape[0] > 0))
    shape = list(g.known(x).shape)
    if g.chance(0.15) and len(shape) > 1:
        found = g.leaf("i32", (*shape[:-1], 3), low=0, high=shape[-1])
        return g.add("take_along", x, found, axis=len(shape) - 1)
    i = places(g, shape[0], False)
    if g.chance(0.3) and len(shape) > 1 and g.known(i).shape[0] <= shape[0]:
        rows = g.leaf("i32", g.known(i).shape, "range")
        j = places(g, shape[1], False)
        if g.known(j).shape == g.known(rows).shape:
            return g.add("take", x, rows, j, at=[[1], [2]])
    if g.chance(0.2) and len(shape) > 1:
        j = places(g, shape[1], False)
        return g.add("take", x, j, at=[slice(None), [1]])
    return g.add("take", x, i, at=[[1]])


def scatter(g: Draw) -> Rule:
    """Add a write at computed indices, often of the values that are there already."""
    x = need(g.any(lambda k: len(k.shape) > 0 and k.shape[0] > 0 and is_number(k)))
    shape = g.known(x).shape
    how = g.pick(("set", "set", "add", "add", "min", "max"))
    i = places(g, shape[0], how == "set")
    if g.known(i).array.size == shape[0]:
        updates = x if g.chance(0.4) else g.like(x)
    else:
        updates = need(g.add("take", x, i, at=[[1]]))
    if g.chance(0.15):
        return g.add("put_number", x, i, at=[[1]], by=g.pick((0, 1, 2)), how=how)
    return g.add("put", x, updates, i, at=[[2]], how=how)


def part(g: Draw) -> Rule:
    """Add a write of a slice or an element."""
    x = need(g.any(lambda k: len(k.shape) > 0 and min(k.shape) > 0 and is_number(k)))
    shape = list(g.known(x).shape)
    how = g.pick(("set", "add", "max", "multiply"))
    match g.random.randrange(4):
        case 0:
            return g.add("put_number", x, at=[g.random.randrange(shape[0])], by=2, how=how)
        case 1:
            at = list(_some(g, shape))
            values = need(g.add("slice", g.like(x), at=tuple(at)))
            return g.add("put", x, values, at=at, how=how)
        case 2:
            i = need(_place(g, shape[0]))
            return g.add("put_number", x, i, at=[[1]], by=g.pick((0, 1)), how=how)
        case _:
            at = [g.random.randrange(n) for n in shape]
            values = need(g.add("slice", g.like(x), at=tuple(at)))
            return g.add("put", x, values, at=at, how=how)


def _place(g: Draw, n: int) -> Rule:
    """Return a 0-d operand that is an index into an axis of size ``n``."""
    found = g.any(lambda k: k.is_index and k.shape == () and 0 <= int(k.array) < n)
    return g.leaf("i32", (), low=0, high=n) if found is None else found


def dynamic(g: Draw) -> Rule:
    """Add a read or write of a slice with traced starts."""
    x = need(g.any(lambda k: 0 < len(k.shape) < 3 and min(k.shape) > 0 and is_number(k)))
    shape = g.known(x).shape
    starts = [need(_place(g, n)) for n in shape]
    sizes = tuple(max(n // g.pick((1, 2, 3)), 1) for n in shape)
    y = need(g.add("dynamic_slice", x, *starts, sizes=sizes))
    if g.chance():
        return g.add("dynamic_update_slice", x, y if g.chance() else g.like(y), *starts)
    return y


def reduce(g: Draw) -> Rule:
    """Add a reduction along an axis, or of all."""
    x = need(g.any(lambda k: len(k.shape) > 0 and min(k.shape) > 0))
    k = g.known(x)
    axis = g.pick((*range(len(k.shape)), len(k.shape) - 1, None))
    if k.dtype == "bool":
        return g.add("any", x, axis=axis)
    names = ("sum", "sum", "max", "min", "argmax", "argmin", "cumulative_sum")
    name = g.pick((*names, "mean", "var", "softmax", "log_softmax") if k.floats else names)
    keep = g.chance(0.3)
    if name in ("softmax", "log_softmax", "cumulative_sum", "argmax", "argmin"):
        axis = len(k.shape) - 1 if axis is None else axis
    if name.startswith("arg"):
        return g.add(name, x, axis=axis)
    if name in ("softmax", "log_softmax"):
        return g.add(name, need(g.tame(x, 8)), axis=axis)
    if name in ("sum", "cumulative_sum"):
        x = need(g.tame(x, 3))
        return g.add(name, x, axis=axis, dtype=k.dtype, keep=keep)
    return g.add(name, x, axis=axis, keep=keep)


def norm(g: Draw) -> Rule:
    """Add a normalization of the last axis, with or without a scale and a bias."""
    x = need(g.any(lambda k: is_float(k) and len(k.shape) > 0 and k.shape[-1] > 1))
    k = g.known(x)
    x = need(g.tame(x, 8))
    if g.chance():
        return g.add("layer_norm", x)
    scale, bias = (g.leaf(k.dtype, k.shape[-1:]) for _ in range(2))
    return g.add("layer_norm", x, scale, bias)


def product(g: Draw) -> Rule:
    """Add a matrix product: plain, batched, with a vector, or with a broadcast operand."""
    x = need(g.any(lambda k: 0 < len(k.shape) < 5 and min(k.shape) > 0 and is_number(k)))
    x = need(g.tame(x, 3))
    k = g.known(x)
    depth, rows = k.shape[-1], prod(k.shape[:-1])
    columns = g.pick((1, 3, 16, 33, 64, 200))
    if rows * depth * columns > PRODUCTS or rows * columns > 1 << 17:
        columns = 2
    if len(k.shape) > 2 and g.chance():
        w = _weights(g, x, (*k.shape[:-2], depth, columns))
    elif g.chance(0.2):
        w = _weights(g, x, (depth,))
    elif g.chance(0.3) and len(k.shape) == 2:
        w = _weights(g, x, (columns, depth))
        return g.add("einsum", x, w, text="ij,kj->ik", depth=depth)
    else:
        w = _weights(g, x, (depth, columns))
    return g.add("matmul", x, w, depth=depth)


def _weights(g: Draw, x: int, shape: tuple[int, ...]) -> int:
    """Return an operand of ``shape``: existing, new, or computed from a smaller one."""
    dtype = g.known(x).dtype
    found = g.any(lambda k: k.dtype == dtype and k.shape == shape)
    if found is not None and g.chance():
        return need(g.tame(found, 3))
    if len(shape) > 1 and g.chance(0.3):
        small = g.leaf(dtype, (*(1 for _ in shape[:-1]), shape[-1]) if g.chance() else shape[-2:])
        small = need(g.add("plus", small, by=1))
        return need(g.add("broadcast_to", small, shape=shape))
    return g.leaf(dtype, shape)


RULES = (
    *(unary, unary, unary, unary, binary, binary, binary, binary, binary, binary),
    *(choose, choose, cast, cast, integer),
    *(move, move, move, gather, gather, scatter, scatter, part, dynamic),
    *(reduce, reduce, reduce, norm, product, product),
)
SMALL = (unary, binary, binary, choose, move, part, scatter, reduce, gather)
"""Rules for the bodies of loops, if their operands exist."""
