"""A flattened call of a jitted function: the key that selects its program, and its arrays."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from stepwell.core.dtypes import DType, dtype_of
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, is_number, lift, number_dtype
from stepwell.frontend.pytree import Branch, Tree, count, dispatched, flatten, paths, with_leaves
from stepwell.frontend.specs import Dim, ShapeDtypeStruct
from stepwell.frontend.state.variables import Variable, array_of
from stepwell.frontend.statics import guard_of, is_constant, is_final, key_of, typed
from stepwell.frontend.table import LEFT
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace
from stepwell.runtime.device_arrays import DeviceArray


@dataclass(frozen=True)
class Argument:
    """One array argument of a program: its path in the user's arguments, its dtype and shape."""

    path: str
    kind: DType
    shape: Shape
    weak: bool = False
    """Whether the argument is a Python number, which adopts the dtype of the arrays it meets."""
    cell: bool = False
    """Whether the argument is a zero-dimensional array, as opposed to a number."""
    variable: bool = False
    """Whether the argument is a `Variable`, which can be assigned to as a whole."""


@dataclass(frozen=True)
class Call:
    """A flattened call: the key that selects its program, and its arrays."""

    key: tuple[Any, Any, Any]
    """Hashable: static arguments (by class and bits), tree structures, and types of arrays."""
    static: Mapping[str, Any]
    trees: tuple[tuple[str, Tree], ...]
    arguments: tuple[Argument, ...]
    leaves: tuple[Any, ...]


Spelling: TypeAlias = tuple[
    tuple[str, ...], tuple[tuple[int, Any], ...], tuple[tuple[int, Any], ...]
]
"""How a call was written (keywords, slots, constants), as `Dispatcher.add` takes it."""


def take_apart(bound: inspect.BoundArguments, names: Collection[str]) -> Call:
    """Flatten the ``bound`` arguments of a function, of which ``names`` are static."""
    static: dict[str, Any] = {}
    fixed: list[tuple[str, Any]] = []
    trees: list[tuple[str, Tree]] = []
    arguments: list[Argument] = []
    leaves: list[Any] = []
    for name, value in bound.arguments.items():
        if name in names:
            static[name] = value
            given = bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
            for each in value.values() if given else (value,):
                _check_hashable(name, each)
            fixed.append((name, key_of(value)))
            continue
        found, tree = flatten(value)
        trees.append((name, tree))
        for path, leaf in zip(paths(tree, name), found, strict=True):
            array, argument = argument_of(path, leaf)
            leaves.append(array)
            arguments.append(argument)
    structures = tuple((name, typed(tree)) for name, tree in trees)
    key = (tuple(fixed), structures, tuple(arguments))
    return Call(key, static, tuple(trees), tuple(arguments), tuple(leaves))


def constant_defaults(signature: inspect.Signature) -> frozenset[str]:
    """Return the arguments that are static when a call omits them, because of their defaults.

    These are all but arrays and mutable objects; a default without leaves, as None, is static
    anyway.
    """
    defaults = {n: p.default for n, p in signature.parameters.items() if p.default is not p.empty}
    return frozenset(n for n, v in defaults.items() if is_constant(v) and flatten(v)[0])


MOST_AXES = 32
"""Maximum rank of an array: NumPy's broadcasting functions do not all support more axes."""
_OTHERWISE = {
    "numpy.MaskedArray": "its data and its mask, or x.filled(value)",
    "numpy.matrix": "numpy.asarray(x)",
    "pandas": "x.to_numpy()",
    "polars": "x.to_numpy()",
    "xarray": "x.to_numpy()",
    "astropy": "x.value",
    "pint": "x.magnitude",
}
"""What to pass instead of array-likes whose operators mean more than NumPy's (labels, units,
masks), by the package, or the package and the class."""

_NO_DATA = (
    *(str, bytes, type, FunctionType, BuiltinFunctionType),
    *(type(np.max), np.ufunc, type(LEFT)),
)


def is_no_data(value: Any) -> bool:
    """Whether an argument can only be static: text, a function, a class, a dtype."""
    other = isinstance(value, np.dtype | Enum) and not isinstance(value, int | float)
    return other or isinstance(value, _NO_DATA)


def _check_hashable(name: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"the static argument '{name}' must be hashable: {error}; {_instead(value)}"
        ) from None


def _instead(value: Any) -> str:
    """Advise a hashable static argument in place of a mutable ``value``."""
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        return "an array is data: do not name it in static_argnames"
    if isinstance(value, list):
        return "pass a tuple"
    if isinstance(value, set):
        return "pass a frozenset"
    return "pass a tuple, a NamedTuple or an object of a frozen dataclass"


