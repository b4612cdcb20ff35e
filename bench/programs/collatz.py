"""How many steps the numbers up to n take to reach 1."""

import numpy as np

from programs.libraries import jax, jnp, lax, prange


def collatz(lengths):
    for start in range(1, lengths.shape[0]):
        n = start
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        lengths[start] = steps


def inputs(tiny):
    return (np.zeros(30 if tiny else 10000, dtype=np.int64),)


def loops(lengths):
    for start in prange(1, lengths.shape[0]):
        n = start
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        lengths[start] = steps


def port(lengths):
    def count(n):
        def step(state):
            n, steps = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]

    n = lengths.shape[0]
    return lengths.at[1:].set(jax.vmap(count)(jnp.arange(1, n)))
