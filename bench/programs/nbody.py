"""The N-body problem: bodies that attract each other, by leapfrog steps."""

import numpy as np

from programs.libraries import jnp, lax, prange


def acceleration(pos, mass, G, softening):
    x = pos[:, 0:1]
    y = pos[:, 1:2]
    z = pos[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def nbody(mass, pos, vel, steps, dt, G, softening):
    energy = np.zeros(steps + 1)
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    acc = acceleration(pos, mass, G, softening)
    energy[0] = 0.5 * np.sum(mass * vel**2)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos, mass, G, softening)
        vel += acc * dt / 2.0
        energy[i + 1] = 0.5 * np.sum(mass * vel**2)
    return energy


STATIC = ("steps",)


def inputs(tiny):
    n, steps = (12, 10) if tiny else (100, 50)
    rng = np.random.default_rng(0)
    mass = 20.0 * np.ones((n, 1)) / n
    return mass, rng.random((n, 3)), rng.random((n, 3)), steps, 0.01, 1.0, 0.1


def loops(mass, pos, vel, steps, dt, G, softening):
    n = pos.shape[0]
    energy = np.zeros(steps + 1)
    total = np.sum(mass)
    for k in range(3):
        mean = 0.0
        for i in range(n):
            mean += mass[i, 0] * vel[i, k]
        for i in range(n):
            vel[i, k] -= mean / total
    acc = np.zeros((n, 3))
    for t in range(steps + 1):
        if t > 0:
            for i in range(n):
                for k in range(3):
                    vel[i, k] += acc[i, k] * dt / 2.0
                    pos[i, k] += vel[i, k] * dt
        for i in prange(n):
            ax = ay = az = 0.0
            for j in range(n):
                dx = pos[j, 0] - pos[i, 0]
                dy = pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + softening * softening
                f = G * mass[j, 0] / (r2 * np.sqrt(r2)) if r2 > 0 else 0.0
                ax += f * dx
                ay += f * dy
                az += f * dz
            acc[i, 0], acc[i, 1], acc[i, 2] = ax, ay, az
        for i in range(n):
            for k in range(3):
                if t > 0:
                    vel[i, k] += acc[i, k] * dt / 2.0
                energy[t] += 0.5 * mass[i, 0] * vel[i, k] ** 2
    return energy


def port(mass, pos, vel, steps, dt, G, softening):
    def pull(pos):
        d = pos[None, :, :] - pos[:, None, :]
        r2 = (d**2).sum(axis=2) + softening**2
        inv = jnp.where(r2 > 0, r2**-1.5, 0.0)
        return G * jnp.einsum("ijk,ij,j->ik", d, inv, mass[:, 0])

    def step(state, _):
        pos, vel, acc = state
        vel = vel + acc * dt / 2.0
        pos = pos + vel * dt
        acc = pull(pos)
        vel = vel + acc * dt / 2.0
        return (pos, vel, acc), 0.5 * jnp.sum(mass * vel**2)

    vel = vel - jnp.mean(mass * vel, axis=0) / jnp.mean(mass)
    first = 0.5 * jnp.sum(mass * vel**2)
    (pos, vel, _), energy = lax.scan(step, (pos, vel, pull(pos)), None, length=steps)
    return pos, vel, jnp.concatenate([first[None], energy])
