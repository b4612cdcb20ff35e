"""A value of a traced function: it has a dtype and a shape, and no numbers yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.names import instead

_HOW = {
    "bool": "use stepwell.lax.cond, or stepwell.numpy.where to choose element by element",
    "number": "keep it traced, or pass the value in static_argnames",
}


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor | np.ndarray | np.generic | int | float | list):
            return NotImplemented
        function = Tensor.operators[name]
        return function(other, self) if reflected else function(self, other)

    return operator


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: Tensor.operators[name](self)


class Tensor:
    """What stands for an array while a function is traced.

    Arithmetic, comparison, indexing and the usual methods write ops of `nd`. Anything that would
    need the numbers (`bool`, `float`, NumPy functions) raises `TraceError` at the user's line.
    """

    __slots__ = ("kind", "made", "name", "scope", "shape", "trace")
    __array_priority__ = 1000

    operators: ClassVar[dict[str, Callable[..., Any]]] = {}
    """The functions behind the operators and methods, filled by `frontend.operators`."""

    def __init__(
        self, trace: Any, name: str, kind: DType, shape: Shape, scope: int, made: str
    ) -> None:
        self.trace = trace
        self.name = name
        self.kind = kind
        self.shape = shape
        self.scope = scope
        """The region of the trace in which it is known, by number."""
        self.made = made
        """The user's line that made it."""

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

    __add__ = _binary("add")
    __radd__ = _binary("add", reflected=True)
    __sub__ = _binary("subtract")
    __rsub__ = _binary("subtract", reflected=True)
    __mul__ = _binary("multiply")
    __rmul__ = _binary("multiply", reflected=True)
    __truediv__ = _binary("divide")
    __rtruediv__ = _binary("divide", reflected=True)
    __floordiv__ = _binary("floor_divide")
    __rfloordiv__ = _binary("floor_divide", reflected=True)
    __mod__ = _binary("remainder")
    __rmod__ = _binary("remainder", reflected=True)
    __pow__ = _binary("pow")
    __rpow__ = _binary("pow", reflected=True)
    __matmul__ = _binary("matmul")
    __rmatmul__ = _binary("matmul", reflected=True)
    __and__ = _binary("bitwise_and")
    __rand__ = _binary("bitwise_and", reflected=True)
    __or__ = _binary("bitwise_or")
    __ror__ = _binary("bitwise_or", reflected=True)
    __xor__ = _binary("bitwise_xor")
    __rxor__ = _binary("bitwise_xor", reflected=True)
    __lshift__ = _binary("bitwise_left_shift")
    __rlshift__ = _binary("bitwise_left_shift", reflected=True)
    __rshift__ = _binary("bitwise_right_shift")
    __rrshift__ = _binary("bitwise_right_shift", reflected=True)
    __eq__ = _binary("equal")
    __ne__ = _binary("not_equal")
    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __abs__ = _unary("abs")
    __invert__ = _unary("bitwise_invert")
    __round__ = _unary("round")

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
        self.trace.check(self)
        why = "NumPy was called on a traced value, which has no numbers yet"
        raise TraceError(f"{why}: {self!r}; use the functions of stepwell.numpy")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        name = getattr(func, "__name__", "a function")
        self._refuse_numpy(name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let ``array + traced`` work as ``traced + array`` does; refuse calls of the ufunc."""
        name = ufunc.__name__
        operator = _UFUNC_OPERATORS.get(name)
        reflected = bool(inputs) and isinstance(inputs[0], np.generic | np.ndarray)
        if method == "__call__" and operator and not kwargs and reflected:
            return self.operators[operator](*inputs)
        self._refuse_numpy(name if method == "__call__" else f"{name}.{method}")

    def _refuse_numpy(self, name: str) -> NoReturn:
        self.trace.check(self)
        raise TraceError(f"numpy.{name} was called on a traced value: {self!r}; {instead(name)}")

    def _refuse(self, how: str, why: str) -> NoReturn:
        self.trace.check(self)
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
