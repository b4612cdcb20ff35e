"""stepwell run: compile a module and call it on arrays from files, or on made-up ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from stepwell.compiled import Compiled, compile
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.dtypes import DTYPES
from stepwell.core.shapes import DYNAMIC
from stepwell.core.signature import Tensor
from stepwell.modules import read_module
from stepwell.runtime.entry import numpy_dtype
from stepwell.tools.locking import lock_of


def run(options: argparse.Namespace) -> int:
    """Compile, call, and print or save the results."""
    module = read_module(options.file, options.weights)
    compiled = compile(
        module,
        options.entry,
        target=options.target,
        machine=options.machine,
        lock=lock_of(options),
    )
    inputs = inputs_of(compiled, options)
    results = compiled(*inputs)
    named = dict(zip(_result_names(compiled), _as_tuple(results), strict=True))
    if options.output:
        _save(Path(options.output), named)
    else:
        _show(compiled, named)
    if options.repeat > 0:
        print(f"{_seconds(compiled, inputs, options.repeat)} a call ({options.repeat} calls)")
    return 0


def inputs_of(compiled: Compiled, options: argparse.Namespace) -> list[Any]:
    """Return one array for each argument: given by name, by position, or made up."""
    ordered, named = _given(options.input)
    specs = compiled.signature.arguments
    names = [spec.name for spec in specs]
    if unknown := [n for n in named if n not in names]:
        _fail(f"there is no argument '{unknown[0]}'", f"{compiled.signature}")
    free = [name for name in names if name not in named]
    if len(ordered) > len(free):
        _fail(f"{len(ordered) - len(free)} --input too many", f"{compiled.signature}")
    named |= dict(zip(free, ordered, strict=False))
    missing = [name for name in names if name not in named]
    if missing and options.random is None:
        listed = ", ".join(missing)
        _fail(f"no --input for {listed}", "give --input FILE for each, or --random")
    generator = np.random.default_rng(options.random)
    return [
        named[s.name] if s.name in named else make_up(generator, s, options.size) for s in specs
    ]


def _given(inputs: Sequence[str]) -> tuple[list[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return the arrays given in order, and those given by name."""
    ordered: list[NDArray[Any]] = []
    named: dict[str, NDArray[Any]] = {}
    for each in inputs:
        name, is_named, path = each.partition("=")
        try:
            found = np.load(path if is_named else each, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            _fail(f"cannot read {path if is_named else each}: {error}")
        if not isinstance(found, np.ndarray):
            with found:
                named |= {key: found[key] for key in found.files}
        elif is_named:
            named[name] = found
        else:
            ordered.append(found)
    return ordered, named


def make_up(generator: np.random.Generator, spec: Tensor, size: int) -> NDArray[Any]:
    """Return an array as ``spec`` wants it, of small random numbers, `?` being ``size``."""
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


def _result_names(compiled: Compiled) -> list[str]:
    """Return a name for each result, made distinct."""
    names: list[str] = []
    for number, result in enumerate(compiled.signature.results):
        name = result.name or f"result{number}"
        names.append(name if name not in names else f"{name}_{number}")
    return names


def _as_tuple(results: Any) -> tuple[NDArray[Any], ...]:
    return results if isinstance(results, tuple) else (results,)


def _show(compiled: Compiled, named: Mapping[str, NDArray[Any]]) -> None:
    for (name, array), spec in zip(named.items(), compiled.signature.results, strict=True):
        shown = Tensor(name, spec.dtype, array.shape)
        print(f"{name}: {shown}\n{np.array2string(np.asarray(array), threshold=100)}")


def _save(path: Path, named: Mapping[str, NDArray[Any]]) -> None:
    if path.suffix == ".npz":
        np.savez(path, **dict(named))  # pyright: ignore[reportArgumentType]
    elif len(named) == 1:
        np.save(path, next(iter(named.values())))
    else:
        _fail(f"{len(named)} results do not fit into {path}", "name a .npz file")


def _seconds(compiled: Compiled, inputs: Sequence[Any], repeat: int) -> str:
    """Time ``repeat`` calls; return the median, spelled."""
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        compiled(*inputs)
        times.append(time.perf_counter() - start)
    median = float(np.median(times))
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if median * factor >= 1:
            return f"{median * factor:.4g} {unit}"
    return f"{median * 1e6:.3g} us"


def _fail(message: str, help: str = "") -> NoReturn:
    raise CompileError(Diagnostic("error", message, help=help))
