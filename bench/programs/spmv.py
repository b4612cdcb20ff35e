"""The product of a sparse matrix in compressed rows (CSR) and a vector."""

import numpy as np

from programs.libraries import jnp, prange


def spmv(A_row, A_col, A_val, x):
    y = np.empty(A_row.size - 1, A_val.dtype)
    for i in range(A_row.size - 1):
        cols = A_col[A_row[i] : A_row[i + 1]]
        vals = A_val[A_row[i] : A_row[i + 1]]
        y[i] = vals @ x[cols]
    return y


def inputs(tiny):
    n, most = (12, 5) if tiny else (4000, 60)
    rng = np.random.default_rng(0)
    rows = np.concatenate([[0], np.cumsum(rng.integers(0, most, n))])
    nnz = rows[-1]
    return rows, rng.integers(0, n, nnz), rng.random(nnz), rng.random(n)


def loops(A_row, A_col, A_val, x):
    y = np.empty(A_row.size - 1, A_val.dtype)
    for i in prange(A_row.size - 1):
        s = 0.0
        for k in range(A_row[i], A_row[i + 1]):
            s += A_val[k] * x[A_col[k]]
        y[i] = s
    return y


def port(A_row, A_col, A_val, x):
    sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(A_val * x[A_col])])
    return sums[A_row[1:]] - sums[A_row[:-1]]
