"""A value of a traced function: it has a dtype and a shape, and no numbers yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any

import numpy as np

from stepwell.frontend.host_protocols import HostProtocols
from stepwell.runtime.device_arrays import DeviceArray


def _binary(ufunc: Any, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            if type(other) is complex:
                raise TypeError("complex numbers are not supported yet")
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        return Tensor.operators["ufunc"](ufunc, *operands)

    return operator


def _power(self: Tensor, other: Any) -> Any:
    """Return ``self ** other``; the square of booleans has dtype int8, as in NumPy."""
    if self.kind.kind == "bool" and self.shape and isinstance(other, int) and other == 2:
        return Tensor.operators["ufunc"](np.square, self)
    return _binary(np.power)(self, other)


def _unary(ufunc: Any) -> Callable[[Any], Any]:
    return lambda self: Tensor.operators["ufunc"](ufunc, self)


def _in_place(ufunc: Any) -> Callable[[Any, Any], Any]:
    """Return ``x op= y``: it writes to an array; for a number it returns a new number."""

    def operator(self: Tensor, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        value = Tensor.operators["ufunc"](ufunc, self, other)
        if not self.shape:
            self.changes_as_number()
            return value
        self.write(value, f"numpy.{ufunc.__name__}")
        return self

    return operator


class Partial:
    """A stand-in for a part of a traced value that is not itself a tensor."""

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Return the result of a function of NumPy."""
        return NotImplemented


def has_traced_bounds(index: Any) -> bool:
    """Whether a slice in an index has bounds known at run time only."""
    parts: tuple[Any, ...] = index if type(index) is tuple else (index,)
    return any(
        isinstance(bound, Tensor)
        for part in parts
        if isinstance(part, slice)
        for bound in (part.start, part.stop, part.step)
    )


