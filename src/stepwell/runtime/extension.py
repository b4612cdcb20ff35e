"""The C extension of this runtime: built once for this Python, then loaded from the cache.

Without Python's or NumPy's headers there is no extension, and `fallback` replaces it.
"""

from __future__ import annotations

import logging
import platform
import sys
import sysconfig
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stepwell.core.machine import thread_count
from stepwell.runtime.cache import digest, disk_cache
from stepwell.runtime.device_arrays import DeviceArray
from stepwell.runtime.toolchain import ToolchainError, find_compiler

LOG = logging.getLogger("stepwell")
HERE = Path(__file__).parent
NAME = "stepwell_extension"


class Callee(Protocol):
    """A loaded program: call it with any arrays, or `invoke` it with arrays known to fit."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with any arguments; those that do not fit are converted or refused."""
        ...

    def invoke(self, arguments: tuple[Any, ...], outs: tuple[Any, ...] | None, /) -> Any:
        """Call with arrays that fit; ``outs`` that are None are allocated."""
        ...


class Dispatcher(Protocol):
    """Calls the first program added that fits a call, else ``miss(args, kwargs)``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the first program that fits."""
        ...

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
        """Add ``program``, tried after those added before, for calls like ``call``.

        call : the names of keyword arguments; for each argument the number of its first array and
            its tree (trees.h); pairs of a position and an array for arguments left to defaults
        tree : the tree of the results
        watch : the program's captured variables and globals (watch.h)
        outside : the number of arrays taken from these; they come last
        sizes : the only sizes that each `?` of the others may have, as 64-bit numbers
        """
        ...

    def clear(self) -> None:
        """Remove all programs."""
        ...


class Extension(Protocol):
    """The interface of extension.c."""

    Program: Callable[..., Callee]
    Dispatcher: Callable[[Callable[[tuple[Any, ...], dict[str, Any]], Any], bool], Dispatcher]

    Watch: Callable[[tuple[Any, ...]], Any]

    def set_threads(self, count: int, /) -> None:
        """Set the number of threads that programs may use."""
        ...

    def set_resident(self, kind: type[Any], dtype: str, shape: str, /) -> None:
        """Set the class of device arrays, and the slots of their dtype and shape."""
        ...

    def set_variable(self, kind: type[Any], array: str, /) -> None:
        """Set the class of variables, and the name of the slot that has their array."""
        ...

    def fingerprint(self, buffer: Any, key: bytes, /) -> bytes:
        """Return keyed checksums of a buffer's blocks."""
        ...


def know_variables(kind: type[Any], array: str) -> None:
    """Set the class of variables and the slot of their array for the dispatcher."""
    _variables[:] = [kind, array]
    if _loaded:
        _loaded[0].set_variable(kind, array)


@cache
def load_extension() -> Extension | None:
    """Return the extension, building it if necessary; None if it cannot be built."""
    with _LOADING:
        return _load()


def prepare() -> bool:
    """Begin to build the extension in a thread; return whether it was missing."""
    if _loaded or not _has_headers() or disk_cache().find("extension", _key()) is not None:
        return False
    threading.Thread(target=_build_quietly, name="stepwell-extension", daemon=True).start()
    return True


def extension_by_now() -> Extension | None:
    """Return the extension if it is already built."""
    if _loaded:
        return _loaded[0]
    if not _has_headers() or disk_cache().find("extension", _key()) is None:
        return None
    return load_extension()


def _build_quietly() -> None:
    """Build the extension; errors are raised again at the next use."""
    with suppress(Exception):
        load_extension()


_LOADING = threading.Lock()
_loaded: list[Extension] = []
_variables: list[Any] = []
"""The class of variables and the slot of their array, once set."""


FLAGS = ("-O1", "-DNDEBUG", "-pthread")
"""-O2 takes twice as long; without NDEBUG each tuple access asserts the type."""
LEFT_OUT = (
    "-fno-tree-pta",
    "-fno-tree-loop-optimize",
    "-fno-tree-ccp",
    "-fno-tree-fre",
    "-fno-tree-copy-prop",
    "-fno-compare-elim",
    "-fno-shrink-wrap",
    "-fno-cprop-registers",
    "-fno-thread-jumps",
)
"""Passes of gcc's -O1 that find little in code that calls and branches: without them the extension
is compiled in 0.8 of the time, and calls of programs are as fast (docs/notes/115)."""


def _load() -> Extension | None:
    if _loaded:
        return _loaded[0]
    headers = [sysconfig.get_path("include"), np.get_include()]
    if not _has_headers():
        LOG.info("no Python headers in %s: calls go through ctypes and are slower", headers[0])
        return None

    def build(folder: Path) -> None:
        compiler = find_compiler()
        flags = [*FLAGS, *(LEFT_OUT if compiler.is_gcc else ()), *(f"-I{p}" for p in headers)]
        compiler.build_library(HERE / "extension.c", folder / f"{NAME}.so", flags)

    try:
        folder = disk_cache().fetch("extension", _key(), build)
    except ToolchainError as error:
        LOG.info("no extension, calls go through ctypes and are slower: %s", error)
        return None
    module = _import(folder / f"{NAME}.so")
    module.set_threads(thread_count())
    module.set_resident(DeviceArray, "dtype", "shape")
    if _variables:
        module.set_variable(*_variables)
    _loaded.append(module)
    return module


def _has_headers() -> bool:
    return (Path(sysconfig.get_path("include")) / "Python.h").exists()


@cache
def _key() -> str:
    sources = [
        (HERE / name).read_bytes()
        for name in (
            "extension.c",
            "dispatch.h",
            "trees.h",
            "watch.h",
            "fingerprint.h",
            "call.h",
            "resident.h",
            "memory.h",
            "pool.h",
        )
    ]
    python = (sys.version, sys.abiflags, np.__version__, platform.machine())
    return digest(*sources, *FLAGS, *LEFT_OUT, *python)


def _import(path: Path) -> Any:
    loader = ExtensionFileLoader(NAME, str(path))
    spec = spec_from_loader(NAME, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
