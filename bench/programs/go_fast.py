"""A loop over the diagonal of a matrix that sums hyperbolic tangents."""

import numpy as np

from programs.libraries import jnp


def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def inputs(tiny):
    n = 12 if tiny else 800
    return (np.random.default_rng(0).random((n, n)),)


def port(a):
    return a + jnp.sum(jnp.tanh(jnp.diag(a)))
