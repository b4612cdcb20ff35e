"""Single calls, with error bounds: pointwise, moves, indexing, reductions, products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from stepwell.testing.user_programs.known import (
    DIGITS,
    DTYPES,
    Known,
    linear,
    magnitude,
    quantum,
    rounding,
    steps,
)
from stepwell.testing.user_programs.recipe import OPS, Op, Told
from stepwell.testing.user_programs.spaces import Plain

How: TypeAlias = Mapping[str, Any]
Apply: TypeAlias = Callable[[Any, Sequence[Any], How], Any]


def _linear(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    return [(ks[0].dtype, linear(ks, y, ks[0].dtype)) for y in ys]


def _jumps(dtype: str) -> Callable[[Sequence[Known], Sequence[Any], How], Told]:
    return lambda ks, ys, how: [(dtype, steps(ks)) for _ in ys]


def _chosen(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    """Bound the error of a selection by the first operand among the others."""
    error = np.inf if steps(ks[:1]) else linear(ks[1:], ys[0], ks[1].dtype)
    return [(ks[1].dtype, error)]


def _indexed(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    """Bound the error of elements that integer operands index."""
    data = [k for k in ks if k.dtype == ks[0].dtype]
    exact = steps([k for k in ks if k.dtype != ks[0].dtype])
    return [(ks[0].dtype, exact or linear(data, y, ks[0].dtype)) for y in ys]


def _product(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    a, b = ks[0], ks[-1]
    if not a.floats:
        return [(a.dtype, steps(ks))]
    error = a.greatest * b.error + b.greatest * a.error + a.error * b.error
    return [(a.dtype, error + rounding(a.dtype, ys[0]))]


def _smooth(slope: float) -> Callable[[Sequence[Known], Sequence[Any], How], Told]:
    """Bound the error of a rounding function: ``slope`` times that of its operand, and its own."""

    def known(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
        off = slope * sum(k.error for k in ks if k.floats)
        off += 8 * max(magnitude(ys[0]), 1e-3) * 2.0 ** -DIGITS[ks[0].dtype]
        return [(ks[0].dtype, off)]

    return known


def _sum(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    x, dtype = ks[0], how["dtype"]
    if dtype not in DIGITS:
        return [(dtype, steps(ks)) for _ in ys]
    count = x.array.size / max(ys[0].size, 1)
    count = max(count, x.shape[how["axis"]] if how.get("axis") is not None else 1)
    terms = magnitude(np.abs(x.array).sum(how.get("axis")))
    return [(dtype, count * x.error + rounding(dtype, ys[0], terms, quantum(x.array)))]


def _same(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    return [(ks[0].dtype, steps(ks)) for _ in ys]


def _contracted(apply: Apply) -> Callable[[Sequence[Known], Sequence[Any], How], Told]:
    """Bound the error of a sum of ``depth`` products."""

    def known(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
        a, b = ks[0], ks[1]
        if not a.floats:
            return [(a.dtype, steps(ks))]
        terms = magnitude(np.asarray(apply(Plain(), [np.abs(a.array), np.abs(b.array)], how)))
        error = how["depth"] * (a.greatest * b.error + b.greatest * a.error)
        unit = quantum(a.array) * quantum(b.array)
        return [(a.dtype, error + rounding(a.dtype, ys[0], terms, unit))]

    return known


def op(name: str, known: Any, apply: Apply) -> None:
    """Add a step to the table."""
    OPS[name] = Op(apply, known)


# pointwise

op("add", _linear, lambda xp, xs, how: xs[0] + xs[1])
op("sub", _linear, lambda xp, xs, how: xs[0] - xs[1])
op("mul", _product, lambda xp, xs, how: xs[0] * xs[1])
op("square", _product, lambda xp, xs, how: xs[0] * xs[0])
op("maximum", _linear, lambda xp, xs, how: xp.maximum(xs[0], xs[1]))
op("minimum", _linear, lambda xp, xs, how: xp.minimum(xs[0], xs[1]))
op("neg", _linear, lambda xp, xs, how: -xs[0])
op("abs", _linear, lambda xp, xs, how: xp.abs(xs[0]))
op("relu", _linear, lambda xp, xs, how: xp.maximum(xs[0], 0))
op("plus", _linear, lambda xp, xs, how: xs[0] + how["by"])
op("from", _linear, lambda xp, xs, how: how["by"] - xs[0])
op("times", _product, lambda xp, xs, how: xs[0] * how["by"])
op("clip", _linear, lambda xp, xs, how: xp.clip(xs[0], how["low"], how["high"]))
op("floor_divide", _same, lambda xp, xs, how: xs[0] // how["by"])
op("remainder", _same, lambda xp, xs, how: xs[0] % how["by"])
for _sign, _name in (("<", "less"), (">=", "greater_equal"), ("==", "equal")):
    op(_name, _jumps("bool"), lambda xp, xs, how, name=_name: getattr(xp, name)(xs[0], xs[1]))
op("positive", _jumps("bool"), lambda xp, xs, how: xs[0] > 0)
op("not", _same, lambda xp, xs, how: ~xs[0])
op("both", _jumps("bool"), lambda xp, xs, how: xs[0] & xs[1])
op("where", _chosen, lambda xp, xs, how: xp.where(xs[0], xs[1], xs[2]))
op("masked", _chosen, lambda xp, xs, how: xp.where(xs[0], xs[1], 0))
op("tanh", _smooth(1), lambda xp, xs, how: xp.tanh(xs[0]))
op("sin", _smooth(1), lambda xp, xs, how: xp.sin(xs[0]))
op("decay", _smooth(1), lambda xp, xs, how: xp.exp(-xp.abs(xs[0])))
op("log1p", _smooth(1), lambda xp, xs, how: xp.log1p(xp.abs(xs[0])))
op("root", _smooth(1), lambda xp, xs, how: xp.sqrt(xs[0] * xs[0] + 1))
op("logistic", _smooth(1), lambda xp, xs, how: 1 / (1 + xp.exp(-xs[0])))
op("over", _smooth(3), lambda xp, xs, how: xs[0] / (xp.abs(xs[1]) + 1))


def _cast(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    dtype = how["dtype"]
    if dtype in DIGITS:
        return [(dtype, linear(ks, ys[0], dtype))]
    x = ks[0]
    if x.floats and x.array.size:  # numbers out of range are converted in NumPy's own way
        range = np.iinfo(DTYPES[dtype]) if dtype != "bool" else None
        if range is not None and not (range.min <= x.array.min() <= x.array.max() <= range.max):
            return [(dtype, np.inf)]
    return [(dtype, steps(ks))]


op("cast", _cast, lambda xp, xs, how: xp.cast(xs[0], how["dtype"]))


def _hash(xp: Any, xs: Sequence[Any], how: How) -> Any:
    x = xp.cast(xs[0], "u32")
    x = (x ^ xp.where_shift(x, 16)) * xp.cast(np.asarray(0x45D9F3B), "u32")
    x = (x ^ xp.where_shift(x, 15)) * xp.cast(np.asarray(0x119DE1F3), "u32")
    return x ^ xp.where_shift(x, 16)


op("hash", _jumps("u32"), _hash)

# moves

op("transpose", _linear, lambda xp, xs, how: xp.permute_dims(xs[0], how["axes"]))
op("reshape", _linear, lambda xp, xs, how: xp.reshape(xs[0], how["shape"]))
op("broadcast_to", _linear, lambda xp, xs, how: xp.broadcast_to(xs[0], how["shape"]))
op("expand_dims", _linear, lambda xp, xs, how: xp.expand_dims(xs[0], axis=how["axis"]))
op("flip", _linear, lambda xp, xs, how: xp.flip(xs[0], axis=how["axis"]))
op("roll", _linear, lambda xp, xs, how: xp.roll(xs[0], how["by"], axis=how["axis"]))
op("repeat", _linear, lambda xp, xs, how: xp.repeat(xs[0], how["by"], axis=how["axis"]))
op("concat", _linear, lambda xp, xs, how: xp.concat(tuple(xs), axis=how["axis"]))
op("stack", _linear, lambda xp, xs, how: xp.stack(tuple(xs), axis=how["axis"]))
op("slice", _linear, lambda xp, xs, how: xs[0][how["at"]])
op("pad", _linear, lambda xp, xs, how: xp.pad(xs[0], how["widths"]))
op("tril", _linear, lambda xp, xs, how: xp.tril(xs[0]))
op("triu", _linear, lambda xp, xs, how: xp.triu(xs[0]))
op("zeros_like", lambda ks, ys, how: [(ks[0].dtype, 0.0)], lambda xp, xs, how: xp.zeros_like(xs[0]))

# indexing: by the integers among the operands


def _at(xs: Sequence[Any], how: How) -> Any:
    """Return the index that ``how`` describes: slices, numbers, and numbers of operands."""
    parts = tuple(xs[p[0]] if isinstance(p, list) else p for p in how["at"])
    return parts[0] if len(parts) == 1 else parts


op("take", _indexed, lambda xp, xs, how: xp.take(xs[0], _at(xs, how)))
op("put", _indexed, lambda xp, xs, how: xp.put(xs[0], _at(xs, how), xs[1], how["how"]))


def _put_number(xp: Any, xs: Sequence[Any], how: How) -> Any:
    return xp.put(xs[0], _at(xs, how), how["by"], how["how"])


op("put_number", _indexed, _put_number)
op(
    "take_along",
    _indexed,
    lambda xp, xs, how: xp.take_along_axis(xs[0], xs[1], axis=how["axis"]),
)
op(
    "dynamic_slice",
    _indexed,
    lambda xp, xs, how: xp.dynamic_slice(xs[0], xs[1:], how["sizes"]),
)
op(
    "dynamic_update_slice",
    _indexed,
    lambda xp, xs, how: xp.dynamic_update_slice(xs[0], xs[1], xs[2:]),
)

# reductions


def _summed(name: str) -> Apply:
    def apply(xp: Any, xs: Sequence[Any], how: How) -> Any:
        y = getattr(xp, name)(xs[0], axis=how["axis"], keepdims=how["keep"])
        return xp.cast(y, how["dtype"])

    return apply


op("sum", _sum, _summed("sum"))
op("any", _jumps("bool"), lambda xp, xs, how: xp.any(xs[0], axis=how["axis"]))


def _mean(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    (x,) = ks
    terms = magnitude(np.abs(x.array).mean(how["axis"]))
    return [(x.dtype, x.error + 8 * max(terms, 1e-3) * 2.0 ** -DIGITS[x.dtype])]


op("mean", _mean, lambda xp, xs, how: xp.mean(xs[0], axis=how["axis"], keepdims=how["keep"]))


def _var(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    (x,) = ks
    spread = 4 * x.greatest
    digits = 2.0 ** -DIGITS[x.dtype]
    return [(x.dtype, spread * x.error + 16 * max(x.greatest**2, 1e-3) * digits)]


op("var", _var, lambda xp, xs, how: xp.var(xs[0], axis=how["axis"], keepdims=how["keep"]))
for _name in ("max", "min"):
    op(
        _name,
        _linear,
        lambda xp, xs, how, name=_name: getattr(xp, name)(
            xs[0], axis=how["axis"], keepdims=how["keep"]
        ),
    )
for _name in ("argmax", "argmin"):
    op(
        _name,
        _jumps("i32"),
        lambda xp, xs, how, name=_name: xp.cast(getattr(xp, name)(xs[0], axis=how["axis"]), "i32"),
    )
op(
    "cumulative_sum",
    _sum,
    lambda xp, xs, how: xp.cast(xp.cumulative_sum(xs[0], axis=how["axis"]), how["dtype"]),
)


def _softmax(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    (x,) = ks
    return [(x.dtype, 2 * x.error + 16 * max(magnitude(ys[0]), 0.1) * 2.0 ** -DIGITS[x.dtype])]


op("softmax", _softmax, lambda xp, xs, how: xp.softmax(xs[0], how["axis"]))
op("log_softmax", _softmax, lambda xp, xs, how: xp.log_softmax(xs[0], how["axis"]))


def _norm(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    x = ks[0]
    least = float(np.sqrt(x.array.var(-1).min() + 1e-5)) if x.array.size else 1.0
    scale = ks[1].greatest if len(ks) > 1 else 1.0
    digits = 2.0 ** -DIGITS[x.dtype]
    off = (x.error + 16 * max(x.greatest, 1.0) * digits) * 4 / least * max(scale, 1.0)
    return [(x.dtype, off + 8 * magnitude(ys[0]) * digits)]


op("layer_norm", _norm, lambda xp, xs, how: xp.layer_norm(*xs))

# products


def _matmul(xp: Any, xs: Sequence[Any], how: How) -> Any:
    return xs[0] @ xs[1]


def _einsum(xp: Any, xs: Sequence[Any], how: How) -> Any:
    return xp.einsum(how["text"], xs[0], xs[1])


def _conv(xp: Any, xs: Sequence[Any], how: How) -> Any:
    return xp.conv(xs[0], xs[1], **how["how"])


for _apply in (_matmul, _einsum, _conv):
    op(_apply.__name__[1:], _contracted(_apply), _apply)
op("max_pool", _linear, lambda xp, xs, how: xp.max_pool(xs[0], how["window"], how["stride"]))


def _batch_norm(ks: Sequence[Known], ys: Sequence[Any], how: How) -> Told:
    x, mean, var, scale, _ = ks
    least = float(np.sqrt(np.asarray(var.array).min() + 1e-5))
    digits = 2.0 ** -DIGITS[x.dtype]
    slope = max(scale.greatest, 1.0) / least
    off = (x.error + 16 * (x.greatest + mean.greatest + 1) * digits) * slope
    return [(x.dtype, off + 8 * magnitude(ys[0]) * digits)]


op("batch_norm", _batch_norm, lambda xp, xs, how: xp.batch_norm(*xs))
