"""Kepler's equation for many orbits, by Newton's method until all have converged."""

import numpy as np

from programs.libraries import jnp, lax, prange


def newton(mean_anomaly, eccentricity, tol):
    E = mean_anomaly.copy()
    delta = np.ones_like(E)
    while np.max(np.abs(delta)) > tol:
        f = E - eccentricity * np.sin(E) - mean_anomaly
        delta = f / (1 - eccentricity * np.cos(E))
        E -= delta
    return E


def inputs(tiny):
    n = 20 if tiny else 50000
    rng = np.random.default_rng(0)
    return 2 * np.pi * rng.random(n), 0.8 * rng.random(n), 1e-10


def loops(mean_anomaly, eccentricity, tol):
    E = mean_anomaly.copy()
    for i in prange(E.shape[0]):
        delta = 1.0
        while abs(delta) > tol:
            f = E[i] - eccentricity[i] * np.sin(E[i]) - mean_anomaly[i]
            delta = f / (1 - eccentricity[i] * np.cos(E[i]))
            E[i] -= delta
    return E


def port(mean_anomaly, eccentricity, tol):
    def step(state):
        E, _ = state
        f = E - eccentricity * jnp.sin(E) - mean_anomaly
        delta = f / (1 - eccentricity * jnp.cos(E))
        return E - delta, delta

    state = mean_anomaly, jnp.ones_like(mean_anomaly)
    return lax.while_loop(lambda s: jnp.max(jnp.abs(s[1])) > tol, step, state)[0]
