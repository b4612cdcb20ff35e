"""Dtype promotion, and conversion of arrays and Python numbers to traced values.

NumPy 2 itself decides dtypes. A Python number takes the dtype of the array it meets. NumPy has no
bfloat16, and `sw.nn` and `sw.lax` follow JAX: there an integer with a float takes the float's
dtype (`narrow`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from stepwell.core.dtypes import DTYPES, DType, dtype_of, lacking
from stepwell.core.shapes import Shape, ShapeError, show
from stepwell.frontend.errors import TraceError
from stepwell.frontend.spelling import Verbatim, float_text
from stepwell.frontend.state.variables import Variable
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.widening import remark
from stepwell.runtime.device_arrays import DeviceArray

FLOAT = DTYPES["f64"]
"""The default float dtype, as in NumPy."""
SINGLE = DTYPES["f32"]
INTEGER = DTYPES["i64"]
"""The default integer dtype, as in NumPy."""
BOOL = DTYPES["i1"]
_OWN_NAMES = {n: d for n, d in DTYPES.items() if n not in ("i8", "i1", "f16")}
_OWN_NAMES["bfloat16"] = DTYPES["bf16"]
"""Names of dtypes that NumPy does not know, or uses in the same sense."""
_WEAK: dict[str, Any] = {"bool": np.dtype(bool), "signed": int, "float": float}
"""NumPy's counterpart of a traced value that is a Python number."""


def as_dtype(dtype: Any) -> DType:
    """Return the dtype of a NumPy dtype or its name, a Python type, or a name of ours.

    NumPy's meaning has precedence: ``"i8"`` has 8 bytes.

    >>> as_dtype("i8").name, as_dtype("ui8").name, as_dtype(np.int8).name
    ('i64', 'ui8', 'i8')
    """
    if isinstance(dtype, DType):
        return dtype
    if dtype is float or dtype is int or dtype is bool:
        return {float: FLOAT, int: INTEGER, bool: BOOL}[dtype]
    if isinstance(dtype, str) and dtype in _OWN_NAMES:
        return _OWN_NAMES[dtype]
    try:
        theirs = np.dtype(dtype)
    except TypeError:
        raise TypeError(_no_dtype(dtype)) from None
    if (found := dtype_of(theirs)) is None:
        raise TypeError(_no_dtype(dtype, theirs))
    return found


def _no_dtype(given: Any, theirs: Any = None) -> str:
    """Return a message that there is no such dtype, why, and the nearest one."""
    if theirs is not None:
        return f"no such dtype: {given!r}; {lacking(theirs)}"
    names = [d.numpy.name for d in DTYPES.values() if d.name != "bf16"] + ["bfloat16"]
    near = get_close_matches(given, names, 1) if isinstance(given, str) else []
    return f"no such dtype: {given!r}; " + (
        f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
    )


def narrow(a: DType, b: DType) -> DType:
    """Return the common dtype of ``a`` and ``b`` by JAX's rules: floats are not widened.

    >>> narrow(DTYPES["i32"], DTYPES["f16"]).name, narrow(DTYPES["i8"], DTYPES["ui8"]).name
    ('f16', 'i16')
    """
    if a is b or b.kind == "bool":
        return a
    if a.kind == "bool":
        return b
    if (a.kind == "float") != (b.kind == "float"):
        return a if a.kind == "float" else b
    if {a.name, b.name} == {"f16", "bf16"}:
        return SINGLE
    if a.kind == b.kind:
        return a if a.bytes >= b.bytes else b
    unsigned, signed = (a, b) if a.kind == "unsigned" else (b, a)
    if unsigned.bytes < signed.bytes:
        return signed
    if unsigned.bytes == 8:
        raise TypeError(f"no integer holds both {a.name} and {b.name}; convert one with astype")
    return DTYPES[f"i{16 * unsigned.bytes}"]


def kind_of(value: Any) -> Any:
    """Return NumPy's description of ``value``: a dtype, or the type of a weak number."""
    if isinstance(value, Tensor):
        return _WEAK[value.kind.kind] if value.weak else value.dtype
    if is_number(value):
        return np.dtype(bool) if isinstance(value, bool) else type(value)
    typed = isinstance(value, np.ndarray | np.generic | Variable | DeviceArray)
    dtype = value.dtype if typed else np.asarray(value).dtype
    if dtype.kind in "OUSVMm" and dtype_of(dtype) is None:  # bfloat16 is of kind V
        raise TypeError(f"expected an array or a number, got {_type_name(value, dtype)}")
    return dtype


