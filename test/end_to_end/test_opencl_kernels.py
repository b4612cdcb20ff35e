"""Kernels of OpenCL programs beside NumPy, at sizes that no tile divides."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from op_rows import FAMILIES

import stepwell as sw
from stepwell.runtime.entry import numpy_dtype
from stepwell.runtime.opencl import device
from stepwell.testing.op_rows.together import Together

pytestmark = pytest.mark.opencl

PRODUCTS = "\n".join(
    f"""\
func.func @{dtype}(%x: tensor<97x515x{dtype}>, %y: tensor<515x131x{dtype}>) -> tensor<97x131x{dtype}> {{
  %z = nd.matmul %x, %y : (tensor<97x515x{dtype}>, tensor<515x131x{dtype}>) -> tensor<97x131x{dtype}>
  func.return %z : tensor<97x131x{dtype}>
}}"""
    for dtype in ("f32", "f64", "f16", "i32")
)
"""Large enough for blocks whose operands are packed."""


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32"])
def test_a_product_in_blocks(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-4, 5, n).astype(numpy_dtype(dtype)) for n in ((97, 515), (515, 131)))
    program = sw.compile(PRODUCTS, target="opencl", entry=dtype)
    np.testing.assert_array_equal(program(x, y), x.astype(np.float64) @ y.astype(np.float64))


def test_vectors_are_written_so_that_compilers_know_them() -> None:
    text = """\
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %m = nd.mul %x, %y : tensor<64xf32>
  %s = nd.add %m, %x : tensor<64xf32>
  %f = nd.floor %s : tensor<64xf32>
  func.return %f : tensor<64xf32>
}
"""
    program = sw.compile(text, target="opencl", machine="vector_bits=256,vector_lanes=8")
    for part in (
        "= SW_LOAD(__global, float8, 8, &x[i]);",
        "SW_STORE(__global, float8, 8, &f[i], ",
        "= (x_1 * y_1) + x_1;",  # one expression, which may be one instruction
        "#if SW_HAS(__builtin_elementwise_floor)",
    ):
        assert part in program.source
    x, y = (np.random.default_rng(k).normal(0, 9, 64).astype(np.float32) for k in (1, 2))
    np.testing.assert_allclose(program(x, y), np.floor(x * y + x), atol=1)


WIDE = "vector_bits=512,vector_lanes=16,vector_registers=32"
NARROW = "vector_bits=256,vector_lanes=8,vector_registers=16"


@pytest.mark.parametrize("machine", [WIDE, NARROW])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_instructions_of_the_processor(dtype: str, machine: str) -> None:
    """Tables, extrema, powers of two, shuffles and f16, with NaN and infinities."""
    kind = f"tensor<7x67x{dtype}>"
    text = f"""\
