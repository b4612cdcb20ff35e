"""`threads=`: how many threads one program runs in at most, whatever others may use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.core.host import usable_threads
from stepwell.core.machine import this_machine, thread_count
from stepwell.core.signature import Signature, Tensor
from stepwell.core.targets import Target
from stepwell.runtime import program as programs
from stepwell.runtime.program import load_program, write_program
from stepwell.runtime.toolchain import find_compiler

RUNS = """#include <stdint.h>
struct sw_runtime {
  void (*parallel)(const struct sw_runtime *rt, void (*body)(void *, int64_t, int64_t),
                   void *context, int64_t n, int64_t grain);
  int32_t threads;
};
static void body(void *out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) ((float *)out)[i] = (float)begin;
}
int32_t stepwell_runs(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims, char *arena) {
  rt->parallel(rt, body, buffers[0], 12, 1);
  return 0;
}
"""
WORKERS = """
import os, sys, time
import numpy as np, stepwell as sw

def f(x):
    return np.sin(x) * np.cos(x) + 1

def threads():
    return len(os.listdir("/proc/self/task"))

x = np.ones(1 << 20)
sw.jit(f)(x[:4])
before = min(threads() for _ in range(20) if time.sleep(0.01) is None)  # compiling may still end
for limit in (1, 3, 2, 100):
    jitted = sw.jit(f, threads=limit)
    assert np.array_equal(jitted(x), jitted(x))
    print(limit, threads() - before)
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that gives for each of 12 numbers where its thread began, on five threads."""
    monkeypatch.setenv("STEPWELL_THREADS", "5")
    signature = Signature("runs", (), (Tensor("z", "f32", (12,)),))
    write_program(tmp_path, RUNS, "", signature, find_compiler().build_program)
    return tmp_path


def begins(folder: Path, threads: int | None) -> int:
    return len(np.unique(load_program(folder, {}, threads=threads).call()))


@pytest.mark.parametrize(("threads", "used"), [(1, 1), (2, 2), (3, 3), (5, 5), (9, 5), (10**30, 5)])
def test_a_program_runs_in_so_many_threads(runs: Path, threads: int, used: int) -> None:
    assert begins(runs, threads) == used


def test_it_does_without_the_extension_too(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "load_extension", lambda: None)
    assert begins(runs, 1) == 1
    assert begins(runs, 2) <= 2 <= begins(runs, None) * 2


def test_a_limit_is_of_one_program(runs: Path) -> None:
    limited, free = load_program(runs, {}, threads=1), load_program(runs, {})
    unlimited = len(np.unique(free.call()))
    assert len(np.unique(limited.call())) == 1
    assert len(np.unique(free.call())) == unlimited


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_jitted_functions_start_no_more_threads_than_they_may_use() -> None:
    command = [sys.executable, "-c", WORKERS]
    environment = {"STEPWELL_THREADS": "4"}
    assert lines_of(command, environment) == ["1 0", "3 2", "2 2", "100 3"]


@pytest.mark.parametrize(
    ("text", "number"), [("3", 3), (" 04 ", 4), ("1000000000000", 256), ("9" * 5000, 256), ("", 0)]
)
def test_the_number_in_the_environment(
    text: str, number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STEPWELL_THREADS", text)
    assert thread_count() == (number or min(usable_threads(), 256))
    assert not caplog.records


@pytest.mark.parametrize("text", ["two", "-1", "0", "1.5", "٣", "4" * 9 + "x" * 900])
def test_what_is_no_number_in_the_environment_is_told_once(
    text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STEPWELL_THREADS", text)
    for _ in range(2):
        assert thread_count() == min(usable_threads(), 256)
    (found,) = caplog.messages
    assert found.startswith("STEPWELL_THREADS is to be a number from 1 to 256, got '")
    assert len(found) < 150


def lines_of(command: Sequence[str], environment: dict[str, str]) -> list[str]:

    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("threads", "error", "message"),
    [
        (0, ValueError, "threads must be 1 or more, got 0"),
        (-2, ValueError, "threads must be 1 or more, got -2"),
        (1.5, TypeError, "threads must be a whole number or None, got 1.5"),
        (True, TypeError, "threads must be a whole number or None, got True"),
        ("2", TypeError, "threads must be a whole number or None, got '2'"),
    ],
)
def test_what_is_no_number_of_threads_is_refused(
    threads: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    for call in (
        lambda: sw.jit(lambda x: x, threads=threads),
        lambda: sw.jit(threads=threads)(lambda x: x),
        lambda: sw.compile(text, threads=threads),
        lambda: sw.load(compiled(tmp_path), threads=threads),
    ):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == message


def compiled(folder: Path) -> Path:
    sw.jit(lambda x: x + 1).trace(np.ones(3)).compile().save(folder / "saved")
    return folder / "saved"


def test_a_saved_program_is_loaded_with_a_limit(tmp_path: Path) -> None:
    assert sw.load(compiled(tmp_path), threads=1)(np.ones(3)).tolist() == [2, 2, 2]


def test_a_limit_is_for_programs_of_c(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target("other", "")
    monkeypatch.setattr(programs, "_target", lambda *_: target)
    with pytest.raises(CompileError, match="a limit of threads is for programs of C"):
        load_program(runs, {}, threads=2)


def test_the_machine_has_the_threads_that_are_allowed_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_THREADS", "1")
    assert this_machine().threads == 1
    monkeypatch.setenv("STEPWELL_THREADS", "3")
    assert this_machine().threads == 3
