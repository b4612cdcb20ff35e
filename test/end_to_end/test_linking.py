"""Emitted C as others use it: mains in C and C++, built with all warnings, that link a program."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.signature import constant_offsets
from stepwell.runtime.toolchain import find_compiler
from stepwell.testing.opencl import TARGETS

RANDOM = np.random.default_rng(3)
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")

MAIN = r"""
#include "program.h"
#include "second/program.h"
#include <stdio.h>
#include <stdlib.h>

static void serially(const struct sw_runtime *rt, void (*body)(void *, int64_t, int64_t),
                     void *context, int64_t n, int64_t grain) {
  (void)rt;
  (void)grain;
  if (n > 0) body(context, 0, n);
}

static void *read_file(const char *name, size_t bytes) {
  FILE *file = fopen(name, "rb");
  void *found = malloc(bytes);
  if (!file || !found || fread(found, 1, bytes, file) != bytes || fgetc(file) != EOF) exit(2);
  fclose(file);
  return found;
}

static void write_file(const char *name, const void *from, size_t bytes) {
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(from, 1, bytes, file) != bytes) exit(3);
  fclose(file);
}

int main(int argc, char **argv) {
  const struct sw_runtime rt = {serially, 1};
  const int64_t offsets[] = stepwell_predict_OFFSETS;
  const int64_t rows = argc > 1 ? atol(argv[1]) : 0;
  char *constants = (char *)read_file("constants.bin", stepwell_predict_BYTES);
  void *x = read_file("x", (size_t)rows * 24 * sizeof(float));
  int64_t sizes[2];
  stepwell_predict_shapes(&rows, sizes);
  if (sizes[0] != rows || sizes[1] != rows) return 4;
  int64_t *k = (int64_t *)malloc((size_t)rows * sizeof(int64_t));
  float *p = (float *)malloc((size_t)rows * 10 * sizeof(float));
  void *buffers[5 + COUNT];
  int next = 0;
  buffers[next++] = x;
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
    buffers[next++] = constants + offsets[i];
  buffers[next++] = k;
  buffers[next++] = p;
  char *arena = (char *)aligned((size_t)stepwell_predict_arena(&rows) + 64);
  if (stepwell_predict(&rt, buffers, &rows, arena) != 0) return 5;
  write_file("k", k, (size_t)rows * sizeof(int64_t));
  write_file("p", p, (size_t)rows * 10 * sizeof(float));
  float one[3] = {1, 2, 3}, two[3];
  void *both[] = {one, two};
  if (stepwell_double(&rt, both, NULL, NULL) != 0 || two[2] != 6) return 6;
  return 0;
}
"""
ALIGNED = """
static void *aligned(size_t bytes) {
  char *block = (char *)malloc(bytes + 64);
  return block ? block + (64 - (uintptr_t)block % 64) : NULL;
}
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, sw.Compiled]:
    """Two programs to link with each other, the first with weights that are laid out at load."""
    folder = tmp_path_factory.mktemp("linked")
    w, v = (RANDOM.standard_normal(s).astype(np.float32) for s in ((24, 150), (150, 10)))
    b = RANDOM.standard_normal(10).astype(np.float32)
    program = sw.compile(
        """
    func.func @predict(%x: tensor<?x24xf32>) -> (tensor<?xi64>, tensor<?x10xf32>) {
      %w = nd.constant #nd.resource<"w", ""> : tensor<24x150xf32>
      %v = nd.constant #nd.resource<"v", ""> : tensor<150x10xf32>
      %b = nd.constant #nd.resource<"a name, */ with spaces", ""> : tensor<10xf32>
      %h = nd.matmul %x, %w : (tensor<?x24xf32>, tensor<24x150xf32>) -> tensor<?x150xf32>
      %r = nd.relu %h : tensor<?x150xf32>
      %y = nd.matmul %r, %v : (tensor<?x150xf32>, tensor<150x10xf32>) -> tensor<?x10xf32>
      %n = nd.dim %x {axis = 0} : tensor<?x24xf32>
      %c = nd.broadcast %b, sizes(%n) {dims = [1]} : tensor<10xf32> -> tensor<?x10xf32>
      %z = nd.add %y, %c : tensor<?x10xf32>
      %p = nd.softmax %z {axis = 1} : tensor<?x10xf32>
      %k = nd.argmax %p {axis = 1} : tensor<?x10xf32> -> tensor<?xi64>
      func.return %k, %p : tensor<?xi64>, tensor<?x10xf32>
    }""",
        "predict",
        resources={"w": w, "v": v, "a name, */ with spaces": b},
    )
    program.save(folder)
    double = "func.func @double(%x: tensor<3xf32>) -> tensor<3xf32> { %y = nd.add %x, %x : tensor<3xf32> func.return %y : tensor<3xf32> }"
    sw.compile(double, "double").save(folder / "second")
    return folder, program


def _compilers() -> list[Any]:
    zig = (sys.executable, "-m", "ziglang")
    cc = (*find_compiler().command,)
    found = [pytest.param((*cc, "-std=c99"), id="c99")]
    if (command := shutil.which("c++")) is not None:
        found.append(pytest.param((command, "-std=c++11"), id="c++11"))
    if find_spec("ziglang"):
        clang = (*zig, "c++", "-std=c++17", "-fno-sanitize=undefined")
        found.append(pytest.param(clang, id="clang++"))
    return found


