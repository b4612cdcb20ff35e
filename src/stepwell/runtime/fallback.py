"""Calls through ctypes if Python's headers are missing: slower, otherwise the same."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stepwell.core.machine import thread_count
from stepwell.core.shapes import DYNAMIC
from stepwell.core.signature import Signature
from stepwell.runtime.cache import digest, disk_cache
from stepwell.runtime.entry import Array, Entry, dynamic_sizes, make_results
from stepwell.runtime.extension import Callee
from stepwell.runtime.toolchain import ToolchainError, find_compiler

LOG = logging.getLogger("stepwell")
HERE = Path(__file__).parent
LINE = 64

_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_Parallel = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, _Body, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class _Runtime(ctypes.Structure):
    _fields_ = (("parallel", _Parallel), ("threads", ctypes.c_int32))


def _serial(_: Any, body: Any, ctx: Any, n: int, __: int) -> None:
    if n > 0:
        body(ctx, 0, n)


@cache
def _runtime() -> int:
    """Return the address of a `struct sw_runtime`: the thread pool; serial without compiler."""

    def build(folder: Path) -> None:
        find_compiler().build_library(HERE / "pool.c", folder / "pool.so", ["-pthread"])

    key = digest((HERE / "pool.h").read_bytes(), (HERE / "pool.c").read_bytes())
    try:
        library = ctypes.CDLL(str(disk_cache().fetch("pool", key, build) / "pool.so"))
    except ToolchainError:
        LOG.info("no C compiler, so programs run in one thread")
        return ctypes.addressof(_SERIAL)
    library.stepwell_runtime.restype = ctypes.c_void_p
    return library.stepwell_runtime(thread_count())


_SERIAL = _Runtime(_Parallel(_serial), 1)


@cache
def _limited(threads: int) -> _Runtime:
    """Return a `struct sw_runtime` of the pool with a limit on the number of threads."""
    shared = _Runtime.from_address(_runtime())
    return _Runtime(shared.parallel, min(threads, shared.threads))


class CtypesProgram:
    """A Python implementation of the extension's `Program`."""

    def __init__(
        self,
        library: ctypes.CDLL,
        entry: Entry,
        constants: Sequence[Array],
        threads: int | None = None,
    ) -> None:
        self.entry = entry
        self.threads = threads
        self._libraries = [library]
        name = entry.signature.symbol
        shapes, arena = (getattr(library, f"{name}_{each}", None) for each in ("shapes", "arena"))
        if arena is not None:
            arena.restype = ctypes.c_int64
        self._code = (getattr(library, name), shapes, arena, constants, entry)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check, convert and call."""
        return self.entry.miss(args, kwargs)

    def invoke(self, arguments: tuple[Array, ...], outs: tuple[Array | None, ...] | None) -> Any:
        """Call with arrays that fit; ``outs`` that are None are allocated."""
        run, shapes, arena_bytes, constants, entry = self._code
        signature = entry.signature
        dims = (ctypes.c_int64 * (signature.dynamic + 1))(*dynamic_sizes(signature, arguments))
        given = outs or (None,) * len(signature.results)
        created = (
            _make_results(signature, shapes, dims) if any(out is None for out in given) else ()
        )
        results = [created[k] if out is None else out for k, out in enumerate(given)]
        arrays = (*arguments, *constants, *results)
        buffers = (ctypes.c_void_p * (len(arrays) + 1))(*(a.ctypes.data for a in arrays))
        bytes = arena_bytes(dims) if arena_bytes is not None else signature.arena or 0
        arena = np.empty(bytes + LINE, np.uint8)
        start = ctypes.c_void_p(-(-arena.ctypes.data // LINE) * LINE)
        runtime = _runtime() if self.threads is None else ctypes.addressof(_limited(self.threads))
        if code := run(ctypes.c_void_p(runtime), buffers, dims, start):
            entry.failed(code)
        return results[0] if len(results) == 1 else tuple(results)

    def replace(self, program: CtypesProgram) -> None:
        """Run the code of another program with the same arguments and results from now on."""
        self._libraries += program._libraries  # other threads may be in the replaced one
        self._code = program._code


def _make_results(signature: Signature, shapes: Any, dims: Any) -> tuple[Array, ...]:
    count = sum(r.shape.count(DYNAMIC) for r in signature.results)
    sizes = (ctypes.c_int64 * (count + 1))()
    if count and shapes is not None:
        shapes(dims, sizes)
    return make_results(signature, sizes)


class PythonDispatcher:
    """A Python implementation of the extension's `Dispatcher`: every call is a miss."""

    def __init__(
        self, miss: Callable[[tuple[Any, ...], dict[str, Any]], Any], takes_out: bool = True
    ) -> None:
        self.miss = miss
        self.takes_out = takes_out

    def add(
        self,
        program: Callee,
        call: tuple[Any, Any, Any],
        tree: Any,
        watch: Any = None,
        outside: int = 0,
        sizes: bytes | None = None,
        /,
    ) -> None:
        """Do nothing: in Python only `miss` matches calls."""

    def clear(self) -> None:
        """Do nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Miss."""
        return self.miss(args, kwargs)
