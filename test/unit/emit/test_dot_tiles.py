"""kernel.dot_tile: the text for units that multiply whole tiles, run with these in plain C.

No machine here has them. `tiles_emulated.h` says what the instructions do and ends the program
where a tile is not configured for what is asked of it.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(11)
X86 = platform.machine() in ("x86_64", "AMD64")
UNIT = "instructions=amx_int8+amx_bf16,vector_bits=512,vector_registers=32,threads=1"
KINDS: dict[str, Any] = {
    "i8": np.int8,
    "ui8": np.uint8,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "ui32": np.uint32,
    "f32": np.float32,
}
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class _Runtime(ctypes.Structure):
    _fields_ = (("parallel", PARALLEL), ("threads", ctypes.c_int32))


def _text(m: int, n: int, k: int, kind: str, into: str) -> str:
    """Spell a product; rows of bytes lie across the sum where there are an odd number of them."""
    rows = f"{k}x{m}" if _lies_across(m, kind) else f"{m}x{k}"
    x, w, y = f"tensor<{rows}x{kind}>", f"tensor<{k}x{n}x{kind}>", f"tensor<{m}x{n}x{into}>"
    axis = 0 if _lies_across(m, kind) else 1
    return f"""
    func.func @main(%x: {x}, %w: {w}, %c: {y}) -> {y} {{
      %h = nd.dot_general %x, %w contract [{axis}] x [0] {{dtype = {into}}} : ({x}, {w}) -> {y}
      %r = nd.add %h, %c : {y}
      func.return %r : {y}
    }}"""


def _lies_across(m: int, kind: str) -> bool:
    return kind != "bf16" and m % 2 == 1


def _emulated(source: str, folder: Path) -> ctypes.CDLL:
    """Compile a program with the emulated instructions."""
    (folder / "k.c").write_text(source)
    header = Path(__file__).with_name("tiles_emulated.h")
    command = ["cc", "-std=gnu11", "-O1", "-w", "-fwrapv", "-fno-strict-aliasing", "-shared"]
    command += ["-fPIC", "-include", str(header), "-o", str(folder / "k.so"), str(folder / "k.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return ctypes.CDLL(str(folder / "k.so"))


def _run(library: ctypes.CDLL, arrays: list[Any]) -> None:
    """Call the entry on buffers, the last of which is the result; one thread does all."""

    def parallel(_: Any, body: Any, context: Any, count: int, grain: int) -> None:
        body(context, 0, count)

    runtime = _Runtime(PARALLEL(parallel), 1)
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    library.stepwell_main_arena.restype = ctypes.c_int64
    arena = ctypes.create_string_buffer(library.stepwell_main_arena(None) + 64)
    assert library.stepwell_main(ctypes.byref(runtime), pointers, None, arena) == 0


@pytest.mark.parametrize(
    "m, n, k, kind, into",
    [
        (67, 131, 257, "bf16", "f32"),
        (32, 32, 5000, "bf16", "f32"),
        (70, 67, 131, "i8", "i32"),
        (45, 33, 9000, "ui8", "ui32"),
        (100, 47, 21, "i8", "i32"),
    ],
)
def test_tiles_compute_products(
    m: int, n: int, k: int, kind: str, into: str, tmp_path: Path
) -> None:
    text = _text(m, n, k, kind, into)
    program = sw.compile(text, machine=UNIT)
    assert "sw_dot_tile" in program.source
    if kind == "bf16":
        x, w = (RANDOM.standard_normal(s).astype(KINDS[kind]) for s in ((m, k), (k, n)))
        c = RANDOM.standard_normal((m, n)).astype(np.float32)
    else:
        limits = np.iinfo(KINDS[kind])
        x, w = (
            RANDOM.integers(limits.min, limits.max + 1, s).astype(KINDS[kind])
            for s in ((m, k), (k, n))
        )
        c = RANDOM.integers(0, 2**31, (m, n)).astype(KINDS[into])
    library = _emulated(program.source, tmp_path)
    got = np.zeros((m, n), KINDS[into])
    rows = np.ascontiguousarray(x.T) if _lies_across(m, kind) else x
    _run(library, [rows, w, c, got])
    assert ctypes.c_int.in_dll(library, "tile_instructions").value > 0
    if kind == "bf16":
        a, b = (v.astype(np.float64) for v in (x, w))
        bound = (k + 2) * 2.0**-24 * (abs(a) @ abs(b) + abs(c))
        for y in (got, program(rows, w, c)):
            assert (abs(y - (a @ b + c)) <= bound).all()
        return
    want = (x.astype(np.int64) @ w.astype(np.int64) + c).astype(KINDS[into])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(program(rows, w, c), want)


@pytest.mark.skipif(not X86, reason="instructions of x86")
def test_the_instructions_assemble(tmp_path: Path) -> None:
    """The text as it is on a machine that has them is what the assembler knows."""
    for kind, into, name in (("bf16", "f32", "tdpbf16ps"), ("i8", "i32", "tdpbssd")):
        program = sw.compile(_text(70, 67, 131, kind, into), machine=UNIT)
        (tmp_path / "k.c").write_text(program.source)
        flags = ["-march=sapphirerapids", "-std=gnu11", "-O2", "-w", "-c"]
        command = ["cc", *flags, "-o", str(tmp_path / "k.o"), str(tmp_path / "k.c")]
        done = subprocess.run(command, capture_output=True, text=True)
        if "bad value" in done.stderr or "unknown target" in done.stderr:
            pytest.skip("a compiler older than the instructions")
        assert done.returncode == 0, done.stderr[-2000:]
        assert name in program.source


def test_few_rows_or_columns_do_not_fill_a_tile() -> None:
    for m, n in ((15, 64), (64, 15)):
        text = kernels_for(_text(m, n, 999, "i8", "i32"), UNIT)
        assert "pack 0 as biased_dot" in text  # registers, whose instruction takes one sign
