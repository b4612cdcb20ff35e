"""Products of floats of 16 bits added up two at a time: the promise, at any size, on any machine.

bf16 is summed in f32: an element is off by at most the roundings of its sum, each of at most half a
unit in the last place of an f32 as large as the sum of all magnitudes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from nestings import has
from reading import same_in_loops

import stepwell as sw
from stepwell.testing.machines import MACHINES, can_cross_compile, kernels_for

RANDOM = np.random.default_rng(31)
BF16 = "instructions=avx512_bf16"
KINDS: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
MAPS = {"mk,kn": "(d0, d2);(d2, d1)", "km,kn": "(d2, d0);(d2, d1)", "mk,nk": "(d0, d2);(d1, d2)"}


def _kernel(layout: str, size: dict[str, Any], width: int, block: str, static: bool) -> str:
    x, w = MAPS[layout].split(";")
    maps = ", ".join(f"affine_map<(d0, d1, d2) -> {to}>" for to in (x, w, "(d0, d1)"))
    shapes = [*layout.split(","), "mn"]
    if not static:
        size = dict.fromkeys(size, "?")
    tx, tw, ty = (
        f"memref<{'x'.join(str(size[c]) for c in shape)}x{kind}>"
        for shape, kind in zip(shapes, ("bf16", "bf16", "f32"), strict=True)
    )
    return f"""
    kernel.func @k(%x: {tx}, %w: {tw}, %y: {ty})
        attributes {{kernel.shared = 2, {block}, pack_rows, dots}} {{
      %seven = arith.constant 7.0 : f32
      linalg.fill ins(%seven : f32) outs(%y : {ty})
      linalg.generic {{indexing_maps = [{maps}],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x, %w : {tx}, {tw}) outs(%y : {ty})
          attrs = {{lanes = [1, {width}, 1]}} {{
      ^bb0(%a: bf16, %c: bf16, %acc: f32):
        %e = arith.extf %a : bf16 to f32
        %f = arith.extf %c : bf16 to f32
        %p = arith.mulf %e, %f : f32
        %s = arith.addf %acc, %p : f32
        linalg.yield %s : f32
      }}
      kernel.return
    }}
    """


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "block, width",
    [
        ("tile = [3, 2], blocks = [6, 16, 8]", 4),
        ("tile = [2, 2], blocks = [4, 8, 40], parallel = 2", 4),
        ("tile = [2, 3], blocks = [4, 3, 6]", 1),
    ],
)
@pytest.mark.parametrize("layout", MAPS)
@pytest.mark.parametrize("static", [False, True])
def test_words_of_two_in_the_interpreter(block: str, width: int, layout: str, static: bool) -> None:
    """Small whole numbers are added up exactly, so every order gives the same."""
    for m, n, k in [(0, 4, 3), (2, 3, 0), (5, 7, 11), (7, 19, 37)] if static else [(7, 19, 37)]:
        size = {"m": m, "n": n, "k": k}
        arrays: list[Any] = [
            RANDOM.integers(-9, 10, tuple(size[c] for c in shape)).astype(np.float32)
            for shape in layout.split(",")
        ]
        arrays.append(np.zeros((m, n), np.float32))
        same_in_loops(_kernel(layout, size, width, block, static), arrays)


def _program(m: int, n: int, k: int, x: str, w: str, layout: str = "mk,kn") -> str:
    """Spell the product of two kinds in f32; the narrower is widened before."""
    size = {"m": m, "n": n, "k": k}
    shapes = ["x".join(str(size[c]) for c in shape) for shape in layout.split(",")]
    tx, tw = (f"tensor<{shape}x{kind}>" for shape, kind in zip(shapes, (x, w), strict=True))
    how = f"contract [{layout[:2].index('k')}] x [{layout[3:].index('k')}]"
    casts, names, types = "", ["%x", "%w"], [tx, tw]
    if x != w:
        for number, shape in enumerate(shapes):
            to = f"tensor<{shape}xf32>"
            if types[number] != to:
                casts += f"%c{number} = nd.cast {names[number]} : {types[number]} -> {to}\n"
                names[number], types[number] = f"%c{number}", to
    return f"""
    func.func @main(%x: {tx}, %w: {tw}) -> tensor<{m}x{n}xf32> {{
      {casts}
      %y = nd.dot_general {names[0]}, {names[1]} {how} {{dtype = f32}}
        : ({types[0]}, {types[1]}) -> tensor<{m}x{n}xf32>
      func.return %y : tensor<{m}x{n}xf32>
    }}"""


def _numbers(shape: tuple[int, ...], kind: str) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32).astype(KINDS[kind])


def _check(y: Any, x: Any, w: Any) -> None:
    """Compare with the product in f64, by the bound on the roundings of sums in f32."""
    a, b = (v.astype(np.float64) for v in (x, w))
    roundings = a.shape[1] + 1
    bound = roundings * 2.0**-24 * (abs(a) @ abs(b))
    assert (abs(y - a @ b) <= bound).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "m, n, k, layout, machine",
    [
        (67, 131, 257, "mk,kn", ""),
        (97, 64, 300, "mk,nk", ""),
        (31, 53, 203, "km,kn", ""),
        (13, 701, 2053, "mk,kn", "threads=2"),
        (12, 64, 129, "mk,kn", ""),
        (500, 17, 9, "mk,kn", ""),
        (90, 61, 203, "mk,nk", "vector_bits=256,vector_registers=16"),
        (90, 61, 203, "mk,kn", "vector_bits=128,vector_registers=16"),
    ],
)
def test_sums_of_bf16_keep_their_promise(m: int, n: int, k: int, layout: str, machine: str) -> None:
    """On a machine with the instruction and on one without, by the same text or another."""
    x, w = _numbers((m, k), "bf16"), _numbers((k, n), "bf16")
    text = _program(m, n, k, "bf16", "bf16", layout)
    parts = [machine] if machine else []
    for sets in (BF16, "instructions=avx512_vnni"):
        described = ",".join([*parts, sets])
        assert has(kernels_for(text, described), "dots") == (sets == BF16)
        left = x if layout[0] == "m" else np.ascontiguousarray(x.T)
        right = w if layout[3] == "k" else np.ascontiguousarray(w.T)
        _check(sw.compile(text, machine=described)(left, right), x, w)


@pytest.mark.parametrize("x, w", [("f16", "f16"), ("f32", "bf16"), ("bf16", "f32"), ("f32", "f16")])
def test_other_kinds_are_widened(x: str, w: str) -> None:
    """No instruction adds products of f16, or of two kinds, up in f32."""
    text = _program(37, 70, 141, x, w)
    assert not has(kernels_for(text, BF16), "dots")
    a, b = _numbers((37, 141), x), _numbers((141, 70), w)
    _check(sw.compile(text)(a, b), a, b)


@pytest.mark.skipif(not can_cross_compile(), reason="no cross compiler")
def test_arm_has_an_instruction_for_them(tmp_path: Path) -> None:
    """What it computes nobody has run here: the text is what a compiler for ARM takes."""
    machine = MACHINES["neon, 64 cores"]
    described = f"{machine.text},instructions=neon+neon_bf16"
    program = sw.compile(_program(37, 70, 141, "bf16", "bf16"), machine=described)
    assert "bfdot" in program.source
    (tmp_path / "k.c").write_text(program.source)
    machine.cross_compile(tmp_path / "k.c", tmp_path / "k.o")


def test_sizes_known_only_when_it_runs() -> None:
    text = """
    func.func @main(%x: tensor<?x?xbf16>, %w: tensor<?x190xbf16>) -> tensor<?x190xf32> {
      %y = nd.matmul %x, %w {dtype = f32}
        : (tensor<?x?xbf16>, tensor<?x190xbf16>) -> tensor<?x190xf32>
      func.return %y : tensor<?x190xf32>
    }"""
    assert has(kernels_for(text, BF16), "dots")
    program = sw.compile(text, machine=BF16)
    for m, k in [(0, 3), (4, 0), (1, 1), (33, 1025), (13, 2)]:
        x, w = _numbers((m, k), "bf16"), _numbers((k, 190), "bf16")
        _check(program(x, w), x, w)


def test_what_is_not_finite_stays_where_it_is() -> None:
    """NaN and infinity reach the rows and columns that they are in, and no others."""
    x, w = np.ones((40, 65), np.float32), np.ones((65, 70), np.float32)
    x[3, 64], x[5, 0], w[64, 7], w[1, 66] = np.nan, np.inf, -np.inf, np.nan
    x[8, 2] = 0.0
    w[2, 9] = np.inf
    got = sw.compile(_program(40, 70, 65, "bf16", "bf16"), machine=BF16)(
        x.astype(KINDS["bf16"]), w.astype(KINDS["bf16"])
    )
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, x @ w)


def test_subnormal_numbers_may_count_as_zero() -> None:
    """What is lost is less than the factors below 2^-126 contribute, and 2^-126 for each sum."""
    least = np.float32(2.0**-126)
    x = np.full((16, 33), least / 2, np.float32).astype(KINDS["bf16"])
    x[:, 1] = 1.0
    w = np.full((33, 64), 0.5, np.float32).astype(KINDS["bf16"])
    got = sw.compile(_program(16, 64, 33, "bf16", "bf16"), machine=BF16)(x, w)
    np.testing.assert_array_equal(got, np.full((16, 64), 0.5, np.float32))
    tiny = sw.compile(_program(16, 64, 33, "bf16", "bf16"), machine=BF16)(
        np.full((16, 33), least / 2, np.float32).astype(KINDS["bf16"]), w
    )
    assert ((tiny == 0) | (tiny == np.float32(33 * 0.25) * least)).all()
