"""`numpy.vectorize` in a trace: a function of numbers, applied to every element at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import broadcast_arrays, reshape
from stepwell.frontend.promotion import as_dtype, cast, fresh, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.batching import vmap
from stepwell.frontend.transformations.transformed import call

_PYTHONS = ("i1", "i64", "f64")
"""Dtypes whose elements stay what they are as Python numbers."""


def vectorized(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of the `numpy.vectorize` object ``function`` for traced arguments.

    As in NumPy, the function computes with Python numbers, and the results have the dtypes that
    NumPy's numbers would give, or those of ``otypes=``. NumPy asks the first element for them; here
    they are those of any element.

    raises TraceError : ``signature=`` is given
    raises ValueError : an argument is empty and there are no ``otypes=``, or a result has axes
    """
    if function.signature is not None:
        raise TraceError("numpy.vectorize with signature= is not known to Stepwell; use sw.vmap(f)")
    places: list[Any] = [*range(len(args)), *keywords]
    given = dict(zip(places, (*args, *keywords.values()), strict=True))
    varying = [place for place in places if place not in function.excluded]

    def of_numbers(*numbers: Any) -> Any:
        put = {**given, **dict(zip(varying, numbers, strict=True))}
        named = {name: put[name] for name in keywords}
        return call(function.pyfunc, *(put[k] for k in range(len(args))), **named)

    if not varying:
        return of_numbers()
    values = broadcast_arrays(*(given[place] for place in varying))
    shape = values[0].shape
    if 0 in shape and function.otypes is None:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    flat = [reshape(value, -1) for value in values]
    found = vmap(lambda *numbers: _outputs(of_numbers, function.otypes, numbers))(*flat)
    results = tuple(reshape(each, shape) for each in found)
    return results[0] if len(results) == 1 else results


def _outputs(
    of_numbers: Callable[..., Any], otypes: str | None, numbers: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the results for one element."""
    outputs = _as_tuple(of_numbers(*(Tensor.operators["item"](each) for each in numbers)))
    if otypes is not None:
        if len(otypes) != len(outputs):
            raise ValueError(f"{len(otypes)} otypes= of numpy.vectorize for {len(outputs)} results")
        kinds = [as_dtype(np.dtype(code)) for code in otypes]
    elif all(each.kind.name in _PYTHONS for each in numbers):
        kinds = [each.kind for each in outputs]
    else:
        kinds = [each.kind for each in _as_tuple(of_numbers(*numbers))]
    return tuple(fresh(cast(v, kind)) for v, kind in zip(outputs, kinds, strict=True))


def _as_tuple(returned: Any) -> tuple[Tensor, ...]:
    outputs = tuple(map(lift, returned if isinstance(returned, tuple) else (returned,)))
    if any(each.shape for each in outputs):
        raise ValueError("setting an array element with a sequence.")
    return outputs
