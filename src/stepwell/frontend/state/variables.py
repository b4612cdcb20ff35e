"""`sw.Variable`: an array with a fixed place that compiled code updates in place (note 060).

In a trace a `TracedVariable` stands for it, which can also be assigned to as a whole. It is an
argument of the program, passed or captured (`captures`); its new content is a result ``nd.into``.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from stepwell.core.dtypes import dtype_of, lacking
from stepwell.core.shapes import show
from stepwell.frontend.errors import TraceError
from stepwell.frontend.pytree import OF_RESULTS, Branch, Node
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace
from stepwell.runtime.extension import know_variables

_KINDS = ("bool", "unsigned", "signed", "float")
"""Kinds of dtypes; each may be assigned to itself and to the kinds after it."""

_owners: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""The variables by the `id` of their arrays, which live at least as long."""


class _Kind(ABCMeta):
    """Lets `isinstance` accept a `TracedVariable` as a variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) in (cls, TracedVariable)


class _Read:
    """Python's ways to read an array, for an object whose array is ``self.now()``."""

    __slots__ = ()
    now: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(self.now())

    def __len__(self) -> int:
        return len(self.now())

    def __bool__(self) -> bool:
        return bool(self.now())

    def __float__(self) -> float:
        return float(self.now())

    def __int__(self) -> int:
        return int(self.now())

    def __index__(self) -> int:
        return self.now().__index__()

    def __contains__(self, value: Any) -> bool:
        return value in self.now()

    def __format__(self, spec: str) -> str:
        return format(self.now(), spec)


