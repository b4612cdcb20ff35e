"""kernel.dot in C: with the machine's instructions and without, the same as in the interpreter."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

X86 = platform.machine() in ("x86_64", "AMD64")
MACHINES = {
    "this machine": (),
    "no BF16": ("-mno-avx512bf16",),
    "no VNNI": ("-mno-avx512vnni", "-mno-avxvnni"),
    "AVX2": ("-mno-avx512f", "-mno-avxvnni", "-Wno-psabi"),
    "SSE2": ("-mno-avx", "-Wno-psabi"),
}
SIGNS = [(x, w) for x in ("i8", "ui8") for w in ("i8", "ui8")]
RANDOM = np.random.default_rng(3)


def _program(lanes: int, total: str = "i32", elements: Any = SIGNS) -> str:
    """Spell a kernel of one entry whose outputs are the dot products of all these elements."""
    kind, sum = (f"vector<{lanes}x{t}>" if lanes else t for t in ("i32", total))
    size = max(lanes, 1)
    memory, sums = f"memref<{size}xi32>", f"memref<{size}x{total}>"
    load = "vector.load" if lanes else "memref.load"
    store = "vector.store" if lanes else "memref.store"
    of = f" : {memory}, {kind}" if lanes else f" : {memory}"
    to = f" : {sums}, {sum}" if lanes else f" : {sums}"
    dots = "\n".join(
        f"%y{n} = kernel.dot %t, %a of {x}, %b of {w} : {kind} -> {sum}\n{store} %y{n}, %o{n}[%c]{to}"
        for n, (x, w) in enumerate(elements)
    )
    many = range(len(elements))
    outs = ", ".join(f'%o{n}: {sums} {{kernel.role = "output"}}' for n in many)
    types = [sums, memory, memory]
    ins = ", ".join(
        f'%{x}: {type} {{kernel.role = "input"}}' for x, type in zip("zxw", types, strict=True)
    )
    return f"""
    kernel.func @k(%z: {sums}, %x: {memory}, %w: {memory},
        {", ".join(f"%o{n}: {sums}" for n in many)}) {{
      %c = arith.constant 0 : index
      %t = {load} %z[%c]{to}
      %a = {load} %x[%c]{of}
      %b = {load} %w[%c]{of}
      {dots}
      kernel.return
    }}
    func.func @main({ins}, {outs}, %arena: memref<0xi8> {{kernel.role = "arena"}}) {{
      kernel.launch @k ins(%z, %x, %w : {", ".join(types)})
        outs({", ".join(f"%o{n}" for n in many)} : {", ".join([sums] * len(many))})
      func.return
    }}
    """


def _words(size: int) -> Any:
    """Return words of bytes at random, and of the largest and the least."""
    bytes = RANDOM.choice([-128, -127, -1, 0, 1, 127, *range(-60, 60)], (size, 4))
    bytes[0] = -128
    return np.ascontiguousarray(bytes.astype(np.int8)).view(np.int32)[:, 0]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("lanes", [0, 1, 4, 8, 16])
def test_dots_are_exact(lanes: int, machine: str, compiled: Any) -> None:
    if machine != "this machine" and not X86:
        pytest.skip("flags of x86")
    program = compiled(_program(lanes), *MACHINES[machine])
    size = max(lanes, 1)
    for _ in range(8):
        arrays = [_words(size), _words(size), _words(size)]
        arrays[0][-1] = np.iinfo(np.int32).max - 5  # sums wrap around
        outputs = [np.zeros(size, np.int32) for _ in SIGNS]
        got = program.c("main", [*arrays, *outputs])
        want = program.interpreted("main", [*arrays, *outputs, np.zeros(0, np.int8)])
        for n, (x, w) in enumerate(SIGNS):
            np.testing.assert_array_equal(got[3 + n], want[3 + n])
            a, b = (
                v.view(np.uint8 if sign == "ui8" else np.int8).astype(np.int64).reshape(size, 4)
                for v, sign in ((arrays[1], x), (arrays[2], w))
            )
            sums = arrays[0].astype(np.int64) + (a * b).sum(axis=1)
            np.testing.assert_array_equal(got[3 + n], sums.astype(np.int32))


HALVES = ("bf16", "f16")


@pytest.mark.parametrize("machine", ["this machine", "no BF16", "AVX2"])
@pytest.mark.parametrize("lanes", [0, 1, 4, 8, 16])
def test_floats_are_added_up_one_after_the_other(lanes: int, machine: str, compiled: Any) -> None:
    """Each product is exact and each sum rounded once, the second product's first."""
    if machine != "this machine" and not X86:
        pytest.skip("flags of x86")
    program = compiled(_program(lanes, "f32", [(x, x) for x in HALVES]), *MACHINES[machine])
    size = max(lanes, 1)
    for element in HALVES:
        for _ in range(4):
            z = RANDOM.standard_normal(size).astype(np.float32)
            x, w = (_halves(size, element) for _ in range(2))
            outputs = [np.zeros(size, np.float32) for _ in HALVES]
            got = program.c("main", [z, x, w, *outputs])
            arguments = [z, x, w, *outputs, np.zeros(0, np.int8)]
            want = program.interpreted("main", arguments)
            k = 3 + HALVES.index(element)
            np.testing.assert_array_equal(got[k], want[k])
            a, b = (_values(v, element) for v in (x, w))
            one = (z + a[:, 1] * b[:, 1]).astype(np.float32)
            np.testing.assert_array_equal(got[k], (one + a[:, 0] * b[:, 0]).astype(np.float32))


def _halves(size: int, element: str) -> Any:
    """Return words of two floats each, among them infinities, and a NaN in the last."""
    wide = (RANDOM.standard_normal((size, 2)) * 4).astype(np.float32)
    if size > 2:
        wide[-2], wide[-1, 0] = np.inf, np.nan
    if element == "f16":
        return np.ascontiguousarray(wide.astype(np.float16)).view(np.int32)[:, 0]
    upper = (wide.view(np.uint32) >> 16).astype(np.uint16)
    return np.ascontiguousarray(upper).view(np.int32)[:, 0]


def _values(words: Any, element: str) -> Any:
    if element == "f16":
        return words.view(np.float16).reshape(-1, 2).astype(np.float64)
    wide = (words.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return wide.reshape(-1, 2).astype(np.float64)


@pytest.mark.skipif(not X86, reason="an instruction of x86")
def test_the_instruction_is_used_where_there_is_one(compiled: Any, tmp_path: Path) -> None:
    flags = ("-march=icelake-server", "-S", "-o", str(tmp_path / "k.s"))
    text = compiled(_program(16)).text.source
    (tmp_path / "k.c").write_text(text)
    command = ["cc", "-std=gnu11", "-O2", *flags, str(tmp_path / "k.c")]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert (tmp_path / "k.s").read_text().count("vpdpbusd") >= 2
