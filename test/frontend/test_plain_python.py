"""Plain functions with branches and loops, beside what Python makes of them with NumPy."""

import traceback
from typing import Any

import numpy as np
import pytest
from same_as_numpy import same_as_numpy

import stepwell as sw

# ruff: noqa: E741, SIM108
X = np.arange(12.0).reshape(3, 4)
V = np.arange(5.0)
W = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0, -5.0, 3.5, 5.0, 8.0])


def branches(x: Any) -> Any:
    if x[0, 0] > 3:
        y = x + 1
    elif x[0, 1] > 3:
        y = -x
        x[0] = 7
    else:
        y = x * 2
    return y


def early_returns(x: Any) -> Any:
    if x.sum() < 0:
        return x
    elif x[0, 1] > 0.5:
        x[0] = 7
        return x * 2
    return x - 1


def while_with_arrays(v: Any) -> Any:
    n = 0
    while v.sum() > 1:
        v *= 0.5
        n += 1
    return v, n


def leaving_loops(v: Any) -> Any:
    s = 0.0
    for i in range(len(v)):
        if v[i] > 2:
            continue
        s += v[i]
        if s > 0.5:
            break
    return s


def expressions(x: Any) -> Any:
    t = x[1, 1]
    u = t if t > 3 else -t
    return u, (0 < t < 10 and not t > 4), t > 100 or t < 0, not t, 1 < t <= u


def traced_bounds(v: Any, n: Any) -> Any:
    for i in range(n):
        v[i] += i * 2
    for i in range(n, 0, -2):
        v[i] -= v[i - 1]
    return v


def running_sum(v: Any) -> Any:
    out = np.zeros(len(v))
    for i in range(1, len(v)):
        out[i] = out[i - 1] + v[i]
    return out


def heat(w: Any) -> Any:
    u = w.copy()
    for _ in range(30):
        un = u.copy()
        u[1:-1] = un[1:-1] + 0.1 * (un[2:] - 2 * un[1:-1] + un[:-2])
    return u


def helper(a: Any, k: int) -> Any:
    if a[k] > 1:
        a[k] = -a[k]
    return a[k]


def with_helpers(v: Any) -> Any:
    total = 0.0
    for k in range(5):
        total += helper(v, k)
    return total


def best_place(w: Any) -> Any:
    best = w[0]
    at = 0
    for i in range(1, len(w)):
        if w[i] > best:
            best = w[i]
            at = i
    return best, at


def lists_grow(x: Any) -> Any:
    assert x.shape == (3, 4)
    out = []
    for row in x:
        out.append(row.sum())
    for k in range(20):
        out.append(x[0, 0] + k)
    return np.stack(out)


def first_of(v: Any) -> Any:
    i = 0
    while True:
        if v[i] >= 3:
            return i
        i += 1


def pythons_own(v: Any) -> Any:
    products = [a * b for a, b in zip(v, v[::-1], strict=True)]
    pairs = sum(k * a for k, a in enumerate(v))
    return max(v[0], v[1], 2.5), min(v), sum(v), abs(v[2]), products[1], pairs, len(v)


def two_carries(v: Any) -> Any:
    a, b = 0, 1
    for _ in range(20):
        a, b = b, a + b
    return v * a


def triangle(v: Any, n: Any) -> Any:
    a = np.eye(5)
    for i in range(n):
        for j in range(i, 5):
            if i != j:
                a[i, j] = v[j]
    return a


def rows_are_views(x: Any, n: Any) -> Any:
    for i in range(n):
        row = x[i]
        row[0] = 5
        x[i][1] *= 3
        x[i, 2:] += row[0]
    return x


def names_by_number(x: Any) -> Any:
    names = {f"k{i}": i for i in range(30)}
    s = 0
    for i in range(30):
        s += names[f"k{i}"] * x[0, 0]
        if i in (3, 7):
            s += 1
    return s


def counted_in_numpy(x: Any) -> Any:
    count, scale = np.int64(0), np.float32(1)
    for i in range(len(x)):
        if x[i, 0] > 2:
            count += 1
            scale *= 2
    return count, scale


