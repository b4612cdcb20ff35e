"""Modules in files: the text, and the weights beside it."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.files import read_whole
from stepwell.runtime.weights import TracedWeights

STDIN = "-"
"""The file name that means standard input."""


@dataclass(frozen=True)
class ModuleText:
    """The text of a module, its name in messages, and its named weights."""

    text: str
    name: str = "<string>"
    resources: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    hashed: bool = False
    """Whether the hashes in the text are known to be those of these very arrays."""
    traced_weights: TracedWeights | None = None
    """The fingerprints that a trace has computed of its weights."""


def read_module(path: str | Path, weights: str | Path | None = None) -> ModuleText:
    """Read ``path`` and ``weights``, by default `name.npz` beside `name.mlir` if it exists.

    path : a file, or "-" for standard input, which has no default weights
    """
    path = Path(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == STDIN else read_whole(path)
        text = data.decode("utf-8")
    except OSError as error:
        raise _error(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _error(f"{path} is not text: byte {error.start} is not UTF-8") from None
    if str(path) == STDIN:
        return ModuleText(text, "<stdin>", {} if weights is None else _read_weights(Path(weights)))
    beside = path.with_suffix(".npz") if weights is None else Path(weights)
    if weights is None and not beside.exists():
        return ModuleText(text, str(path))
    return ModuleText(text, str(path), _read_weights(beside))


def _read_weights(path: Path) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    try:
        with open_arrays(path) as table:
            if isinstance(table, np.ndarray):
                raise ValueError("it holds one array without a name, not a .npz's")
            for name in table.files:
                found[name] = table[name]
                found[name].flags.writeable = False  # owned: a program need not copy it
    except (OSError, ValueError, EOFError, _bad_zip_file()) as error:
        raise _error(f"cannot read the weights in {path}: {error}") from None
    return found


def _bad_zip_file() -> type[Exception]:
    return import_module("zipfile").BadZipFile


@contextmanager
def open_arrays(path: str | Path) -> Generator[Any]:
    """Open a .npy or .npz file, or a pipe of one; raise ValueError if it is neither."""
    with open(path, "rb") as opened:
        file = opened if opened.seekable() else io.BytesIO(opened.read())
        if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
            raise ValueError("it is no .npy or .npz file")
        file.seek(0)
        yield np.load(file, allow_pickle=False)


def _error(message: str) -> CompileError:
    return CompileError(Diagnostic("error", message))
