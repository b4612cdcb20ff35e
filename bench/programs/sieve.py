"""The sieve of Eratosthenes, which strikes out multiples by slices."""

import numpy as np

from programs.libraries import jnp, lax


def sieve(prime):
    n = prime.shape[0]
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return prime.sum()


def inputs(tiny):
    return (np.ones(200 if tiny else 300000, dtype=bool),)


def loops(prime):
    n = prime.shape[0]
    prime[0] = prime[1] = False
    i = 2
    while i * i < n:
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
        i += 1
    return prime.sum()


def port(prime):
    n = prime.shape[0]
    at = jnp.arange(n)

    def strike(i, prime):
        return jnp.where(prime[i] & (at >= i * i) & (at % i == 0), False, prime)

    prime = lax.fori_loop(2, int(n**0.5) + 1, strike, prime & (at >= 2))
    return prime, prime.sum()
