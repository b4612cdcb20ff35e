"""Rows whose first loop runs ahead give what they give one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nestings import has

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension

pytestmark = pytest.mark.machine("halved")

RANDOM = np.random.default_rng(23)


def _logsumexp(x: Any) -> Any:
    top = snp.max(x, axis=-1, keepdims=True)
    return snp.log(snp.sum(snp.exp(x - top), axis=-1)) + snp.squeeze(top, axis=-1)


def _root_mean_square(x: Any) -> Any:
    return sw.nn.rms_norm(x, snp.ones(x.shape[-1:]), eps=1e-5)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: sw.nn.softmax(x),
    "log_softmax": lambda x: sw.nn.log_softmax(x),
    "logsumexp": _logsumexp,
    "layer_norm": lambda x: sw.nn.layer_norm(x),
    "root_mean_square": _root_mean_square,
}
SHAPES = [
    *((name, shape) for name in PROGRAMS for shape in [(256, 64), (1031, 97), (300, 1000)]),
    *(("softmax", shape) for shape in [(257, 512), (4, 3, 65, 128), (2000, 1021), (700, 130)]),
]


def exact(name: str, x: Any) -> Any:
    """Return what NumPy gives in f64."""
    x = x.astype(np.float64)
    top = x.max(-1, keepdims=True)
    total = np.exp(x - top).sum(-1, keepdims=True)
    match name:
        case "softmax":
            return np.exp(x - top) / total
        case "log_softmax":
            return x - top - np.log(total)
        case "logsumexp":
            return (top + np.log(total))[..., 0]
        case "layer_norm":
            x = x - x.mean(-1, keepdims=True)
        case _:
            pass
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "shape"), SHAPES)
def test_ahead_or_not(name: str, shape: tuple[int, ...]) -> None:
    x = RANDOM.standard_normal(shape).astype(np.float32)
    compiled = sw.jit(PROGRAMS[name]).trace(x).compile()
    np.testing.assert_allclose(compiled(x), exact(name, x), rtol=2e-5, atol=2e-6)
    text = compiled.texts()["kernels"]
    one_by_one, found = re.subn(r", pipeline \d+| \{pipeline \d+\}", "", text)
    assert found == 1
    entry = re.findall(r"func\.func @(\w+)\(", one_by_one)[-1]
    x[..., 2, 3] = np.nan
    x[..., 3, :] = -np.inf
    x[..., -1, :5] = np.inf
    got, want = compiled(x), sw.compile(one_by_one, entry)(x)
    if "norm" in name or "root" in name:  # the C compiler fuses other products and sums
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 19])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_as_written_by_hand(rows: int, dtype: str) -> None:
    """However many rows a run has, and where only the run knows how many there are."""
    x = RANDOM.standard_normal((37, 83)).astype(dtype)
    for text in ("tensor<37x83xT>", "tensor<?x83xT>", "tensor<?x?xT>"):
        kind = text.replace("T", "f" + dtype[5:])
        program = f"""func.func @main(%x: {kind}) -> {kind} {{
          %y = nd.softmax %x {{axis = 1}} : {kind}
          func.return %y : {kind} }}"""
        scheduled = sw.compile(program).texts()["kernels"]
        outer = re.compile(r"\[(parallel|for) d0( \{[^}]*\})?\]")
        assert outer.search(scheduled)
        scheduled = outer.sub("[for d0]", scheduled.replace(" mask,", ",").replace(" mask]", "]"))
        ahead = sw.compile(outer.sub(f"[parallel d0 {{pipeline {rows}}}]", scheduled))
        np.testing.assert_array_equal(ahead(x), sw.compile(scheduled)(x))


def test_any_number_of_threads_gives_the_same() -> None:
    extension = load_extension()
    if extension is None:
        pytest.skip("no extension")
    x = RANDOM.standard_normal((1031, 200)).astype(np.float32)
    compiled, found = sw.jit(PROGRAMS["softmax"]).trace(x).compile(), set[bytes]()
    assert has(compiled.texts()["kernels"], "pipeline_rows")
    for threads in (1, 2, 3):
        extension.set_threads(threads)
        found.add(compiled(x).tobytes())
    extension.set_threads(thread_count())
    assert len(found) == 1


def test_where_it_does_not_pay() -> None:
    long = [("softmax", (512, 2048)), ("logsumexp", (512, 4096))]
    for name, shape in [("softmax", (64, 512)), ("softmax", (512, 32)), *long]:
        compiled = sw.jit(PROGRAMS[name]).trace(np.zeros(shape, np.float32)).compile()
        assert not has(compiled.texts()["kernels"], "pipeline_rows")
