"""A value of a traced function: it has a dtype and a shape, and no numbers yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib import import_module
from types import MethodType
from typing import Any, ClassVar, NamedTuple, NoReturn
from weakref import ReferenceType, ref

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.runtime.device_arrays import DeviceArray

_HOW = {
    "bool": "use stepwell.lax.cond, or stepwell.numpy.where to choose element by element",
    "memory": "return it from the function: results are NumPy arrays, which have it",
    "number": "keep it traced, or pass the value in static_argnames",
}


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


class View(NamedTuple):
    """The base that a value is a part of, and how the part is read and written."""

    base: Tensor
    read: Callable[[Tensor], Tensor]
    write: Callable[[Tensor, Tensor], None]
    """Writes the second value to the part's place in the first."""
    index: Any = None
    """The meaning of the index, for ``base[index]``."""
    whole: bool = False
    """Whether the part has all elements of ``base``, in order."""


class State(NamedTuple):
    """The fields of a value that change when it is written to or read again."""

    name: str
    scope: int
    made: str
    stamp: int
    seen: int


class Partial:
    """A stand-in for a part of a traced value that is not itself a tensor."""


def has_traced_bounds(index: Any) -> bool:
    """Whether a slice in an index has bounds known at run time only."""
    parts: tuple[Any, ...] = index if type(index) is tuple else (index,)
    return any(
        isinstance(bound, Tensor)
        for part in parts
        if isinstance(part, slice)
        for bound in (part.start, part.stop, part.step)
    )


