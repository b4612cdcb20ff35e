"""Compiled rows, schedules and random programs under the address and undefined-behaviour sanitizers.

`make sanitize`. Everything runs in another process, where the sanitizers are loaded first; arrays
of NumPy and the arena come from their allocator, so that a step beyond any buffer is caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -g"


@pytest.mark.sanitize
@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("test_few_kernels.py", ""),
        ("test_matrix_vector.py", ""),
        ("test_column_sums.py", ""),
        ("test_odd_programs.py", ""),
        ("test_stencils.py", ""),
        ("test_nontemporal.py", ""),
        ("../frontend/test_calls.py", ""),
        ("../unit/runtime/test_dispatch.py", ""),
        ("../unit/test_bands.py", ""),
        ("../unit/test_blocked_contractions.py", ""),
        ("../unit/test_blocked_convolutions.py", ""),
        ("../unit/test_collapsed_loops.py", ""),
        ("../unit/test_contraction_schedules.py", ""),
        ("../unit/test_dots.py", ""),
        ("../unit/test_edges.py", ""),
        ("../unit/test_extremes.py", ""),
        ("../unit/test_grouped_convolutions.py", ""),
        ("../unit/test_packed_operands.py", ""),
        ("../unit/test_ragged_loops.py", ""),
        ("../unit/test_transposed_convolutions.py", ""),
        ("../unit/test_widened.py", ""),
        ("../unit/test_windows.py", ""),
        ("../unit/test_winograd.py", ""),
        ("test_op_table.py", "c-shape or c-indexing or c-composite or c-contraction or c-control"),
        ("test_op_table.py", "c-reduction or c-creation or c-elementwise-0 or c-elementwise-4"),
        ("test_random_programs.py", "test_compiled"),
        ("test_random_sizes.py", "test_sample"),
        ("test_sizes_at_run_time.py", ""),
    ],
)
def test_programs_are_clean_under_sanitizers(file: str, chosen: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    names = ("libasan.so", "libubsan.so")
    libraries = [_library(compiler, name) for name in names] if compiler else []
    if not libraries or not all(Path(library).exists() for library in libraries):
        pytest.skip("the C compiler has no sanitizers")
    environment = os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "STEPWELL_CC": f"{compiler} {FLAGS}",
        "STEPWELL_CACHE": str(tmp_path),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-k", chosen, str(HERE / file)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def _library(compiler: str, name: str) -> str:
    """Return where the compiler has a library; its bare name where it has none."""
    asked = [compiler, f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
