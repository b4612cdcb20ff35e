"""Kernels of OpenCL programs beside NumPy, at sizes that no tile divides."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.runtime.entry import numpy_dtype

pytest.importorskip("pyopencl")

PRODUCTS = "\n".join(
    f"""\
func.func @{dtype}(%x: tensor<97x515x{dtype}>, %y: tensor<515x131x{dtype}>) -> tensor<97x131x{dtype}> {{
  %z = nd.matmul %x, %y : (tensor<97x515x{dtype}>, tensor<515x131x{dtype}>) -> tensor<97x131x{dtype}>
  func.return %z : tensor<97x131x{dtype}>
}}"""
    for dtype in ("f32", "f64", "f16", "i32")
)
"""Large enough for blocks whose operands are packed."""


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32"])
def test_a_product_in_blocks(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-4, 5, n).astype(numpy_dtype(dtype)) for n in ((97, 515), (515, 131)))
    program = sw.compile(PRODUCTS, target="opencl", entry=dtype)
    np.testing.assert_array_equal(program(x, y), x.astype(np.float64) @ y.astype(np.float64))


def test_vectors_are_written_so_that_compilers_know_them() -> None:
    text = """\
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %m = nd.mul %x, %y : tensor<64xf32>
  %s = nd.add %m, %x : tensor<64xf32>
  %f = nd.floor %s : tensor<64xf32>
  func.return %f : tensor<64xf32>
}
"""
    program = sw.compile(text, target="opencl")
    for part in (
        "= SW_LOAD(__global, float8, 8, &x[i]);",
        "SW_STORE(__global, float8, 8, &f[i], ",
        "= (x_1 * y_1) + x_1;",  # one expression, which may be one instruction
        "#if SW_HAS(__builtin_elementwise_floor)",
    ):
        assert part in program.source
    x, y = (np.random.default_rng(k).normal(0, 9, 64).astype(np.float32) for k in (1, 2))
    np.testing.assert_allclose(program(x, y), np.floor(x * y + x), atol=1)
