"""Writes whole programs: arguments, ops, control flow, results."""

from __future__ import annotations

from random import Random

import numpy as np

from random_sizes.moving import MOVING
from random_sizes.ops import (
    Maker,
    arithmetic,
    binary,
    broadcast,
    dim,
    flatten,
    floats,
    from_index,
    made,
    partner,
    pick,
    split,
    transpose,
    unary,
)
from random_sizes.program import Array, Block, Env, Number, Program, TooLarge, Value, want


def branch(b: Block, r: Random) -> None:
    """Write nd.if: both sides want what they want, whichever is taken."""
    n, x = pick(b, r, 0), pick(b, r)
    if n is None or x is None or b.depth > 1:
        return
    zero, c = Value(b.fresh(), "i32", (), ()), Value(b.fresh(), "i1", (), ())
    b.add(zero, "nd.full 0 : tensor<i32>", lambda env: np.int32(0))
    text = f"nd.lt %{zero.name}, %{n.name} : tensor<i32> -> tensor<i1>"
    b.add(c, text, lambda env: env[n.name] > 0)
    sides = [b.inside(), b.inside()]
    for side in sides:
        fill(side, r, r.randrange(3))
    ends = [partner(side, r, x) for side in sides]
    y = Value(b.fresh(), "i32", x.sizes, x.keys)

    def step(env: Env) -> None:
        for side in sides:
            side.run(env)
        a, other = (env[end.name] for end in ends)
        want(a.shape == other.shape)
        env[y.name] = a if env[c.name] else other

    lines = [f"%{y.name} = nd.if %{c.name} -> {y.type} {{", sides[0].text]
    lines += [f"  nd.yield %{ends[0].name} : {y.type}", "} else {", sides[1].text]
    lines += [f"  nd.yield %{ends[1].name} : {y.type}", "}"]
    b.put(y, "\n".join(line for line in lines if line), step)


def loop(b: Block, r: Random) -> None:
    """Write nd.while, counting a few steps."""
    x = pick(b, r)
    if x is None or b.depth > 1:
        return
    count = r.choice([0, 1, 3])
    zero, one, last = (Value(b.fresh(), "i32", (), ()) for _ in range(3))
    for v, n in ((zero, 0), (one, 1), (last, count)):
        b.add(v, f"nd.full {n} : tensor<i32>", lambda env, n=n: np.int32(n))
    names = [b.fresh() for _ in range(6)]
    carried = Value(names[0], "i32", x.sizes, x.keys)
    b.env[carried.name] = b.env[x.name]
    inside = b.inside()
    inside.values.append(carried)
    fill(inside, r, r.randrange(1, 4))
    end = partner(inside, r, carried)
    y = Value(b.fresh(), "i32", x.sizes, x.keys)

    def step(env: Env) -> None:
        now = env[x.name]
        for k in range(max(count, 1)):  # what it wants, it wants where it takes no step too
            env[carried.name] = now
            inside.run(env)
            want(env[end.name].shape == now.shape)
            now = env[end.name] if k < count else now
        env[y.name] = now

    go, i, j, k = names[1:5]
    head = f"%{names[5]}, %{y.name} = nd.while (%{i} = %{zero.name}, %{j} = %{x.name}) : "
    lines = [
        f"{head}tensor<i32>, {x.type} {{",
        f"  %{go} = nd.lt %{i}, %{last.name} : tensor<i32> -> tensor<i1>",
        f"  nd.condition %{go}",
        f"}} do (%{k}, %{carried.name}) {{",
        f"  %{k}n = nd.add %{k}, %{one.name} : tensor<i32>",
        inside.text,
        f"  nd.yield %{k}n, %{end.name} : tensor<i32>, {x.type}",
        "}",
    ]
    b.put(y, "\n".join(line for line in lines if line), step)


