"""The C compiler of this machine: its choice, its flags, and its commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.files import find_command, write_whole
from stepwell.runtime.cache import cache_root, digest
from stepwell.runtime.private import make_private

FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-w", "-fopenmp-simd")
SEMANTICS = ("-fwrapv", "-fno-strict-aliasing", "-fno-math-errno", "-ffp-contract=fast")
"""Flags that emitted programs need: wrapping integers, buffers of several types in one arena."""
STORES = "-mstore-max=128"
"""Blocks of constants are copied in 16 bytes at a time. gcc 12 takes a vector of AVX-512 whose last
words are zeros (1, 1, 1, 0, ...) for one number repeated: it compares only the words before them.
Compilers that do not know the flag do not copy constants so."""
OPTIONAL = (
    ("-march=native", "-nostdlib", STORES),
    ("-march=native", STORES),
    ("-march=native", "-nostdlib"),
    ("-march=native",),
    ("-mcpu=native",),
    (),
)
"""Optional flags, tried in this order until the compiler accepts them."""
LEAN = (
    "-O1",
    "-fexpensive-optimizations",
    "-fgcse",
    "-ftree-pre",
    "-fcode-hoisting",
    "-ftree-loop-vectorize",
    "-fvect-cost-model=very-cheap",
    "-fira-region=one",
    "-fira-loop-pressure",
)
"""The passes of gcc's -O2 that speed up emitted programs, in about two thirds of its time. The last
two allocate registers for a whole function, and hoist a value out of a loop only if the loop has a
register for it. Without them gcc keeps sums of large register tiles in memory although registers
are free, and each addition waits for the store of the previous one."""
QUICK = ("-fno-tree-bit-ccp",)
"""Further flags of gcc for large programs, compiled in parts: bit-level constant propagation takes
an eighth of the compile time and saves a third of a percent of the instructions."""
PROBE = "int sw_probe(int x) { return x + 1; }\n"
SHOWN_LINES = 12

_MATH = re.compile(r"^\s*(?:extern )?(?:float|double) \w+\((?:float|double)", re.MULTILINE)


class ToolchainError(CompileError):
    """No C compiler was found, or it failed."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(Diagnostic("error", message, help=help))


@dataclass(frozen=True)
class Compiler:
    """A C compiler that has passed a test."""

    command: tuple[str, ...]
    version: str
    optional: tuple[str, ...]

    @property
    def id(self) -> str:
        """Return a digest of all that determines its output, for cache keys."""
        return digest(self.version, *FLAGS, *SEMANTICS, *self.optional, *QUICK)

    @property
    def is_gcc(self) -> bool:
        """Whether the compiler is gcc, and takes flags for its passes one by one."""
        return LEAN[0] in self.optional

    def build_program(self, source: Path, library: Path) -> None:
        """Compile emitted C to a shared library."""
        self._build(source, library, self._free, _libraries(source.read_text(encoding="utf-8")))

    def build_part(self, source: Path, object: Path) -> bool:
        """Compile one part of a program; return whether it succeeded."""
        quick = QUICK if self.is_gcc else ()
        command = [*self.command, *FLAGS, *self._free, *quick, "-c", "-o", str(object), str(source)]
        return _run(command).returncode == 0 and object.exists()

    def link_program(self, source: Path, objects: Sequence[Path], library: Path) -> bool:
        """Link the parts of the program in ``source``; return whether it succeeded."""
        command = [*self.command, *FLAGS, *self._free, "-shared", "-o", str(library)]
        command += [*map(str, objects), *_libraries(source.read_text(encoding="utf-8"))]
        return _run(command).returncode == 0 and library.exists()

    @property
    def _free(self) -> tuple[str, ...]:
        """Flags for programs that do not need a C library."""
        return (*SEMANTICS, *self.optional)

    def build_library(self, source: Path, library: Path, flags: Sequence[str]) -> None:
        """Compile our own C code that needs the C library, such as the extension."""
        self._build(source, library, flags, ())

    def _build(
        self, source: Path, library: Path, flags: Sequence[str], libraries: Sequence[str]
    ) -> None:
        command = [*self.command, *FLAGS, *flags, "-shared", "-o", str(library), str(source)]
        command += libraries
        done = _run(command)
        if done.returncode == 0 and library.exists():
            return
        kept = _keep_source(source)
        shown = "\n".join(done.stderr.strip().splitlines()[:SHOWN_LINES])
        raise ToolchainError(
            f"the C compiler {shlex.join(self.command)} failed (exit code {done.returncode})\n"
            f"{shown.replace(str(source), str(kept))}",
            help=f"the source is kept in {kept}; the command was {shlex.join(command)}",
        )


