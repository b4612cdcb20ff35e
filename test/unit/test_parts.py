"""Programs compiled in parts: the same text, the same results, the same symbols as in one."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import stepwell as sw
from stepwell.api.compiled import Compiled
from stepwell.core.diagnostics import CompileError
from stepwell.lowering.emit import parts as emitted_parts
from stepwell.runtime.toolchain import Compiler

SIZES = (3, 17, 20)
X = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def chain() -> str:
    """Return a program of many kernels, which share a function and some constants."""
    lines = [
        "func.func @exp_f32(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {",
        "  %v0 = nd.relu %x : tensor<5x7xf32>",
    ]
    for k, n in enumerate(SIZES):
        lines += [
            f"  %w{k} = nd.full 0.25 : tensor<7x{n}xf32>",
            f"  %u{k} = nd.full 0.125 : tensor<{n}x7xf32>",
            f"  %a{k} = nd.matmul %v{k}, %w{k} : (tensor<5x7xf32>, tensor<7x{n}xf32>) -> tensor<5x{n}xf32>",
            f"  %s{k} = nd.softmax %a{k} {{axis = 1}} : tensor<5x{n}xf32>",
            f"  %b{k} = nd.matmul %s{k}, %u{k} : (tensor<5x{n}xf32>, tensor<{n}x7xf32>) -> tensor<5x7xf32>",
            f"  %v{k + 1} = nd.add %b{k}, %v{k} : tensor<5x7xf32>",
        ]
    return "\n".join([*lines, f"  func.return %v{len(SIZES)} : tensor<5x7xf32>", "}", ""])


def built(monkeypatch: pytest.MonkeyPatch, cache: Path, letters: int) -> Compiled:
    """Compile the chain afresh, a part having so many letters."""
    monkeypatch.setattr(emitted_parts, "LETTERS", letters)
    monkeypatch.setattr("stepwell.api.building.disk_cache", lambda: _Cache(cache))
    return sw.compile(chain(), "exp_f32")


class _Cache:
    """A cache that never has anything."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lacks(self, kind: str) -> bool:
        return False

    def fetch(self, kind: str, key: str, build: object) -> Path:
        self.root.mkdir()
        build(self.root)  # pyright: ignore
        return self.root


def exported(library: Path) -> list[str]:
    """Return the symbols that a library shows to others."""
    if which("nm") is None:
        pytest.skip("no nm")
    command = ["nm", "-D", "--defined-only", str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.split()[-1] for line in lines)


def test_parts_do_what_the_whole_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken: list[Path] = []
    build = Compiler.build_part

    def noted(self: Compiler, source: Path, object: Path) -> bool:
        taken.append(source)
        return build(self, source, object)

    monkeypatch.setattr(Compiler, "build_part", noted)
    whole = built(monkeypatch, tmp_path / "whole", 10_000_000)
    assert not taken
    parts = built(monkeypatch, tmp_path / "parts", 1)
    assert len(taken) == len(parts.kernels) + 1
    assert parts.source == whole.source
    assert_array_equal(parts(X), whole(X))
    names = exported(tmp_path / "parts" / "program.so")
    assert names == exported(tmp_path / "whole" / "program.so")
    assert "stepwell_exp_f32" in names


def test_text_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts: list[list[str]] = []
    write = Path.write_text

    def noted(self: Path, text: str, encoding: str) -> int:
        if self.name.startswith("part"):
            texts[-1].append(text)
        return write(self, text, encoding)

    monkeypatch.setattr(Path, "write_text", noted)
    for k in range(2):
        texts.append([])
        built(monkeypatch, tmp_path / str(k), 4_000)
    assert len(texts[0]) > 1
    assert texts[0] == texts[1]


def test_the_whole_text_is_compiled_where_a_part_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = built(monkeypatch, tmp_path / "whole", 10_000_000)(X)
    monkeypatch.setattr(Compiler, "build_part", lambda *_: False)
    assert_array_equal(built(monkeypatch, tmp_path / "parts", 1)(X), expected)


def test_what_is_wrong_is_said_of_the_whole_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("stepwell.lowering.emit.c.PREAMBLE", "int wrong = undeclared;")
    with pytest.raises(CompileError) as caught:
        built(monkeypatch, tmp_path / "wrong", 1)
    message = str(caught.value)
    assert "undeclared" in message
    kept = Path(message.split("the source is kept in ")[1].split(";")[0])
    assert kept.name == "program.c"


def test_programs_compiled_at_once_do_not_meet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(emitted_parts, "LETTERS", 4_000)
    texts = [chain().replace("0.25", f"0.{k}5") for k in range(3)]
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda text: sw.compile(text, "exp_f32")(X), texts))
    alone = [built(monkeypatch, tmp_path / "whole", 10_000_000)(X)]
    assert_array_equal(results[2], alone[0])
