"""Depthwise convolutions and pooling of images as they come, rows last: any window, any border."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

import stepwell as sw
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter

assert upstream

RANDOM = np.random.default_rng(28)
NAMES = {"f64": "f8", "f32": "f4", "f16": "f2", "i8": "i1", "i32": "i4"}
CLOSE = {"f64": 1e-13, "f32": 1e-5, "f16": 5e-3}


def _reference(text: str, arrays: list[Any]) -> Any:
    context = Context()
    for name, load in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, load)
    module = Parser(context, text).parse_module()
    assert isinstance(module, ModuleOp)
    return Interpreter(module).call("main", [a.copy() for a in arrays])[0]


def _type(shape: tuple[int, ...], dtype: str, batch: bool) -> str:
    sizes = [str(n) if k or batch else "?" for k, n in enumerate(shape)]
    return f"tensor<{'x'.join([*sizes, dtype])}>"


def _numbers(shape: tuple[int, ...], dtype: str, wild: bool = False) -> Any:
    if dtype[0] == "i":
        return RANDOM.integers(-100, 100, shape).astype(NAMES[dtype])
    found = RANDOM.standard_normal(shape).astype(NAMES[dtype])
    if wild and found.size:
        flat = found.reshape(-1)
        places = RANDOM.integers(0, flat.size, 4)
        flat[places] = [np.inf, -np.inf, np.nan, -0.0]
    return found


def _size(size: int, window: int, stride: int, apart: int, low: int, high: int) -> int:
    return (size + low + high - (window - 1) * apart - 1) // stride + 1


def _compare(text: str, arrays: list[Any], dtype: str) -> str:
    """Compile and compare with the nd floor; return the C text."""
    want = _reference(text, arrays)
    program = sw.compile(text)
    got = program(*arrays)
    if dtype[0] == "i":
        np.testing.assert_array_equal(got, want)
    else:
        largest = np.abs(want[np.isfinite(want)]).max(initial=1)
        np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE[dtype] * float(largest))
    return program.source


def _depthwise(
    size: tuple[int, int, int, int],
    window: tuple[int, int],
    how: dict[str, tuple[int, int]],
    dtype: str = "f32",
    batch: bool = True,
    wild: bool = False,
) -> str:
    n, c, *spatial = size
    one = {"strides": (1, 1), "rhs_dilation": (1, 1), "low": (0, 0), "high": (0, 0)} | how
    steps = zip(spatial, window, *(one[k] for k in one), strict=True)
    out = tuple(_size(*each) for each in steps)
    wide = "i32" if dtype == "i8" else dtype
    x, w = _type(size, dtype, batch), _type((c, 1, *window), dtype, True)
    y = _type((n, c, *out), wide, batch)
    lists = ", ".join(f"{k} = {list(v)}" for k, v in how.items())
    told = f", dtype = {wide}" if wide != dtype else ""
    text = f"""
    func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %h = nd.convolution %x, %w {{groups = {c}{", " * bool(lists)}{lists}{told}}} : ({x}, {w}) -> {y}
      %y = nd.relu %h : {y}
      func.return %y : {y}
    }}
    """
    arrays = [_numbers(size, dtype, wild), _numbers((c, 1, *window), dtype)]
    return _compare(text, arrays, wide)


def _pool(
    kind: str,
    size: tuple[int, int, int, int],
    window: tuple[int, int],
    how: dict[str, tuple[int, int]],
    batch: bool = True,
) -> None:
    n, c, *spatial = size
    one = {"strides": (1, 1), "apart": (1, 1), "low": (0, 0), "high": (0, 0)} | how
    steps = zip(spatial, window, *(one[k] for k in one), strict=True)
    y = _type((n, c, *(_size(*each) for each in steps)), "f32", batch)
    x = _type(size, "f32", batch)
    lists = "".join(f", {k} = {list(v)}" for k, v in how.items())
    text = f"""
    func.func @main(%x: {x}) -> {y} {{
      %y = nd.{kind}_pool %x {{window = {list(window)}{lists}}} : {x} -> {y}
      func.return %y : {y}
    }}
    """
    _compare(text, [_numbers(size, "f32", wild=True)], "f32")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("window", [(1, 1), (2, 3), (3, 3), (5, 5), (7, 7), (1, 7), (4, 2)])
def test_depthwise_windows(window: tuple[int, int]) -> None:
    for columns in (28, 17, 40) if math.prod(window) < 25 else (17,):
        text = _depthwise((1, 5, 15, columns), window, {"low": (1, 1), "high": (1, 0)})
        assert "#pragma GCC unroll" in text or window == (1, 1)


@pytest.mark.parametrize(
    "how",
    [
        {"strides": (2, 2), "low": (1, 1), "high": (1, 1)},
        {"strides": (1, 3)},
        {"rhs_dilation": (2, 3), "low": (2, 3), "high": (2, 3)},
        {"low": (0, 2), "high": (2, 0)},
    ],
)
def test_strides_dilations_and_borders(how: dict[str, tuple[int, int]]) -> None:
    _depthwise((8, 9, 11, 29), (3, 3), how)
    _depthwise((2, 3, 23, 70), (3, 2), how)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8", "i32"])
def test_dtypes(dtype: str) -> None:
    how = {"low": (1, 1), "high": (1, 1)}
    _depthwise((1, 7, 12, 35), (3, 3), how, dtype)
    _depthwise((2, 33, 6, 35), (3, 3), how, dtype)  # enough planes to read beyond the edges


def test_a_batch_known_only_when_it_runs() -> None:
    for n in (0, 1, 3):
        how = {"low": (1, 1), "high": (1, 1)}
        _depthwise((n, 40, 28, 28), (3, 3), how, batch=False)
        _pool("max", (n, 3, 19, 21), (3, 3), how | {"strides": (1, 1)}, batch=False)


def test_what_is_not_finite_stays_where_it_is() -> None:
    """A border adds nothing: no infinity times zero but where a filter says so."""
    for _ in range(3):
        _depthwise((1, 64, 9, 28), (3, 3), {"low": (1, 1), "high": (1, 1)}, wild=True)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling(kind: str) -> None:
    for size, window, stride in [
        ((1, 8, 56, 56), (3, 3), 1),
        ((2, 3, 31, 33), (3, 3), 2),
        ((4, 16, 9, 19), (3, 3), 1),
        ((1, 5, 20, 50), (2, 2), 2),
        ((1, 2, 17, 90), (2, 5), 1),
    ]:
        _pools(kind, size, window, stride)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_of_large_windows(kind: str) -> None:
    """Written out, for which the C compiler takes seconds."""
    _pools(kind, (1, 2, 17, 90), (5, 7), 1)


def _pools(kind: str, size: tuple[int, int, int, int], window: tuple[int, int], step: int) -> None:
    border = {"low": (1, 1), "high": (1, 1), "strides": (step, step)}
    _pool(kind, size, window, border)
    if kind == "max":
        _pool(kind, size, window, {"strides": (step, 1)})


def test_random_shapes() -> None:
    for _ in range(4):
        window = RANDOM.integers(1, 8, 2)
        apart, stride = RANDOM.integers(1, 3, 2), RANDOM.integers(1, 4, 2)
        low, high = RANDOM.integers(0, 4, 2), RANDOM.integers(0, 4, 2)
        spatial = (window - 1) * apart + 1 + RANDOM.integers(0, (20, 60))
        n, c = int(RANDOM.integers(1, 9)), int(RANDOM.integers(1, 20))
        lists: dict[str, Any] = {"strides": stride, "rhs_dilation": apart, "low": low, "high": high}
        numbers: Any = {name: tuple(map(int, of)) for name, of in lists.items()}
        size = (n, c, int(spatial[0]), int(spatial[1]))
        _depthwise(size, (int(window[0]), int(window[1])), numbers)
