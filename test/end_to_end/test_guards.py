"""Modules of buffers and loops touch nothing but their arrays, whatever they compute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sanitizing
from guarded_forms import FORMS, KERNELS

import stepwell as sw
from stepwell.core.guards import OutOfBounds
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.driver.lowering import choose_entry
from stepwell.driver.registry import registry
from stepwell.testing.opencl import TARGETS

HERE = Path(__file__).parent.parent
CONSTANTS = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8))


def program(body: str, top: str = "") -> str:
    """Spell a program whose body begins at line 11; %i is the number that its caller gives."""
    return f"""{top}func.func @main(%x: memref<?xf32>, %at: memref<2xi64>,
    %b: memref<64xi8>, %y: memref<4xf32> {{kernel.role = "output"}}) {{
{CONSTANTS}
  %f = arith.constant 1.0 : f32
  %l = memref.load %at[%c0] : memref<2xi64>
  %i = arith.index_cast %l : i64 to index
{body}
  func.return
}}
"""


def refused(text: str, target: str, *numbers: int, size: int = 8) -> str:
    """Run a program in all ways with a first number that fits and others that must be refused."""
    compiled = sw.compile(text, target=target, name="m.mlir")
    module = parse_module(registry().context(), text, "m.mlir")
    choose_entry(module, "main")
    said = ""
    for number in numbers:
        given = (
            np.arange(size, dtype=np.float32),
            np.array([number, 3]),
            np.arange(64, dtype=np.int8),
        )
        if number == numbers[0]:
            y = np.zeros(4, np.float32)
            Interpreter(module).call("main", [*given, y])
            np.testing.assert_array_equal(compiled(*given), y)
            continue
        with pytest.raises(OutOfBounds) as interpreted:
            Interpreter(module).call("main", [*given, np.zeros(4, np.float32)])
        with pytest.raises(OutOfBounds) as found:
            compiled(*given)
        assert str(found.value) == str(interpreted.value)
        assert found.value.place is not None
        said = said or str(found.value)
    return said


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_what_the_host_touches(form: str, target: str) -> None:
    """Each form fits, or is refused in the same words by compiled programs and the interpreter."""
    body, numbers, words = FORMS[form]
    said = refused(program(body), target, *numbers)
    assert words in said
    assert said.startswith("m.mlir:1")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", KERNELS)
def test_what_kernels_touch(form: str, target: str) -> None:
    """The same in kernels, whose part of an OpenCL program runs on the device."""
    body, numbers, words = KERNELS[form]
    types = "memref<?xf32>, memref<2xi64>, memref<64xi8>"
    launch = f"  kernel.launch @k ins(%x, %at, %b : {types}) outs(%y : memref<4xf32>)"
    top = f"""kernel.func @k(%x: memref<?xf32>, %at: memref<2xi64>, %b: memref<64xi8>, %y: memref<4xf32>) {{
{CONSTANTS}
  %f = arith.constant 1.0 : f32
  scf.parallel (%z) = (%c0) to (%c1) step (%c1) {{
  %l = memref.load %at[%z] : memref<2xi64>
  %i = arith.index_cast %l : i64 to index
{body}
  scf.reduce
  }}
  kernel.return
}}
"""
    if "scf.parallel" in body:  # one within another is written by no one
        top = top.replace("  scf.parallel (%z) = (%c0) to (%c1) step (%c1) {\n", "", 1)
        top = top.replace("[%z]", "[%c0]").replace("  scf.reduce\n  }\n  kernel", "  kernel")
    assert words in refused(program(launch, top), target, *numbers)


REFUSED = {
    "an input that a loop carries": (
        "%r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> (memref<?xf32>) {\n"
        "memref.store %f, %a[%k] : memref<?xf32>\nscf.yield %a : memref<?xf32>\n}",
        "%x is an input of @main, but may be written",
    ),
    "a buffer that outlives its loop": (
        "%s = memref.alloc() : memref<4xf32>\n"
        "%r = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %s) -> (memref<4xf32>) {\n"
        "%t = memref.alloc() : memref<4xf32>\nscf.yield %t : memref<4xf32>\n}",
        "a buffer that is allocated in a loop or branch cannot leave it",
    ),
    "a constant": (
        "%g = memref.get_global @c : memref<4xf32>\nmemref.store %f, %g[%c0] : memref<4xf32>",
        "@c is constant, but may be written",
    ),
    "more than the stack holds": (
        "\n".join(
            f"%t{k} = memref.alloc() : memref<65536xf32>\n"
            f"memref.store %f, %t{k}[%c0] : memref<65536xf32>"
            for k in range(12)
        ),
        "bytes on the stack, more than",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """What would be written though it is another's, or outlive its memory, is an error."""
    body, words = REFUSED[case]
    top = 'memref.global "private" constant @c : memref<4xf32> = dense<1.0>\n'
    with pytest.raises(sw.CompileError, match=words):
        sw.compile(program(body, top))


