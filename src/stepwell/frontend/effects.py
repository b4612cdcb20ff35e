"""What a jitted function does to its arguments: arrays that it assigned to are the caller's.

The compiled program gives new contents of such arrays as further results. After the call they are
copied to the caller's arrays; nothing is copied before the program has run, so it reads what the
caller passed. What shares memory with an array that is assigned to is found here: one array passed
twice is one array in the trace, any other overlap is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from stepwell.frontend.pytree import Branch, Tree, count, flatten, unflatten
from stepwell.frontend.tensor import Tensor


@dataclass(frozen=True)
class Effects:
    """Which arguments a program assigns to, by number, and which of its results are these."""

    names: tuple[str, ...] = ()
    """What the user calls each argument of the program."""
    written: tuple[int, ...] = ()
    returned: tuple[tuple[int, int], ...] = ()
    """Pairs of a result and the argument, assigned to, that it is."""

    def __bool__(self) -> bool:
        return bool(self.written)


def effects_of(names: Sequence[str], inputs: Sequence[Tensor], returned: Sequence[Any]) -> Effects:
    """Return what the function that was traced has done to its arguments ``inputs``."""
    written = {id(t): i for i, t in reversed(list(enumerate(inputs))) if t.stamp}
    same = [(k, written[id(v)]) for k, v in enumerate(returned) if id(v) in written]
    return Effects(tuple(names), tuple(sorted(written.values())), tuple(same))


def aliases(effects: Effects, leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return for each argument the first that is the same array; () where all are apart.

    raises ValueError : another argument lies partly in the memory of one that is assigned to
    """
    first = list(range(len(leaves)))
    for i in effects.written:
        for j, other in enumerate(leaves):
            if i == j or not np.may_share_memory(leaves[i], other):
                continue
            if _same(leaves[i], other):
                first[max(i, j)] = min(first[i], first[j])
            elif _overlap(leaves[i], other):
                raise ValueError(
                    f"arguments '{effects.names[i]}' and '{effects.names[j]}' lie partly in the "
                    f"same memory, and the function assigns to '{effects.names[i]}'; "
                    "pass a copy of one"
                )
    return tuple(first) if first != list(range(len(leaves))) else ()


def _same(a: Any, b: Any) -> bool:
    said = [(x.__array_interface__["data"], x.shape, x.strides, x.dtype) for x in (a, b)]
    return a is b or said[0] == said[1]


def _overlap(a: Any, b: Any) -> bool:
    return np.shares_memory(a, b)


def settle(effects: Effects, leaves: Sequence[Any], tree: Tree, results: Sequence[Any]) -> Any:
    """Update the caller's arrays, and return what the function returned.

    leaves : all arguments, as they were passed
    """
    plain = count(tree)
    for i in effects.written:
        if not isinstance(leaves[i], np.ndarray):
            raise TypeError(
                f"the function assigns to argument '{effects.names[i]}', "
                f"which is no NumPy array but {type(leaves[i]).__name__}"
            )
        if not leaves[i].flags.writeable:
            raise ValueError("assignment destination is read-only")
    for i, new in zip(effects.written, results[plain:], strict=True):
        np.copyto(leaves[i], new)
    found = list(results[:plain])
    for k, i in effects.returned:
        found[k] = leaves[i]
    return unflatten(tree, found)


class Settled(NamedTuple):
    """How calls of one spelling are settled after the dispatcher has made them."""

    effects: Effects
    places: tuple[int, ...]
    """For each argument of the program, which of the leaves of the call it is."""
    tree: Tree
    again: Callable[[tuple[Any, ...], dict[str, Any]], Any]
    """Calls in the slow way."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], results: Any) -> Any:
        """Return what the function returned; arrays that are the same take the slow way."""
        given = flatten((args, kwargs))[0]
        leaves = [given[place] for place in self.places]
        if aliases(self.effects, leaves):
            return self.again(args, kwargs)
        return settle(self.effects, leaves, self.tree, results)


class _Unsettled(tuple[Any, ...]):
    """Results that are yet to be settled: a named tuple, as far as dispatchers know."""

    _fields: ClassVar[tuple[str, ...]] = ()
    settled: ClassVar[Settled]

    def __new__(cls, *results: Any) -> Self:
        """Return the results."""
        return super().__new__(cls, results)


def settled_tree(settled: Settled, program_results: int) -> Branch:
    """Return the structure in which a dispatcher gives results that are yet to be settled."""
    kind = type("Unsettled", (_Unsettled,), {"settled": settled})
    return Branch(kind, None, (...,) * program_results)


def settling(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls the dispatcher of a function that assigns to arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = dispatcher(*args, **kwargs)
        settled = getattr(type(result), "settled", None)
        return result if settled is None else settled(args, kwargs, result)

    return call
