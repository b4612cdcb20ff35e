"""Dense layers and embeddings: products with weights, and table lookups. For ``sw.nn``."""

from __future__ import annotations

from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend.activations import floats
from stepwell.frontend.linear_algebra import matmul
from stepwell.frontend.promotion import lift
from stepwell.frontend.tensor import Tensor


def dense(x: Any, w: Any, bias: Any = None) -> Tensor:
    """Return ``x @ w + bias`` along the last axis.

    x : (..., I); floats keep their dtype, integers become float32
    w : (I, O)        bias : (O,), or None for 0
    returns : (..., O); float16 and bfloat16 are summed in float32
    raises ShapeError : the last axis of ``x`` and the first of ``w`` differ, or the bias is not
        one number for each result
    source : Flax's `Dense`; PyTorch's `linear` has ``w`` transposed

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((2, 3), np.float32), np.ones((3, 1), np.float32)
    >>> sw.jit(sw.nn.dense)(x, w, np.float32([0.5]))
    array([[3.5],
           [3.5]], dtype=float32)
    """
    value, weights, *shift = floats(x, w) if bias is None else floats(x, w, bias)
    if not value.ndim or weights.ndim != 2 or value.shape[-1] != weights.shape[0]:
        raise ShapeError(
            f"a dense layer takes (..., I) and weights (I, O), got shapes {value.shape} and "
            f"{weights.shape}"
        )
    if shift and shift[0].shape != weights.shape[1:]:
        raise ShapeError(f"a bias is {weights.shape[1:]}, got shape {shift[0].shape}")
    found = matmul(value, weights)
    return e.add(found, shift[0]) if shift else found


def embedding(indices: Any, table: Any) -> Tensor:
    """Return the rows of ``table`` at these indices.

    indices : integers of any shape
    table : (rows, ...)
    returns : the shape of the indices, followed by the shape of a row; the dtype of the table
    raises TypeError : the indices are not integers
    raises ShapeError : the table has no axis
    raises IndexError : the program finds an index out of range; negative ones count from the end,
        as in ``table[indices]``. Under ``sw.jit(check_bounds=False)`` the nearest row is taken
    source : Flax's `Embed`; PyTorch's `embedding`

    >>> import numpy as np, stepwell as sw
    >>> table = np.float32([[0, 1], [2, 3], [4, 5]])
    >>> sw.jit(sw.nn.embedding)(np.array([2, 0]), table)
    array([[4., 5.],
           [0., 1.]], dtype=float32)
    """
    at, rows = lift(indices), lift(table)
    if at.kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"the indices of an embedding are integers, got {at.dtype}")
    if not rows.ndim:
        raise ShapeError("the table of an embedding has a row for each index, got one number")
    return rows[at]
