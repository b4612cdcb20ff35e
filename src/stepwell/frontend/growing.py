"""Lists that grow in a loop: ``out.append(x[i])``, if the number of iterations is known.

An appended value is written to a row of an array that the loop carries. After the loop the list
contains the rows, each of which becomes an op where it is used; if all rows are joined to an array
again (``np.array(out)``), the result is the carried array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import Spec, is_data, spec_of, typed
from stepwell.frontend.handle import View
from stepwell.frontend.promotion import fresh, full
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Trace, place_of, users_frame
from stepwell.frontend.unbound import ASSIGN, Undefined


@dataclass
class Grown:
    """The values that one iteration appends, and their lists."""

    allowed: dict[int, list[Any]]
    """The lists that the loop only appends to, by id."""
    values: list[tuple[list[Any], Any]] = field(default_factory=list[Any])

    def append(self, to: list[Any], value: Any) -> bool:
        """Append ``value`` until the iteration is traced; return whether that is allowed."""
        if id(to) not in self.allowed:
            return False
        self.values.append((to, value))
        to.append(Undefined("an element of the list, which grows in a loop,", ASSIGN))
        return True

    def undo(self) -> None:
        """Remove the appended values from the lists."""
        for to, _ in self.values:
            to.pop()


@dataclass(frozen=True)
class _Slot:
    """One ``append`` of an iteration: the arrays whose rows hold its values."""

    to: list[Any]
    tree: Tree
    specs: tuple[Spec, ...]
    rows: tuple[Tensor, ...]


def slots_of(grown: Grown, count: int) -> list[_Slot]:
    """Return arrays for the values that ``count`` iterations append, of the types in ``grown``."""
    found: list[_Slot] = []
    for to, value in grown.values:
        leaves, tree = flatten(value)
        if not leaves or not all(map(is_data, leaves)):
            raise TraceError("a list that grows in a loop takes arrays and numbers")
        specs = tuple(map(spec_of, leaves))
        rows = tuple(full((count, *s.shape), 0, s.kind) for s in specs)
        found.append(_Slot(to, tree, specs, rows))
    return found


def write(grown: Grown, slots: Sequence[_Slot], at: Any) -> None:
    """Write an iteration's appended values to row ``at`` of the arrays."""
    if len(grown.values) != len(slots):
        raise TraceError("a list grows by another number of elements in each iteration")
    for (to, value), slot in zip(grown.values, slots, strict=True):
        leaves, tree = flatten(value)
        same = to is slot.to and tree == slot.tree and all(map(is_data, leaves))
        if not same or tuple(map(spec_of, leaves)) != slot.specs:
            raise TraceError("the type of the values appended to a list changes in each iteration")
        for row, leaf in zip(slot.rows, leaves, strict=True):
            row[at] = leaf


def extend(slots: Sequence[_Slot], count: int) -> None:
    """Append all rows to the lists."""
    for k in range(count):
        for slot in slots:
            pairs = zip(slot.rows, slot.specs, strict=True)
            slot.to.append(unflatten(slot.tree, [_row(rows, k, spec) for rows, spec in pairs]))


def _row(rows: Tensor, k: int, spec: Spec) -> Tensor:
    """Return a row, which is read where it is used."""

    def read(base: Tensor) -> Tensor:
        return Tensor.operators["getitem"](base, k)

    def write(base: Tensor, part: Tensor) -> None:
        base[k] = part

    location = place_of(users_frame())
    found = Tensor(rows.graph, "", spec.kind, spec.shape, rows.scope, location)
    found.part, found.seen = View(rows, read, write, k), -1
    return typed(found, spec)


def joined(values: Any) -> Tensor | None:
    """Return the array whose rows are exactly the list's elements, in order; else None."""
    if type(values) is not list or not values or not isinstance(values[0], Tensor):
        return None
    first = values[0].part
    if first is None or first.base.shape[:1] != (len(values),):
        return None
    for k, value in enumerate(values):
        part = value.part if isinstance(value, Tensor) else None
        if part is None or part.base is not first.base or type(part.index) is not int:
            return None
        if part.index != k:
            return None
    return fresh(first.base)


def appending(trace: Trace | None, function: Any, args: tuple[Any, ...]) -> bool:
    """Trace ``list.append`` in a counted loop; return whether the call was one."""
    owner = getattr(function, "__self__", None)
    if type(owner) is not list or function.__name__ != "append" or len(args) != 1:
        return False
    if trace is None or not trace.branches:
        return False
    region = trace.branches[-1]
    if region.grown is None or region.number != trace.scopes[-1]:
        return False
    return region.grown.append(owner, args[0])


def allowed(lists: Callable[[], tuple[Any, ...]]) -> dict[int, list[Any]]:
    """Return the values that are lists, by id."""
    return {id(v): v for v in lists() if type(v) is list}
