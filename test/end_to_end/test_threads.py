"""Results do not depend, by a single bit, on how many threads compute them, or call at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension
from stepwell.testing.opencl import TARGETS

RANDOM = np.random.default_rng(5)
THREADS = (1, 2, 3, 7)


@pytest.fixture
def set_threads() -> Generator[Callable[[int], None]]:
    """Give a function that says how many threads programs may use."""
    extension = load_extension()
    if extension is None:
        pytest.skip("no extension")
    yield extension.set_threads
    extension.set_threads(thread_count())


def array(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def chains(a: Any, b: Any, c: Any) -> Any:
    x, y, z = a, c, b
    for _ in range(4):
        x, y, z = snp.tanh(x @ b), snp.tanh(y @ b), snp.tanh(z @ b)
    return x + y, z, snp.sum(x * z)


def rnn(xs: Any, w: Any, u: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = snp.tanh(x @ u + h @ w)
        return h, h

    return sw.lax.scan(step, snp.zeros((w.shape[0],), dtype=snp.float32), xs)


def heat(u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        inner = 0.5 * (u[:-2] + u[2:])
        return snp.concat([u[:1], inner, u[-1:]], axis=0)

    return sw.lax.fori_loop(0, 9, step, u)


def reduced(x: Any) -> Any:
    return snp.sum(x), snp.max(x, axis=0), sw.nn.softmax(x, axis=1), snp.sum(x * x, axis=1)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "chains": (chains, [array(n, n) for n in (67, 67, 67)]),
    "small chains": (chains, [array(n, n) for n in (48, 48, 48)]),
    "product": (lambda x, w: snp.maximum(x @ w, 0.0), [array(301, 517), array(517, 263)]),
    "few rows": (lambda x, w: x @ w, [array(3, 1025), array(1025, 777)]),
    "vector": (lambda x, w: x @ w, [array(1025), array(1025, 777)]),
    "rnn": (rnn, [array(20, 61), array(257, 257), array(61, 257)]),
    "heat": (heat, [array(517, 301)]),
    "reduced": (reduced, [array(1031, 517)]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_number_of_threads(name: str, set_threads: Callable[[int], None]) -> None:
    function, inputs = PROGRAMS[name]
    run = sw.jit(function)
    found: list[list[bytes]] = []
    for threads in THREADS:
        set_threads(threads)
        for _ in range(3):
            result = run(*inputs)
            leaves = result if isinstance(result, tuple) else (result,)
            found.append([np.asarray(leaf).tobytes() for leaf in leaves])
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("n", [1, 31, 48, 67, 100])
def test_branches_compute_what_they_should(n: int) -> None:
    a, b, c = (array(n, n) * np.float32(n**-0.5) for _ in range(3))
    x, y, z = (v.astype(np.float64) for v in (a, c, b))
    for _ in range(4):
        x, y, z = np.tanh(x @ b), np.tanh(y @ b), np.tanh(z @ b)
    for _ in range(3):
        got = sw.jit(chains)(a, b, c)
        for g, want in zip(got, (x + y, z, np.sum(x * z)), strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-4)


@pytest.mark.machine("halved")
def test_small_chains_are_branches() -> None:
    function, inputs = PROGRAMS["small chains"]
    run = sw.jit(function)
    assert "kernel.concurrent" in str(run.trace(*inputs).lower("buffers"))


SCRATCH = """
func.func @main(%x: tensor<?x40xf32>) -> (tensor<?x40xf32>, tensor<40xf32>) {
  %t = nd.transpose %x {permutation = [1, 0]} : tensor<?x40xf32> -> tensor<40x?xf32>
  %g = nd.matmul %t, %x : (tensor<40x?xf32>, tensor<?x40xf32>) -> tensor<40x40xf32>
  %e = nd.tanh %g : tensor<40x40xf32>
  %h = nd.matmul %x, %e : (tensor<?x40xf32>, tensor<40x40xf32>) -> tensor<?x40xf32>
  %k = nd.matmul %h, %e : (tensor<?x40xf32>, tensor<40x40xf32>) -> tensor<?x40xf32>
  %s = nd.reduce_sum %k {axes = [0]} : tensor<?x40xf32> -> tensor<40xf32>
  func.return %k, %s : tensor<?x40xf32>, tensor<40xf32>
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_one_program_called_by_many_threads(target: str) -> None:
    """Its scratch memory serves one call at a time, and grows while others run."""
    program = sw.compile(SCRATCH, target=target)
    sizes = (1, 7, 64, 900, 3000) if target == "c" else (1, 7, 64)
    inputs = [array(n, 40) * np.float32(0.1) for n in sizes for _ in range(2)]
    wants = [[np.copy(r) for r in program(x)] for x in inputs]
    fresh = sw.compile(SCRATCH, target=target)  # another object: its arena has no room yet
    start = threading.Barrier(8)
    wrong: list[int] = []

    def work(seed: int) -> None:
        start.wait(60)
        order = np.random.default_rng(seed).integers(0, len(inputs), 40 if target == "c" else 8)
        held = [(k, (program if k % 2 else fresh)(inputs[k])) for k in order]
        for k, results in held:
            for got, want in zip(results, wants[k], strict=True):
                if got.tobytes() != want.tobytes():
                    wrong.append(int(k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