def has_traced(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether any of the arguments is a traced value."""
    try:
        leaves, _ = flatten((*args, *kwargs.values()))
    except RecursionError:  # a recursive object, as static arguments may be
        return False
    kinds = Tensor if active_trace() is None else Tensor | Variable
    return any(isinstance(leaf, kinds) for leaf in leaves)


def argument_of(path: str, leaf: Any) -> tuple[Any, Argument]:
    """Return a leaf as an array of a supported dtype, and its type as an argument."""
    if isinstance(leaf, Tensor):
        leaf.graph.check(leaf)
        raise TraceError(f"argument '{path}' is a traced value, which has no numbers yet: {leaf!r}")
    if isinstance(leaf, Variable):
        array = array_of(leaf)
        return array, Argument(path, as_dtype(array.dtype), array.shape, variable=True)
    if is_number(leaf):
        kind = as_dtype("f64") if isinstance(leaf, float) else number_dtype(leaf)
        try:
            return np.asarray(leaf, kind.numpy), Argument(path, kind, (), weak=True)
        except OverflowError:
            raise OverflowError(
                f"argument '{path}': a Python integer is an int64 here; pass it as a float, or in "
                "static_argnames"
            ) from None
    if isinstance(leaf, ShapeDtypeStruct):
        kind = dtype_of(leaf.dtype)
        if kind is None:
            raise TypeError(f"argument '{path}': arrays of dtype {leaf.dtype} are not supported")
        if any(isinstance(size, Dim) for size in leaf.shape):
            raise TypeError(
                f"argument '{path}' has a named size, {leaf!r}: give numbers here, and names to "
                "sw.jit(input_signature=...)"
            )
        return leaf, Argument(path, kind, leaf.shape)
    if not isinstance(leaf, np.ndarray | np.generic) and not hasattr(leaf, "__array__"):
        raise TypeError(
            f"argument '{path}': expected an array or a number, got {type(leaf).__name__}; "
            + _advice(path, leaf)
        )
    # a device array has a dtype and shape, and stays on its device
    array: Any = leaf if type(leaf) is DeviceArray else np.asarray(leaf)
    kind = dtype_of(array.dtype.newbyteorder("="))
    if kind is None:
        raise TypeError(f"argument '{path}': arrays of dtype {array.dtype} are not supported")
    _check_array(path, type(leaf), array.ndim)
    cell = isinstance(leaf, np.ndarray) and not leaf.shape
    return array, Argument(path, kind, array.shape, cell=cell)


def _check_array(path: str, kind: type, axes: int) -> None:
    """Refuse too many axes, and array classes whose operators differ from NumPy's arrays."""
    if axes > MOST_AXES:
        raise TypeError(f"argument '{path}' has {axes} axes, and at most {MOST_AXES} may be")
    for each in () if kind is np.ndarray else kind.__mro__:
        package = each.__module__.partition(".")[0]
        instead = _OTHERWISE.get(f"{package}.{each.__name__}") or _OTHERWISE.get(package)
        if instead is not None:
            raise TypeError(
                f"argument '{path}': a {each.__name__} computes otherwise than an array; "
                f"pass {instead}"
            )


def lifted(path: str, leaf: Any) -> Any:
    """Return a leaf as an inlined function gets it: arrays as traced values."""
    if isinstance(leaf, Tensor | np.number | np.bool_) or is_number(leaf):
        return leaf
    if isinstance(leaf, Variable):
        return leaf.now()
    return lift(argument_of(path, leaf)[0])


def _advice(path: str, leaf: Any) -> str:
    """Advise how to pass ``leaf``, which is not an array."""
    if isinstance(leaf, Mapping):
        return "pass a plain dict of it: dict(...)"
    if hasattr(leaf, "__dict__"):
        static = f"static_argnames=('{path}',)" if path.isidentifier() else "static_argnames"
        return f"if it holds arrays, register its class (sw.tree.register); else jit with {static}"
    if path.isidentifier():
        return f"if it is no data, jit with static_argnames=('{path}',)"
    return "if it is no data, pass it in an argument of its own, named in static_argnames"


def spelling(
    signature: inspect.Signature,
    call: Call,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Spelling | None:
    """Return how ``call`` was written; None if a constant in it was or may be changed."""
    if any(key_of(call.static[name]) != key for name, key in call.key[0]):
        return None  # tracing changed it
    kinds_of_leaves = iter([_leaf(a) for a in call.arguments])
    trees = {name: with_leaves(tree, kinds_of_leaves) for name, tree in call.trees}
    first = dict(zip(trees, accumulate(map(count, trees.values()), initial=0), strict=False))

    def slot(name: str, step: Any = None) -> tuple[int, Any]:
        """Return the slot of argument ``name``, or of its item ``step``."""
        if name in call.static:
            return 0, guard_of(call.static[name] if step is None else call.static[name][step])
        tree = trees[name]
        if step is None:
            return first[name], dispatched(tree)
        assert isinstance(tree, Branch)
        number = step if tree.keys is None else tree.keys.index(step)
        at = first[name] + sum(map(count, tree.children[:number]))
        return at, dispatched(tree.children[number])

    kinds = {name: p.kind for name, p in signature.parameters.items()}
    plain = [n for n, k in kinds.items() if k in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD)]
    more = next((n for n, k in kinds.items() if k is k.VAR_POSITIONAL), "")
    named = next((n for n, k in kinds.items() if k is k.VAR_KEYWORD), "")
    slots = [
        *(slot(name) for name in plain[: len(args)]),
        *(slot(more, i) for i in range(len(args) - len(plain))),
        *(slot(name) if name in kinds and name != named else slot(named, name) for name in kwargs),
    ]
    given = {*plain[: len(args)], more, named, *kwargs}
    if not all(is_final(guard_of(v)) for n, v in call.static.items() if n not in given):
        return None
    left = [n for n in trees if n not in given and (trees[n] is None or count(trees[n]))]
    if any(isinstance(trees[n], Branch) for n in left):
        return None
    fixed = tuple((first[n], call.leaves[first[n]]) for n in left if trees[n] is not None)
    return tuple(kwargs), tuple(slots), fixed


def _leaf(argument: Argument) -> Any:
    """Return the marker of an argument in a tree of `Dispatcher.add`."""
    return Variable if argument.variable else NotImplemented if argument.weak else ...
