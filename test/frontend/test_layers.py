"""Layers of `sw.nn`, against what they mean in NumPy."""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

R = np.random.default_rng(5)


def drawn(*shape: int) -> Any:
    return R.standard_normal(shape)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def check(call: Any, want: Any, *args: Any, rtol: float = 1e-5) -> None:
    """Compare results in float64, float32 and float16."""
    limits = ((np.float64, 1e-11), (np.float32, rtol), (np.float16, max(500 * rtol, 5e-3)))
    for kind, limit in limits:
        given = [x.astype(kind) for x in args]
        got = interpreted(lambda *xs: call(*xs), *given)
        both = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for g, w in both:
            assert g.dtype == kind and g.shape == w.shape
            np.testing.assert_allclose(g, w, rtol=limit, atol=limit)


def test_dense() -> None:
    x, w, b = drawn(2, 5, 3), drawn(3, 4), drawn(4)
    check(sw.nn.dense, x @ w + b, x, w, b)
    check(sw.nn.dense, x[0, 0] @ w, x[0, 0], w)
    assert interpreted(lambda x, w: sw.nn.dense(x, w), x[:0], w).shape == (0, 5, 4)


def test_embedding() -> None:
    table = drawn(6, 3).astype(np.float32)
    at = np.array([[1, 5], [-1, 0]], np.int8)
    got = interpreted(lambda t: sw.nn.embedding(at, t), table)
    np.testing.assert_array_equal(got, table[at], strict=True)
    read = sw.jit(sw.nn.embedding)
    np.testing.assert_array_equal(read(np.array([2]), table), table[[2]], strict=True)
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        read(np.array([6]), table)


