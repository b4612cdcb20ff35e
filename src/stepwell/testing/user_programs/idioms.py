"""Rules that add whole idioms of users: training loops, caches, attention, images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from stepwell.testing.user_programs.draw import Draw, Skip, is_float, is_number, need
from stepwell.testing.user_programs.known import Known
from stepwell.testing.user_programs.recipe import Recipe
from stepwell.testing.user_programs.rules import SMALL, Rule


def body(g: Draw, leaves: Sequence[Known], kept: Sequence[Known], count: int, more: int = 0) -> Any:
    """Draw a body that yields a value of the type of each of ``kept``, then ``more`` values."""
    inner = g.inner(leaves)
    for _ in range(count * 6):
        if len(inner.steps) >= count:
            break
        with suppress(Skip):
            inner.pick(SMALL)(inner)
    results: list[int] = []
    for k in kept:
        found = [
            n
            for n in inner.all()
            if inner.known(n).dtype == k.dtype and inner.known(n).shape == k.shape
        ]
        created = [n for n in found if n >= 0]
        new = inner.pick(created) if created and inner.chance(0.8) else inner.pick(found)
        if k.dtype != "bool":
            new = need(inner.tame(new, 4))
        results.append(new)
    results += [inner.pick(range(len(inner.values))) for _ in range(more) if inner.values]
    return Recipe((), tuple(inner.steps), tuple(results))


def loop(g: Draw) -> Rule:
    """Add a loop with several carried values, some with the same initial value."""
    first = need(g.any(lambda k: k.array.size <= 4096))
    carried = [first]
    for _ in range(g.pick((0, 1, 1, 2))):
        if g.chance():
            carried.append(g.pick(carried))
        else:
            carried.append(g.like(first) if g.chance() else need(g.any(_moderate)))
    if g.chance(0.3) and is_number(g.known(first)):
        zero = need(g.add("zeros_like", first))
        carried = [zero for _ in carried]
    closed = [need(g.any(_moderate)) for _ in range(g.pick((0, 1, 2)))]
    number = g.leaf("i32", (), low=0, high=7, closed=False) if g.chance() else None
    kept = [g.known(n) for n in carried]
    leaves = [_index(), *kept, *(g.known(n) for n in closed)]
    inside = body(g, leaves, kept, g.pick((1, 2, 3, 5)))
    operands = [*carried, *([number] if number is not None else []), *closed]
    times = g.pick((0, 1, 2, 3, 5, 6)) if number is None else None
    name = g.pick(("fori", "while"))
    return g.add(name, *operands, carried=len(carried), times=times, body=inside)


def _index() -> Known:
    return Known(np.asarray(0, np.int32), "i32")


def _moderate(k: Known) -> bool:
    return k.array.size <= 4096


def scan(g: Draw) -> Rule:
    """Add a scan along an axis, with carried values and stacked results."""
    xs = need(g.any(lambda k: len(k.shape) > 0 and 0 < k.shape[0] <= 64 and k.array.size <= 4096))
    x = g.known(xs)
    part = Known(x.array[0], x.dtype, x.error)
    carried = [need(g.any(_moderate))]
    if g.chance(0.4):
        carried.append(g.pick((carried[0], need(g.any(_moderate)))))
    kept = [g.known(n) for n in carried]
    closed = [need(g.any(_moderate)) for _ in range(g.pick((0, 1)))]
    leaves = [part, *kept, *(g.known(n) for n in closed)]
    inside = body(g, leaves, kept, g.pick((1, 2, 4)), more=g.pick((0, 1, 2)))
    operands = (*carried, xs, *closed)
    return g.add("scan", *operands, carried=len(carried), reverse=g.chance(0.3), body=inside)


def branch(g: Draw) -> Rule:
    """Add a branch between two bodies."""
    c = g.any(lambda k: k.dtype == "bool" and k.shape == ())
    if c is None:
        s = need(g.any(lambda k: k.shape == () and is_number(k)))
        c = need(g.add("positive", s))
    given = [need(g.any(_moderate)) for _ in range(g.pick((1, 2, 3)))]
    leaves = [g.known(n) for n in given]
    kept = [g.pick(leaves) for _ in range(g.pick((1, 2)))]
    sides = [body(g, leaves, kept, g.pick((0, 1, 3))) for _ in range(2)]
    return g.add("cond", c, *given, **{"then": sides[0], "else": sides[1]})


def momentum(g: Draw) -> Rule:
    """Add gradient steps with momentum."""
    x = need(g.any(lambda k: is_number(k) and k.array.size <= 4096))
    zero = need(g.add("zeros_like", x))
    inner = g.inner([_index(), g.known(zero), g.known(zero), g.known(x)])
    total = need(inner.add("add", -2, -3))
    new = need(inner.tame(inner.add("add", total, -4)))
    inside = inner.recipe((new, -2))
    number = g.leaf("i32", (), low=0, high=7, closed=False)
    return g.add("fori", zero, zero, number, x, carried=2, times=None, body=inside)


def cache(g: Draw) -> Rule:
    """Add a loop that writes rows into a cache, and a masked read of it."""
    x = need(g.any(lambda k: len(k.shape) == 2 and 1 < k.shape[0] <= 64 and is_number(k)))
    k = g.known(x)
    store = need(g.add("zeros_like", x))
    inner = g.inner([_index(), g.known(store), k])
    row = need(inner.add("take", -3, -1, at=[[1]]))
    if inner.chance():
        row = need(inner.add("plus", row, by=1))
    inside = inner.recipe((need(inner.add("put", -2, row, -1, at=[[2]], how="set")),))
    filled = need(g.add("fori", store, x, carried=1, times=g.pick((k.shape[0], 2)), body=inside))
    return g.add("masked", need(g.add("greater_equal", filled, x)), filled)


def best(g: Draw) -> Rule:
    """Add repeated argmax calls."""
    x = need(g.any(lambda k: len(k.shape) == 1 and k.shape[0] > 3 and is_number(k) and k.exact))
    places: list[int] = []
    for _ in range(3):
        i = need(g.add("argmax", x, axis=0))
        places.append(i)
        low = 0 if g.known(x).dtype[0] == "u" else -100
        x = need(g.add("put_number", x, i, at=[[1]], by=low, how="set"))
    return g.add("stack", *places, axis=0)


def embedding(g: Draw) -> Rule:
    """Add a look-up of rows, and the sum of their gradients."""
    n, width = g.pick((10, 50)), g.pick((4, 33))
    dtype = g.pick(g.kinds)
    table = g.leaf(dtype, (n, width))
    tokens = g.leaf("i32", (g.pick((6, 40)),), low=0, high=n)
    rows = need(g.add("take", table, tokens, at=[[1]]))
    rows = need(g.add("times", rows, by=2))
    zero = need(g.add("zeros_like", table))
    return g.add("put", zero, rows, tokens, at=[[2]], how="add")


def loss(g: Draw) -> Rule:
    """Add a cross entropy and the probabilities."""
    x = need(g.any(lambda k: is_float(k) and len(k.shape) == 2 and min(k.shape) > 1))
    rows, classes = g.known(x).shape
    logs = need(g.add("log_softmax", need(g.tame(x, 8)), axis=1))
    at = g.leaf("i32", (rows,), "range")
    labels = g.leaf("i32", (rows,), low=0, high=classes)
    chosen = need(g.add("take", logs, at, labels, at=[[1], [2]]))
    g.add("decay", logs)
    return g.add("mean", chosen, axis=None, keep=False)


def attention(g: Draw) -> Rule:
    """Add the softmax of scaled, masked products, times values."""
    dtype = g.pick(("f32", "f32", "f16", "bf16"))
    heads, n, m, d = g.pick((1, 2, 4)), g.pick((1, 16, 65)), g.pick((16, 65)), g.pick((8, 64))
    q, k, v = (g.leaf(dtype, (heads, rows, d), low=-1, high=2) for rows in (n, m, m))
    scores = need(g.add("einsum", q, k, text="hnd,hmd->hnm", depth=d))
    scores = need(g.add("times", scores, by=0.125))
    if g.chance() and n == m:
        ones = need(g.add("plus", need(g.add("zeros_like", scores)), by=1))
        mask = need(g.add("positive", need(g.add("tril", ones))))
        low = need(g.add("plus", need(g.add("zeros_like", scores)), by=-100))
        scores = need(g.add("where", mask, scores, low))
    chances = need(g.add("softmax", scores, axis=2))
    return g.add("matmul", chances, v, depth=m)


def image(g: Draw) -> Rule:
    """Add a convolution, a batch norm with initial or other statistics, and a pooling."""
    dtype = g.pick(("f32", "f32", "f64", "f16", "i32"))
    x = g.any(lambda k: k.dtype == dtype and len(k.shape) == 4 and min(k.shape[2:]) >= 5)
    if x is None:
        x = g.leaf(dtype, (g.pick((1, 2)), g.pick((1, 3, 8)), g.pick((8, 13)), 9))
    x = need(g.tame(x, 3))
    channels, created = g.known(x).shape[1], g.pick((1, 4, 16, 24))
    groups = channels if g.chance(0.2) else 1
    created *= groups
    size = g.pick((1, 3, 3))
    w = g.leaf(dtype, (created, channels // groups, size, size))
    how = {"stride": g.pick((1, 1, 2)), "padding": g.pick((0, 1)), "groups": groups}
    depth = channels // groups * size * size
    y = need(g.add("conv", x, w, how=how, depth=depth))
    if is_float(g.known(y)) and g.chance(0.7):
        fresh = g.chance()
        kinds = [0, 1, 1, 0] if fresh else [1, 2, 2, 1]
        kind = "uniform" if fresh else "random"
        stats = [
            g.leaf(dtype, (created,), kind, low=n, high=n + 3, closed=g.chance(0.8)) for n in kinds
        ]
        y = need(g.add("batch_norm", y, *stats))
    if g.chance():
        y = need(g.add("relu", y))
    if g.chance(0.4) and min(g.known(y).shape[2:]) >= 3:
        y = need(g.add("max_pool", y, window=g.pick((2, 3)), stride=g.pick((1, 2))))
    return y


def columns(g: Draw) -> Rule:
    """Add columns, some of them long, that are computed once and read twice."""
    if g.chance():
        x = g.leaf(g.pick(g.kinds), (4320, 24), low=0, high=2, closed=False)
    else:
        x = need(g.any(lambda k: len(k.shape) == 2 and min(k.shape) > 1 and is_number(k)))
    x = need(g.add("plus", need(g.add("times", need(g.tame(x, 2)), by=3)), by=1))
    above = need(g.add("sub", x, need(g.add("min", x, axis=0, keep=True))))
    below = need(g.add("add", x, need(g.add("max", x, axis=0, keep=True))))
    return g.add("max", need(g.add("mul", above, below)), axis=0, keep=False)


def stencil(g: Draw) -> Rule:
    """Add a stencil with a constant border."""
    x = need(g.any(lambda k: len(k.shape) == 2 and min(k.shape) >= 3 and k.array.size <= 4096))
    if not is_number(g.known(x)):
        raise Skip
    inner = g.inner([_index(), g.known(x)])
    a, b = slice(1, -1), [slice(None, -2), slice(2, None)]
    parts = [need(inner.add("slice", -2, at=at)) for at in ((b[0], a), (b[1], a), (a, b[0]))]
    total = need(inner.add("add", parts[0], parts[1]))
    total = need(inner.tame(inner.add("add", total, parts[2])))
    how = g.pick(("set", "set", "max"))
    inside = inner.recipe((need(inner.add("put", -2, total, at=[a, a], how=how)),))
    number = g.leaf("i32", (), low=0, high=6, closed=False) if g.chance() else None
    operands = [x] if number is None else [x, number]
    times = 3 if number is None else None
    return g.add("fori", *operands, carried=1, times=times, body=inside)


IDIOMS: tuple[Callable[[Draw], Rule], ...] = (
    *(loop, loop, scan, scan, branch, momentum, cache, best),
    *(embedding, loss, attention, image, image, stencil, columns),
)
