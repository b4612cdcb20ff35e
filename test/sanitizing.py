"""How a process is started in which emitted C is compiled with the sanitizers, and they are loaded.

    python test/sanitizing.py --processes 2 --programs 1000 --sizes 5000 --seed 5

starts two processes that share all rows and 1000 random programs between them, and two that share
5000 programs of unknown sizes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -g1"
QUICK, QUICKEST = "-O1", "-O0"
"""-O1 takes a third of the time of -O2 to compile, and leaves more for the sanitizers to see; -O0
halves what a small program of its own costs, compiler included, which runs a few times."""


def environment(folder: Path, level: str = QUICK) -> dict[str, str] | None:
    """Return variables for such a process, its cache in ``folder``; None where there are none."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    names = ("libasan.so", "libubsan.so")
    libraries = [_library(compiler, name) for name in names] if compiler else []
    if not libraries or not all(Path(library).exists() for library in libraries):
        return None
    wrapper = folder / "cc"  # what is said last holds
    wrapper.write_text(f'#!/bin/sh\nexec {compiler} "$@" {FLAGS} {level}\n')
    wrapper.chmod(0o755)
    search = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "STEPWELL_CC": str(wrapper),
        "STEPWELL_CACHE": str(folder / "cache"),
        "STEPWELL_VERIFY": "0",
        "PYTHONPATH": search.rstrip(os.pathsep),
    }


def _library(compiler: str, name: str) -> str:
    """Return where the compiler has a library; its bare name where it has none."""
    asked = [compiler, f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def started(variables: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start `sanitized.py` with the sanitizers."""
    return subprocess.Popen(
        [sys.executable, str(HERE / "sanitized.py"), *arguments],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main(count: int, programs: int, sizes: int, seed: int) -> int:
    """Share all among ``count`` processes of either kind; return 0 if all was right."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        variables, quickest = environment(Path(first)), environment(Path(second), QUICKEST)
        if variables is None or quickest is None:
            print("the C compiler has no sanitizers")
            return 0
        each: list[subprocess.Popen[str]] = []
        for k in range(count):
            told = ("--seed", str(seed + k), "--verbose")
            rows = ("--rows", f"{k}/{count}", "--programs", str(programs // count))
            each += [
                started(variables, *rows, *told),
                started(quickest, "--rows", "", "--sizes", str(sizes // count), *told),
            ]
        said = [process.communicate()[0] for process in each]
    for process, text in zip(each, said, strict=True):
        shown = text.splitlines()[-60:] if process.returncode else text.splitlines()[-1:]
        print("\n".join(shown))
    return max(process.returncode != 0 for process in each)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="run rows and programs under sanitizers")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--programs", type=int, default=1000, help="random programs, of all")
    parser.add_argument("--sizes", type=int, default=5000, help="of sizes that a call tells")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    sys.exit(main(given.processes, given.programs, given.sizes, given.seed))
