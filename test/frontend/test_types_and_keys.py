"""Types, keys, membership and orders of elements: a traced value is what NumPy has in its place."""

from numbers import Real
from typing import Any

import numpy as np
import pytest
from same_as_numpy import same_as_numpy

import stepwell as sw

X = np.arange(12.0).reshape(3, 4)
V = np.arange(5.0)


def kind_of(v: Any) -> int:
    if isinstance(v, np.ndarray):
        return 1 if type(v) is np.ndarray else 2
    if isinstance(v, bool):
        return 3
    if isinstance(v, int | np.integer):
        return 4 if type(v) is int else 5
    if isinstance(v, np.float64):
        return 6
    return 7 if type(v) in (int, float) else 8 if isinstance(v, Real) else 9


def kinds(*values: Any) -> Any:
    found = [kind_of(v) for v in values]
    if values[0].sum() > 0:  # types are known in a branch too
        more = [kind_of(values[0][0]), kind_of(values[0].max()), kind_of(values[0].argmax())]
    else:
        more = [0, 0, 0]
    return found, more, issubclass(type(values[0]), np.ndarray)


def kinds_of_parts(x: Any, v: Any, n: Any) -> Any:
    part, chosen = v[:n], v[v > 1]
    bounds: Any = range(n)
    tests = isinstance(part, np.ndarray), isinstance(chosen, np.ndarray), isinstance(bounds, range)
    return tests, type(part) is np.ndarray, isinstance(part, list), type(bounds) is range, x.sum()


def in_ranges(v: Any, n: Any) -> Any:
    found = 0
    for x in v:
        if x in range(1, 9, 3) or x + 0.5 in range(9) or x in range(3, -1, -3):
            found += 1
    return found, n in range(5), n not in range(-4, 4, 2), n in range(0), n in range(9, 2, -2)


def scalar_types(x: Any, n: Any) -> Any:
    total = np.float32(x.sum()) + np.ones(2, np.float32) * np.float64(n)
    return total, np.int8(x), np.float16(n), np.bool_(x[0, 1]), np.uint64(n), np.intp(x.max())


def items(x: Any, v: Any, n: Any) -> Any:
    single = np.ones(2, np.float32) * x[0, 0].item()  # a Python number keeps the dtype
    places = x.item(5), x.item(1, 2), x.item((2, 3)), x.item(-1), v.max().item(), v[4:].item()
    return single, places, (x > 3).item(7), v.astype(np.int8).item(3) + 300, np.float32(n).item()


def deletes(x: Any) -> Any:
    del x[0]
    return x


def membership(v: Any, n: Any) -> Any:
    count = 0
    for x in v:
        if x in (2, 4.0) or x not in [0.0, n, None, "a"]:
            count += 1
    return count, n in {3, 5}, n in {7: "seven"}, 3 in v, n not in v, v in [v], 5 in [v[0], 5]


def column_by_column(x: Any, v: Any) -> Any:
    flat, by_rows = x.flatten("F"), v[:4].reshape(2, 2, order="F")
    flat[0] = 9
    columns = x.ravel("F")  # axes merged in another order are a copy
    columns[1] = 7
    folded = x.reshape(2, -1, order="F"), np.reshape(x.T, (2, 6), order="F"), v.ravel("K")
    return (
        flat,
        by_rows,
        columns,
        np.ravel(x, "F"),
        folded,
        np.array(x, order="F") + np.zeros(4, order="F"),
    )


PROGRAMS: list[tuple[Any, ...]] = [
    (column_by_column, X, V),
    (kinds, V > 1, np.array(2.5), 2.5),
    (kinds, V, 2.5, 3, True, np.float32(2), np.float64(2), np.int8(1), np.array(7), np.bool_(True)),
    *((kinds_of_parts, X, V, 3), (in_ranges, V, 3), (in_ranges, V * 2, np.uint8(7))),
    *((items, X, V, 4), (deletes, X)),
    *((scalar_types, X, 3), (membership, V, 3), (membership, V, 7), (membership, V, np.int8(9))),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_programs(program: tuple[Any, ...]) -> None:
    function, *arguments = program
    same_as_numpy(function, *arguments)


def looks_up(x: Any) -> Any:
    return {0.0: 1, 1.0: 2}.get(x[0, 0], 3)


def written_in_columns(x: Any) -> Any:
    columns = x.T.ravel("F")  # NumPy's view of x
    columns[0] = 1
    return columns, x


def as_in_memory(x: Any) -> Any:
    return x.T.ravel("K")


def gathers(x: Any) -> Any:
    return len({x[0, 1], x[0, 1] * 1})


def halves(x: Any) -> Any:
    return x if x.sum() < 1 else halves(x / 2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (halves, "'halves' calls itself, and nothing known while tracing ends that"),
        (looks_up, "a dict or set finds a number by its value"),
        (gathers, "a dict or set finds a number by its value"),
        (written_in_columns, "may lie in the same memory as another"),
        (as_in_memory, "order='K' asks how an array lies in memory"),
    ],
)
def test_what_depends_on_numbers_or_memory_is_refused(function: Any, message: str) -> None:
    with pytest.raises(sw.TraceError, match=message):
        sw.jit(function).trace(X)
