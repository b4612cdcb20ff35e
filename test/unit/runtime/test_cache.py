"""The disk cache: whole entries or none, whatever other processes or the disk do."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stepwell.runtime.cache import Cache, digest


def write(folder: Path) -> None:
    (folder / "data").write_bytes(b"x" * 1000)


def must_not_build(folder: Path) -> None:
    raise AssertionError("this should have come from the cache")


def test_an_entry_is_built_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = cache.fetch("kind", "key", write)
    assert (first / "data").read_bytes() == b"x" * 1000
    assert Cache(tmp_path).fetch("kind", "key", must_not_build) == first


@pytest.mark.parametrize("damage", ["change", "truncate", "remove", "add", "no digest"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    entry = cache.fetch("kind", "key", write)
    match damage:
        case "change":
            (entry / "data").write_bytes(b"y" * 1000)
        case "truncate":
            (entry / "data").write_bytes(b"")
        case "remove":
            (entry / "data").unlink()
        case "add":
            (entry / "more").write_bytes(b"")
        case _:
            (entry / "digest").unlink()
    assert cache.find("kind", "key") is None
    assert (cache.fetch("kind", "key", write) / "data").read_bytes() == b"x" * 1000
    assert cache.find("kind", "key") is not None


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        write(folder)
        raise KeyError("no")

    with pytest.raises(KeyError):
        Cache(tmp_path).fetch("kind", "key", fail)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert Cache(tmp_path).find("kind", "key") is None


def test_many_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: Cache(tmp_path).fetch("kind", "key", write), range(16)))
    assert len(set(found)) == 1
    assert Cache(tmp_path).find("kind", "key") is not None


def test_the_oldest_use_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=5000)
    for n in range(8):
        entry = cache.fetch("kind", f"key{n}", write)
        os.utime(entry, (1000 + n, 1000 + n))
    assert cache.find("kind", "key0") is not None  # a use, which makes it the youngest
    cache.sweep()
    left = sorted(p.name for p in (tmp_path / "kind").iterdir())
    assert left == ["key0", "key5", "key6", "key7"]


@pytest.mark.parametrize("reason", ["a file is in the way", "full"])
def test_a_cache_that_cannot_be_written_is_replaced(
    tmp_path: Path, reason: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    if reason == "full":

        def no_space(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "rename", no_space)
    else:
        root.write_text("")
    cache = Cache(root)
    with caplog.at_level(logging.WARNING, "stepwell"):
        if reason == "full":
            with pytest.raises(OSError):
                cache.fetch("kind", "key", write)
            monkeypatch.undo()
        for key in ("key", "other"):
            entry = cache.fetch("kind", key, write)
            assert cache.fetch("kind", key, must_not_build) == entry
    (record,) = caplog.records
    assert "cannot write the cache" in record.getMessage()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_still_serves(tmp_path: Path) -> None:
    entry = Cache(tmp_path).fetch("kind", "key", write)
    tmp_path.chmod(0o500)
    try:
        assert Cache(tmp_path).fetch("kind", "key", must_not_build) == entry
        assert Cache(tmp_path).fetch("kind", "other", write).exists()
    finally:
        tmp_path.chmod(0o700)


def test_a_cache_that_cannot_be_read_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.fetch("kind", "key", write)

    def refused(*args: object, **options: object) -> os.stat_result:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refused)
        assert cache.lacks("kind")
        assert not cache.has("kind", "key")
    assert cache.has("kind", "key")


def test_keys_of_different_parts_differ() -> None:
    assert digest("ab", "c") != digest("a", "bc")


def test_weights_push_nothing_else_out(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=5000, weights_limit=2500)
    for n in range(4):
        for kind in ("kind", "weights"):
            assert cache.offer(kind, f"key{n}", write, 1000)
            os.utime(tmp_path / kind / f"key{n}", (1000 + n, 1000 + n))
    cache.sweep()
    assert len(list((tmp_path / "kind").iterdir())) == 4
    assert sorted(p.name for p in (tmp_path / "weights").iterdir()) == ["key2", "key3"]


def test_what_may_be_missed_is_not_written_where_there_is_no_room(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert not cache.offer("kind", "key", must_not_build, 1 << 62)
    (tmp_path / "kind").write_text("in the way")
    assert not cache.offer("kind", "key", write, 0)
    assert not cache.has("kind", "key")
