"""Nothing is loaded from a cache that others can write, wherever that lies."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.runtime import private
from stepwell.runtime.cache import Cache, cache_root, disk_cache
from stepwell.runtime.private import make_private, why_shared
from stepwell.runtime.toolchain import find_compiler
from stepwell.runtime.weights import SECRET, fingerprint, settle

TEXT = """\
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = nd.exp %x : tensor<3xf32>
  func.return %y : tensor<3xf32>
}
"""
X = np.zeros(3, np.float32)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache is asked for: a folder that is not there yet, in one that is."""
    place = tmp_path / "home" / "cache"
    place.parent.mkdir()
    monkeypatch.setenv("STEPWELL_CACHE", str(place))
    disk_cache.cache_clear()
    return place


def test_folders_are_for_this_user_alone(root: Path) -> None:
    before = os.umask(0)
    try:
        sw.compile(TEXT)(X)
        fingerprint(np.zeros(9, np.uint8))
        settle()
    finally:
        os.umask(before)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    assert len(folders) >= 4  # the cache, one of builds, one of programs, the program
    assert {mode(folder) for folder in folders} == {0o700}
    assert mode(root / SECRET) == 0o600


OPEN: dict[str, Callable[[Path], object]] = {
    "everybody": lambda root: root.mkdir() or root.chmod(0o777),
    "everybody, none removing": lambda root: root.mkdir() or root.chmod(0o1777),
    "the folder above": lambda root: root.parent.chmod(0o777),
    "a link into an open folder": lambda root: linked(root, 0o777),
    "a link in an open folder": lambda root: (
        root.symlink_to(made(root.parent / "own")) or root.parent.chmod(0o777)
    ),
    "a link to nowhere and back": lambda root: root.symlink_to(root),
}


def made(folder: Path) -> Path:
    folder.mkdir(0o700)
    return folder


def linked(root: Path, mode: int) -> None:
    made(root.parent / "open").chmod(mode)
    root.symlink_to(made(root.parent / "open" / "inside"))


@pytest.mark.parametrize("who", OPEN)
def test_open_caches(who: str, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    sw.compile(TEXT)
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    root.rmdir()
    cache_root.__globals__["_trusted"].cache_clear()
    disk_cache.cache_clear()
    OPEN[who](root)
    with caplog.at_level(logging.WARNING, "stepwell"):
        np.testing.assert_array_equal(sw.compile(TEXT)(X), X + 1)
    said = [record.getMessage() for record in caplog.records]
    assert any(f"nothing is loaded from the cache at {root}" in text for text in said), said
    assert len(said) == 1
    assert cache_root() != root
    assert root.is_symlink() or not root.exists() or not any(root.iterdir())


def test_a_cache_on_a_file_system_without_programs(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_private(root)
    there = os.statvfs

    def statvfs(place: Any) -> Any:
        flag = os.ST_NOEXEC if Path(place) == root else there(place).f_flag
        return SimpleNamespace(f_flag=flag)

    monkeypatch.setattr(os, "statvfs", statvfs)
    with caplog.at_level(logging.WARNING, "stepwell"):
        np.testing.assert_array_equal(sw.compile(TEXT)(X), X + 1)
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"the cache at {root} is on a file system that lets no code run" in said
    assert cache_root() != root


@pytest.mark.parametrize("bits", [0o1777, 0o755, 0o711])
def test_folders_above_that_nobody_else_changes(bits: int, root: Path) -> None:
    root.parent.chmod(bits)
    assert why_shared(root) == ""
    assert cache_root() == root


def test_folders_of_others(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_private(root)
    monkeypatch.setattr(private, "_trusted_owners", lambda: frozenset({os.geteuid() + 1}))
    assert "belongs to another user" in why_shared(root)


def test_groups(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.parent.chmod(0o770)
    monkeypatch.setattr(private, "_is_own_group", lambda number: True)
    assert why_shared(root) == ""
    monkeypatch.setattr(private, "_is_own_group", lambda number: False)
    assert why_shared(root) == f"{root.parent} can be written by a group (mode 770)"


def write(folder: Path) -> None:
    (folder / "data").write_bytes(b"x")


@pytest.mark.parametrize("what", ["folder", "link", "file", "linked file", "moved"])
def test_entries_that_others_can_write(what: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    entry = cache.fetch("kind", "key", write)
    match what:
        case "folder":
            entry.chmod(0o777)
        case "link":
            entry.rename(tmp_path / "elsewhere")
            entry.symlink_to(tmp_path / "elsewhere")
        case "file":
            entry.chmod(0o755)
            (entry / "data").chmod(0o666)
        case "linked file":
            (entry / "data").rename(tmp_path / "data")
            (entry / "data").symlink_to(tmp_path / "data")
        case _:
            entry.rename(tmp_path / "kind" / "other")
            assert cache.find("kind", "other") is None
    assert cache.find("kind", "key") is None


def test_notes_name_no_compiler_and_no_flags_of_their_own(root: Path) -> None:
    find_compiler.cache_clear()
    compiler = find_compiler()
    (notes,) = root.glob("compilers/*.json")
    notes.write_text('{"command": ["false"], "version": "x", "optional": ["-fplugin=evil.so"]}')
    find_compiler.cache_clear()
    assert find_compiler() == compiler


def test_fingerprints_are_of_one_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(100_000, dtype=np.float32)
    found: list[str] = []
    for name in ("a", "b", "a"):
        monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / name))
        disk_cache.cache_clear()
        found.append(fingerprint(array))
    assert found[0] == found[2]
    assert found[0] != found[1] or found[0].startswith("sha256")


def test_profiling_says_what_it_needs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sw.compile(TEXT).save(tmp_path / "saved")
    monkeypatch.setenv("STEPWELL_CC", "/no/such/compiler")
    find_compiler.cache_clear()
    try:
        loaded = sw.load(tmp_path / "saved")
        np.testing.assert_array_equal(loaded(X), X + 1)
        with pytest.raises(sw.CompileError) as caught:
            loaded.profile(X)
    finally:
        find_compiler.cache_clear()
    said = str(caught.value)
    assert "to be profiled, a program is compiled once more with clocks in it" in said
    assert "the C compiler named by STEPWELL_CC does not work: /no/such/compiler" in said
    assert "help: name a gcc or clang" in said
