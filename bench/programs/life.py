"""Conway's game of life on a torus."""

import numpy as np

from programs.libraries import jnp, lax, prange


def life(board, generations):
    for _ in range(generations):
        neighbours = np.zeros_like(board)
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                if di != 0 or dj != 0:
                    neighbours += np.roll(np.roll(board, di, axis=0), dj, axis=1)
        born = (board == 0) & (neighbours == 3)
        dies = (board == 1) & ((neighbours < 2) | (neighbours > 3))
        board[born] = 1
        board[dies] = 0


def inputs(tiny):
    n, m, generations = (12, 11, 10) if tiny else (200, 256, 20)
    return (np.random.default_rng(0).random((n, m)) < 0.3).astype(np.int32), generations


def loops(board, generations):
    n, m = board.shape
    now = board.copy()
    for _ in range(generations):
        for i in prange(n):
            up, down = (i - 1) % n, (i + 1) % n
            for j in range(m):
                left, right = (j - 1) % m, (j + 1) % m
                s = now[up, left] + now[up, j] + now[up, right] + now[i, left] + now[i, right]
                s += now[down, left] + now[down, j] + now[down, right]
                board[i, j] = 1 if s == 3 or (s == 2 and now[i, j] == 1) else 0
        now[:] = board


def port(board, generations):
    def step(_, board):
        around = sum(
            jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j
        )
        lives = (around == 3) | ((board == 1) & (around == 2))
        return lives.astype(board.dtype)

    return lax.fori_loop(0, generations, step, board)
