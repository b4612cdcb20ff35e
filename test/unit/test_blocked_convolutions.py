"""Convolutions in blocks: channels last, any size, stride, dilation and padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nestings import has
from reading import parsed, same_in_loops

import stepwell as sw
from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(12)


def _buffer(shape: tuple[int, ...], known: bool) -> str:
    return f"memref<{''.join(f'{size}x' if known else '?x' for size in shape)}f32>"


def _kernel(
    sizes: tuple[int, ...], window: tuple[int, int], weights: str, schedule: str, known: bool
) -> tuple[str, list[Any]]:
    """Spell a convolution with stride 2 and dilation 3 as a kernel, and make its operands."""
    n, oh, ow, k, c = sizes
    r, s = window
    image = (n, 2 * oh + 3 * r, 2 * ow + 3 * s, c)
    loops = {"k": (k, "d3"), "r": (r, "d4"), "s": (s, "d5"), "c": (c, "d6")}
    loops |= {"K": (-(-k // 8), "d3 floordiv 8"), "m": (8, "d3 mod 8")}
    shapes = [image, tuple(loops[x][0] for x in weights), (n, oh, ow, k)]
    tx, tw, ty = (_buffer(shape, known or shape is shapes[1]) for shape in shapes)
    dims = "(d0, d1, d2, d3, d4, d5, d6)"
    at = ", ".join(loops[x][1] for x in weights)
    text = f"""
    kernel.func @k(%x: {tx}, %w: {tw}, %y: {ty}) attributes {{kernel.shared = 4, {schedule}}} {{
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%zero : f32) outs(%y : {ty})
      linalg.generic {{indexing_maps = [
          affine_map<{dims} -> (d0, d1 * 2 + d4 * 3, d2 * 2 + d5 * 3, d6)>,
          affine_map<{dims} -> ({at})>, affine_map<{dims} -> (d0, d1, d2, d3)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel",
                            "reduction", "reduction", "reduction"]}}
          ins(%x, %w : {tx}, {tw}) outs(%y : {ty})
          attrs = {{lanes = [3, 4, 1]}} {{
      ^bb0(%a: f32, %b: f32, %acc: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %acc, %p : f32
        linalg.yield %t : f32
      }}
      kernel.return
    }}
    """
    arrays = [RANDOM.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
    return text, arrays


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "schedule",
    [
        "tile = [2, 2], blocks = [4, 8, 4]",
        "tile = [3, 1], blocks = [2, 6, 8, 2], parallel = 3",
        "tile = [2, 1], blocks = [2, 4, 8, 2], parallel = 3, prefetch",
        "tile = [2, 1], blocks = [2, 4, 4, 2], pack_first",
        "tile = [4, 2], blocks = [2, 1, 4, 8, 100], parallel = 4",
    ],
)
@pytest.mark.parametrize("weights", ["kcrs", "kcsr", "rsck", "krsc", "Krscm"])
@pytest.mark.parametrize("known", [False, True])
def test_blocks_in_the_interpreter(schedule: str, weights: str, known: bool) -> None:
    for sizes, window in [
        ((1, 2, 7, 8, 3), (3, 2)),
        ((3, 3, 4, 11, 5), (1, 2)),
        ((2, 1, 1, 3, 1), (1, 1)),
        ((1, 3, 6, 4, 0), (2, 2)),
        ((0, 2, 5, 16, 4), (2, 1)),
    ]:
        text, arrays = _kernel(sizes, window, weights, schedule, known)
        lowered = same_in_loops(text, arrays)
        if weights == "Krscm" and ", 2], blocks" in schedule:
            assert "%packed" not in lowered


@pytest.mark.parametrize("known", [False, True])
def test_depthwise_in_the_interpreter(known: bool) -> None:
    """Both operands vary with the columns, whose number is none of whole vectors."""
    for rows, columns, r in [(9, 13, 3), (4, 8, 2), (3, 3, 1), (5, 22, 0)]:
        shapes = [(rows + 2, columns), (columns, r), (rows, columns)]
        tx, tw, ty = (_buffer(shape, known) for shape in shapes)
        text = f"""
        kernel.func @k(%x: {tx}, %w: {tw}, %y: {ty}) attributes {{
            kernel.shared = 2, tile = [4, 2], blocks = [8, 16, 4], parallel = 2}} {{
          %zero = arith.constant 0.0 : f32
          linalg.fill ins(%zero : f32) outs(%y : {ty})
          linalg.generic {{indexing_maps = [
              affine_map<(d0, d1, d2) -> (d0 + d2, d1)>,
              affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
              iterator_types = ["parallel", "parallel", "reduction"]}}
              ins(%x, %w : {tx}, {tw}) outs(%y : {ty})
              attrs = {{lanes = [1, 4, 1]}} {{
          ^bb0(%a: f32, %b: f32, %acc: f32):
            %p = arith.mulf %a, %b : f32
            %t = arith.addf %acc, %p : f32
            linalg.yield %t : f32
          }}
          kernel.return
        }}
        """
        arrays = [RANDOM.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
        same_in_loops(text, arrays)


PROGRAM = """
func.func @main(%x: tensor<{x}x{e}>, %w: tensor<{w}x{e}>, %b: tensor<{k}x{o}>, %z: tensor<{y}x{o}>)
    -> tensor<{y}x{o}> {{
  %h = nd.convolution %x, %w {{{how}}} : (tensor<{x}x{e}>, tensor<{w}x{e}>) -> tensor<{y}x{o}>
  %d = nd.dim %z {{axis = 0}} : tensor<{y}x{o}>
  %bb = nd.broadcast %b{sizes} {{dims = [{last}]}} : tensor<{k}x{o}> -> tensor<{y}x{o}>
  %a = nd.add %h, %bb : tensor<{y}x{o}>
  %s = nd.add %a, %z : tensor<{y}x{o}>
  %r = nd.relu %s : tensor<{y}x{o}>
  func.return %r : tensor<{y}x{o}>
}}
"""


NAMES = {"f64": "f8", "f32": "f4", "f16": "f2", "i8": "i1", "i32": "i4"}
PLAIN = {"strides": 1, "low": 0, "high": 0, "lhs_dilation": 1, "rhs_dilation": 1}


def _numbers(shape: tuple[int, ...], kind: str) -> Any:
    if kind[0] == "f":
        return RANDOM.standard_normal(shape).astype(NAMES[kind])
    return RANDOM.integers(-100, 100, shape).astype(NAMES[kind])


def _sizes_after(
    spatial: tuple[int, ...], window: tuple[int, ...], lists: dict[str, Any]
) -> list[int]:
    """Return the sizes of the result of a convolution."""
    get = {name: lists.get(name, (one,) * len(spatial)) for name, one in PLAIN.items()}
    return [
        ((size - 1) * up + 1 + low + high - (m - 1) * apart - 1) // stride + 1
        for size, m, up, low, high, apart, stride in zip(
            spatial,
            window,
            get["lhs_dilation"],
            get["low"],
            get["high"],
            get["rhs_dilation"],
            get["strides"],
            strict=True,
        )
    ]


def _check(
    image: tuple[int, ...],
    weights: tuple[int, ...],
    dtype: str = "f32",
    wide: str = "f32",
    batch: bool = True,
    groups: int = 1,
    machine: str = "",
    **lists: Any,
) -> str:
    """Compile a convolution of (n, spatial.., c) with (k, c, spatial..); compare with the nd floor."""
    rank = len(image)
    last = [0, rank - 1, *range(1, rank - 1)]
    fields = {k: list(v) for k, v in lists.items()} | {"x_layout": last, "y_layout": last}
    how = ", ".join(f"{k} = {v}" for k, v in fields.items()) + f", groups = {groups}"
    how += f", dtype = {wide}" if wide != dtype else ""
    n, k = image[0], weights[0]
    out = _sizes_after(image[1:-1], weights[2:], lists)
    first = str(n) if batch else "?"
    text = PROGRAM.format(
        x="x".join(map(str, (first, *image[1:]))),
        w="x".join(map(str, weights)),
        y="x".join(map(str, (first, *out, k))),
        k=k,
        e=dtype,
        o=wide,
        how=how,
        last=rank - 1,
        sizes="" if batch else ", sizes(%d)",
    )
    arrays = [_numbers(image, dtype), _numbers(weights, dtype)]
    arrays += [_numbers((k,), wide), _numbers((n, *out, k), wide)]
    program = sw.compile(text, machine=machine)
    _, module = parsed(text)
    (want,) = Interpreter(module).call("main", [a.copy() for a in arrays])
    got = program(*arrays)
    if wide[0] == "i":
        np.testing.assert_array_equal(got, want)
    else:
        close = {"f64": 1e-13, "f32": 1e-5, "f16": 5e-3}[wide] * float(np.abs(want).max(initial=1))
        np.testing.assert_allclose(got, want, rtol=0, atol=close)
    return kernels_for(text, machine)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "image, weights, lists",
    [
        ((1, 14, 14, 32), (64, 32, 3, 4), {"low": (1, 1), "high": (1, 2)}),
        ((2, 7, 7, 70), (33, 70, 3, 3), {"low": (1, 1), "high": (1, 1)}),
        ((1, 30, 29, 3), (40, 3, 7, 7), {"low": (3, 3), "high": (3, 3), "strides": (2, 2)}),
        ((1, 17, 23, 19), (50, 19, 3, 5), {"strides": (3, 1), "rhs_dilation": (1, 2)}),
        ((3, 9, 13, 21), (64, 21, 1, 1), {"strides": (2, 2)}),
        ((1, 8, 9, 16), (24, 16, 4, 3), {"lhs_dilation": (2, 2), "low": (2, 1), "high": (1, 2)}),
        ((2, 41, 23), (37, 23, 5), {"low": (2,), "high": (2,)}),
        ((1, 6, 7, 9, 13), (20, 13, 3, 2, 3), {"low": (1, 0, 1), "high": (1, 1, 1)}),
        ((1, 5, 5, 300), (32, 300, 3, 3), {"low": (1, 1), "high": (1, 1)}),
        ((1, 14, 15, 8), (8, 8, 3, 3), {"low": (1, 1), "high": (1, 1)}),
        ((2, 9, 20, 24), (13, 24, 3, 2), {}),
        ((1, 21, 19, 40), (5, 40, 1, 1), {}),
    ],
)
def test_blocks_chosen_by_the_compiler(
    image: tuple[int, ...], weights: tuple[int, ...], lists: dict[str, Any]
) -> None:
    assert has(_check(image, weights, **lists), "blocks")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [(14, 15, 48), (9, 31, 24), (8, 7, 37), (30, 14, 16), (6, 6, 4)])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise(size: tuple[int, int, int], stride: int) -> None:
    features = size[-1]
    how: Any = {"groups": features, "low": (1, 0), "high": (1, 1), "strides": (stride, 1)}
    text = _check((2, *size), (features, 1, 3, 3), **how)
    assert has(text, "tile") or features == 4  # in blocks or not, as the filters lie
    if features == 37:
        _check((1, *size), (37, 1, 2, 3), "f64", "f64", batch=False, **how)
        _check((1, *size), (37, 1, 3, 1), "i8", "i32", **how)


@pytest.mark.parametrize(
    "dtype, wide", [("f64", "f64"), ("f16", "f16"), ("i8", "i32"), ("i32", "i32")]
)
def test_dtypes(dtype: str, wide: str) -> None:
    sizes = (2, 9, 11, 18), (66, 18, 3, 3)
    assert has(_check(*sizes, dtype, wide, low=(1, 1), high=(1, 1)), "blocks")


def test_a_batch_known_only_when_it_runs() -> None:
    for n in (0, 1, 3):
        lists: Any = {"low": (1, 1), "high": (1, 1)}
        text = _check((n, 12, 10, 20), (48, 20, 3, 3), batch=False, **lists)
        assert has(text, "blocks")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("features", [8, 17, 24, 40, 56, 72])
def test_vectors_of_half_the_width(features: int) -> None:
    """Where the machine computes with so many lanes at once; the last may lie over others."""
    halves = "vector_bits=512,vector_registers=32,vector_unit=256"
    _check((2, 9, 13, 50), (features, 50, 3, 1), machine=halves, low=(1, 0), high=(1, 0))
    _check((1, 5, 12, 64), (features, 64, 1, 1), "f16", "f16", machine=halves)


def test_groups() -> None:
    for groups in (2, 4, 8):
        _check((1, 12, 13, 32), (48, 32 // groups, 3, 3), groups=groups, low=(1, 1), high=(1, 1))


def test_random_shapes() -> None:
    """And one of a place that is always the same, for which vectors go along the sum."""
    _check((1, 6, 2, 17), (2, 17, 3, 1), strides=(1, 3), low=(0, 0), high=(2, 0))
    for _ in range(6):
        window = RANDOM.integers(1, 4, 2)
        apart, stride = RANDOM.integers(1, 3, 2), RANDOM.integers(1, 4, 2)
        low, high = RANDOM.integers(0, 3, 2), RANDOM.integers(0, 3, 2)
        size = (window - 1) * apart + 1 + RANDOM.integers(0, 20, 2)
        n, c, k = (int(RANDOM.integers(1, most)) for most in (3, 40, 100))
        image = (n, int(size[0]), int(size[1]), c)
        weights = (k, c, int(window[0]), int(window[1]))
        lists: dict[str, Any] = {"strides": stride, "rhs_dilation": apart, "low": low, "high": high}
        numbers: Any = {name: tuple(map(int, of)) for name, of in lists.items()}
        _check(image, weights, **numbers)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("features", [4, 7, 12, 16, 50])
@pytest.mark.parametrize("window", [1, 3])
def test_written_in_another_order_than_summed(features: int, window: int) -> None:
    """Images with features last, through a convolution of images with features first."""
    y = f"tensor<1x{features}x{16 - window}x{22 - window}xf32>"
    z = f"tensor<1x{16 - window}x{22 - window}x{features}xf32>"
    text = f"""
    func.func @main(%x: tensor<1x15x21x24xf32>, %w: tensor<{features}x24x{window}x{window}xf32>,
        %b: tensor<{features}xf32>) -> {z} {{
      %t = nd.transpose %x {{permutation = [0, 3, 1, 2]}} : tensor<1x15x21x24xf32> -> tensor<1x24x15x21xf32>
      %c = nd.convolution %t, %w : (tensor<1x24x15x21xf32>, tensor<{features}x24x{window}x{window}xf32>) -> {y}
      %s = nd.broadcast %b {{dims = [1]}} : tensor<{features}xf32> -> {y}
      %a = nd.add %c, %s : {y}
      %z = nd.transpose %a {{permutation = [0, 2, 3, 1]}} : {y} -> {z}
      func.return %z : {z}
    }}
    """
    arrays: list[Any] = [
        RANDOM.standard_normal(shape).astype(np.float32)
        for shape in [(1, 15, 21, 24), (features, 24, window, window), (features,)]
    ]
    program = sw.compile(text, machine="vector_bits=512")
    _, module = parsed(text)
    (want,) = Interpreter(module).call("main", [a.copy() for a in arrays])
    np.testing.assert_allclose(program(*arrays), want, rtol=0, atol=1e-5 * np.abs(want).max())
    # of few features vectors go along the sum, which a window makes long
    assert (has(kernels_for(text), "blocks")) is (features >= 8 or window == 1)