@cache
def find_compiler() -> Compiler:
    """Return the first compiler that works: $STEPWELL_CC, cc, gcc, clang, the ziglang wheel."""
    with _FINDING:  # a second thread uses the result of the first
        return _first_working()


_FINDING = threading.Lock()


def _first_working() -> Compiler:
    tried: list[str] = []
    for command in _candidates():
        if (found := _cached_compiler(command)) is not None:
            return found
        tried.append(shlex.join(command))
    if tried and os.environ.get("STEPWELL_CC"):
        raise ToolchainError(
            f"the C compiler named by STEPWELL_CC does not work: {tried[0]}",
            help="name a gcc or clang, or unset STEPWELL_CC to have one found",
        )
    raise ToolchainError(
        "no C compiler found" + (f" that works (tried {', '.join(tried)})" if tried else ""),
        help="install gcc or clang, or the wheel that brings one: pip install 'stepwell[zig]'",
    )


def _candidates() -> Iterator[tuple[str, ...]]:
    if asked := shlex.split(os.environ.get("STEPWELL_CC", "")):
        yield tuple(asked)
        return
    for name in ("cc", "gcc", "clang"):
        if (path := find_command(name)) is not None:
            yield (path,)
    if find_spec("ziglang") is not None:
        yield (sys.executable, "-m", "ziglang", "cc")


def _cached_compiler(command: tuple[str, ...]) -> Compiler | None:
    """Return the compiler of ``command``, from the cache of an earlier process or by testing it."""
    path = find_command(command[0])
    if path is None:
        return None
    real = os.path.realpath(path)
    try:
        stamp = f"{real} {os.stat(real).st_mtime_ns} {shlex.join(command)}"
    except OSError:
        return None
    tried = repr((LEAN, OPTIONAL))
    notes = cache_root() / "compilers" / f"{digest(stamp, sys.version, tried)}.json"
    try:
        noted = json.loads(notes.read_text())
        optional = tuple(noted["optional"])
        if optional in _choices(LEAN) and isinstance(noted["version"], str):
            return Compiler(command, noted["version"], optional)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if (found := _probe(command)) is not None:
        _write(notes, json.dumps(asdict(found)))
    return found


def _probe(command: tuple[str, ...]) -> Compiler | None:
    """Test a compiler's version and flags; None if it does not work."""
    try:
        said = _run([*command, "--version"])
    except OSError:
        return None
    version = " ".join(said.stdout.split("\n", 1)[0].split())
    if said.returncode != 0 or not version:
        return None
    with import_module("tempfile").TemporaryDirectory(prefix="stepwell-") as folder:
        source, library = Path(folder) / "probe.c", Path(folder) / "probe.so"
        source.write_text(PROBE)
        for optional in _choices(LEAN if "Free Software Foundation" in said.stdout else ()):
            flags = [*FLAGS, *SEMANTICS, *optional, "-shared", "-o", str(library), str(source)]
            if _run([*command, *flags]).returncode == 0 and library.exists():
                return Compiler(command, version, optional)
    return None


def _choices(lean: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return all lists of flags that are tried, in order."""
    return list(dict.fromkeys([*((*lean, *each) for each in OPTIONAL), *OPTIONAL]))


def _libraries(text: str) -> tuple[str, ...]:
    """Return the libraries that a program is linked with."""
    return ("-lm",) if _MATH.search(text) else ()


def _run(command: Sequence[str]) -> Any:
    """Run a command; `subprocess` is loaded only when something is built."""
    subprocess: Any = import_module("subprocess")
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )


def _keep_source(source: Path) -> Path:
    """Copy a source that failed to compile to a place where the user can read it."""
    kept = Path(import_module("tempfile").mkdtemp(prefix="stepwell-failed-")) / source.name
    kept.write_bytes(source.read_bytes())
    return kept


def _write(path: Path, text: str) -> None:
    """Write a file atomically for later processes; failures are ignored."""
    try:
        make_private(path.parent)
        write_whole(path, text)
    except OSError:
        pass
