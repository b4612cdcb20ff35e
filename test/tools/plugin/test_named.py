"""Plug-ins named on the command line, and ones that are broken: each tool, one clear message."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ACME = Path(__file__).parent / "Inputs" / "acme" / "acme"
NAMED = ("--plugin", "acme.universe:ACME_UNIVERSE")
PROGRAM = """\
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = acme.softsign %x : tensor<?xf32>
  func.return %y : tensor<?xf32>
}
"""
PLAIN = PROGRAM.replace("acme.softsign", "nd.neg")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package and a program in it, as one has while writing both."""
    folder = tmp_path_factory.mktemp("here")
    shutil.copytree(ACME, folder / "acme", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "p.mlir").write_text(PROGRAM)
    (folder / "plain.mlir").write_text(PLAIN)
    crash = (ACME / "passes.py").read_text().replace("rewrite(op, [_", "op.nothing([_")
    (folder / "crashing.py").write_text(
        crash + "\nfrom xdsl.universe import Universe\n"
        'HERE = Universe(all_passes={"softsign-of-neg": lambda: SoftsignOfNeg})\n'
    )
    return folder


def run(
    folder: Path, tool: str, *arguments: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool in ``folder`` as its script does: without the folder in Python's path."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"stepwell.tools.{tool}", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "STEPWELL_CACHE": str(folder / "cache"), "PYTHONPATH": str(path or "")},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_module_of_the_current_folder_is_found(folder: Path) -> None:
    done = run(folder, "opt", "p.mlir", "-p", "through(structured)", *NAMED)
    assert done.stderr == "" and "math.absf" in done.stdout
    done = run(folder, "main", "run", "p.mlir", "--random", *NAMED)
    assert done.stderr == "" and "float32[8]" in done.stdout
    done = run(folder, "main", "compile", "p.mlir", *NAMED)
    assert done.stderr == "" and "main_absf" in done.stdout
    done = run(folder, "main", "explain", "p.mlir", *NAMED)
    assert done.stderr == "" and "kernel main_absf_add_div" in done.stdout
    done = run(folder, "main", "passes", *NAMED)
    assert "softsign-of-neg" in done.stdout


def test_without_its_plugin_the_op_is_unknown(folder: Path) -> None:
    done = run(folder, "main", "run", "p.mlir", "--random")
    assert done.returncode == 1
    assert "p.mlir:2:8: error: unknown op 'acme.softsign': there is no dialect" in done.stderr


def test_a_changed_module_of_the_current_folder_compiles_anew(folder: Path) -> None:
    lowering = folder / "acme" / "lowering.py"
    before = lowering.read_text()
    first = run(folder, "main", "run", "p.mlir", "--random", *NAMED).stdout
    lowering.write_text(before.replace("b.number(1)", "b.number(2)"))
    try:
        assert run(folder, "main", "run", "p.mlir", "--random", *NAMED).stdout != first
    finally:
        lowering.write_text(before)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "no_such:X",
            "ModuleNotFoundError: No module named 'no_such'\n   help: modules are searched",
        ),
        ("acme.universe", "help: write MODULE:NAME"),
        ("acme.universe:OURS", "AttributeError: module 'acme.universe' has no attribute 'OURS'"),
        ("acme.dialect:ACME", "TypeError: it is no Universe"),
        ("", "help: write MODULE:NAME"),
        ("..:X", "cannot load --plugin ..:X"),
    ],
)
def test_a_name_that_is_wrong(folder: Path, place: str, said: str) -> None:
    done = run(folder, "main", "passes", "--plugin", place)
    assert done.returncode == 1 and said in done.stderr


def test_a_reproducer_holds_the_plugins(folder: Path) -> None:
    where = ("--plugin", "crashing:HERE", *NAMED[:1], "acme.dialects_only:ONLY")
    (folder / "acme" / "dialects_only.py").write_text(
        "from xdsl.universe import Universe\nfrom acme.universe import _dialect\n"
        'ONLY = Universe(all_dialects={"acme": _dialect})\n'
    )
    crash = ("p.mlir", "-p", "softsign-of-neg", "--reproducer", "r.mlir")
    done = run(folder, "opt", *crash, *where)
    said = "error: pass 'softsign-of-neg' crashed: AttributeError"
    assert said in done.stderr
    again = run(folder, "opt", "--run-reproducer", "r.mlir")
    assert said in again.stderr


POINTS = "[xdsl.universe]\nbroken_one = broken_place:OURS\n"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of installed packages, one of which dies when it is imported."""
    site = tmp_path_factory.mktemp("site")
    note = site / "broken-1.0.dist-info"
    note.mkdir()
    (note / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (note / "entry_points.txt").write_text(POINTS)
    (site / "broken_place.py").write_text("raise RuntimeError('its library is missing')\n")
    return site


def test_a_broken_package_stops_nobody_else(folder: Path, broken: Path) -> None:
    done = run(folder, "main", "run", "plain.mlir", "--random", path=broken)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(folder, "opt", "p.mlir", "-p", "through(loops)", *NAMED, path=broken)
    assert (done.returncode, done.stderr) == (0, "")


WHY = "cannot load the installed plug-in 'broken_one': RuntimeError: its library is missing"


def test_who_misses_something_of_a_broken_package_is_told(folder: Path, broken: Path) -> None:
    asked = [
        ("opt", "p.mlir"),
        ("opt", "plain.mlir", "-p", "broken-pass"),
        ("opt", "plain.mlir", "-t", "broken-target"),
        ("opt", "--show-pass", "broken-pass"),
        ("main", "ops", "broken.op"),
    ]
    for command in asked:
        done = run(folder, *command, path=broken)
        assert done.returncode == 1
        assert f"note: {WHY}: its dialects, passes and targets are missing" in done.stderr, command


def test_lists_tell_of_a_broken_package(folder: Path, broken: Path) -> None:
    for command in (("opt", "--list-passes"), ("main", "passes"), ("main", "ops")):
        done = run(folder, *command, path=broken)
        assert done.returncode == 0 and f"warning: {WHY}" in done.stderr
