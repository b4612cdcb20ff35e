"""Functions with specific arguments: sets, searches, statistics, signals, splits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepwell.testing.numpy_calls.values import Draw

INTEGERS = ("int64", "int32", "uint8", "int16")


def _row(g: Draw, least: int = 1, dtype: str | None = None) -> str:
    return g.array((g.pick([n for n in (1, 2, 3, 5) if n >= least]),), dtype)


def _finite(g: Draw, name: str) -> str:
    """Return a finite array."""
    g.arrays[name] = np.nan_to_num(g.of(name)) if g.of(name).dtype.kind == "f" else g.of(name)
    return name


def _sets(g: Draw) -> str:
    a, b = (_finite(g, g.array(g.shape(1, 2))) for _ in range(2))
    return f"{a}, {b}"


def _quantile(scale: int) -> Callable[[Draw], str]:
    def drawn(g: Draw) -> str:
        g.tame = True
        a = g.array(
            tuple(max(n, 1) for n in g.shape(1, 3)), g.pick(("float64", "float32", "int32"))
        )
        q = g.pick((f"{0.5 * scale}", "0.0", f"{float(scale)}", f"[{0.25 * scale}, {0.5 * scale}]"))
        return f"{a}, {q}, axis={g.axis(g.of(a).ndim)}" + g.keywords(
            keepdims=lambda: g.pick(("True", "False"))
        )

    return drawn


def _middle(g: Draw) -> str:
    a = g.array(tuple(max(n, 1) for n in g.shape(1, 3)), g.pick(("float64", "float32", "int32")))
    return f"{a}, axis={g.axis(g.of(a).ndim)}"


def _interp(g: Draw) -> str:
    g.tame = True
    n = g.pick((1, 2, 4))
    xp = g.array((n,), "float64")
    g.arrays[xp] = np.cumsum(np.abs(g.of(xp)) + 0.5)
    return f"{g.array(g.shape(0, 2), 'float64')}, {xp}, {g.array((n,), 'float64')}"


def _digitized(g: Draw) -> str:
    bins = _row(g, 1, "float64")
    g.arrays[bins] = np.sort(np.nan_to_num(g.of(bins)))
    x = _finite(g, g.array(g.shape(0, 2), g.pick(("float64", "int32"))))
    return f"{x}, {bins}" + g.keywords(right=lambda: g.pick(("True", "False")))


def _counted(g: Draw) -> str:
    x = _row(g, 1, "int64")
    g.arrays[x] = np.abs(g.of(x)) % 7
    return f"{x}, minlength={g.pick((0, 4, 9))}"


def _inserted(g: Draw) -> str:
    a = g.array((3, *g.shape(0, 1)))
    return f"{a}, {g.pick(('0', '1', '-1', '3', '[0, 2]'))}, {g.scalar()}, axis=0"


def _deleted(g: Draw) -> str:
    a = g.array((3, *g.shape(0, 1)))
    return f"{a}, {g.pick(('0', '1', '-1', '[0, 2]', 'slice(1, 3)'))}, axis=0"


def _appended(g: Draw) -> str:
    shape = g.shape(1, 2)
    axis = g.pick(("", f", axis={g.random.randrange(len(shape))}"))
    return f"{g.array(shape)}, {g.array(shape)}{axis}"


def _cut(rank: int) -> Callable[[Draw], str]:
    def drawn(g: Draw) -> str:
        shape = tuple(g.pick((2, 4)) for _ in range(max(rank, 1)))
        return f"{g.array(shape)}, {g.pick(('1', '2', '[1]'))}"

    return drawn


def _chosen(g: Draw) -> str:
    i = g.array(g.shape(0, 2), "int64")
    g.arrays[i] = np.abs(g.of(i)) % 2
    shape = g.of(i).shape
    return f"{i}, [{g.array(shape, 'float64')}, {g.array(shape, 'int32')}]"


def _selected(g: Draw) -> str:
    shape = g.shape(0, 2)
    tests = [g.array(shape, "bool") for _ in range(2)]
    return f"[{', '.join(tests)}], [{g.array(shape)}, {g.array(shape)}], {g.pick(('0', '2'))}"


def _raveled(g: Draw) -> str:
    i, j = (g.array((4,), "int64") for _ in range(2))
    for name in (i, j):
        g.arrays[name] = np.abs(g.of(name)) % 3
    return f"({i}, {j}), (3, {g.pick((3, 5))})"


def _unraveled(g: Draw) -> str:
    i = g.array(g.shape(0, 2), "int64")
    g.arrays[i] = np.abs(g.of(i)) % 6
    return f"{i}, (2, 3)"


def _lexed(g: Draw) -> str:
    n = g.pick((1, 4))
    return f"({g.array((n,), 'int32')}, {g.array((n,), 'int32')})"


def _polynomials(g: Draw) -> str:
    g.tame = True
    return f"{_row(g)}, {_row(g)}"


def _polynomial(g: Draw) -> str:
    g.tame = True
    return _row(g)


def _evaluated(g: Draw) -> str:
    g.tame = True
    return f"{_row(g)}, {g.array(g.shape(0, 2))}"


def _crossed(g: Draw) -> str:
    shape = (*g.shape(0, 1), 3)
    return f"{g.array(shape)}, {g.array(shape)}"


def _gridded(g: Draw) -> str:
    g.tame = True
    return g.array((g.pick((2, 3, 5)), *(() if g.chance(0.5) else (3,))))


def _growing(g: Draw) -> str:
    ends = ("1", "10.0", "0.5", "1000")
    return f"{g.pick(ends)}, {g.pick(ends)}" + g.keywords(num=lambda: g.pick(("1", "5", "8")))


def _binned_pairs(g: Draw) -> str:
    g.tame = True
    return f"{g.array((5,), 'float64')}, {g.array((5,), 'float64')}, 3"


def _averaged(g: Draw) -> str:
    a = g.array(tuple(max(n, 1) for n in g.shape(1, 2)))
    weights = g.array(g.of(a).shape, "float64")
    g.arrays[weights] = np.abs(g.of(weights)) + 1
    return f"{a}" + g.keywords(weights=lambda: weights)


def _covariance(g: Draw) -> str:
    g.tame = True
    return g.array((g.pick((1, 2, 3)), g.pick((2, 5))), g.pick(("float64", "float32", "int32")))


def _resized(g: Draw) -> str:
    return f"{g.array(g.shape(1, 2))}, {g.pick(('(2, 3)', '4', '(0,)'))}"


def _square(g: Draw) -> str:
    n = g.pick((1, 3))
    return g.array((n, n))


def _turned(g: Draw) -> str:
    return f"{g.array((g.pick((0, 1, 3)), 2))}, {g.pick(('1', '2', '-1', '4'))}"


def _tri(g: Draw) -> str:
    return g.pick(("0", "1", "3")) + g.keywords(M=lambda: "4", k=lambda: g.pick(("1", "-1")))


def _blocked(g: Draw) -> str:
    a, b = g.array((2, 2)), g.array((2, 1))
    return f"[[{a}, {b}], [{a}, {b}]]"


def _areas(g: Draw) -> str:
    g.tame = True
    return g.array((*g.shape(0, 1), g.pick((1, 2, 5))))


def _by_rows(g: Draw) -> str:
    return f"np.sum, 0, {g.array(tuple(max(n, 1) for n in g.shape(1, 2)), 'float64')}"


def _over_axes(g: Draw) -> str:
    return f"np.sum, {g.array((2, 3, 2), 'int32')}, {g.pick(('0', '[0, 2]'))}"


def _binned(g: Draw) -> str:
    g.tame = True
    return f"{_row(g, 2, 'float64')}, {g.pick(('3', '[-5.0, 0.0, 5.0]'))}"


FURTHER: dict[str, Callable[[Draw], str]] = {
    "append": _appended,
    "apply_along_axis": _by_rows,
    "apply_over_axes": _over_axes,
    "array_split": _cut(1),
    "average": _averaged,
    "bincount": _counted,
    "block": _blocked,
    "choose": _chosen,
    "convolve": _polynomials,
    "corrcoef": _covariance,
    "correlate": _polynomials,
    "cov": _covariance,
    "cross": _crossed,
    "delete": _deleted,
    "diag_indices_from": _square,
    "digitize": _digitized,
    "dsplit": _cut(3),
    "geomspace": _growing,
    "gradient": _gridded,
    "histogram": _binned,
    "histogram2d": _binned_pairs,
    "histogram_bin_edges": _binned,
    "hsplit": _cut(2),
    "insert": _inserted,
    "interp": _interp,
    "isin": _sets,
    "lexsort": _lexed,
    "median": _middle,
    "nanmedian": _middle,
    "nanpercentile": _quantile(100),
    "nanquantile": _quantile(1),
    "percentile": _quantile(100),
    "polyadd": _polynomials,
    "polyder": _polynomial,
    "polyint": _polynomial,
    "polysub": _polynomials,
    "polyval": _evaluated,
    "quantile": _quantile(1),
    "ravel_multi_index": _raveled,
    "resize": _resized,
    "rot90": _turned,
    "select": _selected,
    "trapezoid": _areas,
    "tri": _tri,
    "unravel_index": _unraveled,
    "vander": lambda g: _row(g),
    "vdot": lambda g: f"{g.array((3,))}, {g.array((3,))}",
    "vsplit": _cut(2),
}
"""Arguments that fit together."""
