"""Contractions in blocks: any size, any layout, any blocks give what the plain kernel gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nestings import has
from reading import same_in_loops

import stepwell as sw
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(11)
SIZES = [(0, 4, 3), (3, 0, 2), (2, 3, 0), (1, 1, 1), (5, 7, 11), (4, 8, 4), (7, 13, 6)]
LAYOUTS = {"mk,kn": "", "km,kn": "t", "mk,nk": "n"}


def _operands(layout: str, m: int, n: int, k: int) -> list[tuple[int, int]]:
    size = {"m": m, "n": n, "k": k}
    return [(size[each[0]], size[each[1]]) for each in layout.split(",")]


def _kernel(layout: str, attributes: str, width: int, dims: str, body: str, of: str) -> str:
    """Spell relu(x @ w + b) as a kernel, ``dims`` being the types of x, w, b and y."""
    loop = {"m": "d0", "n": "d1", "k": "d2"}
    x, w = (", ".join(loop[c] for c in each) for each in layout.split(","))
    tx, tw, tb, ty = dims.split(";")
    choice = f"[1, {width}, 1]"
    maps = f"affine_map<(d0, d1, d2) -> ({x})>, affine_map<(d0, d1, d2) -> ({w})>"
    return f"""
    kernel.func @k(%x: {tx}, %w: {tw}, %b: {tb}, %y: {ty})
        attributes {{kernel.shared = 2, {attributes}}} {{
      %zero = arith.constant 0{".0" if "f" in of else ""} : {of}
      linalg.fill ins(%zero : {of}) outs(%y : {ty})
      linalg.generic {{indexing_maps = [{maps}, affine_map<(d0, d1, d2) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x, %w : {tx}, {tw}) outs(%y : {ty}) attrs = {{lanes = {choice}}} {{
        {body}
      }}
      linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
          affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel"]}}
          ins(%y, %b : {ty}, {tb}) outs(%y : {ty}) attrs = {{lanes = {choice}}} {{
      ^bb0(%s: {of}, %bias: {of}, %o: {of}):
        %t = arith.add{of[0]} %s, %bias : {of}
        linalg.yield %t : {of}
      }}
      kernel.return
    }}
    """


FLOATS = """^bb0(%a: f32, %c: f32, %acc: f32):
        %p = arith.mulf %a, %c : f32
        %s = arith.addf %acc, %p : f32
        linalg.yield %s : f32"""
WIDENED = """^bb0(%a: i8, %c: i8, %acc: i32):
        %e = arith.extsi %a : i8 to i32
        %f = arith.extsi %c : i8 to i32
        %p = arith.muli %e, %f : i32
        %s = arith.addi %acc, %p : i32
        linalg.yield %s : i32"""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "attributes, width",
    [
        ("tile = [2, 2], blocks = [4, 8, 4]", 4),
        ("tile = [3, 1], blocks = [3, 8, 100], parallel = 2", 4),
        ("tile = [2, 2], blocks = [6, 16, 3], prefetch", 4),
        ("tile = [3, 2], blocks = [3, 8, 4], pack_first", 4),
        ("tile = [2, 1], blocks = [6, 8, 3], pack_first, prefetch", 2),
        ("tile = [1, 2], blocks = [2, 2, 3], parallel = 1", 1),
        ("tile = [3, 2], prefetch, parallel = 2", 4),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("static", [False, True])
def test_blocks_in_the_interpreter(attributes: str, width: int, layout: str, static: bool) -> None:
    for i, (m, n, k) in enumerate(SIZES):
        element, of, body = [("f32", "f32", FLOATS), ("i8", "i32", WIDENED)][i % 2]
        kinds = (element, element, of, of)
        shapes = [*_operands(layout, m, n, k), (n,), (m, n)]
        dims = ";".join(_buffer(s, kind, static) for s, kind in zip(shapes, kinds, strict=True))
        arrays = [
            RANDOM.integers(-9, 9, s).astype(np.float32 if "f" in kind else f"int{kind[1:]}")
            for s, kind in zip(shapes, kinds, strict=True)
        ]
        packed = "blocks" in attributes
        _check(_kernel(layout, attributes, width, dims, body, of), arrays, packed)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("total", ["", "i16", "i32", "i64"])
def test_rows_packed_in_the_interpreter(layout: str, static: bool, total: str) -> None:
    """Blocks of six rows, packed in eights: whole, at the edge, and turned over."""
    attributes = "tile = [3, 2], blocks = [6, 8, 4], pack_rows"
    for i, (m, n, k) in enumerate([*SIZES, (24, 8, 9)]):
        element, of, body = ("i8", "i32", WIDENED) if total or i % 2 else ("f32", "f32", FLOATS)
        if total:
            of, body = total, WIDENED.replace("i32", total)
        kinds = (element, element, of, of)
        shapes = [*_operands(layout, m, n, k), (n,), (m, n)]
        dims = ";".join(_buffer(s, kind, static) for s, kind in zip(shapes, kinds, strict=True))
        arrays = [
            RANDOM.integers(-128, 128, s).astype(np.float32 if "f" in kind else f"int{kind[1:]}")
            for s, kind in zip(shapes, kinds, strict=True)
        ]
        _check(_kernel(layout, attributes, 4, dims, body, of), arrays)


def _buffer(shape: tuple[int, ...], kind: str, static: bool) -> str:
    return f"memref<{''.join(f'{size}x' if static else '?x' for size in shape)}{kind}>"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "attributes, width",
    [
        ("tile = [2, 2], strip = [8, 4]", 4),
        ("tile = [3, 1], strip = [16, 2], parallel = 2", 4),
        ("tile = [3, 2], strip = [16, 3], prefetch", 4),
        ("tile = [1, 2], strip = [3, 100], parallel = 1", 1),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_stretches_in_the_interpreter(attributes: str, width: int, layout: str) -> None:
    for i, (m, n, k) in enumerate(SIZES):
        element, of, body = [("f32", "f32", FLOATS), ("i8", "i32", WIDENED)][i % 2]
        kinds = (element, element, of, of)
        shapes = [*_operands(layout, m, n, k), (n,), (m, n)]
        dims = ";".join(_buffer(s, kind, True) for s, kind in zip(shapes, kinds, strict=True))
        arrays = [
            RANDOM.integers(-9, 9, s).astype(np.float32 if "f" in kind else f"int{kind[1:]}")
            for s, kind in zip(shapes, kinds, strict=True)
        ]
        packs = m > 1 and k > 0
        given = f"{attributes}{', pack_rows' * packs}"
        _check(_kernel(layout, given, width, dims, body, of), arrays, packed=packs)


def _check(text: str, arrays: list[Any], packed: bool = True) -> None:
    lowered = same_in_loops(text, arrays)
    assert ("%packed" in lowered) == packed or 0 in arrays[-1].shape


PROGRAM = """
func.func @main(%x: tensor<{x}x{e}>, %w: tensor<{w}x{e}>, %b: tensor<{n}x{o}>, %c: tensor<{y}x{o}>)
    -> tensor<{y}x{o}> {{
  %h = nd.dot_general %x, %w {how} : (tensor<{x}x{e}>, tensor<{w}x{e}>) -> tensor<{y}x{o}>
  %bb = nd.broadcast %b {{dims = [{last}]}} : tensor<{n}x{o}> -> tensor<{y}x{o}>
  %a = nd.add %h, %bb : tensor<{y}x{o}>
  %r = nd.mul %a, %c : tensor<{y}x{o}>
  func.return %r : tensor<{y}x{o}>
}}
"""


def _program(layout: str, m: int, n: int, k: int, batch: int, e: str, o: str) -> str:
    before = f"{batch}x" if batch else ""
    shapes = _operands(layout, m, n, k)
    x, w = (before + "x".join(map(str, shape)) for shape in shapes)
    shift = 1 if batch else 0
    how = "batch [0] x [0] " if batch else ""
    how += f"contract [{layout[:2].index('k') + shift}] x [{layout[3:].index('k') + shift}]"
    if o != e:
        how += f" {{dtype = {o}}}"
    y = f"{before}{m}x{n}"
    return PROGRAM.format(x=x, w=w, n=n, y=y, e=e, o=o, how=how, last=1 + shift)


def _numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    if np.dtype(dtype).kind == "f":
        return RANDOM.standard_normal(shape).astype(dtype)
    return RANDOM.integers(-100, 100, shape).astype(dtype)


def _compare(
    program: sw.Compiled, layout: str, m: int, n: int, k: int, batch: int, dtype: str, wide: str
) -> None:
    """Fail unless (x @ w + b) * c is right; exactly, where it is of integers."""
    names = {"f64": "float64", "f32": "float32", "f16": "float16", "i8": "int8", "i32": "int32"}
    head = (batch,) if batch else ()
    x, w = (_numbers((*head, *s), names[dtype]) for s in _operands(layout, m, n, k))
    b, c = _numbers((n,), names[wide]), _numbers((*head, m, n), names[wide])
    sum = np.float64 if "f" in dtype else np.int64
    left = (x if layout[0] == "m" else x.swapaxes(-1, -2)).astype(sum)
    right = (w if layout[3] == "k" else w.swapaxes(-1, -2)).astype(sum)
    want = ((left @ right + b) * c).astype(names[wide])
    close = {"f64": 1e-13, "f32": 1e-5, "f16": 5e-3}.get(dtype, 0) * float(np.abs(want).max())
    np.testing.assert_allclose(program(x, w, b, c), want, rtol=0, atol=close)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "m, n, k, batch, layout, dtype, wide",
    [
        (300, 131, 1031, 0, "mk,kn", "f32", "f32"),
        (200, 64, 300, 0, "mk,nk", "f32", "f32"),
        (197, 250, 513, 3, "km,kn", "f32", "f32"),
        (65, 101, 517, 2, "mk,nk", "f64", "f64"),
        (67, 700, 1030, 0, "mk,kn", "i8", "i32"),
        (66, 190, 257, 0, "mk,nk", "f16", "f16"),
        (1031, 135, 600, 0, "mk,kn", "f32", "f32"),
        (33, 2053, 40, 0, "km,nk", "i32", "i32"),
    ],
)
def test_blocks_chosen_by_the_compiler(
    m: int, n: int, k: int, batch: int, layout: str, dtype: str, wide: str
) -> None:
    text = _program(layout, m, n, k, batch, dtype, wide)
    machine = "l2=256K"  # which holds no operand; on this machine, reading in place may be faster
    program = sw.compile(text, machine=machine)
    assert has(kernels_for(text, machine), "blocks")
    _compare(program, layout, m, n, k, batch, dtype, wide)


@pytest.mark.parametrize(
    "m, n, k, batch, dtype, wide",
    [
        (1, 2051, 97, 0, "f32", "f32"),
        (3, 4099, 261, 0, "f32", "f32"),
        (4, 2048, 67, 2, "f64", "f64"),
        (2, 2100, 1200, 0, "i8", "i32"),
        (16, 2060, 1021, 0, "f32", "f32"),
        (1, 2049, 131, 0, "f16", "f16"),
    ],
)
def test_few_rows_wait_for_memory_alone(
    m: int, n: int, k: int, batch: int, dtype: str, wide: str
) -> None:
    text = _program("mk,kn", m, n, k, batch, dtype, wide)
    program = sw.compile(text, machine="l2=64K,l3=2M")
    assert has(kernels_for(text, "l2=64K,l3=2M"), "strip")
    _compare(program, "mk,kn", m, n, k, batch, dtype, wide)


@pytest.mark.parametrize(
    "m, n, k, batch, dtype, wide",
    [
        (2, 5, 70, 0, "f32", "f32"),
        (3, 1001, 103, 0, "f32", "f32"),
        (8, 37, 259, 3, "f32", "f32"),
        (7, 3, 65, 0, "f64", "f64"),
        (11, 4, 300, 0, "i8", "i32"),
        (5, 2, 131, 2, "f16", "f16"),
    ],
)
def test_rows_of_both_operands_lie_along_the_sum(
    m: int, n: int, k: int, batch: int, dtype: str, wide: str
) -> None:
    program = sw.compile(_program("mk,nk", m, n, k, batch, dtype, wide))
    _compare(program, "mk,nk", m, n, k, batch, dtype, wide)


def test_sizes_known_only_when_it_runs() -> None:
    text = """
    func.func @main(%x: tensor<?x?xf32>, %w: tensor<?x1030xf32>) -> tensor<?x1030xf32> {
      %y = nd.matmul %x, %w : (tensor<?x?xf32>, tensor<?x1030xf32>) -> tensor<?x1030xf32>
      func.return %y : tensor<?x1030xf32>
    }"""
    program = sw.compile(text)
    assert has(kernels_for(text), "blocks")
    for m, k in [(0, 3), (4, 0), (1, 1), (33, 1025), (130, 512)]:
        x, w = _numbers((m, k), "f4"), _numbers((k, 1030), "f4")
        want = x.astype(float) @ w.astype(float)
        np.testing.assert_allclose(program(x, w), want, atol=1e-5 * (k + 1) ** 0.5 * 4)


@pytest.mark.parametrize(
    "sizes, n",
    [
        ("131x131", 131),
        pytest.param("203x203", 203, marks=pytest.mark.slow),  # seconds of the C compiler's
        pytest.param("?x?", 203, marks=pytest.mark.slow),
    ],
)
def test_bytes_summed_up_in_16_bits_wrap_around(sizes: str, n: int) -> None:
    x = f"tensor<{sizes}xi8>"
    text = f"""
    func.func @main(%x: {x}, %w: {x}) -> tensor<{sizes}xi16> {{
      %y = nd.matmul %x, %w {{dtype = i16}} : ({x}, {x}) -> tensor<{sizes}xi16>
      func.return %y : tensor<{sizes}xi16>
    }}"""
    program = sw.compile(text)
    x, w = (RANDOM.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2))
    np.testing.assert_array_equal(program(x, w), x.astype(np.int16) @ w.astype(np.int16))
