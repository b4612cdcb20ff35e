"""A package outside the tree adds an op, a pass and a target, and every tool has them.

The package is `Inputs/acme`; docs/extending.md explains its files.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell import extending
from stepwell.testing.opencl import TARGETS

ACME = Path(__file__).parent / "Inputs" / "acme"
ROOT = Path(__file__).parents[3]
PROGRAM = """\
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = nd.neg %x : tensor<?xf32>
  %y = acme.softsign %n : tensor<?xf32>
  func.return %y : tensor<?xf32>
}
"""
RUN = """
import numpy as np, stepwell as sw, sys
x = np.linspace(-3, 3, 37, dtype=np.float32)
compiled = sw.compile(sys.stdin.read())
np.testing.assert_allclose(compiled(x), -x / (1 + abs(x)), rtol=1e-6)
print([k.name for k in compiled.kernels])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package as a user would, but into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    here = tmp_path_factory.mktemp("source") / "acme"
    subprocess.run(["cp", "-r", str(ACME), str(here)], check=True)  # pip builds beside the source
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, *offline, str(here)], check=True)
    return folder


def run(site: Path, *command: str, stdin: str = PROGRAM) -> tuple[str, str]:
    """Run a program of this environment with the package in reach; return what it wrote."""
    done = subprocess.run(
        [sys.executable, *command],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(site), "STEPWELL_CACHE": str(site / "cache")},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def opt(site: Path, *options: str, stdin: str = PROGRAM) -> tuple[str, str]:
    return run(site, "-m", "stepwell.tools.opt", *options, stdin=stdin)


def test_tools_list_it(site: Path) -> None:
    listed, _ = opt(site, "--list-passes")
    assert re.search(r"passes of acme:\n +softsign-of-neg +Take the sign of an argument", listed)
    shown, _ = opt(site, "--show-pass", "softsign-of-neg")
    assert "Before:  %n = nd.neg %x; %y = acme.softsign %n" in shown
    shown, _ = run(site, "-m", "stepwell.tools.main", "ops", "acme.softsign")
    assert "y = x / (1 + |x|)" in shown and "lowering: yes" in shown
    listed, _ = run(site, "-m", "stepwell.tools.main", "ops")
    assert re.search(r"\nacme:\n +acme.softsign +``y = x", listed)


def test_it_parses_verifies_and_is_rewritten(site: Path) -> None:
    text, errors = opt(site, "-p", "softsign-of-neg,dce", "--check")
    assert errors == ""
    assert re.search(r"%(\w+) = acme.softsign %x : .*\n +%y = nd.neg %\1 :", text)
    wrong = PROGRAM.replace("xf32", "xi32")
    assert "error: 'acme.softsign': elements must be floating point" in opt(site, stdin=wrong)[1]
    typo = PROGRAM.replace("softsign", "softsing")
    assert "help: did you mean 'acme.softsign'?" in opt(site, stdin=typo)[1]
    counted, _ = opt(site, "-t", "op-counts")
    assert "     1 acme.softsign\n" in counted


def test_it_goes_all_the_way_down(site: Path) -> None:
    text, errors = opt(site, "-p", "through(loops)", "--check")
    assert errors == "" and "acme" not in text and "vector" in text
    out, errors = run(site, "-c", RUN)
    assert errors == "" and len(out.split(",")) == 1, "negation and softsign are one kernel"


JIT = """
import numpy as np, stepwell as sw, stepwell.numpy as snp, sys
@sw.jit(target="acme-steps")
def f(x, w):
    return snp.tanh(x) @ w, snp.sum(x, axis=0)
x, w = np.ones((3, 4), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
for _ in range(2):
    y, s = f(x, w)
np.testing.assert_allclose(y, np.tanh(x) @ w, rtol=1e-5)
np.testing.assert_allclose(s, [3, 3, 3, 3])
@sw.jit(target="acme-steps")
def closed(x):
    return x * w.T[0] + 1
np.testing.assert_allclose(closed(x), x * w.T[0] + 1)
program = sw.compile(sys.stdin.read(), target="acme-steps")
out = np.zeros(5, np.float32)
assert program(np.ones(5, np.float32), out=out) is out
np.testing.assert_allclose(out, -0.5)
program.save(sys.argv[1])
np.testing.assert_allclose(sw.load(sys.argv[1])(np.ones(2, np.float32)), [-0.5, -0.5])
print(program.source.count("scf.for"), len(program.kernels))
try:
    program(np.ones(5, np.int32))
except TypeError as error:
    print(error)
"""


