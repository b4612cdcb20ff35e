"""What `sw.vjp` and `sw.linearize` keep outside of a trace: two programs of one text (note 069).

A trace of both is one text. The pass `split-derivatives` makes two programs of it: one computes the
function and what of it is kept, which a minimum cut says; the other takes that, and cotangents or
tangents. So how many values are kept is known when the first one is compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stepwell.api.compiled import Compiled, compile
from stepwell.api.modules import ModuleText
from stepwell.core.dtypes import DType, dtype_of
from stepwell.core.shapes import Shape, show
from stepwell.frontend.promotion import is_number
from stepwell.frontend.pytree import REGISTERED, Branch, Node, Tree, flatten, unflatten
from stepwell.frontend.state.variables import plain
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.zero import without_zeros

Type = tuple[DType, Shape]

_BEFORE, _AFTER = 'nd.part = "before"', 'nd.part = "after"'


@dataclass(frozen=True)
class Later:
    """What is computed later, while it is traced."""

    arguments: Sequence[Tensor]
    """Arguments of the second program: floats."""
    results: Sequence[Tensor]
    tree: Tree
    """How these are built."""
    types: Sequence[Type]
    """What is differentiated, others than floats too."""

    @property
    def text(self) -> str:
        """The attributes of the function."""
        counts = f"[{len(self.arguments)}, {len(self.results)}]"
        return f" attributes {{{_BEFORE}, nd.later = {counts}}}"


def arguments_later(names: Sequence[str], types: Sequence[Type]) -> list[Tensor]:
    """Return an argument of the second program for each float."""
    given = zip(names, types, strict=True)
    trace = current_trace()
    return [trace.argument(n, k, shape) for n, (k, shape) in given if k.kind == "float"]


def compute_later(arguments: Sequence[Tensor], found: Any, types: Sequence[Type]) -> None:
    """Let the trace end with what is made of arguments of the second program."""
    leaves, tree = without_zeros(*flatten(found))
    trace = current_trace()
    trace.later = Later(arguments, [trace.solid(v) for v in leaves], tree, types)


@dataclass(frozen=True, eq=False)
class Second:
    """The second program for one signature, compiled when it is first called."""

    first: Compiled
    module: ModuleText
    entry: str
    options: Mapping[str, Any]
    later: Later

    def program(self) -> Compiled:
        """Return it; programs for any size have one for any size."""
        with _lock:
            if (found := _seconds.get(self.first)) is None:
                text = self.first.given.replace(_BEFORE, _AFTER, 1)
                module = self.module
                module = ModuleText(text, module.name, module.resources, hashed=True)
                found = _seconds[self.first] = compile(module, self.entry, **self.options)
        return found


_seconds: WeakKeyDictionary[Compiled, Compiled] = WeakKeyDictionary()
_lock = threading.RLock()


class Residuals:
    """What the first program keeps, and the second one."""

    __slots__ = ("arrays", "second")

    def __init__(self, second: Second, arrays: Sequence[Any]) -> None:
        self.second, self.arrays = second, arrays

    def __call__(self, what: str, named: Sequence[str], given: Sequence[Any]) -> Any:
        """Return what the second program makes of them.

        what : a cotangent or a tangent, for messages
        named, given : what the user calls each, and what it is; None for zeros of `float0`
        """
        later = self.second.later
        arrays = _arrays(what, named, given, later.types)
        if not later.results:
            return unflatten(later.tree, ())
        found = self.second.program()(*self.arrays, *arrays)
        return unflatten(later.tree, found if isinstance(found, tuple) else (found,))


REGISTERED[Residuals] = (lambda found: (found.arrays, found.second), Residuals)


def with_residuals(tree: Tree, results: int, second: Second) -> Tree:
    """Return how the results of the first program are built: a pair, the second being residuals.

    tree, results : how the first ones of them are, and how many there are
    """
    count = len(second.first.signature.results) - results
    return Branch(tuple, None, (tree, Branch(Node(Residuals, second), None, (...,) * count)))


def mismatch(what: str, path: str, leaf: Any, type: Type) -> Exception | None:
    """Return what is wrong with a tangent or cotangent that is there where none may be, or is not.

    leaf : None for zeros of `float0`
    """
    want = f"{type[0].name}[{show(type[1])}]"
    if type[0].kind != "float":
        said = f"{path}: the {what} of a value of {want} is of sw.float0"
        return None if leaf is None else TypeError(said)
    said = f"{path}: the {what} of a value of {want} is {want}, got sw.float0"
    return TypeError(said) if leaf is None else None


def unlike(path: str, got: Type, want: Type) -> Exception | None:
    """Return what is wrong with the dtype or shape of a tangent or cotangent."""
    if got[0] is not want[0]:
        return TypeError(
            f"{path} is {got[0].name}, but must have the dtype of its value, "
            f"{want[0].name}: convert it with astype"
        )
    if got[1] != want[1]:
        return ValueError(
            f"{path} has shape ({show(got[1])}), but must have that of its value, ({show(want[1])})"
        )
    return None


def _arrays(
    what: str, named: Sequence[str], given: Sequence[Any], types: Sequence[Type]
) -> list[Any]:
    """Return tangents or cotangents of the floats as arrays of their types."""
    found: list[Any] = []
    for path, leaf, type in zip(named, given, types, strict=True):
        error = mismatch(what, path, leaf, type)
        if error is None and leaf is not None:
            array = _array(leaf, type[0])
            if array is None:
                got = leaf.__class__.__name__
                raise TypeError(f"{path}: a {what} is an array or a number, got {got}")
            kind = dtype_of(array.dtype.newbyteorder("="))
            error = None if kind is None else unlike(path, (kind, array.shape), type)
            found.append(array)
        if error is not None:
            raise error
    return found


def _array(leaf: Any, kind: DType) -> Any:
    leaf = plain(leaf)
    if is_number(leaf):
        return np.asarray(leaf, kind.numpy)
    if isinstance(leaf, np.ndarray | np.generic) or hasattr(leaf, "__array__"):
        return np.asarray(leaf)
    return None
