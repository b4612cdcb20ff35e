"""What the front pages say is true: examples run, names exist, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.driver.pipeline import STAGE_NAMES, STAGES
from stepwell.driver.universe import OVERRIDES, PASSES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/conventions.md",
    "docs/extending.md",
    *(f"docs/floors/{page.name}" for page in sorted((ROOT / "docs/floors").glob("*.md"))),
    "docs/frontends.md",
    "docs/gradients.md",
    "docs/python.md",
    "examples/digits/README.md",
    "bench/README.md",
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    cache = tmp_path_factory.getbasetemp() / "cache"  # the runtime is built there once
    monkeypatch.setenv("STEPWELL_CACHE", str(cache))
    (tmp_path / "cosine.mlir").write_text(blocks("mlir")[0])
    return tmp_path


def test_python_runs(folder: Path) -> None:
    program, training = blocks("python")
    (folder / "example.py").write_text(program + training)
    ran = subprocess.run([sys.executable, "example.py"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "example.py:" in ran.stdout
    assert "kernel.launch" in ran.stdout
    *_, value, shape = ran.stdout.splitlines()
    assert float(value) < 1e-3 and shape == "(200, 20, 1)"


def test_commands_run(folder: Path) -> None:
    (console,) = blocks("console")
    said: list[str] = []
    for line in console.splitlines():
        command, *rest = line.removeprefix("$ ").split()
        ran = subprocess.run([BIN / command, *rest], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, line + "\n" + ran.stderr
        said.append(ran.stdout)
    assert "1000" in said[0] and "a call (100 calls)" in said[0]
    assert said[1].count("kernel.launch") == 1
    assert (folder / "program/program.c").exists()


def test_the_picture_is_that_of_the_pipeline() -> None:
    picture = README.partition("```\n")[2].partition("```")[0]
    names = re.findall(r"^ (\S+) ", picture, re.MULTILINE)
    assert names == ["Python", *STAGE_NAMES, "C"]
    passes = ",".join(stage.passes for stage in STAGES).split(",")
    shown = [
        p for line in re.findall(r"^   \|  +(.+)$", picture, re.MULTILINE) for p in line.split(", ")
    ]
    assert shown == [p for p in passes if p in shown]
    assert set(passes) - set(shown) <= {"check-sizes", "inline-calls", *OVERRIDES}


@pytest.mark.parametrize("page", PAGES)
def test_what_is_named_is_there(page: str) -> None:
    """Links, and files and folders in backticks; `name.mlir` and what begins with $ or ~ aside."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    here = (ROOT / page).parent
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    paths = re.findall(r"`((?:src|dialects|lowering|test|docs|examples|\.ci)/[^`\s]*)`", text)
    missing = [link for link in links if not (here / link).exists()]
    missing += [path for path in paths if not any(ROOT.glob(path.rstrip("/")))]
    assert missing == []


def test_advice_is_quoted_as_it_is_given() -> None:
    toolchain = (ROOT / "src/stepwell/runtime/toolchain.py").read_text()
    (quoted,) = re.findall(r"`(install gcc .*?)`", README)
    assert quoted in toolchain


def test_passes_named_exist() -> None:
    known = {*PASSES, *OVERRIDES}
    for used in re.findall(r" -p (\S+)", README):
        assert set(used.split(",")) <= known


def test_variables_of_the_environment_are_told_of() -> None:
    told = (ROOT / "docs/python.md").read_text().partition("## Environment variables")[2]
    files = [p for f in ("src", "dialects", "lowering") for p in (ROOT / f).rglob("*.py")]
    used = {v for p in files for v in re.findall(r'"(STEPWELL_[A-Z]+)"', p.read_text())}
    assert {"STEPWELL_CACHE", "STEPWELL_THREADS"} <= used
    assert used - set(re.findall(r"STEPWELL_[A-Z]+", told)) == set()
