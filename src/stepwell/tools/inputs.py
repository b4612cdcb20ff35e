"""Read a command line's inputs: a module and its lock file, a program, and arrays."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from stepwell.api.compiled import Compiled, compile, fitting_lock, load, lock_beside
from stepwell.api.modules import ModuleText, open_arrays, read_module
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.dtypes import DTYPES
from stepwell.core.machine import Machine
from stepwell.core.placement import parse_placements
from stepwell.core.shapes import DYNAMIC
from stepwell.core.signature import Tensor
from stepwell.core.source import Source
from stepwell.core.targets import Target, machine_for, target_for
from stepwell.core.targets import target_of as target_named
from stepwell.runtime.entry import numpy_dtype

SIZE = 8
"""The default value of `?` where arrays are random."""
COMPILING = ("entry", "weights", "target", "machine", "lock", "pass", "no_check_bounds")
"""Options that have no effect on a program that is already compiled."""


def lock_of(options: argparse.Namespace) -> Path | None:
    """Return the lock file that is named, or is beside the module."""
    if options.lock:
        return Path(options.lock)
    target = target_of(options)
    beside = lock_beside(Path(options.file), target.name)
    return beside if target.timed and beside.exists() else None


def entry_of(options: argparse.Namespace) -> str:
    """Return the name of the entry function."""
    return "main" if options.entry is None else options.entry


def target_of(options: argparse.Namespace) -> Target:
    """Return the target."""
    return target_named(target_for(options.target or "", options.device or ""))


def passes_of(options: argparse.Namespace) -> list[str]:
    """Return the passes to place in the pipeline, each as ``PASS@before:ANCHOR``."""
    return getattr(options, "pass") or []


def machine_of(options: argparse.Namespace) -> Machine:
    """Return the machine to compile for."""
    target = target_of(options)
    machine = machine_for(target.name, options.machine or "", options.device or "")
    return target.limits(machine)


def module_of(options: argparse.Namespace) -> ModuleText:
    """Read the module."""
    if Path(options.file).is_dir():
        fail(
            f"{options.file} is a folder, not a module",
            "a saved program can be run and profiled; the rest needs the module it was made of",
        )
    module = read_module(options.file, options.weights)
    options.messages.know(module.name, module.text)
    return module


def source_of(module: ModuleText, options: argparse.Namespace) -> Source:
    """Return the input of a compilation; a lock file that does not fit is reported and ignored."""
    source, lock = bare_source_of(module, options), lock_of(options)
    used = str(lock) if lock and fitting_lock(lock, source.machine) else ""
    return replace(source, lock=used)


def bare_source_of(module: ModuleText, options: argparse.Namespace) -> Source:
    """Return the input of a compilation, without the schedules of a lock file."""
    return Source(
        *(module.text, module.name, entry_of(options), machine_of(options)),
        passes=parse_placements(passes_of(options)),
        check_bounds=not options.no_check_bounds,
    )


def program_of(options: argparse.Namespace, module: ModuleText | None = None) -> Compiled:
    """Compile the module, or load the saved program, in FILE.

    module : the module in FILE, if it has been read already
    """
    if module is None and Path(options.file).is_dir():
        if given := [name for name in COMPILING if getattr(options, name) is not None]:
            option = given[0].replace("_", "-")
            fail(
                f"{options.file} is a program that is compiled already: --{option} does nothing",
                "leave it away, or name the module",
            )
        return load(options.file, device=options.device)
    return compile(
        module or module_of(options),
        entry_of(options),
        target=target_of(options).name,
        device=options.device,
        machine=options.machine or "",
        lock=lock_of(options),
        passes=passes_of(options),
        check_bounds=not options.no_check_bounds,
    )


def inputs_of(compiled: Compiled, options: argparse.Namespace) -> list[Any]:
    """Return an array for each argument: given by name, by position, or random."""
    ordered, named = _given_arrays(options.input)
    specs = compiled.signature.arguments
    names = [spec.name for spec in specs]
    if unknown := [n for n in named if n not in names]:
        fail(f"there is no argument '{unknown[0]}'", f"{compiled.signature}")
    free = [name for name in names if name not in named]
    if len(ordered) > len(free):
        fail(f"{len(ordered) - len(free)} --input too many", f"{compiled.signature}")
    named |= dict(zip(free, ordered, strict=False))
    missing = [name for name in names if name not in named]
    if missing and options.random is None:
        listed = ", ".join(missing)
        fail(f"no --input for {listed}", "give --input FILE for each, or --random")
    generator = np.random.default_rng(options.random)
    size = SIZE if options.size is None else options.size
    return [named[s.name] if s.name in named else make_up(generator, s, size) for s in specs]


def _given_arrays(inputs: Sequence[str]) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the arrays given by position, and those given by name."""
    ordered: list[NDArray[Any]] = []
    named: dict[str, NDArray[Any]] = {}
    for each in inputs:
        name, is_named, path = each.partition("=")
        try:
            with open_arrays(path if is_named else each) as found:
                if not isinstance(found, np.ndarray):
                    named |= {key: found[key] for key in found.files}
                elif is_named:
                    named[name] = found
                else:
                    ordered.append(found)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else error
            fail(f"cannot read {path if is_named else each}: {said}")
    return ordered, named


def make_up(generator: np.random.Generator, spec: Tensor, size: int) -> NDArray[Any]:
    """Return an array of small random numbers with the type of ``spec``, `?` being ``size``."""
    shape = tuple(size if n == DYNAMIC else n for n in spec.shape)
    match DTYPES[spec.dtype].kind:
        case "float":
            return generator.standard_normal(shape).astype(numpy_dtype(spec.dtype))
        case "bool":
            return generator.integers(0, 2, shape).astype(bool)
        case "signed":
            return generator.integers(-8, 8, shape).astype(numpy_dtype(spec.dtype))
        case "unsigned":
            return generator.integers(0, 16, shape).astype(numpy_dtype(spec.dtype))


def fail(message: str, help: str = "") -> NoReturn:
    """Stop with an error about the command line."""
    raise CompileError(Diagnostic("error", message, help=help))
