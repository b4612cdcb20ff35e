"""kernel.dot_tile on the matrix unit of this machine, where it has one; results beside NumPy's."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw
from stepwell.core.machine import this_machine

RANDOM = np.random.default_rng(3)
KINDS: dict[str, Any] = {"i8": np.int8, "ui8": np.uint8, "bf16": ml_dtypes.bfloat16}
TOTALS = {"i8": "i32", "ui8": "ui32", "bf16": "f32"}
REFUSED = """
import ctypes, numpy as np
import stepwell as sw

class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

small, libc = ctypes.create_string_buffer(4096), ctypes.CDLL(None)
assert libc.sigaltstack(ctypes.byref(Stack(ctypes.addressof(small), 0, 4096)), None) == 0
assert libc.syscall(158, 0x1023, 18) == -1  # signals have no room for tiles, so Linux refuses them
x, w = (np.arange(n, dtype=np.int8).reshape(-1, 64) for n in (70 * 64, 64 * 64))
f = sw.compile('''func.func @main(%x: tensor<70x64xi8>, %w: tensor<64x64xi8>) -> tensor<70x64xi32> {
  %y = nd.dot_general %x, %w contract [1] x [0] {dtype = i32}
    : (tensor<70x64xi8>, tensor<64x64xi8>) -> tensor<70x64xi32>
  func.return %y : tensor<70x64xi32>
}''', machine="l1=8K")
assert "tdpbssd" in f.source
assert (f(x, w) == x.astype(np.int32) @ w.astype(np.int32)).all()
"""
pytestmark = pytest.mark.skipif(
    "amx_bf16" not in this_machine().instructions, reason="no matrix unit that is known"
)


def _array(shape: tuple[int, ...], kind: str) -> Any:
    if kind == "bf16":
        return RANDOM.standard_normal(shape).astype(KINDS[kind])
    limits = np.iinfo(KINDS[kind])
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(KINDS[kind])


def _check(text: str, arrays: list[Any], wide: list[Any], subscripts: str, **given: Any) -> None:
    """Compare a program that uses the unit with the sum of exact products."""
    program = sw.compile(text, **given)
    assert "sw_dot_tile" in program.source
    want, got = np.einsum(subscripts, *wide), program(*arrays)
    if np.issubdtype(got.dtype, np.integer):
        np.testing.assert_array_equal(got, want)
        return
    deep = wide[0].size
    bound = (deep + 2) * 2.0**-24 * np.einsum(subscripts, *map(abs, wide))
    assert (abs(got - want) <= bound).all()


def _wide(arrays: list[Any]) -> list[Any]:
    floats = arrays[0].dtype == ml_dtypes.bfloat16
    return [a.astype(np.float64 if floats else np.int32) for a in arrays]


@pytest.mark.parametrize("kind", ["bf16", "i8", "ui8"])
@pytest.mark.parametrize(
    "m, n, k",
    [
        (16, 64, 512),
        (17, 33, 1024),
        (65, 96, 192),
        (300, 47, 301),
        (1000, 64, 5000),
        (48, 64, 10240),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_products(m: int, n: int, k: int, kind: str, dynamic: bool) -> None:
    rows, into = "?" if dynamic else m, TOTALS[kind]
    x, w = f"tensor<{rows}x{k}x{kind}>", f"tensor<{k}x{n}x{kind}>"
    y = f"tensor<{rows}x{n}x{into}>"
    text = f"""func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %h = nd.dot_general %x, %w contract [1] x [0] {{dtype = {into}}} : ({x}, {w}) -> {y}
      func.return %h : {y}
    }}"""
    arrays = [_array((m, k), kind), _array((k, n), kind)]
    for threads in (1, 2):
        _check(text, arrays, _wide(arrays), "mk,kn->mn", machine=f"threads={threads}")


@pytest.mark.parametrize("kind", ["bf16", "i8"])
@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("bmk,bkn->bmn", ((3, 70, 128), (3, 128, 40))),
        ("km,kn->mn", ((128, 70), (128, 64))),
        ("mk,nk->mn", ((70, 128), (64, 128))),
        ("mbk,nbk->bmn", ((70, 3, 64), (40, 3, 64))),
    ],
)
def test_batches_and_transposed_operands(
    subscripts: str, shapes: tuple[tuple[int, ...], ...], kind: str
) -> None:
    arrays = [_array(shape, kind) for shape in shapes]
    first, second = subscripts.partition("->")[0].split(",")
    batch = [(first.index(c), second.index(c)) for c in "b" if c in first]
    k = first.index("k"), second.index("k")
    types = [f"tensor<{'x'.join(map(str, s))}x{kind}>" for s in shapes]
    want = np.einsum(subscripts, *_wide(arrays))
    y = f"tensor<{'x'.join(map(str, want.shape))}x{TOTALS[kind]}>"
    along = f"batch [{batch[0][0]}] x [{batch[0][1]}] " if batch else ""
    text = f"""func.func @main(%x: {types[0]}, %w: {types[1]}) -> {y} {{
      %h = nd.dot_general %x, %w {along}contract [{k[0]}] x [{k[1]}] {{dtype = {TOTALS[kind]}}}
        : ({types[0]}, {types[1]}) -> {y}
      func.return %h : {y}
    }}"""
    _check(text, arrays, _wide(arrays), subscripts)


def test_threads_of_the_caller_have_tiles_of_their_own() -> None:
    x, w = _array((64, 256), "i8"), _array((256, 64), "i8")
    f = sw.jit(lambda x, w: np.matmul(x, w, dtype=np.int32))
    want, wrong = x.astype(np.int32) @ w.astype(np.int32), list[int]()

    def run() -> None:
        wrong.extend(n for n in range(50) if (f(x, w) != want).any())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_process_without_permission_computes_without_tiles() -> None:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