class Variable(_Read, NDArrayOperatorsMixin, metaclass=_Kind):
    """An array of one dtype and shape that persists between calls and is updated in place.

    value : an array or a number; the initial content is a copy of it
    dtype : the dtype, if another than that of ``value``
    name : the name in messages
    raises TypeError : the dtype is not supported
    raises TraceError : the variable is created in a function that is being traced

    It can be read like an array, inside and outside of functions given to `sw.jit`. A function may
    take it as an argument, also in containers, or capture it: as a global, an attribute or an item.
    In both cases ``v[...] = x``, ``v += x`` and ``v.assign(x)`` change it; a compiled program works
    in its memory and makes no copy. `apply_updates` of `sw.optim` updates variables in place.

    For the functions of `sw.tree` it is a leaf. Gradients by variables are arrays. A copy
    (`copy.deepcopy`, `pickle`) has its own memory. A function given to `sw.grad`, `sw.vmap` or to
    the functions of `sw.lax` may not assign to it.

    >>> import numpy as np, stepwell as sw
    >>> count, w = sw.Variable(0), sw.Variable(np.ones(3, np.float32), name="w")
    >>> @sw.jit
    ... def step(rate):
    ...     count.assign_add(1)
    ...     w[...] -= rate * w
    ...     return np.sum(w)
    >>> step(0.5), step(0.5)
    (array(1.5, dtype=float32), array(0.75, dtype=float32))
    >>> count, w
    (Variable(2), Variable([0.25, 0.25, 0.25], dtype=float32, name='w'))
    """

    __slots__ = ("__weakref__", "_array", "name")
    __hash__: Any = None
    _array: NDArray[Any]

    def __init__(self, value: Any, dtype: Any = None, *, name: str = "") -> None:
        if isinstance(value, Tensor) or active_trace() is not None:
            raise TraceError(
                "a Variable is made while a function is traced, which happens once and not at each "
                "call; make it before the call, and pass it or let the function read it"
            )
        if dtype == "bfloat16":
            import_module("ml_dtypes")  # registers the dtype with NumPy
        given = np.asarray(value, dtype)
        kind = dtype_of(given.dtype.newbyteorder("="))
        if kind is None:
            raise TypeError(f"a Variable cannot be of dtype {given.dtype}: {lacking(given.dtype)}")
        self._array = np.array(given, given.dtype.newbyteorder("="), order="C")
        self.name = name
        _owners[id(self._array)] = self

    # ---- attributes ----

    @property
    def value(self) -> Any:
        """The array itself, which changes with the variable; ``v.copy()`` is independent of it.

        Assigning to it is the same as `assign`.
        """
        return self.now()

    @value.setter
    def value(self, value: Any) -> None:
        self.assign(value)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    def now(self, writing: bool = False) -> Any:
        """Return the array, or the `TracedVariable` in the trace that this thread is writing.

        writing : whether it will be assigned to
        """
        trace = active_trace()
        if trace is None:
            return self._array
        if trace.captures is not None:
            return trace.captures.variable(self)
        if trace.standing is not None:
            return trace.standing.now(self, writing)
        if writing:
            raise TraceError(
                f"{called(self.name)} is a constant of a trace that stands alone, and is assigned "
                "to; pass it as an argument of the function"
            )
        return self._array

    # ---- assignment ----

    def assign(self, value: Any) -> Any:
        """Set the content to ``value``; return the variable.

        value : an array of its shape, whose dtype is not of a higher kind (an integer variable
            takes no floats); to set all elements to one number write ``v[...] = number``
        raises ValueError, TypeError : the shape differs, or the dtype is of a higher kind

        >>> import numpy as np, stepwell as sw
        >>> sw.Variable(np.zeros(2)).assign([1, 2])
        Variable([1., 2.])
        """
        now = self.now(writing=True)
        if isinstance(now, Tensor):
            now.assign(value)
            return self
        given = np.asarray(plain(value))
        check_assigned(self, given.shape, given.dtype, isinstance(value, int | float))
        np.copyto(self._array, given, casting="unsafe")
        return self

    def assign_add(self, value: Any) -> Any:
        """Add ``value``, broadcast to its shape, and return the variable: ``v += value``.

        >>> import stepwell as sw
        >>> sw.Variable(1.5).assign_add(2)
        Variable(3.5)
        """
        self += value
        return self

    def assign_sub(self, value: Any) -> Any:
        """Subtract ``value``, broadcast to its shape, and return the variable: ``v -= value``.

        >>> import stepwell as sw
        >>> sw.Variable(1.5).assign_sub(2)
        Variable(-0.5)
        """
        self -= value
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        now = self.now(writing=True)
        now[plain(index)] = plain(value)

    # ---- the array protocol ----

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        now = self.now()
        if isinstance(now, Tensor):
            return now.__array__(dtype, copy)
        return np.array(now, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute with the array; ``out=v`` writes to the variable."""
        targets = kwargs.pop("out", ())
        if targets:
            kwargs["out"] = tuple(t.now(True) if type(t) is Variable else t for t in targets)
        found = getattr(ufunc, method)(*map(plain, inputs), **kwargs)
        if len(targets) == 1 and type(targets[0]) is Variable:
            return targets[0]
        return found

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call NumPy's function with the array."""
        return function(*plain(args), **plain(kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'Variable' object has no attribute '{name}'")
        return getattr(self.now(), name)

    def __getitem__(self, index: Any) -> Any:
        return self.now()[plain(index)]

    def __repr__(self) -> str:
        """Return its text in the style of an array's."""
        head, name = "Variable(", f", name={self.name!r}" if self.name else ""
        dtype = "" if self.dtype.name in ("float64", "int64", "bool") else f", dtype={self.dtype}"
        return head + np.array2string(self._array, separator=", ", prefix=head) + dtype + name + ")"

    # ---- copies ----

    def __copy__(self) -> Variable:
        return Variable(self._array, name=self.name)

    def __deepcopy__(self, memory: dict[int, Any]) -> Variable:
        found = memory[id(self)] = Variable(self._array, name=self.name)
        return found

    def __reduce__(self) -> Any:
        return _made, (self._array, self.name)


def _made(array: Any, name: str) -> Variable:
    """Return a variable, for `pickle`."""
    return Variable(array, name=name)


def owner(array: Any) -> Any:
    """Return the variable that owns ``array``; ``array`` itself if there is none."""
    return _owners.get(id(array), array)


OF_RESULTS[Variable] = owner
A_VARIABLE = Branch(Node(Variable), None, (...,))
"""The tree of a result that is one of the variables passed to the call."""


know_variables(Variable, "_array")


def array_of(variable: Variable) -> NDArray[Any]:
    """Return the array of a variable, also while tracing."""
    return variable._array  # pyright: ignore[reportPrivateUsage]


def called(name: str) -> str:
    """Return a variable's name in messages."""
    return f"the variable '{name}'" if name else "a variable"


def plain(value: Any) -> Any:
    """Return ``value`` with variables replaced by their arrays, or their traced variables."""
    if type(value) is Variable:
        return value.now()
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {key: plain(each) for key, each in value.items()}
    return value


def check_assigned(variable: Any, shape: Any, dtype: Any, number: bool) -> None:
    """Refuse a value of a wrong shape or dtype for `assign`."""
    name = called(variable.name)
    if shape != variable.shape:
        raise ValueError(
            f"{name} has shape [{show(variable.shape)}] and is assigned an array of shape "
            f"[{show(shape)}]; write v[...] = x to repeat x along axes"
        )
    given, wanted = dtype_of(dtype.newbyteorder("=")), dtype_of(variable.dtype)
    if given is None or wanted is None:
        raise TypeError(f"{name} is assigned an array of dtype {dtype}: {lacking(dtype)}")
    if _KINDS.index(given.kind) > _KINDS.index(wanted.kind) or (number and given.kind == "bool"):
        raise TypeError(
            f"{name} has dtype {variable.dtype} and is assigned {dtype}; convert what is "
            f"assigned: x.astype(np.{variable.dtype})"
        )


def _updating(ufunc: Any) -> Callable[[Any, Any], Any]:
    """Return ``x op= y``, which writes to the variable, also if it has no axes."""

    def operator(self: TracedVariable, other: Any) -> Any:
        value = Tensor.operators["ufunc"](ufunc, self, plain(other))
        self.write(value, f"numpy.{ufunc.__name__}")
        return self

    return operator


class TracedVariable(Tensor):
    """A variable in a trace: both a variable and a traced value."""

    __slots__ = ("called",)
    called: str
    """The name in messages."""

    @property
    def value(self) -> Tensor:
        """The traced value."""
        return self

    @value.setter
    def value(self, value: Any) -> None:
        self.assign(value)

    def assign(self, value: Any) -> Any:
        """Set the content to ``value``."""
        given = Tensor.operators["asarray"](value)
        what = _Named(self.called, self.shape, self.dtype)
        check_assigned(what, given.shape, given.dtype, False)
        self.write(given, "assign")
        return self

    def assign_add(self, value: Any) -> Any:
        """Add ``value``."""
        self += value
        return self

    def assign_sub(self, value: Any) -> Any:
        """Subtract ``value``."""
        self -= value
        return self

    def changes_as_number(self) -> None:
        """Do nothing: a variable without axes is not a number."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.shape:
            self.operators["setitem"](self, index, plain(value))
        elif index is ... or index == ():
            self.operators["write_whole"](self, self.operators["fitting"](plain(value), self, ()))
        else:
            raise IndexError("too many indices: the variable has no axes")

    __iadd__ = _updating(np.add)
    __isub__ = _updating(np.subtract)
    __imul__ = _updating(np.multiply)
    __itruediv__ = _updating(np.divide)
    __ifloordiv__ = _updating(np.floor_divide)
    __imod__ = _updating(np.remainder)
    __ipow__ = _updating(np.power)
    __imatmul__ = _updating(np.matmul)
    __iand__ = _updating(np.bitwise_and)
    __ior__ = _updating(np.bitwise_or)
    __ixor__ = _updating(np.bitwise_xor)
    __ilshift__ = _updating(np.left_shift)
    __irshift__ = _updating(np.right_shift)


class _Named:
    """A traced variable's name, shape and dtype, for messages."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.name, self.shape, self.dtype = name, shape, dtype