def spread(x: Any, w: Any, stride: Any, dilation: Any, groups: int) -> Any:
    """Return the whole of a transposed convolution in two dimensions, element by element."""
    n, inputs, *size = x.shape
    _, outputs, *window = w.shape
    whole = [
        (m - 1) * s + d * (k - 1) + 1
        for m, s, d, k in zip(size, stride, dilation, window, strict=True)
    ]
    y = np.zeros((n, outputs * groups, *whole))
    part = inputs // groups
    for c, i, j in product(range(inputs), *map(range, size)):
        to = slice(c // part * outputs, (c // part + 1) * outputs)
        for u, v in product(*map(range, window)):
            place = (i * stride[0] + u * dilation[0], j * stride[1] + v * dilation[1])
            y[:, to, *place] += x[:, c, i, j, None] * w[c, :, u, v]
    return y


@pytest.mark.parametrize("seed", range(6))
def test_conv_transpose(seed: int) -> None:
    """Random strides, dilations, groups and paddings, and bias."""
    r = np.random.default_rng(seed)
    groups = int(r.integers(1, 3))
    window, stride, dilation = (r.integers(1, 4, 2) for _ in range(3))
    x = r.standard_normal((2, 2 * groups, *r.integers(1, 5, 2)))
    w = r.standard_normal((2 * groups, 3, *window))
    b = r.standard_normal(3 * groups)
    extent = dilation * (window - 1) + 1
    low, high = (r.integers(0, extent) for _ in range(2))
    longer = r.integers(0, 3, 2)
    whole = np.pad(spread(x, w, stride, dilation, groups), [(0, 0), (0, 0), (0, 9), (0, 9)])
    sizes = (np.array(x.shape[2:]) - 1) * stride + extent - low - high + longer
    if (sizes < 0).any():
        return
    want = whole[:, :, low[0] : low[0] + sizes[0], low[1] : low[1] + sizes[1]]
    got = interpreted(
        lambda x, w, b: sw.nn.conv_transpose(
            x,
            w,
            stride=stride.tolist(),
            padding=list(zip(low.tolist(), high.tolist(), strict=True)),
            groups=groups,
            dilation=dilation.tolist(),
            output_padding=longer.tolist(),
            bias=b,
        ),
        *(x, w, b),
    )
    np.testing.assert_allclose(got, want + b[:, None, None], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size, stride, window", [(5, 2, 3), (4, 3, 2), (3, 1, 4), (2, 2, 2)])
def test_conv_transpose_same(size: int, stride: int, window: int) -> None:
    """'SAME' gives n * stride: the adjoint of the convolution that is 'SAME'."""
    x, w, y = drawn(1, 2, size), drawn(2, 3, window), drawn(1, 3, size * stride)
    up = interpreted(lambda x, w: sw.nn.conv_transpose(x, w, stride, "SAME"), x, w)
    assert up.shape == y.shape
    down = interpreted(lambda y, w: sw.nn.conv(y, w, stride, "SAME"), y, w)
    np.testing.assert_allclose((up * y).sum(), (down * x).sum(), rtol=1e-9)


def test_conv_of_any_rank_with_bias() -> None:
    for rank in range(4):
        x, w, b = drawn(2, 4, *(5,) * rank), drawn(6, 2, *(3,) * rank), drawn(6)
        plain = interpreted(lambda x, w: sw.nn.conv(x, w, 2, "SAME", 2, 2), x, w)
        got = interpreted(lambda x, w, b: sw.nn.conv(x, w, 2, "SAME", 2, 2, b), x, w, b)
        assert got.shape == (2, 6, *(3,) * rank)
        np.testing.assert_allclose(got, plain + b.reshape(6, *(1,) * rank), rtol=1e-12)


def standard(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_norms() -> None:
    x, mean, var, scale, bias = drawn(4, 3, 5) + 2, drawn(3), abs(drawn(3)), drawn(3), drawn(3)
    s, b = scale[:, None], bias[:, None]
    want = standard(x, (0, 2)) * s + b
    new = 0.75 * mean + 0.25 * x.mean((0, 2)), 0.75 * var + 0.25 * x.var((0, 2))
    check(
        lambda *v: sw.nn.batch_norm_training(*v, momentum=0.75),
        (want, *new),
        x,
        mean,
        var,
        scale,
        bias,
    )
    rows = standard(x, (0, 1), 0.1)
    got = interpreted(
        lambda x: sw.nn.batch_norm_training(x, np.zeros(5), np.ones(5), eps=0.1, axis=-1), x
    )
    np.testing.assert_allclose(got[0], rows, rtol=1e-10)
    check(sw.nn.instance_norm, standard(x, 2) * s + b, x, scale, bias)
    check(sw.nn.instance_norm, standard(x, 2), x)
    filters = drawn(4, 3, 5, 2)
    gain = drawn(4)
    want = standard(filters, (1, 2, 3)) * gain[:, None, None, None]
    check(sw.nn.weight_standardize, want, filters, gain)


def test_running_statistics_keep_their_dtype() -> None:
    """Those of float16 images may be float32, which 0.9 and 0.1 of them need."""
    x = (drawn(8, 3) * 40).astype(np.float16)
    y, mean, var = interpreted(
        lambda x: sw.nn.batch_norm_training(x, np.zeros(3, "f"), np.ones(3, "f")), x
    )
    assert (y.dtype, mean.dtype, var.dtype) == (np.float16, np.float32, np.float32)
    np.testing.assert_allclose(var, 0.9 + 0.1 * x.astype(float).var(0), rtol=1e-5)


def attention(q: Any, k: Any, v: Any, bias: Any = 0.0, seen: Any = True, scale: Any = None) -> Any:
    """Return what each query takes of the values, said query by query."""
    (b, t, n, h), shared = q.shape, q.shape[2] // k.shape[2]
    shape = (b, n, t, k.shape[1])
    bias, seen = np.broadcast_to(bias, shape), np.broadcast_to(seen, shape)
    found = np.zeros(q.shape)
    for i, a, j in product(range(b), range(n), range(t)):
        scores = k[i, :, a // shared] @ q[i, j, a] * (h**-0.5 if scale is None else scale)
        scores = np.where(seen[i, a, j], scores + bias[i, a, j], -1e30)
        weights = np.exp(scores - scores.max())
        found[i, j, a] = weights / weights.sum() @ v[i, :, a // shared]
    return found


B, T, S, N, K, H = 2, 5, 7, 6, 3, 4
Q, KEYS, VALUES = drawn(B, T, N, H), drawn(B, S, K, H), drawn(B, S, K, H)
BIAS, MASK = drawn(B, N, T, S), R.random((B, N, T, S)) > 0.3
MASK[0, 1, 2] = False
ROW, COLUMN = np.arange(T)[:, None], np.arange(S)
LENGTHS = np.array([7, 4])
ATTENTION: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "bias": ({"bias": BIAS, "scale": 0.3}, {"bias": BIAS, "scale": 0.3}),
    "shared bias": ({"bias": BIAS[:1, :1]}, {"bias": BIAS[:1, :1]}),
    "mask": ({"mask": MASK}, {"seen": MASK}),
    "mask of rows": ({"mask": MASK[0, 0]}, {"seen": MASK[0, 0]}),
    "causal": ({"is_causal": True}, {"seen": ROW >= COLUMN}),
    "causal with mask": ({"is_causal": True, "mask": MASK}, {"seen": (ROW >= COLUMN) & MASK}),
    "window": (
        {"local_window_size": (2, 1)},
        {"seen": (ROW <= COLUMN + 2) & (ROW >= COLUMN - 1)},
    ),
    "window of one": ({"local_window_size": 1}, {"seen": abs(ROW - COLUMN) <= 1}),
    "lengths of keys": (
        {"key_value_seq_lengths": LENGTHS},
        {"seen": (LENGTHS[:, None] > COLUMN)[:, None, None]},
    ),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    given, meant = ATTENTION[name]
    want = attention(Q, KEYS, VALUES, **meant)
    check(lambda *x: sw.nn.dot_product_attention(*x, **given), want, Q, KEYS, VALUES)


def test_attention_of_one_sequence() -> None:
    q, k, v = Q[0], KEYS[0, :, :1], VALUES[0, :, :1]
    want = attention(q[None], k[None], v[None])[0]
    check(sw.nn.dot_product_attention, want, q, k, v)


def test_lengths_of_queries() -> None:
    lengths = np.array([2, 5], np.int32)
    got = interpreted(
        lambda q, k, v: sw.nn.dot_product_attention(q, k, v, query_seq_lengths=lengths),
        *(Q, KEYS, VALUES),
    )
    there = (np.arange(T) < lengths[:, None])[..., None, None]
    np.testing.assert_allclose(got, np.where(there, attention(Q, KEYS, VALUES), 0), rtol=1e-10)


def test_residual_of_attention() -> None:
    _, sums = interpreted(
        lambda q, k, v: sw.nn.dot_product_attention(q, k, v, return_residual=True), Q, KEYS, VALUES
    )
    scores = np.einsum("btnh,bsnh->btns", Q, KEYS.repeat(N // K, 2)) / H**0.5
    np.testing.assert_allclose(sums, np.log(np.exp(scores).sum(-1)), rtol=1e-10)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved: bool) -> None:
    """Pairs turn as complex numbers do, and products of turned rows know their distance alone."""
    x = drawn(2, 5, 3, 8)
    turn = np.exp(1j * np.outer(np.arange(5), 100.0 ** (-np.arange(0, 8, 2) / 8)))[:, None]
    if interleaved:
        turned = (x[..., ::2] + 1j * x[..., 1::2]) * turn
        want = np.stack([turned.real, turned.imag], -1).reshape(x.shape)
    else:
        turned = (x[..., :4] + 1j * x[..., 4:]) * turn
        want = np.concatenate([turned.real, turned.imag], -1)
    call: dict[str, Any] = {"base": 100.0, "interleaved": interleaved}
    check(lambda x: sw.nn.rotary_embedding(x, **call), want, x)
    late = np.arange(5)[None] + [[0], [3]]
    got = interpreted(lambda x: sw.nn.rotary_embedding(x, late, **call), x)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10)
    products = [np.einsum("thd,shd->tsh", each[1], each[1]) for each in (got, want)]
    np.testing.assert_allclose(*products, rtol=1e-9, atol=1e-9)


def lstm(x: Any, state: Any, w: Any, u: Any, b: Any) -> Any:
    h, c = state
    i, f, g, o = np.split(x @ w + h @ u + b, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(x: Any, h: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
    r, z, n = np.split(x @ w + b, 3, -1)
    s, y, m = np.split(h @ u + d, 3, -1)
    z = sigmoid(z + y)
    return (1 - z) * np.tanh(n + sigmoid(r + s) * m) + z * h


def over(step: Any, x: Any, state: Any, order: Any) -> Any:
    """Return the last state and what stands first in each."""
    ys = np.zeros((len(x), *np.shape(state if not isinstance(state, tuple) else state[0])))
    for t in order:
        state = step(x[t], state)
        ys[t] = state[0] if isinstance(state, tuple) else state
    return state, ys


def test_lstm() -> None:
    x, w, u, b = drawn(4, 2, 3), drawn(3, 20), drawn(5, 20), drawn(20)
    h, c = drawn(2, 5), drawn(2, 5)
    check(
        lambda x, h, c, w, u, b: sw.nn.lstm_cell((h, c), x, w, u, b)[0],
        lstm(x[0], (h, c), w, u, b),
        *(x[0], h, c, w, u, b),
    )
    for reverse in (False, True):
        order = range(4)[::-1] if reverse else range(4)
        (p, q), ys = over(lambda x, s: lstm(x, s, w, u, b), x, (h, c), order)
        check(
            lambda x, h, c, w, u, b, reverse=reverse: (
                (r := sw.nn.lstm(x, w, u, b, (h, c), reverse=reverse))[0][0],
                r[0][1],
                r[1],
            ),
            (p, q, ys),
            *(x, h, c, w, u, b),
        )
    _, ys = over(lambda x, s: lstm(x, s, w, u, 0), x, (0 * h, 0 * c), range(4))
    got = interpreted(lambda x, w, u: sw.nn.lstm(x.swapaxes(0, 1), w, u, time_axis=1)[1], x, w, u)
    np.testing.assert_allclose(got.swapaxes(0, 1), ys, rtol=1e-10)


def test_gru() -> None:
    x, w, u, b, d, h = drawn(4, 3), drawn(3, 15), drawn(5, 15), drawn(15), drawn(15), drawn(5)
    last, ys = over(lambda x, s: gru(x, s, w, u, b, d), x, h, range(4))
    check(
        lambda x, h, *p: sw.nn.gru(x, *p, carry=h),
        (last, ys),
        *(x, h, w, u, b, d),
    )
    check(lambda x, h, *p: sw.nn.gru_cell(h, x, *p)[1], ys[0], x[0], h, w, u, b, d)


def test_rnn_of_several_lengths() -> None:
    x, w, u = drawn(5, 3, 2), drawn(2, 4), drawn(4, 4)
    lengths = np.array([5, 0, 3])
    for reverse in (False, True):
        last, ys = interpreted(
            lambda x, w, u, reverse=reverse: sw.nn.rnn(
                x, w, u, activation=np.sin, lengths=lengths, reverse=reverse
            ),
            *(x, w, u),
        )
        for k, n in enumerate(lengths):
            order = range(n)[::-1] if reverse else range(n)
            end, steps = over(lambda x, s: np.sin(x @ w + s @ u), x[:, k], np.zeros(4), order)
            np.testing.assert_allclose(last[k], end, rtol=1e-10)
            np.testing.assert_allclose(ys[:, k], steps, rtol=1e-10)
    none, ys = interpreted(lambda x, w, u: sw.nn.rnn(x, w, u), x[:0], w, u)
    assert ys.shape == (0, 3, 4) and not none.any()


def test_dropout() -> None:
    x = np.full((40, 50), 3.0, np.float32)
    key = sw.random.key(3)

    def call(x: Any, key: Any, rate: Any, training: Any) -> Any:
        known = sw.nn.dropout(x, 0.25, key)
        return (
            *(known, sw.nn.dropout(x, rate, key), sw.nn.dropout(x, 0.25, key, ~training)),
            *(sw.nn.dropout(x, 0.5, key, broadcast_dims=(1,)), sw.nn.dropout(x * np.inf, 1, key)),
            sw.nn.dropout(x, 0.25, sw.random.fold_in(key, 1)),
        )

    got = interpreted(call, x, key, np.float32(0.25), np.bool_(True))
    kept = got[0] != 0
    np.testing.assert_allclose(got[0][kept], 4.0, rtol=1e-6)
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_allclose(got[1], got[0], rtol=1e-6)
    np.testing.assert_array_equal(got[2], got[0])
    assert all(len(set(row)) == 1 for row in got[3]) and 10 < (got[3][:, 0] == 0).sum() < 30
    assert not got[4].any()
    assert 0.3 < ((got[5] != 0) != kept).mean() < 0.45
    for same in (
        interpreted(lambda x: sw.nn.dropout(x, 0.5, None, inference=True), x),
        interpreted(lambda x: sw.nn.dropout(x, 0, None), x),
        interpreted(lambda x, off: sw.nn.dropout(x, 0.5, key, off), x, np.bool_(True)),
    ):
        np.testing.assert_array_equal(same, x)


def test_more_of_jax_nn() -> None:
    x = abs(drawn(3, 4)) + 0.1
    check(sw.nn.log1mexp, np.log(1 - np.exp(-x)), x)
    np.testing.assert_allclose(
        interpreted(lambda x: sw.nn.log1mexp(x), np.array([1e-20, 80], np.float32)),
        [np.log(1e-20), -np.exp(-80.0)],
        1e-6,
    )
    check(lambda x: sw.nn.logmeanexp(x, 1), np.log(np.exp(x).mean(1)), x)
    few = drawn(3, 4) > -0.5
    few[:, 0] = True
    want = np.log(np.exp(x).mean(1, where=few, keepdims=True))
    check(lambda x: sw.nn.logmeanexp(x, 1, few, True), want, x)
    spelled = str(inspect.signature(sw.nn.dot_product_attention)).replace("'", "")
    assert "bias: Any = None, mask: Any = None, *, scale: Any = None, is_causal" in spelled


def test_layers_without_jit() -> None:
    """Under `sw.disable_jit` layers and random numbers are compiled each by itself."""
    x, w = drawn(3, 2).astype(np.float32), drawn(2, 2).astype(np.float32)

    @sw.jit
    def f(x: Any, w: Any) -> Any:
        found = sw.nn.rnn(x, w, w, activation=sw.nn.relu)[1]
        return sw.nn.dropout(found, 0.5, sw.random.fold_in(sw.random.key(1), 2))

    with sw.disable_jit():
        alone = f(x, w)
    np.testing.assert_allclose(alone, f(x, w), rtol=1e-6)


@pytest.mark.parametrize("keys", [300, 140, 330])
def test_causal_attention_in_bands(keys: int) -> None:
    """Queries are taken in bands that see no more than the keys up to their end."""
    random = np.random.default_rng(keys)
    q, k, v = (random.standard_normal((2, n, 2, 3)) for n in (300, keys, keys))
    bias = random.standard_normal((1, 2, 300, keys))
    found, sums = interpreted(
        lambda *given: sw.nn.dot_product_attention(*given, is_causal=True, return_residual=True),
        *(q, k, v, bias),
    )
    scores = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(3) + bias
    seen = np.arange(300)[:, None] >= np.arange(keys)
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    right = np.einsum("bnts,bsnh->btnh", weights / total, v)
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9)
    logarithms = np.log(total[..., 0]) + scores.max(-1)
    np.testing.assert_allclose(sums, np.transpose(logarithms, (0, 2, 1)), rtol=1e-9, atol=1e-9)
