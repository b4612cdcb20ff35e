"""The SIR model of an epidemic in several places that mix."""

import numpy as np

from programs.libraries import lax


def sir(S, I, R, mixing, beta, gamma, dt, steps):
    peak = 0.0
    when = 0
    for t in range(steps):
        infections = beta * S * (mixing @ I) * dt
        recoveries = gamma * I * dt
        S -= infections
        I += infections - recoveries
        R += recoveries
        now = I.sum()
        if now > peak:
            peak = now
            when = t
    return peak, when


def inputs(tiny):
    n, steps = (6, 20) if tiny else (32, 1000)
    mixing = np.random.default_rng(0).random((n, n)) / n
    infected = np.zeros(n)
    infected[0] = 0.01
    return 1.0 - infected, infected, np.zeros(n), mixing, 1.5, 0.3, 0.05, steps


def port(S, I, R, mixing, beta, gamma, dt, steps):
    def step(t, state):
        S, I, R, peak, when = state
        infections = beta * S * (mixing @ I) * dt
        recoveries = gamma * I * dt
        I = I + infections - recoveries
        now = I.sum()
        when = lax.select(now > peak, t, when)
        return S - infections, I, R + recoveries, lax.max(peak, now), when

    return lax.fori_loop(0, steps, step, (S, I, R, 0.0, 0))
