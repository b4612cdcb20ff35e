"""Branches, loops, and what leaves them."""

# ruff: noqa: SIM108
# ruff: noqa: E731
from typing import Any

import numpy as np

from capture.cases import V, W, X, captured, refused


@captured((V, 2.0), (V, -2.0))
def sign_branch(v: Any, t: Any) -> Any:
    if t > 0:
        out = v * t
    elif t < -1:
        out = v - t
    else:
        out = v
    return out


@captured((V,), (V - 3,), (-V,))
def nested_returns(v: Any) -> Any:
    if v.sum() > 0:
        if v[0] < 0:
            return v[0]
        return v[1]
    return v[2]


@captured((W,), (W - 20,), (W * 0,))
def first_negative(w: Any) -> Any:
    for i in range(len(w)):
        if w[i] < 0:
            return i
    return -1


@captured((W, 4.0), (W, 100.0))
def search_with_else(w: Any, t: Any) -> Any:
    for i in range(len(w)):
        if w[i] == t:
            break
    else:
        i = -1
    return i


@captured((W,), (W + 20,))
def while_with_else(w: Any) -> Any:
    k = 0
    while k < 10:
        if w[k] < 0:
            found = 1
            break
        k += 1
    else:
        found = 0
    return found, k


@captured((W,), (W * 2,))
def skip_and_stop(w: Any) -> Any:
    total = 0.0
    for x in w:
        if x < 0:
            continue
        if x > 8.5:
            break
        total += x
    return total


@captured((V, 3), (V, 0))
def count_down(v: Any, n: Any) -> Any:
    s = 0.0
    while n > 0:
        s = s + v[n]
        n -= 1
    return s


@captured((27,), (1,), (97,))
def collatz(n: Any) -> Any:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@captured((48, 36), (17, 5), (5, 0))
def gcd(a: Any, b: Any) -> Any:
    while b:
        a, b = b, a % b
    return a


@captured((X,), (X - 5,))
def ternaries(x: Any) -> Any:
    a = x[0, 1] if x[1, 1] > 2 else x[2, 2]
    b = 1 if x[0, 0] > 0 else 0
    return a, b, (a if b else -a)


@captured((3.0, 1.0), (0.0, 0.0), (-2.0, 5.0))
def logic(a: Any, b: Any) -> Any:
    return a and b, a or b, not a, 0 < a < b, a == 0 or b > 2, (a > 0 and not b)


@captured((W,), (V,))
def loop_variable_lives_on(w: Any) -> Any:
    for i in range(len(w)):
        last = w[i] * i
    return i, last, np.zeros(i)  # pyright: ignore[reportPossiblyUnboundVariable]


@captured((W,), (-W,))
def nested_break(w: Any) -> Any:
    hits = 0
    for i in range(12):
        for j in range(12):
            if w[i] + w[j] > 10:
                break
            if w[j] < 0:
                continue
            hits += 1
        if hits > 40:
            break
    return hits, i, j  # pyright: ignore[reportPossiblyUnboundVariable]


@captured((W, 5.0), (W, 50.0))
def return_from_two_loops(w: Any, t: Any) -> Any:
    for i in range(len(w)):
        for j in range(i + 1, len(w)):
            if w[i] + w[j] == t:
                return i, j
    return -1, -1


@captured((W,), (W * 1.5,))
def squares_until(w: Any) -> Any:
    x = w[0]
    while True:
        x = x * x
        if x > 1000:
            return x
        if x < 0.001:
            return -x


@captured((W, 3), (W, 11))
def walrus(w: Any, k: Any) -> Any:
    if (n := w[k]) > 2:
        return n * 2
    return n


@captured((W,), (W - 30,))
def walrus_in_while(w: Any) -> Any:
    i = 0
    while (x := w[i]) < 8 and i < 11:
        i += 1
    return i, x


@captured((3, V), (0, V), (1, V))
def match_traced(n: Any, v: Any) -> Any:
    match n:
        case 0:
            return v
        case 1 | 2:
            return v * 2
        case _:
            return v * n


@captured((V,), (X,))
def match_shapes(v: Any) -> Any:
    match v.shape:
        case (n,):
            return v * n
        case (n, m):
            return v * n + m
        case _:
            return v


@captured((V,), (W,))
def assert_shape(v: Any) -> Any:
    assert v.ndim == 1, "one axis"
    assert len(v) > 2
    return v[2]


@captured((W,), (W - 10,))
def pass_and_ellipsis(w: Any) -> Any:
    if w[0] > 0:
        pass
    else:
        ...
    for _ in range(3):
        pass
    return w


@captured((W,), (-W,))
def complex_conditions(w: Any) -> Any:
    n = 0
    i = 0
    while i < 12 and not (w[i] > 8 or (w[i] < -4 and n > 2)):
        if 0 < w[i] <= 4 or w[i] == -1:
            n += 1
        i += 1
    return i, n


@captured((W, 3), (W, 5))
def modulo_branch(w: Any, k: Any) -> Any:
    out = np.zeros_like(w)
    for i in range(len(w)):
        if i % k == 0:
            out[i] = w[i]
        elif i % 2:
            out[i] = -w[i]
    return out


@captured((W,), (W * 0,))
def flags(w: Any) -> Any:
    found = False
    where = -1
    for i in range(len(w)):
        if not found and w[i] > 5:
            found = True
            where = i
    return found, where


@captured((W,), (W * 2,))
def lambda_in_function(w: Any) -> Any:
    clip = lambda x: x if x > 0 else 0.0
    s = 0.0
    for i in range(12):
        s += clip(w[i])
    return s


@captured((W,), (W * 2,))
def loops_that_python_counts(w: Any) -> Any:
    k = 0
    s = w * 0
    while k < 20:
        j = 0
        while j < 15:
            s[j % 12] += w[k % 12] * j
            j += 1
        k += 1
    width = 1
    while width < len(w):
        w[width:] += w[:-width].copy()
        width *= 2
    return s, k, j, width  # pyright: ignore[reportPossiblyUnboundVariable]


@captured((W,), (V,))
def ends_of_loops_in_a_loop(w: Any) -> Any:
    s = 0.0
    for i in range(12):
        j = 0
        while j < 11:
            j += 1
        for q in range(11):
            last = q
        s += w[j - 11 + i] + w[last - 10]  # pyright: ignore[reportPossiblyUnboundVariable]
    return s


@captured((X,), (X - 5,))
def places_and_elements(x: Any) -> Any:
    out = np.zeros((4, 3))
    for (i, j), v in np.ndenumerate(x[:, :3].T[:3]):
        out[j, i] = v * i - j
    for at in np.ndindex(2, 2):
        out[at] += 10
    return out


@refused("numpy.nditer goes through numbers", (X,))
def by_nditer(x: Any) -> Any:
    total: Any = 0
    for v in np.nditer(x):
        total += v
    return total


@captured((V, -V, 0), (V, -V, 1), (V, -V, 3))
def rebound_in_one_way_and_read_in_the_other(a: Any, b: Any, n: int) -> Any:
    c = a + 1
    if n > 0:
        a, b = b, a
        if n > 1:
            b[0] = 7.0
        c = c * 5
        b[2] = c[2]
    else:
        a[1] = c[1]
    return None
