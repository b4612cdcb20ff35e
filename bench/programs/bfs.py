"""Breadth-first search in a graph given by its adjacency matrix."""

import numpy as np

from programs.libraries import jnp, lax


def bfs(adjacency, source):
    n = adjacency.shape[0]
    distance = np.full(n, -1)
    distance[source] = 0
    frontier = np.zeros(n, dtype=bool)
    frontier[source] = True
    level = 0
    while frontier.any():
        level += 1
        reached = (adjacency & frontier[:, None]).any(axis=0)
        frontier = reached & (distance < 0)
        distance[frontier] = level
    return distance


def inputs(tiny):
    n = 14 if tiny else 1000
    return np.random.default_rng(0).random((n, n)) < 2.5 / n, 0


def loops(adjacency, source):
    n = adjacency.shape[0]
    distance = np.full(n, -1)
    queue = np.empty(n, np.int64)
    queue[0] = source
    distance[source] = 0
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        for j in range(n):
            if adjacency[i, j] and distance[j] < 0:
                distance[j] = distance[i] + 1
                queue[tail] = j
                tail += 1
    return distance


def port(adjacency, source):
    n = adjacency.shape[0]

    def step(state):
        distance, frontier, level = state
        reached = (adjacency & frontier[:, None]).any(axis=0)
        frontier = reached & (distance < 0)
        return jnp.where(frontier, level + 1, distance), frontier, level + 1

    first = jnp.arange(n) == source
    state = jnp.where(first, 0, -1), first, 0
    return lax.while_loop(lambda s: s[1].any(), step, state)[0]
