"""The ops that random programs of unknown sizes are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from random_sizes.program import LIMIT, Array, Block, Env, Number, TooLarge, Value, sized, want

Maker = Callable[[Block, Random], Any]


def pick(b: Block, r: Random, rank: int | None = None, dtype: str = "i32") -> Value | None:
    """Return some tensor, a late one rather than an early one."""
    found = [v for v in b.values if v.dtype == dtype and (rank is None or len(v.sizes) == rank)]
    if not found:
        return None
    return found[-1] if r.random() < 0.3 else r.choice(found)


def partner(b: Block, r: Random, x: Value) -> Value:
    """Return a tensor of the type of ``x``: made of the same sizes, if not by chance of others."""
    alike = [v for v in b.values if v.type == x.type]
    same = [v for v in alike if v.keys == x.keys]
    fits = [v for v in alike if b.env[v.name].shape == b.env[x.name].shape]
    return r.choice(fits if r.random() < 0.25 else same)


def size(b: Block, r: Random) -> Number:
    """Return some index."""
    if not b.numbers or r.random() < 0.3:
        return constant(b, r)
    return r.choice(b.numbers)


def constant(b: Block, r: Random, n: int | None = None) -> Number:
    """Write a constant index."""
    large = [1 << 62, 1 << 40, -1, (1 << 63) - 1]
    n = (
        (r.choice(large) if r.random() < 0.04 else r.choice([0, 1, 2, 3, 4, 7, 300]))
        if n is None
        else n
    )
    name = b.fresh()
    number = Number(name, str(n))
    b.put(number, f"%{name} = arith.constant {n} : index", lambda env: env.update({name: n}))
    return number


def dim(b: Block, r: Random) -> None:
    x = r.choice(b.values)
    if not x.sizes:
        return
    axis, name = r.randrange(len(x.sizes)), b.fresh()

    def step(env: Env) -> None:
        env[name] = env[x.name].shape[axis]

    b.put(
        Number(name, x.keys[axis]), f"%{name} = nd.dim %{x.name} {{axis = {axis}}} : {x.type}", step
    )


def _quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ARITH: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": _quotient,
    "remsi": lambda a, b: a - _quotient(a, b) * b if b else 0,
    "floordivsi": lambda a, b: a // b if b else 0,
    "ceildivsi": lambda a, b: -(-a // b) if b else 0,
    "minsi": min,
    "maxsi": max,
}


def arithmetic(b: Block, r: Random) -> None:
    x, y, op, name = size(b, r), size(b, r), r.choice(list(ARITH)), b.fresh()

    def step(env: Env) -> None:
        given = env[x.name], env[y.name]
        if op not in ("addi", "subi", "muli") and max(map(abs, given)) >= 1 << 62:
            raise TooLarge  # it may have wrapped around
        env[name] = ARITH[op](*given)

    keys = sorted((x.key, y.key)) if op in ("addi", "muli") else [x.key, y.key]
    key = f"{op}({', '.join(keys)})"
    b.put(Number(name, key), f"%{name} = arith.{op} %{x.name}, %{y.name} : index", step)


def unary(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None:
        return
    op, meaning = r.choice([("neg", np.negative), ("abs", np.abs), ("square", np.square)])
    y = Value(b.fresh(), "i32", x.sizes, x.keys)
    b.add(y, f"nd.{op} %{x.name} : {x.type}", lambda env: meaning(env[x.name]))


def binary(b: Block, r: Random) -> None:
    if (x := pick(b, r)) is None:
        return
    z = partner(b, r, x)
    op, meaning = r.choice(
        [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("max", np.maximum)]
    )
    y = Value(b.fresh(), "i32", x.sizes, x.keys)

    def both(env: Env) -> Array:
        want(env[x.name].shape == env[z.name].shape)
        return meaning(env[x.name], env[z.name])

    b.add(y, f"nd.{op} %{x.name}, %{z.name} : {x.type}", both)


def floats(b: Block, r: Random) -> None:
    """Take small whole numbers through f32: kernels of another kind."""
    x = pick(b, r, 2)
    if x is None:
        return
    w = next((v for v in reversed(b.values) if v.dtype == "i32" and len(v.sizes) == 2), x)
    names = [b.fresh() for _ in range(7)]
    f = [Value(n, "f32", v.sizes, v.keys) for n, v in zip(names[:2], (x, w), strict=True)]
    for v, as_float in zip((x, w), f, strict=True):
        low, high, clamped = b.fresh(), b.fresh(), b.fresh()
        for name, n in ((low, -4), (high, 4)):
            scalar = Value(name + "s", "i32", (), ())
            b.add(scalar, f"nd.full {n} : tensor<i32>", lambda env, n=n: np.int32(n))
            _spread(b, scalar, Value(name, "i32", v.sizes, v.keys), v)
        y = Value(clamped, "i32", v.sizes, v.keys)
        text = f"nd.clamp %{v.name}, %{low}, %{high} : {v.type}"
        b.add(y, text, lambda env, v=v: np.clip(env[v.name], -4, 4))
        b.add(
            as_float,
            f"nd.cast %{clamped} : {y.type} -> {as_float.type}",
            lambda env, c=clamped: env[c],
        )
    a, c = f
    sizes, keys = (a.sizes[0], c.sizes[1]), (a.keys[0], c.keys[1])
    y = Value(names[2], "f32", sizes, keys)

    def product(env: Env) -> Array:
        p, q = env[a.name], env[c.name]
        want(p.shape[1] == q.shape[0])
        sized((p.shape[0], q.shape[1]))
        return p @ q

    if a.sizes[1] is None or c.sizes[0] is None or a.sizes[1] == c.sizes[0]:
        text = f"nd.matmul %{a.name}, %{c.name} : ({a.type}, {c.type}) -> {y.type}"
        if b.add(y, text, product):
            z = Value(names[3], "i32", sizes, keys)
            b.add(z, f"nd.cast %{y.name} : {y.type} -> {z.type}", lambda env: env[y.name])


def _spread(b: Block, scalar: Value, y: Value, x: Value) -> None:
    """Broadcast a scalar to the sizes of ``x``."""
    told: list[str] = []
    for axis, n in enumerate(x.sizes):
        if n is None:
            name = b.fresh()
            text = f"%{name} = nd.dim %{x.name} {{axis = {axis}}} : {x.type}"

            def step(env: Env, name: str = name, axis: int = axis) -> None:
                env[name] = env[x.name].shape[axis]

            b.put(Number(name, x.keys[axis]), text, step)
            told.append(f"%{name}")
    sizes = f", sizes({', '.join(told)})" if told else ""
    text = f"nd.broadcast %{scalar.name}{sizes} {{dims = []}} : {scalar.type} -> {y.type}"
    b.add(y, text, lambda env: np.broadcast_to(env[scalar.name], env[x.name].shape))


def broadcast(b: Block, r: Random) -> None:
    x, n = pick(b, r, r.choice([0, 1])), size(b, r)
    if x is None:
        return
    y = Value(b.fresh(), "i32", (None, *x.sizes), (n.key, *x.keys))
    dims = list(range(1, len(x.sizes) + 1))

    def meaning(env: Env) -> Array:
        return np.broadcast_to(env[x.name], sized((env[n.name], *env[x.name].shape)))

    text = f"nd.broadcast %{x.name}, sizes(%{n.name}) {{dims = {dims}}} : {x.type} -> {y.type}"
    b.add(y, text, meaning)


def flatten(b: Block, r: Random) -> None:
    if (x := pick(b, r, 2)) is None or x.unknown != 2:
        return
    names = [b.fresh() for _ in range(3)]
    for axis, name in enumerate(names[:2]):
        text = f"%{name} = nd.dim %{x.name} {{axis = {axis}}} : {x.type}"

        def step(env: Env, name: str = name, axis: int = axis) -> None:
            env[name] = env[x.name].shape[axis]

        b.put(Number(name, x.keys[axis]), text, step)
    key = f"muli({', '.join(sorted(x.keys))})"
    total = Number(names[2], key)

    def times(env: Env) -> None:
        env[names[2]] = env[names[0]] * env[names[1]]

    b.put(total, f"%{names[2]} = arith.muli %{names[0]}, %{names[1]} : index", times)
    told = total if r.random() < 0.8 else size(b, r)
    reshape_to(b, x, (None,), (told.key,), [told])


def split(b: Block, r: Random) -> None:
    if (x := pick(b, r, 1)) is None:
        return
    if r.random() < 0.5 or x.unknown:
        k, n = r.choice([1, 2, 3]), size(b, r)
        told = [n]
        sizes: tuple[int | None, ...] = (None, k) if r.random() < 0.5 else (k, None)
        keys = tuple(n.key if s is None else str(s) for s in sizes)
        if x.unknown and k == 1:
            told, keys = [], tuple(x.keys[0] if s is None else str(s) for s in sizes)
        reshape_to(b, x, sizes, keys, told)
        return
    a, c = size(b, r), size(b, r)
    reshape_to(b, x, (None, None), (a.key, c.key), [a, c])


def reshape_to(
    b: Block,
    x: Value,
    sizes: tuple[int | None, ...],
    keys: tuple[str, ...],
    told: Sequence[Number],
) -> None:
    y = Value(b.fresh(), "i32", sizes, keys)

    def meaning(env: Env) -> Array:
        rest = iter(env[n.name] for n in told)
        have = env[x.name]
        if told:
            shape = [next(rest) if n is None else n for n in sizes]
        else:
            shape = [have.size if n is None else n for n in sizes]
        count = 1
        for n in shape:
            want(n >= 0)
            count *= n
        want(count == have.size)
        want(all(n <= LIMIT for n in shape))
        return have.reshape(shape)

    names = ", ".join(f"%{n.name}" for n in told)
    group = f", sizes({names})" if told else ""
    b.add(y, f"nd.reshape %{x.name}{group} : {x.type} -> {y.type}", meaning)


def transpose(b: Block, r: Random) -> None:
    if (x := pick(b, r, 2)) is None:
        return
    y = Value(b.fresh(), "i32", x.sizes[::-1], x.keys[::-1])
    text = f"nd.transpose %{x.name} {{permutation = [1, 0]}} : {x.type} -> {y.type}"
    b.add(y, text, lambda env: env[x.name].T)


def made(b: Block, r: Random) -> None:
    ns = [size(b, r) for _ in range(r.choice([1, 1, 2]))]
    y = Value(b.fresh(), "i32", (None,) * len(ns), tuple(n.key for n in ns))
    names = ", ".join(f"%{n.name}" for n in ns)
    if r.random() < 0.5:
        text = f"nd.full 3, sizes({names}) : {y.type}"
        b.add(y, text, lambda env: np.full(sized([env[n.name] for n in ns]), 3))
        return

    def count(env: Env) -> Array:
        shape = sized([env[n.name] for n in ns])
        return np.broadcast_to(np.arange(shape[-1]), shape)

    b.add(y, f"nd.iota sizes({names}) {{axis = {len(ns) - 1}}} : {y.type}", count)


def from_index(b: Block, r: Random) -> None:
    n, name = size(b, r), b.fresh()
    wide = Value(name, "i64", (), ())

    def number(env: Env) -> Any:
        if abs(env[n.name]) >= 1 << 31:
            raise TooLarge
        return np.int64(env[n.name])

    if b.add(wide, f"nd.from_index %{n.name} : index -> tensor<i64>", number):
        y = Value(b.fresh(), "i32", (), ())
        b.add(
            y,
            f"nd.cast %{name} : tensor<i64> -> tensor<i32>",
            lambda env: np.int64(env[name]).astype(np.int32),
        )
