"""Random calls that write to arrays, or whose results have a dynamic size or free order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepwell.testing.numpy_calls.values import SMALL, Call, Draw


def _mask(g: Draw, shape: tuple[int, ...]) -> str:
    """Return a mask that is constant while tracing: others select a dynamic number of elements."""
    flat = [g.chance(0.5) for _ in range(int(np.prod(shape)))]
    return f"np.array({flat}, bool).reshape({shape})"


def _values(g: Draw) -> str:
    return g.pick(("1", "-2", "[3, 4]", "[1, 2, 3]"))


def _copyto(g: Draw, a: str) -> str:
    shape = g.of(a).shape
    where = f", where={g.array(g.like(shape), 'bool')}" if g.chance(0.5) else ""
    value = g.array(g.like(shape), str(g.of(a).dtype)) if g.chance(0.7) else g.operand(shape)
    return f"m.copyto(y, {value}{where})"


def _along(g: Draw, a: str) -> str:
    shape = g.of(a).shape
    axis = g.random.randrange(len(shape))
    i = g.array((*shape[:axis], 1, *shape[axis + 1 :]), "int64")
    g.arrays[i] = g.of(i) % max(shape[axis], 1)
    return f"m.put_along_axis(y, {i}, {g.pick(('1', '0', '2'))}, {axis})"


def _put(g: Draw, a: str) -> str:
    n = max(g.of(a).size, 1)
    places = [g.random.randrange(-n, n) for _ in range(g.pick((0, 1, 2)))]
    mode = g.pick(("", "", ", mode='clip'", ", mode='wrap'"))
    return f"m.put(y, {places}, {g.pick(('1', '[3, 4]', '0'))}{mode})"


COPIES: dict[str, Callable[[Draw, str], str]] = {
    "copyto": _copyto,
    "put": _put,
    "put_along_axis": _along,
    "putmask": lambda g, a: f"m.putmask(y, {_mask(g, g.of(a).shape)}, {_values(g)})",
    "place": lambda g, a: f"m.place(y, {_mask(g, g.of(a).shape)}, {_values(g)})",
    "fill_diagonal": lambda g, a: (
        f"m.fill_diagonal(y, {g.pick(('1', '-2.0', '[1, 2]'))}, wrap={g.chance(0.3)})"
    ),
    ".sort": lambda g, a: f"y.sort({g.axis(g.of(a).ndim, none=False)})",
    ".fill": lambda g, a: f"y.fill({g.scalar()})",
    ".put": lambda g, a: f"y{_put(g, a).removeprefix('m').replace('(y, ', '(', 1)}",
    "[...]": lambda g, a: f"y[...] = {g.operand(g.of(a).shape)}",
}
"""Calls on ``y``, a copy of an array, by the name of the function."""


def on_copy(g: Draw) -> Call:
    """Return a call that writes to a copy of an array."""
    name = g.pick(sorted(COPIES))
    g.tame = True
    rank = g.pick((2, 2, 3)) if name == "fill_diagonal" else g.pick((1, 2, 3))
    shape = (g.pick((2, 3)),) * rank if rank == 3 else g.shape(rank, rank)
    a = g.array(shape, g.pick(SMALL))
    created = COPIES[name](g, a)
    module = "np" if name in ("copyto", ".fill", "[...]") else g.pick(("np", "snp"))
    return Call(f"y = {a}.copy(); {created}; r = y", g.arrays, name, module, "exact", True)


def parted(g: Draw) -> Call:
    """Return a partition, sorted such that all valid partitions are equal."""
    g.tame = True
    shape = (*g.shape(0, 2), g.pick((1, 3, 5)))
    a, k = g.array(shape), g.random.randrange(-shape[-1], shape[-1])
    name = g.pick(("partition", "argpartition", ".partition", ".argpartition"))
    call = f"{a}{name}({k})" if name == ".argpartition" else f"m.{name}({a}, {k})"
    if name == ".partition":
        text = f"p = {a}.copy(); p.partition({k})"
    elif name == "partition":
        text = f"p = {call}"
    else:
        text = f"p = m.take_along_axis({a}, {call}, -1)"
    k %= shape[-1]
    text += f"; r = m.sort(p[..., :{k}]), p[..., {k}], m.sort(p[..., {k + 1}:])"
    return Call(text, g.arrays, name, "np", "exact", True)


def sized(g: Draw) -> Call:
    """Return a call that fixes the size of its result."""
    name = g.pick(UNKNOWN_SIZES)
    keywords = f"size={g.pick((0, 1, 3, 6))}"
    if g.chance(0.4):
        keywords += f", fill_value={g.pick(('-1', '7', '0'))}"
    g.tame = g.chance(0.5)
    a = g.array(tuple(max(n, 1) for n in g.shape(1, 2)))
    if name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        given = f"{a}, {g.array(g.shape(1, 2))}"
    elif name == "unique":
        given = a + g.keywords(
            return_index=lambda: "True",
            return_inverse=lambda: "True",
            return_counts=lambda: "True",
            equal_nan=lambda: g.pick(("True", "False")),
        )
    else:
        given = a
    if name == "bincount":
        g.arrays[a] = np.array([g.pick((0, 1, 3, 6)) for _ in range(g.of(a).size)], np.int64)
        return Call(f"r = m.bincount({a}, length={g.pick((0, 3, 9))})", g.arrays, name, "snp")
    if g.of(a).dtype.kind in "ub" or name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        keywords = keywords.replace("-1", "1")
    text = f"m.{name}({given}, {keywords})"
    many = name in ("unique_all", "unique_counts", "unique_inverse")
    text = f"r = tuple({text})" if many else f"r = {text}"
    return Call(text, g.arrays, f"{name}(size=)", "snp", "exact", True)


UNKNOWN_SIZES = (
    *("argwhere", "bincount", "flatnonzero", "intersect1d", "nonzero", "setdiff1d", "setxor1d"),
    *("union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
)
"""Functions whose results have a dynamic size."""


def known_places(g: Draw) -> Call:
    """Return a call that selects by masks and lists that are constant while tracing."""
    g.tame = True
    a = g.array((3, 4))
    i, j = ([g.random.randrange(n) for _ in range(g.pick((1, 2)))] for n in (3, 4))
    name, text = g.pick(
        (
            ("ix_", f"{a}[np.ix_({i}, {j})]"),
            ("compress", f"m.compress([True, False, True], {a}, axis={g.pick((0, 'None'))})"),
            ("extract", f"m.extract({_mask(g, (3, 4))}, {a})"),
            ("piecewise", f"m.piecewise({a}, [{a} < 0, {a} > 1], [-1, lambda v: v * 2, 3])"),
            ("flatten", f"{a}.flatten()"),
            ("conj", f"{a}.{g.pick(('conj', 'conjugate'))}()"),
        )
    )
    return Call(f"r = {text}", g.arrays, name, "np")


def into(g: Draw) -> Call:
    """Return a call with ``out=``, and perhaps ``where=``."""
    g.tame = True
    shape = g.shape(1, 3)
    a, b = g.array(shape), g.array(shape)
    kind = g.pick(("float64", "float64", str(g.of(a).dtype), "int64", "float32"))
    where = f", where={g.array(g.like(shape), 'bool')}" if g.chance(0.4) else ""
    name = g.pick(("add", "multiply", "maximum", "less", "sqrt", "negative", "floor"))
    given = f"{a}, {b}" if name in ("add", "multiply", "maximum", "less") else a
    if g.chance(0.3):
        name = g.pick(("sum", "max", "mean", "cumsum", "any"))
        axis = g.random.randrange(len(shape))
        reduced = shape if name == "cumsum" else (*shape[:axis], *shape[axis + 1 :])
        given, where, shape = f"{a}, axis={axis}", "", reduced
    text = f"y = m.zeros({shape}, '{kind}'); m.{name}({given}, out=y{where}); r = y"
    rounding = "sums" if name in ("sum", "mean", "cumsum") else "near"
    return Call(text, g.arrays, f"{name}(out=)", "snp", rounding, True)


def drawn(g: Draw) -> Call:
    """Return a call for random numbers, whose values the documentation defines."""
    key = f"np.array([{g.random.getrandbits(32)}, {g.random.getrandbits(32)}], np.uint32)"
    shape = g.pick(("()", "3", "(2, 3)", "(0,)"))
    name, given = g.pick(
        (
            ("bits", f"{shape}, np.{g.pick(('uint32', 'uint64', 'int8', 'int64'))}"),
            ("split", g.pick(("2", "(2, 2)", "1"))),
            ("fold_in", g.pick(("0", "7", "-1", "2**40"))),
            ("uniform", f"{shape}, np.{g.pick(('float64', 'float32', 'float16'))}"),
            ("uniform", f"{shape}, np.{g.pick(('float64', 'float32'))}, -2, 3"),
            ("exponential", f"{shape}, scale=3.0"),
            ("integers", f"{g.pick(('0', '-5'))}, {g.pick(('7', '2**40'))}, {shape}"),
            ("permutation", g.pick(("5", "0", f"{g.array((4, 2))}", f"{g.array((2, 3))}, 1"))),
        )
    )
    return Call(f"r = R.{name}({key}, {given})", g.arrays, f"random.{name}", "np", "near")
