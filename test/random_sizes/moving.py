"""Ops that move elements and combine them along axes."""

from __future__ import annotations

from random import Random

import numpy as np

from random_sizes.ops import Maker, partner, pick
from random_sizes.program import Array, Block, Env, TooLarge, Value, sized, want


def slice_(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None or not x.sizes:
        return
    spans: list[slice] = []
    words: list[str] = []
    sizes, keys = list(x.sizes), list(x.keys)
    for axis, n in enumerate(x.sizes):
        start, stop = r.choice([0, 0, 1, -2]), r.choice([None, None, 4, -1])
        step = r.choice([1, 1, 2])
        spans.append(slice(start or None, stop, step))
        words.append(f"{start or ''}:{'' if stop is None else stop}" + (":2" if step == 2 else ""))
        if (start, stop, step) != (0, None, 1):
            keys[axis] = f"{keys[axis]}[{words[-1]}]"
            sizes[axis] = None if n is None else len(range(n)[spans[-1]])
    if any(n is None and k == 0 for n, k in zip(x.sizes, sizes, strict=True)):
        return
    y = Value(b.fresh(), "i32", tuple(sizes), tuple(keys))
    text = f"nd.slice %{x.name}[{', '.join(words)}] : {x.type} -> {y.type}"
    b.add(y, text, lambda env: env[x.name][tuple(spans)])


def pad(b: Block, r: Random) -> None:
    if (x := pick(b, r, r.choice([1, 2]))) is None:
        return
    rank = len(x.sizes)
    low, high = ([r.choice([0, 1, 2]) for _ in range(rank)] for _ in range(2))
    sizes = tuple(n if n is None else n + a + c for n, a, c in zip(x.sizes, low, high, strict=True))
    keys = tuple(f"{k}+{a + c}" if a + c else k for k, a, c in zip(x.keys, low, high, strict=True))
    zero, y = Value(b.fresh(), "i32", (), ()), Value(b.fresh(), "i32", sizes, keys)
    b.add(zero, "nd.full 5 : tensor<i32>", lambda env: np.int32(5))
    text = f"nd.pad %{x.name}, %{zero.name} {{high = {high}, low = {low}}} : "
    around = list(zip(low, high, strict=True))
    b.add(
        y,
        f"{text}({x.type}, tensor<i32>) -> {y.type}",
        lambda env: np.pad(env[x.name], around, constant_values=5),
    )


def concat(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None or not x.sizes:
        return
    z, axis = partner(b, r, x), r.randrange(len(x.sizes))
    n, m = x.sizes[axis], z.sizes[axis]
    total = None if n is None or m is None else n + m
    sizes, keys = list(x.sizes), list(x.keys)
    sizes[axis], keys[axis] = total, "+".join(sorted((x.keys[axis], z.keys[axis])))
    y = Value(b.fresh(), "i32", tuple(sizes), tuple(keys))

    def joined(env: Env) -> Array:
        p, q = env[x.name], env[z.name]
        want(
            all(s == t for k, (s, t) in enumerate(zip(p.shape, q.shape, strict=True)) if k != axis)
        )
        return np.concatenate([p, q], axis)

    text = f"nd.concat %{x.name}, %{z.name} {{axis = {axis}}} : ({x.type}, {z.type}) -> {y.type}"
    b.add(y, text, joined)


def reverse(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None or not x.sizes:
        return
    axis = r.randrange(len(x.sizes))
    y = Value(b.fresh(), "i32", x.sizes, x.keys)
    text = f"nd.reverse %{x.name} {{axes = [{axis}]}} : {x.type}"
    b.add(y, text, lambda env: np.flip(env[x.name], axis))


def gather(b: Block, r: Random) -> None:
    x, i = pick(b, r), pick(b, r, 1)
    if x is None or i is None or not x.sizes:
        return
    axis = r.randrange(len(x.sizes))
    sizes = (*x.sizes[:axis], *i.sizes, *x.sizes[axis + 1 :])
    keys = (*x.keys[:axis], *i.keys, *x.keys[axis + 1 :])
    y = Value(b.fresh(), "i32", sizes, keys)
    if x.sizes[axis] == 0 or 0 in i.sizes:
        return

    def read(env: Env) -> Array:
        p, at = env[x.name], env[i.name]
        want(p.shape[axis] > 0 or at.size == 0)
        shape = sized((*p.shape[:axis], at.size, *p.shape[axis + 1 :]))
        if p.shape[axis] == 0:
            return np.zeros(shape, np.int32)
        return np.take(p, np.clip(at, 0, p.shape[axis] - 1), axis)

    text = f"nd.gather %{x.name}, indices(%{i.name}) {{axes = [{axis}]}} : ({x.type}, {i.type})"
    b.add(y, f"{text} -> {y.type}", read)


def scatter(b: Block, r: Random) -> None:
    x, i = pick(b, r, 1), pick(b, r, 1)
    if x is None or i is None:
        return
    u = partner(b, r, i)
    y = Value(b.fresh(), "i32", x.sizes, x.keys)
    adds = r.random() < 0.5

    def write(env: Env) -> Array:
        p, at, new = env[x.name].copy(), env[i.name], env[u.name]
        want(at.shape == new.shape)
        if at.size > 2000:
            raise TooLarge
        for k, v in zip(at.tolist(), new, strict=True):
            if 0 <= k < len(p):
                p[k] = p[k] + v if adds else v
        return p

    op = "scatter_add" if adds else "scatter"
    text = f"nd.{op} %{x.name}, %{u.name}, indices(%{i.name}) {{axes = [0]}} : "
    b.add(y, f"{text}({x.type}, {u.type}, {i.type}) -> {y.type}", write)


def _start(b: Block, r: Random) -> Value | None:
    """Return a start, perhaps one out of range."""
    if r.random() < 0.5 and (found := pick(b, r, 0)) is not None:
        return found
    y, n = Value(b.fresh(), "i32", (), ()), r.choice([-1, 0, 1, 3, 500])
    return b.add(y, f"nd.full {n} : tensor<i32>", lambda env: np.int32(n))


def dynamic_slice(b: Block, r: Random) -> None:
    x, s = pick(b, r), _start(b, r)
    if x is None or s is None or not x.sizes:
        return
    axis, k = r.randrange(len(x.sizes)), r.choice([1, 2, 4])
    n = x.sizes[axis]
    if n is not None and n < k:
        return
    sizes = (*x.sizes[:axis], k, *x.sizes[axis + 1 :])
    y = Value(b.fresh(), "i32", sizes, (*x.keys[:axis], str(k), *x.keys[axis + 1 :]))

    def part(env: Env) -> Array:
        p = env[x.name]
        want(p.shape[axis] >= k)
        first = min(max(int(env[s.name]), 0), p.shape[axis] - k)
        return p.take(range(first, first + k), axis)

    text = f"nd.dynamic_slice %{x.name}, starts(%{s.name}) {{axes = [{axis}], sizes = [{k}]}} : "
    b.add(y, f"{text}({x.type}, tensor<i32>) -> {y.type}", part)


def dynamic_update(b: Block, r: Random) -> None:
    x, s = pick(b, r), _start(b, r)
    if x is None or s is None or not x.sizes:
        return
    axis = r.randrange(len(x.sizes))
    fits = [
        v
        for v in b.values
        if v.dtype == "i32"
        and len(v.sizes) == len(x.sizes)
        and all(
            None in (n, m) or (m <= n if a == axis else m == n)  # pyright: ignore
            for a, (n, m) in enumerate(zip(x.sizes, v.sizes, strict=True))
        )
    ]
    u = r.choice(fits)
    y = Value(b.fresh(), "i32", x.sizes, x.keys)

    def put(env: Env) -> Array:
        p, q = env[x.name].copy(), env[u.name]
        for a, (n, m) in enumerate(zip(p.shape, q.shape, strict=True)):
            want(m <= n if a == axis else m == n)
        first = min(max(int(env[s.name]), 0), p.shape[axis] - q.shape[axis])
        place = [slice(None)] * p.ndim
        place[axis] = slice(first, first + q.shape[axis])
        p[tuple(place)] = q
        return p

    text = f"nd.dynamic_update_slice %{x.name}, %{u.name}, starts(%{s.name}) {{axes = [{axis}]}} : "
    b.add(y, f"{text}({x.type}, {u.type}, tensor<i32>) -> {y.type}", put)


def reduce(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None or not x.sizes:
        return
    axis, op = r.randrange(len(x.sizes)), r.choice(["sum", "max", "argmax"])
    sizes = (*x.sizes[:axis], *x.sizes[axis + 1 :])
    keys = (*x.keys[:axis], *x.keys[axis + 1 :])
    if op != "argmax":
        y = Value(b.fresh(), "i32", sizes, keys)
        text = f"nd.reduce_{op} %{x.name} {{axes = [{axis}]}} : {x.type} -> {y.type}"
        b.add(y, text, lambda env: _reduced(op, env[x.name], axis))
        return
    if x.sizes[axis] == 0 and 0 not in sizes:
        return
    y = Value(b.fresh(), "i64", sizes, keys)

    def place(env: Env) -> Array:
        p = env[x.name]
        rest = (*p.shape[:axis], *p.shape[axis + 1 :])
        want(p.shape[axis] > 0 or 0 in rest)
        return np.argmax(p, axis) if p.shape[axis] else np.zeros(rest, np.int64)

    text = f"nd.argmax %{x.name} {{axis = {axis}}} : {x.type} -> {y.type}"
    if b.add(y, text, place):
        z = Value(b.fresh(), "i32", sizes, keys)
        b.add(z, f"nd.cast %{y.name} : {y.type} -> {z.type}", lambda env: env[y.name])


def _reduced(op: str, x: Array, axis: int) -> Array:
    sized((*x.shape[:axis], *x.shape[axis + 1 :]))
    if op == "sum":
        return x.sum(axis, dtype=np.int32)
    return x.max(axis, initial=np.iinfo(np.int32).min)


def cumulative(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None or not x.sizes:
        return
    axis = r.randrange(len(x.sizes))
    y = Value(b.fresh(), "i32", x.sizes, x.keys)
    text = f"nd.cumulative_sum %{x.name} {{axis = {axis}}} : {x.type}"
    b.add(y, text, lambda env: np.cumsum(env[x.name], axis, dtype=np.int32))


def windows(b: Block, r: Random) -> None:
    if (x := pick(b, r, 1)) is None:
        return
    k, stride = r.choice([2, 3]), r.choice([1, 2])
    n = x.sizes[0]
    count = None if n is None else max((n - k) // stride + 1, 0)
    y = Value(b.fresh(), "i32", (count,), (f"windows({x.keys[0]}, {k}, {stride})",))

    def sums(env: Env) -> Array:
        p = env[x.name]
        starts = range(0, len(p) - k + 1, stride)
        return np.array([p[s : s + k].sum(dtype=np.int32) for s in starts], np.int32)

    text = (
        f"nd.window_sum %{x.name} {{strides = [{stride}], window = [{k}]}} : {x.type} -> {y.type}"
    )
    b.add(y, text, sums)


def products(b: Block, r: Random) -> None:
    x, w = pick(b, r, 2), pick(b, r, r.choice([1, 2]))
    if x is None or w is None:
        return
    inner = w.sizes[0]
    if None not in (x.sizes[1], inner) and x.sizes[1] != inner:
        return
    y = Value(b.fresh(), "i32", (x.sizes[0], *w.sizes[1:]), (x.keys[0], *w.keys[1:]))

    def product(env: Env) -> Array:
        p, q = env[x.name], env[w.name]
        want(p.shape[1] == q.shape[0])
        sized((p.shape[0], *q.shape[1:]))
        return p @ q

    text = f"nd.matmul %{x.name}, %{w.name} : ({x.type}, {w.type}) -> {y.type}"
    b.add(y, text, product)


def select(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None:
        return
    z = partner(b, r, x)
    c, y = Value(b.fresh(), "i1", x.sizes, x.keys), Value(b.fresh(), "i32", x.sizes, x.keys)

    def less(env: Env) -> Array:
        want(env[x.name].shape == env[z.name].shape)
        return env[x.name] < env[z.name]

    if b.add(c, f"nd.lt %{x.name}, %{z.name} : {x.type} -> {c.type}", less):
        text = f"nd.select %{c.name}, %{x.name}, %{z.name} : {x.type}"
        b.add(y, text, lambda env: np.where(env[c.name], env[x.name], env[z.name]))


MOVING: tuple[Maker, ...] = (
    slice_,
    slice_,
    pad,
    concat,
    concat,
    reverse,
    gather,
    gather,
    scatter,
    dynamic_slice,
    dynamic_update,
    reduce,
    reduce,
    cumulative,
    windows,
    products,
    products,
    select,
)
