"""Constants have the values that the program states, whatever the C compiler makes of them."""

import numpy as np
import pytest

import stepwell as sw


@pytest.mark.parametrize("dtype", ["f64", "i64"])
def test_constants_that_end_in_zeros(dtype: str) -> None:
    """gcc 12 stores 1, 1, 1, 0, 0, 0, 0, 0 as eight ones for AVX-512, if it is let."""
    want = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, -1])
    numbers = ", ".join(str(v) + (".0" if dtype == "f64" else "") for v in want)
    type = f"tensor<{want.size}x{dtype}>"
    text = f"""
      func.func @main() -> {type} {{
        %c = nd.constant dense<[{numbers}]> : {type}
        func.return %c : {type}
      }}"""
    np.testing.assert_array_equal(sw.compile(text)(), want)
