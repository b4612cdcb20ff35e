"""stepwell run: compile a module and call it on arrays from files, or on random ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.api.compiled import Compiled
from stepwell.core.files import replacing
from stepwell.core.signature import Tensor
from stepwell.tools.inputs import fail, inputs_of, program_of


def run(options: argparse.Namespace) -> int:
    """Compile, call, and print or save the results."""
    compiled = program_of(options)
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
        with replacing(path) as new, new.open("wb") as file:
            np.savez(file, **dict(named))  # pyright: ignore[reportArgumentType]
    elif path.suffix != ".npy":
        fail(f"results are not written into {path}", "name a .npy file, or a .npz for all of them")
    elif len(named) == 1:
        with replacing(path) as new, new.open("wb") as file:
            np.save(file, next(iter(named.values())))
    else:
        fail(f"{len(named)} results do not fit into {path}", "name a .npz file")


def _seconds(compiled: Compiled, inputs: Sequence[Any], repeat: int) -> str:
    """Time ``repeat`` calls; return the median as text."""
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
