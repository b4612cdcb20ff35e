"""NumPy as the oracle, with definitions of names that it lacks, and of random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
WORD = 0xFFFFFFFF
SPLIT, FOLD = 1 << 63, 3 << 62


class Oracle:
    """NumPy, with a few more names, and with ``size=`` for results of dynamic size."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def erf(self, x: Any) -> Any:
        """Return the error function."""
        return self._by(math.erf, x)

    def erfc(self, x: Any) -> Any:
        """Return its complement."""
        return self._by(math.erfc, x)

    def rsqrt(self, x: Any) -> Any:
        """Return the reciprocal of the square root."""
        kind = np.sqrt(x).dtype
        return (1 / np.sqrt(np.asarray(x).astype("f8"))).astype(kind)

    def _by(self, function: Any, x: Any) -> Any:
        kind = np.sqrt(x).dtype
        return np.vectorize(function, otypes=["f8"])(np.asarray(x)).astype(kind)

    def logsumexp(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the logarithm of the sum of exponentials."""
        value = np.asarray(x)
        wide = value if value.dtype.kind == "f" else value.astype("f8")
        return np.logaddexp.reduce(
            wide, axis=tuple(range(wide.ndim)) if axis is None else axis, keepdims=keepdims
        )

    def cumulative_max(self, x: Any, axis: Any = None) -> Any:
        """Return the cumulative maximum."""
        return self._running(np.maximum, x, axis)

    def cumulative_min(self, x: Any, axis: Any = None) -> Any:
        """Return the cumulative minimum."""
        return self._running(np.minimum, x, axis)

    def _running(self, ufunc: Any, x: Any, axis: Any) -> Any:
        np.cumulative_sum(x, axis=axis)  # to check the arguments, which are the same
        return ufunc.accumulate(x, axis=axis or 0)

    def top_k(self, operand: Any, k: int) -> Any:
        """Return the greatest elements, descending, and their indices."""
        if k > operand.shape[-1]:
            raise ValueError("k is more than there are")
        back = np.argsort(operand[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        places = (operand.shape[-1] - 1 - back)[..., :k]
        return np.take_along_axis(operand, places, -1), places.astype(np.int32)

    def nonzero(self, a: Any, size: int | None = None, fill_value: Any = 0) -> Any:
        """Return the indices of nonzero elements."""
        found = np.nonzero(a)
        return found if size is None else tuple(padded(v, size, fill_value) for v in found)

    def argwhere(self, a: Any, size: int, fill_value: Any = 0) -> Any:
        """Return the indices of nonzero elements, as rows."""
        return np.stack(self.nonzero(a, size, fill_value), axis=1)

    def flatnonzero(self, a: Any, size: int, fill_value: Any = 0) -> Any:
        """Return the flat indices of nonzero elements."""
        return padded(np.flatnonzero(a), size, fill_value)

    def unique(self, ar: Any, *args: Any, size: int, fill_value: Any = None, **more: Any) -> Any:
        """Return unique elements, padded with the least one, its index, and counts of 0."""
        names = ("return_index", "return_inverse", "return_counts")
        options = {**dict(zip(names, args, strict=False)), **more}
        values, places, back, counts = np.unique(
            ar, True, True, True, equal_nan=options.get("equal_nan", True)
        )
        least = values[0] if fill_value is None and values.size else fill_value or 0
        found = [padded(values, size, least)]
        if options.get(names[0]):
            found.append(padded(places, size, places[0] if places.size else -1))
        if options.get(names[1]):
            found.append(back)
        if options.get(names[2]):
            found.append(padded(counts, size, 0))
        return found[0] if len(found) == 1 else tuple(found)

    def unique_values(self, x: Any, **keywords: Any) -> Any:
        """Return unique elements."""
        return self.unique(x, equal_nan=False, **keywords)

    def unique_counts(self, x: Any, **keywords: Any) -> Any:
        """Return unique elements, and counts."""
        return self.unique(x, False, False, True, equal_nan=False, **keywords)

    def unique_inverse(self, x: Any, **keywords: Any) -> Any:
        """Return unique elements, and the inverse indices."""
        return self.unique(x, False, True, equal_nan=False, **keywords)

    def unique_all(self, x: Any, **keywords: Any) -> Any:
        """Return unique elements, indices, inverse indices and counts."""
        return self.unique(x, True, True, True, equal_nan=False, **keywords)

    def union1d(self, a: Any, b: Any, **keywords: Any) -> Any:
        """Return the union."""
        return self.unique(np.concatenate([np.ravel(a), np.ravel(b)]), **keywords)

    def intersect1d(self, a: Any, b: Any, size: int, fill_value: Any = 0) -> Any:
        """Return the intersection."""
        return padded(np.intersect1d(a, b), size, fill_value)

    def setdiff1d(self, a: Any, b: Any, size: int, fill_value: Any = 0) -> Any:
        """Return the difference."""
        kind = np.result_type(a, b)
        return padded(np.setdiff1d(np.asarray(a, kind), np.asarray(b, kind)), size, fill_value)

    def setxor1d(self, a: Any, b: Any, size: int, fill_value: Any = 0) -> Any:
        """Return the symmetric difference."""
        return padded(np.setxor1d(a, b), size, fill_value)

    def bincount(
        self, x: Any, weights: Any = None, minlength: int = 0, length: int | None = None
    ) -> Any:
        """Return the count of each number."""
        found = np.bincount(x, weights, minlength)
        return found if length is None else padded(found, length, 0)


def padded(row: Any, size: int, fill: Any) -> Any:
    """Return the first ``size`` elements, padded with ``fill``."""
    found = np.full(size, fill, row.dtype)
    count = min(size, len(row))
    found[:count] = row[:count]
    return found


def threefry(key: Any, counter: int) -> int:
    """Return block ``counter`` under a key, 64 bits: Threefry-2x32 of 20 rounds, as published."""
    k0, k1 = int(key[0]), int(key[1])
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x, y = (counter + k0) & WORD, ((counter >> 32) + k1) & WORD
    for step in range(20):
        turn = ROTATIONS[step % 8]
        x = (x + y) & WORD
        y = ((y << turn | y >> (32 - turn)) & WORD) ^ x
        if step % 4 == 3:
            s = step // 4 + 1
            x, y = (x + keys[s % 3]) & WORD, (y + keys[(s + 1) % 3] + s) & WORD
    return y << 32 | x


class RandomOracle:
    """`stepwell.random`, as its documentation defines it."""

    def _blocks(self, key: Any, shape: Any, start: int = 0) -> Any:
        count = math.prod(np.empty(shape).shape)
        blocks = [threefry(key, (start + n) % (1 << 64)) for n in range(count)]
        return np.array(blocks, np.uint64).reshape(shape)

    def bits(self, key: Any, shape: Any = (), dtype: Any = np.uint32) -> Any:
        """Return bits."""
        blocks = self._blocks(key, shape)
        wide = np.dtype(dtype).itemsize == 8
        return (blocks if wide else blocks.astype(np.uint32)).astype(dtype)

    def split(self, key: Any, num: Any = 2) -> Any:
        """Return keys."""
        return self._keys(self._blocks(key, num, SPLIT))

    def fold_in(self, key: Any, data: int) -> Any:
        """Return a key."""
        return self._keys(self._blocks(key, (), FOLD + int(data) % (1 << 62)))

    def _keys(self, blocks: Any) -> Any:
        words = (blocks >> np.uint64(32)).astype(np.uint32), blocks.astype(np.uint32)
        return np.stack(words, axis=-1)

    def uniform(
        self, key: Any, shape: Any = (), dtype: Any = float, minval: Any = 0, maxval: Any = 1
    ) -> Any:
        """Return numbers in [0, 1): the upper 52 bits, or 24."""
        kind = np.dtype(dtype)
        if kind.itemsize == 8:
            unit = (self._blocks(key, shape) >> np.uint64(12)) * 2.0**-52
        else:
            held = {4: 24, 2: 11}[kind.itemsize]
            words = self._blocks(key, shape).astype(np.uint32)
            unit = (words >> np.uint32(32 - held)).astype(kind) * kind.type(2.0**-held)
        low, high = kind.type(minval), kind.type(maxval)
        return (unit * (high - low) + low).astype(kind)

    def exponential(self, key: Any, shape: Any = (), scale: Any = 1.0) -> Any:
        """Return ``-log(1 - u)``."""
        return -np.log1p(-self.uniform(key, shape)) * scale

    def integers(self, key: Any, low: int, high: int, shape: Any, dtype: Any = np.int64) -> Any:
        """Return ``low + floor(word * (high - low) / 2**64)``."""
        blocks = self._blocks(key, shape)
        found = [low + (int(b) * (high - low) >> 64) for b in blocks.reshape(-1)]
        return np.array(found, dtype).reshape(blocks.shape)

    def permutation(self, key: Any, x: Any, axis: int = 0) -> Any:
        """Return slices sorted by random bits."""
        if isinstance(x, int):
            return np.argsort(self._blocks(key, x), kind="stable")
        return np.take(x, np.argsort(self._blocks(key, x.shape[axis]), kind="stable"), axis)


ORACLE, RANDOM = Oracle(), RandomOracle()
