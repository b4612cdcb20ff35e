"""Convolutions in groups: any number and size of them, each layout, dtype and vector width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import stepwell as sw

NAMES = {"f64": "f8", "f32": "f4", "f16": "f2", "i8": "i1", "i32": "i4"}
CLOSE = {"f64": 1e-13, "f32": 1e-5, "f16": 5e-3, "i32": 0}


@dataclass(frozen=True)
class Case:
    """A convolution in ``groups``, of ``read`` features each, to ``made`` each, and a shift."""

    n: int
    groups: int
    read: int
    made: int
    size: tuple[int, int]
    window: tuple[int, int]
    stride: int
    pad: int
    last: bool
    """Whether features are the last axis."""
    dtype: str = "f32"
    known: bool = True
    """Whether the batch's size is known."""

    @property
    def wide(self) -> str:
        """Return what results are made of."""
        return "i32" if self.dtype == "i8" else self.dtype

    @property
    def places(self) -> list[int]:
        """Return the sizes of the result's images."""
        pairs = zip(self.size, self.window, strict=True)
        return [(n + 2 * self.pad - m) // self.stride + 1 for n, m in pairs]

    def shaped(self, n: Any, places: Any, features: int) -> tuple[Any, ...]:
        """Return the shape of images."""
        return (n, *places, features) if self.last else (n, features, *places)

    def text(self) -> str:
        """Return the program."""
        n, k = self.n if self.known else "?", self.groups * self.made
        x = _tensor(self.shaped(n, self.size, self.groups * self.read), self.dtype)
        w = _tensor((k, self.read, *self.window), self.dtype)
        b = _tensor((k,), self.wide)
        y = _tensor(self.shaped(n, self.places, k), self.wide)
        how = f"groups = {self.groups}, strides = {[self.stride] * 2}"
        how += f", low = {[self.pad] * 2}, high = {[self.pad] * 2}"
        how += ", x_layout = [0, 3, 1, 2], y_layout = [0, 3, 1, 2]" if self.last else ""
        how += f", dtype = {self.wide}" if self.wide != self.dtype else ""
        sizes = "" if self.known else ", sizes(%n)"
        return f"""
        func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {{
          %c = nd.convolution %x, %w {{{how}}} : ({x}, {w}) -> {y}
          %n = nd.dim %x {{axis = 0}} : {x}
          %s = nd.broadcast %b{sizes} {{dims = [{3 if self.last else 1}]}} : {b} -> {y}
          %z = nd.add %c, %s : {y}
          func.return %z : {y}
        }}
        """

    def arrays(self) -> list[Any]:
        """Return arguments."""
        random = np.random.default_rng(7)
        k = self.groups * self.made
        shapes = [
            (self.shaped(self.n, self.size, self.groups * self.read), self.dtype),
            ((k, self.read, *self.window), self.dtype),
            ((k,), self.wide),
        ]
        if self.dtype[0] == "i":
            return [random.integers(-90, 90, s).astype(NAMES[d]) for s, d in shapes]
        return [random.standard_normal(s).astype(NAMES[d]) for s, d in shapes]

    def right(self, arrays: list[Any]) -> Any:
        """Return the result in double precision, or in whole numbers."""
        x, w, b = (a.astype("i8" if a.dtype.kind == "i" else "f8") for a in arrays)
        x = np.moveaxis(x, -1, 1) if self.last else x
        x = np.pad(x, ((0, 0), (0, 0), (self.pad,) * 2, (self.pad,) * 2))
        x = x.reshape(self.n, self.groups, self.read, *x.shape[2:])
        w = w.reshape(self.groups, self.made, *w.shape[1:])
        y: Any = 0
        (rows, columns), by = self.places, self.stride
        for r in range(self.window[0]):
            for s in range(self.window[1]):
                part = x[..., r : r + by * rows : by, s : s + by * columns : by]
                y = y + np.einsum("ngchw,gkc->ngkhw", part, w[..., r, s], optimize=True)
        y = y.reshape(self.n, self.groups * self.made, rows, columns) + b[:, None, None]
        return np.moveaxis(y, 1, -1) if self.last else y


def _tensor(shape: tuple[Any, ...], dtype: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def _random_case(seed: int) -> Case:
    random = np.random.default_rng(seed)

    def some(*choices: int) -> int:
        return int(random.choice(choices))

    window = some(1, 2, 3, 5), some(1, 2, 3, 5)
    return Case(
        some(1, 2, 3),
        some(2, 3, 5, 8, 16),
        some(1, 2, 3, 4, 8, 13, 32),
        some(1, 2, 3, 4, 8, 13, 16, 32),
        (some(5, 7, 8, 14), some(5, 7, 14, 19, 33)),
        window,
        some(1, 1, 2),
        some(0, 1),
        bool(some(0, 1)),
        str(random.choice(["f32", "f32", "f64", "f16", "i8", "i32"])),
        bool(some(0, 1, 1)),
    )


def _agrees(case: Case, **machine: Any) -> None:
    arrays = case.arrays()
    found: list[Any] = []
    for threads in (1, 2):
        told = ",".join(f"{k}={v}" for k, v in {"threads": threads, **machine}.items())
        found.append(np.asarray(sw.compile(case.text(), machine=told)(*arrays)))
    np.testing.assert_array_equal(found[0], found[1])
    right = case.right(arrays)
    near = CLOSE[case.wide] * float(np.abs(right).max(initial=1))
    np.testing.assert_allclose(found[0].astype(right.dtype), right, rtol=0, atol=near)


SEEDS = [*range(12), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 24))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_groups(seed: int) -> None:
    _agrees(_random_case(seed), vector_bits=[512, 256, 128][seed % 3])


@pytest.mark.parametrize("last", [False, True])
def test_groups_are_a_loop(last: bool) -> None:
    case = Case(1, 2, 32, 32, (14, 20), (3, 3), 1, 1, last)
    _agrees(case)
    text = sw.compile(case.text(), machine="vector_bits=512").text("kernels")
    assert "kernel.shared = 5" in text and "floordiv 32" not in text


def test_nothing_to_add_up_or_nobody_to_ask() -> None:
    _agrees(Case(0, 2, 4, 4, (5, 6), (3, 3), 1, 1, True, known=False))
    _agrees(Case(1, 4, 1, 2, (3, 3), (3, 3), 1, 0, False))
