"""Attention backward by blocks: as all at once, in little memory. Blocks are small here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.layers import attention_blocks

Array = Any
RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape)


def inputs(batch: int, queries: int, keys: int, heads: int, of_keys: int) -> list[Array]:
    """Return queries, keys and values of size 3."""
    shapes = (batch, queries, heads, 3), *[(batch, keys, of_keys, 3)] * 2
    return [normal(*shape) for shape in shapes]


def mask(*shape: int) -> Array:
    return RANDOM.random(shape) < 0.7


def small_blocks(patch: pytest.MonkeyPatch) -> None:
    for name, value in {"SCORES": 40, "QUERIES": 4, "LINE": 2}.items():
        patch.setattr(attention_blocks, name, value)


def both(make: Callable[[], Any], patch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return what ``make`` returns where nothing is cut in blocks, and where all is."""
    whole = make()
    small_blocks(patch)
    return whole, make()


CASES: dict[str, tuple[tuple[int, int, int, int, int], dict[str, Any]]] = {
    "overlapping queries": ((2, 11, 9, 2, 2), {}),
    "causal": ((2, 11, 11, 2, 2), {"is_causal": True}),
    "window": ((2, 8, 11, 2, 2), {"local_window_size": (2, 1)}),
    "lengths": (
        (3, 11, 9, 2, 2),
        {"query_seq_lengths": np.array([3, 11, 0]), "key_value_seq_lengths": np.array([9, 2, 5])},
    ),
    "groups, a mask": ((2, 11, 9, 4, 2), {"mask": mask(2, 4, 11, 9), "return_residual": True}),
    "bias, mask of keys": (
        (2, 11, 9, 2, 2),
        {"bias": normal(2, 2, 11, 9), "mask": mask(2, 1, 1, 9)},
    ),
    "bias of heads, scale": ((2, 11, 9, 4, 2), {"bias": normal(1, 4, 11, 9), "scale": 0.3}),
    "examples, bias of keys": ((6, 3, 3, 2, 2), {"bias": normal(1, 1, 1, 3)}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, options = CASES[name]
    q, k, v = inputs(*sizes)
    given = {key: options[key] for key in ("bias", "scale") if key in options}
    others = {key: value for key, value in options.items() if key not in given}
    weights = normal(*q.shape)

    def loss(q: Array, k: Array, v: Array, given: dict[str, Array]) -> Array:
        found = sw.nn.dot_product_attention(q, k, v, **given, **others)
        if isinstance(found, tuple):
            return snp.sum(found[0] * weights) + snp.sum(snp.sin(found[1]))
        return snp.sum(found * weights)

    def gradients() -> tuple[Any, str]:
        step = sw.jit(sw.grad(loss, (0, 1, 2, 3)))
        return step(q, k, v, given), str(step.trace(q, k, v, given))

    (want, plain), (got, blocked) = both(gradients, monkeypatch)
    assert "nd.scan" not in plain and "nd.scan" in blocked
    for a, b in zip(sw.tree.leaves(want), sw.tree.leaves(got), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def test_every_kind_of_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = values = inputs(2, 11, 9, 2, 2)
    along = [normal(*x.shape) for x in values]

    def loss(q: Array, k: Array, v: Array) -> Array:
        return snp.sum(snp.cos(sw.nn.dot_product_attention(q, k, v)))

    slopes = sw.grad(loss, (0, 1, 2))

    def derivatives() -> Any:
        @sw.jit
        def all_of(q: Array, k: Array, v: Array) -> Any:
            return (
                sw.jvp(loss, (q, k, v), along)[1],
                sw.jvp(slopes, (q, k, v), along)[1],
                sw.grad(lambda q: sum(snp.sum(snp.sin(x)) for x in slopes(q, k, v)))(q),
                sw.vmap(slopes)(*(snp.stack([x, 2 * x]) for x in (q, k, v))),
            )

        return all_of(q, k, v)

    want, got = both(derivatives, monkeypatch)
    for a, b in zip(sw.tree.leaves(want), sw.tree.leaves(got), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-11)


def test_half_precision_is_added_up_in_single(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    values = [x.astype(np.float16) for x in inputs(1, 12, 9, 2, 2)]
    step = sw.jit(sw.grad(lambda q, k, v: snp.sum(sw.nn.dot_product_attention(q, k, v)), (1, 2)))
    assert all(x.dtype == np.float16 for x in step(*values))
    assert "tensor<1x9x2x3xf32>" in str(step.trace(*values))


def test_no_scores_of_a_layer_are_in_memory() -> None:
    q = np.zeros((4, 512, 8, 16), np.float32)
    step = sw.grad(lambda q, k, v: snp.sum(sw.nn.dot_product_attention(q, k, v)), (0, 1, 2))
    text = step.trace(q, q, q).lower("buffers").text
    found = re.search(r"kernel.arena_bytes = (\d+)", text)
    scores = 4 * 8 * 512 * 512 * 4
    assert found is not None and int(found[1]) < scores / 3
