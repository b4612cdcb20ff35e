"""Find the loop-carried values of a rewritten loop: trace the body until their types are stable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepwell.frontend.elementwise import where
from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import (
    RESULT,
    Get,
    Put,
    Spec,
    Way,
    Zeros,
    as_spec,
    described,
    is_data,
    joined,
    lives_on,
    now,
    quoted,
    share,
    spec_of,
    truth,
    typed,
    way_of,
)
from stepwell.frontend.promotion import BOOL, full, is_number
from stepwell.frontend.pytree import Branch, flatten, unflatten
from stepwell.frontend.swaps import Swapped, order_of
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Region, Trace, current_trace
from stepwell.frontend.unbound import ASSIGN, Maybe, Undefined


@dataclass(frozen=True)
class Variables:
    """The user's variables that a loop may assign to and that are read in or after it."""

    get: Get
    put: Put
    names: tuple[str, ...]
    entering: frozenset[str]
    """The variables whose values before an iteration it may read."""
    once: bool = False
    """Whether the loop runs at least one iteration."""

    grows: Callable[[Region], None] | None = None
    """Lets lists grow in the region of the body."""
    swaps: bool = True
    """Whether the loop may permute the arrays of variables; else it raises `Swapped`."""

    def is_free(self, name: str) -> bool:
        """Whether nothing reads the variable's value from before the loop."""
        return self.once and name not in self.entering


def loop(test: Callable[[], Any], body: Callable[[], None], variables: Variables) -> None:
    """Emit a loop that repeats ``body`` while ``test``, a traced condition, holds.

    If iterations permute arrays that are written to, the loop counts the iterations.
    """
    trace, before = current_trace(), variables.get()
    mark = trace.mark()
    try:
        _loop(test, body, variables, 0)
    except Swapped as error:
        if not variables.swaps:
            raise
        trace.back(mark)
        variables.put(before)
        _counting(test, body, variables, error.order)


TURNS = "how often arrays changed places"


def _counting(
    test: Callable[[], Any], body: Callable[[], None], variables: Variables, order: int
) -> None:
    """Emit a loop with an extra first carry: the iteration count modulo ``order``."""
    turns: list[Any] = [0]

    def step() -> None:
        body()
        turns[0] = (turns[0] + 1) % order

    def get() -> tuple[Any, ...]:
        return (turns[0], *variables.get())

    def put(values: tuple[Any, ...]) -> None:
        turns[0] = values[0]
        variables.put(values[1:])

    names, entering = (TURNS, *variables.names), variables.entering | {TURNS}
    own = replace(variables, get=get, put=put, names=names, entering=entering)
    _loop(test, step, own, order)


def _loop(
    test: Callable[[], Any], body: Callable[[], None], variables: Variables, order: int
) -> None:
    trace, before = current_trace(), variables.get()
    carries = _Carries(trace, before, variables, order)
    try:
        for _ in range(ROUNDS):
            mark = trace.mark()
            if carries.settled(way := carries.trace_body(body)):
                break
            trace.back(mark)
        else:
            raise TraceError("the types of the carried values change in each iteration")
        results = carries.emit(way, test)
    finally:
        variables.put(before)
    carries.finish(results, way)


ROUNDS = 8
"""Maximum number of traces of a loop's body until the types of its carries must be stable."""


