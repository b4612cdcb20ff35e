"""Running sums and the like along the last axis, several rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(31)
SHAPES = [(1, 1), (3, 7), (4, 64), (5, 67), (1, 1000), (703, 3), (2, 3, 131), (0, 5), (5, 0)]
PROGRAM = """func.func @main(%x: tensor<{shape}x{kind}>) -> tensor<{shape}x{kind}> {{
  %y = nd.cumulative_{name} %x {{axis = {axis}{how}}} : tensor<{shape}x{kind}>
  func.return %y : tensor<{shape}x{kind}>
}}
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_running_sums(dtype: str) -> None:
    running = sw.jit(lambda x: snp.cumulative_sum(x, axis=-1))
    for shape in SHAPES:
        x = (RANDOM.standard_normal(shape) * 9).astype(dtype)
        expected = np.cumsum(x, axis=-1, dtype=dtype)
        np.testing.assert_array_equal(np.asarray(running(x)), expected)


@pytest.mark.parametrize("how", ["", ", exclusive", ", reverse"])
def test_rows_of_any_number(how: str) -> None:
    program = sw.compile(PROGRAM.format(shape="?x?", kind="f32", name="max", axis=1, how=how))
    for shape in SHAPES[:6]:
        x = RANDOM.standard_normal(shape).astype(np.float32)
        x[0, shape[1] // 2] = RANDOM.choice([np.nan, -np.inf, np.inf])
        source = x[:, ::-1] if "reverse" in how else x
        expected = np.maximum.accumulate(source, axis=1)
        if "exclusive" in how:
            least = np.full((shape[0], 1), -np.inf, np.float32)
            expected = np.concatenate([least, expected[:, :-1]], axis=1)
        expected = expected[:, ::-1] if "reverse" in how else expected
        np.testing.assert_array_equal(np.asarray(program(x)), expected)


SCANS = """func.func @main(%c: tensor<{row}xf32>, %z: tensor<{row}xf32>, %n: tensor<f32>,
    %xs: tensor<{count}x{row}xf32>) -> (tensor<{row}xf32>, tensor<{count}x{row}xi1>) {{
  %last, %ys = nd.scan (%s = %c) over (%x = %xs) {how}
      : (tensor<{row}xf32>, tensor<{count}x{row}xf32>) -> (tensor<{row}xf32>, tensor<{count}x{row}xi1>) {{
    %p = nd.mul %s, %z : tensor<{row}xf32>
    %q = nd.add %p, %x : tensor<{row}xf32>
    %b = nd.broadcast %n {{dims = []}} : tensor<f32> -> tensor<{row}xf32>
    %y = nd.gt %q, %b : tensor<{row}xf32> -> tensor<{row}xi1>
    nd.yield %q, %y : tensor<{row}xf32>, tensor<{row}xi1>
  }}
  func.return %last, %ys : tensor<{row}xf32>, tensor<{count}x{row}xi1>
}}
"""


@pytest.mark.parametrize("how", ["", "{reverse}"])
def test_loops_of_elementwise_steps(how: str) -> None:
    for count, row in ((5, 7), (1, 1), (33, 40)):
        program = sw.compile(SCANS.format(count=count, row=row, how=how))
        assert len(program.kernels) == 1
        c, z, xs = (RANDOM.standard_normal(s).astype("f") for s in (row, row, (count, row)))
        s, ys = c, np.zeros((count, row), bool)
        for t in reversed(range(count)) if how else range(count):
            s = s * z + xs[t]
            ys[t] = s > 0.25
        last, found = program(c, z, np.float32(0.25), xs)
        np.testing.assert_allclose(last, s, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found, ys)


def _of_maxima(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Give each cotangent to the first of the greatest so far."""
    d = np.zeros_like(x)
    for row, (values, cotangents) in enumerate(zip(x, g, strict=True)):
        place, best = None, -np.inf
        for k, v in enumerate(values):
            if v > best:
                place, best = k, v
            if np.isnan(v):
                best = v
            if place is not None:
                d[row, place] += cotangents[k]
    return d


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_running_maxima_and_products(axis: int) -> None:
    @sw.jit
    def slopes(x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def greatest(x: np.ndarray) -> np.ndarray:
            return snp.sum(g * snp.maximum.accumulate(x, axis=axis))

        def product(x: np.ndarray) -> np.ndarray:
            return snp.sum(g * snp.cumulative_prod(x, axis=axis))

        return sw.grad(greatest)(x), sw.grad(product)(x)

    for shape in ((19, 37), (4, 3), (1, 18), (50, 1)):
        x = np.round(RANDOM.standard_normal(shape) * 2) / 2  # equal elements, and zeros
        g = RANDOM.standard_normal(shape)
        greatest, product = slopes(x, g)
        turned = (lambda a: a) if axis == 1 else np.transpose
        np.testing.assert_allclose(greatest, turned(_of_maxima(turned(x), turned(g))), atol=1e-12)
        step = 1e-6
        rows, cotangents = turned(x), turned(g)
        for k in range(rows.shape[1]):
            up, down = rows.copy(), rows.copy()
            up[:, k] += step
            down[:, k] -= step
            slope = (np.cumprod(up, 1) - np.cumprod(down, 1)) / (2 * step)
            expected = (cotangents * slope).sum(1)
            scale = 1 + np.abs(expected)
            np.testing.assert_allclose(turned(product)[:, k] / scale, expected / scale, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 160), 1), ((5, 130), 1), ((150, 4), 0), ((2, 6, 144), (0, 2))]
)
def test_gradients_of_products(shape: tuple[int, ...], axes: int | tuple[int, ...]) -> None:
    slopes = sw.jit(sw.grad(lambda x, g: snp.sum(g * snp.prod(x, axis=axes, keepdims=True))))
    x = RANDOM.uniform(0.8, 1.25, shape) * RANDOM.choice([-1, 1], shape)
    x[(0,) * len(shape)] = 0
    x[(1, *[2] * (len(shape) - 1))] = np.inf
    g = RANDOM.standard_normal(np.prod(x, axis=axes, keepdims=True).shape)
    gone = (axes,) if isinstance(axes, int) else axes
    expected = np.empty(shape)
    for place in np.ndindex(shape):
        others = x.copy()
        others[place] = 1
        row = tuple(slice(None) if a in gone else slice(k, k + 1) for a, k in enumerate(place))
        at = tuple(0 if a in gone else k for a, k in enumerate(place))
        with np.errstate(invalid="ignore"):
            expected[place] = g[at] * np.prod(others[row])
    np.testing.assert_allclose(slopes(x, g), expected, rtol=1e-10)


def test_infinite_factors_are_no_nan() -> None:
    g, x = np.array([1.0, 1.0, -5.0]), np.array([2.0, np.inf, 3.0])
    slopes = sw.grad(lambda x: snp.sum(g * snp.cumulative_prod(x)))(x)
    np.testing.assert_array_equal(slopes, [-np.inf, -28, -np.inf])
