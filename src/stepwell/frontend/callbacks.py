"""``sw.callback``: a Python function that the program calls while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.host_functions import HostFunction, called
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, lift
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace, current_trace


def callback(function: Callable[..., Any], result_shape_dtypes: Any, *args: Any) -> Any:
    """Call a Python function when the program runs: in order, and in loops each time.

    function : takes NumPy arrays, which it owns; it is not traced
    result_shape_dtypes : its results: arrays, or objects with a ``shape`` and a ``dtype``, in
        tuples, lists and dicts; None if it returns nothing
    args : arrays and numbers, in tuples, lists and dicts

    Returns the function's results. The call of the program raises the function's exceptions. The
    function is called even if its results are unused, on the thread that calls the program.

    raises TraceError : a result has no shape and dtype
    source : `jax.experimental.io_callback`

    >>> import numpy as np, stepwell as sw
    >>> seen = []
    >>> def look_up(x):
    ...     seen.append(float(x.sum()))
    ...     return np.sort(x)
    >>> @sw.jit
    ... def f(x):
    ...     return sw.callback(look_up, x, x * 2) + 1
    >>> f(np.array([3.0, 1.0])), seen
    (array([3., 7.]), [8.0])
    """
    leaves, tree = flatten(args)
    wanted, out_tree = flatten(result_shape_dtypes)
    if active_trace() is None:
        return function(*args)
    types = [_type(each) for each in wanted]

    given = [lift(leaf) for leaf in leaves]
    call = _Flat(function, tree, out_tree)
    return unflatten(out_tree, list(emit_callback(call, given, types, _name(function))))


@dataclass(frozen=True)
class _Flat:
    """Call a function of trees with flat arrays; instances for the same function are equal."""

    function: Callable[..., Any]
    inputs: Tree
    outputs: Tree

    def __call__(self, *arrays: Any) -> Sequence[Any]:
        returned, found = flatten(self.function(*unflatten(self.inputs, list(arrays))))
        if found != self.outputs:
            raise ValueError(f"'{_name(self.function)}' returned something else than it was to")
        return returned


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _type(wanted: Any) -> tuple[DType, Shape]:
    """Return the dtype and shape of a result."""
    if isinstance(wanted, Tensor):
        return wanted.kind, wanted.shape
    if not hasattr(wanted, "shape") or not hasattr(wanted, "dtype"):
        raise TraceError(f"the result of a callback must have a shape and a dtype, not {wanted!r}")
    return as_dtype(wanted.dtype), tuple(int(n) for n in wanted.shape)


def emit_callback(
    function: Callable[..., Sequence[Any]],
    given: Sequence[Tensor],
    results: Sequence[tuple[DType, Shape]],
    name: str,
) -> tuple[Tensor, ...]:
    """Emit a call of ``function``, which takes arrays and returns a sequence of arrays."""
    for each in (*(v.kind for v in given), *(kind for kind, _ in results)):
        if each.name == "bf16":
            raise TraceError("a callback takes and gives no bfloat16; convert to float32")
    inputs = tuple((np.dtype(v.kind.numpy), v.shape) for v in given)
    outputs = tuple((np.dtype(kind.numpy), shape) for kind, shape in results)
    key = called(name, HostFunction(function, inputs, outputs))
    return current_trace().emit("callback", given, results, (), name=key)
