"""Gradients of products and convolutions of every form, in float64 against what they are made of.

Both are linear in each operand, so `<dx, e> = <g, f(e, w)>` for any e is exact but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from reading import parsed

from stepwell.core.diagnostics import CompileError
from stepwell.core.shapes import contraction as shapes
from stepwell.dialects.interpreter import Interpreter

Sizes = Sequence[int]


def _tensor(sizes: Sizes, kind: str = "f64", unknown: Sequence[int] = ()) -> str:
    shown = ("?" if axis in unknown else str(n) for axis, n in enumerate(sizes))
    return f"tensor<{''.join(f'{n}x' for n in shown)}{kind}>"


def _programs(op: str, x: str, w: str, y: str, g: str) -> str:
    """Return the op, and its gradient with respect to both operands."""
    return f"""
    func.func @f(%x: {x}, %w: {w}) -> {y} {{
      %y = {op} : ({x}, {w}) -> {y}
      func.return %y : {y}
    }}
    func.func @gradient(%a: {x}, %b: {w}, %g: {g}) -> ({x}, {w}) {{
      %y, %dx, %dw = nd.vjp (%x = %a, %w = %b) cotangents(%g : {g}) {{wrt = [0, 1], of = [0]}} : ({x}, {w}) -> ({y}, {x}, {w}) {{
        %y = {op} : ({x}, {w}) -> {y}
        nd.yield %y : {y}
      }}
      func.return %dx, %dw : {x}, {w}
    }}
    """


def _agrees(text: str, x: Sizes, w: Sizes, seed: int) -> None:
    random = np.random.default_rng(seed)
    run = Interpreter(parsed(text)[1]).call
    x0, e, w0, f = (random.standard_normal(sizes) for sizes in (x, x, w, w))
    (y,) = run("f", [x0, w0])
    g = random.standard_normal(np.shape(y))
    dx, dw = run("gradient", [x0, w0, g])
    assert np.shape(dx) == tuple(x)
    assert np.shape(dw) == tuple(w)
    np.testing.assert_allclose(_dot(dx, e), _dot(g, run("f", [e, w0])[0]), atol=1e-9)
    np.testing.assert_allclose(_dot(dw, f), _dot(g, run("f", [x0, f])[0]), atol=1e-9)


def _dot(a: Any, b: Any) -> float:
    return float(np.sum(np.asarray(a) * np.asarray(b)))


def _shuffled(random: np.random.Generator, sizes: Sizes) -> tuple[list[int], list[int]]:
    """Return a layout, and the sizes in it."""
    layout = [int(a) for a in random.permutation(len(sizes))]
    laid = [0] * len(sizes)
    for axis, n in zip(layout, sizes, strict=True):
        laid[axis] = n
    return layout, laid


@pytest.mark.parametrize("seed", range(36))
def test_convolutions(seed: int) -> None:
    random = np.random.default_rng(seed)

    def draw(low: int, high: int, count: int) -> list[int]:
        return [int(n) for n in random.integers(low, high, count)]

    rank = seed % 3
    groups = 1 if seed % 2 else int(random.integers(1, 4))
    parts = groups if seed % 4 == 2 else 1  # groups of images, not of features
    groups //= parts
    n, inputs, outputs = draw(1, 4, 3)
    size, image = draw(1, 4, rank), draw(1, 9, rank)
    how = {
        "strides": draw(1, 4, rank),
        "low": draw(0, 5, rank),
        "high": draw(0, 5, rank),
        "lhs_dilation": draw(1, 3, rank),
        "rhs_dilation": draw(1, 3, rank),
    }
    window = shapes.Window(tuple(size), *map(tuple, how.values()))
    features = parts * groups * outputs
    x_layout, x = _shuffled(random, [parts * n, groups * inputs, *image])
    w_layout, w = _shuffled(random, [features, inputs, *size])
    y_layout, y = _shuffled(random, [n, features, *window.output(tuple(image))])
    fields = how | {"x_layout": x_layout, "w_layout": w_layout, "y_layout": y_layout}
    spelled = ", ".join(f"{k} = {v}" for k, v in fields.items()) + f", groups = {groups}"
    spelled += f", batch_groups = {parts}"
    known = [_tensor(sizes) for sizes in (x, w, y, y)]
    op = f"nd.convolution %x, %w {{{spelled}}}"
    _agrees(_programs(op, *known), x, w, seed)
    if 0 not in y and parts == 1:  # sizes that only a call tells: batch, image, features
        of_x = [x_layout[0], *x_layout[2:]]
        of_y = [y_layout[0], *([y_layout[1]] if groups == 1 else []), *y_layout[2:]]
        unknown = [
            _tensor(x, unknown=of_x),
            _tensor(w, unknown=w_layout[:1] if groups == 1 else []),
            _tensor(y, unknown=of_y),
            _tensor(y, unknown=of_y),
        ]
        _agrees(_programs(op, *unknown), x, w, seed)


@pytest.mark.parametrize("seed", range(12))
def test_windows_of_unknown_size(seed: int) -> None:
    random = np.random.default_rng(seed)
    rank, groups = 1 + seed % 2, 1 + seed % 3
    steps, holes = (tuple(int(n) for n in random.integers(1, 4, rank)) for _ in range(2))
    low, high = (tuple(int(n) for n in random.integers(0, 5, rank)) for _ in range(2))
    size, image = ([int(n) for n in random.integers(*of, rank)] for of in ((1, 4), (7, 10)))
    ones = (1,) * rank
    window = shapes.Window(tuple(size), steps, low, high, ones, holes)
    x_layout, x = _shuffled(random, [2, 2 * groups, *image])
    w_layout, w = _shuffled(random, [3 * groups, 2, *size])
    y_layout, y = _shuffled(random, [2, 3 * groups, *window.output(tuple(image))])
    how = {"strides": steps, "low": low, "high": high, "rhs_dilation": holes}
    how = {name: list(numbers) for name, numbers in how.items()}
    how |= {"x_layout": x_layout, "w_layout": w_layout, "y_layout": y_layout}
    spelled = ", ".join(f"{k} = {v}" for k, v in how.items()) + f", groups = {groups}"
    of_y = y_layout[2:]
    types = [
        _tensor(x, unknown=x_layout[2 : 2 + seed % 4 // 2]),
        _tensor(w, unknown=w_layout[2:]),
        _tensor(y, unknown=of_y),
        _tensor(y, unknown=of_y),
    ]
    _agrees(_programs(f"nd.convolution %x, %w {{{spelled}}}", *types), x, w, seed)


@pytest.mark.parametrize("seed", range(24))
def test_products(seed: int) -> None:
    random = np.random.default_rng(seed)
    batch, left, right, summed = (
        [int(n) for n in random.integers(1, 4, random.integers(0, 3))] for _ in range(4)
    )
    x_layout, x = _shuffled(random, [*batch, *left, *summed])
    w_layout, w = _shuffled(random, [*batch, *right, *summed])
    many = len(batch)
    pairs = [x_layout[:many], w_layout[:many]]
    sums = [x_layout[many + len(left) :], w_layout[many + len(right) :]]
    free = [
        [laid[a] for a in shapes.free_axes(len(laid), pairs[k], sums[k])]
        for k, laid in enumerate((x, w))
    ]
    y = [*batch, *free[0], *free[1]]
    spelled = f"batch {pairs[0]} x {pairs[1]} contract {sums[0]} x {sums[1]}"
    op = f"nd.dot_general %x, %w {spelled}".replace("batch [] x []", "")
    op = op.replace("contract [] x []", "")
    _agrees(_programs(op, *(_tensor(sizes) for sizes in (x, w, y, y))), x, w, seed)


def test_matmul_of_rows_and_batches() -> None:
    for x, w, y in (
        ((3,), (3, 4), (4,)),
        ((2, 3), (3,), (2,)),
        ((2, 3), (5, 3, 4), (5, 2, 4)),
        ((5, 2, 3), (3, 4), (5, 2, 4)),
    ):
        types = [_tensor(sizes) for sizes in (x, w, y, y)]
        _agrees(_programs("nd.matmul %x, %w", *types), x, w, 1)


def test_narrow_floats_are_summed_in_f32() -> None:
    """Of 4096 products a sum kept in f16 would stop growing at 2048."""
    op = "nd.dot_general %x, %w contract [0] x [0] {dtype = f32}"
    types = [_tensor((4096, 1), "f16"), _tensor((4096, 2), "f16"), *[_tensor((1, 2), "f32")] * 2]
    run = Interpreter(parsed(_programs(op, *types))[1]).call
    x, w = np.ones((4096, 1), np.float16), np.full((4096, 2), 0.5, np.float16)
    dx, dw = run("gradient", [x, w, np.ones((1, 2), np.float32)])
    assert (dx.dtype, dw.dtype) == (np.float16, np.float16)
    assert (np.asarray(dx) == 1).all()
    assert (np.asarray(dw) == 1).all()
    same = (
        "nd.convolution %x, %w {x_layout = [1, 0, 2], w_layout = [1, 0, 2], y_layout = [1, 0, 2]}"
    )
    types = [
        _tensor((1, 1, 4096), "f16"),
        _tensor((1, 1, 1), "f16"),
        *[_tensor((1, 1, 4096), "f16")] * 2,
    ]
    run = Interpreter(parsed(_programs(same, *types))[1]).call
    ones = np.ones((1, 1, 4096), np.float16)
    _, dw = run("gradient", [ones, np.ones((1, 1, 1), np.float16), ones])
    assert np.asarray(dw).reshape(()) == 4096


def test_what_cannot_be_known_is_refused() -> None:
    x, w = _tensor((2, 4, 9)), _tensor((4, 2, 3), unknown=[0])
    y = _tensor((2, 4, 7), unknown=[1])
    grouped = _programs("nd.convolution %x, %w {groups = 2}", x, w, y, y)
    with pytest.raises(CompileError, match="features must be known"):
        Interpreter(parsed(grouped)[1]).call(
            "gradient", [np.ones((2, 4, 9)), np.ones((4, 2, 3)), np.ones((2, 4, 7))]
        )
    x, w, y = _tensor((2, 4, 9)), _tensor((4, 4, 3), unknown=[2]), _tensor((2, 4, 15), unknown=[2])
    window = _programs("nd.convolution %x, %w {lhs_dilation = [2]}", x, w, y, y)
    with pytest.raises(CompileError, match="a window of known size"):
        Interpreter(parsed(window)[1]).call(
            "gradient", [np.ones((2, 4, 9)), np.ones((4, 4, 3)), np.ones((2, 4, 15))]
        )
