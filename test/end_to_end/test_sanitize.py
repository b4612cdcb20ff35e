"""Emitted C under the address and undefined-behaviour sanitizers.

Everything runs in other processes, where the sanitizers are loaded first; arrays of NumPy and the
arena come from their allocator, so that a step beyond any buffer is caught. A sample of rows and
random programs runs with all tests, `make sanitize` runs files of tests, and all rows and as many
random programs as there is time for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sanitizing import environment, started

HERE = Path(__file__).parent


def test_a_sample_is_clean_under_sanitizers(tmp_path: Path) -> None:
    variables = environment(tmp_path)
    if variables is None:
        pytest.skip("the C compiler has no sanitizers")
    process = started(
        variables, "--rows", "5/120", "--programs", "2", "--sizes", "4", "--seed", "2"
    )
    said, _ = process.communicate()
    assert process.returncode == 0, said[-6000:]
    assert "2 random programs, 4 of unknown sizes, 0 wrong" in said


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
        ("test_rows_in_loops.py", "numpy"),
        ("../frontend/test_calls.py", ""),
        ("../unit/runtime/test_dispatch.py", ""),
        ("../unit/test_altered_schedules.py", ""),
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
        ("../unit/test_random_carries.py", "compiled"),
        ("../unit/test_ragged_loops.py", ""),
        ("../unit/test_transposed_convolutions.py", ""),
        ("../unit/test_widened.py", ""),
        ("../unit/test_windows.py", ""),
        ("../unit/test_winograd.py", ""),
        ("test_sizes_at_run_time.py", ""),
    ],
)
def test_programs_are_clean_under_sanitizers(file: str, chosen: str, tmp_path: Path) -> None:
    variables = environment(tmp_path)
    if variables is None:
        pytest.skip("the C compiler has no sanitizers")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-k", chosen, str(HERE / file)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
