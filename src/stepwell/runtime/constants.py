"""A program's weights: prepared in memory, and stored in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.files import replacing
from stepwell.core.signature import LINE, Constant, constant_offsets
from stepwell.runtime.cache import CONSTANTS
from stepwell.runtime.entry import Array, numpy_dtype, spell_array

TWICE = 1 << 24
"""Bytes above which a weight given as a read-only array is used without a copy."""


def broken(folder: Path, why: str, help: str = "compile it again") -> CompileError:
    """Return the error for a program that cannot be loaded."""
    return CompileError(
        Diagnostic("error", f"cannot load the program in {folder}: {why}", help=help)
    )


def constant(spec: Constant, resources: Mapping[str, Any]) -> Array:
    """Return a weight as the program needs it, never an array that the caller may change."""
    array = given(spec, resources)
    owned = not array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
    if owned and array.nbytes > TWICE:
        return array
    array = at_a_line(array) if owned else _copied_to_a_line(array)
    array.flags.writeable = False
    return array


def at_a_line(array: Array) -> Array:
    """Return an array, or a copy of it, aligned to a cache line.

    Vectors that cross a line boundary take a fifth longer to load from the second cache.
    """
    return array if array.ctypes.data % LINE == 0 else _copied_to_a_line(array)


def _copied_to_a_line(array: Array) -> Array:
    block = np.empty(array.nbytes + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    copy = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def given(spec: Constant, resources: Mapping[str, Any]) -> Array:
    """Return a weight as it was given, after checking its type and shape."""
    if spec.name not in resources:
        known = ", ".join(sorted(resources)) or "none"
        raise CompileError(
            Diagnostic(
                "error",
                f"the program needs the weight '{spec.name}' ({spec}), which was not given",
                help=f"put it into the .npz beside the module, or pass resources= (given: {known})",
            )
        )
    array = np.asarray(resources[spec.name])
    if array.dtype != numpy_dtype(spec.dtype) or array.shape != spec.shape:
        raise CompileError(
            Diagnostic("error", f"weight '{spec.name}': expected {spec}, got {spell_array(array)}")
        )
    return array


def write_constants(path: Path, constants: Sequence[Array]) -> None:
    """Write a program's weights in the format of `map_constants`."""
    with replacing(path) as new, new.open("wb") as file:  # a loaded program may map the old file
        for array in constants:
            file.write(bytes(-file.tell() % LINE))
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def map_constants(path: Path, specs: Sequence[Constant]) -> tuple[Array, ...]:
    """Return the weights of a saved program, mapped read-only."""
    if not specs:
        return ()
    offsets, size = constant_offsets(specs)
    if not path.exists() or path.stat().st_size != size:
        raise broken(path.parent, f"its {CONSTANTS} is missing or damaged")
    if size == 0:
        return tuple(np.zeros(s.shape, numpy_dtype(s.dtype)) for s in specs)
    mapped = np.memmap(path, np.uint8, "r")
    return tuple(
        np.ndarray(s.shape, numpy_dtype(s.dtype), mapped, offset)
        for s, offset in zip(specs, offsets, strict=True)
    )