func.func @main(%x: {kind}, %y: {kind}) -> ({kind}, {kind}, {kind}, tensor<67x7x{dtype}>) {{
  %e = nd.exp %x : {kind}
  %m = nd.max %x, %y : {kind}
  %s = nd.softmax %y {{axis = 1}} : {kind}
  %t = nd.transpose %x {{permutation = [1, 0]}} : ({kind}) -> tensor<67x7x{dtype}>
  func.return %e, %m, %s, %t : {kind}, {kind}, {kind}, tensor<67x7x{dtype}>
}}
"""
    program = sw.compile(text, target="opencl", machine=machine)
    wide = machine == WIDE
    assert ("__builtin_ia32_permvarsf512(x, y)" in program.source) is wide
    assert "return __builtin_shufflevector(x, y, " in program.source
    rng = np.random.default_rng(7)
    x, y = (rng.normal(0, 9, (7, 67)).astype(numpy_dtype(dtype)) for _ in range(2))
    x[0, :4] = np.nan, np.inf, -np.inf, -0.0
    x[:, 60:64], y[1, 64] = -0.0, np.nan
    y[:, 62:] = 0.0
    found = program(x, y)
    with np.errstate(over="ignore", invalid="ignore"):
        big = y.astype(np.float64)
        parts = np.exp(big - big.max(1, keepdims=True))
        want = np.exp(x), np.maximum(x, y), (parts / parts.sum(1, keepdims=True)).astype(x.dtype)
    close = 2e-3 if dtype == "f16" else 1e-6
    for got, right in zip(found, (*want, x.T), strict=True):
        np.testing.assert_allclose(got, right, rtol=close, atol=close)
    assert not np.signbit(found[1][:, 62:]).any()


GPU = "gpu,compute_units=2"
"""Schedules of groups, lanes and local memory, which PoCL runs too."""

SIZES = [(0, 3), (1, 1), (1, 257), (67, 5), (131, 61)]
GROUPS = """\
func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> (
    tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<f32>, tensor<?x?xf32>) {
  %s = nd.add %x, %y : tensor<?x?xf32>
  %e = nd.relu %s : tensor<?x?xf32>
  %t = nd.transpose %x {permutation = [1, 0]} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = nd.softmax %x {axis = 1} : tensor<?x?xf32>
  %r = nd.reduce_sum %x {axes = [1]} : (tensor<?x?xf32>) -> tensor<?xf32>
  %c = nd.reduce_max %x {axes = [0]} : (tensor<?x?xf32>) -> tensor<?xf32>
  %a = nd.mul %x, %y : tensor<?x?xf32>
  %d = nd.reduce_sum %a {axes = [0, 1]} : (tensor<?x?xf32>) -> tensor<f32>
  %p = nd.matmul %x, %t : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %e, %t, %m, %r, %c, %d, %p : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<f32>, tensor<?x?xf32>
}
"""


@pytest.fixture(scope="module")
def grouped() -> sw.Compiled:
    return sw.compile(GROUPS, target="opencl", machine=GPU)


@pytest.mark.parametrize("shape", SIZES)
def test_groups_of_unknown_sizes(grouped: sw.Compiled, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.normal(0, 1, shape).astype(np.float32) for _ in range(2))
    e, t, m, r, c, d, p = grouped(x, y)
    np.testing.assert_array_equal(e, np.maximum(x + y, 0))
    np.testing.assert_array_equal(t, x.T)
    shifted = np.exp(x - x.max(1, keepdims=True)) if x.size else x
    np.testing.assert_allclose(m, shifted / shifted.sum(1, keepdims=True), rtol=2e-5)
    np.testing.assert_allclose(r, x.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(c, x.max(0, initial=-np.inf))
    np.testing.assert_allclose(d, np.vdot(x, y), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(p, x @ x.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8"])
def test_groups_of_known_sizes(dtype: str) -> None:
    """A product's tile that no size divides, with what follows it, a sum of rows and of columns."""
    a, b, c = (f"tensor<{n}x{dtype}>" for n in ("37x53", "53x67", "37x67"))
    text = f"""\
func.func @main(%x: {a}, %y: {b}, %z: {c}) -> ({c}, tensor<53x{dtype}>, tensor<53x{dtype}>) {{
  %p = nd.matmul %x, %y : ({a}, {b}) -> {c}
  %s = nd.add %p, %z : {c}
  %r = nd.reduce_sum %y {{axes = [1]}} : ({b}) -> tensor<53x{dtype}>
  %k = nd.reduce_max %x {{axes = [0]}} : ({a}) -> tensor<53x{dtype}>
  func.return %s, %r, %k : {c}, tensor<53x{dtype}>, tensor<53x{dtype}>
}}
"""
    program = sw.compile(text, target="opencl", machine=GPU)
    rng = np.random.default_rng(7)
    x, y, z = (
        rng.integers(-2, 2, n).astype(numpy_dtype(dtype)) for n in ((37, 53), (53, 67), (37, 67))
    )
    s, r, k = program(x, y, z)
    with np.errstate(over="ignore"):
        wide = np.float64 if dtype.startswith("f") else x.dtype
        product = x.astype(wide) @ y.astype(wide)
        np.testing.assert_array_equal(s, product.astype(x.dtype) + z)
        np.testing.assert_array_equal(r, y.astype(wide).sum(1).astype(x.dtype))
    np.testing.assert_array_equal(k, x.max(0))
    assert "__local" in program.source


def test_sums_of_groups_are_the_same_each_time(grouped: sw.Compiled) -> None:
    x, y = (np.random.default_rng(k).normal(0, 1, (131, 61)).astype(np.float32) for k in (1, 2))
    first, second = grouped(x, y), grouped(x, y)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_convolution_in_groups() -> None:
    w = "tensor<33x5x3x3xf32>"
    text = f"""\
func.func @main(%x: tensor<2x5x17x19xf32>, %w: {w}) -> tensor<2x33x9x19xf32> {{
  %z = nd.convolution %x, %w {{strides = [2, 1], low = [1, 1], high = [1, 1]}} : (tensor<2x5x17x19xf32>, {w}) -> tensor<2x33x9x19xf32>
  func.return %z : tensor<2x33x9x19xf32>
}}
"""
    rng = np.random.default_rng(3)
    x, k = (rng.integers(-3, 4, n).astype(np.float32) for n in ((2, 5, 17, 19), (33, 5, 3, 3)))
    got = sw.compile(text, target="opencl", machine=GPU)(x, k)
    np.testing.assert_array_equal(got, sw.compile(text)(x, k))


