"""Finding a C compiler, and what is said where there is none or it fails."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from stepwell.runtime import toolchain
from stepwell.runtime.toolchain import ToolchainError, find_compiler

Script = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def forget() -> Generator[None]:
    """Look for the compiler afresh, before and after."""
    find_compiler.cache_clear()
    yield
    find_compiler.cache_clear()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write an executable shell script."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPWELL_CC", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)  # pyright: ignore
    with pytest.raises(ToolchainError) as caught:
        find_compiler()
    assert str(caught.value) == (
        "error: no C compiler found\n"
        "   help: install gcc or clang, or the wheel that brings one: pip install 'stepwell[zig]'"
    )


def test_the_compiler_asked_for_does_not_work(
    monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    for command in ("/no/such/cc", str(script("cc", "exit 1"))):
        monkeypatch.setenv("STEPWELL_CC", command)
        find_compiler.cache_clear()
        with pytest.raises(ToolchainError) as caught:
            find_compiler()
        assert f"the C compiler named by STEPWELL_CC does not work: {command}" in str(caught.value)


def test_a_compiler_that_fails_shows_what_it_said_and_keeps_the_source(tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text("int f(void) { return undeclared; }\n")
    with pytest.raises(ToolchainError) as caught:
        find_compiler().build_program(source, tmp_path / "program.so")
    message = str(caught.value)
    assert "failed (exit code 1)" in message
    assert "undeclared" in message
    kept = Path(message.split("the source is kept in ")[1].split(";")[0])
    assert kept.read_text() == source.read_text()


def test_flags_a_compiler_lacks_are_left_out(
    monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    real = find_compiler().command[0]
    picky = script("picky", f'case "$*" in *-march=native*) exit 1;; *) exec {real} "$@";; esac')
    monkeypatch.setenv("STEPWELL_CC", str(picky))
    find_compiler.cache_clear()
    assert "-march=native" not in find_compiler().optional


def test_what_was_found_out_is_noted_for_later_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = find_compiler()
    find_compiler.cache_clear()

    def no_process(*_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(toolchain, "_run", no_process)
    assert find_compiler() == first


def test_a_compiler_that_changes_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    real = find_compiler().command[0]
    path = script("cc", f'exec {real} "$@"')
    monkeypatch.setenv("STEPWELL_CC", str(path))
    find_compiler.cache_clear()
    before = find_compiler()
    path.write_text(path.read_text().replace("exec", "case $1 in --version) echo new;; esac; exec"))
    os.utime(path, (1, 1))
    find_compiler.cache_clear()
    assert find_compiler().id != before.id