BOUNDARY = {
    "elements have no other size": (
        'func.func @main(%x: memref<4xf32> {nd.dtype = "i8"}) {\nfunc.return\n}',
        "elements of type f32, not i8",
    ),
    "arrays have no gaps": (
        "func.func @main(%x: memref<4xf32, strided<[100]>>) {\nfunc.return\n}",
        "contiguous and row-major",
    ),
    "one arena": (
        'func.func @main(%a: memref<8xi8> {kernel.role = "arena"}, '
        '%b: memref<800xi8> {kernel.role = "arena"}) {\nfunc.return\n}',
        "has 2 arenas",
    ),
    "sizes are as many as there are": (
        'func.func @main(%x: memref<?xf32>, %y: memref<?xf32> {kernel.role = "output"}) {\n'
        "func.return\n}\nfunc.func @main.shapes(%n: index) -> (index, index) {\n"
        "func.return %n, %n : index, index\n}",
        "gives 1 index",
    ),
    "sizes come from nothing else": (
        'func.func @main(%x: memref<?xf32>, %y: memref<?xf32> {kernel.role = "output"}) {\n'
        "func.return\n}\nfunc.func @main.shapes(%n: index, %m: index) -> (index) {\n"
        "func.return %n : index\n}",
        "takes the sizes of @main that are not known: 1 index",
    ),
    "sizes do not change": (
        'memref.global "private" @g : memref<1xindex> = uninitialized\n'
        'func.func @main(%x: memref<?xf32>, %y: memref<?xf32> {kernel.role = "output"}) {\n'
        "func.return\n}\nfunc.func @main.shapes(%n: index) -> (index) {\n"
        "%c = arith.constant 0 : index\n%g = memref.get_global @g : memref<1xindex>\n"
        "%m = memref.load %g[%c] : memref<1xindex>\nfunc.return %m : index\n}",
        "has no place in @main.shapes",
    ),
    "nothing calls itself": (
        "func.func @main(%x: memref<4xf32>) {\nfunc.call @f() : () -> ()\nfunc.return\n}\n"
        "func.func private @f() {\nfunc.call @f() : () -> ()\nfunc.return\n}",
        "calls itself",
    ),
}


@pytest.mark.parametrize("target", ["c", "opencl"])
@pytest.mark.parametrize("case", BOUNDARY)
def test_what_a_caller_is_told(case: str, target: str) -> None:
    """A program and its caller agree on the size of every array."""
    text, words = BOUNDARY[case]
    with pytest.raises(sw.CompileError, match=words):
        sw.compile(text, target=target)


def test_arena_is_as_large_as_it_says() -> None:
    """An arena of a stated size is not smaller, whatever @main.arena says."""
    text = """func.func @main(%x: memref<?xf32>, %y: memref<1xf32> {kernel.role = "output"},
    %a: memref<4096xi8> {kernel.role = "arena"}) {
  func.return
}
func.func @main.arena(%n: index) -> index {
  func.return %n : index
}
"""
    compiled = sw.compile(text, name="m.mlir")
    assert compiled(np.zeros(4096, np.float32)).shape == (1,)
    with pytest.raises(OutOfBounds, match="the arena would have 16 bytes, not 4096 or more"):
        compiled(np.zeros(16, np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_memory_is_zero_at_first(target: str) -> None:
    """What was never written tells nothing of the process."""
    text = """func.func @main(%y: memref<64xf32> {kernel.role = "output"}, %z: memref<64xf32> {kernel.role = "output"}, %a: memref<256xi8> {kernel.role = "arena"}) {
  kernel.launch @k ins(%a : memref<256xi8>) outs(%y : memref<64xf32>)
  func.return
}
kernel.func @k(%a: memref<256xi8>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %v = memref.view %a[%c0][] : memref<256xi8> to memref<64xf32>
  memref.copy %v, %y : memref<64xf32> to memref<64xf32>
  %f = arith.constant 1.0 : f32
  memref.store %f, %v[%c0] : memref<64xf32>
  kernel.return
}
"""
    compiled = sw.compile(text, target=target)
    out = np.full((2, 64), 7, np.float32)
    for _ in range(2):
        y, z = compiled(out=tuple(out))
        assert not y.any()
        assert not z.any()


def test_structured_ops_on_buffers() -> None:
    """What the compiler makes of them is compared as well: nothing tells that their sizes agree."""
    maps = ", ".join(["affine_map<(d0) -> (d0)>"] * 2)
    text = f"""func.func @main(%x: memref<?xf32>, %y: memref<16xf32> {{kernel.role = "output"}}) {{
  kernel.launch @a ins(%x : memref<?xf32>) outs(%y : memref<16xf32>)
  func.return
}}
kernel.func @a(%x: memref<?xf32>, %y: memref<16xf32>) attributes {{kernel.shared = 1}} {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins(%x : memref<?xf32>) outs(%y : memref<16xf32>) {{
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }}
  kernel.return
}}
"""
    compiled = sw.compile(text, name="m.mlir")
    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(compiled(x), x)
    with pytest.raises(OutOfBounds, match=r"m\.mlir:6:3: .*axis 0 of %x has no place"):
        compiled(x[:3])


def test_kernels_launched_in_loops() -> None:
    """A kernel in an iteration of another's parallel loop runs there, with its threads or none."""
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4))
    head = "scf.parallel (%k) = (%c0) to (%c4) step (%c1) {"
    arrays = "memref<16xf32>"
    text = f"""func.func @main(%x: {arrays}, %y: {arrays} {{kernel.role = "output"}}) {{
  kernel.launch @a ins(%x : {arrays}) outs(%y : {arrays})
  func.return
}}
kernel.func @a(%x: {arrays}, %y: {arrays}) {{
  {constants}
  {head}
    kernel.launch @b ins(%x, %k : {arrays}, index) outs(%y : {arrays})
    scf.reduce
  }}
  kernel.return
}}
kernel.func @b(%x: {arrays}, %o: index, %y: {arrays}) {{
  {constants}
  {head}
    %p = arith.muli %o, %c4 : index
    %q = arith.addi %p, %k : index
    %v = memref.load %x[%q] : {arrays}
    memref.store %v, %y[%q] : {arrays}
    scf.reduce
  }}
  kernel.return
}}
"""
    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(sw.compile(text)(x), x)


