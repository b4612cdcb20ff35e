"""Convolutions in tiles or direct, as sizes known at run time only decide, beside NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import stepwell as sw

AXIS = (0, 1, 2, 7, 15, 16)
"""Rows or columns: none, one, less and more than pay with 32 features, odd and even."""


def _layer(x: Any, w: Any, b: Any, more: Any) -> Any:
    return sw.nn.relu(sw.nn.conv(x, w, padding=1) + b[:, None, None] + more)


def _right(x: Any, w: Any, b: Any, more: Any) -> Any:
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = x.shape[2:]
    y = b[:, None, None] + more.astype(np.float64)
    for r, s in product(range(3), repeat=2):
        part = padded[:, :, r : r + rows, s : s + columns]
        y = y + np.einsum("nchw,kc->nkhw", part, w[:, :, r, s])
    return np.maximum(y, 0)


@pytest.mark.parametrize(
    ("known", "residual"),
    [((None, 6, 6), True), ((2, None, None), False), ((1, None, 10), True), ((None,) * 3, True)],
)
def test_images_of_unknown_size(known: tuple[int | None, ...], residual: bool) -> None:
    names = zip("nhw", known, strict=True)
    n, h, w = (sw.Dim(name) if size is None else size for name, size in names)
    shapes = [(n, 32, h, w), (24, 32, 3, 3), (24,), (n, 24, h, w) if residual else ()]
    layer = sw.jit(_layer, input_signature=[sw.ShapeDtypeStruct(s, "float32") for s in shapes])
    axes = [(0, 1, 2, 5), AXIS, AXIS]
    tried = list(product(*(a if k is None else (k,) for a, k in zip(axes, known, strict=True))))
    random = np.random.default_rng(len(tried) + residual)
    for k in random.permutation(len(tried))[:24]:
        count, rows, columns = tried[k]
        more = (count, 24, rows, columns) if residual else ()
        shapes = [(count, 32, rows, columns), (24, 32, 3, 3), (24,), more]
        arrays = [np.asarray(random.standard_normal(s), np.float32) for s in shapes]
        np.testing.assert_allclose(layer(*arrays), _right(*arrays), rtol=1e-4, atol=1e-4)
