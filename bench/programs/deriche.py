"""The recursive Deriche filter: an image is smoothed along rows, then along columns."""

import numpy as np

from programs.libraries import jnp, lax, prange


def deriche(alpha, img):
    k = (1.0 - np.exp(-alpha)) ** 2
    k /= 1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha)
    a1 = a5 = k
    a2 = a6 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = a7 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = a8 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    w, h = img.shape
    y1 = np.zeros_like(img)
    y1[:, 0] = a1 * img[:, 0]
    y1[:, 1] = a1 * img[:, 1] + a2 * img[:, 0] + b1 * y1[:, 0]
    for j in range(2, h):
        y1[:, j] = a1 * img[:, j] + a2 * img[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2 = np.zeros_like(img)
    y2[:, -2] = a3 * img[:, -1]
    for j in range(h - 3, -1, -1):
        y2[:, j] = a3 * img[:, j + 1] + a4 * img[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = y1 + y2
    y1[0, :] = a5 * out[0, :]
    y1[1, :] = a5 * out[1, :] + a6 * out[0, :] + b1 * y1[0, :]
    for i in range(2, w):
        y1[i, :] = a5 * out[i, :] + a6 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a7 * out[-1, :]
    for i in range(w - 3, -1, -1):
        y2[i, :] = a7 * out[i + 1, :] + a8 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return y1 + y2


def inputs(tiny):
    n, m = (12, 13) if tiny else (480, 360)
    return 0.25, np.random.default_rng(0).random((n, m))


def loops(alpha, img):
    k = (1.0 - np.exp(-alpha)) ** 2
    k /= 1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha)
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    w, h = img.shape
    y1 = np.empty_like(img)
    y2 = np.empty_like(img)
    out = np.empty_like(img)
    for i in prange(w):
        ym1 = ym2 = xm1 = 0.0
        for j in range(h):
            y1[i, j] = k * img[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1, ym1, ym2 = img[i, j], y1[i, j], ym1
        yp1 = yp2 = xp1 = xp2 = 0.0
        for j in range(h - 1, -1, -1):
            y2[i, j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2
            xp1, xp2, yp1, yp2 = img[i, j], xp1, y2[i, j], yp1
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in prange(h):
        tm1 = ym1 = ym2 = 0.0
        for i in range(w):
            y1[i, j] = k * out[i, j] + a2 * tm1 + b1 * ym1 + b2 * ym2
            tm1, ym1, ym2 = out[i, j], y1[i, j], ym1
        tp1 = tp2 = yp1 = yp2 = 0.0
        for i in range(w - 1, -1, -1):
            y2[i, j] = a3 * tp1 + a4 * tp2 + b1 * yp1 + b2 * yp2
            tp1, tp2, yp1, yp2 = out[i, j], tp1, y2[i, j], yp1
    return y1 + y2


def port(alpha, img):
    k = (1.0 - jnp.exp(-alpha)) ** 2
    k /= 1.0 + 2.0 * alpha * jnp.exp(-alpha) - jnp.exp(2.0 * alpha)
    a2 = k * jnp.exp(-alpha) * (alpha - 1.0)
    a3 = k * jnp.exp(-alpha) * (alpha + 1.0)
    a4 = -k * jnp.exp(-2.0 * alpha)
    b1, b2 = 2.0 ** (-alpha), -jnp.exp(-2.0 * alpha)

    def rows(x):
        zero = jnp.zeros_like(x[0])

        def down(state, x):
            x1, y1, y2 = state
            y = k * x + a2 * x1 + b1 * y1 + b2 * y2
            return (x, y, y1), y

        def up(state, x):
            x1, x2, y1, y2 = state
            y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
            return (x, x1, y, y1), y

        first = lax.scan(down, (zero,) * 3, x)[1]
        return first + lax.scan(up, (zero,) * 4, x, reverse=True)[1]

    return rows(rows(img.T).T)
