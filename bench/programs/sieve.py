"""Eratosthenes' sieve, which strikes out multiples by slices."""

import numpy as np

from programs.libraries import jnp, lax


def sieve(n):
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return prime


STATIC = ("n",)


def inputs(tiny):
    return (200 if tiny else 300000,)


def loops(n):
    prime = np.ones(n + 1, dtype=np.bool_)
    prime[0] = prime[1] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
        i += 1
    return prime


def port(n):
    at = jnp.arange(n + 1)

    def strike(i, prime):
        return jnp.where(prime[i] & (at >= i * i) & (at % i == 0), False, prime)

    return lax.fori_loop(2, int(n**0.5) + 1, strike, at >= 2)
