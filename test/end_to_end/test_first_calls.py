"""Programs compiled for their first call: other sizes complete them, and results are the same."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.api.compiled import compile_for_call
from stepwell.runtime import cache as caches
from stepwell.runtime import program as programs
from stepwell.runtime.completing import Completion
from stepwell.runtime.parts import Parts
from stepwell.runtime.toolchain import Compiler, ToolchainError

SIZES = 300, 65, 64, 9, 8, 5, 4, 2, 1, 0
"""Of every range of rows that has a version, and the ends of the ranges."""
W = np.random.default_rng(1).standard_normal((40, 100), np.float32)

PRODUCT = """\
func.func @main(%x: tensor<?x40xf32>) -> tensor<?x200xf32> {
  %w = nd.constant #nd.resource<"w"> : tensor<WEIGHTSxf32>
  %y = nd.matmul %x, %w : (tensor<?x40xf32>, tensor<WEIGHTSxf32>) -> tensor<?x200xf32>
  func.return %y : tensor<?x200xf32>
}
"""

SIDE = """\
    %0 = linalg.generic {
      indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]
    } ins(%x, WEIGHTS : tensor<?x40xf32>, tensor<40x200xf32>) outs(%z : tensor<?x200xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %1 = arith.mulf %a, %b : f32
      %2 = arith.addf %c, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<?x200xf32>
    scf.yield %0 : tensor<?x200xf32>
"""
BRANCH = f"""\
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(
  %x: tensor<?x40xf32>,
  %v: tensor<40x200xf32> {{nd.resource = "v"}}, %w: tensor<40x200xf32> {{nd.resource = "w"}}
) -> tensor<?x200xf32> {{
  %c0 = arith.constant 0 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x40xf32>
  %e = tensor.empty(%n) : tensor<?x200xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x200xf32>) -> tensor<?x200xf32>
  %many = arith.cmpi sgt, %n, %c10 : index
  %s = scf.if %many -> (tensor<?x200xf32>) {{
{SIDE.replace("WEIGHTS", "%v")}
  }} else {{
{SIDE.replace("WEIGHTS", "%w")}
  }}
  func.return %s : tensor<?x200xf32>
}}
"""


def given(*shape: int) -> Any:
    """Return numbers of a shape, the same in each run."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def product(x: Any, w: Any) -> Any:
    """Return a product."""
    return x @ w


def of_any_rows(function: Callable[..., Any] = product, *others: Any, **options: Any) -> Any:
    """Return a function of x with 40 columns and any number of rows, and of further arrays."""
    rows = sw.ShapeDtypeStruct((sw.Dim("n"), 40), "float32")
    more = [sw.ShapeDtypeStruct(each, "float32") for each in others or (W.shape,)]
    return sw.jit(function, input_signature=[rows, *more], **options)


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> caches.Cache:
    """Use an empty cache; return it."""
    cache = caches.Cache(tmp_path / "cache")
    for module in ("api.building", "runtime.program", "runtime.weights"):
        name = f"stepwell.{module}.disk_cache"
        monkeypatch.setattr(name, lambda: cache, raising=False)
    return cache


def program_of(function: Any) -> programs.Program:
    """Return the program of a function with one."""
    ((variant, *_), *_) = function._variants._known.values()
    return variant.program._program


def is_complete(function: Any) -> bool:
    """Whether a function's program has code for all sizes."""
    complete = program_of(function).complete
    assert complete is None or isinstance(complete, Completion)
    return complete is None or complete._whole is not None  # pyright: ignore[reportPrivateUsage]


def texts(cache: caches.Cache) -> list[str]:
    """Return the programs in a cache, the shortest first."""
    return sorted((p.read_text() for p in cache.root.glob("program/*/program.c")), key=len)


def check(function: Any, n: int) -> Any:
    """Call a product with n rows; return the result after comparing it with NumPy's."""
    x = given(n, 40)
    result = function(x, W)
    np.testing.assert_allclose(result, x @ W, rtol=1e-4, atol=1e-4)
    return result


def test_only_what_the_first_call_runs_is_compiled(empty: caches.Cache) -> None:
    f = of_any_rows()
    check(f, 300)
    check(f, 1000)
    assert not is_complete(f)
    check(f, 1)
    assert is_complete(f)
    part, whole = texts(empty)
    assert len(part) < 0.7 * len(whole)
    assert f.cache_info().programs == 1


