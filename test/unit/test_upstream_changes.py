"""The list of changes to xDSL's classes is whole, and each change is still needed."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from typing import Any

import pytest

from stepwell.dialects.upstream.changes import CHANGES, Change

IMPORTS = "import stepwell.driver.lowering, stepwell.api.compiled, stepwell.lowering.emit, stepwell.tools.opt.driver\n"

SNAPSHOT = """
import importlib, json, sys, types
modules = json.loads(sys.argv[1])
for name in modules:
    importlib.import_module(name)
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation

def members(kind, path, found):
    found[path + ": class"] = type(kind).__name__
    for name, member in list(vars(kind).items()):
        if name in ("__abstractmethods__", "_abc_impl"):
            continue
        if name == "traits" and hasattr(member, "traits"):
            found[f"{path}.traits"] = sorted(type(trait).__name__ for trait in member.traits)
        elif isinstance(member, type) and member.__qualname__.startswith(kind.__qualname__ + "."):
            members(member, f"{path}.{name}", found)
        else:
            kept.append(member)
            found[f"{path}.{name}"] = id(member)
    if issubclass(kind, IRDLOperation) and kind is not IRDLOperation:
        try:
            definition = kind.get_irdl_definition()
        except Exception:
            return
        if definition is None:
            return
        found[path + ": operands"] = repr(definition.operands)
        found[path + ": results"] = repr(definition.results)

def snapshot():
    found = {}
    for name in modules:
        for key, member in list(vars(sys.modules[name]).items()):
            if isinstance(member, type) and member.__module__ == name:
                members(member, f"{name}.{member.__qualname__}", found)
            elif isinstance(member, types.FunctionType):
                kept.append(member)
                found[f"{name}.{key}"] = id(member)
            elif isinstance(member, Dialect):
                found[f"{name}.{key}: ops"] = [op.name for op in member.operations]
    return found

kept = []
before = snapshot()
"""
COMPARE = """
after = snapshot()
plain = [k for k in after if k.endswith(": class") and before.get(k) != after[k]]
changed = sorted(k for k in before | after if before.get(k) != after.get(k) and k not in plain)
print(json.dumps([changed, sorted({f"{before[k]} to {after[k]}" for k in plain})]))
"""
STILL = """
import inspect, io, sys
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, test, vector
from xdsl.dialects.builtin import *
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

def calls(work):
    counted = []
    def note(frame, event, argument):
        if event == "call":
            counted.append(frame)
    work()
    sys.setprofile(note)
    work()
    sys.setprofile(None)
    return len(counted) - 1

def read(text):
    context = Context()
    for dialect in (Builtin, func.Func, test.Test):
        context.load_dialect(dialect)
    return str(Parser(context, text).parse_module())

def refused(work):
    try:
        work()
    except VerifyException:
        return True
    return False

one = arith.ConstantOp(IntegerAttr(1, i32))
op = arith.AddiOp(one, one)
block = Block([arith.ConstantOp(IntegerAttr(1, i32)) for _ in range(100)])
region = Region([Block() for _ in range(200)])
lanes = test.TestOp(result_types=[VectorType(i32, [4])]).results[0]
deep = at = ModuleOp([])
for _ in range(50):
    inner = ModuleOp([])
    at.body.block.add_op(inner)
    at = inner
"""


def said(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def listed(name: str) -> bool:
    return any(fnmatchcase(name, each) for change in CHANGES for each in change.members)


@pytest.fixture(scope="module")
def changed() -> Any:
    modules = said(
        f"{IMPORTS}import json, sys\nprint(json.dumps(sorted(m for m in sys.modules if m.startswith('xdsl.'))))"
    )
    return json.loads(said(SNAPSHOT + IMPORTS + COMPARE, modules))


def test_all_that_changes_is_listed(changed: Any) -> None:
    names, classes = changed
    assert [name for name in names if not listed(name)] == []
    assert classes == ["ABCMeta to Plain"]


def test_all_that_is_listed_changes(changed: Any) -> None:
    names, _ = changed
    unused = [
        member
        for change in CHANGES
        for member in change.members
        if "*" not in member and member != "class of IR classes" and member not in names
    ]
    assert unused == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.file}: {change.what[:40]}")
def test_still_needed(change: Change) -> None:
    said(STILL + change.still)


def test_no_traits_are_given() -> None:
    """Classes of xDSL share the object with their traits: to add one changes others too."""
    script = (
        "import stepwell.driver.lowering\nfrom xdsl.interfaces import HasFolderInterface\n"
        "from xdsl.traits import Pure\nprint(HasFolderInterface.has_trait(Pure))"
    )
    assert said(script).split() == ["False"]
