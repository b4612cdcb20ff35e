"""Gradients of convolutions, compiled: each way in which they run, any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

# batch, features in, size, features out, window, step, padding, groups
FORMS = (
    (3, 1, 20, 6, 5, 1, 2, 1),  # few features: vectors along places, or along features of the image
    (2, 6, 21, 16, 5, 1, 0, 1),  # few features of the image, whose gradient sums up many
    (2, 33, 18, 48, 3, 2, 1, 1),  # steps: phases, and tiles down features
    (2, 20, 16, 40, 1, 2, 0, 1),
    (2, 64, 17, 64, 3, 1, 1, 1),  # Winograd's algorithm, tiles that are not whole
    (2, 24, 19, 24, 3, 1, 1, 24),  # depthwise: sums over places, many at once
    (3, 17, 20, 17, 5, 2, 2, 17),
    (2, 8, 15, 24, 3, 2, 1, 8),  # several filters for a feature
    (2, 24, 13, 32, 3, 1, 1, 4),
    (2, 32, 20, 64, 3, 2, 1, 4),  # steps, in groups: features last
    (3, 32, 11, 24, 1, 2, 0, 4),  # products, one for each group
)


def _program() -> str:
    arguments: list[str] = []
    lines: list[str] = []
    results: list[tuple[str, str]] = []
    for k, (n, i, size, o, window, step, pad, groups) in enumerate(FORMS):
        out = (size + 2 * pad - window) // step + 1
        x, y = f"tensor<{n}x{i}x{size}x{size}xf32>", f"tensor<{n}x{o}x{out}x{out}xf32>"
        w = f"tensor<{o}x{i // groups}x{window}x{window}xf32>"
        arguments += [f"%x{k}: {x}", f"%w{k}: {w}", f"%g{k}: {y}"]
        how = f"strides = [{step}, {step}], low = [{pad}, {pad}], high = [{pad}, {pad}]"
        how += f", groups = {groups}"
        lines += [
            f"%y{k}, %dx{k}, %dw{k} = nd.vjp (%a = %x{k}, %b = %w{k}) cotangents(%g{k} : {y}) "
            f"{{wrt = [0, 1], of = [0]}} : ({x}, {w}) -> ({y}, {x}, {w}) {{",
            f"  %c = nd.convolution %a, %b {{{how}}} : ({x}, {w}) -> {y}",
            f"  nd.yield %c : {y}",
            "}",
        ]
        results += [(f"%dx{k}", x), (f"%dw{k}", w)]
    names, types = (", ".join(each) for each in zip(*results, strict=True))
    body = "\n".join(lines)
    return f"""
    func.func @main({", ".join(arguments)}) -> ({types}) {{
      {body}
      func.return {names} : {types}
    }}
    """


def _right(x: Any, w: Any, g: Any, step: int, pad: int) -> tuple[Any, Any]:
    """Return both gradients in float64, window element by window element."""
    x, w, g = (a.astype(np.float64) for a in (x, w, g))
    out, window, size = g.shape[-1], w.shape[-1], x.shape[-1]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    dx, dw = np.zeros(padded.shape), np.zeros(w.shape)
    for r, s in np.ndindex(window, window):
        seen = (
            ...,
            slice(r, r + (out - 1) * step + 1, step),
            slice(s, s + (out - 1) * step + 1, step),
        )
        dx[seen] += np.einsum("nohw,oi->nihw", g, w[:, :, r, s])
        dw[:, :, r, s] = np.einsum("nihw,nohw->oi", padded[seen], g)
    return dx[:, :, pad : pad + size, pad : pad + size], dw


@pytest.mark.slow
def test_gradients_of_convolutions() -> None:
    random = np.random.default_rng(7)
    arguments: list[Any] = []
    right: list[Any] = []
    for n, i, size, o, window, step, pad, groups in FORMS:
        out = (size + 2 * pad - window) // step + 1
        shapes = ((n, i, size, size), (o, i // groups, window, window), (n, o, out, out))
        three = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        arguments += three
        parts = [np.split(a, groups, axis) for a, axis in zip(three, (1, 0, 1), strict=True)]
        each = [_right(x, w, g, step, pad) for x, w, g in zip(*parts, strict=True)]
        right += [
            np.concatenate([k[0] for k in each], 1),
            np.concatenate([k[1] for k in each], 0),
        ]
    found = [sw.compile(_program(), threads=threads)(*arguments) for threads in (1, 2)]
    for one, two, exact in zip(*found, right, strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.abs(one - exact).max() <= 1e-5 * np.abs(exact).max()
