"""Views, copies, and arrays that are assigned to."""

from typing import Any

import numpy as np

from capture.cases import I, M, V, W, X, captured, refused


@captured((X,), (X * 2,))
def rows_are_views(x: Any) -> Any:
    row = x[1]
    row += 10
    row[0] = -1
    return row.sum()


@captured((X,), (X * 2,))
def fancy_is_a_copy(x: Any) -> Any:
    rows = x[[0, 2]]
    rows += 10
    return rows


@captured((X,), (X - 5,))
def masked_assignment(x: Any) -> Any:
    x[x < 2] = 0
    x[x > 8] *= -1
    y = x.copy()
    y[y > 3] += 1
    return y


@captured((W,), (V,))
def known_mask(w: Any) -> Any:
    keep = np.ones(len(w), bool)
    keep[3] = False
    keep[::4] = False
    return w[keep], w[keep].shape


@captured((W,), (V,))
def known_index_array(w: Any) -> Any:
    idx = np.arange(len(w))
    idx[0] = 2
    idx[-1] = 0
    idx[1:3] = idx[1:3][::-1]
    return w[idx], w[idx[:2]]


@captured((W,), (V,))
def known_counts(w: Any) -> Any:
    sizes = np.zeros(3, dtype=int)
    for k in range(10):
        sizes[k % 3] += 1
    out = np.zeros((sizes[0], sizes[1]))
    out[0, 0] = w[0]
    if sizes[0] > 3:
        out += 1
    for k in range(sizes[2]):
        out[k, k] = w[k]
    return out


@captured((W,), (W * 2,))
def known_then_traced(w: Any) -> Any:
    a = np.zeros(4)
    a[1] = 3.0
    b = a
    a[0] = w[0]
    b[2] = w[2]
    return a, b.sum()


@captured((12,), (30,))
def known_sieve(n: Any) -> Any:
    prime = np.ones(30, dtype=bool)
    prime[:2] = False
    for i in range(2, 6):
        if prime[i]:
            prime[i * i :: i] = False
    return np.nonzero(prime)[0] + n


@captured((W, W + 1), (W, W * 2))
def swap_references(a: Any, b: Any) -> Any:
    c = a
    a = b
    a[0] = 100
    return a + c


@captured((X,), (X * 3,))
def transpose_is_a_view(x: Any) -> Any:
    t = x.T
    t[0] = 5
    t[1, 1:] += x[0, 0]
    return t.copy()


@captured((W,), (W * 2,))
def slices_of_slices(w: Any) -> Any:
    a = w[2:10]
    b = a[::2]
    b[:] = b[::-1].copy()
    b[1:] *= 2
    return a, b


@captured((W,), (W * 2,))
def overlapping_shift(w: Any) -> Any:
    w[1:] = w[:-1]
    w[:-1] += w[1:]
    return w.sum()


@captured((X,), (X + 3,))
def reshape_is_a_view(x: Any) -> Any:
    f = x.reshape(-1)
    f[::2] = 0
    x.ravel()[1] = 9
    return f


@captured((X,), (X + 3,))
def flatten_is_a_copy(x: Any) -> Any:
    f = x.flatten()
    f[0] = 77
    return f


@captured((V,), (V + 3,))
def plus_equals_on_argument(v: Any) -> Any:
    v += 1
    v = v + 1
    v += 1
    return v


@captured((V,), (V + 3,))
def augmented_in_helper(v: Any) -> Any:
    def bump(a: Any, k: Any) -> None:
        a[k] += 1

    for k in range(3):
        bump(v, k)
    bump(v[::-1], 0)


@captured((W, I), (W, I[::-1].copy()))
def scatter_add(w: Any, i: Any) -> Any:
    h = np.zeros(12)
    np.add.at(h, i, w)
    g = np.zeros(12)
    g[i] += 1
    return h, g


@captured((W,), (W - 6,))
def where_and_select(w: Any) -> Any:
    out = np.where(w > 0, np.sqrt(np.abs(w)), 0)
    out[w < -2] = -1
    return out


@captured((M,), (M * 2,))
def diagonal_and_border(m: Any) -> Any:
    a = m.copy()
    n = len(a)
    for i in range(n):
        a[i, i] = 0
    a[0, :] = a[-1, :] = 1
    a[:, 0] = a[:, -1] = 2
    a[1:-1, 1:-1] *= 0.5
    return a


@captured((M,), (M * 2,))
def swap_rows(m: Any) -> Any:
    p = m.copy()
    p[[0, 3]] = p[[3, 0]]
    tmp = p[1].copy()
    p[1] = p[2]
    p[2] = tmp
    return p


@captured((M,), (-M,))
def pivoting(m: Any) -> Any:
    a = m.copy()
    for k in range(9):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
    return a


@captured((W,), (W + 1,))
def out_arguments(w: Any) -> Any:
    t = np.empty_like(w)
    np.multiply(w, 2, out=t)
    np.add(t, w, out=t)
    w.fill(3)
    return t


@captured((W, W * 2), (W, W - 1))
def copyto_and_full(a: Any, b: Any) -> Any:
    a[...] = b
    a[:] = a[::-1]
    return a + b


@captured((M,), (M + 1,))
def gauss_seidel(m: Any) -> Any:
    u = m.copy()
    for _ in range(3):
        for i in range(1, 9):
            for j in range(1, 9):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


@captured((W,), (W * 2,))
def ping_pong(w: Any) -> Any:
    u, n = w.copy(), np.zeros_like(w)
    for _ in range(20):
        n[1:-1] = 0.5 * (u[:-2] + u[2:])
        u, n = n, u
    return u


