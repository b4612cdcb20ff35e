"""A damped, driven pendulum by the Runge-Kutta method."""

import math

import numpy as np

from programs.libraries import jnp, lax


def slope(theta, omega, t, q, drive):
    return -math.sin(theta) - q * omega + drive * math.cos(0.6667 * t)


def pendulum(theta, omega, dt, q, drive, path):
    t = 0.0
    for i in range(path.shape[0]):
        k1, l1 = omega, slope(theta, omega, t, q, drive)
        k2 = omega + dt / 2 * l1
        l2 = slope(theta + dt / 2 * k1, k2, t + dt / 2, q, drive)
        k3 = omega + dt / 2 * l2
        l3 = slope(theta + dt / 2 * k2, k3, t + dt / 2, q, drive)
        k4 = omega + dt * l3
        l4 = slope(theta + dt * k3, k4, t + dt, q, drive)
        theta += dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        omega += dt / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
        t += dt
        path[i, 0] = theta
        path[i, 1] = omega


def inputs(tiny):
    return 0.2, 0.0, 0.01, 0.5, 0.9, np.zeros((20 if tiny else 10000, 2))


def loops(theta, omega, dt, q, drive, path):
    t = 0.0
    for i in range(path.shape[0]):
        k1 = omega
        l1 = -math.sin(theta) - q * omega + drive * math.cos(0.6667 * t)
        half = drive * math.cos(0.6667 * (t + dt / 2))
        k2 = omega + dt / 2 * l1
        l2 = -math.sin(theta + dt / 2 * k1) - q * k2 + half
        k3 = omega + dt / 2 * l2
        l3 = -math.sin(theta + dt / 2 * k2) - q * k3 + half
        k4 = omega + dt * l3
        l4 = -math.sin(theta + dt * k3) - q * k4 + drive * math.cos(0.6667 * (t + dt))
        theta += dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        omega += dt / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
        t += dt
        path[i, 0] = theta
        path[i, 1] = omega


def port(theta, omega, dt, q, drive, path):
    def slope(theta, omega, t):
        return -jnp.sin(theta) - q * omega + drive * jnp.cos(0.6667 * t)

    def step(state, _):
        theta, omega, t = state
        k1, l1 = omega, slope(theta, omega, t)
        k2 = omega + dt / 2 * l1
        l2 = slope(theta + dt / 2 * k1, k2, t + dt / 2)
        k3 = omega + dt / 2 * l2
        l3 = slope(theta + dt / 2 * k2, k3, t + dt / 2)
        k4 = omega + dt * l3
        l4 = slope(theta + dt * k3, k4, t + dt)
        theta = theta + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        omega = omega + dt / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
        return (theta, omega, t + dt), jnp.stack([theta, omega])

    return lax.scan(step, (theta, omega, 0.0), None, length=path.shape[0])[1]
