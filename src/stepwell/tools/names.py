"""The page of names: those of NumPy, the array API and JAX we have, and why others do not."""

from __future__ import annotations

from typing import Any

import numpy as np

import stepwell.frontend.rarely_used
import stepwell.numpy
from stepwell.frontend import lax, nn, random
from stepwell.frontend.facade import NAMES
from stepwell.frontend.table import FUNCTIONS, UFUNCS

assert stepwell.frontend.rarely_used and stepwell.numpy

ARRAY_API = {
    "creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid "
    "ones ones_like tril triu zeros zeros_like",
    "data types": "astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type",
    "elementwise": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift "
    "bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh "
    "divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf "
    "isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or "
    "logical_xor maximum minimum multiply negative nextafter not_equal positive pow real "
    "reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc",
    "indexing": "take take_along_axis",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims "
    "repeat reshape roll squeeze stack tile unstack",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utility": "all any diff",
}
"""Functions of the main namespace, version 2024.12."""
SIZED = {
    *("argwhere", "bincount", "flatnonzero", "intersect1d", "nonzero", "setdiff1d", "setxor1d"),
    *("union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
}
"""Functions that take ``size=`` (`bincount`: ``length=``), as their result shape is dynamic."""

_LATER = "not here yet"
REFUSED = {
    "its shape depends on numbers that only the run knows": "trim_zeros roots poly polyfit polydiv "
    "polymul poly1d",
    "complex numbers follow in a later issue": "complex64 complex128 csingle cdouble clongdouble "
    "complex256 complexfloating sort_complex",
    "`fft` follows in a later issue": "fft",
    "use `stepwell.random`": "random",
    "there are no dates, strings, objects and records": "busday_count busday_offset busdaycalendar "
    "datetime64 datetime_as_string datetime_data is_busday isnat timedelta64 char strings bytes_ "
    "str_ object_ void record recarray rec flexible character",
    "floats have 64 bits at most": "longdouble float128",
    "packed bits are not here": "packbits unpackbits",
    _LATER: "histogramdd i0 einsum_path",
    "it reads or writes files or text": "fromfile fromregex fromstring frombuffer fromiter "
    "genfromtxt load loadtxt memmap save savetxt savez savez_compressed",
    "it prints": "array2string array_repr array_str base_repr binary_repr format_float_positional "
    "format_float_scientific get_printoptions printoptions set_printoptions info typename",
    "it is about memory, of which arrays in a trace have none": "asfortranarray isfortran "
    "may_share_memory shares_memory require asarray_chkfinite nditer nested_iters flatiter "
    "ndenumerate",
    "it gives Python objects; use `numpy.vectorize`": "frompyfunc",
    "NumPy's own is traced where it is called": "vectorize",
    "it is the settings of NumPy itself": "geterr geterrcall seterr seterrcall getbufsize "
    "setbufsize show_config show_runtime get_include",
    "matrices are arrays of two axes": "matrix asmatrix bmat",
    "NumPy deprecates it; use `vstack`": "row_stack",
}
"""NumPy's names that are not provided, by reason."""
_LACKING = [name for names in lax.NOT_HERE.values() for name in names.split()]
JAX = {
    "jax.nn": (
        nn,
        "celu dot_product_attention elu gelu get_scaled_dot_general_config glu hard_sigmoid "
        "hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid log_softmax "
        "logmeanexp logsumexp mish one_hot relu relu6 scaled_dot_general scaled_matmul selu "
        "sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus "
        "standardize swish tanh",
    ),
    "jax.nn.initializers": (nn.initializers, " ".join(nn.initializers.__all__)),
    "optax.losses": (
        nn,
        "convex_kl_divergence cosine_distance cosine_similarity ctc_loss "
        "ctc_loss_with_forward_probs dice_loss hinge_loss huber_loss kl_divergence "
        "kl_divergence_with_log_targets l2_loss log_cosh multiclass_hinge_loss ntxent "
        "perceptron_loss poly_loss_cross_entropy safe_softmax_cross_entropy "
        "sigmoid_binary_cross_entropy sigmoid_focal_loss smooth_labels softmax_cross_entropy "
        "softmax_cross_entropy_with_integer_labels squared_error triplet_margin_loss",
    ),
    "jax.lax": (
        lax,
        " ".join([*(n for n in lax.__all__ if n not in ("fma", "random_bits")), *_LACKING]),
    ),
    "jax.random": (
        random,
        "PRNGKey ball bernoulli beta binomial bits categorical cauchy chisquare choice dirichlet "
        "double_sided_maxwell exponential fold_in gamma generalized_normal geometric gumbel key "
        "laplace loggamma logistic lognormal maxwell multinomial multivariate_normal normal "
        "orthogonal pareto permutation poisson rademacher randint rayleigh split t triangular "
        "truncated_normal uniform wald weibull_min",
    ),
}
"""JAX's names, with our module for them."""


def here(name: str) -> bool:
    """Whether `stepwell.numpy` has a name.

    >>> here("median"), here("packbits")
    (True, False)
    """
    function = getattr(np, name, None)
    own = getattr(function, "__name__", name)
    return name in FUNCTIONS or name in NAMES or own in UFUNCS or _alias(own, function)


def _alias(own: str, function: Any) -> bool:
    return own in FUNCTIONS and getattr(np, own, None) is function


def reasons() -> dict[str, str]:
    """Return the reason for each of NumPy's names that is not provided."""
    return {name: why for why, names in REFUSED.items() for name in names.split()}


def _numpy_names() -> list[str]:
    """Return NumPy's public names that describe a computation or a dtype."""
    modules = ("core", "ctypeslib", "dtypes", "emath", "f2py", "lib", "ma", "polynomial", "test")
    others = {*modules, "testing", "typing", "exceptions", "__version__", "ScalarType", "typecodes"}
    others |= {"sctypeDict", "little_endian", "mintypecode", "__array_namespace_info__"}
    return sorted((n for n in np.__all__ if n not in others), key=lambda n: (n.lower(), n))


def page() -> str:
    """Return the page, in Markdown."""
    rows = ["# Names", ""]
    rows += ["Under `sw.jit`, `numpy.X` of traced values and `stepwell.numpy.X` are one function."]
    rows += ["Those marked ⁺ have a result whose shape only the run knows: called by the name of"]
    rows += ["`stepwell.numpy` they take `size=` (`bincount`: `length=`), and are refused without."]
    rows += ["", "## Array API 2024.12", "", "| family | here | refused |", "|---|---|---|"]
    for family, names in ARRAY_API.items():
        rows.append(_row(family, names.split()))
    found = _numpy_names()
    rows += ["", f"## NumPy {np.__version__.rpartition('.')[0]}", ""]
    rows += [_listed([n for n in found if here(n)]), ""]
    beyond = (n for n in FUNCTIONS if not hasattr(np, n) and "." not in n)
    rows += ["Beyond NumPy: " + _listed(beyond), ""]
    inside = (n for n in FUNCTIONS if n.startswith("linalg."))
    rows += ["Of `numpy.linalg`, as `snp.linalg` too: " + _listed(inside) + ". The rest needs a"]
    rows += ["factorization, and is refused."]
    rows += ["", "Refused:", "", "| reason | names |", "|---|---|"]
    why = reasons()
    groups: dict[str, list[str]] = {}
    for name in found:
        if not here(name):
            groups.setdefault(why.get(name, _LATER), []).append(name)
    rows += [f"| {reason} | {_listed(groups[reason])} |" for reason in REFUSED if reason in groups]
    rows += ["", "## JAX", "", "| module | here | not here |", "|---|---|---|"]
    for module, (ours, names) in JAX.items():
        known = [n for n in names.split() if _has(ours, n)]
        rows.append(
            f"| `{module}` | {_listed(known)} | {_listed(set(names.split()) - set(known))} |"
        )
    rows += [
        "",
        "Parameters have the names, order and defaults that JAX 0.10.2 gives them, but for",
    ]
    rows += [
        "`out_sharding`, `sharding` and `_split_transpose`, which are about several devices and"
    ]
    rows += ["derivatives. `accuracy`, `precision`, `unique_indices`, `indices_are_sorted`,"]
    rows += [
        "`is_stable` and `allow_negative_indices` are taken and make no difference. `sw.lax` has"
    ]
    rows += ["`fma` and `random_bits` besides. What `jax.lax` has and `sw.lax` has not:", ""]
    rows += ["| reason | names |", "|---|---|"]
    rows += [f"| {why} | {_listed(names.split())} |" for why, names in lax.NOT_HERE.items()]
    return "\n".join(rows) + "\n"


def _has(module: Any, name: str) -> bool:
    return name in module.__all__


def _row(family: str, names: list[str]) -> str:
    known = [n for n in names if here(n)]
    return f"| {family} | {_listed(known)} | {_listed(set(names) - set(known))} |"


def _listed(names: Any) -> str:
    return ", ".join(f"`{n}`{'⁺' if n in SIZED else ''}" for n in sorted(names)) or "none"