def counted_in_python(x: Any) -> Any:
    odd = []
    for i in range(12):
        if i % 2:
            odd.append(i)
    return x * len(odd)


def bisect(v: Any) -> Any:
    lo, hi = 0, len(v) - 1
    while lo < hi:
        mid = (lo + hi) // 2
        if v[mid] < 2.5:
            lo = mid + 1
        else:
            hi = mid
    return lo


def insertion_sort(w: Any) -> Any:
    w = w.copy()
    for i in range(1, len(w)):
        key = w[i]
        j = i - 1
        while j >= 0 and w[j] > key:
            w[j + 1] = w[j]
            j -= 1
        w[j + 1] = key
    return w


def found_in_two_loops(x: Any) -> Any:
    with np.errstate(all="ignore"):
        for i in range(3):
            for j in range(4):
                if x[i, j] > 5:
                    return i, j
    return -1, -1


def mandelbrot(z: Any) -> Any:
    zr, zi = 0.0, 0.0
    k = 0
    while zr * zr + zi * zi < 4 and k < 50:
        zr, zi = zr * zr - zi * zi + z[0], 2 * zr * zi + z[1]
        k += 1
    return k


def ping_pong(x: Any, y: Any) -> Any:
    u, n = x, y
    for _ in range(20):
        n[1:-1] = 0.5 * (u[:-2] + u[2:])
        u, n = n, u
    return u


def numbers_of(v: Any) -> Any:
    i = int(v[3])
    t = float(v[1]) * 2
    return v[:3] * t, i, v[i]


def cholesky(a: Any) -> Any:
    n = len(a)
    l = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, i] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l


def aliases_through_branches(x: Any, v: Any) -> Any:
    row = x[0]
    if v[0] < 1:
        row[1:] = 8
    else:
        x[1] = 2
    row += 1
    return x.sum(), row


def power(a: Any) -> Any:
    x = a
    for _ in range(40):
        x = x @ a
    return x


def loop_of_nothing(v: Any, n: Any) -> Any:
    while n < 0:
        v[0] = 3
        n += 1
    for k in range(0):
        v[k] = 7
    return v, n


SPD = np.diag(np.full(12, 14.0)) + np.outer(W, W) / 10

