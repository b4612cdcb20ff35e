"""`eval_shape`: a function's result types, without running or compiling it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from stepwell.core.tracebacks import entrance
from stepwell.frontend.functions import Function
from stepwell.frontend.jit import jit
from stepwell.frontend.pytree import unflatten
from stepwell.frontend.specs import ShapeDtypeStruct


@entrance
def eval_shape(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of a function's results: traced, not compiled or run.

    args, kwargs : arrays, or `ShapeDtypeStruct` in their place
    source : the name is JAX's

    >>> import stepwell as sw
    >>> x = sw.ShapeDtypeStruct((3, 4), "float32")
    >>> sw.eval_shape(lambda x: {"y": x @ x.T}, x)
    {'y': ShapeDtypeStruct(shape=(3, 3), dtype=float32)}
    """
    traced = (function if isinstance(function, Function) else jit(function)).trace(*args, **kwargs)
    if any(kind.name == "bf16" for kind, _ in traced.results):
        with suppress(ImportError):  # importing it registers the dtype with NumPy
            import_module("ml_dtypes")
    results = [traced.results[k] for k in traced.effects.places]
    leaves = [
        ShapeDtypeStruct(shape, "bfloat16" if kind.name == "bf16" else kind.numpy)
        for kind, shape in results
    ]
    return unflatten(traced.out_tree, leaves)
