"""Installed plug-ins are found however they are installed, without loading what takes long."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from xdsl.universe import Universe

from stepwell.core.diagnostics import CompileError, Diagnostic, listening
from stepwell.driver.registry import registry

MODULE = """
from xdsl.universe import Universe
OURS = Universe(all_dialects={"apart": lambda: None})
"""
POINTS = (
    "[console_scripts]\nx = y:z\n\n[xdsl.universe]\n# a line\napart_plugin = apart_place:OURS\n"
)


def as_wheel(folder: Path) -> Path:
    """Lay a plug-in down as pip does."""
    note = folder / "apart-1.0.dist-info"
    note.mkdir()
    (note / "METADATA").write_text("Metadata-Version: 2.1\nName: apart\nVersion: 1.0\n")
    (note / "entry_points.txt").write_text(POINTS)
    (folder / "apart_place.py").write_text(MODULE)
    return folder


def as_archive(folder: Path) -> Path:
    """Lay a plug-in down in an archive."""
    with ZipFile(folder / "apart.egg", "w") as archive:
        archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 2.1\nName: apart\nVersion: 1.0\n")
        archive.writestr("EGG-INFO/entry_points.txt", POINTS)
        archive.writestr("apart_place.py", MODULE)
    return folder / "apart.egg"


@pytest.mark.parametrize("laid", [as_wheel, as_archive])
def test_an_installed_plugin_is_found(
    laid: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "apart" not in registry().dialects
    monkeypatch.syspath_prepend(laid(tmp_path))
    monkeypatch.delitem(sys.modules, "apart_place", raising=False)
    found = registry()
    assert found.owner["dialect", "apart"] == "apart_plugin"


def _nothing() -> Any:
    return None


def _missing() -> Any:
    return {}["x"]


def test_a_name_of_two_packages_is_refused_to_who_asks_for_it() -> None:
    ours = Universe(all_dialects={"twice": _nothing, "once": _nothing})
    theirs = Universe(all_dialects={"twice": _nothing}, all_passes={"cse": _nothing})
    found = registry()
    found.add("one", ours, strict=False)
    heard: list[Diagnostic] = []
    with listening(heard.append):
        found.add("other", theirs, strict=False)
    assert found.dialects["once"]() is None
    with pytest.raises(CompileError, match="dialect 'twice' of other is already one of one"):
        found.dialects["twice"]()
    assert found.owner["pass", "cse"] == "stepwell"
    assert [d.message for d in heard] == ["pass 'cse' of other is already one of stepwell"]
    with pytest.raises(CompileError, match="dialect 'twice' of third is already one of one and"):
        found.add("third", ours)


def test_a_thing_that_cannot_be_loaded_is_said_to_be_whose_it_is() -> None:
    found = registry()
    found.add("one", Universe(all_passes={"bad": _missing}))
    with pytest.raises(CompileError, match="cannot load the pass 'bad' of one: KeyError: 'x'"):
        found.passes["bad"]()


def test_without_plugins_no_metadata_is_loaded() -> None:
    code = "import sys, stepwell.driver.registry as r; r.registry(); print('email' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
