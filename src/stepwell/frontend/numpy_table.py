"""Which functions and methods of NumPy's are here, and the call of one by `__array_function__`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.frontend import as_numpy as np_
from stepwell.frontend import manipulation as m
from stepwell.frontend import sorting
from stepwell.frontend.creation import meshgrid, tril, triu
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take_along_axis
from stepwell.frontend.promotion import cast, fresh
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import refusal, stored

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": np_.all,
    "allclose": np_.allclose,
    "amax": np_.max,
    "amin": np_.min,
    "any": np_.any_,
    "argmax": np_.argmax,
    "argmin": np_.argmin,
    "argsort": np_.lifting(sorting.argsort),
    "around": np_.round_,
    "array_equal": np_.array_equal,
    "atleast_1d": np_.atleast_1d,
    "atleast_2d": np_.atleast_2d,
    "broadcast_arrays": lambda *args: tuple(m.broadcast_arrays(*args)),
    "broadcast_to": np_.lifting(m.broadcast_to),
    "clip": np_.clip,
    "column_stack": np_.column_stack,
    "concat": np_.concatenate,
    "concatenate": np_.concatenate,
    "copy": np_.copy,
    "count_nonzero": np_.count_nonzero,
    "cumprod": np_.cumprod,
    "cumsum": np_.cumsum,
    "diff": np_.diff,
    "dot": np_.dot,
    "einsum": np_.einsum,
    "empty_like": np_.like(0),
    "expand_dims": np_.lifting(m.expand_dims),
    "flip": np_.lifting(m.flip),
    "fliplr": np_.flipped(1),
    "flipud": np_.flipped(0),
    "full_like": np_.full_like,
    "hstack": np_.hstack,
    "inner": np_.inner,
    "isclose": np_.isclose,
    "linspace": np_.linspace,
    "matrix_transpose": np_.lifting(m.matrix_transpose),
    "max": np_.max,
    "mean": np_.mean,
    "meshgrid": lambda *xi, indexing="xy": tuple(meshgrid(*xi, indexing=indexing)),
    "min": np_.min,
    "moveaxis": np_.lifting(m.moveaxis),
    "nan_to_num": np_.nan_to_num,
    "nansum": np_.without_nan(np_.sum, 0.0),
    "ndim": lambda a: a.ndim,
    "ones_like": np_.like(1),
    "outer": np_.outer,
    "pad": np_.pad,
    "permute_dims": np_.transpose,
    "prod": np_.prod,
    "ptp": np_.ptp,
    "ravel": np_.ravel,
    "repeat": np_.lifting(m.repeat),
    "reshape": np_.reshape,
    "result_type": np_.result_type,
    "roll": np_.roll,
    "round": np_.round_,
    "shape": lambda a: a.shape,
    "searchsorted": np_.lifting(sorting.searchsorted),
    "size": np_.size,
    "sort": np_.lifting(sorting.sort),
    "split": np_.split,
    "squeeze": np_.lifting(m.squeeze),
    "stack": np_.stack,
    "std": np_.std,
    "sum": np_.sum,
    "swapaxes": np_.lifting(m.swapaxes),
    "take": np_.taken,
    "take_along_axis": lambda arr, indices, axis=-1: take_along_axis(arr, indices, axis),
    "tensordot": np_.tensordot,
    "tile": np_.lifting(m.tile),
    "trace": np_.trace,
    "transpose": np_.transpose,
    "tril": np_.lifting(tril),
    "triu": np_.lifting(triu),
    "var": np_.var,
    "vstack": np_.vstack,
    "where": np_.where,
    "zeros_like": np_.like(0),
}
"""What NumPy's functions are here."""


def call_function(function: Any, args: Sequence[Any], keywords: Any) -> Any:
    """Return what NumPy's ``function`` gives where one of its arguments is a traced value."""
    name = getattr(function, "__name__", "a function")
    ours = FUNCTIONS.get(name)
    if ours is None or function is not getattr(np, name, None):
        raise TraceError(refusal(_called(function, name), FUNCTIONS))
    keywords = dict(keywords)
    out = keywords.pop("out", None)
    where_ = keywords.pop("where", True)
    try:
        if where_ is not True:
            raise TypeError(f"{name}() got an unexpected keyword argument 'where'")
        return stored(ours(*args, **keywords), out)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        wrong = str(error).rpartition(" ")[2]
        raise TraceError(f"numpy.{name}: {wrong} is not known to Stepwell") from None


def _called(function: Any, name: str) -> str:
    module = str(getattr(function, "__module__", ""))
    return f"{module.removeprefix('numpy.')}.{name}" if module.startswith("numpy.") else name


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Tensor, *args: Any, **keywords: Any) -> Any:
        out = keywords.pop("out", None)
        return stored(function(self, *args, **keywords), out)

    return call


def _astype(
    x: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", copy: bool = True
) -> Tensor:
    return fresh(cast(x, np_.dtype_of(dtype)))


def _reshape(x: Tensor, *shape: Any, order: str = "C") -> Tensor:
    np_.in_order(order)
    return m.reshape(x, *shape)


def _sort(x: Tensor, axis: int = -1, kind: str | None = None, **keywords: Any) -> None:
    x[...] = sorting.sort(x, axis, kind, **keywords)


METHODS: dict[str, Callable[..., Any]] = {
    "astype": _astype,
    "conj": lambda x: fresh(x),
    "flatten": lambda x, order="C": fresh(np_.ravel(x, order)),
    "reshape": _reshape,
    "sort": _sort,
    "swapaxes": m.swapaxes,
    "transpose": m.transpose,
    "view": lambda x, *args: _no_view(),
} | {
    name: _method(FUNCTIONS[name])
    for name in (
        *(
            "all",
            "any",
            "argmax",
            "argmin",
            "argsort",
            "clip",
            "copy",
            "cumprod",
            "cumsum",
            "dot",
            "max",
        ),
        *(
            "mean",
            "min",
            "prod",
            "ravel",
            "repeat",
            "round",
            "searchsorted",
            "squeeze",
            "std",
            "sum",
            "take",
        ),
        *("trace", "var"),
    )
}
"""Methods of arrays."""


def _no_view() -> Any:
    raise TraceError("x.view() reads memory otherwise; use stepwell.numpy.bitcast or astype")