@refused("is an array without axes, which is a number here", (np.array(2.0), V))
def zero_dimensional_in_place(s: Any, v: Any) -> Any:
    s += 1
    v *= s
    return s


@captured((np.float64(2.0), V), (np.float64(5.0), V))
def numbers_in_place(s: Any, v: Any) -> Any:
    s += 1
    v *= s
    return s


@captured((W,), (W - 3,))
def made_by_expression(w: Any) -> Any:
    a = 2 * np.arange(12.0)
    a[3] = w[3]
    b = -np.ones(3)
    b[0] += w[0]
    return a, b


@captured((W,), (W - 3,))
def negative_indices(w: Any) -> Any:
    k = -1
    s = 0.0
    for i in range(10):
        s += w[-i - 1] + w[i - 12]
    w[k] = s
    return w[-3:], s


@captured((W,), (-W,), (np.abs(W),))
def one_mask_written_twice(w: Any) -> Any:
    x, y = w.copy(), np.where(w > 2, w, 0.0)
    y[y > 0] = y[y > 0] ** -1.5
    x[(x > 1) & (x < 5)] += 1 / x[(x > 1) & (x < 5)]
    x[x[::-1] * 2 > 1] = x[x[::-1] * 2 > 1] * 3
    return x, y


@refused("keep the mask in a variable", (W,))
def another_mask(w: Any) -> Any:
    x = w.copy()
    y = x[x > 0]
    x += 1
    x[x > 0] = y
    return x


@captured((X, np.array([0, 2, 0])), (-X, np.array([0, 1, 0])))
def rows_of_a_mask(x: Any, label: Any) -> Any:
    mine = label == 0
    some, cubes = x[label == 0], np.stack([x, x + 1, x * x])
    return (
        some.mean(axis=0),
        np.sum(some, axis=0),
        some.max(axis=0),
        np.min(x[mine], 0, keepdims=True),
        np.max(x[x > -5]),
        (some > 3).any(axis=0),
        (x.astype(int)[mine] > 3).all(axis=0, keepdims=True),
        some.sum(axis=1).max(),
        ((some - some.mean(axis=0)) ** 2).sum(axis=(0, 1)),
        (some * some.max(axis=0, keepdims=True)).sum(axis=0),
        cubes[cubes[:, :, 0] > 0].sum(axis=0),
        x.astype(np.int32)[mine].mean(axis=-2),
        x.astype(np.int32)[mine].min(),
    )


@captured((X, np.array([0, 2, 0])), rtol=1e-12)
def centres(x: Any, label: Any) -> Any:
    out = np.zeros((3, 4))
    for k in range(3):
        if np.any(label == k):
            out[k] = x[label == k].mean(axis=0)
    return out


@captured((W, -W, 0), (W, -W, 1), (W, -W, 2), (W, -W, 5))
def exchanged_as_often_as_told(u: Any, v: Any, n: int) -> Any:
    first, i = u, 0
    while i < n:
        v[1:-1] = (u[2:] + u[:-2]) * 0.5
        u, v = v, u
        i += 1
    return u, first


@captured((V, -V, V * V, 2), (V, -V, V * V, 4))
def three_in_turn(a: Any, b: Any, c: Any, n: int) -> Any:
    for _ in range(n):
        c[:4] = a[:4] * 0.5 + b[:4]
        a, b, c = b, c, a
    return a[:2] - b[:2]


@captured((V, 3), (V, 4))
def exchanged_until_left(x: Any, n: int) -> Any:
    u, v = x.copy(), x * 2
    for k in range(50):
        v[1:] = u[:-1] * 0.5 + k
        u, v = v, u
        if k >= n:
            break
    u[0] = 7.0
    return u, v


@refused("may lie in the same memory as another", (V, V + 1, 3))
def written_after_an_exchange(u: Any, v: Any, n: int) -> Any:
    i = 0
    while i < n:
        v[:] = u + 1
        u, v = v, u
        i += 1
    u[0] = 9.0
    return u


@captured((V, 1e-3, 100), (V, 1e-9, 3))
def relaxed_until_settled(u: Any, limit: float, most: int) -> Any:
    for sweep in range(most):
        change = 0.0
        for i in range(1, len(u) - 1):
            old = u[i]
            u[i] = 0.5 * (u[i - 1] + u[i + 1])
            change = max(change, abs(u[i] - old))
        if change < limit:
            return u, sweep
    return u, most


@captured((V, W, 2.0), (V, W, 50.0))
def bound_in_a_branch_to_one_from_outside(a: Any, b: Any, most: float) -> Any:
    for i in range(8):
        a[i] += i
        if a[i] > most:
            found = b
            found[0] = -1.0
            break
    else:
        found = b
    b[1] = 5.0
    return a, b, found


@captured((X, 0), (X, 2))
def rows_from_what_is_overwritten(x: Any, j: Any) -> Any:
    y = np.concatenate([x, x[::-1]], axis=1)
    for _ in range(9):
        y[0:2, 2:6] += y[0, 0:4] * 0.5
        y[:, 3:7] -= y[j, 1:5] * 0.25
        y[1:, 1:5] += y[1, 2:6] * 0.125
    return y


@refused("may lie in the same memory as another", (V, V + 1, 3))
def written_wholly_after_a_choice(u: Any, v: Any, n: int) -> Any:
    if n > 5:
        u, v = v, u
    u[:] *= 0.5
    return u