@pytest.mark.parametrize("machine", ["", GPU])
def test_copies_with_strides(machine: str) -> None:
    """What is inserted into larger arrays: long rows, short ones, and no row at all."""
    shapes = ((3, 5, 40), (7, 3, 4), (0, 3))
    kinds = ["x".join(map(str, s)) for s in shapes]
    wider = ["x".join(str(n + 2) for n in s) for s in shapes]
    taken = ", ".join(f"%x{k}: tensor<{kind}xf32>" for k, kind in enumerate(kinds))
    given = ", ".join(f"tensor<{kind}xf32>" for kind in wider)
    rows = "\n".join(
        f"  %z{k} = nd.pad %x{k}, %v {{low = {[1] * len(s)}, high = {[1] * len(s)}}} : "
        f"(tensor<{kinds[k]}xf32>, tensor<f32>) -> tensor<{wider[k]}xf32>"
        for k, s in enumerate(shapes)
    )
    text = f"""\
func.func @main({taken}) -> ({given}) {{
  %v = nd.constant dense<2.0> : tensor<f32>
{rows}
  func.return %z0, %z1, %z2 : {given}
}}
"""
    options: dict[str, Any] = {"machine": machine} if machine else {}
    x = [np.random.default_rng(k).random(s, np.float32) for k, s in enumerate(shapes)]
    program = sw.compile(text, target="opencl", **options)
    for got, each in zip(program(*x), x, strict=True):
        np.testing.assert_array_equal(got, np.pad(each, 1, constant_values=2))
    assert "get_local_size(0)" in program.source


def test_both_versions_of_the_language_have_it(grouped: sw.Compiled) -> None:
    """As OpenCL C 1.2 it was built; PoCL's front end is clang, which knows 3.0 too."""
    here = device.open_device()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyopencl warns of every remark of the compiler
        here.cl.Program(here.context, grouped.source).build(["-cl-std=CL3.0"], cache_dir=False)


TWICE = """\
#m = affine_map<(d0) -> (d0)>
kernel.func @k(%x: tensor<40xf32>, %y: tensor<40xf32>, %z: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 8, lane d0]>} {
  %r = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel"]} ins(%x : tensor<40xf32>) outs(%y : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<40xf32>
  kernel.return %r, %r : tensor<40xf32>, tensor<40xf32>
}
func.func @main(%x: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>) {
  %y = tensor.empty() : tensor<40xf32>
  %z = tensor.empty() : tensor<40xf32>
  %a, %b = kernel.launch @k ins(%x : tensor<40xf32>) outs(%y, %z : tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>, tensor<40xf32>
  func.return %a, %b : tensor<40xf32>, tensor<40xf32>
}
"""


def test_a_copy_that_no_level_is_of() -> None:
    """What `bufferize` adds to a kernel has no levels: the kernel then runs without groups."""
    x = np.arange(40, dtype=np.float32)
    for got in sw.compile(TWICE, target="opencl", machine=GPU)(x):
        np.testing.assert_array_equal(got, -x)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.split(".")[-1])
def test_rows_of_ops_in_groups(family: Any) -> None:
    rows = [(row, row.dtypes[0]) for row in family.ROWS]
    for begin in range(0, len(rows), 12):
        together = Together.of(rows[begin : begin + 12])
        program = sw.compile(
            together.text, target="opencl", machine=GPU, resources=together.resources
        )
        together.check(program)


def test_bytes_are_packed_as_words_only_where_vectors_hold_them() -> None:
    """OpenCL's vectors have 8 lanes: a product in blocks, of bytes, makes no vectors of 32."""
    a = np.arange(48 * 256).reshape(48, 256).astype(np.int8)
    b = np.arange(256 * 64).reshape(256, 64).astype(np.int8)

    def product(a: Any, b: Any) -> Any:
        numbers = (((1,), (0,)), ((), ()))
        return sw.lax.dot_general(a, b, numbers, preferred_element_type=np.int32)

    wide = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(sw.jit(product, target="opencl")(a, b), wide)
