"""Arrays that are assigned to, beside NumPy's: the same function is run by both."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_as_numpy import same_as_numpy

import stepwell as sw

X = np.arange(12.0).reshape(3, 4)
V = np.arange(5.0)
F = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
N = np.arange(-3, 9).reshape(3, 4)
I = np.array([2, 0, 2])  # noqa: E741


def one_row(x: Any) -> Any:
    x[0] = 1
    return x


def one_element(x: Any) -> None:
    x[1, 2] += 5


def through_a_view(x: Any) -> Any:
    y = x[1]
    y[2] = 7
    return x.sum(), y


def a_view_sees_its_base(x: Any) -> Any:
    y = x[:, 1:]
    x[1] = -1
    return y * 2


def through_a_transpose(x: Any) -> Any:
    y = x.T
    y[0] = 3
    return y


def views_of_views(x: Any) -> Any:
    y = x[1:][:, ::2]
    y[0, 1] = 9
    x += 1
    return y * 2


def backwards(x: Any) -> Any:
    y = x[::-1, ::-1]
    y[0] = [1, 2, 3, 4]
    np.flip(x, 0)[0, 0] = 100
    return y


def new_axes(x: Any) -> Any:
    x[:, None, 1] = 3
    y = np.expand_dims(x, 0)
    y[0, 2] = 8
    return y, x[0, None]


def reshaped(x: Any) -> Any:
    y = x.reshape(4, 3)
    y[0] = -1
    x.ravel()[11] = 5
    z = x.flatten()
    z[0] = 50
    return y, z


def by_arrays(x: Any, i: Any) -> Any:
    x[i] = 0.5
    x[i] += 2
    x[0, i] *= 3
    x[i, 1:3] = [[1, 2]]
    return np.sum(x, axis=0)


def by_masks(x: Any) -> Any:
    x[x > 5] = 0
    x[x < 2] *= 3
    low = x < 3
    x[low] = np.sqrt(np.abs(x[low])) + 1
    return x, x[low].sum(), np.mean(x[low])


def rows_by_masks(x: Any, v: Any) -> Any:
    x[v[:3] > 1] = 7
    rows = v[1:4] > 1
    x[rows] = np.arange(4.0)
    x[rows] -= x[rows] / 2
    return x


def by_masks_beside_others(x: Any, v: Any) -> Any:
    rows, columns = v[:3] > 1, v[:4] > 1
    x[rows, 1] = 9
    x[:, columns] -= x[:, columns].mean(axis=1, keepdims=True)
    x[~rows, ::2] *= [2, 3]
    x[0, columns] += x[0, columns].max()
    x[:, None, columns] *= np.arange(3.0)[:, None, None]
    cube = x.reshape(3, 2, 2)
    cube[0, :, columns[:2]] = [5, 6]  # the mask's axis comes first
    return x, cube[..., columns[2:]].sum(axis=(0, 2)), cube[1, :, columns[:2]].max(axis=0)


def by_out(x: Any) -> Any:
    np.add(x, 1, out=x)
    y = np.zeros_like(x)
    np.multiply(x, 2, out=y)
    np.maximum(x, y, y)
    return x.sum(axis=0, out=y[0]) + np.sum(y)


def filled(x: Any) -> Any:
    y = x.copy()
    y.fill(4)
    y[...] -= x
    x[:] = y
    return y


def overlapping(x: Any) -> Any:
    x[1:] = x[:-1]
    x[:, 1:] += x[:, :-1]
    x[[0, 1]] = x[[1, 0]]
    return x


def swapped(v: Any) -> Any:
    v[0], v[1] = v[1], v[0]
    return v


def stencil(v: Any) -> Any:
    v[1:-1] = 0.5 * (v[:-2] + v[2:])
    return v[::-1]


def at_traced_places(v: Any) -> Any:
    v[v.argmax()] = -1
    v[np.argmin(v)] -= 1
    return v


def many_at_once(x: Any, i: Any) -> Any:
    np.add.at(x, i, 1)
    np.maximum.at(x, (i, 1), 5)
    return x


def numbers_are_no_views(v: Any) -> Any:
    a = v[0]
    b = v[1]
    b += 10
    v[0] = 9
    return a, b, v


def copies_are_apart(x: Any) -> Any:
    y, z, w = x.astype(x.dtype), +x, np.tile(x, 2)
    x[:] = 0
    y[0] = 1
    w[1] = 2
    return y, z, w


PROGRAMS: list[tuple[Any, ...]] = [
    *((f, X) for f in (one_row, one_element, through_a_view, a_view_sees_its_base)),
    *((f, X) for f in (through_a_transpose, views_of_views, backwards, new_axes, reshaped)),
    *((f, X) for f in (by_masks, by_out, filled, overlapping, copies_are_apart)),
    *((f, F) for f in (one_row, views_of_views, filled, overlapping)),
    *((f, N) for f in (one_row, views_of_views, backwards, filled, overlapping)),
    *((f, V) for f in (swapped, stencil, at_traced_places, numbers_are_no_views)),
    (by_arrays, X, I),
    (many_at_once, X, I),
    (rows_by_masks, X, V),
    (by_masks_beside_others, X, V),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_assignments(program: tuple[Any, ...]) -> None:
    function, *arguments = program
    same_as_numpy(function, *arguments, rtol=1e-6 if arguments[0] is F else 1e-12)


@pytest.mark.parametrize(
    "function, error, message",
    [
        (lambda x: x[0].__setitem__(slice(3), [1, 2]), ValueError, r"from shape \(2,\) into"),
        (lambda n: n.__iadd__(0.5), TypeError, "cannot cast the result of numpy.add from f64"),
        (lambda n: n.__setitem__(9, 1), IndexError, "index 9 is out of bounds for axis 0"),
        (lambda x: x.__iadd__(np.ones((2, 3, 4))), ValueError, "non-broadcastable output operand"),
        (lambda x: x.__setitem__(x > 0, np.ones(7)), sw.TraceError, "one value, or one row"),
        (lambda x: x.__setitem__(x > 0, x[x > 0 + x]), sw.TraceError, "the masks are one"),
        (lambda x: x.__setitem__(x[0] > 0, 1), IndexError, "did not match indexed array"),
        (lambda x: x[:, 1:].reshape(-1).__setitem__(0, 1), sw.TraceError, "may lie in the same"),
        (lambda x: x.view(), sw.TraceError, "reads memory otherwise"),
    ],
)
def test_what_cannot_be_assigned(function: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        sw.jit(function).trace(N if "n" in function.__code__.co_varnames else X)


def add_to(a: Any, b: Any) -> Any:
    a += b
    b[0] = a[0] * 2
    return a


def test_arguments_are_the_callers_arrays() -> None:
    compiled, a, b = sw.jit(add_to), np.arange(4.0), np.ones(4)
    for k in range(3):
        assert compiled(a, b) is a
        assert b[0] == a[0] * 2, k
    columns = np.arange(16.0).reshape(4, 4)
    compiled(columns[:, 1], np.ones(4))
    np.testing.assert_array_equal(columns[:, :2], [[0, 2], [4, 6], [8, 10], [12, 14]])


@pytest.mark.parametrize("before", [0, 1, 2])
def test_one_array_may_be_passed_twice(before: int) -> None:
    compiled = sw.jit(add_to)
    for _ in range(before):
        compiled(np.ones(4), np.ones(4))
    want, got = np.arange(4.0), np.arange(4.0)
    add_to(want, want)
    compiled(got, got)
    np.testing.assert_array_equal(got, want)
    both = np.arange(8.0)
    compiled(both[::2], both[1::2])
    np.testing.assert_array_equal(both[::2], [1, 5, 9, 13])


def test_broadcast_arrays_are_views() -> None:
    """They show assignments to their base, and cannot be written to."""

    def f(x: Any, y: Any) -> Any:
        wide, (_, other) = np.broadcast_to(x[1], (3, 4)), np.broadcast_arrays(y, x[:1])
        x[...] = y
        return wide + other

    same_as_numpy(f, X, -X)
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        sw.jit(lambda x: np.broadcast_to(x, (3, 4)).fill(1))(V[:4])


def test_readonly_arrays_are_left_alone() -> None:
    compiled, a = sw.jit(add_to), np.arange(4.0)
    a.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            compiled(a, np.ones(4))
    np.testing.assert_array_equal(a, np.arange(4.0))


def test_arrays_in_structures_are_updated() -> None:
    def f(state: Any, *, by: Any) -> Any:
        state["pos"] += by * state["vel"][0]
        return {"speed": state["vel"][0] * 2}

    compiled = sw.jit(f)
    for _ in range(3):
        state = {"vel": (np.arange(3.0),), "pos": np.ones(3)}
        assert set(compiled(state, by=0.5)) == {"speed"}
        np.testing.assert_array_equal(state["pos"], [1, 1.5, 2])


def test_a_jitted_function_assigns_to_what_another_gives_it() -> None:
    inner = sw.jit(add_to)

    def f(x: Any) -> Any:
        y = x * 2
        inner(y, x)
        return y

    same_as_numpy(lambda x: f(x) if isinstance(x, int) else _plain(x), V)
    got = V.copy()
    np.testing.assert_array_equal(sw.jit(f)(got), V * 3)
    table = np.zeros(5)
    with pytest.raises(sw.TraceError, match="assigns to an array that is not part of the trace"):
        sw.jit(lambda x: inner(table, x)).trace(V)


def _plain(x: Any) -> Any:
    y = x * 2
    add_to(y, x)
    return y


def test_functions_of_lax_return_what_they_assign() -> None:
    def inside(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            v[i] = i * 2
            return v

        return sw.lax.fori_loop(0, 5, body, x)

    np.testing.assert_array_equal(sw.jit(inside)(V), np.arange(5.0) * 2)
    with pytest.raises(sw.TraceError, match="was assigned to in a function given to"):
        sw.jit(lambda x: sw.lax.cond(x[0] > 0, lambda: x.fill(1), lambda: None)).trace(V)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_random_assignments(data: st.DataObject) -> None:
    """A few assignments through random basic indices, views of views, and arrays."""
    size = st.integers(-4, 4)
    cut = st.builds(slice, st.none() | size, st.none() | size, st.sampled_from([None, 1, 2]))
    index = st.tuples(cut, st.integers(-4, 3)) | st.tuples(cut) | st.tuples(cut, cut)
    steps = data.draw(st.lists(st.tuples(index, st.integers(0, 3)), min_size=1, max_size=4))

    def f(x: Any) -> Any:
        parts = [x]
        for at, how in steps:
            part = parts[-1] if parts[-1].ndim == 2 else x
            if how == 0:
                part[at] = 7
            elif how == 1:
                part[at] += x[0, 0]
            elif how == 2 and 0 not in part[at].shape:
                parts.append(part[at])
            else:
                part[at] = part[at][::-1] * 2
        return tuple(p + 0 for p in parts)

    same_as_numpy(f, np.arange(16.0).reshape(4, 4))


def test_a_step_over_one_row() -> None:
    def f(x: Any) -> Any:
        row = x[:1]
        row[:2:2] += x[0, 0]
        return row + 0

    same_as_numpy(f, np.arange(1, 17.0).reshape(4, 4))


def replaces(p: Any) -> Any:
    p["w"] = p["w"] + 1
    return p["w"]


def appends(p: Any) -> Any:
    p.append(p[0])
    return p[0]


def pops(p: Any) -> Any:
    return p.pop("b") + p["w"]


@pytest.mark.parametrize(
    "function, argument",
    [(replaces, {"w": np.ones(3)}), (appends, [np.ones(3)]), (pops, {"w": np.ones(3), "b": 1.0})],
    ids=["replaces", "appends", "pops"],
)
def test_a_container_that_changes_is_refused(function: Any, argument: Any) -> None:
    with pytest.raises(sw.TraceError, match="puts something else into its argument 'p'"):
        sw.jit(function)(argument)


def test_an_array_in_a_container_changes() -> None:
    def f(p: Any) -> None:
        p["w"][1:] += p["b"]
        p["w"] *= 2

    p = {"w": np.ones(3), "b": np.float64(2)}
    sw.jit(f)(p)
    np.testing.assert_array_equal(p["w"], [2, 6, 6])


def test_a_container_of_its_own_may_change() -> None:
    def f(p: Any) -> Any:
        p = dict(p)
        p["w"] = p["w"] + 1
        return p

    np.testing.assert_array_equal(sw.jit(f)({"w": np.ones(3)})["w"], np.full(3, 2.0))


def test_copies_of_outer_arrays_are_written_in_regions() -> None:
    """A copy was taken for the array itself, which no region may assign to."""

    def of_copies(x: Any) -> Any:
        def put(y: Any) -> Any:
            z = x.copy()
            z[0] = y
            return z

        slope = sw.grad(lambda y: (put(y) * x).sum())(x[1])
        last = sw.lax.fori_loop(0, 3, lambda i, y: y + put(i), np.zeros(3))
        return slope, sw.vmap(put)(x), sw.lax.cond(slope > 0, lambda: put(7.0), lambda: x), last

    slope, rows, chosen, last = sw.jit(of_copies)(np.array([4.0, 5, 6]))
    assert slope == 4 and rows.tolist() == [[4, 5, 6], [5, 5, 6], [6, 5, 6]]
    assert chosen.tolist() == [7, 5, 6] and last.tolist() == [3, 15, 18]
