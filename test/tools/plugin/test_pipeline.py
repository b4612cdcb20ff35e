"""Passes of other packages run in the default pipeline, where they say they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.diagnostics import Diagnostic, listening
from stepwell.dialects.nd.arithmetic import AbsOp, NegOp
from stepwell.driver import pipeline
from stepwell.runtime.cache import disk_cache
from stepwell.tools.main import main
from stepwell.transforms.passes import Pass
from stepwell.transforms.rewriting import rewrite

ACME = Path(__file__).parent / "Inputs" / "acme"
PLUGIN = "acme.universe:ACME_UNIVERSE"
TEXT = """\
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = nd.neg %x : tensor<?xf32>
  func.return %n : tensor<?xf32>
}
"""
X = np.linspace(-3, 3, 37, dtype=np.float32)


class _ToSoftsign(RewritePattern):
    """-x  ->  acme.softsign(x), which is another function: results tell whether it ran."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NegOp, rewriter: PatternRewriter) -> None:
        from acme.dialect import SoftsignOp  # pyright: ignore[reportMissingImports]

        rewriter.replace(op, SoftsignOp(op.x))


class _ToAbs(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NegOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, AbsOp(op.x))


@dataclass(frozen=True)
class ToSoftsign(Pass):
    """Make a softsign of each negation."""

    name = "test-to-softsign"
    dialects: ClassVar = ("acme",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [_ToSoftsign()])


@dataclass(frozen=True)
class Undeclared(ToSoftsign):
    """The same, without a word of the dialect."""

    name = "test-undeclared"
    dialects: ClassVar = ()


@dataclass(frozen=True)
class ToAbs(Pass):
    """Make an absolute value of each negation."""

    name = "test-to-abs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [_ToAbs()])


@dataclass(frozen=True)
class LateAbs(Pass):
    """Put an op of nd where nothing lowers it any more."""

    name = "test-late"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        (end,) = (each for each in op.walk() if isinstance(each, ReturnOp))
        late = AbsOp(end.operands[0])
        late.location = end.location
        Rewriter.insert_op(late, InsertPoint.before(end))
        end.operands[0] = late.y


@pytest.fixture(autouse=True)
def acme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ACME)


def softsign(x: Any) -> Any:
    return x / (1 + abs(x))


def test_a_pass_runs_and_its_dialect_is_loaded_with_its_rules() -> None:
    program = sw.compile(TEXT, passes=[ToSoftsign().at("before:decompose")], plugins=[PLUGIN])
    np.testing.assert_allclose(program(X), softsign(X), rtol=1e-6)
    np.testing.assert_array_equal(sw.compile(TEXT)(X), -X)


def test_a_dialect_that_was_not_declared_is_an_error_at_the_pass() -> None:
    with pytest.raises(sw.CompileError, match=r"pass 'test-undeclared' makes acme\.softsign") as e:
        sw.compile(TEXT, passes=[Undeclared().at("before:decompose")], plugins=[PLUGIN])
    assert 'dialects = ("acme",)' in str(e.value) and "<string>:2:3" in str(e.value)


def test_an_op_without_a_way_down_is_an_error_at_the_pass_that_leaves_it() -> None:
    with pytest.raises(sw.CompileError) as e:
        sw.compile(TEXT, passes=[LateAbs().at("after:winograd")])
    said = str(e.value)
    assert "pass 'outline-kernels' leaves nd.abs, which pass 'test-late' made" in said
    assert "<string>:3:3: error" in said
    assert "place 'test-late' before nd-to-linalg, which lowers nd.abs" in said


def test_jit_takes_passes_and_they_are_part_of_the_key() -> None:
    def f(x: Any) -> Any:
        return snp.negative(x)

    np.testing.assert_array_equal(sw.jit(f)(X), -X)
    changed = sw.jit(f, passes=[ToAbs().at("before:decompose")])
    np.testing.assert_array_equal(changed(X), abs(X))
    both = [ToAbs().at("after:test-to-softsign"), ToSoftsign().at("before:decompose")]
    first = sw.jit(f, passes=both, plugins=[PLUGIN])
    np.testing.assert_allclose(first(X), softsign(X), rtol=1e-6)


def test_what_is_traced_is_compiled_as_jit_was_told() -> None:
    f = sw.jit(lambda x: snp.negative(x), passes=[ToAbs().at("before:decompose")])
    traced = f.trace(X)
    np.testing.assert_array_equal(traced.compile()(X), abs(X))
    assert "math.absf" in str(traced.lower("structured"))
    np.testing.assert_array_equal(traced.compile(passes=())(X), -X)
    np.testing.assert_array_equal(traced.lower("loops").compile(passes=())(X), -X)
    narrow = sw.jit(lambda x: x + 1, machine="vector_bits=128").trace(np.ones(64, np.float32))
    assert "vector<4xf32>" in str(narrow.lower("loops"))
    assert "vector<8xf32>" in narrow.compile(machine="vector_bits=256").text("loops")
    opencl = sw.jit(lambda x: x + 1, target="opencl").trace(X)
    with pytest.raises(sw.CompileError, match="'vector_bitz=1'"):
        opencl.compile(machine="vector_bitz=1")
    assert opencl.compile(target="c").signature.target == "c"
    with pytest.raises(sw.CompileError, match="unknown target 'none'"):
        sw.jit(lambda x: x + 1, target="none").trace(X).compile()


def test_a_changed_list_of_stages_is_not_served_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("%n =", "%m = nd.neg %x : tensor<?xf32>\n  %n =")
    assert "canonicalize" not in sw.compile(text).text("nd")
    first, *rest = pipeline.STAGES
    without = replace(first, passes="inline-calls,decompose")
    before = sw.compile(text).source
    monkeypatch.setattr(pipeline, "STAGES", (without, *rest))
    assert sw.compile(text).text("nd").count("nd.neg") == 2
    assert sw.compile(text).source == before, "the other floors drop the dead op as well"


@pytest.fixture
def empty_cache(tmp_path: Path) -> Iterator[None]:
    """A cache of the test alone: what is cached tells nothing again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPWELL_CACHE", str(tmp_path))
        disk_cache.cache_clear()
        yield
    disk_cache.cache_clear()


@pytest.mark.usefixtures("empty_cache")
def test_a_pass_above_the_modules_floor_is_told() -> None:
    said: list[Diagnostic] = []
    lower = sw.compile(TEXT).text("structured")
    with listening(said.append):
        program = sw.compile(lower, passes=[ToAbs().at("before:decompose")])
    np.testing.assert_array_equal(program(X), -X)
    assert "pass 'test-to-abs' stands in stage 'nd' and does not run" in str(said)


def test_passes_are_a_list() -> None:
    with pytest.raises(TypeError, match="passes must be a list"):
        sw.compile(TEXT, passes="cse@before:decompose")


@pytest.mark.machine("avx-512, 1 MiB, 2 cores")
def test_the_command_line_places_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "neg.mlir"
    file.write_text(TEXT)
    place = ["--pass", "licm@before:nd-to-linalg", "--pass", "dce@after:structured"]
    assert main(["compile", str(file), "--print-pipeline", *place]) == 0
    said = capsys.readouterr().out
    assert "\nstructured: licm,nd-to-linalg," in said and ",dce\nkernels:" in said
    assert main(["run", str(file), "--random", *place]) == 0
    capsys.readouterr()
    assert main(["compile", str(file), "--pass", "licm@before:decompos"]) == 1
    assert "did you mean 'decompose'?" in capsys.readouterr().err
