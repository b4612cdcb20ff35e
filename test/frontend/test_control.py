"""sw.lax and sw.nn, traced and run by the reference interpreter, against plain Python."""

import inspect
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
import stepwell.numpy as snp

R = np.random.default_rng(5)
X = R.standard_normal((5, 3)).astype(np.float32)
IMAGE = R.standard_normal((2, 4, 7, 6)).astype(np.float32)


def test_cond_runs_the_chosen_branch() -> None:
    def f(x: Any) -> Any:
        return sw.lax.cond(snp.sum(x) > 0, lambda a: {"y": a + 1}, lambda a: {"y": -a}, x)

    for x in (X, -np.abs(X)):
        want = x + 1 if x.sum() > 0 else -x
        np.testing.assert_allclose(interpreted(f, x)["y"], want, rtol=1e-6)


def test_while_loop() -> None:
    def f(x: Any) -> Any:
        return sw.lax.while_loop(
            lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, snp.asarray(0))
        )

    y, n = interpreted(f, np.float32(3))
    assert (y, n) == (192, 6)


def test_fori_loop_with_plain_and_traced_bounds() -> None:
    def f(x: Any, n: Any) -> Any:
        fixed = sw.lax.fori_loop(0, 4, lambda i, v: v + i * x, x)
        return fixed, sw.lax.fori_loop(1, n, lambda i, v: v * 2, x)

    fixed, open_ = interpreted(f, np.float32(2), np.int32(4))
    assert (fixed, open_) == (2 + 2 * 6, 16)


def test_scan_carries_and_stacks() -> None:
    def f(x: Any) -> Any:
        return sw.lax.scan(lambda c, row: (c + row, snp.sum(row)), snp.zeros(3), x)

    carry, ys = interpreted(f, X)
    np.testing.assert_allclose(carry, X.sum(0), rtol=1e-5)
    np.testing.assert_allclose(ys, X.sum(1), rtol=1e-5)
    _, ys = interpreted(
        lambda x: sw.lax.scan(lambda c, row: (c + 1, c * row), 0.0, x, reverse=True), X
    )
    np.testing.assert_allclose(ys, X * np.arange(4, -1, -1)[:, None], rtol=1e-6)


def test_bodies_must_keep_types() -> None:
    with pytest.raises(
        TypeError, match=r"must keep its type: value 0 was f32\[3\], now f32\[5x3\]"
    ):
        sw.jit(lambda x: sw.lax.fori_loop(0, 2, lambda i, v: v + x, snp.zeros(3, "f32"))).trace(X)
    with pytest.raises(TypeError, match="both branches of cond must have one structure"):
        sw.jit(lambda x: sw.lax.cond(x[0, 0] > 0, lambda: x, lambda: (x, x))).trace(X)
    with pytest.raises(
        TypeError, match=r"must have one type: value 0 was f32\[5x3\], now f32\[3\]"
    ):
        sw.jit(lambda x: sw.lax.cond(x[0, 0] > 0, lambda: x, lambda: x[0])).trace(X)


def test_nested_control_flow() -> None:
    def f(x: Any) -> Any:
        def row(carry: Any, r: Any) -> Any:
            total = sw.lax.while_loop(lambda t: t < 3, lambda t: t + 1, carry)
            return sw.lax.cond(snp.sum(r) > 0, lambda: total, lambda: total - 5), total

        return sw.lax.scan(row, snp.asarray(0.0), x)

    carry, want = np.float32(0), []
    for r in X:
        t = max(carry, np.float32(3)) if carry >= 3 else carry + np.ceil(3 - carry)
        want.append(t)
        carry = t if r.sum() > 0 else t - 5
    got_carry, got = interpreted(f, X)
    np.testing.assert_allclose(got, want)
    assert got_carry == carry


