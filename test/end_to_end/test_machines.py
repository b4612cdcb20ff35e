"""Every machine that is described: schedules and ops give the same numbers for all of them.

A program is run with the machine's own instructions where the host has them, and with the host's
where it has not; then it is compiled for the machine's own too, by the ziglang wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_rows import ROWS

import stepwell as sw
import stepwell.numpy as snp
from stepwell.api.compiled import Compiled
from stepwell.core.machine import VARIABLE, Machine, this_machine
from stepwell.core.source import Source
from stepwell.core.targets import machine_for
from stepwell.driver.lowering import Translation, translate
from stepwell.runtime.program import load_program, write_program
from stepwell.testing.machines import MACHINES, Described, can_cross_compile
from stepwell.testing.op_rows.row import Array
from stepwell.testing.op_rows.together import Together
from stepwell.tools.main import main

RANDOM = np.random.default_rng(21)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return sw.nn.softmax(q @ snp.swapaxes(k, -1, -2), axis=-1) @ v


def _softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _convolved(x: Array, w: Array, step: int = 1, groups: int = 1) -> Array:
    """Return a convolution without padding: [n, c, h, w] by [f, c / groups, kh, kw]."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::step, ::step]
    parts = [
        np.einsum("nchwij,fcij->nfhw", part, some, optimize=True)
        for part, some in zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    return np.concatenate(parts, 1)


WEIGHTS = floats(301, 215)

Function = Callable[..., Any]
SCHEDULES: Mapping[str, tuple[Function, Function, Sequence[Array]]] = {
    "blocks": (lambda a, b: a @ b, lambda a, b: a @ b, (floats(259, 301), floats(301, 517))),
    "blocks of transposed operands": (
        lambda a, b: a.T @ b.T + 1,
        lambda a, b: a.T @ b.T + 1,
        (floats(300, 97), floats(200, 300)),
    ),
    "few rows": (lambda a, b: a @ b, lambda a, b: a @ b, (floats(3, 1000), floats(1000, 210))),
    "a matrix and a vector": (
        lambda a, x: (a @ x, x[:501] @ a),
        lambda a, x: (a @ x, x[:501] @ a),
        (floats(501, 703), floats(703)),
    ),
    "bands": (
        _attention,
        lambda q, k, v: _softmax(q @ k.swapaxes(-1, -2)) @ v,
        (floats(2, 300, 16) / 4, floats(2, 197, 16), floats(2, 197, 33)),
    ),
    "windows": (
        sw.nn.conv,
        _convolved,
        (floats(1, 32, 18, 18), floats(32, 32, 3, 3)),
    ),
    "windows with steps": (
        lambda x, w: sw.nn.conv(x, w, stride=2),
        lambda x, w: _convolved(x, w, 2),
        (floats(1, 17, 21, 23), floats(19, 17, 5, 5)),
    ),
    "a window for each channel": (
        lambda x, w: sw.nn.conv(x, w, groups=40),
        lambda x, w: _convolved(x, w, 1, 40),
        (floats(1, 40, 15, 15), floats(40, 1, 3, 3)),
    ),
    "weights laid out at load": (
        lambda x: sw.nn.relu(x @ WEIGHTS),
        lambda x: np.maximum(x @ WEIGHTS, 0),
        (floats(130, 301),),
    ),
    "rows shared": (
        lambda x: sw.nn.softmax(x, axis=-1),
        _softmax,
        (floats(37, 129),),
    ),
    "sums of columns": (
        lambda x: (x * x).sum(axis=0),
        lambda x: (x.astype(float) ** 2).sum(axis=0),
        (floats(2100, 70),),
    ),
    "one sum": (lambda x: snp.max(x), lambda x: x.max(), (floats(400_003),)),
    "a running sum": (
        lambda x: snp.cumulative_sum(x, axis=1),
        lambda x: np.cumsum(x, axis=1),
        (floats(11, 90),),
    ),
    "turned over": (lambda x: x.T * 2, lambda x: x.T * 2, (floats(203, 117),)),
    "all at once": (
        lambda x, y: snp.tanh(x) * 3 + y,
        lambda x, y: np.tanh(x) * 3 + y,
        (floats(1_000_003), floats(1_000_003)),
    ),
}
"""Programs that schedule in all its ways, the same in NumPy, and arguments."""


def everything(*arguments: Any) -> Any:
    """Do all of SCHEDULES in one program."""
    given = iter(arguments)
    return [ours(*(next(given) for _ in arrays)) for ours, _, arrays in SCHEDULES.values()]


ARGUMENTS = [array for _, _, arrays in SCHEDULES.values() for array in arrays]


LIKE_OTHERS = {
    "avx2, 8 cores",
    "avx-512, 1 MiB, 2 cores",
    "avx-512, 2 MiB, 64 cores",
    "512 bits by avx2",
    "neon, 64 cores",
}
"""Machines with the vectors of another one; the slow lane runs all of their schedules and rows."""


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Described:
    """Take each machine in turn for the one there is."""
    found = MACHINES[request.param]
    monkeypatch.setenv("STEPWELL_MACHINE", found.text)
    return found


in_turn = pytest.mark.parametrize(
    "machine",
    [pytest.param(m, marks=pytest.mark.slow if m in LIKE_OTHERS else ()) for m in MACHINES],
    indirect=True,
)


def built(
    text: str,
    entry: str,
    resources: Mapping[str, Array],
    machine: Described,
    folder: Path,
) -> Compiled:
    """Compile for the described machine, as far as possible with its own instructions."""
    made = translate(Source(text, "<test>", entry, machine_for("c")), "c")
    if not machine.at_home:
        _cross_compile(made, machine, folder)
        return sw.compile(text, entry, resources=resources)
    write_program(folder, made.text, made.header, made.signature, machine.compiler().build_program)
    return Compiled(load_program(folder, resources))


def _cross_compile(made: Translation, machine: Described, folder: Path) -> None:
    if can_cross_compile():
        source = folder / "foreign.c"
        source.write_text(made.text)
        machine.cross_compile(source, folder / "foreign.o")


@in_turn
def test_schedules(machine: Described, tmp_path: Path) -> None:
    traced = sw.jit(everything).trace(*ARGUMENTS)
    resources = traced.module.resources
    program = built(traced.module.text, traced.entry, resources, machine, tmp_path)
    results = iter(program(*ARGUMENTS))
    for name, (_, numpy, arrays) in SCHEDULES.items():
        wanted = numpy(*arrays)
        for want in wanted if isinstance(wanted, tuple) else (wanted,):
            np.testing.assert_allclose(next(results), want, 2e-4, 2e-4, err_msg=name)


BYTES = """
func.func @main(%a: tensor<67x203xi8>, %b: tensor<203x130xi8>, %c: tensor<67x203xui8>, %d: tensor<203x130xui8>)
    -> (tensor<67x130xi32>, tensor<67x130xui32>) {
  %x = nd.matmul %a, %b {dtype = i32} : (tensor<67x203xi8>, tensor<203x130xi8>) -> tensor<67x130xi32>
  %y = nd.matmul %c, %d {dtype = ui32} : (tensor<67x203xui8>, tensor<203x130xui8>) -> tensor<67x130xui32>
  func.return %x, %y : tensor<67x130xi32>, tensor<67x130xui32>
}
"""


@in_turn
def test_products_of_bytes(machine: Described, tmp_path: Path) -> None:
    shapes = (67, 203), (203, 130)
    a, b = (RANDOM.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    c, d = (RANDOM.integers(0, 256, shape).astype(np.uint8) for shape in shapes)
    x, y = built(BYTES, "main", {}, machine, tmp_path)(a, b, c, d)
    np.testing.assert_array_equal(x, a.astype(np.int32) @ b.astype(np.int32))
    np.testing.assert_array_equal(y, c.astype(np.uint32) @ d.astype(np.uint32))


SAMPLE = [(row, row.dtypes[number % len(row.dtypes)]) for number, row in enumerate(ROWS)]
"""Each row for one of its dtypes."""


@in_turn
def test_rows(machine: Described, tmp_path: Path) -> None:
    """Each machine runs its share of the rows."""
    number = list(MACHINES.values()).index(machine)
    together = Together.of(SAMPLE[number :: len(MACHINES)])
    together.check(built(together.text, "main", together.resources, machine, tmp_path))


def test_nothing_of_the_host_is_left() -> None:
    for machine in MACHINES.values():
        others = {f.name: f.default for f in fields(Machine) if f.name in ("name", "features")}
        here = replace(this_machine().override(machine.text), **others)
        assert here == replace(Machine().override(machine.text), **others)


ROW = "func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> { %y = nd.add %x, %x : tensor<64xf32> func.return %y : tensor<64xf32> }"


def test_everything_sees_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "row.mlir"
    file.write_text(ROW)
    double = sw.jit(lambda x: x + x)
    for bits, lanes in [(128, 4), (256, 8)]:
        monkeypatch.setenv(VARIABLE, f"vector_bits={bits}, threads=1")
        type = f"vector<{lanes}xf32>"
        assert type in sw.compile(ROW).text("loops")
        assert type in str(double.trace(ARGUMENTS[0]).lower())
        assert main(["compile", str(file), "--stage", "loops"]) == 0
        assert type in capsys.readouterr().out
        assert main(["explain", str(file)]) == 0
        assert f"vectors of {lanes}" in capsys.readouterr().out
        assert main(["explain", str(file), "--machine", "vector_bits=512"]) == 0
        assert "vectors of 16" in capsys.readouterr().out  # the option changes what is described
    options = ["--target", "opencl", "--machine", "vector_bits=128", "--stage", "loops"]
    assert main(["compile", str(file), *options]) == 0
    assert "x8" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vector_bits", "cannot read 'vector_bits' as a property of the machine"),
        ("coers=4", "cannot read 'coers=4' as a property of the machine"),
        ("zen9,threads=2", "there is no machine 'zen9'"),
        ("l2=-1", "cannot read 'l2=-1' as a property of the machine"),
        ("l2=" + "9" * 5000, "cannot read 'l2=999"),
        ("threads=1000", "a machine with threads=1000 cannot be compiled for"),
        ("fma=3", "a machine with fma=3 cannot be compiled for"),
    ],
)
def test_a_variable_that_cannot_be_meant(
    text: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "row.mlir"
    file.write_text(ROW)
    monkeypatch.setenv(VARIABLE, text)
    assert main(["run", str(file), "--random"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: STEPWELL_MACHINE: {said}")
    assert len(error.splitlines()) == 2 and "help: " in error
    with pytest.raises(sw.CompileError, match="STEPWELL_MACHINE"):
        sw.jit(lambda x: x + x)(np.ones(4, np.float32))


def test_instructions_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is compiled for others' instructions is refused by name, not run until it dies."""
    file = tmp_path / "row.mlir"
    file.write_text(ROW)
    monkeypatch.setenv(VARIABLE, "features=avx1024")
    assert main(["run", str(file), "--random"]) == 1
    assert "it was compiled for a processor with avx1024, unlike" in capsys.readouterr().err
