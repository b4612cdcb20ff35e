"""Products over several axes of rows, columns or sums give what NumPy gives, whatever lies where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(8)


def numbers(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(
        got, want, rtol=0, atol=1e-5 * max(1.0, float(np.abs(want).max(initial=0)))
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("b", [1, 2, 8, 33])
@pytest.mark.parametrize(
    "s, k, n", [(1, 64, 64), (3, 17, 40), (4, 300, 129), (5, 7, 1), (70, 9, 20)]
)
def test_rows_of_every_batch(b: int, s: int, k: int, n: int) -> None:
    x, w, bias, rest = numbers(b, s, k), numbers(k, n), numbers(n), numbers(b, s, n)

    def model(x: Any, w: Any, bias: Any, rest: Any) -> Any:
        return sw.nn.relu(x @ w + bias) + rest

    want = np.maximum(x.astype(float) @ w + bias, 0) + rest
    close(sw.jit(model)(x, w, bias, rest), want)


@pytest.mark.parametrize("b, s", [(1, 1), (0, 3), (7, 2), (40, 3)])
def test_batches_of_unknown_number(b: int, s: int) -> None:
    text = f"""
    func.func @main(%x: tensor<?x{s}x19xf32>, %w: tensor<19x33xf32>) -> tensor<?x{s}x33xf32> {{
      %h = nd.matmul %x, %w : (tensor<?x{s}x19xf32>, tensor<19x33xf32>) -> tensor<?x{s}x33xf32>
      %y = nd.tanh %h : tensor<?x{s}x33xf32>
      func.return %y : tensor<?x{s}x33xf32>
    }}"""
    x, w = numbers(b, s, 19), numbers(19, 33)
    close(sw.compile(text)(x, w), np.tanh(x.astype(float) @ w))


def test_heads_are_columns_and_then_sums() -> None:
    x, into, out = numbers(3, 5, 48), numbers(48, 4, 10), numbers(4, 10, 48)

    def model(x: Any, into: Any, out: Any) -> Any:
        heads = snp.einsum("bsd,dhk->bshk", x, into)
        return snp.einsum("bshk,hkd->bsd", snp.tanh(heads), out)

    heads = np.tanh(np.einsum("bsd,dhk->bshk", x.astype(float), into))
    close(sw.jit(model)(x, into, out), np.einsum("bshk,hkd->bsd", heads, out))


def test_rows_cut_out_of_longer_ones() -> None:
    x, w = numbers(6, 9, 30), numbers(15, 20)

    def model(x: Any, w: Any) -> Any:
        middle = x[:, 2:5, :15] @ w
        return snp.concat([middle, x[:, :4, :20]], axis=1), x[1:4, :, 15:] @ w, x[::2, :, 15:] @ w

    first, second, third = sw.jit(model)(x, w)
    wide = x.astype(float)
    close(first, np.concatenate([wide[:, 2:5, :15] @ w, x[:, :4, :20]], axis=1))
    close(second, wide[1:4, :, 15:] @ w)
    close(third, wide[::2, :, 15:] @ w)


def test_a_batch_in_every_step_of_a_loop() -> None:
    xs, w = numbers(6, 4, 3, 16), numbers(16, 16)

    def model(xs: Any, w: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = snp.tanh(x + h @ w)
            return h, h

        return sw.lax.scan(step, snp.zeros((4, 3, 16), dtype=snp.float32), xs)[1]

    h, want = np.zeros((4, 3, 16)), []
    for x in xs:
        h = np.tanh(x + h @ w)
        want.append(h)
    close(sw.jit(model)(xs, w), np.stack(want))
