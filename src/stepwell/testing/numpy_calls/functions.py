"""Random calls of functions and methods: arguments are drawn by the names of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from stepwell.frontend.facade import facades
from stepwell.frontend.table import FUNCTIONS, METHODS, complete
from stepwell.testing.numpy_calls.values import Call, Draw
from stepwell.testing.numpy_calls.with_arguments import FURTHER
from stepwell.testing.numpy_calls.writing import COPIES, UNKNOWN_SIZES

SUMS = {
    *("sum", "prod", "mean", "var", "std", "cumsum", "cumprod", "cumulative_sum", "nansum"),
    *("cumulative_prod", "dot", "inner", "outer", "tensordot", "einsum", "trace", "matmul"),
    *("vecdot", "linspace", "logsumexp", "nanmean", "nanvar", "nanstd", "nanprod", "average"),
    *("cov", "corrcoef", "convolve", "correlate", "gradient", "interp", "trapezoid", "vander"),
    *("nancumsum", "nancumprod", "kron", "cross", "vdot", "polyval", "quantile", "percentile"),
    *("median", "nanmedian", "nanquantile", "nanpercentile", "histogram", "histogram2d"),
    *("polyadd", "polysub", "apply_along_axis", "diff", "ediff1d", "nanargmax", "sinc", "unwrap"),
    *("geomspace", "logspace", "arange", "bincount", "poly", "matvec", "vecmat", "digitize"),
}
"""Functions whose float results depend on the order of sums."""
FREE_ZEROS = {"clip", "max", "min", "amax", "amin", "sort", "ptp", "nanmax", "nanmin", "median"}
LEAST_RANK = {"sort": 1, "argsort": 1, "diff": 1, "matrix_transpose": 2, "trace": 2}
PLAIN: dict[str, Callable[[Draw], str]] = {
    "keepdims": lambda g: g.pick(("True", "False")),
    "ddof": lambda g: g.pick(("0", "1", "2", "0.5")),
    "correction": lambda g: g.pick(("0", "1", "2")),
    "decimals": lambda g: g.pick(("0", "1", "2", "-1", "3")),
    "k": lambda g: g.pick(("0", "1", "-1", "2", "-3", "9")),
    "offset": lambda g: g.pick(("0", "1", "-1", "2", "-3", "9")),
    "n": lambda g: g.pick(("0", "1", "2", "3")),
    "N": lambda g: g.pick(("0", "1", "3", "4")),
    "M": lambda g: g.pick(("None", "0", "2", "5")),
    "num": lambda g: g.pick(("0", "1", "2", "5", "7")),
    "endpoint": lambda g: g.pick(("True", "False")),
    "retstep": lambda g: g.pick(("True", "False")),
    "equal_nan": lambda g: g.pick(("True", "False")),
    "include_initial": lambda g: g.pick(("True", "False")),
    "sparse": lambda g: g.pick(("True", "False")),
    "copy": lambda g: g.pick(("True",)),
    "side": lambda g: g.pick(("'left'", "'right'")),
    "indexing": lambda g: g.pick(("'xy'", "'ij'")),
    "kind": lambda g: g.pick(("None", "'stable'", "'quicksort'")),
    "rtol": lambda g: g.pick(("1e-5", "0.0", "0.1")),
    "atol": lambda g: g.pick(("1e-8", "0", "1")),
    "nan": lambda g: g.pick(("0.0", "1.5", "-2")),
    "posinf": lambda g: g.pick(("None", "7.0")),
    "neginf": lambda g: g.pick(("None", "-7.0")),
    "ndmin": lambda g: g.pick(("0", "1", "3")),
    "order": lambda g: g.pick(("'C'", "'K'", "'A'")),
    "initial": lambda g: g.pick(("0", "1", "2", "0.5")),
    "q": lambda g: g.pick(("0.5", "0", "1", "[0.25, 0.5]")),
    "minlength": lambda g: g.pick(("0", "4")),
}
"""Functions that draw the argument for parameters of these names."""
FIRST = ("a", "x", "m", "A", "arr", "array", "object", "ary", "prototype", "a1", "condition", "v")
SECOND = ("b", "x2", "a2", "y", "x1", "weights", "xp", "fp")
SKIPPED = {
    *("out", "like", "device", "subok", "casting", "optimize", "overwrite_input"),
    *("args", "kwargs", "sorter", "mode", "bias", "correction"),
}


@cache
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(FUNCTIONS[name]).parameters


@cache
def names() -> list[str]:
    """Return the names of functions to draw from."""
    ufuncs = {n for n, f in facades().items() if hasattr(f, "nin")}
    lacking = {n for n in facades() if not hasattr(np, n)} - SAID
    return sorted(set(facades()) - ufuncs - set(UNDRAWN) - DRAWN_APART - lacking)


SAID = {"cumulative_max", "cumulative_min", "erf", "erfc", "logsumexp", "rsqrt", "top_k"}
"""Names that NumPy lacks, implemented by the oracle."""
CREATING = {"array", "asarray", "asanyarray", "ascontiguousarray", "full"}
"""Functions that NumPy does not dispatch: rewritten source calls ours."""
JOINING = ("concat", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")
DRAWN_APART = {
    *UNKNOWN_SIZES,
    *JOINING,
    *COPIES,
    *("partition", "argpartition", "ix_", "compress", "extract", "piecewise"),
}
"""Functions with rules of their own."""
UNDRAWN = {
    "empty": "nobody wrote what it holds",
    "empty_like": "nobody wrote what it holds",
    "finfo": "it takes a dtype and no array",
    "iinfo": "it takes a dtype and no array",
    "result_type": "it gives a dtype, which every call compares",
    "bitcast": "NumPy has it as a method, view, of which traced values have none",
}
"""Functions that are not drawn, and why."""


def function(g: Draw) -> Call:
    """Return a call of a function of the table."""
    return call_of(g, g.name(names()))


def call_of(g: Draw, name: str, method: bool = False) -> Call:
    """Return a call of the function, or method, ``name``."""
    own = name if name in FUNCTIONS else getattr(facades()[name], "__name__", name)
    g.tame = own in SUMS
    given = SPECIAL[own](g) if own in SPECIAL else _arguments_by_name(g, own)
    if method:
        first, _, rest = given.partition(", ")
        text = f"r = {first}.{name}({rest})"
    else:
        text = f"r = m.{name}({given})"
    module = "np" if hasattr(np, name) and own not in CREATING and g.chance(0.5) else "snp"
    rounding = "sums" if own in SUMS else "near"
    called = f"{'.' if method else ''}{name}"
    return Call(text, g.arrays, called, module, rounding, own in FREE_ZEROS)


def method(g: Draw) -> Call:
    """Return a call of a method."""
    return call_of(g, g.name(method_names()), method=True)


def method_names() -> list[str]:
    """Return the names of methods that are drawn as the functions of the same name are."""
    complete()
    return [n for n in METHODS if n in names() and n not in IN_PLACE]


IN_PLACE = {
    *("partition", "sort", "put", "argpartition", "compress", "nonzero", "flatten"),
    *("conj", "conjugate"),
}
"""Methods that are drawn by `writing`, or by rules of their own."""


def _arguments_by_name(g: Draw, own: str) -> str:
    """Return arguments drawn by the names of the parameters."""
    parts: list[str] = []
    shape: tuple[int, ...] = ()
    for at, (name, parameter) in enumerate(_parameters(own).items()):
        required = parameter.default is inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            arrays = [g.array(g.shape(0, 2)) for _ in range(g.pick((1, 2, 2, 3)))]
            parts += arrays
            continue
        if name in SKIPPED or not (required or g.chance(0.35)):
            continue
        if at == 0:
            text = g.array(g.shape(LEAST_RANK.get(own, 0)))
            shape = g.of(text).shape
        elif name in PLAIN:
            text = PLAIN[name](g)
        elif name.startswith("axis"):
            text = g.axis(len(shape), none=parameter.default is None, many=own in MANY_AXES)
        elif name == "dtype":
            text = g.some_dtype()
        elif name == "where":
            text = g.array(g.like(shape), "bool")
        elif required or name in SECOND:
            text = g.operand(shape)
        else:
            continue
        positional = required and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        parts.append(text if positional else f"{name}={text}")
    return ", ".join(parts)


MANY_AXES = {
    *("sum", "prod", "max", "min", "amax", "amin", "mean", "var", "std", "all", "any", "flip"),
    *("count_nonzero", "squeeze", "ptp", "nansum", "nanmax", "nanmin", "nanmean", "logsumexp"),
    *("expand_dims", "median", "nanprod", "nanvar", "nanstd", "quantile", "percentile"),
}


def _reshape(g: Draw) -> str:
    a = g.array()
    sizes = [n for n in g.of(a).shape if g.chance(0.5)]
    rest = g.of(a).size // max(int(np.prod(sizes)), 1) if 0 not in sizes else 3
    sizes.insert(g.random.randint(0, len(sizes)), g.pick((-1, rest, rest)))
    return f"{a}, {tuple(sizes)}"


def _expand_dims(g: Draw) -> str:
    a = g.array(g.shape(0, 3))
    return f"{a}, {g.axis(g.of(a).ndim + 1, none=False)}"


def _broadcast_to(g: Draw) -> str:
    shape = g.shape()
    a = g.array(g.like(shape))
    return f"{a}, {shape}"


def _permuted(g: Draw) -> str:
    a = g.array()
    axes = g.random.sample(range(g.of(a).ndim), g.of(a).ndim)
    axes = [k - len(axes) if g.chance(0.3) else k for k in axes]
    return a if g.chance(0.3) else f"{a}, {tuple(axes)}"


def _moved(g: Draw) -> str:
    a = g.array(g.shape(1))
    rank = g.of(a).ndim
    return f"{a}, {g.axis(rank, none=False)}, {g.axis(rank, none=False)}"


def _rolled(g: Draw) -> str:
    a = g.array()
    rank = g.of(a).ndim
    if rank > 1 and g.chance(0.3):
        return f"{a}, (1, -2), axis={(g.random.randrange(rank), -1)}"
    return f"{a}, {g.pick((0, 1, -1, 2, 7))}" + g.keywords(axis=lambda: g.axis(rank))


def _taken(g: Draw) -> str:
    a = g.array(g.shape(1))
    axis = g.axis(g.of(a).ndim)
    shape = g.of(a).shape
    n = g.of(a).size if axis == "None" else shape[int(axis) % len(shape)]
    i = g.array(g.shape(0, 2), "int64")
    g.arrays[i] = g.of(i) % max(n, 1)
    modes = g.pick(("", "", ", mode='clip'", ", mode='wrap'"))
    return f"{a}, {i}, axis={axis}{modes}"


def _along(g: Draw) -> str:
    a = g.array(g.shape(1, 3))
    axis = g.random.randrange(g.of(a).ndim)
    shape = list(g.of(a).shape)
    shape[axis] = g.pick((0, 1, 2))
    i = g.array(shape, "int64")
    g.arrays[i] = g.of(i) % max(g.of(a).shape[axis], 1)
    return f"{a}, {i}, axis={axis}"


def _sorted(g: Draw) -> str:
    a = g.array(g.shape(1))
    stable = g.pick(("stable=True", "kind='stable'"))
    return f"{a}, axis={g.axis(g.of(a).ndim)}, {stable}"


def _searched(g: Draw) -> str:
    a = g.array(g.shape(1, 1))
    g.arrays[a] = np.sort(g.of(a))
    return f"{a}, {g.operand(g.shape())}" + g.keywords(side=lambda: PLAIN["side"](g))


def _dots(g: Draw) -> str:
    k, shape = g.pick((0, 1, 2, 4)), g.shape(0, 2)
    a = g.array((*shape, k))
    other = (k,) if g.chance(0.4) else (*g.shape(0, 1), k, g.pick((1, 2, 3)))
    return f"{a}, {g.array(other)}"


def _inner(g: Draw) -> str:
    k = g.pick((0, 1, 2, 4))
    return f"{g.array((*g.shape(0, 2), k))}, {g.array((*g.shape(0, 2), k))}"


def _tensordot(g: Draw) -> str:
    k, n = g.pick((1, 2, 3)), g.pick((0, 1, 3))
    axes = g.pick(("axes=2", "axes=([1, 2], [0, 1])", "axes=((-2, -1), (0, 1))", "axes=0"))
    return f"{g.array((2, k, n))}, {g.array((k, n, 3))}, {axes}"


def _einsum(g: Draw) -> str:
    text, *shapes = g.pick(
        (
            ("ij,jk->ik", "23", "34"),
            ("ij->ji", "23"),
            ("ij->", "23"),
            ("i,i->", "4", "4"),
            ("bij,bjk->bik", "223", "231"),
            ("ij,ij->i", "23", "23"),
            ("i,j->ij", "2", "3"),
            ("ij,j", "23", "3"),
            ("ijk->k", "231"),
            ("ij,jk,kl->il", "12", "23", "32"),
            ("ij,kj->", "03", "23"),
        )
    )
    arrays = [g.array([int(n) for n in shape]) for shape in shapes]
    return f"'{text}', {', '.join(arrays)}"


def _split(g: Draw) -> str:
    a = g.array(g.shape(1))
    axis = g.random.randrange(g.of(a).ndim)
    n = g.of(a).shape[axis]
    return f"{a}, {g.pick((1, max(n, 1), 2, [1], [0, 2], [1, -1]))}, axis={axis}"


def _padded(g: Draw) -> str:
    a = g.array(g.shape(1, 3))
    width = g.pick(("1", "0", "(1, 2)", str([(0, 1)] * g.of(a).ndim)))
    return f"{a}, {width}" + g.keywords(constant_values=lambda: g.pick(("0", "1", "-1", "2.5")))


def _clipped(g: Draw) -> str:
    a = g.array()
    low = "None" if g.chance(0.2) else g.operand(g.of(a).shape)
    high = "None" if g.chance(0.2) else g.operand(g.of(a).shape)
    return f"{a}, {low}, {high}"


def _chosen(g: Draw) -> str:
    shape = g.shape()
    condition = g.array(g.like(shape), "bool" if g.chance(0.7) else None)
    return f"{condition}, {g.operand(shape)}, {g.operand(shape)}"


def _arange(g: Draw) -> str:
    ends = ("0", "1", "5", "-3", "2.5", "-0.5", "7", "10.0")
    text = g.pick((g.pick(ends), f"{g.pick(ends)}, {g.pick(ends)}"))
    if "," in text and g.chance(0.5):
        text += f", {g.pick(('1', '2', '-1', '0.5', '0.3', '-0.7', '3'))}"
    return text + g.keywords(dtype=lambda: f"np.{g.pick(('int32', 'float32', 'float64', 'int8'))}")


def _linspace(g: Draw) -> str:
    ends = [g.scalar() if g.chance(0.6) else g.array(g.shape(0, 1)) for _ in range(2)]
    rest = g.keywords(num=lambda: PLAIN["num"](g), endpoint=lambda: PLAIN["endpoint"](g))
    return f"{ends[0]}, {ends[1]}{rest}"


def _new(g: Draw) -> str:
    return str(g.shape()) + g.keywords(dtype=g.some_dtype)


def _full(g: Draw) -> str:
    shape = g.shape()
    value = g.scalar() if g.chance(0.7) else g.array(g.like(shape))
    return f"{shape}, {value}" + g.keywords(dtype=g.some_dtype)


def _listed(g: Draw) -> str:
    a = g.array(g.shape(0, 2))
    return g.pick((a, f"[{a}, {a}]", g.scalar())) + g.keywords(dtype=g.some_dtype)


def _grids(g: Draw) -> str:
    arrays = ", ".join(g.array(g.shape(0, 1)) for _ in range(g.pick((1, 2, 3))))
    return arrays + g.keywords(indexing=lambda: PLAIN["indexing"](g), sparse=lambda: "True")


def _repeated(g: Draw) -> str:
    a = g.array()
    axis = g.axis(g.of(a).ndim)
    return f"{a}, {g.pick(('2', '0', '1', '3', '[2]'))}, axis={axis}"


def _tiled(g: Draw) -> str:
    return f"{g.array(g.shape(0, 3))}, {g.pick(('2', '(2, 1)', '(0,)', '(1, 2, 1)', '()'))}"


def _identity(g: Draw) -> str:
    return g.pick(("0", "1", "3")) + g.keywords(dtype=g.some_dtype)


def _eye(g: Draw) -> str:
    kwargs = {name: lambda name=name: PLAIN[name](g) for name in ("M", "k")}
    return g.pick(("0", "1", "3")) + g.keywords(**kwargs, dtype=g.some_dtype)


def _astype(g: Draw) -> str:
    g.tame = True
    return f"{g.array()}, {g.some_dtype()}"


def _greatest(g: Draw) -> str:
    a = g.array((*g.shape(0, 1), g.pick((1, 3, 5))))
    g.arrays[a] = np.nan_to_num(g.of(a))
    return f"{a}, {g.pick((0, 1, 1, 3))}"


SPECIAL: dict[str, Callable[[Draw], str]] = {
    "arange": _arange,
    "array": _listed,
    "asanyarray": _listed,
    "asarray": _listed,
    "ascontiguousarray": _listed,
    "astype": _astype,
    "broadcast_to": _broadcast_to,
    "clip": _clipped,
    "dot": _dots,
    "einsum": _einsum,
    "expand_dims": _expand_dims,
    "eye": _eye,
    "full": _full,
    "identity": _identity,
    "inner": _inner,
    "linspace": _linspace,
    "meshgrid": _grids,
    "moveaxis": _moved,
    "ones": _new,
    "pad": _padded,
    "repeat": _repeated,
    "reshape": _reshape,
    "roll": _rolled,
    "searchsorted": _searched,
    "argsort": _sorted,
    "split": _split,
    "swapaxes": _moved,
    "take": _taken,
    "take_along_axis": _along,
    "tensordot": _tensordot,
    "tile": _tiled,
    "top_k": _greatest,
    "transpose": _permuted,
    "where": _chosen,
    "zeros": _new,
    **FURTHER,
}
"""Functions whose arguments must fit together."""


def joined(g: Draw) -> Call:
    """Return a call that joins arrays."""
    name = g.pick(JOINING)
    shape = g.shape(0 if g.chance(0.1) else 1)
    arrays = ", ".join(g.array(shape) for _ in range(g.pick((1, 2, 2, 3))))
    axis = ""
    if name in ("concatenate", "stack", "concat") and g.chance(0.6):
        axis = f", axis={g.axis(len(shape), none=name != 'stack')}"
    return Call(f"r = m.{name}([{arrays}]{axis})", g.arrays, name, g.pick(("np", "snp")))
