"""Slices whose bounds only the run knows."""

from typing import Any

import numpy as np

from capture.cases import I, M, W, X, captured, refused


@captured((M + 3 * np.eye(10),), (M.T + 4 * np.eye(10),), rtol=1e-9)
def lu_by_blocks(m: Any) -> Any:
    a = m.copy()
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


@captured((M,), (M * 2,), rtol=1e-9)
def cholesky_by_rows(m: Any) -> Any:
    a = m @ m.T + np.eye(10)
    L = np.zeros((10, 10))
    for i in range(10):
        for j in range(i):
            L[i, j] = (a[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
        L[i, i] = np.sqrt(a[i, i] - np.sum(L[i, :i] ** 2))
    return L


@captured((M + np.eye(10),), (M.T + np.eye(10),), rtol=1e-8)
def gram_schmidt(m: Any) -> Any:
    q = m.copy()
    for j in range(10):
        for k in range(j):
            q[:, j] -= (q[:, k] @ q[:, j]) * q[:, k]
        q[:, j] /= np.sqrt(q[:, j] @ q[:, j])
    return q


@captured((M + np.eye(10),), (M.T + np.eye(10),), rtol=1e-8)
def gram_schmidt_by_blocks(m: Any) -> Any:
    q = m.copy()
    for j in range(10):
        v = q[:, j] - q[:, :j] @ (q[:, :j].T @ q[:, j])
        q[:, j] = v / np.sqrt(v @ v)
    return q


@captured((W, 2, 7), (W, 1, 12))
def reductions(w: Any, i: Any, j: Any) -> Any:
    return (
        w[i:j].max(),
        w[i:j].min(),
        w[i:j].mean(),
        np.argmax(w[i:j]),
        np.sum(w[i:j] ** 2),
        len(w[i:j]),
        w[i:j][0],
        w[i:j][-1],
        np.any(w[:i] > 3),
        np.prod(w[i:]),
        w[-j:].sum(),
        w[:-i].sum(),
    )


@captured((W, 5), (W, 3))
def shifted(w: Any, i: Any) -> Any:
    return np.sum(w[:i] * w[1 : i + 1]), w[i - 2 : i + 1], np.dot(w[1:i], w[: i - 1])


@captured((W, 5), (W, 12))
def a_loop_over_a_slice(w: Any, i: Any) -> Any:
    s = 0.0
    for v in w[:i]:
        s += v * v
    w[2:i] = 7.0
    t = w[i:]
    t *= 2
    w[:i] += w[:i]
    return s


@captured((W, W[:5].copy()), (-W, W[5:10].copy()))
def convolution(w: Any, k: Any) -> Any:
    out = np.zeros(8)
    for i in range(8):
        out[i] = w[i : i + 5] @ k
    return out


@captured((W,), (W * 2,))
def moving_mean(w: Any) -> Any:
    out = np.zeros(12)
    for i in range(12):
        lo = max(0, i - 2)
        hi = min(12, i + 3)
        out[i] = w[lo:hi].mean()
    return out


@captured((W,), (W * 2,))
def selection_sort(w: Any) -> Any:
    for i in range(len(w)):
        k = i + np.argmin(w[i:])
        w[i], w[k] = w[k], w[i]


@captured((W / 20,), (W / 30,), rtol=1e-9)
def levinson_durbin(r: Any) -> Any:
    n = len(r)
    y = np.empty(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + np.dot(r[:k][::-1], y[:k])) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


@captured((M, 3, 4), (M, 9, 9))
def two_axes(m: Any, i: Any, j: Any) -> Any:
    return (
        m[:i, :j].sum(),
        m[:i, :j].sum(axis=0).max(),
        m[i:, j].max(),
        m[2, :i] @ m[:i, 3],
        (m[:i, :j] @ m[:j, :i]).sum(),
    )


@captured((W, 4), (W, 9))
def slices_in_branches(w: Any, i: Any) -> Any:
    if w[:i].sum() > 5:
        w[i:] *= 2
        s = w[:i].max()
    else:
        w[:i] = w[:i] * 0.5
        s = w[i:].min()
    return s


@captured((W,), (W[::-1].copy(),))
def insertion_by_slices(w: Any) -> Any:
    for i in range(1, len(w)):
        x = w[i]
        k = np.sum(w[:i] < x)
        w[k + 1 : i + 1] = w[k:i]
        w[k] = x


@captured((W, 5), (W, 12))
def suffix_maxima(w: Any, n: Any) -> Any:
    out = np.zeros(12)
    for i in range(n):
        out[i] = w[i:].max() - w[: i + 1].min()
    return out


@refused("a result whose shape is not known while tracing", (W, 3))
def returned_slice(w: Any, i: Any) -> Any:
    return w[:i]


@refused("how many elements a slice with traced bounds, or a choice by a mask, has", (W, 3))
def partitioned_slice(w: Any, i: Any) -> Any:
    return np.partition(w[:i], 1)[0]


@captured((np.sin(np.arange(2.0 * 12 * 11 * 2)).reshape(2, 12, 11, 2), np.cos(np.arange(54.0))))
def convolution_of_images(image: Any, w: Any) -> Any:
    w = w.reshape(3, 3, 2, 3)
    K = w.shape[0]
    n, height, width, _ = image.shape
    out = np.empty((n, height - K + 1, width - K + 1, w.shape[3]))
    for i in range(height - K + 1):
        for j in range(width - K + 1):
            out[:, i, j, :] = np.sum(
                image[:, i : i + K, j : j + K, :, np.newaxis] * w[np.newaxis], axis=(1, 2, 3)
            )
    return out


@captured((M, 3, 2), (M, 0, 7))
def new_axes(m: Any, i: Any, j: Any) -> Any:
    a, b = m[None, :i, j], m[j, None, :i]
    return a.sum(), (b * 2).max(), (m[..., None, :i] + m[:, None, :i]).sum(axis=(0, 1, 2))


@captured((np.ones(200, bool),), (W > -3,))
def sieve(given: Any) -> Any:
    prime = given.copy()
    n = len(prime)
    prime[:2] = False
    for i in range(2, n):
        if prime[i]:
            prime[i * i :: i] = False
    return prime


@captured((X, 1, 2, 7.0), (X, 0, 1, 2.0), (X, 3, 9, 2.0), (X, -2, 2, 2.0), (X, 0, 2**62, 1.5))
def steps(x: Any, i: Any, k: Any, v: Any) -> Any:
    y = x.copy()
    y[:, i::k] = v
    y[i::k, 1] = v + 1
    y[i:3:k] = x[0]
    y[::k, -1] = y[0, 0] + 1
    return y


@refused("is assigned one value", (X, 1, 2))
def steps_of_many(x: Any, i: Any, k: Any) -> Any:
    y = x.copy()
    y[i::k] = x[1:]
    return y


@captured((W / 50,), (-W / 40,), rtol=1e-9)
def durbin(r: Any) -> Any:
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@captured((M, 3), (M, 0))
def flipped_windows(m: Any, i: Any) -> Any:
    at = np.arange(10.0)
    return (
        (np.flip(m[:, :i], axis=1) * m[:, :i]).sum(),
        (np.flip(m[:i, :i], 0) * m[:i, :i]).sum(),
        (np.flip(m[:i]) * m[:i]).sum(),
        (np.flip(m[:, :i], 0) * at[:, None]).sum(),
    )


J = I.copy()
J[[2, 5]] = 100, -2


@captured((W, I, 2, 6), (W, I, 0, 12), (W, J, 3, 6), (W, J, 1, 4), (W, I, 5, 5), (W, I, 7, 3))
def indices_of_a_slice(w: Any, i: Any, a: Any, b: Any) -> Any:
    s = w[i[a:b]].sum(), w[a:b] @ w[i[a:b]], len(w[i[a:b]])
    w[i[a:b]] = 7
    w[i[a:b]] += w[a:b]
    return s


@captured((M, I, 2, 6), (M, J, 3, 6), (M, I, 5, 5))
def rows_of_a_slice_of_indices(m: Any, i: Any, a: Any, b: Any) -> Any:
    s = m[i[a:b]].sum(axis=0), m[:, i[a:b]].sum(), m[i[a:b], i[a:b]].sum(), m[i[a:b], 2].sum()
    m[i[a:b], 1] = i[a:b]
    return s


@captured((W, I, np.array([0, 3, 3, 7, 12])))
def rows_of_a_sparse_matrix(v: Any, columns: Any, rows: Any) -> Any:
    x = np.arange(10.0)
    y = np.empty(4)
    for i in range(4):
        y[i] = v[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]
    return y


@captured((W, 3, 9, 2), (W, 5, 5, 0), (W, 0, 12, -1), (W, 4, 5, -1))
def slices_of_slices(w: Any, a: Any, b: Any, k: Any) -> Any:
    v = w[a:b]
    s = 0.0
    for j in range(len(v)):
        s += v[j] * j
    d = v[1:] - v[:-1]
    return d.sum(), len(v[2:]), v[:3].sum(), v[-2:].sum(), s, v[k]


@captured((W, 3, 6, 7, 10), (W, 3, 6, 7, 8), (W, 3, 6, 7, 11), (W, 3, 3, 7, 7), (W, -5, -2, 0, 3))
def sizes_that_the_run_compares(w: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return (w[a:b] + w[c:d]).sum()