def _type_name(value: Any, dtype: Any) -> str:
    return f"an array of {dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def common(*values: Any) -> DType:
    """Return the common dtype of ``values`` by NumPy's rules; numbers take that of arrays."""
    if has_bfloat16(values):
        found = [v.kind for v in values if isinstance(v, Tensor) and not v.weak]
        found += [ours(kind_of(v)) for v in values if not isinstance(v, Tensor | int | float)]
        kind = found[0]
        for other in found[1:]:
            kind = narrow(kind, other)
        return kind
    kinds = [kind_of(v) for v in values]
    return ours(np.result_type(*(k(0) if isinstance(k, type) else k for k in kinds)))


def ours(dtype: Any) -> DType:
    """Return NumPy's dtype as one of ours; TraceError if it is not supported."""
    if (found := dtype_of(np.dtype(dtype))) is None:
        raise TraceError(f"numpy gives {dtype} here, which Stepwell does not have")
    return found


def has_bfloat16(values: Any) -> bool:
    """Whether ``values`` include bfloat16, a dtype that NumPy does not know."""
    return any(getattr(getattr(v, "kind", None), "name", "") == "bf16" for v in values)


def is_number(x: Any) -> bool:
    """Whether ``x`` is a plain Python number, which has no dtype of its own."""
    return isinstance(x, bool | int | float) and not isinstance(x, np.generic)


def number_dtype(x: bool | int | float) -> DType:
    """Return the dtype of a Python number that meets no array."""
    if isinstance(x, bool):
        return BOOL
    return INTEGER if isinstance(x, int) else FLOAT


def lift(x: Any, dtype: DType | None = None) -> Tensor:
    """Return ``x``, a traced value, an array, a Python number or a list, as a traced value.

    dtype : the dtype of a Python number; arrays keep theirs
    """
    if isinstance(x, Tensor):
        x.graph.check(x)
        x.refresh()
        return x
    if is_number(x):
        return full((), x, dtype or number_dtype(x))
    if isinstance(x, np.ndarray | np.generic):
        return current_trace().constant(np.asarray(x))
    if isinstance(x, list | tuple):
        return _lift_sequence(x)
    if isinstance(x, Variable):
        return lift(x.now())
    if type(x) is DeviceArray:
        return current_trace().resident(x)
    if hasattr(x, "__array__"):
        return current_trace().constant(np.asarray(x))
    raise TypeError(f"expected an array or a number, got {type(x).__name__}")


def _lift_sequence(items: Sequence[Any]) -> Tensor:
    if has_traced(items):
        return Tensor.operators["asarray"](items)
    return current_trace().constant(np.asarray(items))


def has_traced(value: Any) -> bool:
    """Whether a nested list contains a traced value."""
    if isinstance(value, list | tuple):
        return any(map(has_traced, value))
    return isinstance(value, Tensor)


def full(shape: Shape, value: bool | int | float, dtype: DType) -> Tensor:
    """Return a tensor filled with a number."""
    if dtype.kind == "float":
        text = _special(float(value), dtype)
    elif dtype is BOOL:
        text = _integer(bool(value), dtype)
    elif isinstance(value, float) and not value.is_integer():
        raise TypeError(f"{value} is no {dtype.name}; convert with astype first")
    else:
        text = _integer(int(value), dtype)
    value_text = Verbatim(text)
    (result,) = current_trace().emit("full", (), [(dtype, shape)], (), value=value_text)
    return result


def _integer(value: int, dtype: DType) -> str:
    if dtype.kind == "bool":
        return "true" if value else "false"
    limits = np.iinfo(dtype.numpy)
    if not limits.min <= value <= limits.max:
        shown = f"{value}" if abs(value) < 10**30 else f"{float(value):.6g}"
        raise OverflowError(f"Python integer {shown} out of bounds for {dtype.numpy}")
    return f"{value} : {dtype.name}"


