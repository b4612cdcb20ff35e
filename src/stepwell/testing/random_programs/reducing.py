"""Reductions, cumulative and windowed ones, contractions, and composites of them."""

from __future__ import annotations

from stepwell.testing.random_programs.pointwise import GENTLE, unary
from stepwell.testing.random_programs.program import LARGEST, Program, Size, Value


def _arrow(x: Value, shape: tuple[Size, ...], dtype: str | None = None) -> str:
    return f"{x.type} -> {Value('', shape, dtype or x.dtype).type}"


def _without(x: Value, axes: list[int]) -> tuple[Size, ...]:
    return tuple(n for a, n in enumerate(x.shape) if a not in axes)


def _count(x: Value, axes: list[int]) -> float:
    """Return the largest possible number of elements along ``axes``."""
    total = 1.0
    for axis in axes:
        size = x.shape[axis]
        total *= size if isinstance(size, int) else 3 * LARGEST
    return total


def reduce(p: Program, x: Value) -> Value:
    """Add a reduction over one axis or all."""
    if not x.shape:
        return unary(p, x)
    axes = [p.number(0, len(x.shape) - 1)] if p.chance() else list(range(len(x.shape)))
    names: tuple[str, ...] = ("sum", "max", "min")
    if x.dtype == "i1":
        names = ("or", "and", "max")
    elif not x.floats:
        names = ("sum", "max", "min", "prod", "and", "or")
    name = p.pick(names)
    bound = x.bound
    if bound is not None and name == "sum":
        bound *= _count(x, axes)
    shape = _without(x, axes)
    text = f"nd.reduce_{name} %{x.name} {{axes = {axes}}}"
    return p.op(text, shape, x.dtype, bound, types=_arrow(x, shape))


def argmax(p: Program, x: Value) -> Value:
    """Add an argmax or argmin, along an axis that is never empty."""
    known = [a for a, n in enumerate(x.shape) if isinstance(n, int) and n > 0]
    if not known or not x.exact:
        return reduce(p, x)
    axis = p.pick(known)
    shape, to = _without(x, [axis]), p.pick(("i64", "i32"))
    text = f"nd.{p.pick(('argmax', 'argmin'))} %{x.name} {{axis = {axis}}}"
    return p.op(text, shape, to, types=_arrow(x, shape, to))


def running(p: Program, x: Value) -> Value:
    """Add a cumulative sum or maximum."""
    if not x.shape or x.dtype == "i1":
        return unary(p, x)
    axis = p.number(0, len(x.shape) - 1)
    name = p.pick(("sum", "max", "min", *(() if x.floats else ("prod",))))
    flags = f"{', exclusive' if p.chance() else ''}{', reverse' if p.chance() else ''}"
    bound = None if x.bound is None else x.bound * _count(x, [axis])
    text = f"nd.cumulative_{name} %{x.name} {{axis = {axis}{flags}}}"
    return p.op(text, x.shape, x.dtype, bound, types=_arrow(x, x.shape))


