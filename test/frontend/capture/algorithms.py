"""Algorithms in loops over elements, rows and windows."""

# ruff: noqa: E741, B007
# ruff: noqa: B905
from typing import Any

import numpy as np

from capture.cases import F, I, M, V, W, captured, refused


@captured((2.0,), (9.0,), (0.5,))
def newton_sqrt(a: Any) -> Any:
    x = a
    for _ in range(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    return x


@captured((W,), (-W,))
def running_max(w: Any) -> Any:
    out = np.empty_like(w)
    m = w[0]
    for i in range(len(w)):
        if w[i] > m:
            m = w[i]
        out[i] = m
    return out


@captured((W,), (W[::-1].copy(),))
def bubble_sort(w: Any) -> Any:
    a = w.copy()
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    return a


@captured((W,), (W * 3,))
def selection_sort_in_place(w: Any) -> Any:
    for i in range(len(w)):
        k = i + np.argmin(w[i:])
        w[i], w[k] = w[k], w[i]


@captured((I,), (I[::-1].copy(),))
def insertion_sort_ints(a: Any) -> Any:
    a = a.copy()
    for i in range(1, len(a)):
        x = a[i]
        j = i
        while j > 0 and a[j - 1] > x:
            a[j] = a[j - 1]
            j = j - 1
        a[j] = x
    return a


@captured((M,), (M.T.copy(),))
def matrix_product(a: Any) -> Any:
    n, m = a.shape
    c = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for k in range(m):
                c[i, j] += a[i, k] * a[j, k]
    return c


@captured((np.array([1, 3, 4, 1, 2, 3, 4]), np.array([3, 4, 1, 2, 1, 3])), (I[:7], I[6:]))
def lcs(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    t = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                t[i, j] = t[i - 1, j - 1] + 1
            else:
                t[i, j] = max(t[i - 1, j], t[i, j - 1])
    return t[n, m]


@captured((np.array([1, 5, 10, 12]), 30), (np.array([2, 3, 7, 9]), 30))
def coin_change(coins: Any, _: Any) -> Any:
    best = np.full(31, 1000)
    best[0] = 0
    for total in range(1, 31):
        for c in coins:
            if c <= total:
                best[total] = min(best[total], best[total - c] + 1)
    return best


@captured((W,), (W - 4,))
def kadane(w: Any) -> Any:
    best = cur = w[0]
    for x in w[1:]:
        cur = max(x, cur + x)
        best = max(best, cur)
    return best


@captured((10,), (0,), (3,))
def fibonacci(n: Any) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@captured((1.5,), (0.1,))
def exp_series(x: Any) -> Any:
    term, total, k = 1.0, 1.0, 1
    while abs(term) > 1e-15:
        term *= x / k
        total += term
        k += 1
    return total


@captured((W, 4.0), (W, -20.0), (W, 50.0))
def binary_search(w: Any, t: Any) -> Any:
    a = np.sort(w)
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < t:
            lo = mid + 1
        else:
            hi = mid
    return lo


@captured((1.0, 3.0), (0.0, 4.0))
def bisection(a: Any, b: Any) -> Any:
    fa = a * a - 2
    for _ in range(60):
        m = (a + b) / 2
        fm = m * m - 2
        if fa * fm <= 0:
            b = m
        else:
            a, fa = m, fm
    return (a + b) / 2


@captured((M,), (M * 2,))
def all_pairs_shortest(d: Any) -> Any:
    d = np.abs(d) + 0.1
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


@captured((M,), (M + 1,), rtol=1e-8)
def gaussian_elimination(m: Any) -> Any:
    a = m + 12 * np.eye(10)
    b = m[:, 0].copy()
    n = len(b)
    for k in range(n - 1):
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@captured((M,), (M - 2,), rtol=1e-9)
def jacobi_until_small(m: Any) -> Any:
    u = m.copy()
    err = 1.0
    n = 0
    while err > 1e-3 and n < 100:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        err = np.max(np.abs(new - u))
        u = new
        n += 1
    return u, n


@captured((M,), (M - 1,), rtol=1e-10)
def power_iteration(m: Any) -> Any:
    a = m @ m.T
    v = np.ones(10)
    old = 0.0
    for _ in range(100):
        v = a @ v
        norm = np.sqrt((v * v).sum())
        v /= norm
        if abs(norm - old) < 1e-9:
            break
        old = norm
    return norm, v  # pyright: ignore[reportPossiblyUnboundVariable]


@captured((M,), (M + 1,))
def rows_of_a_matrix(m: Any) -> Any:
    s = 0.0
    for row in m:
        if row[0] > 0:
            s += row.sum()
    return s


@captured((W,), (W + 1,))
def enumerated(w: Any) -> Any:
    s = 0.0
    for i, x in enumerate(w):
        s += i * x
    return s


@refused("'s' is f64[] in one branch of an if and f32[] in the other", (W, F))
def zipped_dtypes(w: Any, f: Any) -> Any:
    s = 0.0
    for a, b in zip(w, f):
        if a > b:
            s += a
        else:
            s -= b
    return s


@captured((W, W[::-1].copy()), (-W, W))
def zipped(w: Any, f: Any) -> Any:
    s = 0.0
    for a, b in zip(w, f):
        if a > b:
            s += a
        else:
            s -= b
    return s


@captured((W,), (W * 2,))
def backwards(w: Any) -> Any:
    h = 0.0
    for c in reversed(w):
        h = h * 0.5 + c
    for i in reversed(range(12)):
        h = h * 0.5 + w[i]
    return h


@captured((W,), (V,))
def strided_ranges(w: Any) -> Any:
    s = 0.0
    for i in range(len(w) - 1, 0, -2):
        s += w[i] - w[i - 1]
    for i in range(1, len(w), 3):
        s *= w[i]
    return s


@captured((W, 7), (W, 0), (W, 12))
def prefix_sums(w: Any, i: Any) -> Any:
    return w[:i].sum(), w[i:].sum()


@captured((W, 2), (W, 5))
def window_sum(w: Any, i: Any) -> Any:
    return w[i : i + 3].sum(), w[i : i + 3] * 2


@captured((W, 2), (W, 12), (W, 0))
def assign_prefix(w: Any, i: Any) -> Any:
    w[:i] = 0
    w[i:] += 1


@captured((W, V), (W * 2, V - 1))
def moving_dot(w: Any, v: Any) -> Any:
    out = np.zeros(len(w) - len(v) + 1)
    for i in range(len(out)):
        out[i] = np.dot(w[i : i + 5], v)
    return out


@captured((W,), (W - 1,))
def triangular(w: Any) -> Any:
    s = 0.0
    for i in range(12):
        for j in range(i, 12):
            s += w[i] * w[j]
        s -= w[:i].sum()
    return s


@captured((M,), (M - 1,))
def forward_substitution(m: Any) -> Any:
    l = np.tril(m) + 5 * np.eye(10)
    b = m[0]
    y = np.zeros(10)
    for i in range(10):
        y[i] = (b[i] - l[i, :i] @ y[:i]) / l[i, i]
    return y


@captured((W,), (W + 3,))
def accumulate_from_int(w: Any) -> Any:
    s = 0
    n = 0
    for x in w:
        s += 0.5 * x
        n += 1
    return s / n


@captured((M,), (M * 2,))
def accumulate_rows(m: Any) -> Any:
    acc = 0
    for i in range(len(m)):
        acc = acc + m[i]
    return acc


@captured((W,), (V,))
def shrinking(w: Any) -> Any:
    s = 0.0
    x = w
    for _ in range(4):
        x = x[1:]
        s += x.sum()
    return s


@captured((M,), (M - 1,))
def game_of_life(m: Any) -> Any:
    board = m > 0
    for _ in range(4):
        count = np.zeros(board.shape, dtype=int)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy or dx:
                    count += np.roll(np.roll(board, dy, 0), dx, 1)
        board = (count == 3) | (board & (count == 2))
    return board


@captured((30,), (7,))
def sieve_until(n: Any) -> Any:
    is_prime = np.ones(50, dtype=bool)
    is_prime[:2] = False
    for i in range(2, 8):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return is_prime.sum() + n


@captured((np.array([0.3, 0.5]),), (np.array([-1.0, 0.0]),), (np.array([0.1, 0.1]),))
def mandelbrot(c: Any) -> Any:
    zr = zi = 0.0
    for k in range(40):
        zr, zi = zr * zr - zi * zi + c[0], 2 * zr * zi + c[1]
        if zr * zr + zi * zi > 4.0:
            break
    return k  # pyright: ignore[reportPossiblyUnboundVariable]