def scan(b: Block, r: Random) -> None:
    """Write nd.scan over rows, carrying a value and stacking one."""
    x, start = pick(b, r, r.choice([1, 2])), pick(b, r)
    if x is None or start is None or b.depth > 1 or (x.sizes[0] or 0) > 300:
        return
    carried = Value(b.fresh(), "i32", start.sizes, start.keys)
    row = Value(b.fresh(), "i32", x.sizes[1:], x.keys[1:])
    shape = b.env[x.name].shape
    b.env[carried.name] = b.env[start.name]
    b.env[row.name] = b.env[x.name][0] if shape[0] else np.zeros(shape[1:], np.int32)
    inside = b.inside()
    fill(inside.seeing(carried, row), r, r.randrange(1, 3))
    end, out = partner(inside, r, carried), partner(inside, r, row)
    told = _told(b, x, row)
    y = Value(b.fresh(), "i32", start.sizes, start.keys)
    ys = Value(b.fresh(), "i32", x.sizes, x.keys)
    backwards = r.random() < 0.3

    def step(env: Env) -> None:
        rows, now = env[x.name], env[start.name]
        if len(rows) > 300:
            raise TooLarge
        stacked: list[Array] = []
        order = list(range(len(rows)))[:: -1 if backwards else 1]
        for k in order or [-1]:
            env[carried.name] = now
            env[row.name] = rows[k] if k >= 0 else np.zeros(rows.shape[1:], np.int32)
            inside.run(env)
            want(env[end.name].shape == now.shape)
            if row.unknown:
                want(env[out.name].shape == (env[told[0].name],))
            else:
                want(env[out.name].shape == rows.shape[1:])
            stacked.append(env[out.name])
            now = env[end.name] if k >= 0 else now
        env[y.name] = now
        env[ys.name] = np.array(stacked[:: -1 if backwards else 1])[: len(rows)]

    sizes = f" sizes(%{told[0].name})" if row.unknown else ""
    types = f"({start.type}, {x.type}) -> ({y.type}, {ys.type})"
    head = f"%{y.name}, %{ys.name} = nd.scan (%{carried.name} = %{start.name}) over "
    lines = [
        f"{head}(%{row.name} = %{x.name}){sizes}{' {reverse}' * backwards} : {types} {{",
        *inside.text.splitlines(),
        f"  nd.yield %{end.name}, %{out.name} : {carried.type}, {row.type}",
        "}",
    ]
    if b.put(y, "\n".join(lines), step):
        b.values.append(ys)


def _told(b: Block, x: Value, row: Value) -> list[Number]:
    """Return the size of a row of ``x``, where that is not known."""
    if not row.unknown:
        return []
    if not any(n.key == row.keys[0] for n in b.numbers):
        dim_of(b, x, 1)
    return [n for n in b.numbers if n.key == row.keys[0]]


def dim_of(b: Block, x: Value, axis: int) -> None:
    """Write a certain size of a tensor as an index."""
    name = b.fresh()

    def step(env: Env) -> None:
        env[name] = env[x.name].shape[axis]

    text = f"%{name} = nd.dim %{x.name} {{axis = {axis}}} : {x.type}"
    b.put(Number(name, x.keys[axis]), text, step)


MAKERS: tuple[Maker, ...] = (
    dim,
    dim,
    arithmetic,
    arithmetic,
    unary,
    binary,
    binary,
    binary,
    broadcast,
    flatten,
    split,
    transpose,
    made,
    made,
    from_index,
    floats,
    branch,
    loop,
    scan,
    *MOVING,
)


def fill(b: Block, r: Random, count: int) -> None:
    """Write some ops."""
    for _ in range(count):
        r.choice(MAKERS)(b, r)


def generate(seed: int) -> tuple[Program, list[int]]:
    """Return a program, and sizes that it was written for."""
    r = Random(seed)
    arguments: list[Value] = []
    sizes: list[int] = []
    env: Env = {}
    pool = [f"n{k}" for k in range(2)]
    known = {key: r.choice([0, 1, 2, 5, 7, 9]) for key in pool}
    for number in range(r.choice([1, 2, 2, 3])):
        rank = r.choice([0, 1, 1, 2, 2]) if number else r.choice([1, 2])
        declared = tuple(None if r.random() < 0.8 else r.choice([1, 2, 4]) for _ in range(rank))
        keys: list[str] = []
        for axis, n in enumerate(declared):
            shared = r.choice(pool)
            key = str(n) if n is not None else shared if r.random() < 0.7 else f"a{number}{axis}"
            if n is None:
                sizes.append(known.setdefault(key, r.choice([0, 1, 2, 5, 7])))
            keys.append(key)
        arguments.append(Value(f"a{number}", "i32", declared, tuple(keys)))
    program = Program(tuple(arguments), (), Block(env, list(arguments)))
    for argument, given in zip(arguments, program.inputs(sizes, seed), strict=True):
        env[argument.name] = given
    with np.errstate(all="ignore"):
        fill(program.block, r, r.choice([4, 8, 12, 20]))
    made_here = [v for v in program.block.values if v.dtype in ("i32", "i64")]
    program.results = tuple(r.sample(made_here, min(len(made_here), r.choice([1, 2, 3]))))
    return program, sizes
