"""What a loop of a rewritten function carries: found by tracing its body until it is the same."""

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
    is_data,
    joined,
    lives_on,
    now,
    quoted,
    share,
    spec_of,
    told,
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
    """The user's variables that a loop may assign to, and that are read again."""

    get: Get
    put: Put
    names: tuple[str, ...]
    entering: frozenset[str]
    """Those of which an iteration may read what they were before it."""
    once: bool = False
    """Whether the loop goes round at least once."""

    grows: Callable[[Region], None] | None = None
    """Lets lists grow in the region of an iteration."""
    swaps: bool = True
    """Whether arrays may change places; else the loop raises `Swapped`."""

    def is_free(self, name: str) -> bool:
        """Whether nobody sees what the variable was before the loop."""
        return self.once and name not in self.entering


def loop(test: Callable[[], Any], body: Callable[[], None], variables: Variables) -> None:
    """Repeat ``body`` while ``test``, which only the run knows; carries are found by tracing.

    Where arrays that are written to change places, the loop counts how often they did.
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
    """Do a loop that carries, in its first variable, after how many of ``order`` turns it is."""
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
            raise TraceError("the types of what a loop carries change in each iteration")
        results = carries.emit(way, test)
    finally:
        variables.put(before)
    carries.finish(results, way)


ROUNDS = 8
"""How often the body of a loop is traced until its carries are the same after as before."""


def _is_alike(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


class _Carries:
    """What a loop carries: leaves of variables, and arrays that its body writes to."""

    def __init__(
        self, trace: Trace, before: tuple[Any, ...], variables: Variables, order: int
    ) -> None:
        self.trace, self.variables, self.names = trace, variables, variables.names
        self.order = order
        """After how many iterations arrays that change places are in theirs, where these are
        counted."""
        self.free = [
            variables.is_free(n) or (variables.once and isinstance(v, Undefined) and n != RESULT)
            for n, v in zip(self.names, before, strict=True)
        ]
        """Which variables get a value in each iteration before it is read."""
        self.before = tuple(
            Undefined(n, ASSIGN) if free else v
            for n, v, free in zip(self.names, before, self.free, strict=True)
        )
        parts = [flatten(v) for v in self.before]
        self.leaves = [found for found, _ in parts]
        self.trees = [tree for _, tree in parts]
        self.specs: list[list[Spec | None]] = [[None] * len(found) for found in self.leaves]
        """The types of leaves that the loop changes; None for those it leaves as they were."""
        self.arrays: list[Tensor] = []
        self.late = [isinstance(v, Undefined) for v in self.before]
        """Variables that have no value yet."""
        self.unsure = [isinstance(v, Maybe) for v in self.before]
        """Variables that are carried with a flag, which says whether they have a value."""
        self.lost: dict[int, TraceError] = {}
        """Variables without a value before that cannot be carried, and why."""
        self.moved: dict[int, int] = {}
        """Of carried leaves, by number, which of them they are after an iteration: arrays that
        change places."""
        self.hidden: list[Tensor] = []
        """What these arrays are outside: other names of them must not be used in the loop."""

    def arguments(self) -> tuple[list[list[Any]], list[Tensor]]:
        """Return fresh arguments of a region: in the place of leaves, and for arrays."""

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
        """Return what is carried, in order."""
        rows = zip(leaves, self.specs, strict=True)
        data = [v for row, specs in rows for v, s in zip(row, specs, strict=True) if s is not None]
        return [*data, *arrays]

    def bind(self, leaves: list[list[Any]], arrays: Sequence[Tensor]) -> None:
        """Let variables and arrays stand for ``leaves`` and ``arrays``."""
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
        """Trace the body once."""
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
        """Let a variable that an iteration surely gives a value, or takes it from, have a flag.

        given : what it was as the iteration began
        """
        value, gone = way.values[k], isinstance(way.values[k], Undefined)
        before = unflatten(self.trees[k], given)
        found = Maybe(self.names[k], not gone, before.value if gone else value)
        row, way.trees[k] = flatten(found)
        way.leaves[k] = row if gone else [True, *way.leaves[k]]
        way.values = (*way.values[:k], found, *way.values[k + 1 :])

    def _find_moved(self, given: Sequence[Tensor], way: Way) -> None:
        """Find arrays that are written to and change places among variables."""
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
            told = " and ".join(quoted(owners[k]) for k in sorted(self.moved))
            raise Swapped(told, order)

    def _owners(self) -> list[str]:
        rows = zip(self.names, self.specs, strict=True)
        return [name for name, specs in rows for s in specs if s is not None]

    def settled(self, way: Way) -> bool:
        """Whether what the body gives has the types of what it was given; else take those."""
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
        """Whether a variable is after an iteration what it was before it."""
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
        """Let a variable without a value before the loop have none after it: it is refused."""
        self.lost[k], self.unsure[k] = why, False
        self.leaves[k], self.trees[k] = flatten(Undefined(self.names[k], f"{why}; {ASSIGN}"))
        self.specs[k] = [None]

    def _take(self, k: int, way: Way) -> bool:
        """Take the type of a variable of which nobody sees what it was before, or without a value
        there: then with a flag.
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
                f"{quoted(name)} changes from {told(before)} to {told(leaf)} in a loop, "
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
        """Write the op; return its results."""
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
        """Return the leaves at the end of an iteration; of variables without a value, as before."""
        return [self.leaves[k] if late else way.leaves[k] for k, late in enumerate(self.late)]

    def finish(self, results: tuple[Tensor, ...], way: Way) -> None:
        """Let variables and arrays stand for the results."""
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
        """Whether each iteration makes the value anew, in memory of its own."""
        if not self.variables.once or not isinstance(bound, Tensor):
            return False
        while bound.part is not None:
            bound = bound.part.base
        made = bound.scope >= way.region.number and not bound.shared
        return made and bound.name not in way.region.head

    def _places(self, given: Sequence[Any], ends: Sequence[Tensor]) -> dict[int, Tensor]:
        """Let arrays that are written to stand for what is in them; return them by variable."""
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
        for k in self.moved:  # each is one of the arrays; nobody can tell which
            for other in self.moved:
                ends[k].may_share(given[other])
        return {k: ends[k] for k in self.moved}

    def _chosen(self, array: int, ends: Sequence[Tensor]) -> Tensor:
        """Return what is in an array after the loop: what the variable has whose array it is."""
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
