"""Control flow and other primitives on traced values, as `jax.lax` has them. ``sw.lax``.

Names, order and defaults of parameters are JAX's. Arrays are converted and broadcast by nothing but
Python numbers and values without axes: `stepwell.numpy` does that.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NoReturn

from stepwell.frontend.associative_scans import associative_scan
from stepwell.frontend.lax_arrays import (
    argmax,
    argmin,
    batch_matmul,
    bitcast_convert_type,
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    broadcasted_iota,
    collapse,
    concatenate,
    convert_element_type,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    empty,
    expand_dims,
    full,
    full_like,
    index_in_dim,
    iota,
    pad,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
    reshape,
    rev,
    slice_in_dim,
    sort,
    sort_key_val,
    split,
    squeeze,
    stack,
    tile,
    top_k,
    transpose,
    unstack,
)
from stepwell.frontend.lax_arrays import slice_ as slice
from stepwell.frontend.lax_control import (
    cond,
    fori_loop,
    map,
    scan,
    switch,
    while_loop,
)
from stepwell.frontend.lax_elementwise import (
    RoundingMethod,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cbrt,
    ceil,
    clamp,
    clz,
    cos,
    cosh,
    div,
    eq,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    fma,
    ge,
    gt,
    integer_pow,
    is_finite,
    le,
    log,
    log1p,
    logistic,
    lt,
    mul,
    ne,
    neg,
    nextafter,
    population_count,
    reciprocal,
    rem,
    rsqrt,
    select,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
)
from stepwell.frontend.lax_elementwise import abs_ as abs
from stepwell.frontend.lax_elementwise import max_ as max
from stepwell.frontend.lax_elementwise import min_ as min
from stepwell.frontend.lax_elementwise import pow_ as pow
from stepwell.frontend.lax_elementwise import round_ as round
from stepwell.frontend.lax_examples import EXAMPLES, told
from stepwell.frontend.lax_scatter import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from stepwell.frontend.lax_windows import (
    ConvDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_with_general_padding,
    dot,
    dot_general,
    padtype_to_pads,
    reduce,
    reduce_window,
)
from stepwell.frontend.random_bits import random_bits
from stepwell.frontend.transformations.custom import stop_gradient


def optimization_barrier(operand: Any, /) -> Any:
    """Return ``operand``: nothing is computed twice, and no result depends on what is fused."""
    return operand


NOT_HERE = {
    "it is about several devices": "after_all all_gather all_to_all axis_index axis_size "
    "create_token pbroadcast pcast platform_dependent pmax pmean pmin ppermute precv psend "
    "pshuffle psum psum_scatter pswapaxes ragged_all_to_all with_sharding_constraint",
    "it is about derivatives": "custom_linear_solve custom_root random_gamma_grad igamma_grad_a",
    "complex numbers are not supported yet": "complex conj fft FftType imag real",
    "sort and take the first": "approx_max_k approx_min_k",
    "use sw.random": "rng_bit_generator rng_uniform RandomAlgorithm",
    "use sw.lax.conv_general_dilated": "conv_general_dilated_local conv_general_dilated_patches "
    "conv_transpose conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
    "conv_transpose_shape_tuple reduce_window_shape_tuple ConvGeneralDilatedDimensionNumbers",
    "there is one precision for each dtype": "AccuracyMode DotAlgorithm DotAlgorithmPreset "
    "Precision PrecisionLike Tolerance reduce_precision",
    "use sw.lax.dot_general": "DotDimensionNumbers RaggedDotDimensionNumbers ragged_dot "
    "ragged_dot_general scaled_dot",
    "use sw.lax.scatter": "scatter_apply",
    "use x[i, j]": "index_take",
    "use x.dtype": "dtype",
    "not here yet": "bessel_i0e bessel_i1e betainc composite dce_sink digamma erf_inv igamma "
    "igammac lgamma linalg mulhi polygamma shape_as_value stage zeta",
}
"""What `jax.lax` has and this module has not, by reason."""


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module 'stepwell.lax' has no attribute '{name}'")
    for why, names in NOT_HERE.items():
        if name in names.split():
            raise AttributeError(f"stepwell.lax has no '{name}', which jax.lax has: {why}")
    near = get_close_matches(name, __all__, 1, 0.6)
    told = f"; the nearest is {near[0]}" if near else ""
    raise AttributeError(f"module 'stepwell.lax' has no attribute '{name}'{told}")


__all__ = [
    "ConvDimensionNumbers",
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "RoundingMethod",
    "ScatterDimensionNumbers",
    "abs",
    "acos",
    "acosh",
    "add",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "associative_scan",
    "atan",
    "atan2",
    "atanh",
    "batch_matmul",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "collapse",
    "concatenate",
    "cond",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_with_general_padding",
    "convert_element_type",
    "cos",
    "cosh",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "div",
    "dot",
    "dot_general",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "empty",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "floor",
    "fma",
    "fori_loop",
    "full",
    "full_like",
    "gather",
    "ge",
    "gt",
    "index_in_dim",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "log",
    "log1p",
    "logistic",
    "lt",
    "map",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "optimization_barrier",
    "pad",
    "padtype_to_pads",
    "population_count",
    "pow",
    "random_bits",
    "reciprocal",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "reduce_xor",
    "rem",
    "reshape",
    "rev",
    "round",
    "rsqrt",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "sort",
    "sort_key_val",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "sub",
    "switch",
    "tan",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "unstack",
    "while_loop",
]


def __dir__() -> list[str]:
    """Leave out what is imported."""
    return __all__


for _name in EXAMPLES:
    globals()[_name].__doc__ = told(_name, globals()[_name])
