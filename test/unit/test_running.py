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
