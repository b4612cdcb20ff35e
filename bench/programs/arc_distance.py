"""The distances of pairs of points on a sphere."""

import numpy as np

from programs.libraries import jnp, prange


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    temp = (
        np.sin((theta_2 - theta_1) / 2) ** 2
        + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    )
    return 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))


def inputs(tiny):
    n = 20 if tiny else 100000
    return tuple(np.random.default_rng(0).random((4, n)))


def loops(theta_1, phi_1, theta_2, phi_2):
    out = np.empty_like(theta_1)
    for i in prange(theta_1.shape[0]):
        a = np.sin((theta_2[i] - theta_1[i]) / 2)
        b = np.sin((phi_2[i] - phi_1[i]) / 2)
        temp = a * a + np.cos(theta_1[i]) * np.cos(theta_2[i]) * b * b
        out[i] = 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))
    return out


def port(theta_1, phi_1, theta_2, phi_2):
    temp = (
        jnp.sin((theta_2 - theta_1) / 2) ** 2
        + jnp.cos(theta_1) * jnp.cos(theta_2) * jnp.sin((phi_2 - phi_1) / 2) ** 2
    )
    return 2 * jnp.arctan2(jnp.sqrt(temp), jnp.sqrt(1 - temp))
