"""Build the sdist, the wheel from it, and try that outside of the tree: `make package`.

On each Python from 3.11 that is there, in an environment that has the wheel alone, README's examples
run. On the newest lit's files pass, with the one line of lit.cfg that packages outside write, and the
tests of what differs between Pythons. Pythons that the metadata names and that are not there are told.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = 11, 20
"""Minor versions of Python that are looked for."""
SUITES = ("test/transforms", "test/dialects/nd")
OF_PYTHON = ("captures", "trees")
"""Tests in test/frontend: how objects are watched and taken apart is the own of each Python."""
CONFIGURATION = "import stepwell.testing.lit; stepwell.testing.lit.configure(config)\n"
BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_{}(sys.argv[1]))"


class BrokenPackageError(Exception):
    """The package is not what it should be."""


def run(command: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Run a command in a folder; return what it said."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "STEPWELL_MACHINE")}
    done = subprocess.run(
        command, cwd=folder, env={**kept, **(more or {})}, capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-4000:]
        raise BrokenPackageError(
            f"{' '.join(map(str, command))}\nended with {done.returncode}\n{said}"
        )
    return done.stdout


def build(folder: Path) -> Path:
    """Build the sdist from the files that git has, and the wheel from the sdist; return that."""
    tree, unpacked = folder / "tree", folder / "unpacked"
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    for name in filter(None, listed.split("\0")):
        if not (ROOT / name).exists():
            continue
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    run([sys.executable, "-c", BUILD.format("sdist"), folder], tree)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    run([sys.executable, "-c", BUILD.format("wheel"), folder], source)
    (wheel,) = folder.glob("*.whl")
    check_files(wheel, tree)
    return wheel


def check_files(wheel: Path, tree: Path) -> None:
    """See to it that the wheel has every file of the package, and the licence."""
    roots = {tree / "src/stepwell": "stepwell"}
    roots |= {tree / name: f"stepwell/{name}" for name in ("dialects", "lowering")}
    wanted = {
        f"{name}/{path.relative_to(root).as_posix()}"
        for root, name in roots.items()
        for path in root.rglob("*")
        if path.is_file() and path.suffix in (".py", ".c", ".h", ".typed")
    }
    with zipfile.ZipFile(wheel) as archive:
        found = set(archive.namelist())
        (metadata,) = [n for n in found if n.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    if missing := sorted(wanted - found):
        raise BrokenPackageError(f"the wheel lacks {', '.join(missing)}")
    if not any(name.endswith("licenses/LICENSE") for name in found):
        raise BrokenPackageError("the wheel lacks the licence")
    if "License-Expression: Apache-2.0 WITH LLVM-exception" not in text:
        raise BrokenPackageError("the metadata do not name the licence")


def pythons() -> Iterator[Path]:
    """Yield one interpreter for each minor version that is there, oldest first."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(OLDEST, NEWEST):
        name = f"python3.{minor}"
        named = [Path(found)] if (found := shutil.which(name)) else []
        for path in [*named, *sorted(managed.glob(f"3.{minor}.*/bin/{name}"))]:
            done = subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True)
            if done.returncode == 0:
                yield path
                break


def try_on(python: Path, wheel: Path, folder: Path, newest: bool) -> str:
    """Install the wheel for one Python and use it there; return what was seen."""
    home = folder / python.name
    home.mkdir()
    run([python, "-m", "venv", home / "env"], folder)
    own = home / "env" / "bin"
    run([own / "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[testing]"], home)
    environment = {
        "STEPWELL_CACHE": str(home / "cache"),
        "PATH": f"{own}{os.pathsep}{os.environ['PATH']}",
    }
    where = run([own / "python", "-c", "import stepwell; print(stepwell.__file__)"], home).strip()
    if not Path(where).is_relative_to(home):
        raise BrokenPackageError(f"stepwell was imported from {where}")
    readme(own, home, environment)
    version = run([own / "stepwell", "--version"], home, environment).strip()
    seen = f"{version} on {python}: README's examples"
    if not newest:
        return seen
    for suite in SUITES:
        shutil.copytree(ROOT / suite, home / "lit" / suite)
    (home / "lit" / "lit.cfg").write_text(CONFIGURATION)
    said = run([own / "lit", "lit"], home, environment)
    shutil.copytree(ROOT / "test" / "frontend", home / "frontend")
    files = [f"frontend/test_{name}.py" for name in OF_PYTHON]
    tests = run([own / "python", "-m", "pytest", "-q", *files], home, environment)
    return f"{seen}, {' '.join(said.split()[-3:])}, {tests.splitlines()[-1]}"


def readme(own: Path, home: Path, environment: Mapping[str, str]) -> None:
    """Run the examples of README as a reader would."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    def block(language: str) -> str:
        found = re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        if found is None:
            raise BrokenPackageError(f"README has no example of {language}")
        return found[1]

    (home / "cosine.mlir").write_text(block("mlir"))
    (home / "example.py").write_text(block("python"))
    run([own / "python", "example.py"], home, environment)
    for line in block("console").splitlines():
        command, *rest = line.removeprefix("$ ").split()
        run([own / command, *rest], home, environment)


def main() -> int:
    """Build and try; return 0, or 1 where something is broken."""
    with TemporaryDirectory(prefix="stepwell-package-") as name:
        folder = Path(name)
        try:
            wheel = build(folder)
            print(f"{wheel.name}: {wheel.stat().st_size >> 10} KiB", flush=True)
            tried: set[str] = set()
            found = list(pythons())
            for python in found:
                print(try_on(python, wheel, folder, python is found[-1]), flush=True)
                tried.add(python.name.removeprefix("python"))
        except BrokenPackageError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    named = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    for version in sorted(set(named) - tried):
        print(f"Python {version} is not here: not tried")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