class Tensor:
    """A traced array: the stand-in for an array while a function is traced.

    Arithmetic, comparison, indexing, the usual methods and NumPy's functions write ops of `nd`.
    Operations that need the numbers (`bool`, `float`) raise `TraceError` at the user's line.

    A tensor can be written to, as an array can: from then on it stands for another value of the
    trace. A tensor with a `View` is a part of a base; it is read again after writes to the base.
    """

    __slots__ = (
        "__weakref__",
        "cell",
        "graph",
        "kind",
        "made",
        "name",
        "part",
        "scope",
        "seen",
        "shape",
        "shared",
        "stamp",
        "weak",
    )
    __array_priority__ = 1000

    operators: ClassVar[dict[str, Callable[..., Any]]] = {}
    """The implementations of operators and methods, registered by `frontend.operators`."""

    def __init__(
        self, trace: Any, name: str, kind: DType, shape: Shape, scope: int, made: str
    ) -> None:
        self.graph = trace
        """The `Trace` of the tensor; not named ``trace``: ``x.trace()`` is NumPy's method."""
        self.name = name
        self.kind = kind
        self.shape = shape
        self.scope = scope
        """The number of the region that defines the value."""
        self.made = made
        """The user's line that made it."""
        self.weak = False
        """Whether it is a Python number, which takes the dtype of the arrays it meets."""
        self.cell: bool | None = None
        """For an argument without axes, whether it is an array (not a number)."""
        self.part: View | None = None
        self.stamp = 0
        """The tick of the last write: grows with each."""
        self.seen = 0
        """The stamp of the base when this part was read."""
        self.shared: list[ReferenceType[Tensor]] = []
        """Tensors that may alias this one: whether they do is not known while tracing."""

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
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.kind.bytes

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.kind.bytes * self.size

    @property
    def state(self) -> State:
        """The fields that change when the tensor is written to or read again."""
        return State(self.name, self.scope, self.made, self.stamp, self.seen)

    @state.setter
    def state(self, state: State) -> None:
        self.name, self.scope, self.made, self.stamp, self.seen = state

    def become(self, value: Tensor) -> None:
        """Stand for ``value``, of the same type, from now on; parts of it are read again."""
        for other in self.shared:
            if (alive := other()) is not None:
                raise TraceError(
                    f"an array was assigned to that may lie in the same memory as another, made at "
                    f"{alive.made}; where it is a copy of that one, say so: x.reshape(...).copy()"
                )
        self.graph.changes(self, written=True)
        self.name, self.scope, self.made = value.name, value.scope, value.made
        self.stamp = self.graph.tick()

    def changes_as_number(self) -> None:
        """Refuse ``x += 1`` if the argument is an array without axes; allow it for numbers."""
        if self.cell:
            raise TraceError(
                f"{self!r} is an array without axes, which is a number here: x += 1 would not "
                "reach the caller's array; write x = x + 1, or pass an array of shape (1,)"
            )
        self.graph.apart |= self.cell is not None and not self.weak

    def write(self, value: Any, what: str = "") -> None:
        """Write ``value`` to all elements, and to the base if this is a view."""
        self.operators["write"](self, value, what)

    def refresh(self) -> None:
        """Read a view again if its base was written to since."""
        if self.part is None:
            return
        base = self.part.base
        base.refresh()
        if self.seen != base.stamp:
            again = self.part.read(base)
            self.graph.changes(self)
            self.name, self.scope, self.made = again.name, again.scope, again.made
            self.stamp, self.seen = self.graph.tick(), base.stamp

    def part_of(
        self,
        base: Tensor,
        read: Callable[[Tensor], Tensor],
        write: Callable[[Tensor, Tensor], None],
        index: Any = None,
        whole: bool = False,
    ) -> Tensor:
        """Make this tensor a view of ``base`` and return it; numbers are no views, as in NumPy."""
        if self is not base and self.shape:
            self.part, self.seen = View(base, read, write, index, whole), base.stamp
        return self

    def may_share(self, other: Tensor) -> Tensor:
        """Record that this tensor may alias ``other`` and its bases; return it."""
        if self is not other and self.shape:
            while True:
                self.shared.append(ref(other))
                other.shared.append(ref(self))
                if other.part is None:
                    return self
                other = other.part.base
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
        self._known()
        return repr(self)

    def __hash__(self) -> int:
        self._known()
        return id(self)

    def _known(self) -> None:
        """Refuse to format or hash a value in a traced branch: it stands for many numbers."""
        if self.graph.branches:
            self._refuse("number", "the number in a traced value is not known while tracing")

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

    def __bool__(self) -> bool:
        if (known := self.operators["content"](self)) is not None:
            return bool(known)
        untraced = self.operators["why_as_it_is"]()
        self._refuse("bool", "whether a traced value is true is not known while tracing", untraced)

    def __float__(self) -> float:
        if (known := self.operators["content"](self)) is not None:
            return float(known)
        self._refuse("number", "the number in a traced value is not known while tracing")

    def __int__(self) -> int:
        if (known := self.operators["content"](self)) is not None:
            return int(known)
        self._refuse("number", "the number in a traced value is not known while tracing")

    def __index__(self) -> int:
        if self.graph.is_subscript():
            self.graph.check(self)
            raise TraceError(
                f"a list, tuple or array that is no traced value was indexed by one: {self!r}; "
                "index stepwell.numpy.asarray(...) of it, or stepwell.numpy.stack(...), "
                "or pass the index in static_argnames"
            )
        self._refuse("number", "the number in a traced value is not known while tracing")

    def __complex__(self) -> complex:
        self._refuse("number", "the number in a traced value is not known while tracing")

    def item(self, *index: Any) -> Any:
        """Return an element of a known value; raise otherwise: there is no number yet."""
        if (known := self.operators["content"](self)) is not None:
            return known.item(*index)
        self._refuse("number", "the number in a traced value is not known while tracing")

    def tolist(self) -> Any:
        """Return the elements of a known value; raise otherwise: there are no numbers yet."""
        if (known := self.operators["content"](self)) is not None:
            return known.tolist()
        self._refuse("number", "the numbers in a traced value are not known while tracing")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if (known := self.operators["content"](self)) is not None:
            return np.array(known, dtype) if copy or dtype else known
        self.graph.check(self)
        if self.graph.is_subscript():
            raise TraceError(
                f"an array that is no traced value was indexed by one: {self!r}; "
                "index stepwell.numpy.asarray(array), or write with its .at[index].set(value)"
            )
        why = "NumPy was called on a traced value, which has no numbers yet"
        raise TraceError(f"{why}: {self!r}; use numpy.copy for a copy, numpy.stack to join values")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return `stepwell.numpy`, as the array API standard asks."""
        return import_module("stepwell.frontend.array_api").namespace(api_version)

    @property
    def device(self) -> str:
        """The device of the arrays."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Tensor:
        """Return the tensor itself: there is one device."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"Unsupported device: {device!r}; arrays lie on 'cpu'")
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the arrays, in DLPack's numbering."""
        return 1, 0

    def __dlpack__(self, **_: Any) -> NoReturn:
        self._refuse("memory", "a traced value has no memory yet that could be handed on")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Dispatch NumPy's functions to ours."""
        return self.operators["call_function"](func, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Dispatch NumPy's ufuncs to ours, also operators of an array and a traced value."""
        if any(hasattr(value, "mask") or hasattr(type(value), "filled") for value in inputs):
            return NotImplemented  # a masked part, x[mask], has its own operators
        return self.operators["call_ufunc"](ufunc, method, inputs, kwargs)

    def _refuse(self, how: str, why: str, more: str = "") -> NoReturn:
        self.graph.check(self)
        raise TraceError(f"{why}: {self!r}; {more}{_HOW[how]}")


_OPERANDS = (Tensor, np.ndarray, np.generic, DeviceArray, int, float, list, tuple)
"""Types of operands that a traced value accepts in an operator."""
