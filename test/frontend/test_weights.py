"""Arrays that a function closes over."""

from __future__ import annotations

from collections.abc import Generator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.weights import MIN_SHARED_BYTES, kept
from stepwell.runtime import program
from stepwell.runtime.cache import disk_cache
from stepwell.runtime.extension import load_extension
from stepwell.runtime.weights import settle


@pytest.mark.parametrize("elements", [17, MIN_SHARED_BYTES // 4 + 3])
def test_a_weight_is_what_it_was_when_it_was_used(elements: int) -> None:
    x = np.arange(elements, dtype=np.float32)
    hidden = repeat(np.ones(elements, np.float32))  # where no guard looks
    w = next(hidden)

    def twice(x: Any) -> Any:
        w = next(hidden)
        y = x * w
        w[:] = 5
        return y + w

    f = sw.jit(twice)
    assert_array_equal(f(x), x + 5)
    w[:] = 7
    assert_array_equal(f(x), x + 5)


def test_what_nobody_can_change_is_not_copied() -> None:
    w = np.ones(MIN_SHARED_BYTES, np.float32)
    w.flags.writeable = False
    assert kept(w) is w


@pytest.mark.parametrize("size", [0, 17, MIN_SHARED_BYTES + 1])
def test_a_copy_has_all_bytes(size: int) -> None:
    w = np.random.default_rng(0).integers(0, 255, size, np.uint8)
    assert_array_equal(kept(w), w)
    assert not np.shares_memory(kept(w), w)


def test_one_array_is_one_weight_wherever_it_is_used() -> None:
    w = np.arange(20, dtype=np.float32)

    def f(x: Any) -> Any:
        return sw.lax.cond(snp.sum(x) > 0, lambda y: y * w, lambda y: y - w, x + w.copy())

    traced = sw.jit(f).trace(w)
    assert list(traced.module.resources) == ["weight_0"]


def test_other_weights_need_no_other_program() -> None:
    texts: set[str] = set()
    for value in (1, 2):
        w = np.full(20, value, np.float32)

        def f(x: Any, w: Any = w) -> Any:
            return x + w

        texts.add(sw.jit(f).trace(w, w).module.text)
    assert len(texts) == 1


class Large:
    """A product with nine megabytes of weights, made anew as in another process."""

    def __init__(self, value: float = 1.0) -> None:
        self.w = np.full((1500, 1500), value, np.float32)
        self.x = np.ones((64, 1500), np.float32)

    def call(self, scaled: float = 0.0, changes: bool = False) -> Any:
        """Call the product in a function jitted anew."""

        weights = repeat(self.w)  # where no guard looks: they are constants

        def f(x: Any) -> Any:
            w = next(weights)
            y = x @ w
            if changes:
                w[:] = 0
            return y * scaled if scaled else y

        y = sw.jit(f)(self.x)
        settle()
        return y


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[list[int]]:
    """An empty cache, and one element for each time that weights were packed anew."""
    times: list[int] = []
    true: Any = program._constants  # pyright: ignore[reportPrivateUsage]

    def counted(*args: Any) -> Any:
        times.append(1)
        return true(*args)

    monkeypatch.setattr(program, "_constants", counted)
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path))
    assert load_extension() is not None
    disk_cache.cache_clear()
    yield times
    disk_cache.cache_clear()


def test_weights_are_packed_once(made: list[int]) -> None:
    for _ in range(3):
        assert_array_equal(Large().call(), 1500)
    assert len(made) == 1


def test_weights_that_change_are_kept_when_they_come_again(made: list[int]) -> None:
    for value in (1, 2, 3, 2, 2, 1):
        assert_array_equal(Large(value).call(), 1500 * value)
    assert len(made) == 4  # 1 as it was compiled, 2 and 3 as they came first, 2 again


@pytest.mark.parametrize("harm", ["changed", "cut short", "gone"])
def test_damaged_weights_are_packed_again(made: list[int], harm: str) -> None:
    Large().call()
    (file,) = disk_cache().root.glob("weights/*/constants.bin")
    with file.open("r+b") as opened:
        if harm == "cut short":
            opened.truncate(1000)
        opened.seek(5_000_001)
        opened.write(b"x" if harm == "changed" else b"")
    if harm == "gone":
        file.unlink()
    for _ in range(2):
        assert_array_equal(Large().call(), 1500)
    assert len(made) == 2


def test_weights_changed_in_a_trace_are_what_they_were(made: list[int]) -> None:
    for _ in range(3):
        large = Large()
        assert_array_equal(large.call(changes=True), 1500)
        assert not large.w.any()
    assert len(made) == 1


def test_weights_changed_after_a_call_are_what_they_were() -> None:
    large = Large()
    weights = sw.freeze(large.w)
    f: Any = sw.jit(lambda x: x @ weights)
    f(large.x)
    large.w[:] = 0
    assert_array_equal(f(large.x), 1500)


def test_a_changed_function_takes_weights_as_they_are(made: list[int]) -> None:
    Large().call()
    assert_array_equal(Large().call(scaled=2), 3000)
    with pytest.raises(sw.CompileError, match="'weight_0' was changed while a function"):
        Large().call(scaled=3, changes=True)
    assert_array_equal(Large().call(scaled=3, changes=True), 4500)
    assert len(made) == 3


def test_weights_of_a_module_are_packed_once(made: list[int]) -> None:
    text = """
    func.func @main(%x: tensor<64x1500xf32>) -> tensor<64x1500xf32> {
      %w = nd.constant #nd.resource<"w", ""> : tensor<1500x1500xf32>
      %y = nd.matmul %x, %w : (tensor<64x1500xf32>, tensor<1500x1500xf32>) -> tensor<64x1500xf32>
      func.return %y : tensor<64x1500xf32>
    }
    """
    for _ in range(3):
        large = Large()
        compiled = sw.compile(text, resources={"w": large.w})
        large.w[:] = 0
        assert_array_equal(compiled(large.x), 1500)
        settle()
    assert len(made) == 1


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 3), (0,), (3, 0)])
@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "uint64"])
def test_any_rank(shape: tuple[int, ...], kind: str) -> None:
    held = np.ones(shape, kind)
    got = sw.jit(lambda x: (snp.where(x, held, held), held))(np.ones(shape, "bool"))
    for y in got:
        assert y.shape == shape and y.dtype == held.dtype and (y == held).all()
