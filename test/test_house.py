"""Rules of the house that no linter knows: sizes of files, labels of constraints."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stepwell.dialects.kernel import KERNEL
from stepwell.dialects.nd import OPS
from stepwell.tools.catalogue import own_constraints

ROOT = Path(__file__).parents[1]
LONGEST = 500
"""Lines of a file."""
LARGEST = 50
"""Lines of a function, its docstring left out."""
METHODS = 25
"""Methods of a class."""


def _python_files() -> list[Path]:
    folders = ("src/stepwell", "dialects", "lowering", "test", "bench", "examples")
    return [p for folder in folders for p in sorted((ROOT / folder).rglob("*.py"))]


def test_files_are_short() -> None:
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in _python_files()
    }
    long = {name: n for name, n in lines.items() if n > LONGEST}
    assert long == {}, "split by family of ops"


def _defined() -> list[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (f"{path.relative_to(ROOT)}: {node.name}", node)
        for path in _python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0] if ast.get_docstring(function) is not None else None
    about = first.end_lineno - first.lineno + 1 if first and first.end_lineno else 0
    return (function.end_lineno or 0) - function.lineno + 1 - about


def test_functions_and_classes_are_small() -> None:
    lines: dict[str, int] = {}
    methods: dict[str, int] = {}
    for name, node in _defined():
        if isinstance(node, ast.ClassDef):
            count = sum(isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef) for m in node.body)
            methods[name] = max(count, methods.get(name, 0))
        else:
            lines[name] = max(_lines(node), lines.get(name, 0))
    assert {name: n for name, n in lines.items() if n > LARGEST} == {}
    assert {name: n for name, n in methods.items() if n > METHODS} == {}


def test_a_traced_values_trace_is_numpys() -> None:
    """``x.trace()`` is the sum of the diagonal; what an op is emitted to is ``x.graph``."""
    found = [
        f"{path.name}:{number}"
        for path in sorted((ROOT / "src/stepwell/frontend").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"(?<!self)\.trace\.(emit|check|ranges)\b", line)
    ]
    assert found == [], "write x.graph.emit(...)"


def _classes() -> dict[type[Any], str]:
    """Return every class with a docstring of ours that ops have, and the dialect of an op."""
    return {
        kind: op.name.partition(".")[0]
        for op in (*OPS, *KERNEL.operations)
        for kind in op.__mro__
        if kind.__module__.startswith("stepwell.")
    }


def _labels(files: list[Path]) -> set[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    comments = re.findall(r"(?:#|//).*", text)
    return {label for comment in comments for label in re.findall(r"\w+_c\d+", comment)}


@pytest.mark.parametrize(
    "where, files",
    [
        ("code", [p for p in _python_files() if "test" not in p.relative_to(ROOT).parts]),
        ("invalid tests", sorted((ROOT / "test" / "dialects").rglob("*invalid*.mlir"))),
    ],
)
def test_every_constraint_is(where: str, files: list[Path]) -> None:
    """A label is that of the class, of one it derives from, or begins with the dialect."""
    found = _labels(files)
    missing: list[str] = []
    for kind, dialect in _classes().items():
        for label, _ in own_constraints(kind):
            number = label.rpartition("_")[2]
            stems = {own.rpartition("_")[0] for base in kind.__mro__ for own, _ in _of(base)}
            names = {f"{stem}_{number}" for stem in stems} | {f"{dialect}_{label}"}
            if not names & found:
                missing.append(label)
    assert missing == [], f"not in {where}"


def _of(base: type[Any]) -> list[tuple[str, str]]:
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", base.__name__.removesuffix("Op")).lower()
    return [(f"{stem}_c0", "")]


UPHILL = {("frontend", "numpy"): "x.__array_namespace__() returns the module itself"}
"""Rooms that load a module of a higher one while they run, and why."""


def test_no_import_goes_uphill_at_run_time() -> None:
    """``import_module("stepwell.x")`` keeps to the order of rooms, which import-linter cannot see."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    height = {room: -k for k, rooms in enumerate(layers) for room in rooms.split(" | ")}
    found: set[tuple[str, str]] = set()
    for root, package in (
        (ROOT / "src/stepwell", ()),
        (ROOT, ("dialects",)),
        (ROOT, ("lowering",)),
    ):
        for path in sorted(root.joinpath(*package).rglob("*.py")):
            room = package[0] if package else path.relative_to(root).parts[0].removesuffix(".py")
            for loaded in re.findall(
                r'import_module\(\s*f?"stepwell\.(\w+)', path.read_text("utf-8")
            ):
                if room in height and height.get(loaded, 0) > height[room]:
                    found.add((room, loaded))
    assert found == UPHILL.keys()