def reference_conv(x: Any, w: Any, stride: int, pad: int, dilation: int, groups: int) -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    n, _, h, wd = x.shape
    o, c, p, q = w.shape
    oh, ow = (h - dilation * (p - 1) - 1) // stride + 1, (wd - dilation * (q - 1) - 1) // stride + 1
    y = np.zeros((n, o, oh, ow))
    for f in range(o):
        g = f // (o // groups)
        for i in range(oh):
            for j in range(ow):
                a, b = i * stride, j * stride
                block = x[
                    :,
                    g * c : (g + 1) * c,
                    a : a + dilation * p : dilation,
                    b : b + dilation * q : dilation,
                ]
                y[:, f, i, j] = (block[:, :, :p, :q] * w[f]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize(
    "stride, pad, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 4)]
)
def test_conv(stride: int, pad: int, dilation: int, groups: int) -> None:
    w = R.standard_normal((8, 4 // groups, 3, 2)).astype(np.float32)
    got = interpreted(
        lambda x, w: sw.nn.conv(x, w, stride=stride, padding=pad, dilation=dilation, groups=groups),
        IMAGE,
        w,
    )
    want = reference_conv(IMAGE, w, stride, pad, dilation, groups)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_conv_transpose_is_the_adjoint_of_conv() -> None:
    w = R.standard_normal((6, 4, 3, 3)).astype(np.float32)  # conv: 4 -> 6 features
    y = R.standard_normal((2, 6, 3, 3)).astype(np.float32)
    x = R.standard_normal((2, 4, 7, 7)).astype(np.float32)
    forward = interpreted(lambda x, w: sw.nn.conv(x, w, stride=2), x, w)
    back = interpreted(lambda y, w: sw.nn.conv_transpose(y, w, stride=2), y, w)
    np.testing.assert_allclose((forward * y).sum(), (back * x).sum(), rtol=1e-4)


def test_pools_and_same_padding() -> None:
    def f(x: Any) -> Any:
        return (
            sw.nn.max_pool(x, 2),
            sw.nn.avg_pool(x, 3, stride=1),
            sw.nn.max_pool(x, 3, stride=2, padding="SAME"),
            sw.nn.global_avg_pool(x),
        )

    big, mean, same, whole = interpreted(f, IMAGE)
    np.testing.assert_array_equal(big, IMAGE[:, :, :6].reshape(2, 4, 3, 2, 3, 2).max((3, 5)))
    np.testing.assert_allclose(mean[0, 0, 0, 0], IMAGE[0, 0, :3, :3].mean(), rtol=1e-5)
    assert same.shape == (2, 4, 4, 3)
    np.testing.assert_allclose(whole, IMAGE.mean((2, 3)), rtol=1e-4, atol=1e-6)


def test_norms_and_activations() -> None:
    def f(x: Any) -> Any:
        return (
            sw.nn.layer_norm(x, snp.ones(3), snp.zeros(3)),
            sw.nn.rms_norm(x, snp.full((3,), 2.0)),
            sw.nn.batch_norm(x, snp.zeros(3), snp.ones(3), snp.ones(3), snp.ones(3), eps=0.0),
            sw.nn.softmax(x),
            sw.nn.relu(x),
            sw.nn.silu(x),
            sw.nn.leaky_relu(x),
        )

    layer, rms, batch, soft, relu, silu, leaky = interpreted(f, X)
    mean, var = X.mean(1, keepdims=True), X.var(1, keepdims=True)
    np.testing.assert_allclose(layer, (X - mean) / np.sqrt(var + 1e-5), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        rms, 2 * X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-5), rtol=1e-4
    )
    np.testing.assert_allclose(batch, X + 1, rtol=1e-5)
    np.testing.assert_allclose(soft.sum(1), np.ones(5), rtol=1e-5)
    np.testing.assert_array_equal(relu, np.maximum(X, 0))
    np.testing.assert_allclose(silu, X / (1 + np.exp(-X)), rtol=1e-5)
    np.testing.assert_allclose(leaky, np.where(X >= 0, X, 0.01 * X), rtol=1e-6)


def test_dynamic_slices_and_random_bits() -> None:
    def f(x: Any, i: Any) -> Any:
        part = sw.lax.dynamic_slice(x, (i, 0), (2, 3))
        return part, sw.lax.dynamic_update_slice(x, part * 0, (i, 0)), x[i]

    part, changed, row = interpreted(f, X, np.int32(1))
    np.testing.assert_array_equal(part, X[1:3])
    np.testing.assert_array_equal(changed[1:3], 0)
    np.testing.assert_array_equal(row, X[1])
    bits = interpreted(lambda k: sw.lax.random_bits(k, 0, (64,)), np.array([1, 2], np.uint32))
    assert bits.dtype == np.uint32
    assert len(set(bits.tolist())) == 64


def test_a_number_takes_the_dtype_it_is_carried_in() -> None:
    def f(x: Any, p: Any) -> Any:
        half = sw.lax.cond(p, lambda: x[0, 0], lambda: 0.5)
        return half, sw.lax.fori_loop(0, 3, lambda i, c: 2, np.float32(7))

    half, last = interpreted(f, X, np.bool_(False))
    assert (half, last, last.dtype) == (0.5, 2, np.float32)


def test_an_array_of_another_dtype_is_no_carry() -> None:
    def f(n: Any) -> Any:
        return sw.lax.fori_loop(0, 3, lambda i, c: snp.asarray(1.5), n)

    with pytest.raises(TypeError, match=r"value 0 was i64\[\], now f64\[\]"):
        interpreted(f, np.int64(1))


def test_lax_has_jaxs_signatures() -> None:
    names = {
        "cond": ["pred", "true_fun", "false_fun", "operands", "operand"],
        "switch": ["index", "branches", "operands"],
        "while_loop": ["cond_fun", "body_fun", "init_val"],
        "fori_loop": ["lower", "upper", "body_fun", "init_val", "unroll"],
        "scan": ["f", "init", "xs", "length", "reverse", "unroll"],
        "map": ["f", "xs", "batch_size"],
        "associative_scan": ["fn", "elems", "reverse", "axis"],
    }
    for name, wanted in names.items():
        assert list(inspect.signature(getattr(sw.lax, name)).parameters) == wanted


def test_switch_takes_the_nearest_branch() -> None:
    of = sw.jit(lambda i, x: sw.lax.switch(i, [lambda a: a, lambda a: a * 2, lambda a: -a], x))
    for index, factor in ((-5, 1), (0, 1), (1, 2), (2, -1), (9, -1)):
        np.testing.assert_array_equal(of(index, X), X * factor)
    with pytest.raises(TypeError, match="the index of switch is an integer without axes"):
        sw.jit(lambda x: sw.lax.switch(x, [lambda: 1])).trace(X)


def test_map_and_scans_that_are_unrolled() -> None:
    def sums(x: Any) -> Any:
        plain = sw.lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x, reverse=True)
        whole = sw.lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x, reverse=True, unroll=True)
        return plain, whole, sw.lax.map(lambda r: {"s": r.sum()}, x)

    (total, ys), whole, rows = sw.jit(sums)(X)
    assert total.dtype == X.dtype == rows["s"].dtype  # a number takes the dtype that it meets
    np.testing.assert_allclose(rows["s"], X.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(total, X.sum(), rtol=1e-6)
    np.testing.assert_allclose(whole[0], total, rtol=1e-6)
    np.testing.assert_allclose(whole[1], ys, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_associative_scan(size: int) -> None:
    v = np.arange(1.0, size + 1)

    def scans(x: Any) -> Any:
        forth = sw.lax.associative_scan(np.multiply, x)
        return forth, sw.lax.associative_scan(lambda a, b: a + b, x, reverse=True)

    forth, back = sw.jit(scans)(v)
    np.testing.assert_array_equal(forth, np.cumprod(v))
    np.testing.assert_array_equal(back, np.cumsum(v[::-1])[::-1])


def test_the_control_flow_of_functions_given_to_lax() -> None:
    def body(carry: Any) -> Any:
        x, k = carry
        x = x - 1 if x > 3 else x + 2
        return x, k + 1

    value, count = sw.jit(lambda x: sw.lax.while_loop(lambda c: c[1] < 5, body, (x, 0)))(0.0)
    assert (value, count) == (4.0, 5)
