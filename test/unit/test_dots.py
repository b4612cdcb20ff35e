"""Products of bytes added up four at a time: any sizes, signs, layouts, blocks and machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nestings import has
from reading import parsed, same_in_loops

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.lowering.linalg_to_loops import LinalgToLoops
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(29)
SIZES = [(0, 4, 3), (2, 3, 0), (5, 7, 11), (7, 19, 37)]
LAYOUTS = {"mk,kn": "(d0, d2);(d2, d1)", "km,kn": "(d2, d0);(d2, d1)", "mk,nk": "(d0, d2);(d1, d2)"}
BODY = """^bb0(%a: i8, %c: i8, %acc: i32):
        %e = arith.ext{x}i %a : i8 to i32
        %f = arith.ext{w}i %c : i8 to i32
        %p = arith.muli %e, %f : i32
        %s = arith.addi %acc, %p : i32
        linalg.yield %s : i32"""


def _shapes(layout: str, m: int, n: int, k: int) -> list[tuple[int, ...]]:
    size = {"m": m, "n": n, "k": k}
    return [*((size[each[0]], size[each[1]]) for each in layout.split(",")), (m, n)]


def _kernel(layout: str, attributes: str, width: int, types: list[str], signs: str) -> str:
    """Spell x @ w as a kernel whose result is started with 7."""
    x, w = LAYOUTS[layout].split(";")
    maps = ", ".join(f"affine_map<(d0, d1, d2) -> {to}>" for to in (x, w, "(d0, d1)"))
    tx, tw, ty = types
    return f"""
    kernel.func @k(%x: {tx}, %w: {tw}, %y: {ty})
        attributes {{kernel.shared = 2, {attributes}}} {{
      %seven = arith.constant 7 : i32
      linalg.fill ins(%seven : i32) outs(%y : {ty})
      linalg.generic {{indexing_maps = [{maps}],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x, %w : {tx}, {tw}) outs(%y : {ty})
          attrs = {{lanes = [1, {width}, 1]}} {{
        {BODY.format(x=signs[0], w=signs[1])}
      }}
      kernel.return
    }}
    """


def _buffer(shape: tuple[int, ...], kind: str, static: bool) -> str:
    return f"memref<{''.join(f'{size}x' if static else '?x' for size in shape)}{kind}>"


DOTS = "pack_rows, dots"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "block, width, signs",
    [
        ("tile = [3, 2], blocks = [6, 16, 8]", 4, "ss, bias_to_unsigned"),
        ("tile = [2, 2], blocks = [4, 8, 40], parallel = 2", 4, "us"),
        ("tile = [2, 3], blocks = [4, 3, 6]", 1, "ss, bias_to_unsigned"),
        ("tile = [2, 1], blocks = [6, 8, 4], parallel = 1", 4, "su"),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("static", [False, True])
def test_words_in_the_interpreter(
    block: str, width: int, layout: str, static: bool, signs: str
) -> None:
    for m, n, k in SIZES if static else SIZES[2:]:
        shapes = _shapes(layout, m, n, k)
        types = [
            _buffer(s, kind, static) for s, kind in zip(shapes, ("i8", "i8", "i32"), strict=True)
        ]
        arrays: list[Any] = [RANDOM.integers(-128, 128, s).astype(np.int8) for s in shapes[:2]]
        arrays.append(np.zeros(shapes[2], np.int32))
        same_in_loops(_kernel(layout, f"{block}, {DOTS}{signs[2:]}", width, types, signs), arrays)


@pytest.mark.parametrize(
    "attributes, signs, message",
    [
        ("dots", "ss", "both operands are packed as dot"),
        (f"{DOTS}, bias_to_unsigned", "us", "only signed bytes are packed as biased_dot"),
    ],
)
def test_what_cannot_be_in_words(attributes: str, signs: str, message: str) -> None:
    types = [
        _buffer(s, kind, True) for s, kind in (((4, 8), "i8"), ((8, 8), "i8"), ((4, 8), "i32"))
    ]
    block = "tile = [2, 2], blocks = [4, 8, 8]"
    context, module = parsed(_kernel("mk,kn", f"{block}, {attributes}", 4, types, signs))
    with pytest.raises(CompileError, match=message):
        LinalgToLoops().apply(context, module)


def test_words_are_made_of_bytes() -> None:
    types = [
        _buffer(s, kind, True) for s, kind in (((4, 8), "i8"), ((8, 8), "i8"), ((4, 8), "i64"))
    ]
    block = "tile = [2, 2], blocks = [4, 8, 8]"
    text = _kernel("mk,kn", f"{block}, {DOTS}", 4, types, "ss").replace("i32", "i64")
    context, module = parsed(text)
    with pytest.raises(CompileError, match="of bytes summed in i32"):
        LinalgToLoops().apply(context, module)


def _program(layout: str, batch: int, m: int, n: int, k: int, kinds: tuple[str, str]) -> str:
    before = f"{batch}x" if batch else ""
    x, w, y = (before + "x".join(map(str, shape)) for shape in _shapes(layout, m, n, k))
    shift = 1 if batch else 0
    how = "batch [0] x [0] " if batch else ""
    how += f"contract [{layout[:2].index('k') + shift}] x [{layout[3:].index('k') + shift}]"
    tx, tw = f"tensor<{x}x{kinds[0]}>", f"tensor<{w}x{kinds[1]}>"
    sum = "ui32" if kinds[0] == "ui8" else "i32"
    return f"""
    func.func @main(%x: {tx}, %w: {tw}, %c: tensor<{y}x{sum}>) -> tensor<{y}x{sum}> {{
      %h = nd.dot_general %x, %w {how} {{dtype = {sum}}} : ({tx}, {tw}) -> tensor<{y}x{sum}>
      %r = nd.add %h, %c : tensor<{y}x{sum}>
      func.return %r : tensor<{y}x{sum}>
    }}"""


NAMES = {"i8": np.int8, "ui8": np.uint8}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "m, n, k, batch, layout, kinds, machine",
    [
        (67, 131, 257, 0, "mk,kn", ("i8", "i8"), ""),
        (97, 64, 300, 0, "mk,nk", ("i8", "i8"), ""),
        (31, 53, 203, 3, "km,kn", ("i8", "i8"), ""),
        (65, 101, 517, 2, "mk,nk", ("ui8", "ui8"), ""),
        (3, 700, 4099, 0, "mk,kn", ("i8", "i8"), "threads=2"),
        (300, 35, 2051, 0, "km,nk", ("i8", "i8"), "threads=2"),
        (2, 64, 129, 0, "mk,kn", ("i8", "i8"), ""),
        (500, 17, 9, 0, "mk,kn", ("i8", "i8"), ""),
        (90, 61, 203, 0, "mk,nk", ("i8", "i8"), "vector_bits=256,vector_registers=16"),
        (90, 61, 203, 0, "mk,kn", ("i8", "i8"), "vector_bits=128,vector_registers=16"),
        (61, 90, 131, 0, "mk,kn", ("i8", "i8"), "signed_dots=1"),
    ],
)
def test_words_chosen_by_the_compiler(
    m: int, n: int, k: int, batch: int, layout: str, kinds: tuple[str, str], machine: str
) -> None:
    module = _program(layout, batch, m, n, k, kinds)
    program = sw.compile(module, machine=machine)
    text = kernels_for(module, machine)
    assert has(text, "dots")
    assert (has(text, "bias_to_unsigned")) == (kinds[0] == "i8" and "signed" not in machine)
    head = (batch,) if batch else ()
    first, second, _ = _shapes(layout, m, n, k)
    x, w = (_bytes((*head, *s), kind) for s, kind in zip((first, second), kinds, strict=True))
    sum = np.uint32 if kinds[0] == "ui8" else np.int32
    c = RANDOM.integers(0, 2**32, (*head, m, n)).astype(sum)
    left = (x if layout[0] == "m" else x.swapaxes(-1, -2)).astype(np.int64)
    right = (w if layout[3] == "k" else w.swapaxes(-1, -2)).astype(np.int64)
    want = (left @ right + c).astype(sum)
    np.testing.assert_array_equal(program(x, w, c), want)


def _bytes(shape: tuple[int, ...], kind: str) -> Any:
    """Return bytes at random, many of them as large as they can be."""
    limits = np.iinfo(NAMES[kind])
    found = RANDOM.integers(limits.min, limits.max + 1, shape)
    return np.where(RANDOM.random(shape) < 0.3, limits.min, found).astype(NAMES[kind])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("m", [1, 2, 16, 70])
def test_weights(m: int, turned: bool) -> None:
    w = _bytes((190, 333) if turned else (333, 190), "i8")
    kind = f"tensor<{w.shape[0]}x{w.shape[1]}xi8>"
    text = f"""
    func.func @main(%x: tensor<{m}x333xi8>) -> tensor<{m}x190xi32> {{
      %w = nd.constant #nd.resource<"w"> : {kind}
      %y = nd.dot_general %x, %w contract [1] x [{int(turned)}] {{dtype = i32}}
        : (tensor<{m}x333xi8>, {kind}) -> tensor<{m}x190xi32>
      func.return %y : tensor<{m}x190xi32>
    }}"""
    program = sw.compile(text, resources={"w": w})
    assert (has(kernels_for(text), "dots")) == (m > 1)
    x = _bytes((m, 333), "i8")
    want = x.astype(np.int64) @ (w.T if turned else w).astype(np.int64)
    np.testing.assert_array_equal(program(x), want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch, size, strides", [(1, 9, 1), (3, 9, 1), (1, 70, 2), (2, 140, 2)])
@pytest.mark.parametrize("sign", ["", "u"])
def test_convolutions_over_one_place(batch: int, size: int, strides: int, sign: str) -> None:
    """They are products whose rows are places."""
    after = -(-size // strides)
    x, w, y = f"{batch}x{size}x{size}x20", "20x70", f"{batch}x{after}x{after}x70"
    text = f"""
    func.func @main(%x: tensor<{x}x{sign}i8>, %w: tensor<1x1x{w}x{sign}i8>) -> tensor<{y}x{sign}i32> {{
      %y = nd.convolution %x, %w {{dtype = {sign}i32, x_layout = [0, 3, 1, 2],
        w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2], strides = [{strides}, {strides}]}}
        : (tensor<{x}x{sign}i8>, tensor<1x1x{w}x{sign}i8>) -> tensor<{y}x{sign}i32>
      func.return %y : tensor<{y}x{sign}i32>
    }}"""
    program = sw.compile(text)
    assert has(kernels_for(text), "dots")
    a, b = _bytes((batch, size, size, 20), f"{sign}i8"), _bytes((1, 1, 20, 70), f"{sign}i8")
    want = a[:, ::strides, ::strides].astype(np.int64) @ b[0, 0].astype(np.int64)
    np.testing.assert_array_equal(program(a, b), want)


def test_sizes_known_only_when_it_runs() -> None:
    text = """
    func.func @main(%x: tensor<?x?xi8>, %w: tensor<?x190xi8>) -> tensor<?x190xi32> {
      %y = nd.matmul %x, %w {dtype = i32} : (tensor<?x?xi8>, tensor<?x190xi8>) -> tensor<?x190xi32>
      func.return %y : tensor<?x190xi32>
    }"""
    program = sw.compile(text)
    assert has(kernels_for(text), "dots")
    for m, k in [(0, 3), (4, 0), (1, 1), (33, 1025), (130, 512), (64, 2050)]:
        x, w = _bytes((m, k), "i8"), _bytes((k, 190), "i8")
        want = (x.astype(np.int64) @ w.astype(np.int64)).astype(np.int32)
        np.testing.assert_array_equal(program(x, w), want)


def test_sums_wrap_around() -> None:
    program = sw.compile(_program("mk,kn", 0, 16, 64, 140_000, ("i8", "i8")))
    x, w = np.full((16, 140_000), -128, np.int8), np.full((140_000, 64), -128, np.int8)
    want = np.int64(140_000 << 14).astype(np.int32)
    assert want < 0
    assert (program(x, w, np.zeros((16, 64), np.int32)) == want).all()


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "image, filters, window, how",
    [
        ((1, 14, 14, 64), 70, (3, 3), {"low": (1, 1), "high": (1, 1)}),
        ((2, 9, 11, 33), 64, (3, 2), {"strides": (2, 1)}),
        ((1, 12, 30, 20), 35, (1, 5), {"rhs_dilation": (1, 2), "low": (0, 3)}),
        ((1, 7, 9, 700), 17, (3, 3), {"high": (2, 1)}),
        ((3, 2, 21, 16), 128, (1, 3), {}),
        ((1, 15, 15, 9), 16, (7, 7), {"low": (3, 3), "high": (3, 3)}),
        ((2, 6, 6, 32), 32, (3, 3), {"low": (1, 1), "high": (1, 1), "rows": "?"}),
    ],
)
@pytest.mark.parametrize("natural", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_convolutions(
    image: tuple[int, int, int, int],
    filters: int,
    window: tuple[int, int],
    how: dict[str, Any],
    natural: bool,
    weights: bool,
) -> None:
    """In the natural layout the filters of a place lie far apart, and images are transposed."""
    n, h, w, c = image
    get = {name: how.get(name, (one, one)) for name, one in PLAIN.items()}
    padded = [
        size + low + high for size, low, high in zip((h, w), get["low"], get["high"], strict=True)
    ]
    after = [
        (size - (m - 1) * apart - 1) // step + 1
        for size, m, apart, step in zip(
            padded, window, get["rhs_dilation"], get["strides"], strict=True
        )
    ]
    lists = ", ".join(f"{name} = {list(value)}" for name, value in get.items())
    if not natural:
        lists += ", x_layout = [0, 3, 1, 2], w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2]"
    many = how.get("rows", n)
    x = f"tensor<{_by((many, h, w, c) if not natural else (many, c, h, w))}xi8>"
    f = f"tensor<{_by((*window, c, filters) if not natural else (filters, c, *window))}xi8>"
    y = f"tensor<{_by((many, *after, filters) if not natural else (many, filters, *after))}xi32>"
    argument = "" if weights else f", %w: {f}"
    constant = f'%w = nd.constant #nd.resource<"w", ""> : {f}' if weights else ""
    a, b = _bytes(image, "i8"), _bytes((*window, c, filters), "i8")
    given = np.ascontiguousarray(b.transpose(3, 2, 0, 1)) if natural else b
    text = f"""
    func.func @main(%x: {x}{argument}) -> {y} {{
      {constant}
      %y = nd.convolution %x, %w {{dtype = i32, {lists}}} : ({x}, {f}) -> {y}
      func.return %y : {y}
    }}"""
    resources = {"w": given} if weights else None
    program = sw.compile(text, resources=resources, machine="threads=2")
    assert natural or has(kernels_for(text, "threads=2"), "dots")
    want = _convolved(a, b, after, get)
    image_ = np.ascontiguousarray(a.transpose(0, 3, 1, 2)) if natural else a
    got = program(image_) if weights else program(image_, given)
    np.testing.assert_array_equal(got, want.transpose(0, 3, 1, 2) if natural else want)


PLAIN = {"strides": 1, "low": 0, "high": 0, "rhs_dilation": 1}


def _convolved(a: Any, b: Any, after: list[int], get: dict[str, Any]) -> Any:
    """Return the sums of 64 bits of a convolution of (n, h, w, c) with (h, w, c, filters)."""
    wide = np.pad(a.astype(np.int64), [(0, 0), *zip(get["low"], get["high"], strict=True), (0, 0)])
    want = np.zeros((len(a), *after, b.shape[-1]), np.int64)
    for i, j in np.ndindex(*b.shape[:2]):
        places = [
            slice(at * apart, at * apart + (size - 1) * step + 1, step)
            for at, apart, size, step in zip(
                (i, j), get["rhs_dilation"], after, get["strides"], strict=True
            )
        ]
        want += wide[:, places[0], places[1]] @ b[i, j].astype(np.int64)
    return want


def _by(shape: tuple[Any, ...]) -> str:
    return "x".join(map(str, shape))