def window(p: Program, x: Value) -> Value:
    """Add sums or maxima of windows along one axis."""
    if not x.shape or x.dtype == "i1":
        return unary(p, x)
    axis = p.number(0, len(x.shape) - 1)
    extent, stride, low = p.number(1, 3), p.number(1, 2), p.number(0, 1)
    old = x.shape[axis]
    size: Size = p.fresh("d")
    if isinstance(old, int):
        size = max((old + low - extent) // stride + 1, 0)
    each = [f"[{', '.join(str(v if a == axis else d) for a in range(len(x.shape)))}]"
            for v, d in ((extent, 1), (stride, 1), (low, 0), (0, 0))]  # fmt: skip
    how = f"window = {each[0]}, strides = {each[1]}, low = {each[2]}, high = {each[3]}"
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    bound = None if x.bound is None else 3 * x.bound
    text = f"nd.window_{p.pick(('sum', 'max', 'min'))} %{x.name} {{{how}}}"
    return p.op(text, shape, x.dtype, bound, types=_arrow(x, shape))


def matmul(p: Program, x: Value) -> Value:
    """Add a matrix product."""
    if x.dtype == "i1" or not x.shape or len(x.shape) > 2:
        return reduce(p, x)
    k = x.shape[len(x.shape) - 1]
    w = p.some(lambda v: v.dtype == x.dtype and len(v.shape) == 2 and v.shape[0] == k)
    if w is None:
        if not p.plain([k]):
            return reduce(p, x)
        w = p.argument((k, p.pick(p.lengths())), x.dtype)
    shape = (*x.shape[:-1], w.shape[1])
    count = _count(x, [len(x.shape) - 1])
    bound = None if x.bound is None or w.bound is None else x.bound * w.bound * count
    types = f"({x.type}, {w.type}) -> {Value('', shape, x.dtype).type}"
    return p.op(f"nd.matmul %{x.name}, %{w.name}", shape, x.dtype, bound, types=types)


def batched(p: Program, x: Value) -> Value:
    """Add a dot product along the last axis, batched over the first."""
    if x.dtype == "i1" or len(x.shape) < 2 or not p.plain(x.shape):
        return matmul(p, x)
    last = len(x.shape) - 1
    columns = p.pick((2, 3))
    w = p.argument((x.shape[0], columns, x.shape[last]), x.dtype)
    shape = (*x.shape[:last], columns)
    bound = None if x.bound is None else x.bound * 3.0 * _count(x, [last])
    types = f"({x.type}, {w.type}) -> {Value('', shape, x.dtype).type}"
    how = f"batch [0] x [0] contract [{last}] x [2]"
    return p.op(f"nd.dot_general %{x.name}, %{w.name} {how}", shape, x.dtype, bound, types=types)


def convolution(p: Program, x: Value) -> Value:
    """Add a convolution along the last axis."""
    known = len(x.shape) == 3 and all(isinstance(n, int) for n in x.shape[1:])
    if x.dtype == "i1" or not known:
        return batched(p, x)
    _, features, length = x.shape
    assert isinstance(features, int) and isinstance(length, int)
    w = p.argument((2, features, 3), x.dtype)
    size = max((length + 2 - 3) + 1, 0)
    shape = (x.shape[0], 2, size)
    bound = None if x.bound is None else x.bound * 9.0 * max(features, 1)
    types = f"({x.type}, {w.type}) -> {Value('', shape, x.dtype).type}"
    text = f"nd.convolution %{x.name}, %{w.name} {{low = [1], high = [1]}}"
    return p.op(text, shape, x.dtype, bound, types=types)


def _image(p: Program, x: Value, channels: tuple[int, ...]) -> Value:
    """Return an image (batch, channels, rows, columns), where only the batch may be dynamic."""

    def fits(v: Value) -> bool:
        known = len(v.shape) == 4 and all(isinstance(n, int) and n for n in v.shape[1:])
        return known and v.dtype == x.dtype and v.shape[1] in channels

    found = p.some(fits)
    if found is not None:
        return found
    batch = p.pick([2, *(n for n in p.known if p.plain([n]))])
    shape = (batch, p.pick(channels), p.pick((5, 1, 8)), p.pick((4, 7, 1)))
    return p.argument(shape, x.dtype)


def filtered(p: Program, x: Value) -> Value:
    """Add a convolution of an image: any groups, strides, padding and dilation."""
    if x.dtype == "i1":
        return reduce(p, x)
    x = _image(p, x, (4, 1, 6))
    channels = x.shape[1]
    assert isinstance(channels, int)
    divisors = [1, channels, 2] if channels % 2 == 0 else [1, channels]
    groups = p.pick(divisors)
    created = groups * p.pick((1, 2, 3))
    sizes = [p.pick((3, 1, 2)) for _ in range(2)]
    numbers = {"strides": (1, 2), "low": (0, 1, 3), "high": (0, 1)}
    numbers |= {"rhs_dilation": (1, 2), "lhs_dilation": (1, 2)}
    how = {name: [p.pick(some) for _ in range(2)] for name, some in numbers.items()}
    places: list[int] = []
    for axis, size in enumerate(sizes):
        old = x.shape[2 + axis]
        assert isinstance(old, int)
        long = (old - 1) * how["lhs_dilation"][axis] + 1 + how["low"][axis] + how["high"][axis]
        left = long - ((size - 1) * how["rhs_dilation"][axis] + 1)
        places.append(max(left // how["strides"][axis] + 1, 0))
    w = p.argument((created, channels // groups, *sizes), x.dtype)
    if x.floats and max(how["lhs_dilation"]) > 1:
        w = _finite(p, w)
    shape = (x.shape[0], created, *places)
    bound = None if x.bound is None else x.bound * 27.0 * channels // groups
    spelled = ", ".join(f"{name} = {each}" for name, each in how.items())
    types = f"({x.type}, {w.type}) -> {Value('', shape, x.dtype).type}"
    text = f"nd.convolution %{x.name}, %{w.name} {{groups = {groups}, {spelled}}}"
    return p.op(text, shape, x.dtype, bound, types=types)


def _finite(p: Program, w: Value) -> Value:
    """Return ``w`` with non-finite elements as 0: their product with a hole is unspecified."""
    shape = Value("", w.shape, "i1").type
    finite = p.op(f"nd.isfinite %{w.name}", w.shape, "i1", types=f"{w.type} -> {shape}")
    zero = p.op(f"nd.cast %{finite.name}", w.shape, w.dtype, 1.0, types=f"{shape} -> {w.type}")
    return p.op(f"nd.select %{finite.name}, %{w.name}, %{zero.name}", w.shape, w.dtype, w.bound)


def pool(p: Program, x: Value) -> Value:
    """Add a maximum or mean pooling of an image."""
    if x.dtype == "i1":
        return reduce(p, x)
    x = _image(p, x, (3, 1, 4, 6))
    numbers = {"window": (2, 3, 1), "strides": (2, 1), "low": (0, 1), "high": (0, 1)}
    how = {name: [p.pick(some) for _ in range(2)] for name, some in numbers.items()}
    shape = list(x.shape)
    for axis in range(2):
        old, size = x.shape[2 + axis], how["window"][axis]
        assert isinstance(old, int)
        how["low"][axis], how["high"][axis] = (min(how[n][axis], size - 1) for n in ("low", "high"))
        left = old + how["low"][axis] + how["high"][axis] - size
        shape[2 + axis] = max(left // how["strides"][axis] + 1, 0)
    mean = x.floats and x.exact and p.chance()
    spelled = ", ".join(f"{name} = {each}" for name, each in how.items())
    text = f"nd.{'avg' if mean else 'max'}_pool %{x.name} {{{spelled}}}"
    return p.op(text, shape, x.dtype, None if mean else x.bound, types=_arrow(x, tuple(shape)))


def composite(p: Program, x: Value) -> Value:
    """Add a softmax or a similar composite."""
    if not x.floats or not x.shape or x.bound is None or x.bound > GENTLE:
        return reduce(p, x)
    axis = p.number(0, len(x.shape) - 1)
    name = p.pick(("softmax", "log_softmax", "layer_norm", "rms_norm", "mean", "logsumexp"))
    if name in ("mean", "logsumexp"):
        shape = _without(x, [axis])
        return p.op(
            f"nd.{name} %{x.name} {{axes = [{axis}]}}", shape, x.dtype, types=_arrow(x, shape)
        )
    eps = ", eps = 0.01" if name.endswith("norm") else ""
    return p.op(f"nd.{name} %{x.name} {{axis = {axis}{eps}}}", x.shape, x.dtype)


OPS = (
    *(reduce, reduce, argmax, running, window, matmul, matmul, batched, convolution, composite),
    *(filtered, pool),
)
