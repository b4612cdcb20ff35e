"""What fails in the code of a package is one message: the op, its place, the pass, whose code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stepwell as sw
from stepwell.tools.main import main
from stepwell.tools.opt import main as opt

FAILING = '''
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Pure
from xdsl.universe import Universe
from xdsl.utils.target import Target

from stepwell.dialects.nd.base import FLOAT
from stepwell.dialects.nd.elementwise import Unary, in_numpy, same_type
from stepwell.lowering.emit import emit
from stepwell.lowering.nd_to_linalg.elementwise import register
from stepwell.transforms.passes import Pass
from stepwell.transforms.rewriting import rewrite


@irdl_op_definition
class LostOp(Unary):
    """Has no way down that works."""

    name = "failing.lost"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class ScalarOp(IRDLOperation):
    name = "failing.scalar"
    x = operand_def(f32)
    y = result_def(f32)
    traits = traits_def(Pure())


@irdl_op_definition
class WrittenOp(Unary):
    """Comes down to an op whose text fails."""

    name = "failing.written"
    ELEMENTS: ClassVar = FLOAT


same_type(LostOp, WrittenOp)
in_numpy({LostOp: lambda x: x, WrittenOp: lambda x: x})


def _lost(b, x):
    return {}["no body"]


register({LostOp: _lost, WrittenOp: lambda b, x: b.emit(ScalarOp.build(operands=[x], result_types=[f32]))})


@emit(ScalarOp)
def _scalar(w, op):
    raise ValueError("no text")


class _Stumble(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LostOp, rewriter):
        raise IndexError("in a pattern")


@dataclass(frozen=True)
class Stumble(Pass):
    """Stumbles over the first op it looks for."""

    name = "stumble"

    def apply(self, ctx, op):
        rewrite(op, [_Stumble()])


@dataclass(frozen=True)
class Nowhere(Target):
    """Fails."""

    name = "nowhere"

    def emit(self, ctx, module, output):
        for op in module.walk():
            if op.name == "failing.lost":
                raise RuntimeError("no place")


ALL = Universe(
    all_dialects={"failing": lambda: Dialect("failing", [LostOp, WrittenOp, ScalarOp])},
    all_passes={"stumble": lambda: Stumble},
    all_targets={"nowhere": lambda: Nowhere},
)
'''
TEXT = """\
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = nd.neg %x : tensor<?xf32>
  %y = failing.lost %n : tensor<?xf32>
  func.return %y : tensor<?xf32>
}
"""
PLUGIN = "failing_here:ALL"


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.getbasetemp() / "failing"
    folder.mkdir(exist_ok=True)
    (folder / "failing_here.py").write_text(FAILING)
    (folder / "p.mlir").write_text(TEXT)
    (folder / "written.mlir").write_text(TEXT.replace("lost", "written"))
    monkeypatch.chdir(folder)
    return folder


def of_opt(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert opt([*arguments, "--plugin", PLUGIN]) == 1
    return capsys.readouterr().err


def test_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    said = of_opt(capsys, "p.mlir", "-p", "stumble")
    assert said.startswith(
        "p.mlir:3:3: error: pass 'stumble' crashed: IndexError: in a pattern, at failing.lost\n"
        "    3 |   %y = failing.lost %n : tensor<?xf32>\n"
    )
    assert re.search(
        r"note: in match_and_rewrite of failing_here \(failing_here.py, line \d+\)", said
    )
    file = re.search(r"--run-reproducer --debug (\S+)", said)
    assert file is not None
    assert opt(["--run-reproducer", file[1]]) == 1, "without --plugin"
    assert "IndexError: in a pattern, at failing.lost" in capsys.readouterr().err


def test_a_rule_of_lowering(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sw.CompileError) as caught:
        sw.compile(Path("p.mlir"), plugins=[PLUGIN])
    said = str(caught.value)
    assert said.startswith(
        "p.mlir:3:3: error: failing_here fails in pass 'nd-to-linalg' of stage 'structured': "
        "KeyError: 'no body', at failing.lost\n"
    )
    assert "note: in _lost of failing_here" in said and "compiler bug" not in said
    said = of_opt(capsys, "p.mlir", "-p", "through(loops)")
    assert "pass 'nd-to-linalg' crashed: KeyError: 'no body', at failing.lost" in said


def test_a_rule_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    for target in ("c", "opencl"):
        command = ["compile", "written.mlir", "--target", target, "--plugin", PLUGIN]
        assert main(command) == 1
        said = capsys.readouterr().err
        assert said.startswith(
            f"written.mlir:3:3: error: failing_here fails in printing for target '{target}': "
            "ValueError: no text, at failing.scalar\n"
        )
        assert "note: in _scalar of failing_here" in said


def test_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    said = of_opt(capsys, "p.mlir", "-t", "nowhere")
    assert said.startswith(
        "p.mlir:3:3: error: target 'nowhere' cannot print the module: RuntimeError: no place, "
        "at failing.lost\n"
    )


def test_a_misspelt_property(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    for line, name, help in (
        (
            "%y = nd.cumulative_sum %x {axis = 0, revers} : tensor<?xf32>",
            "revers",
            "did you mean 'reverse'?",
        ),
        (
            '%y = "nd.reverse"(%x) <{axs = array<i64: 0>}> : (tensor<?xf32>) -> tensor<?xf32>',
            "axs",
            "did you mean 'axes'?",
        ),
    ):
        text = TEXT.splitlines()
        (here / "m.mlir").write_text("\n".join([text[0], line, *text[3:]]))
        said = of_opt(capsys, "m.mlir")
        assert said.startswith(f"m.mlir:2:{line.index(name) + 1}: error: '"), said
        assert f"has no property '{name}'" in said and f"help: {help}" in said


def test_what_upstream_takes_is_taken(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "m.mlir").write_text(
        "func.func @f(%x: f32) -> f32 attributes {tag = 1 : i32} {\n"
        "  %y = arith.addf %x, %x {tag = 1 : i32, mine.kind} : f32\n"
        "  func.return %y : f32\n}\n"
    )
    assert opt(["m.mlir"]) == 0
    capsys.readouterr()
    (here / "m.mlir").write_text(
        "func.func @f() {\n  %m = memref.alloc() {alignmnt = 64 : i64} : memref<4xf32>\n  func.return\n}\n"
    )
    assert "help: did you mean 'alignment'?" in of_opt(capsys, "m.mlir")
