"""A second-order recursive filter of a signal, sample by sample."""

import numpy as np

from programs.libraries import lax


def iir_filter(b, a, x):
    y = np.zeros_like(x)
    z1 = 0.0
    z2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + z1
        z1 = b[1] * x[n] - a[1] * y[n] + z2
        z2 = b[2] * x[n] - a[2] * y[n]
    return y


def inputs(tiny):
    n = 20 if tiny else 50000
    b = np.array([0.067455, 0.134911, 0.067455])
    return b, np.array([1.0, -1.14298, 0.412802]), np.random.default_rng(0).normal(size=n)


def port(b, a, x):
    def step(z, x):
        y = b[0] * x + z[0]
        return (b[1] * x - a[1] * y + z[1], b[2] * x - a[2] * y), y

    return lax.scan(step, (0.0, 0.0), x)[1]