@pytest.mark.parametrize("first", (300, 64, 8, 1))
def test_results_do_not_depend_on_what_is_compiled(empty: caches.Cache, first: int) -> None:
    f = of_any_rows()
    before = check(f, first)
    for n in SIZES:
        check(f, n)
    assert is_complete(f)
    np.testing.assert_array_equal(check(f, first), before)


def test_programs_without_versions_are_whole(empty: caches.Cache) -> None:
    f = sw.jit(snp.tanh, input_signature=[sw.ShapeDtypeStruct((sw.Dim("n"), 40), "float32")])
    for n in SIZES:
        np.testing.assert_allclose(f(given(n, 40)), np.tanh(given(n, 40)), rtol=1e-5)
    assert program_of(f).complete is None
    assert len(set(texts(empty))) == 1


def test_a_program_that_serves_all_sizes_is_kept_as_the_whole(
    empty: caches.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
func.func @main(%x: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %y = nd.tanh %x : tensor<?x40xf32>
  func.return %y : tensor<?x40xf32>
}
"""
    f = compile_for_call(text, "main", [(3, 40)])
    monkeypatch.setattr(Compiler, "build_program", None)
    g = sw.compile(text, "main")
    np.testing.assert_array_equal(g(given(5, 40)), f(given(5, 40)))


def test_sizes_that_do_not_fit_are_refused_before_anything_is_compiled(empty: caches.Cache) -> None:
    f = of_any_rows()
    check(f, 300)
    with pytest.raises((ValueError, TypeError)):
        program_of(f).call(given(1, 41), W)
    assert not is_complete(f)


def test_results_in_place(empty: caches.Cache) -> None:
    f = of_any_rows(out_of_place, (40,))
    for n in SIZES:
        x, b = given(n, 40), given(40)
        out = np.empty((n, 40), np.float32)
        assert f(x, b, out=out) is out
        np.testing.assert_allclose(out, x @ np.outer(b, b) + b, rtol=1e-3, atol=1e-3)


def out_of_place(x: Any, b: Any) -> Any:
    """Return a product and a sum."""
    return x @ (b[:, None] * b) + b


def test_arguments_that_are_assigned_to(empty: caches.Cache) -> None:
    def step(x: Any, w: Any) -> None:
        x[...] = x @ w

    w = given(40, 40)
    f = of_any_rows(step, w.shape)
    for n in SIZES:
        x = given(n, 40)
        want = x @ w
        f(x, w)
        np.testing.assert_allclose(x, want, rtol=1e-3, atol=1e-4)


def test_captured_weights_are_those_of_the_first_call(empty: caches.Cache) -> None:
    w = given(40, 200)
    text = PRODUCT.replace("WEIGHTS", "40x200")
    f = compile_for_call(text, "main", [(300, 40)], resources={"w": w})
    right = w.copy()
    np.testing.assert_allclose(f(given(300, 40)), given(300, 40) @ right, rtol=1e-3, atol=1e-4)
    w[...] = 0
    for n in SIZES:
        np.testing.assert_allclose(f(given(n, 40)), given(n, 40) @ right, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("first", (300, 3))
def test_branches_on_sizes_are_taken(empty: caches.Cache, first: int) -> None:
    """The side that a call does not take is compiled later, with the weights of the first call."""
    weights = {name: given(40, 200) + k for k, name in enumerate("vw")}
    f = compile_for_call(BRANCH, "main", [(first, 40)], resources=weights)
    right = {name: array.copy() for name, array in weights.items()}
    for n in (first, 299 if first == 300 else 4, 300, 3):
        if n == 300:
            for array in weights.values():
                array[...] = 0
        want = given(n, 40) @ right["v" if n > 10 else "w"]
        np.testing.assert_allclose(f(given(n, 40)), want, rtol=1e-3, atol=1e-3)
    part, whole = texts(empty)
    assert len(part) < 0.7 * len(whole)


def test_many_threads_complete_a_program_once(
    empty: caches.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path] = []
    build = Parts.link
    monkeypatch.setattr(Parts, "link", lambda self, a, b: (built.append(a), build(self, a, b))[1])
    f = of_any_rows()
    check(f, 300)
    barrier = threading.Barrier(8)

    def call(number: int) -> None:
        barrier.wait()
        for n in SIZES[number % 4 :]:
            check(f, n)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    assert is_complete(f)
    assert len(built) == 2


def test_a_forked_process_completes_its_own(empty: caches.Cache) -> None:
    f = of_any_rows()
    check(f, 300)
    complete = program_of(f).complete
    assert isinstance(complete, Completion)
    with complete._lock:  # as of another thread that compiles  # pyright: ignore[reportPrivateUsage]
        child = multiprocessing.get_context("fork").Process(target=check, args=(f, 1))
        child.start()
        child.join(60)
    assert child.exitcode == 0
    check(f, 1)


def test_a_compiler_that_fails_later_is_one_message(
    empty: caches.Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = of_any_rows()
    before = check(f, 300)
    with monkeypatch.context() as patched:

        def fail(*_: Any) -> None:
            raise ToolchainError("the C compiler failed")

        patched.setattr(Parts, "link", fail)
        for _ in range(2):
            with pytest.raises(sw.CompileError, match="the C compiler failed"):
                check(f, 1)
        np.testing.assert_array_equal(check(f, 300), before)
    check(f, 1)


def test_a_cache_that_is_deleted_or_read_only(empty: caches.Cache) -> None:
    f, g = of_any_rows(), of_any_rows(lambda x, w: x @ w + 1)
    check(f, 300)
    g(given(300, 40), W)
    caches.remove_folder(empty.root)
    check(f, 1)
    caches.remove_folder(empty.root)
    empty.root.write_text("no folder")
    np.testing.assert_allclose(g(given(1, 40), W), given(1, 40) @ W + 1, rtol=1e-4, atol=1e-4)


def test_a_saved_program_serves_all_sizes(empty: caches.Cache, tmp_path: Path) -> None:
    f = of_any_rows()
    check(f, 300)
    ((variant, *_), *_) = f._variants._known.values()
    variant.program.save(tmp_path / "saved")
    loaded = sw.load(tmp_path / "saved")
    assert "served" not in (tmp_path / "saved" / "program.json").read_text()
    for n in SIZES:
        check(loaded, n)


def test_texts_and_profiles_are_of_the_whole(empty: caches.Cache) -> None:
    f = of_any_rows()
    check(f, 300)
    ((variant, *_), *_) = f._variants._known.values()
    assert "kernel.versions" in variant.program.text("kernels")
    assert "first_fits" not in variant.program.text("kernels")
    assert variant.program.source == texts(empty)[-1]
    assert f.profile(given(1, 40), W).kernels


def test_without_the_extension(empty: caches.Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "load_extension", lambda: None)
    f = of_any_rows()
    check(f, 300)
    for n in SIZES:
        check(f, n)
    assert is_complete(f)


PROCESS = """
import sys
import numpy as np, stepwell as sw
from stepwell.runtime.parts import Parts
built, build = [], Parts.link
Parts.link = lambda self, a, b: (built.append(a), build(self, a, b))[1]
shapes = [sw.ShapeDtypeStruct(s, "float32") for s in ((sw.Dim("n"), 40), (40, 100))]
f = sw.jit(lambda x, w: x @ w, input_signature=shapes)
for n in map(int, sys.argv[1:]):
    x, w = np.ones((n, 40), np.float32), np.ones((40, 100), np.float32)
    assert (f(x, w) == 40).all()
print(len(built))
"""


def test_later_processes_compile_nothing_more(tmp_path: Path) -> None:
    """The cache has a part for the first call, and the whole for the first call it lacks."""
    script = tmp_path / "program.py"
    script.write_text(PROCESS)
    environment = {**os.environ, "STEPWELL_CACHE": str(tmp_path / "cache")}

    def built(*sizes: int) -> int:
        command = [sys.executable, str(script), *map(str, sizes)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        return int(done.stdout)

    assert built(300) == 1
    assert built(1000) == 0
    assert built(1) == 1
    assert built(300, 1, 8) == 0


def test_sizes_that_change_between_launches(empty: caches.Cache) -> None:
    """A kernel whose launches run different versions has all of them."""
    x, w = given(40, 40), given(40, 40)

    def both(x: Any, w: Any) -> Any:
        return x @ w, x[:1] @ w, x[:7] @ w

    f = of_any_rows(both, w.shape)
    for n in (300, 64, 8, 1):
        x = given(n, 40)
        for got, want in zip(f(x, w), (x @ w, x[:1] @ w, x[:7] @ w), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
