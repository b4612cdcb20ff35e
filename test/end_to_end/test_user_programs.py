"""What users write, as it stands in their loops and losses, against NumPy, on both targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell import lax, nn
from stepwell.core.machine import this_machine
from stepwell.core.source import Source
from stepwell.driver.lowering import stage_text
from stepwell.testing.machines import MACHINES
from stepwell.testing.opencl import TARGETS

RANDOM = np.random.default_rng(8)


def whole(*shape: int, dtype: Any = np.float32) -> Any:
    """Return whole numbers, of which every sum here is exact."""
    low = 0 if np.dtype(dtype).kind == "u" else -9
    return RANDOM.integers(low, 9, shape).astype(dtype)


V, ROWS, P = whole(64), whole(64, 5), RANDOM.permutation(64).astype(np.int32)
"""A vector, a matrix, and a permutation of the places of either."""


def replaced(x: Any, at: Any, values: Any, combine: Any = None) -> Any:
    """Return a copy of ``x`` with ``values`` put, or combined, at ``at``."""
    y = x.copy()
    if combine is None:
        y[at] = values
    else:
        combine.at(y, at, values)
    return y


def repeated(step: Callable[[Any], Any], times: int, start: Any) -> Any:
    """Return what ``times`` steps make of ``start``."""
    for _ in range(times):
        start = step(start)
    return start


SCATTERS: dict[str, tuple[Any, Any, list[Any]]] = {
    "permuted": (lambda v, p: v.at[p].set(v), lambda v, p: replaced(v, p, v), [V, P]),
    "reversed": (lambda v: v.at[::-1].set(v), lambda v: v[::-1], [V]),
    "added": (lambda v, p: v.at[p].add(v), lambda v, p: replaced(v, p, v, np.add), [V, P]),
    "least": (lambda v, p: v.at[p].min(v), lambda v, p: replaced(v, p, v, np.minimum), [V, P]),
    "rows": (lambda v, p: v.at[p].set(v), lambda v, p: replaced(v, p, v), [ROWS, P]),
    "computed": (
        lambda v, p: (v * 2).at[p].set(v * 2),
        lambda v, p: replaced(v * 2, p, v * 2),
        [ROWS, P],
    ),
    "indices": (
        lambda p: p.at[p].set(p),
        lambda p: replaced(p, p, p),
        [P],
    ),
    "in a loop": (
        lambda v, p: lax.fori_loop(0, 3, lambda _, c: c.at[p].set(c), v),
        lambda v, p: repeated(lambda c: replaced(c, p, c), 3, v),
        [V, P],
    ),
    "added in a loop, kept": (
        lambda v, p: lax.fori_loop(0, 3, lambda _, c: (c[0].at[p].add(c[0]), c[0]), (v, v)),
        lambda v, p: repeated(lambda c: (replaced(c[0], p, c[0], np.add), c[0]), 3, (v, v)),
        [V, P],
    ),
}


def check(function: Any, reference: Any, args: list[Any], target: str) -> None:
    """Compare a traced function with its NumPy twin, exactly."""
    got, want = sw.jit(function, target=target)(*args), reference(*args)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for have, wanted in pairs:
        np.testing.assert_array_equal(have, wanted)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_reads_its_destination_as_it_was(name: str, target: str) -> None:
    check(*SCATTERS[name], target)


def momentum(v: Any, n: Any) -> Any:
    start = (snp.zeros_like(v), snp.zeros_like(v))
    return lax.fori_loop(0, n, lambda _, c: (c[0] + c[1] + v, c[0]), start)


def momentum_of_while(v: Any, n: Any) -> Any:
    def step(c: Any) -> Any:
        return c[0] + 1, c[1] + c[2] + v, c[1]

    start = (0, snp.zeros_like(v), snp.zeros_like(v))
    return lax.while_loop(lambda c: c[0] < n, step, start)[1]


def turning(v: Any, n: Any) -> Any:
    start = (snp.zeros_like(v), snp.zeros_like(v), snp.zeros_like(v))
    return lax.fori_loop(0, n, lambda _, c: (c[2] + v, c[0], c[1] * 2), start)


def stepped(v: Any, n: int) -> Any:
    step = repeated(lambda c: (c[0] + c[1] + v, c[0]), int(n), (v * 0, v * 0))
    return step


def turned(v: Any, n: int) -> Any:
    return repeated(lambda c: (c[2] + v, c[0], c[1] * 2), int(n), (v * 0, v * 0, v * 0))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [0, 5])
def test_one_value_carried_twice(n: int, target: str) -> None:
    number = np.int32(n)
    check(momentum, stepped, [V, number], target)
    check(momentum_of_while, lambda v, n: stepped(v, n)[0], [V, number], target)
    check(turning, turned, [V, number], target)
    check(lambda v: momentum(v, n), lambda v: stepped(v, n), [V], target)
    check(lambda v: momentum(v, n)[0], lambda v: stepped(v, n)[0], [V], target)
    check(lambda v: turning(v, n)[2], lambda v: turned(v, n)[2], [V], target)


@pytest.mark.parametrize("target", TARGETS)
def test_carried_rows_overlap_those_that_follow_them(target: str) -> None:
    def rows(numpy: Any, q: Any, a: Any, take: Any, rounds: Any) -> Any:
        return rounds(lambda k, a: take(numpy.concatenate([q[:, ::-1] * 2, a]), k + 7), a)

    def traced(q: Any, a: Any, n: Any) -> Any:
        def take(w: Any, k: Any) -> Any:
            return lax.dynamic_slice(w, (k, 0), (3, 5))

        return rows(snp, q, a, take, lambda f, a: lax.fori_loop(0, n, f, a))

    def reference(q: Any, a: Any, n: Any) -> Any:
        return rows(np, q, a, lambda w, k: w[k : k + 3], lambda f, a: f(1, f(0, a)))

    check(traced, reference, [whole(9, 5), whole(3, 5), np.int32(2)], target)


@pytest.mark.parametrize("target", TARGETS)
def test_computed_rows_are_gathered_and_used(target: str) -> None:
    def loss(x: Any, labels: Any) -> Any:
        logs = nn.log_softmax(x)
        return -snp.mean(logs[snp.arange(16), labels]), snp.exp(logs)

    x, labels = RANDOM.standard_normal((16, 10)), RANDOM.integers(0, 10, 16).astype(np.int32)
    chances = np.exp(x - x.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    got, probabilities = sw.jit(loss, target=target)(x, labels)
    np.testing.assert_allclose(probabilities, chances, rtol=1e-9)
    np.testing.assert_allclose(got, -np.log(chances[np.arange(16), labels]).mean(), rtol=1e-9)
    check(lambda x, i: ((-x)[i], -x + 1), lambda x, i: (-x[i], 1 - x), [V, labels], target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_is_freshly_initialised(target: str) -> None:
    one, zero, weights = np.ones(8, np.float32), np.zeros(8, np.float32), whole(8, 3, 3, 3)

    def layer(x: Any) -> Any:
        return nn.batch_norm(nn.conv(x, weights), zero, one, one, zero, eps=0.0)

    x = whole(2, 3, 8, 8)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    want = np.einsum("bcijkl,ockl->boij", windows, weights)
    np.testing.assert_allclose(sw.jit(layer, target=target)(x), want, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [64, 127])
def test_the_greatest_of_one_number_repeated(n: int, target: str) -> None:
    def below(s: Any) -> Any:
        return snp.max(snp.broadcast_to(s, (n,))) - 1

    check(below, lambda s: s - 1, [np.float32(3)], target)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.uint64])
def test_single_elements_are_moved_and_combined(dtype: Any, target: str) -> None:
    x, v = whole(16, dtype=dtype), whole(16, dtype=dtype)
    check(lambda x, v: x.at[6].set(v[1]), lambda x, v: replaced(x, 6, v[1]), [x, v], target)
    check(lambda x: x.at[4].add(1), lambda x: replaced(x, 4, x[4] + dtype(1)), [x], target)
    check(
        lambda x, i: x.at[i].multiply(x[2]).at[0].max(x[1]),
        lambda x, i: replaced(replaced(x, i, x[i] * x[2]), 0, max(x[0], x[1])),
        [x, np.int32(5)],
        target,
    )

    def filled(x: Any, v: Any) -> Any:
        return lax.fori_loop(1, 16, lambda k, c: c.at[k].set(c[k - 1] + v[k]), x)

    def sums(x: Any, v: Any) -> Any:
        y = x.copy()
        for k in range(1, 16):
            y[k] = y[k - 1] + v[k]
        return y

    check(filled, sums, [x, v], target)


@pytest.mark.parametrize("target", TARGETS)
def test_both_branches_give_one_value(target: str) -> None:
    def chosen(p: Any, a: Any, b: Any) -> Any:
        return lax.cond(p, lambda a, b: (a, b), lambda a, b: (a, b), a, b)

    for p in (True, False):
        check(chosen, lambda p, a, b: (a, b), [np.bool_(p), V, V * 2], target)


@pytest.mark.parametrize("target", TARGETS)
def test_single_elements_are_stacked_and_written_back(target: str) -> None:
    def stacked(x: Any, start: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            y = row[1, 3, 0]
            return c.at[1, 1, 3, 0].multiply(y), y

        last, ys = lax.scan(step, start, x, reverse=True)
        return last, last[ys]

    x = np.ones((2, 4, 6, 1), np.int32)
    x[:, 1, 3, 0] = [0, 1]
    want = replaced(x, (1, 1, 3, 0), 0)
    check(stacked, lambda x, start: (want, want[[0, 1]]), [x, x], target)


def in_columns(x: Any) -> Any:
    """Take the mean off each column and add up the squares of what is left, twice over."""
    e = x * 3 + 1
    return ((e - e.min(0)) * (e + e.max(0))).sum(0)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.float64])
def test_columns_too_long_for_the_stack(dtype: Any) -> None:
    """So many columns are in flight as vectors have lanes; what waits of each is long."""
    rows = 17280 // np.dtype(dtype).itemsize
    x = RANDOM.integers(0, 2, (rows, 70)).astype(dtype)
    got = sw.jit(in_columns, machine="vector_bits=512")(x)
    np.testing.assert_array_equal(got, in_columns(x.astype(np.int64)).astype(got.dtype))


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_windows_too_large_for_a_block(dtype: str) -> None:
    image, filters, result = (
        f"tensor<{n}x{dtype}>" for n in ("2x64x55x55", "100x64x48x48", "2x100x8x8")
    )
    text = f"""func.func @main(%x: {image}, %w: {filters}) -> {result} {{
      %y = nd.convolution %x, %w : ({image}, {filters}) -> {result}
      func.return %y : {result}
    }}"""
    for described in MACHINES.values():
        machine = this_machine().override(described.text)
        assert "scf.for" in stage_text(Source(text, "<test>", "main", machine), "loops")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_two_norms_beside_a_loss(dtype: Any) -> None:
    """Many walks over the same rows are merged in one kernel, whichever of them stands first."""

    def program(x: Any) -> Any:
        logs = nn.log_softmax(x, 1)
        sums = snp.clip(logs, -3, 3).sum(1)
        return nn.layer_norm(x), sums * sums, nn.layer_norm(snp.exp(logs))

    def norm(x: Any) -> Any:
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    x = whole(8, 64).astype(dtype)
    exact = x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True)
    logs = exact - np.log(np.exp(exact).sum(1, keepdims=True))
    want = (norm(x.astype(np.float64)), np.clip(logs, -3, 3).sum(1) ** 2, norm(np.exp(logs)))
    for have, expected in zip(sw.jit(program)(x), want, strict=True):
        off = np.abs(have.astype(np.float64) - expected).max() / np.abs(expected).max()
        assert off < 50 * np.finfo(dtype).eps
