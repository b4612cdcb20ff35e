"""The residuals that `sw.vjp` and `sw.linearize` return: two programs of one text (note 069).

One trace holds both programs. The pass `split-derivatives` splits it: the first program computes
the function and the residuals, chosen by a minimum cut; the second computes from the residuals and
from cotangents or tangents. So the number of residuals is known when the first one is compiled.
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
    """The computation of the second program, as traced."""

    arguments: Sequence[Tensor]
    """The arguments of the second program: floats."""
    results: Sequence[Tensor]
    tree: Tree
    """The structure of the results."""
    types: Sequence[Type]
    """The types of the differentiated values, also of those that are not floats."""

    @property
    def text(self) -> str:
        """The attributes of the function, as text."""
        counts = f"[{len(self.arguments)}, {len(self.results)}]"
        return f" attributes {{{_BEFORE}, nd.later = {counts}}}"


def arguments_later(names: Sequence[str], types: Sequence[Type]) -> list[Tensor]:
    """Return an argument of the second program for each type that is a float."""
    given = zip(names, types, strict=True)
    trace = current_trace()
    return [trace.argument(n, k, shape) for n, (k, shape) in given if k.kind == "float"]


def compute_later(arguments: Sequence[Tensor], found: Any, types: Sequence[Type]) -> None:
    """Set the results of the second program, computed from its arguments."""
    leaves, tree = without_zeros(*flatten(found))
    trace = current_trace()
    trace.later = Later(arguments, [trace.solid(v) for v in leaves], tree, types)


@dataclass(frozen=True, eq=False)
class Second:
    """The second program for one signature, compiled at its first call."""

    first: Compiled
    module: ModuleText
    entry: str
    options: Mapping[str, Any]
    later: Later

    def program(self) -> Compiled:
        """Return the compiled second program; it is for any size if the first one is."""
        with _lock:
            if (found := _seconds.get(self.first)) is None:
                text = self.first.module_text.replace(_BEFORE, _AFTER, 1)
                module = self.module
                module = ModuleText(text, module.name, module.resources, hashed=True)
                found = _seconds[self.first] = compile(module, self.entry, **self.options)
        return found


_seconds: WeakKeyDictionary[Compiled, Compiled] = WeakKeyDictionary()
_lock = threading.RLock()


class Residuals:
    """The residuals that the first program kept, and the second program."""

    __slots__ = ("arrays", "second")

    def __init__(self, second: Second, arrays: Sequence[Any]) -> None:
        self.second, self.arrays = second, arrays

    def __call__(self, what: str, named: Sequence[str], given: Sequence[Any]) -> Any:
        """Return the results of the second program.

        what : a cotangent or a tangent, for messages
        named, given : the user's name and the value of each; None for zeros of `float0`
        """
        later = self.second.later
        arrays = _arrays(what, named, given, later.types)
        if not later.results:
            return unflatten(later.tree, ())
        found = self.second.program()(*self.arrays, *arrays)
        return unflatten(later.tree, found if isinstance(found, tuple) else (found,))


REGISTERED[Residuals] = (lambda found: (found.arrays, found.second), Residuals)


def with_residuals(tree: Tree, results: int, second: Second) -> Tree:
    """Return the result tree of the first program: a pair of its results and the residuals.

    tree, results : the structure and the number of the function's own results
    """
    count = len(second.first.signature.results) - results
    return Branch(tuple, None, (tree, Branch(Node(Residuals, second), None, (...,) * count)))


def mismatch(what: str, path: str, leaf: Any, type: Type) -> Exception | None:
    """Return the error for a `float0` where a float is needed, or the reverse; None if neither.

    leaf : None for zeros of `float0`
    """
    want = f"{type[0].name}[{show(type[1])}]"
    if type[0].kind != "float":
        said = f"{path}: the {what} of a value of {want} is of sw.float0"
        return None if leaf is None else TypeError(said)
    said = f"{path}: the {what} of a value of {want} is {want}, got sw.float0"
    return TypeError(said) if leaf is None else None


def unlike(path: str, got: Type, want: Type) -> Exception | None:
    """Return the error for a tangent or cotangent of another dtype or shape; None if it fits."""
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
