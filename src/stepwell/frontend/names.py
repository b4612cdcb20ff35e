"""What NumPy's functions are called in `stepwell.numpy`, for those who look for them there."""

from __future__ import annotations

from importlib import import_module

OTHERWISE = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "asarray",
    "bitwise_not": "bitwise_invert",
    "bool_": "bool",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "dot": "matmul",
    "fabs": "abs",
    "float_power": "pow",
    "fmax": "maximum",
    "fmin": "minimum",
    "hstack": "concat",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "true_divide": "divide",
    "vstack": "concat",
    "add.reduce": "sum",
    "multiply.reduce": "prod",
    "maximum.reduce": "max",
    "minimum.reduce": "min",
    "add.accumulate": "cumulative_sum",
    "multiply.outer": "outer",
}
"""NumPy's names of what has another one, or is done by another function."""


def instead(name: str) -> str:
    """Say what to write instead of NumPy's function ``name``.

    >>> instead("arcsin")
    'use stepwell.numpy.asin'
    >>> instead("partition")
    'stepwell.numpy has nothing like it'
    """
    if (other := OTHERWISE.get(name)) is not None:
        return f"use stepwell.numpy.{other}"
    if name in import_module("stepwell.numpy").__all__:
        return "use the function of the same name in stepwell.numpy"
    return "stepwell.numpy has nothing like it"
