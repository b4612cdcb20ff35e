"""What a jitted function does to its arguments: arrays that it assigned to are the caller's.

The compiled program gives new contents of such arrays as further results, each of which may take
the memory of its argument (``nd.into``). So the program works in the caller's arrays where they
lie as programs want them; else copies are worked on and copied back. What shares memory with an
array that is assigned to is found here: one array passed twice is one array in the trace; for
arguments that share a part see `overlaps`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepwell.frontend.pytree import Branch, Tree
from stepwell.frontend.state.variables import TracedVariable, Variable
from stepwell.frontend.tensor import Tensor
from stepwell.runtime.device_arrays import DeviceArray


class PartlyShared(ValueError):
    """Arguments lie partly in the same memory, and the function assigns to one of them."""


@dataclass(frozen=True)
class Effects:
    """Which arguments a program assigns to, by number, and which of its results are these."""

    names: tuple[str, ...] = ()
    """What the user calls each argument of the program."""
    written: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    """For each value that the function returns, which result of the program it is."""
    donated: tuple[tuple[int, int], ...] = ()
    """Results of the program that may take the memory of a donated argument, and that."""

    apart: bool = False
    """Whether it does ``x += 1`` to an argument without axes, which is something else for a number
    than for an array: so the dispatcher, to which both are one, does not serve the program."""

    told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]], compare=False)
    """What was said of donated arguments."""

    def __bool__(self) -> bool:
        return bool(self.written)


def effects_of(
    names: Sequence[str],
    inputs: Sequence[Tensor],
    returned: Sequence[Any],
    results: Sequence[Tensor],
) -> tuple[Effects, list[Tensor]]:
    """Return what a function has done to its arguments, and the results of its program.

    inputs, returned : what it was given while it was traced, and what it returned
    results : the latter as values of the trace
    """
    found = {id(value) for value in returned}
    first = {
        id(t): i
        for i, t in reversed(list(enumerate(inputs)))
        if t.stamp or (isinstance(t, TracedVariable) and id(t) in found)
    }
    written = sorted(first.values())
    if not written:
        return Effects(tuple(names), (), tuple(range(len(results)))), list(results)
    plain = [r for v, r in zip(returned, results, strict=True) if id(v) not in first]
    number = iter(range(len(plain)))
    places = tuple(
        len(plain) + written.index(first[id(v)]) if id(v) in first else next(number)
        for v in returned
    )
    return Effects(tuple(names), tuple(written), places), plain + [inputs[i] for i in written]


def aliases(effects: Effects, leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return for each argument the first that is the same array; () where all are apart.

    raises PartlyShared : another argument lies partly in the memory of one that is assigned to
    """
    first = list(range(len(leaves)))
    for i in effects.written:
        for j, other in enumerate(leaves):
            if i == j or type(other) is DeviceArray:
                continue
            if not np.may_share_memory(leaves[i], other):
                continue
            if _same(leaves[i], other):
                first[max(i, j)] = min(first[i], first[j])
            elif _overlap(leaves[i], other):
                raise PartlyShared(
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


def check_updated(effects: Effects, leaves: Sequence[Any]) -> None:
    """Refuse arguments that cannot be assigned to, before anything runs.

    leaves : all arguments, as they were passed
    """
    for i in effects.written:
        if type(leaves[i]) is Variable:
            continue
        if not isinstance(leaves[i], np.ndarray):
            help = (
                "; help: return the new one, and donate this"
                if type(leaves[i]) is DeviceArray
                else ""
            )
            raise TypeError(
                f"the function assigns to argument '{effects.names[i]}', "
                f"which is no NumPy array but {type(leaves[i]).__name__}{help}"
            )
        if not leaves[i].flags.writeable:
            raise ValueError("assignment destination is read-only")


def placed(tree: Tree, places: Sequence[int]) -> Any:
    """Return the structure of what is returned with the number of a result for each value."""
    return _placed(tree, iter(places))


def _placed(tree: Tree, places: Iterator[int]) -> Any:
    if isinstance(tree, Branch):
        return tree._replace(children=tuple(_placed(child, places) for child in tree.children))
    return None if tree is None else next(places)


def passed_twice(effects: Effects, same: Sequence[int], count: int) -> str:
    """Say that an argument is an array which the function also reads from outside.

    same : for each array the first that is the same one; from ``count`` on they are read outside
    """
    at = next(k for k in range(count, len(same)) if same[k] != k)
    return (
        f"'{effects.names[at]}', which the function reads from outside, is also passed as "
        f"'{effects.names[same[at]]}', and the function assigns to it; pass a copy"
    )
