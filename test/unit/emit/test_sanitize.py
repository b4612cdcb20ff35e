"""The same programs under the address and undefined-behaviour sanitizers: `make sanitize`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.sanitize
def test_emitted_c_is_clean_under_sanitizers() -> None:
    compiler = shutil.which("cc") or "gcc"
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(library).exists():
        pytest.skip("no address sanitizer")
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "EMITTED_C_FLAGS": "-fsanitize=address,undefined -fno-sanitize-recover=undefined -g",
    }
    tests = [str(HERE / name) for name in ("test_statements.py", "test_ops.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