@pytest.mark.parametrize("compiler", _compilers())
def test_mains_of_others(
    compiler: Sequence[str], saved: tuple[Path, sw.Compiled], tmp_path: Path
) -> None:
    folder, program = saved
    main = tmp_path / ("main.cc" if "++" in " ".join(compiler) else "main.c")
    body, helper = MAIN.split("int main", 1)
    count = len(program.signature.constants)
    main.write_text(body + ALIGNED + "int main" + helper.replace("COUNT", str(count)))
    objects: list[str] = []
    for number, source in enumerate([folder / "program.c", folder / "second" / "program.c"]):
        objects.append(str(tmp_path / f"{number}.o"))
        plain = ["-std=gnu11", "-O2", "-march=native", "-fno-math-errno"]
        _run([*find_compiler().command, *plain, "-c", "-o", objects[-1], str(source)])
    _run([*compiler, *STRICT, f"-I{folder}", "-c", "-o", str(tmp_path / "main.o"), str(main)])
    # zig would first build libraries of its own, for a quarter of a minute
    linker = find_compiler().command if "ziglang" in compiler else compiler
    _run([*linker, "-o", str(tmp_path / "main"), str(tmp_path / "main.o"), *objects, "-lm"])
    shutil.copy(folder / "constants.bin", tmp_path)
    for rows in (0, 1, 7, 50):
        x = RANDOM.standard_normal((rows, 24)).astype(np.float32)
        (tmp_path / "x").write_bytes(x.tobytes())
        _run([str(tmp_path / "main"), str(rows)], tmp_path)
        k, p = program(x)
        assert (tmp_path / "k").read_bytes() == k.tobytes()
        got = np.fromfile(tmp_path / "p", np.float32).reshape(rows, 10)
        np.testing.assert_allclose(got, p, rtol=1e-5, atol=1e-7)


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert not done.stderr, done.stderr


def test_the_header_names_what_there_is(saved: tuple[Path, sw.Compiled]) -> None:
    """Each constant has a name of its own and its place in constants.bin; results have theirs."""
    folder, program = saved
    text = (folder / "program.h").read_text()
    text = text[: text.index("predict.constants()")]
    listed = re.findall(r"buffers\[\d+\]  constant  (.+?): .* at (\d+) of constants.bin", text)
    assert len({name for name, _ in listed}) == len(listed) == len(program.signature.constants)
    assert all(int(place) % 64 == 0 for _, place in listed)
    offsets, size = constant_offsets(program.signature.constants)
    assert [int(place) for _, place in listed] == offsets
    assert re.search(r"_OFFSETS \{(.*?)\}", text)[1] == ", ".join(map(str, offsets))  # pyright: ignore
    assert re.search(r"_BYTES (\d+)", text)[1] == str(size)  # pyright: ignore
    assert (folder / "constants.bin").stat().st_size == size
    assert re.search(r"output +k: int64", text) and re.search(r"output +p: float32", text)
    assert [r.name for r in program.signature.results] == ["k", "p"]
    assert len({c.name for c in program.signature.constants}) == len(program.signature.constants)


X = np.ones((4, 3), np.float32)


def _named(x: Any, state: Any) -> Any:
    k = snp.argmax(x, axis=-1)
    p = sw.nn.softmax(x)
    state = {"mean": x * 2, "parts": [state + 1, k]}
    if x.shape[0] == 1:
        return p, k, state, x
    return k, p, state, x * 3


def _same(x: Any) -> Any:
    y = x * 2
    return y, y, x


CASES = {
    "variables, keys, expressions": (
        _named,
        (X, X),
        ["", "", "state['mean']", "state['parts'][0]", "state['parts'][1]", ""],
    ),
    "one value twice": (_same, (X,), ["y", "y_1", "x"]),
    "a dict": (lambda x: {"loss": x + 1, "k": [x, x * 3]}, (X,), ["k[0]", "k[1]", "loss"]),
    "an expression": (lambda x: x + 1, (X,), ["add"]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_named_as_the_function_names_them(name: str) -> None:
    function, arguments, wanted = CASES[name]
    found = [r.name for r in sw.jit(function).trace(*arguments).compile().signature.results]
    assert len(set(found)) == len(found)
    assert [f if w else "" for f, w in zip(found, wanted, strict=True)] == wanted


@pytest.mark.parametrize("target", TARGETS)
def test_values_that_are_merged_keep_both_names(target: str) -> None:
    text = """
    func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32> {nd.name = "a total"}) {
      %first = nd.add %x, %x : tensor<8xf32>
      %second = nd.add %x, %x : tensor<8xf32>
      %total = nd.reduce_sum %x {axes = [0]} : tensor<8xf32> -> tensor<f32>
      func.return %first, %second, %x, %total : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>
    }"""
    names = [r.name for r in sw.compile(text, target=target).signature.results]
    assert names == ["first", "second", "x", "a total"]
