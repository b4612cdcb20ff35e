"""stepwell-opt from the command line, where lit would be clumsy."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %d = nd.sub %x, %y : tensor<?xf32>
  %z = nd.neg %d : tensor<?xf32>
  %r = nd.sub %z, %y : tensor<?xf32>
  func.return %r : tensor<?xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    return path


def opt(*arguments: object, stdin: str = "", plugin: bool = True):
    extra = ["--plugin", "wrong_plugin:UNIVERSE"] if plugin else []
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import stepwell.tools.opt as o; "
    code += "sys.exit(o.main())"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments), *extra],
        input=stdin,
        capture_output=True,
        text=True,
    )


def test_check_names_the_wrong_pass_and_the_first_difference(program: Path) -> None:
    done = opt(program, "-p", "cse,swap-subtraction,dce", "--check")
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.search(
        r"p\.mlir:\d+:\d+: error: pass 'swap-subtraction' changes the result of @main: "
        r"result 0 at \[0\] is \S+, was \S+\n",
        done.stderr,
    )
    assert "the first op with another value is nd.sub" in done.stderr
    assert re.search(r"; found with random inputs, \? = \d+", done.stderr)


def test_check_passes_what_is_right(program: Path) -> None:
    done = opt(program, "-p", "cse,dce", "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_crash_is_one_message_and_a_reproducer(program: Path, tmp_path: Path) -> None:
    saved = tmp_path / "r.mlir"
    done = opt(program, "-p", "cse,crash{depth=2},dce", "--reproducer", saved)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "error: pass 'crash{depth=2}' crashed: KeyError: 'a bug in the pass'" in done.stderr
    assert f"help: reproduce with: stepwell-opt --run-reproducer --debug {saved}" in done.stderr
    assert "// pipeline: crash{depth=2},dce\n" in saved.read_text()
    again = opt("--run-reproducer", saved, "--debug")
    assert again.returncode == 1
    assert "Traceback" in again.stderr
    assert "pass 'crash{depth=2}' crashed" in again.stderr


def test_verification_between_passes(program: Path) -> None:
    done = opt(program, "-p", "break-dominance")
    assert done.returncode == 0, "the first subtraction may stand first"
    moved = PROGRAM.replace("%d = nd.sub %x, %y", "%d = nd.neg %x").replace(
        "nd.neg %x, %y", "nd.neg %x"
    )
    done = opt("-", "-p", "break-dominance", stdin=moved)
    assert done.returncode == 1
    assert "error: 'nd.sub': %z is used before it is defined" in done.stderr
    assert "note: it is defined here" in done.stderr
    assert opt("-", "-p", "break-dominance", "--no-verify-each", stdin=moved).returncode == 0


def test_flags_may_be_bare_in_options(program: Path) -> None:
    done = opt(program, "-p", "crash{loudly}")
    assert "pass 'crash{loudly=true}' crashed" in done.stderr


@pytest.mark.parametrize(
    "pipeline, message",
    [
        (
            "canonicalise",
            "<pipeline>:1:1: error: unknown pass 'canonicalise'\n    1 | canonicalise\n      | ^^^^^^^^^^^^\n   help: did you mean 'canonicalize'?",
        ),
        ("cse,", "expected the name of a pass"),
        ("func.func(cse", "expected ',' or ')'"),
        ("cse)", "expected ',' or the end of the pipeline"),
        ("crash{dept=1}", "pass 'crash' has no option 'dept'"),
        (
            "cse,crash{depth=x}",
            "<pipeline>:1:11: error: option 'depth' of pass 'crash' is int, not x\n    1 | cse,crash{depth=x}\n      |           ^^^^^\n",
        ),
        ("crash{dept=1}", "   help: did you mean 'depth'?"),
        ("cse{fast}", "help: it takes no options"),
        ("through(structurd)", "<pipeline>:1:9: error: unknown stage 'structurd'"),
        ("through(", "unknown stage ''"),
        ("through(nd", "expected ')'"),
        ("func.func(through(nd))", "a stage is for the whole module, not for parts of it"),
        ("crash{depth=1", "'{' is never closed"),
    ],
)
def test_wrong_pipelines(program: Path, pipeline: str, message: str) -> None:
    done = opt(program, "-p", pipeline)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_through_a_stage(program: Path) -> None:
    done = opt(program, "-p", "through(structured),swap-subtraction", plugin=True)
    assert done.returncode == 0, done.stderr
    assert "linalg.generic" in done.stdout and "= nd." not in done.stdout
    assert done.stderr == "", "what a stage has nothing to do with is no news"


def test_a_pass_that_changed_nothing(program: Path) -> None:
    assert opt(program, "-p", "cse,canonicalize", plugin=False).stderr == ""
    done = opt(program, "-p", "plan-memory", plugin=False)
    assert done.stderr == "warning: pass 'plan-memory' changed nothing\n"


def test_names_of_passes_to_print(program: Path) -> None:
    done = opt(program, "-p", "cse", "--print-ir-after=csee")
    assert done.returncode == 1
    assert "error: unknown pass 'csee' to print\n   help: did you mean 'cse'?" in done.stderr


def test_anchors(program: Path) -> None:
    done = opt(program, "-p", "builtin.module(func.func(cse,swap-subtraction),dce)")
    assert done.returncode == 0
    assert "nd.sub %y, %x" in done.stdout
    done = opt(program, "-p", "kernel.func(cse)")
    assert done.returncode == 0
    assert "warning: pass 'kernel.func(cse)' ran on nothing" in done.stderr


def test_printing_between_passes(program: Path, tmp_path: Path) -> None:
    done = opt(program, "-p", "cse,swap-subtraction,dce", "--print-ir-after-change")
    assert done.stderr.count("// after ") == 1
    assert "// after swap-subtraction\nbuiltin.module {" in done.stderr
    done = opt(program, "-p", "cse,dce", "--print-ir-before=dce", "--print-ir-after=cse")
    assert re.findall(r"^// .*", done.stderr, re.M) == ["// after cse", "// before dce"]
    folder = tmp_path / "steps"
    done = opt(program, "-p", "cse,dce", "--print-ir-tree-dir", folder)
    assert sorted(f.name for f in folder.iterdir()) == ["00_after_cse.mlir", "01_after_dce.mlir"]
    assert done.stderr == ""


def test_timing_and_statistics_go_to_stderr(program: Path) -> None:
    done = opt(program, "-p", "cse", "--timing", "--stats")
    assert done.stdout.startswith("builtin.module")
    rows = (
        r"%  total\n.*%    parse\n.*%    verify input\n.*%    cse\n.*%      verify\n.*%    print\n"
    )
    assert re.search(rows, done.stderr)
    assert re.search(r"^ +\d+ +\d+  cse: unchanged$", done.stderr, re.M)


def test_large_constants_can_be_elided() -> None:
    text = "%c = arith.constant dense<[1, 2, 3]> : tensor<3xi32>"
    done = opt("-", "--elide-constants=2", stdin=text)
    assert "arith.constant dense_resource<__elided__> : tensor<3xi32>" in done.stdout
    assert "dense<[1, 2, 3]>" in opt("-", "--elide-constants=3", stdin=text).stdout


def test_files(program: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    target.write_text("before")
    assert opt(program, "-p", "crash", "-o", target).returncode == 1
    assert target.read_text() == "before", "nothing is half-written"
    assert opt(program, "-o", target).returncode == 0
    assert "nd.sub" in target.read_text()
    done = opt(tmp_path / "missing.mlir")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: cannot read" in done.stderr
    done = opt(program, "-o", tmp_path / "no" / "such" / "out.mlir")
    assert "error: cannot write" in done.stderr


@pytest.mark.parametrize(
    "text", ["\x00\x01", '"' + "a" * 60, "func.func", "{{{{", '"', "func.func @f(", "%%%", "⚙"]
)
def test_garbage(text: str) -> None:
    done = opt("-", stdin=text, plugin=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.match(r"<stdin>:\d+:\d+: error: ", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "b.mlir"
    path.write_bytes(b"func.func \xff")
    done = opt(path, plugin=False)
    assert "b.mlir is not text: byte 10 is not UTF-8" in done.stderr


def test_regions_500_deep() -> None:
    depth = 500
    text = "func.func @f(%c: i1) {\n" + "scf.if %c {\n" * depth + "}\n" * depth + "func.return\n}\n"
    done = opt("-", "-p", "canonicalize,cse", stdin=text, plugin=False)
    assert done.returncode == 0, done.stderr[-500:]


def test_empty_input() -> None:
    done = opt("-", stdin="", plugin=False)
    assert (done.returncode, done.stdout) == (0, "builtin.module {\n}\n")


def test_expectations_must_be_met() -> None:
    text = "// expected-error {{something}}\nfunc.func @f() { func.return }\n"
    done = opt("-", "--verify-diagnostics", stdin=text)
    assert done.returncode == 1
    assert "expected error 'something' was not produced" in done.stderr
    done = opt("-", "--verify-diagnostics", stdin="func.func @f() {\n  nd.nonsense\n}\n")
    assert done.returncode == 1
    assert "unexpected error: unknown op 'nd.nonsense'" in done.stderr
    done = opt("-", "--verify-diagnostics", stdin="// expected-error nothing\n")
    assert "cannot read this expectation" in done.stderr


def test_list_and_show() -> None:
    listed = opt("--list-passes", plugin=False).stdout
    assert re.search(r"^  nd-to-linalg +\S", listed, re.M)
    shown = opt("--show-pass", "nd-to-linalg", plugin=False).stdout
    assert "Before:" in shown and "After:" in shown and "numerics: reassociating" in shown
    done = opt("--show-pass", "nd-to-linal", plugin=False)
    assert done.returncode == 1
    assert "did you mean 'nd-to-linalg'?" in done.stderr
    assert "  depth: int (default 1)" in opt("--show-pass", "crash").stdout


def test_bit_exact_refuses_what_is_not_declared_exact(program: Path) -> None:
    done = opt(program, "-p", "swap-subtraction", "--bit-exact")
    assert "error: pass 'swap-subtraction' is undeclared, which --bit-exact forbids" in done.stderr


def test_plugins_that_cannot_be_loaded(program: Path) -> None:
    done = opt(program, "--plugin", "no_such_module:X")
    assert done.returncode == 1
    assert "error: cannot load --plugin no_such_module:X" in done.stderr
