"""A program implemented by a Python function, for targets of packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.runtime.entry import Array, Entry, numpy_dtype, spell_array


class Called:
    """Calls ``function`` on arrays that fit the signature, with the checks of every program.

    function : takes the arguments, contiguous and of their dtypes, and returns the results in
        order; results of another dtype are converted. Several threads may call it at once

    raises RuntimeError : its results do not match the signature
    """

    def __init__(
        self, entry: Entry, function: Callable[[tuple[Array, ...]], Sequence[Any]]
    ) -> None:
        self.entry = entry
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check, convert and call."""
        return self.entry.miss(args, kwargs)

    def invoke(self, arguments: tuple[Array, ...], outs: tuple[Array, ...] | None) -> Any:
        """Call with arrays that fit."""
        specs = self.entry.signature.results
        found = self._function(arguments)
        if len(found) != len(specs):
            raise RuntimeError(f"the program returned {len(found)} results, not {len(specs)}")
        results: list[Array] = []
        for number, (value, spec) in enumerate(zip(found, specs, strict=True)):
            result = np.asarray(value).astype(numpy_dtype(spec.dtype), "C", copy=False)
            known = [(n, m) for n, m in zip(spec.shape, result.shape, strict=False) if n >= 0]
            if result.ndim != len(spec.shape) or any(n != m for n, m in known):
                raise RuntimeError(f"result {number} is {spell_array(result)}, not {spec}")
            results.append(result)
        for out, result in zip(outs or (), results, strict=False):
            out[...] = result
        results = list(outs or results)
        return results[0] if len(results) == 1 else tuple(results)