PROGRAMS: list[tuple[Any, ...]] = [
    *((branches, X + k) for k in (0, 3, 5)),
    *((early_returns, X * k) for k in (1, -1, 0)),
    *((while_with_arrays, V), (leaving_loops, V), (leaving_loops, V - 9), (expressions, X)),
    *((expressions, -X), (traced_bounds, V, 3), (traced_bounds, V, 0), (running_sum, W)),
    *((heat, W), (with_helpers, V), (best_place, W), (lists_grow, X), (first_of, V)),
    *((pythons_own, V), (two_carries, V), (triangle, V, 4), (rows_are_views, X, 3)),
    *(
        (names_by_number, X),
        (counted_in_python, X),
        (counted_in_numpy, np.ones((20, 1)) * 3),
        (bisect, V),
        (insertion_sort, W),
    ),
    *((found_in_two_loops, X), (found_in_two_loops, X * 0), (mandelbrot, np.array([0.1, 0.2]))),
    *((mandelbrot, np.array([0.5, 0.9])), (ping_pong, W, W * 0), (numbers_of, V)),
    *((cholesky, SPD), (aliases_through_branches, X, V), (aliases_through_branches, X, V + 1)),
    *((power, np.eye(3) * 0.9), (loop_of_nothing, V, -2), (loop_of_nothing, V, 2)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_programs(program: tuple[Any, ...]) -> None:
    function, *arguments = program
    same_as_numpy(function, *arguments, rtol=1e-10)


def sometimes_none(x: Any) -> Any:
    if x[0, 0] > 0:
        return x


def other_types(x: Any) -> Any:
    if x[0, 0] > 0:
        y = x
    else:
        y = x[0]
    return y


def appends(x: Any) -> Any:
    out = []
    if x[0, 0] > 0:
        out.append(x)
    return out


def changes_a_dict(x: Any) -> Any:
    seen = {}
    if x[0, 0] > 0:
        seen["x"] = 1
    return x * len(seen)


def raises(x: Any) -> Any:
    while x[0, 0] > 0:
        raise ValueError("positive")
    return x


def of_many(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def grows(x: Any) -> Any:
    y = x[0]
    while y.sum() < 10:
        y = np.concatenate([y, y])
    return y


def bound_and_written(x: Any) -> Any:
    y = x * 1
    while y[0, 0] < 10:
        y[0] += 1
        y = y * 2
    return y


def listed(x: Any) -> Any:
    return [k for k in range(x[0, 0].astype(int))]


@pytest.mark.parametrize(
    "function, error, line, message",
    [
        (sometimes_none, sw.TraceError, 1, "returns a value on one way and None on another"),
        (other_types, sw.TraceError, 1, r"'y' is f64\[3x4\] in one branch of an if and f64\[4\]"),
        (appends, sw.TraceError, 3, "'append' is called in a branch or loop that only the run"),
        (changes_a_dict, sw.TraceError, 3, "a dict is changed in a branch or loop"),
        (raises, sw.TraceError, 2, "an exception is raised in a loop, or on each way"),
        (of_many, ValueError, 1, "truth value of an array with more than one element is ambiguous"),
        (grows, sw.TraceError, 2, r"'y' is f64\[4\] before a loop and f64\[8\] after an iteration"),
        (bound_and_written, sw.TraceError, 2, "'y' is bound to another array in a loop"),
        (listed, sw.TraceError, 1, "how often this goes round is not known"),
    ],
)
def test_what_is_refused_says_so_at_its_line(
    function: Any, error: Any, line: int, message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        sw.jit(function).trace(X)
    frames = traceback.extract_tb(caught.value.__traceback__)
    first = function.__code__.co_firstlineno
    lines = [f.lineno for f in frames if f.filename == __file__]
    if function is not sometimes_none:
        assert first + line in lines


class Model:
    """Has a method and a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def cut(self, x: Any, *, by: float = 2.0) -> Any:
        """Halve until it is small."""
        while x.max() > self.limit:
            x = x / by
        return x


LIMIT = 3.0


def test_methods_closures_and_globals_are_those_of_the_function() -> None:
    model = Model(4.0)
    np.testing.assert_array_equal(sw.jit(model.cut)(X), model.cut(X))
    np.testing.assert_array_equal(sw.jit(model.cut)(X, by=4.0), model.cut(X, by=4.0))
    depth = 2

    def outer(x: Any, n: int = 3) -> Any:
        def inner(y: Any) -> Any:
            nonlocal_free = depth
            if y[0, 0] > LIMIT:
                return y * nonlocal_free
            return y * n

        return inner(x) + inner(x + 9)

    for x in (X, X + 5):
        same_as_numpy(outer, x)
    assert outer.__code__.co_freevars == ("depth",)


def test_a_jitted_function_in_a_loop_of_another() -> None:
    @sw.jit
    def step(v: Any) -> Any:
        if v.sum() > 4:
            v = v - 1
        return v * 0.5

    def plain(v: Any) -> Any:
        if v.sum() > 4:
            v = v - 1
        return v * 0.5

    def f(v: Any, of: Any) -> Any:
        while v[4] > 0.1:
            v = of(v)
        return v

    def whole(v: Any) -> Any:
        return f(v + 0, step)

    np.testing.assert_allclose(sw.jit(whole)(V), f(V.copy(), plain))


def test_a_loop_is_not_unrolled() -> None:
    text = sw.jit(heat).trace(W).module.text
    assert text.count('"nd.while"') == 1
    assert text.count("\n") < 120


def test_lines_are_the_users() -> None:
    text = sw.jit(branches).trace(X).module.text
    first = branches.__code__.co_firstlineno
    for line in (1, 2, 3, 4, 5, 7):
        assert f'test_plain_python.py":{first + line}:' in text
