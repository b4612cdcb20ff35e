"""A value of a traced function: it has a dtype and a shape, and no numbers yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError

_HOW = {
    "bool": "use stepwell.lax.cond, or stepwell.numpy.where to choose element by element",
    "number": "keep it traced, or pass the value in static_argnames",
    "numpy": "use the function of the same name in stepwell.numpy",
}


class Tensor:
    """What stands for an array while a function is traced.

    Arithmetic, comparison, indexing and the usual methods write ops of `nd`. Anything that would
    need the numbers (`bool`, `float`, NumPy functions) raises `TraceError` at the user's line.
    """

    __slots__ = ("kind", "name", "shape", "trace")
    __array_priority__ = 1000

    operators: ClassVar[dict[str, Callable[..., Any]]] = {}
    """The functions behind the operators and methods, filled by `frontend.operators`."""

    def __init__(self, trace: Any, name: str, kind: DType, shape: Shape) -> None:
        self.trace = trace
        self.name = name
        self.kind = kind
        self.shape = shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements (that of `ml_dtypes` for bfloat16)."""
        if self.kind.name == "bf16":
            return np.dtype("bfloat16")  # known to NumPy once ml_dtypes is imported
        return self.kind.numpy

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise TraceError(f".T needs two axes, got {self.ndim}; use permute_dims")
        return self.operators["permute_dims"](self, (1, 0))

    @property
    def mT(self) -> Tensor:
        """The transpose of the last two axes."""
        return self.operators["matrix_transpose"](self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a value without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Tensor:
        return self.operators["getitem"](self, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TraceError(
            "a traced value cannot be written to; "
            "use x.at[index].set(value), which returns the changed array"
        )

    @property
    def at(self) -> Any:
        """``x.at[index].set(v)``, also ``add``, ``multiply``, ``min``, ``max``: a changed copy."""
        return self.operators["at"](self)

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            function = self.operators[name]
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        raise AttributeError(f"a traced value has no attribute '{name}'")

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<traced {self.kind.name}[{shape}] {self.name}>"

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        self._refuse("bool", "whether a traced value is true is not known while tracing")

    def __float__(self) -> float:
        self._refuse("number", "the number in a traced value is not known while tracing")

    def __int__(self) -> int:
        self._refuse("number", "the number in a traced value is not known while tracing")

    def __index__(self) -> int:
        self._refuse("number", "the number in a traced value is not known while tracing")

    def __complex__(self) -> complex:
        self._refuse("number", "the number in a traced value is not known while tracing")

    def item(self) -> NoReturn:
        """Raise: there is no number yet."""
        self._refuse("number", "the number in a traced value is not known while tracing")

    def tolist(self) -> NoReturn:
        """Raise: there are no numbers yet."""
        self._refuse("number", "the numbers in a traced value are not known while tracing")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._refuse("numpy", "NumPy was called on a traced value, which has no numbers yet")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        name = getattr(func, "__name__", "a function")
        self._refuse("numpy", f"numpy.{name} was called on a traced value")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let ``array + traced`` work as ``traced + array`` does; refuse calls of the ufunc."""
        name = ufunc.__name__
        operator = _UFUNC_OPERATORS.get(name)
        reflected = bool(inputs) and isinstance(inputs[0], np.generic | np.ndarray)
        if method == "__call__" and operator and not kwargs and reflected:
            return self.operators[operator](*inputs)
        self._refuse("numpy", f"numpy.{name} was called on a traced value")

    def _refuse(self, how: str, why: str) -> NoReturn:
        raise TraceError(f"{why}: {self!r}; {_HOW[how]}")


_METHODS = frozenset(
    (
        *("all", "any", "argmax", "argmin", "astype", "clip", "cumsum", "cumprod", "flatten"),
        *("max", "mean", "min", "prod", "ravel", "reshape", "round", "squeeze", "std", "sum"),
        *("swapaxes", "transpose", "var"),
    )
)

_UFUNC_OPERATORS = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "floor_divide": "floor_divide",
    "remainder": "remainder",
    "power": "pow",
    "matmul": "matmul",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}


def _binary(name: str, reflected: bool = False) -> Callable[[Tensor, Any], Any]:
    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor | np.ndarray | np.generic | int | float | list):
            return NotImplemented
        function = Tensor.operators[name]
        return function(other, self) if reflected else function(self, other)

    return operator


def _unary(name: str) -> Callable[[Tensor], Any]:
    return lambda self: Tensor.operators[name](self)


for _python, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}.items():
    setattr(Tensor, f"__{_python}__", _binary(_name))
    setattr(Tensor, f"__r{_python}__", _binary(_name, reflected=True))

for _python, _name in {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}.items():
    setattr(Tensor, f"__{_python}__", _binary(_name))

for _python, _name in {
    "neg": "negative",
    "pos": "positive",
    "abs": "abs",
    "invert": "bitwise_invert",
    "round": "round",
}.items():
    setattr(Tensor, f"__{_python}__", _unary(_name))