def _special(value: float, dtype: DType) -> str:
    """Return a float as text; infinities, NaN and too large numbers are spelled by their bits."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype.numpy)
    if np.isfinite(rounded):
        return f"{float_text(value)} : {dtype.name}"
    bits = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint32}[dtype.name]
    number = int(rounded.view(bits))
    number >>= 16 if dtype.name == "bf16" else 0
    return f"0x{number:0{2 * dtype.bytes}X} : {dtype.name}"


def check_castable(what: str, given: DType, wanted: DType) -> None:
    """Raise if a result may not be stored in an array of ``wanted``, a dtype of a lower kind."""
    order = ("bool", "unsigned", "signed", "float")
    if order.index(given.kind) > order.index(wanted.kind):
        raise TypeError(
            f"cannot cast the result of {what} from {given.name} to {wanted.name} as it is "
            "assigned in place; for a new array write x = x op y, or leave out= away"
        )


def stored_number(value: Any, kind: DType) -> Any:
    """Return a Python number as NumPy stores it in an array; raise if it does not fit."""
    if kind.kind == "float":
        return float(value)
    place = np.zeros((), kind.numpy)
    place[()] = value
    return place.item()


def wrapped_number(value: Any, kind: DType) -> Any:
    """Return a Python number as NumPy converts an array of it: integers wrap."""
    if kind.kind == "float" or (isinstance(value, int) and abs(value) >= 1 << 64):
        return stored_number(value, kind)
    with np.errstate(invalid="ignore"):
        return np.asarray(value).astype(kind.numpy).item()


def fresh(x: Tensor) -> Tensor:
    """Return a new value with the same elements, which does not alias ``x``."""
    x.refresh()
    copy = Tensor(x.graph, x.name, x.kind, x.shape, x.scope, x.created)
    copy.born = x.graph.scopes[-1]
    return copy


def cast(x: Tensor, dtype: DType) -> Tensor:
    """Return ``x`` converted to ``dtype``."""
    if x.kind is dtype:
        return x
    return x.graph.emit("cast", [x], [(dtype, x.shape)])[0]


def together(*values: Any, shape: Shape | None = None) -> list[Tensor]:
    """Return values with one dtype and one shape: promoted, converted and broadcast."""
    lifted = same_dtype(*values)
    try:
        common = np.broadcast_shapes(*(t.shape for t in lifted), *([shape] if shape else []))
    except ValueError:
        given = [*([shape] if shape else []), *(t.shape for t in lifted)]
        shapes = " and ".join(f"[{show(each)}]" for each in given)
        raise ShapeError(f"shapes {shapes} cannot be broadcast together") from None
    return [broadcast(t, common) for t in lifted]


def same_dtype(*values: Any) -> list[Tensor]:
    """Return values lifted and converted to their common dtype by NumPy's rules."""
    return _converted(values, common)


def same_narrow(*values: Any) -> list[Tensor]:
    """Return values lifted and converted to their common dtype by JAX's rules."""
    return _converted(values, _narrowest)


def _converted(values: Sequence[Any], rule: Callable[..., DType]) -> list[Tensor]:
    arrays = [v if is_number(v) else lift(v) for v in values]
    if not arrays:
        return []
    kinds = {v.kind if isinstance(v, Tensor) and not v.weak else None for v in arrays}
    kind = kinds.pop() if len(kinds) == 1 else None
    kind = rule(*arrays) if kind is None else kind
    if kind is FLOAT:
        remark(values)
    return [converted(v, kind) for v in arrays]


def converted(value: Any, kind: DType) -> Tensor:
    """Return a traced value, an array, a number or a list as a value of dtype ``kind``."""
    return cast(lift(value, kind), kind)


def _narrowest(*values: Any) -> DType:
    common: DType | None = None
    for v in values:
        if isinstance(v, Tensor) and not v.weak:
            common = v.kind if common is None else narrow(common, v.kind)
    for v in values:
        if not isinstance(v, Tensor) or v.weak:
            common = _meet(common, v)
    assert common is not None
    return common


def _meet(common: DType | None, number: Any) -> DType:
    """Return the dtype of arrays of ``common`` combined with a Python number."""
    own = number.kind if isinstance(number, Tensor) else number_dtype(number)
    if common is None:
        return SINGLE if own is FLOAT else own
    order = ("bool", "unsigned", "signed", "float")
    rank = max(order.index(common.kind), 1) if common.kind != "bool" else 0
    wants = {"bool": 0, "signed": 1, "float": 3}[own.kind]
    own = SINGLE if own is FLOAT else own
    return own if wants > rank and not (wants == 1 and rank == 2) else common


def broadcast(x: Tensor, shape: Shape) -> Tensor:
    """Return ``x`` broadcast to ``shape``, whose last axes are those of ``x``."""
    if x.shape == shape:
        return x
    dims = tuple(range(len(shape) - len(x.shape), len(shape)))
    return x.graph.emit("broadcast", [x], [(x.kind, shape)], (), dims=dims)[0]
