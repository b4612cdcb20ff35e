"""Machines to compile for, described completely, so that nothing depends on the host.

The choices of `schedule` differ between machines, so a test that asserts them names its machine.
``kernels_for`` returns the kernels floor of a program for a machine. In our tests
``@pytest.mark.machine("halved")`` sets the machine of a whole test, by STEPWELL_MACHINE. `make
test-machine` sets that of the fast tests, and
STEPWELL_MACHINE="$(.venv/bin/python -m stepwell.testing.machines 'neon, 8 cores')" that of all
tests. Results must be the same on any machine; random programs are compiled for all of these.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from stepwell.core.machine import this_machine
from stepwell.core.source import Source
from stepwell.driver.lowering import stage_text
from stepwell.frontend.traced import Traced
from stepwell.runtime.toolchain import FLAGS, SEMANTICS, Compiler, find_compiler

K, M = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Described:
    """A machine: its description for STEPWELL_MACHINE, and its instruction set for compilers."""

    vector_bits: int
    vector_registers: int
    fma: int
    threads: int
    l1: int
    l2: int
    l3: int
    family: str
    """x86_64 or aarch64."""
    instructions: str
    """The -march option for the compilers of a host of this family."""
    needs: frozenset[str]
    """The features that the host's processor needs to run the instructions."""
    zig: str
    """The -mcpu option for the ziglang wheel's compiler."""
    vector_unit: int = 0
    signed_dots: int = 0

    @property
    def text(self) -> str:
        """Return the description in the format of STEPWELL_MACHINE and --machine."""
        names = (
            *("vector_bits", "vector_registers", "vector_unit", "fma", "signed_dots"),
            *("threads", "l1", "l2", "l3"),
        )
        fields = [f"{name}={getattr(self, name)}" for name in names]
        return ",".join(["generic", *fields, "vector_lanes=64", "hoist_constants=1"])

    @property
    def at_home(self) -> bool:
        """Whether the host can run its instructions."""
        host = set(this_machine().features.split())
        return self.family == _family() and self.needs <= host

    def compiler(self) -> Compiler:
        """Return the host's compiler, restricted to the machine's instructions."""
        found = find_compiler()
        kept = tuple(f for f in found.optional if f not in ("-march=native", "-mcpu=native"))
        return Compiler(found.command, found.version, (*kept, f"-march={self.instructions}"))

    def cross_compile(self, source: Path, object: Path) -> None:
        """Compile emitted C for the machine on any host; fail with the compiler's message."""
        done = subprocess.run(
            [*self._command(), *FLAGS, *SEMANTICS, "-c", "-o", str(object), str(source)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert object.stat().st_size > 0

    def _command(self) -> Sequence[str]:
        target = ("-target", f"{self.family}-linux-gnu", f"-mcpu={self.zig}")
        return (sys.executable, "-m", "ziglang", "cc", *target)


@cache
def can_cross_compile() -> bool:
    """Whether the ziglang wheel is installed."""
    return find_spec("ziglang") is not None


def _family() -> str:
    return "aarch64" if platform.machine() in ("aarch64", "arm64") else platform.machine()


def _x86(level: str, *needs: str) -> tuple[str, str, frozenset[str], str]:
    return "x86_64", level, frozenset(needs), level.replace("-", "_")


_SSE = _x86("x86-64")
_AVX2 = _x86("x86-64-v3", "avx2", "fma", "bmi2", "f16c", "abm", "movbe")
_AVX512 = _x86("x86-64-v4", *_AVX2[2], "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd")
_ICE_LAKE = (
    *("x86_64", "icelake-client"),
    _AVX512[2] | {"avx512_vnni", "avx512_vbmi2", "avx512ifma", "gfni", "vaes", "sha_ni"},
    "icelake_client",
)
_NEON = ("aarch64", "armv8.2-a+fp16+dotprod", frozenset({"asimddp", "asimdhp"}), "neoverse_n1")
_NEON_BYTES = ("aarch64", "armv8.6-a+fp16", frozenset({"i8mm", "bf16"}), "neoverse_v1")

MACHINES = {
    "sse, 1 core": Described(128, 16, 0, 1, 32 * K, 256 * K, 2 * M, *_SSE),
    "avx2, 4 cores": Described(256, 16, 1, 4, 32 * K, 256 * K, 6 * M, *_AVX2),
    "avx2, 8 cores": Described(256, 16, 1, 8, 32 * K, 512 * K, 32 * M, *_AVX2),
    "avx-512, 1 MiB, 2 cores": Described(512, 32, 1, 2, 32 * K, M, 36 * M, *_AVX512),
    "avx-512, 2 MiB, 2 cores": Described(512, 32, 1, 2, 48 * K, 2 * M, 480 * M, *_ICE_LAKE),
    "avx-512, 2 MiB, 64 cores": Described(512, 32, 1, 64, 48 * K, 2 * M, 105 * M, *_ICE_LAKE),
    "512 bits by avx2": Described(512, 16, 1, 2, 32 * K, M, 32 * M, *_AVX2),
    "halved": Described(512, 32, 1, 2, 32 * K, M, 32 * M, *_ICE_LAKE, vector_unit=256),
    "neon, 8 cores": Described(128, 32, 1, 8, 64 * K, 512 * K, 4 * M, *_NEON, signed_dots=1),
    "neon, 64 cores": Described(128, 32, 1, 64, 64 * K, M, 32 * M, *_NEON_BYTES, signed_dots=1),
}
"""Existing processors, and one whose vectors are wider than its registers.

The caches are those of one core, the third-level cache as a whole.
"""


def kernels_for(module: str | Traced, changes: str = "", machine: str = "halved") -> str:
    """Return a module scheduled for one of MACHINES, with ``changes`` as in --machine."""
    described = this_machine().override(MACHINES[machine].text).override(changes)
    text, entry = (
        (module, "main") if isinstance(module, str) else (module.module.text, module.entry)
    )
    return stage_text(Source(text, "<test>", entry, described), "kernels")


if __name__ == "__main__":
    print(MACHINES[sys.argv[1]].text)