class Tensor(HostProtocols):
    """A traced array: the stand-in for an array while a function is traced.

    Arithmetic, comparison, indexing, the usual methods and NumPy's functions write ops of `nd`.
    Operations that need the numbers (`bool`, `float`) raise `TraceError` at the user's line.

    A tensor can be written to, as an array can: from then on it stands for another value of the
    trace. A tensor with a `View` is a part of a base; it is read again after writes to the base.
    """

    __slots__ = ()
    __array_priority__ = 1000

    @property
    def T(self) -> Tensor:
        """The value with its axes in reverse order."""
        return self.operators["permute_dims"](self, tuple(reversed(range(self.ndim))))

    @property
    def flat(self) -> Tensor:
        """The elements in order, as a view with one axis."""
        return self.operators["reshape"](self, -1)

    @property
    def real(self) -> Tensor:
        """The value itself: complex numbers are not supported."""
        return self

    @property
    def mT(self) -> Tensor:
        """The transpose of the last two axes."""
        return self.operators["matrix_transpose"](self)

    def __copy__(self) -> Tensor:
        """Return a copy, as `copy.copy` of an array is."""
        return self.copy()

    def __deepcopy__(self, memory: dict[int, Any]) -> Tensor:
        found = memory[id(self)] = self.copy()
        return found

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a value without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("a value without axes has no elements to go through")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Tensor:
        return self.operators["getitem"](self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.operators["setitem"](self, index, value)

    def __delitem__(self, index: Any) -> None:
        raise ValueError("cannot delete array elements")

    def fill(self, value: Any) -> None:
        """Write a number to every element."""
        self.operators["setitem"](self, ..., value)

    @property
    def at(self) -> Any:
        """``x.at[index].set(v)``, also ``add``, ``multiply``, ``min``, ``max``: a changed copy."""
        return self.operators["at"](self)

    def __getattr__(self, name: str) -> Any:
        if (known := self.operators["known"](self, name)) is not None:
            return known
        if (function := self.operators["method"](name)) is not None:
            return MethodType(function, self)
        why = self.operators["attribute_refused"](name)
        raise AttributeError(f"a traced value has no attribute '{name}'{why}")

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<traced {self.kind.name}[{shape}] {self.name}>"

    def __str__(self) -> str:
        if (known := self.operators["content"](self)) is not None:
            return str(known)
        return format(self)

    def __format__(self, spec: str) -> str:
        if (known := self.operators["content"](self)) is not None:
            return format(known, spec)
        if self.graph.spelled is not None:
            return self.graph.spelled(self, spec)
        if self.graph.branches:  # it stands for many numbers
            self.refuse("number", "the number in a traced value is not known while tracing")
        return repr(self)

    def __hash__(self) -> int:
        """Return the hash of a known number: a dict or set finds a number by its value."""
        if self.graph.keys:
            return id(self)
        if self.shape:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        if (known := self.operators["content"](self)) is not None:
            return hash(known.item())
        self.refuse("key", "a dict or set finds a number by its value, which is not known")

    __add__ = _binary(np.add)
    __radd__ = _binary(np.add, reflected=True)
    __sub__ = _binary(np.subtract)
    __rsub__ = _binary(np.subtract, reflected=True)
    __mul__ = _binary(np.multiply)
    __rmul__ = _binary(np.multiply, reflected=True)
    __truediv__ = _binary(np.divide)
    __rtruediv__ = _binary(np.divide, reflected=True)
    __floordiv__ = _binary(np.floor_divide)
    __rfloordiv__ = _binary(np.floor_divide, reflected=True)
    __mod__ = _binary(np.remainder)
    __rmod__ = _binary(np.remainder, reflected=True)
    __pow__ = _power
    __rpow__ = _binary(np.power, reflected=True)
    __matmul__ = _binary(np.matmul)
    __rmatmul__ = _binary(np.matmul, reflected=True)
    __and__ = _binary(np.bitwise_and)
    __rand__ = _binary(np.bitwise_and, reflected=True)
    __or__ = _binary(np.bitwise_or)
    __ror__ = _binary(np.bitwise_or, reflected=True)
    __xor__ = _binary(np.bitwise_xor)
    __rxor__ = _binary(np.bitwise_xor, reflected=True)
    __lshift__ = _binary(np.left_shift)
    __rlshift__ = _binary(np.left_shift, reflected=True)
    __rshift__ = _binary(np.right_shift)
    __rrshift__ = _binary(np.right_shift, reflected=True)
    __eq__ = _binary(np.equal)
    __ne__ = _binary(np.not_equal)
    __lt__ = _binary(np.less)
    __le__ = _binary(np.less_equal)
    __gt__ = _binary(np.greater)
    __ge__ = _binary(np.greater_equal)
    __neg__ = _unary(np.negative)
    __pos__ = _unary(np.positive)
    __abs__ = _unary(np.absolute)
    __invert__ = _unary(np.invert)
    __iadd__ = _in_place(np.add)
    __isub__ = _in_place(np.subtract)
    __imul__ = _in_place(np.multiply)
    __itruediv__ = _in_place(np.divide)
    __ifloordiv__ = _in_place(np.floor_divide)
    __imod__ = _in_place(np.remainder)
    __ipow__ = _in_place(np.power)
    __imatmul__ = _in_place(np.matmul)
    __iand__ = _in_place(np.bitwise_and)
    __ior__ = _in_place(np.bitwise_or)
    __ixor__ = _in_place(np.bitwise_xor)
    __ilshift__ = _in_place(np.left_shift)
    __irshift__ = _in_place(np.right_shift)

    def __divmod__(self, other: Any) -> Any:
        return self.operators["ufunc"](np.divmod, self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return self.operators["ufunc"](np.divmod, other, self)

    def __round__(self, digits: int | None = None) -> Tensor:
        return self.operators["rounded"](self, digits)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Dispatch NumPy's functions to ours."""
        return self.operators["call_function"](func, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Dispatch NumPy's ufuncs to ours, also operators of an array and a traced value."""
        if any(hasattr(value, "mask") or hasattr(type(value), "filled") for value in inputs):
            return NotImplemented  # a masked part, x[mask], has its own operators
        return self.operators["call_ufunc"](ufunc, method, inputs, kwargs)


_OPERANDS = (Tensor, np.ndarray, np.generic, DeviceArray, int, float, list, tuple)
"""Types of operands that a traced value accepts in an operator."""