def _is_alike(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


class _Carries:
    """The loop-carried values: leaves of variables, and outside arrays that the body writes to."""

    def __init__(
        self, trace: Trace, before: tuple[Any, ...], variables: Variables, order: int
    ) -> None:
        self.trace, self.variables, self.names = trace, variables, variables.names
        self.order = order
        """The order of the permutation of arrays, if the loop counts its iterations; else 0."""
        self.free = [
            variables.is_free(n) or (variables.once and isinstance(v, Undefined) and n != RESULT)
            for n, v in zip(self.names, before, strict=True)
        ]
        """Whether each variable is assigned in every iteration before it is read."""
        self.before = tuple(
            Undefined(n, ASSIGN) if free else v
            for n, v, free in zip(self.names, before, self.free, strict=True)
        )
        parts = [flatten(v) for v in self.before]
        self.leaves = [found for found, _ in parts]
        self.trees = [tree for _, tree in parts]
        self.specs: list[list[Spec | None]] = [[None] * len(found) for found in self.leaves]
        """The types of carried leaves; None for leaves that the loop does not change."""
        self.arrays: list[Tensor] = []
        self.late = [isinstance(v, Undefined) for v in self.before]
        """Whether each variable is still unbound before the loop."""
        self.unsure = [isinstance(v, Maybe) for v in self.before]
        """Whether each variable is carried with a flag that says whether it is bound."""
        self.lost: dict[int, TraceError] = {}
        """Unbound variables that cannot be carried, by number, and the reason."""
        self.moved: dict[int, int] = {}
        """The permutation of written arrays: a carried leaf's number, and that an iteration on."""
        self.hidden: list[Tensor] = []
        """Outside arrays of `moved`: the loop's body must not use them under other names."""

    def arguments(self) -> tuple[list[list[Any]], list[Tensor]]:
        """Return fresh arguments of a region: leaves of variables, and arrays."""

        def argument(spec: Spec, name: str) -> Tensor:
            return typed(self.trace.argument(name, spec.kind, spec.shape), spec)

        found = [
            [
                leaf if spec is None else argument(spec, name)
                for leaf, spec in zip(leaves, specs, strict=True)
            ]
            for leaves, specs, name in zip(self.leaves, self.specs, self.names, strict=True)
        ]
        arrays = [self.trace.argument("array", a.kind, a.shape) for a in self.arrays]
        return found, arrays

    def all_of(self, leaves: list[list[Any]], arrays: Sequence[Any]) -> list[Any]:
        """Return all carried values, in order."""
        rows = zip(leaves, self.specs, strict=True)
        data = [v for row, specs in rows for v, s in zip(row, specs, strict=True) if s is not None]
        return [*data, *arrays]

    def bind(self, leaves: list[list[Any]], arrays: Sequence[Tensor]) -> None:
        """Bind variables and arrays to ``leaves`` and ``arrays``."""
        rows = zip(self.names, self.free, self.trees, leaves, strict=True)
        self.variables.put(
            tuple(
                Undefined(name, ASSIGN) if free else unflatten(tree, row)
                for name, free, tree, row in rows
            )
        )
        for array, value in zip(self.arrays, arrays, strict=True):
            array.become(value)

    def trace_body(self, body: Callable[[], None]) -> Way:
        """Trace the body once, in a fresh region."""
        leaves, arrays = self.arguments()
        given = self.all_of(leaves, arrays)
        copies = [now(v) for v in given]
        region = Region(self.trace, given, self.names)
        if self.variables.grows is not None:
            self.variables.grows(region)
        for copy in copies:
            copy.scope = region.number
        count = len(given) - len(arrays)

        def run() -> None:
            self.bind(leaves, copies[count:])
            for array in self.hidden:
                self.trace.changes(array)
                array.scope, array.stamp = -1, self.trace.tick()
            body()

        way = way_of(region, self.variables.get, run)
        for k in range(len(self.names)):
            if self.unsure[k] and not isinstance(way.values[k], Maybe):
                self._flagged(way, k, leaves[k])
        self._find_moved(given[:count], way)
        return way

    def _flagged(self, way: Way, k: int, given: list[Any]) -> None:
        """Add a flag to a variable that an iteration surely binds or unbinds.

        given : the variable's leaves at the iteration's beginning
        """
        value, gone = way.values[k], isinstance(way.values[k], Undefined)
        before = unflatten(self.trees[k], given)
        found = Maybe(self.names[k], not gone, before.value if gone else value)
        row, way.trees[k] = flatten(found)
        way.leaves[k] = row if gone else [True, *way.leaves[k]]
        way.values = (*way.values[:k], found, *way.values[k + 1 :])

    def _find_moved(self, given: Sequence[Tensor], way: Way) -> None:
        """Find how the body permutes written arrays; raise `Swapped` if the loop must count."""
        owners = self._owners()
        changed = [k for k, v in enumerate(given) if any(v is other for other in way.inside)]
        self.moved = {}
        if not changed:
            return
        rows = zip(way.values, self.specs, strict=True)
        bound = [
            leaf
            for value, specs in rows
            for leaf, s in zip(flatten(value)[0], specs, strict=False)
            if s is not None
        ]
        place = {id(v): k for k, v in enumerate(given)}
        at = [place.get(id(v)) for v in bound]
        wanted = set(changed)
        while True:
            moved = {k: at[k] for k in wanted}
            more = {m for m in moved.values() if m is not None} - wanted
            if not more:
                break
            wanted |= more
        targets = list(moved.values())
        if None in targets or len(set(targets)) != len(targets):
            name = owners[changed[0]]
            raise TraceError(
                f"{quoted(name)} is bound to another array in a loop in which the one it was "
                "is written to; assign to its elements, x[:] = ..., or begin with a copy"
            )
        self.moved = {k: m for k, m in moved.items() if m is not None}
        if (order := order_of(self.moved)) > 1 and order != self.order:
            names = " and ".join(quoted(owners[k]) for k in sorted(self.moved))
            raise Swapped(names, order)

    def _owners(self) -> list[str]:
        rows = zip(self.names, self.specs, strict=True)
        return [name for name, specs in rows for s in specs if s is not None]

    def settled(self, way: Way) -> bool:
        """Whether the body preserves the types of all carries; if not, join them."""
        same = True
        for k, name in enumerate(self.names):
            if k in self.lost:
                continue
            if self.late[k]:
                same &= self._take(k, way)
                continue
            try:
                same &= self._settle(k, way, name)
            except TraceError as error:
                if not (self.unsure[k] and isinstance(self.before[k], Undefined)):
                    raise
                self._lose(k, error)
                same = False
        given = self.all_of(self.leaves, ())
        hidden = [given[k] for k in self.moved if isinstance(given[k], Tensor)]
        outside = [array for array, _ in way.written.values()]
        written = [a for a in outside if not any(a is h for h in hidden)]
        for known, found in ((self.arrays, written), (self.hidden, hidden)):
            if [id(a) for a in known] != [id(a) for a in found]:
                known[:], same = found, False
        return same

    def _settle(self, k: int, way: Way, name: str) -> bool:
        """Whether an iteration keeps one variable's type; if not, join the types."""
        if isinstance(way.values[k], Maybe) and not self.unsure[k]:
            self.unsure[k] = True
            self.leaves[k] = [True, *self.leaves[k]]
            self.specs[k] = [None, *self.specs[k]]
            tree = way.trees[k]
            assert isinstance(tree, Branch)
            self.trees[k] = tree._replace(children=(tree.children[0], self.trees[k]))
        if way.trees[k] != self.trees[k]:
            raise TraceError(f"{quoted(name)} is built otherwise after an iteration")
        bound = flatten(way.values[k])[0]
        same = True
        for at, leaf in enumerate(way.leaves[k]):
            same &= self._settle_leaf(k, at, leaf, bound[at], name)
        return same

    def _lose(self, k: int, why: TraceError) -> None:
        """Give up carrying a variable unbound before the loop: reading it afterwards raises."""
        self.lost[k], self.unsure[k] = why, False
        self.leaves[k], self.trees[k] = flatten(Undefined(self.names[k], f"{why}; {ASSIGN}"))
        self.specs[k] = [None]

    def _take(self, k: int, way: Way) -> bool:
        """Adopt the body's type for a variable whose previous value is never read.

        A variable that may be unbound gets a flag.
        """
        if isinstance(way.values[k], Undefined):
            return True
        self.late[k] = False
        if isinstance(way.values[k], Maybe):
            self.free[k] = False
        if not self.free[k] and self.names[k] != RESULT:
            self.unsure[k] = True
            if not isinstance(way.values[k], Maybe):
                _, way.trees[k] = flatten(Maybe(self.names[k], True, way.values[k]))
                way.leaves[k] = [True, *way.leaves[k]]
        self.trees[k] = way.trees[k]
        self.specs[k], self.leaves[k] = [], []
        sources = flatten(way.values[k])[0]
        sources = [*way.leaves[k][: len(way.leaves[k]) - len(sources)], *sources]  # the flag, too
        for leaf, bound in zip(way.leaves[k], sources, strict=True):
            carried = isinstance(leaf, Tensor) and not lives_on(bound)
            self.specs[k].append(spec_of(leaf) if carried else None)
            self.leaves[k].append(Zeros() if carried else bound if lives_on(bound) else leaf)
        if self.unsure[k]:
            self.leaves[k][0], self.specs[k][0] = False, spec_of(False)
        return False

    def _settle_leaf(self, k: int, at: int, leaf: Any, bound: Any, name: str) -> bool:
        spec, before = self.specs[k][at], self.leaves[k][at]
        if spec is None:
            if bound is before or (is_number(bound) and _is_alike(bound, before)):
                return True
            if is_data(before) and is_data(leaf):
                self.specs[k][at] = joined(spec_of(before), spec_of(leaf)) or spec_of(before)
                return False
            if not is_data(before) and not is_data(leaf) and _is_equal(before, leaf):
                return True
        if spec is None or not is_data(leaf):
            raise TraceError(
                f"{quoted(name)} changes from {described(before)} to {described(leaf)} in a loop, "
                "and is no array or number"
            )
        found = joined(spec, spec_of(leaf))
        if found is None:
            raise TraceError(
                f"{quoted(name)} is {spec} before a loop and {spec_of(leaf)} after an iteration; "
                "begin with a value of that type"
            )
        self.specs[k][at] = found
        return found == spec

    def emit(self, way: Way, test: Callable[[], Any]) -> tuple[Tensor, ...]:
        """Emit the op; return its results."""
        with way.region.writing():
            ends = [way.written[id(a)][1] if id(a) in way.written else a for a in self.arrays]
            after = self.all_of(
                [
                    [
                        v if s is None else as_spec(v, s)
                        for v, s in zip(row, self.specs[k], strict=True)
                    ]
                    for k, row in enumerate(self._rows(way))
                ],
                ends,
            )
            self.trace.emit("yield", after, ())
        leaves, arrays = self.arguments()
        given = self.all_of(leaves, arrays)
        copies = [now(v) for v in given]
        region = Region(self.trace, given, self.names)
        for copy in copies:
            copy.scope = region.number
        with region.writing():
            self.bind(leaves, copies[len(given) - len(arrays) :])
            go = test()
            go = truth(go) if isinstance(go, Tensor) else full((), bool(go), BOOL)
            self.trace.emit("condition", [go], ())
        first = self.all_of(
            [
                [v if s is None else as_spec(v, s) for v, s in zip(row, specs, strict=True)]
                for row, specs in zip(self.leaves, self.specs, strict=True)
            ],
            self.arrays,
        )
        types = [(v.kind, v.shape) for v in first]
        return self.trace.emit("while", first, types, [region.text, way.region.text])

    def _rows(self, way: Way) -> list[list[Any]]:
        """Return the leaves at an iteration's end; for unbound variables, those before it."""
        return [self.leaves[k] if late else way.leaves[k] for k, late in enumerate(self.late)]

    def finish(self, results: tuple[Tensor, ...], way: Way) -> None:
        """Bind variables and arrays to the results."""
        given = self.all_of(self.leaves, ())
        ends = list(results[: len(given)])
        changed = self._places(given, ends)
        at = 0
        values: list[Any] = []
        for k, (tree, specs) in enumerate(zip(self.trees, self.specs, strict=True)):
            row: list[Any] = []
            bound = flatten(way.values[k])[0]
            for number, (leaf, spec) in enumerate(zip(self.leaves[k], specs, strict=True)):
                if spec is None:
                    row.append(leaf)
                    continue
                found = changed.get(at)
                if found is None:
                    found = typed(ends[at], spec)
                    if isinstance(leaf, Tensor) and not self._is_new(bound[number], way):
                        found.may_share(leaf)
                    share(found, bound[number])
                row.append(found)
                at += 1
            values.append(unflatten(tree, row))
            if self.unsure[k] and self.variables.once and way.leaves[k][0] is True:
                values[-1] = values[-1].value
        self.variables.put(tuple(values))
        for array, value in zip(self.arrays, results[len(given) :], strict=True):
            array.become(value)

    def _is_new(self, bound: Any, way: Way) -> bool:
        """Whether each iteration computes the value in new memory, without outside aliases."""
        if not self.variables.once or not isinstance(bound, Tensor):
            return False
        while bound.part is not None:
            bound = bound.part.base
        is_new = bound.scope >= way.region.number and not bound.shared
        return is_new and bound.name not in way.region.head

    def _places(self, given: Sequence[Any], ends: Sequence[Tensor]) -> dict[int, Tensor]:
        """Update permuted arrays; return them by the number of the carried leaf."""
        if not all(isinstance(given[k], Tensor) for k in self.moved):
            raise TraceError("an array that a loop writes to is a number before it")
        if not self.order:
            for k in self.moved:
                given[k].become(ends[k])
            return {k: given[k] for k in self.moved}
        for array, held in [(given[k], self._chosen(k, ends)) for k in self.moved]:
            if array.part is None:
                array.become(held)
            else:
                array.write(held)
        for k in self.moved:  # each may be any of these arrays, depending on the count
            for other in self.moved:
                ends[k].may_share(given[other])
        return {k: ends[k] for k in self.moved}

    def _chosen(self, array: int, ends: Sequence[Tensor]) -> Tensor:
        """Return an array's content after the loop: the result of the variable bound to it."""
        at = dict(zip(self.moved, self.moved, strict=True))
        found = ends[array]
        for turns in range(1, self.order):
            at = {k: self.moved[m] for k, m in at.items()}
            variable = next(k for k, m in at.items() if m == array)
            if variable != array:
                found = where(ends[0] == turns, ends[variable], found)
        return found


def _is_equal(a: Any, b: Any) -> bool:
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except (TypeError, ValueError):
        return False
