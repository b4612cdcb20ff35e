"""Emitted text is compiled and run beside the interpreter: what both compute must be the same."""

from __future__ import annotations

import ctypes
import hashlib
import os
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

from stepwell.core.dtypes import DTYPES
from stepwell.core.host_schedule import evaluate
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.driver.universe import STEPWELL_UNIVERSE
from stepwell.lowering.emit import CText, emit_c
from stepwell.lowering.emit.opencl import OpenCLText, emit_opencl
from stepwell.runtime.opencl.device import open_device

assert upstream, "imported for its rules"

WARNINGS = ("-Wall", "-Wextra", "-Werror")
FLAGS = ("-std=gnu11", "-O2", "-march=native", "-fno-math-errno", "-shared", "-fPIC")

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
    stem = folder / hashlib.sha256(" ".join([text, *extra]).encode()).hexdigest()[:16]
    stem.with_suffix(".c").write_text(text)
    extra = [*extra, *os.environ.get("EMITTED_C_FLAGS", "").split()]
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


class OnDevice:
    """A program compiled to OpenCL, called like the interpreter."""

    def __init__(self, module: ModuleOp, entry: str) -> None:
        device = open_device()
        self.cl = device.cl
        self.text: OpenCLText = emit_opencl(module, entry)
        self.context = device.context
        self.queue = self.cl.CommandQueue(self.context)
        self.program = device.built(self.cl.Program(self.context, self.text.source))

    def __call__(self, arrays: Sequence[Any], dims: Sequence[int] = ()) -> list[Any]:
        """Run the schedule on copies of ``arrays`` as they lie in memory; return the copies."""
        signature = self.text.signature
        roles = {"input": signature.arguments, "constant": signature.constants}
        roles["output"] = signature.results
        names = [f"{role}{k}" for role, found in roles.items() for k in range(len(found))]
        memory = [np.ascontiguousarray(a).copy() for a in arrays]
        self.variables: dict[str, Any] = {f"d{k}": n for k, n in enumerate(dims)}
        sizes, arena, *steps = signature.host
        self.sizes = [evaluate(tree, self.variables) for tree in sizes["sizes"]]
        self.buffers = {"arena": self._buffer(evaluate(arena["bytes"], self.variables))}
        for name, array in zip(names, memory, strict=True):
            self.buffers[name] = self._buffer(array.nbytes)
            if array.nbytes:
                self.cl.enqueue_copy(self.queue, self.buffers[name], array)
        self._run(steps)
        for name, array in zip(names, memory, strict=True):
            if array.nbytes:
                self.cl.enqueue_copy(self.queue, array, self.buffers[name])
        return memory

    def _buffer(self, size: int) -> Any:
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(size, 8))

    def _run(self, steps: Sequence[Any]) -> None:
        for step in steps:
            getattr(self, f"_{step['do']}")(step)

    def _value(self, tree: Any) -> Any:
        return evaluate(tree, self.variables)

    def _set(self, step: Any) -> None:
        values = [self._value(tree) for tree in step["values"]]
        self.variables.update(zip(step["names"], values, strict=True))

    def _allocate(self, step: Any) -> None:
        self.buffers[step["buffer"]] = self._buffer(self._value(step["bytes"]))

    def _launch(self, step: Any) -> None:
        items = self._value(step["items"])
        if items <= 0:
            return
        arguments: list[Any] = []
        for argument in step["arguments"]:
            if "buffer" in argument:
                arguments.append(self.buffers[argument["buffer"]])
                arguments.append(np.int64(self._value(argument["skip"])))
            else:
                type = DTYPES[argument["dtype"]].numpy.type
                arguments.append(type(self._value(argument["value"])))
        kernel = self.cl.Kernel(self.program, step["kernel"])
        kernel(self.queue, (items,), None, *arguments)

    def _copy(self, step: Any) -> None:
        size = self._value(step["bytes"])
        if size:
            (source, skip), (target, target_skip) = step["source"], step["target"]
            self.cl.enqueue_copy(
                self.queue,
                self.buffers[target],
                self.buffers[source],
                byte_count=size,
                src_offset=self._value(skip),
                dst_offset=self._value(target_skip),
            )

    def _read(self, step: Any) -> None:
        buffer, skip = step["source"]
        into = np.zeros(1, DTYPES[step["dtype"]].numpy)
        self.cl.enqueue_copy(self.queue, into, self.buffers[buffer], src_offset=self._value(skip))
        self.variables[step["name"]] = into[0].item()

    def _write(self, step: Any) -> None:
        buffer, skip = step["target"]
        value = np.array([self._value(step["value"])], DTYPES[step["dtype"]].numpy)
        self.cl.enqueue_copy(self.queue, self.buffers[buffer], value, dst_offset=self._value(skip))

    def _for(self, step: Any) -> None:
        bounds = (self._value(step[key]) for key in ("from", "to", "step"))
        for number in range(*bounds):
            self.variables[step["name"]] = number
            self._run(step["body"])

    def _while(self, step: Any) -> None:
        while True:
            self._run(step["test"])
            if not self._value(step["condition"]):
                return
            self._run(step["body"])

    def _if(self, step: Any) -> None:
        self._run(step["then" if self._value(step["condition"]) else "else"])


Program = Callable[..., Compiled]


@pytest.fixture(scope="session")
def on_device() -> Callable[[str, str], OnDevice]:
    """Compile one function of the text of a module for OpenCL."""
    return lambda text, entry: OnDevice(parse(text), entry)


@pytest.fixture(scope="session")
def parsed() -> Callable[[str], ModuleOp]:
    """Parse a module whose ops know their lines."""
    return parse


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Compile the text of a module, with further flags for the C compiler if need be."""
    folder = tmp_path_factory.mktemp("emitted")
    return lambda text, *flags: Compiled(parse(text), folder, flags)
