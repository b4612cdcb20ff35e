"""kernel.dot4 in C: with the machine's instructions and without, the same as in the interpreter."""

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
    "no VNNI": ("-mno-avx512vnni", "-mno-avxvnni"),
    "AVX2": ("-mno-avx512f", "-mno-avxvnni", "-Wno-psabi"),
    "SSE2": ("-mno-avx", "-Wno-psabi"),
}
SIGNS = [(x, w) for x in ("", "unsigned ") for w in ("", "unsigned ")]
RANDOM = np.random.default_rng(3)


def _program(lanes: int) -> str:
    """Spell a kernel of one entry whose outputs are the dot products for all signs."""
    kind = f"vector<{lanes}xi32>" if lanes else "i32"
    size = max(lanes, 1)
    memory = f"memref<{size}xi32>"
    load = "vector.load" if lanes else "memref.load"
    store = "vector.store" if lanes else "memref.store"
    of = f" : {memory}, {kind}" if lanes else f" : {memory}"
    dots = "\n".join(
        f"%y{n} = kernel.dot4 %t, {x}%a, {w}%b : {kind}\n{store} %y{n}, %o{n}[%c]{of}"
        for n, (x, w) in enumerate(SIGNS)
    )
    outs = ", ".join(f'%o{n}: {memory} {{kernel.role = "output"}}' for n in range(len(SIGNS)))
    ins = ", ".join(f'%{x}: {memory} {{kernel.role = "input"}}' for x in "zxw")
    types = ", ".join([memory] * 3)
    return f"""
    kernel.func @k(%z: {memory}, %x: {memory}, %w: {memory},
        {", ".join(f"%o{n}: {memory}" for n in range(len(SIGNS)))}) {{
      %c = arith.constant 0 : index
      %t = {load} %z[%c]{of}
      %a = {load} %x[%c]{of}
      %b = {load} %w[%c]{of}
      {dots}
      kernel.return
    }}
    func.func @main({ins}, {outs}, %arena: memref<0xi8> {{kernel.role = "arena"}}) {{
      kernel.launch @k ins(%z, %x, %w : {types})
        outs({", ".join(f"%o{n}" for n in range(len(SIGNS)))} : {", ".join([memory] * len(SIGNS))})
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
                v.view(np.uint8 if sign else np.int8).astype(np.int64).reshape(size, 4)
                for v, sign in ((arrays[1], x), (arrays[2], w))
            )
            sums = arrays[0].astype(np.int64) + (a * b).sum(axis=1)
            np.testing.assert_array_equal(got[3 + n], sums.astype(np.int32))


@pytest.mark.skipif(not X86, reason="an instruction of x86")
def test_the_instruction_is_used_where_there_is_one(compiled: Any, tmp_path: Path) -> None:
    flags = ("-march=icelake-server", "-S", "-o", str(tmp_path / "k.s"))
    text = compiled(_program(16)).text.source
    (tmp_path / "k.c").write_text(text)
    command = ["cc", "-std=gnu11", "-O2", *flags, str(tmp_path / "k.c")]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert (tmp_path / "k.s").read_text().count("vpdpbusd") >= 2
