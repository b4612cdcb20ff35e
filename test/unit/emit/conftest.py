"""Emitted text is compiled and run beside the interpreter: what both compute must be the same."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser

from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.lowering.emit.c import CText, emit_c
from stepwell.universe import STEPWELL_UNIVERSE

assert upstream, "imported for its rules"

WARNINGS = ("-Wall", "-Wextra", "-Werror")
FLAGS = ("-std=gnu11", "-O2", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g")

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class Runtime(ctypes.Structure):
    """struct sw_runtime."""

    _fields_ = (("parallel", PARALLEL), ("threads", ctypes.c_int32))


@PARALLEL
def _in_two_runs(rt: Any, body: Any, context: Any, n: int, grain: int) -> None:
    """Run a loop in two parts, the later one first: no order may matter."""
    if n > 0:
        body(context, n // 2, n)
        body(context, 0, n // 2)


RUNTIME = Runtime(_in_two_runs, 2)


class _Located(Parser):
    """A parser that says where each op stands."""

    def parse_operation(self) -> Operation:
        span = self._current_token.span
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line = span.input.content.count("\n", 0, span.start) + 1
            op.location = FileLineColLoc(StringAttr(span.input.name), IntAttr(line), IntAttr(1))
        return op


def parse(text: str, name: str = "test.mlir") -> ModuleOp:
    """Parse and verify a module whose ops know their lines."""
    ctx = Context()
    for dialect, load in {**get_all_dialects(), **STEPWELL_UNIVERSE.all_dialects}.items():
        ctx.register_dialect(dialect, load)
    module = _Located(ctx, text, name).parse_module()
    module.verify()
    return module


def compile_c(text: str, folder: Path, extra: Sequence[str] = ()) -> ctypes.CDLL:
    """Compile C text without a warning and load it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    stem = folder / hashlib.sha256(text.encode()).hexdigest()[:16]
    stem.with_suffix(".c").write_text(text)
    command = [compiler, *FLAGS, *WARNINGS, *extra, str(stem.with_suffix(".c"))]
    done = subprocess.run(
        [*command, "-o", str(stem.with_suffix(".so")), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr, done.stderr + "\n" + text
    return ctypes.CDLL(str(stem.with_suffix(".so")))


class Compiled:
    """A program compiled to C, called like the interpreter."""

    def __init__(self, module: ModuleOp, folder: Path, extra: Sequence[str] = ()) -> None:
        self.module = module
        self.text: CText = emit_c(module)
        self.library = compile_c(self.text.source, folder, extra)

    def c(self, entry: str, arrays: Sequence[Any], dims: Sequence[int] = ()) -> list[Any]:
        """Run the C function on copies of ``arrays`` as they lie in memory; return the copies."""
        memory = [np.ascontiguousarray(a).copy() for a in arrays]
        function = getattr(self.library, f"stepwell_{entry}")
        arena = getattr(self.library, f"stepwell_{entry}_arena")
        arena.restype = ctypes.c_int64
        sizes = (ctypes.c_int64 * max(len(dims), 1))(*dims)
        scratch = np.zeros(arena(sizes) + 64, np.uint8)
        start = scratch.ctypes.data + -scratch.ctypes.data % 64
        buffers = (ctypes.c_void_p * max(len(memory), 1))(*[m.ctypes.data for m in memory])
        assert function(ctypes.byref(RUNTIME), buffers, sizes, ctypes.c_void_p(start)) == 0
        return memory

    def interpreted(self, entry: str, arrays: Sequence[Any]) -> list[Any]:
        """Run the interpreter on copies of ``arrays``; return the copies."""
        copies = [np.ascontiguousarray(a).copy() for a in arrays]
        Interpreter(self.module).call(entry, copies)
        return copies


Program = Callable[[str], Compiled]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Compile the text of a module."""
    folder = tmp_path_factory.mktemp("emitted")
    return lambda text: Compiled(parse(text), folder)
