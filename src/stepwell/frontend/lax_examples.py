"""Examples of functions of `sw.lax`, for their docstrings: calls, and the types of results."""

from __future__ import annotations

import inspect
import re
from typing import Any

SHAPES: dict[str, tuple[tuple[int, ...], str]] = {
    "x": ((2, 3), "float32"),
    "y": ((2, 3), "float32"),
    "v": ((3,), "float32"),
    "z": ((2, 2, 3), "float32"),
    "u": ((3,), "float32"),
    "i": ((4,), "int32"),
    "j": ((4,), "int32"),
    "k": ((), "int32"),
    "img": ((1, 2, 4, 5), "float32"),
    "ker": ((2, 2, 2, 3), "float32"),
    "idx": ((4, 1), "int32"),
    "idx2": ((2, 2), "int32"),
    "rows": ((4, 3), "float32"),
}
"""The arrays of the calls."""
EXAMPLES: dict[str, tuple[str, str]] = {
    "abs": ("sw.lax.abs(i)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "acos": ("sw.lax.acos(u)", "ShapeDtypeStruct(shape=(3,), dtype=float32)"),
    "acosh": ("sw.lax.acosh(u + 2)", "ShapeDtypeStruct(shape=(3,), dtype=float32)"),
    "add": ("sw.lax.add(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "argmax": ("sw.lax.argmax(x, 1, np.int32)", "ShapeDtypeStruct(shape=(2,), dtype=int32)"),
    "argmin": ("sw.lax.argmin(x, 0, np.int32)", "ShapeDtypeStruct(shape=(3,), dtype=int32)"),
    "asin": ("sw.lax.asin(u)", "ShapeDtypeStruct(shape=(3,), dtype=float32)"),
    "asinh": ("sw.lax.asinh(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "atan": ("sw.lax.atan(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "atan2": ("sw.lax.atan2(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "atanh": ("sw.lax.atanh(u)", "ShapeDtypeStruct(shape=(3,), dtype=float32)"),
    "batch_matmul": (
        "sw.lax.batch_matmul(z, sw.lax.transpose(z, (0, 2, 1)))",
        "ShapeDtypeStruct(shape=(2, 2, 2), dtype=float32)",
    ),
    "bitcast_convert_type": (
        "sw.lax.bitcast_convert_type(x, np.int32)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=int32)",
    ),
    "bitwise_and": ("sw.lax.bitwise_and(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "bitwise_not": ("sw.lax.bitwise_not(i)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "bitwise_or": ("sw.lax.bitwise_or(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "bitwise_xor": ("sw.lax.bitwise_xor(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "broadcast": ("sw.lax.broadcast(v, (2,))", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "broadcast_in_dim": (
        "sw.lax.broadcast_in_dim(v, (2, 3, 2), (1,))",
        "ShapeDtypeStruct(shape=(2, 3, 2), dtype=float32)",
    ),
    "broadcast_like": (
        "sw.lax.broadcast_like(v, x)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "broadcast_to_rank": (
        "sw.lax.broadcast_to_rank(v, 3)",
        "ShapeDtypeStruct(shape=(1, 1, 3), dtype=float32)",
    ),
    "broadcasted_iota": (
        "sw.lax.broadcasted_iota(np.int32, (2, 3), 1)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=int32)",
    ),
    "cbrt": ("sw.lax.cbrt(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "ceil": ("sw.lax.ceil(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "clamp": ("sw.lax.clamp(-1.0, x, 1.0)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "clz": ("sw.lax.clz(i)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "collapse": ("sw.lax.collapse(z, 0, 2)", "ShapeDtypeStruct(shape=(4, 3), dtype=float32)"),
    "concatenate": (
        "sw.lax.concatenate([x, y], 1)",
        "ShapeDtypeStruct(shape=(2, 6), dtype=float32)",
    ),
    "conv": (
        "sw.lax.conv(img, ker, (1, 1), 'SAME')",
        "ShapeDtypeStruct(shape=(1, 2, 4, 5), dtype=float32)",
    ),
    "conv_general_dilated": (
        "sw.lax.conv_general_dilated(img, ker, (1, 2), [(1, 0), (2, 1)], rhs_dilation=(1, 2))",
        "ShapeDtypeStruct(shape=(1, 2, 4, 2), dtype=float32)",
    ),
    "conv_with_general_padding": (
        "sw.lax.conv_with_general_padding(img, ker, (1, 1), 'VALID', (1, 1), (2, 1))",
        "ShapeDtypeStruct(shape=(1, 2, 2, 3), dtype=float32)",
    ),
    "convert_element_type": (
        "sw.lax.convert_element_type(x, np.int32)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=int32)",
    ),
    "cos": ("sw.lax.cos(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "cosh": ("sw.lax.cosh(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "cumlogsumexp": (
        "sw.lax.cumlogsumexp(x, axis=1)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "cummax": (
        "sw.lax.cummax(x, axis=1, reverse=True)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "cummin": ("sw.lax.cummin(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "cumprod": ("sw.lax.cumprod(x, axis=1)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "cumsum": ("sw.lax.cumsum(i, reverse=True)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "div": ("sw.lax.div(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "dot": (
        "sw.lax.dot(x, sw.lax.transpose(y, (1, 0)))",
        "ShapeDtypeStruct(shape=(2, 2), dtype=float32)",
    ),
    "dot_general": (
        "sw.lax.dot_general(z, z, (((2,), (2,)), ((0,), (0,))))",
        "ShapeDtypeStruct(shape=(2, 2, 2), dtype=float32)",
    ),
    "dynamic_index_in_dim": (
        "sw.lax.dynamic_index_in_dim(x, k, 1)",
        "ShapeDtypeStruct(shape=(2, 1), dtype=float32)",
    ),
    "dynamic_slice": (
        "sw.lax.dynamic_slice(x, (0, k), (2, 2))",
        "ShapeDtypeStruct(shape=(2, 2), dtype=float32)",
    ),
    "dynamic_slice_in_dim": (
        "sw.lax.dynamic_slice_in_dim(x, k, 2, axis=1)",
        "ShapeDtypeStruct(shape=(2, 2), dtype=float32)",
    ),
    "dynamic_update_index_in_dim": (
        "sw.lax.dynamic_update_index_in_dim(x, v[:2], k, 1)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "dynamic_update_slice": (
        "sw.lax.dynamic_update_slice(x, y[:1, :2], (k, 0))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "dynamic_update_slice_in_dim": (
        "sw.lax.dynamic_update_slice_in_dim(x, y[:, :1], k, 1)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "empty": ("sw.lax.empty((2,), np.float32)", "ShapeDtypeStruct(shape=(2,), dtype=float32)"),
    "eq": ("sw.lax.eq(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=bool)"),
    "erf": ("sw.lax.erf(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "erfc": ("sw.lax.erfc(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "exp": ("sw.lax.exp(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "exp2": ("sw.lax.exp2(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "expand_dims": (
        "sw.lax.expand_dims(x, (0, 3))",
        "ShapeDtypeStruct(shape=(1, 2, 3, 1), dtype=float32)",
    ),
    "expm1": ("sw.lax.expm1(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "floor": ("sw.lax.floor(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "fma": ("sw.lax.fma(x, y, x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "full": ("sw.lax.full((2,), 1.5)", "ShapeDtypeStruct(shape=(2,), dtype=float32)"),
    "full_like": ("sw.lax.full_like(x, 2)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "gather": (
        "sw.lax.gather(x, idx, sw.lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))",
        "ShapeDtypeStruct(shape=(4, 3), dtype=float32)",
    ),
    "ge": ("sw.lax.ge(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=bool)"),
    "gt": ("sw.lax.gt(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=bool)"),
    "index_in_dim": (
        "sw.lax.index_in_dim(x, 1, 1)",
        "ShapeDtypeStruct(shape=(2, 1), dtype=float32)",
    ),
    "integer_pow": ("sw.lax.integer_pow(x, 3)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "iota": ("sw.lax.iota(np.int32, 4)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "is_finite": ("sw.lax.is_finite(x / 0)", "ShapeDtypeStruct(shape=(2, 3), dtype=bool)"),
    "le": ("sw.lax.le(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=bool)"),
    "log": ("sw.lax.log(x * x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "log1p": ("sw.lax.log1p(x * x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "logistic": ("sw.lax.logistic(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "lt": ("sw.lax.lt(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=bool)"),
    "max": ("sw.lax.max(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "min": ("sw.lax.min(i, 2)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "mul": ("sw.lax.mul(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "ne": ("sw.lax.ne(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=bool)"),
    "neg": ("sw.lax.neg(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "nextafter": ("sw.lax.nextafter(x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "optimization_barrier": (
        "sw.lax.optimization_barrier(x)",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "pad": (
        "sw.lax.pad(x, 0.0, [(1, 1, 0), (0, 2, 1)])",
        "ShapeDtypeStruct(shape=(4, 7), dtype=float32)",
    ),
    "population_count": ("sw.lax.population_count(i)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "pow": ("sw.lax.pow(x * x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "random_bits": (
        "sw.lax.random_bits(np.uint32([0, 7]), np.uint64(0), (3,))",
        "ShapeDtypeStruct(shape=(3,), dtype=uint32)",
    ),
    "reciprocal": ("sw.lax.reciprocal(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "reduce": (
        "sw.lax.reduce(x, 0.0, sw.lax.add, (1,))",
        "ShapeDtypeStruct(shape=(2,), dtype=float32)",
    ),
    "reduce_and": ("sw.lax.reduce_and(i, (0,))", "ShapeDtypeStruct(shape=(), dtype=int32)"),
    "reduce_max": ("sw.lax.reduce_max(x, (1,))", "ShapeDtypeStruct(shape=(2,), dtype=float32)"),
    "reduce_min": ("sw.lax.reduce_min(x, (0,))", "ShapeDtypeStruct(shape=(3,), dtype=float32)"),
    "reduce_or": ("sw.lax.reduce_or(i, (0,))", "ShapeDtypeStruct(shape=(), dtype=int32)"),
    "reduce_prod": ("sw.lax.reduce_prod(x, (0, 1))", "ShapeDtypeStruct(shape=(), dtype=float32)"),
    "reduce_sum": ("sw.lax.reduce_sum(i, (0,))", "ShapeDtypeStruct(shape=(), dtype=int32)"),
    "reduce_window": (
        "sw.lax.reduce_window(x, -np.inf, sw.lax.max, (1, 2))",
        "ShapeDtypeStruct(shape=(2, 2), dtype=float32)",
    ),
    "reduce_xor": ("sw.lax.reduce_xor(i, (0,))", "ShapeDtypeStruct(shape=(), dtype=int32)"),
    "rem": ("sw.lax.rem(i, j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "reshape": ("sw.lax.reshape(x, (3, 2))", "ShapeDtypeStruct(shape=(3, 2), dtype=float32)"),
    "rev": ("sw.lax.rev(x, (1,))", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "round": ("sw.lax.round(x * 2)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "rsqrt": ("sw.lax.rsqrt(x * x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "scatter": (
        "sw.lax.scatter(x, idx[:1], y[:1], sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "scatter_add": (
        "sw.lax.scatter_add(x, idx, rows, sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "scatter_max": (
        "sw.lax.scatter_max(x, idx, rows, sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "scatter_min": (
        "sw.lax.scatter_min(x, idx, rows, sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "scatter_mul": (
        "sw.lax.scatter_mul(x, idx, rows, sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "scatter_sub": (
        "sw.lax.scatter_sub(x, idx, rows, sw.lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "ShapeDtypeStruct(shape=(2, 3), dtype=float32)",
    ),
    "select": ("sw.lax.select(x > 0, x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "select_n": ("sw.lax.select_n(x > 0, x, y)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "shift_left": ("sw.lax.shift_left(i, j * j)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "shift_right_arithmetic": (
        "sw.lax.shift_right_arithmetic(i, j * j)",
        "ShapeDtypeStruct(shape=(4,), dtype=int32)",
    ),
    "shift_right_logical": (
        "sw.lax.shift_right_logical(i, j * j)",
        "ShapeDtypeStruct(shape=(4,), dtype=int32)",
    ),
    "sign": ("sw.lax.sign(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "sin": ("sw.lax.sin(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "sinh": ("sw.lax.sinh(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "slice": ("sw.lax.slice(x, (0, 1), (2, 3))", "ShapeDtypeStruct(shape=(2, 2), dtype=float32)"),
    "slice_in_dim": (
        "sw.lax.slice_in_dim(x, 1, None, axis=1)",
        "ShapeDtypeStruct(shape=(2, 2), dtype=float32)",
    ),
    "sort": ("sw.lax.sort(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "sort_key_val": ("len:sw.lax.sort_key_val(j, i)", "2"),
    "split": ("len:sw.lax.split(x, (1, 2), 1)", "2"),
    "sqrt": ("sw.lax.sqrt(x * x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "square": ("sw.lax.square(i)", "ShapeDtypeStruct(shape=(4,), dtype=int32)"),
    "squeeze": ("sw.lax.squeeze(x[:1], (0,))", "ShapeDtypeStruct(shape=(3,), dtype=float32)"),
    "stack": ("sw.lax.stack([x, y], 1)", "ShapeDtypeStruct(shape=(2, 2, 3), dtype=float32)"),
    "sub": ("sw.lax.sub(x, 1.0)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "tan": ("sw.lax.tan(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "tanh": ("sw.lax.tanh(x)", "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    "tile": ("sw.lax.tile(x, (2, 1))", "ShapeDtypeStruct(shape=(4, 3), dtype=float32)"),
    "top_k": ("len:sw.lax.top_k(x, 2)", "2"),
    "transpose": ("sw.lax.transpose(x, (1, 0))", "ShapeDtypeStruct(shape=(3, 2), dtype=float32)"),
    "unstack": ("len:sw.lax.unstack(x, 1)", "3"),
}
"""A call, and the result of `sw.eval_shape` for it; of ``len:`` calls, its length."""


def docstring_of(name: str, function: Any) -> str:
    """Return the docstring of a function with its example, its source and all its parameters."""
    doc = inspect.getdoc(function) or ""
    call, result = EXAMPLES[name]
    counted = call.startswith("len:")
    call = call.removeprefix("len:")
    used = [k for k in SHAPES if re.search(rf"\b{k}\b", call)]
    lines = [f'>>> {k} = sw.ShapeDtypeStruct({SHAPES[k][0]}, "{SHAPES[k][1]}")' for k in used]
    shown = f"sw.eval_shape(lambda{' ' * bool(used)}{', '.join(used)}: {call}{', ' * bool(used)}"
    shown += f"{', '.join(used)})"
    shown = f"len({shown})" if counted else shown
    words = set(re.findall(r"\w+", doc))
    missing = [p for p in inspect.signature(function).parameters if p not in words]
    about = [f"{', '.join(missing)} : as `jax.lax.{name}` has them"] if missing else []
    if "\n\n" not in doc:
        doc += "\n"
    parts = [doc, *about, f"source : `jax.lax.{name}`", ""]
    return "\n".join(
        [*parts, ">>> import numpy as np, stepwell as sw", *lines, f">>> {shown}", result]
    )