def test_it_can_be_turned_off() -> None:
    """Who trusts a text pays nothing; nor does what the compiler makes itself."""
    text = program(FORMS["store"][0])
    checked, trusted = sw.compile(text), sw.compile(text, check_bounds=False)
    assert "sw_fault" in checked.source
    assert "sw_fault" not in trusted.source
    assert not trusted.signature.guards
    made = sw.compile(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "%y = nd.neg %x : tensor<?xf32>\nfunc.return %y : tensor<?xf32>\n}"
    )
    assert "sw_fault" not in made.source


def test_a_module_cannot_turn_it_off() -> None:
    """What a module says of itself is not heeded."""
    text = program(FORMS["store"][0])
    assert "sw_fault" in sw.compile(f"module attributes {{kernel.unguarded}} {{\n{text}\n}}").source


def test_saved_programs_say_the_same(tmp_path: Path) -> None:
    """A loaded program ends with the same words; a program in C is told them too."""
    sw.compile(program(FORMS["store"][0]), name="m.mlir").save(tmp_path)
    loaded = sw.load(tmp_path)
    given = np.zeros(2, np.float32), np.array([9, 0]), np.zeros(64, np.int8)
    with pytest.raises(OutOfBounds, match=r"memref\.store: axis 0 of %y has no place 9"):
        loaded(*given)
    assert "stepwell_main_fault(int64_t *values)" in (tmp_path / "program.h").read_text()


def test_tools_say_the_line(tmp_path: Path) -> None:
    """`stepwell run` ends with 1 and one message at the place of the access."""
    (tmp_path / "m.mlir").write_text(program("memref.store %f, %y[%c8] : memref<4xf32>"))
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    command = [sys.executable, "-m", "stepwell.tools.main", "run", str(tmp_path / "m.mlir")]
    found = subprocess.run([*command, "--random"], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "error: memref.store: axis 0 of memref<4xf32> has no place 8" in found.stderr


def guarded(*arguments: str, folder: Path) -> str:
    """Run altered programs with the sanitizers; return what was said."""
    if (variables := sanitizing.environment(folder)) is None:
        pytest.skip("the C compiler has no sanitizers")
    variables["ASAN_OPTIONS"] += ":allocator_may_return_null=1"  # of what is larger than memory
    command = [sys.executable, str(HERE / "guarded_programs.py"), *arguments]
    found = subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=3000, check=False
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-6000:]
    return found.stdout


def test_altered_programs(tmp_path: Path) -> None:
    """A sample of programs with other numbers in them: the sanitizers find nothing."""
    assert " 0 wrong" in guarded("--count", "4", "--programs", "2", "--seed", "1", folder=tmp_path)


@pytest.mark.slow
def test_many_altered_programs(tmp_path: Path) -> None:
    """The same for longer, of what rows of ops become on both floors."""
    said = guarded("--count", "2000", "--programs", "120", "--seed", "7", folder=tmp_path)
    assert " 0 wrong" in said
