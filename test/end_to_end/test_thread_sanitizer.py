"""The extension, its pool of threads and compiled programs under the thread sanitizer.

Two threads may write the same numbers to where their vectors overlap (the last vector of a row lies
over the one before it): the functions of kernels are left out. Everything else must be silent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

pytestmark = pytest.mark.sanitize

SCRIPT = """
import os
del os.environ["LD_PRELOAD"]  # the compiler is to run without it
import threading
import numpy as np
import stepwell as sw
import stepwell.numpy as snp
from stepwell.runtime.extension import load_extension

extension = load_extension()
assert extension is not None
extension.set_threads(3)


def products(x):
    e = snp.tanh(snp.matmul(snp.permute_dims(x, (1, 0)), x))
    y = snp.matmul(snp.matmul(x, e), e)
    return {"y": y, "s": snp.sum(y, axis=0)}


scaled = [sw.jit(lambda x, c: {"y": x * c, "s": snp.sum(x)}, static_argnames="c") for _ in range(2)]
run = sw.jit(products)
draw = np.random.default_rng(0)
inputs = [(draw.standard_normal((n, 40)) * 0.1).astype(np.float32) for n in (1, 7, 900, 9000)]
wrong = []


def work(seed):
    order = np.random.default_rng(seed)
    held = []
    for _ in range(12):
        k = int(order.integers(len(inputs)))
        held.append((k, run(inputs[k])["s"]))
        x = np.full(int(order.choice([3, 5, 300_000])), seed, np.float32)
        c = int(order.integers(3))
        if scaled[seed % 2](x, c)["y"][0] != seed * c:
            wrong.append(seed)
    wrong.extend(k for k, s in held if s.tobytes() != run(inputs[k])["s"].tobytes())


threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
assert wrong == [], wrong
print("done")
"""


def test_calls_from_many_threads(tmp_path: Path) -> None:
    gcc = which("gcc")
    library = (
        ""
        if gcc is None
        else subprocess.run(
            [gcc, "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    if gcc is None or not os.path.isabs(library):
        pytest.skip("no gcc with the thread sanitizer")
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {gcc} "$@" -fsanitize=thread -g\n')
    compiler.chmod(0o755)
    quiet = tmp_path / "quiet"
    quiet.write_text("race:kernel_\n")
    script = tmp_path / "calls.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "STEPWELL_CC": str(compiler),
        "STEPWELL_CACHE": str(tmp_path / "cache"),
        "TSAN_OPTIONS": f"exitcode=66 suppressions={quiet}",
    }
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=900
    )
    if done.returncode and "ThreadSanitizer: unexpected memory mapping" in done.stderr:
        pytest.skip("this kernel's address space is too random for the thread sanitizer")
    assert "WARNING: ThreadSanitizer" not in done.stderr, done.stderr[:4000]
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]