def test_its_target_runs(site: Path, tmp_path: Path) -> None:
    listed, _ = run(site, "-m", "stepwell.tools.main", "targets")
    assert re.search(r"\n +c +C for this processor", listed)
    assert "  acme-steps  loops as text, run by the reference interpreter\n" in listed
    assert re.search(r" op-counts +Write how often .* \(by stepwell-opt -t alone\)\n", listed)
    file = tmp_path / "p.mlir"
    file.write_text(PROGRAM)
    command = ("-m", "stepwell.tools.main", "run", str(file), "--random", "--target")
    assert run(site, *command, "acme-steps") == run(site, *command, "c")
    out, errors = run(site, "-c", JIT, str(tmp_path / "saved"))
    assert errors == "" and re.match(r"\d+ 1\nargument 'x': expected float32\[\?\], got", out)
    _, errors = run(site, *command, "acme-step")
    assert "error: unknown target 'acme-step'\n   help: did you mean 'acme-steps'?" in errors
    _, errors = run(site, *command, "op-counts")
    assert "error: target 'op-counts' of acme only prints modules" in errors
    _, errors = run(Path("elsewhere"), "-m", "stepwell.tools.main", "run", str(tmp_path / "saved"))
    assert "unknown target 'acme-steps'\n   help: install the package" in errors


def test_targets_print_loops(site: Path) -> None:
    for target, word in (
        ("c", "int32_t stepwell_main("),
        ("opencl", "__kernel"),
        ("acme-steps", "scf."),
    ):
        text, errors = opt(site, "-p", "through(loops)", "-t", target)
        assert errors == "" and word in text
    text, errors = opt(site, "-t", "c")
    assert text == "" and "error: argument 0 of @main must be a memref" in errors


