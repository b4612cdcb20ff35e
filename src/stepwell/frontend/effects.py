"""The side effects of a jitted function on its arguments: arrays that it assigns to.

The compiled program returns the new contents of such arrays as additional results, each of which
may alias its argument (``nd.into``). So the program updates the caller's arrays in place if their
layout permits; else it works on copies that are copied back. This module finds aliases of assigned
arrays: one array passed twice is one array in the trace; for arguments that overlap partly see
`overlaps`.
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
    """Arguments overlap partly in memory, and the function assigns to one of them."""


@dataclass(frozen=True)
class Effects:
    """Which arguments a program assigns to, and which results are their new contents."""

    names: tuple[str, ...] = ()
    """The user's name of each argument of the program."""
    written: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    """For each value that the function returns, the number of the program's result."""
    donated: tuple[tuple[int, int], ...] = ()
    """Pairs of a result and a donated argument whose memory it may reuse."""

    apart: bool = False
    """Whether the function does ``x += 1`` to a zero-dimensional argument, which rebinds a number
    but updates an array. The dispatcher cannot tell them apart, so it does not serve the
    program."""

    warned: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]], compare=False)
    """The warnings already logged about donated arguments."""

    def __bool__(self) -> bool:
        return bool(self.written)


def effects_of(
    names: Sequence[str],
    inputs: Sequence[Tensor],
    returned: Sequence[Any],
    results: Sequence[Tensor],
) -> tuple[Effects, list[Tensor]]:
    """Return the effects of a function on its arguments, and the results of its program.

    inputs, returned : its arguments in the trace, and the values that it returned
    results : the returned values as values of the trace
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
    """Return for each argument the first that is the same array; () if no two are the same.

    raises PartlyShared : another argument overlaps partly with an argument that is assigned to
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
    layouts = [(x.__array_interface__["data"], x.shape, x.strides, x.dtype) for x in (a, b)]
    return a is b or layouts[0] == layouts[1]


def _overlap(a: Any, b: Any) -> bool:
    return np.shares_memory(a, b)


def check_updated(effects: Effects, leaves: Sequence[Any]) -> None:
    """Refuse arguments that cannot be assigned to, before anything runs.

    leaves : all arguments, as passed
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
    """Return the tree of returned values with the program's result number at each leaf."""
    return _placed(tree, iter(places))


def _placed(tree: Tree, places: Iterator[int]) -> Any:
    if isinstance(tree, Branch):
        return tree._replace(children=tuple(_placed(child, places) for child in tree.children))
    return None if tree is None else next(places)


def passed_twice(effects: Effects, same: Sequence[int], count: int) -> str:
    """Say that an argument is an array which the function also captures.

    same : for each array the first that is the same; from ``count`` on they are captured
    """
    at = next(k for k in range(count, len(same)) if same[k] != k)
    return (
        f"'{effects.names[at]}', which the function reads from outside, is also passed as "
        f"'{effects.names[same[at]]}', and the function assigns to it; pass a copy"
    )
