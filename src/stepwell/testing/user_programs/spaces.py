"""The two namespaces for steps: NumPy, and a trace; other names are NumPy's and `snp`'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import stepwell.numpy as snp
from stepwell.frontend import lax, nn
from stepwell.testing.user_programs.known import DIGITS, DTYPES


class Traced:
    """Steps as `stepwell` calls."""

    def __getattr__(self, name: str) -> Any:
        return getattr(snp, name)

    def cast(self, x: Any, dtype: str) -> Any:
        """Convert to a dtype."""
        return snp.astype(snp.asarray(x), DTYPES[dtype])

    def put(self, x: Any, at: Any, values: Any, how: str) -> Any:
        """Update elements of a copy."""
        return getattr(x.at[at], how)(values)

    def take(self, x: Any, at: Any) -> Any:
        """Return the elements at an index."""
        return x[at]

    def softmax(self, x: Any, axis: int) -> Any:
        """Return the softmax."""
        return nn.softmax(x, axis=axis)

    def log_softmax(self, x: Any, axis: int) -> Any:
        """Return the logarithm of the softmax."""
        return nn.log_softmax(x, axis=axis)

    def layer_norm(self, x: Any, *scale: Any) -> Any:
        """Normalize the last axis."""
        return nn.layer_norm(x, *scale)

    def batch_norm(self, x: Any, *scale: Any) -> Any:
        """Normalize channels by given statistics."""
        return nn.batch_norm(x, *scale)

    def conv(self, x: Any, w: Any, **how: Any) -> Any:
        """Return the convolution."""
        return nn.conv(x, w, **how)

    def max_pool(self, x: Any, window: int, stride: int) -> Any:
        """Return the maximum of each window."""
        return nn.max_pool(x, window, stride)

    def dynamic_slice(self, x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
        """Slice at traced starts."""
        return lax.dynamic_slice(x, tuple(starts), tuple(sizes))

    def dynamic_update_slice(self, x: Any, part: Any, starts: Sequence[Any]) -> Any:
        """Update a slice at traced starts."""
        return lax.dynamic_update_slice(x, part, tuple(starts))

    def where_shift(self, x: Any, bits: int) -> Any:
        """Shift right."""
        return x >> bits


def _softmax(x: Any, axis: int) -> Any:
    raised = np.exp(x - x.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


class Plain:
    """Steps on NumPy, floats in 64 bits."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, _NAMES.get(name, name))

    def cast(self, x: Any, dtype: str) -> Any:
        """Convert; floats stay in 64 bits."""
        return np.asarray(x).astype(np.float64 if dtype in DIGITS else DTYPES[dtype])

    def put(self, x: Any, at: Any, values: Any, how: str) -> Any:
        """Update elements of a copy."""
        y = x.copy()
        if how == "set":
            y[at] = values
        else:
            name = {"min": "minimum", "max": "maximum"}.get(how, how)
            getattr(np, name).at(y, at, values)
        return y

    def take(self, x: Any, at: Any) -> Any:
        """Return the elements at an index."""
        return x[at]

    def softmax(self, x: Any, axis: int) -> Any:
        """Return the softmax."""
        return _softmax(x, axis)

    def log_softmax(self, x: Any, axis: int) -> Any:
        """Return the logarithm of the softmax."""
        return np.log(_softmax(x, axis))

    def layer_norm(self, x: Any, *scale: Any) -> Any:
        """Normalize the last axis."""
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return y * scale[0] + scale[1] if scale else y

    def batch_norm(self, x: Any, *scale: Any) -> Any:
        """Normalize channels by given statistics."""
        wide = [s.reshape(-1, *[1] * (x.ndim - 2)) for s in scale]
        mean, var, factor, shift = wide
        return (x - mean) / np.sqrt(var + 1e-5) * factor + shift

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
        """Return the convolution."""
        around = [(0, 0), (0, 0), *[(padding, padding)] * (x.ndim - 2)]
        x = np.pad(x, around)
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
        windows = windows[:, :, ::stride, ::stride]
        parts = [
            np.einsum("nchwij,fcij->nfhw", part, some)
            for part, some in zip(np.split(windows, groups, 1), np.split(w, groups), strict=True)
        ]
        return np.concatenate(parts, 1).astype(x.dtype)

    def max_pool(self, x: Any, window: int, stride: int) -> Any:
        """Return the maximum of each window."""
        windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), (2, 3))
        return windows[:, :, ::stride, ::stride].max((-2, -1))

    def dynamic_slice(self, x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
        """Slice at starts that are clamped."""
        return x[_clamped_slices(x, starts, sizes)]

    def dynamic_update_slice(self, x: Any, part: Any, starts: Sequence[Any]) -> Any:
        """Update a slice at starts that are clamped."""
        y = x.copy()
        y[_clamped_slices(x, starts, part.shape)] = part
        return y

    def where_shift(self, x: Any, bits: int) -> Any:
        """Shift right."""
        return x >> x.dtype.type(bits)


def _clamped_slices(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return the slice with clamped starts; a negative start counts from the end."""
    found: list[slice] = []
    for start, n, m in zip(starts, x.shape, sizes, strict=True):
        at = int(start) + (n if start < 0 else 0)
        at = max(0, min(at, n - m))
        found.append(slice(at, at + m))
    return tuple(found)


_NAMES = {
    "astype": "asarray",
    "concat": "concatenate",
    "permute_dims": "transpose",
    "cumulative_sum": "cumsum",
    "bitwise_invert": "invert",
}