SATURATED = """\
func.func @main(%x: tensor<?xf32>, %h: tensor<5x7xf16>, %d: tensor<5x7xf64>) -> (tensor<?xf32>, tensor<5x7xf16>, tensor<7xf64>) {
  %n = nd.neg %x : tensor<?xf32>
  %y = acme.hard_sigmoid %n : tensor<?xf32>
  %k = acme.hard_sigmoid %h : tensor<5x7xf16>
  %c = acme.hard_sigmoid %d : tensor<5x7xf64>
  %s = nd.reduce_sum %c {axes = [0]} : tensor<5x7xf64> -> tensor<7xf64>
  func.return %y, %k, %s : tensor<?xf32>, tensor<5x7xf16>, tensor<7xf64>
}
"""
LOOPS = """\
func.func @main(%x: memref<8xf32>, %y: memref<8xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<8xf32>, vector<8xf32>
  %s = acme.saturate %v : vector<8xf32>
  vector.store %s, %y[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}
"""
FLOORS = """
import numpy as np, stepwell as sw, sys
text = sys.stdin.read()
x = np.linspace(-4, 4, 37, dtype=np.float32)
h, d = x[:35].reshape(5, 7).astype(np.float16), x[:35].reshape(5, 7).astype(np.float64)
def hard(x):
    return np.clip(x / 4 + 0.5, 0, 1)
target = sys.argv[1]
stages = sw.compile(text, target=target).texts()
assert "acme.saturate" in stages["loops"]
for stage in ("nd", "structured", "kernels", "buffers", "loops"):
    y, k, s = sw.compile(stages[stage], target=target)(x, h, d)
    np.testing.assert_allclose(y, hard(-x), rtol=1e-6)
    np.testing.assert_allclose(k, hard(h.astype(np.float32)).astype(np.float16))
    np.testing.assert_allclose(s, hard(d).sum(0))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_an_op_of_loops_runs(target: str, site: Path) -> None:
    """From graphs through every floor."""
    _, errors = run(site, "-c", FLOORS, target, stdin=SATURATED)
    assert errors == ""


def test_an_op_of_loops_is_written(site: Path) -> None:
    text, errors = opt(site, "-p", "through(loops)", "--check", stdin=SATURATED)
    assert errors == "" and "acme.saturate" in text and ": vector<" in text
    text, errors = opt(site, "-t", "c", stdin=LOOPS)
    assert errors == "" and "fmin" in text and "// <stdin>:4" in text
    text, errors = run(site, "-m", "stepwell.tools.main", "run", "-", "--random", stdin=LOOPS)
    assert errors == "" and text.startswith("y: float32[8]")
    unknown = LOOPS.replace("acme.saturate", "acme.softsign").replace("vector<8xf32>", "f32")
    _, errors = opt(site, "-t", "c", stdin=unknown)
    assert "error:" in errors


def test_a_changed_target_compiles_anew(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    file.write_text(PROGRAM.replace("acme.softsign", "nd.neg"))
    command = ("-m", "stepwell.tools.main", "run", str(file), "--random", "--target", "acme-steps")
    steps = site / "acme" / "steps.py"
    before, (first, _) = steps.read_text(), run(site, *command)
    steps.write_text(before.replace('source="program.mlir"', 'source="other.mlir"'))
    try:
        assert run(site, *command)[0] == first
    finally:
        steps.write_text(before)


def test_a_changed_package_compiles_anew(site: Path) -> None:
    lowering = site / "acme" / "lowering.py"
    before = lowering.read_text()
    # of another size: Python tells files of one second apart by that alone
    lowering.write_text(before.replace("b.number(1)", "b.number(2) "))
    try:
        changed = subprocess.run(
            [sys.executable, "-c", RUN],
            input=PROGRAM,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(site), "STEPWELL_CACHE": str(site / "cache")},
        )
        assert "Not equal to tolerance" in changed.stderr
    finally:
        lowering.write_text(before)


def test_xdsl_opt_has_it_too(site: Path) -> None:
    xdsl = "from xdsl.tools.xdsl_opt import main; main()"
    text, _ = run(site, "-c", xdsl, "-p", "softsign-of-neg,inline-calls,nd-to-linalg")
    assert "math.absf" in text and "acme" not in text


GUIDE = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_guide_shows_this_package() -> None:
    """Each block of code in the guide is a piece of a file of the package, or a file it names."""
    files = [p.read_text() for p in ACME.rglob("*") if p.suffix in (".py", ".toml")]
    blocks = [m for m in BLOCK.finditer(GUIDE) if m[1] in ("python", "toml") and not named(m)]
    assert len(blocks) >= 6
    for block in blocks:
        assert any(block[2] in file for file in files), block[2]


def test_the_guide_names_what_extending_exports() -> None:
    tables = set(re.findall(r"^ *@(\w+)\(\w+Op\)", GUIDE, re.MULTILINE))
    tables |= set(re.findall(r"`(\w+)\.none\(Op", GUIDE))
    tables |= {"moves", "tangent", "remark", "fail", *re.findall(r"\b[A-Z]\w+Op\b(?=\(|\))", GUIDE)}
    ours = {
        "SoftsignOp",
        "HardSigmoidOp",
        "SaturateOp",
        "CountOp",
        "EnergyOp",
        "AbsFOp",
        "ModuleOp",
    }
    lacking = [n for n in sorted(tables - ours) if not hasattr(extending, n)]
    assert {"batching", "gradient", "NegOp"} <= tables and not lacking


def named(block: re.Match[str]) -> str:
    """Return the file that the sentence before a block says it is: "This is `soft.py`:"."""
    found = re.search(r"(?:This is|[Ww]ith) `([\w.]+)`:\s*$", GUIDE[: block.start()])
    return found[1] if found else ""


def test_the_guide_works_as_it_is_read(site: Path, tmp_path: Path) -> None:
    """Files are written as shown; commands run in order and print what is below them."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "STEPWELL_CACHE": str(site / "cache")}
    environment["PYTHONPATH"] = str(site)
    ran = 0
    for block in BLOCK.finditer(GUIDE):
        if name := named(block):
            (tmp_path / name).write_text(block[2])
        if block[1] != "console":
            continue
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[2], re.MULTILINE):
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            for line in shown.splitlines():
                assert line in done.stdout, f"{command}\n{done.stdout}"
            ran += 1
    assert ran >= 12


def test_an_op_of_a_function_has_few_lines() -> None:
    (source,) = (m[2] for m in BLOCK.finditer(GUIDE) if named(m) == "soft.py")
    assert len(source.splitlines()) <= 20
