"""Loops of a function whose source was rewritten: what `flow` is for branches.

What a loop carries is found by tracing its body until the types are the same after as before. A
loop over a range that is known is traced once where nothing in it needs Python, else unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import (
    Get,
    Put,
    Spec,
    Undefined,
    Way,
    and_,
    as_spec,
    if_,
    is_data,
    joined,
    not_,
    now,
    quoted,
    spec_of,
    told,
    truth,
    typed,
    way_of,
)
from stepwell.frontend.promotion import BOOL, full, is_number
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Region, Trace, current_trace


class Range:
    """A range whose bounds only the run knows."""

    def __init__(self, *bounds: Any) -> None:
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        self.step = bounds[2] if len(bounds) > 2 else 1
        if isinstance(self.step, Tensor):
            raise TraceError("the step of a range must be known while tracing")
        if not self.step:
            raise ValueError("range() arg 3 must not be zero")
        self.first, self.last = first, last

    def __repr__(self) -> str:
        return f"<range({self.first!r}, {self.last!r}, {self.step!r})>"

    def __iter__(self) -> NoReturn:
        raise TraceError(
            "how often this goes round is not known while tracing; "
            "write it as a for statement: for i in range(n): ..."
        )


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    stop: Callable[[], Any],
    get: Get,
    put: Put,
    names: Sequence[str],
) -> None:
    """Do a ``while`` statement; ``stop`` says whether it was left."""
    go: Any = test()
    while not isinstance(go, Tensor):
        if not go:
            return
        body()
        left = stop()
        if isinstance(left, Tensor):
            break
        if left:
            return
        go = test()
    loop(lambda: and_(lambda: not_(stop()), test), body, get, put, names)


def for_(
    items: Any,
    body: Callable[[Any], None],
    stop: Callable[[], Any],
    get: Get,
    put: Put,
    names: Sequence[str],
) -> None:
    """Do a ``for`` statement."""
    if isinstance(items, Range):
        _counted(items, body, stop, get, put, names)
        return
    if isinstance(items, range) and len(items) > UNROLLED:
        trace = current_trace()
        mark, before = trace.mark(), get()
        try:
            with Region(trace).writing():  # indices out of range, and what cannot be traced
                body(items[0])
            put(before)
            rest = Range(items.start, items.start + items.step * (len(items) - 1), items.step)
            _counted(rest, body, stop, get, put, names)
        except Exception:  # whatever it was: it comes again where the loop is unrolled
            trace.back(mark)
            put(before)
        else:
            items = items[-1:]
    for item in items:
        left = stop()
        if isinstance(left, Tensor):
            if_(not_(left), _bound(body, item), _nothing, get, put, names)
        elif left:
            return
        else:
            body(item)


UNROLLED = 8
"""Loops over ranges of more steps are tried as loops, and unrolled where they cannot be."""


def _bound(body: Callable[[Any], None], item: Any) -> Callable[[], None]:
    return lambda: body(item)


def _nothing() -> None:
    return None


def _counted(
    items: Range,
    body: Callable[[Any], None],
    stop: Callable[[], Any],
    get: Get,
    put: Put,
    names: Sequence[str],
) -> None:
    counter: list[Any] = [items.first]

    def step() -> None:
        current_trace().ranges.count(counter[0], items.first, items.last, items.step)
        body(counter[0])
        counter[0] = counter[0] + items.step

    def get_all() -> tuple[Any, ...]:
        return (counter[0], *get())

    def put_all(values: tuple[Any, ...]) -> None:
        counter[0] = values[0]
        put(values[1:])

    def test() -> Any:
        more = counter[0] < items.last if items.step > 0 else counter[0] > items.last
        return and_(lambda: not_(stop()), lambda: more)

    loop(test, step, get_all, put_all, ("the counter of the loop", *names))


def loop(
    test: Callable[[], Any], body: Callable[[], None], get: Get, put: Put, names: Sequence[str]
) -> None:
    """Repeat ``body`` while ``test``, which only the run knows; carries are found by tracing."""
    trace, before = current_trace(), get()
    carries = _Carries(trace, before, names)
    try:
        for _ in range(ROUNDS):
            mark = trace.mark()
            if carries.settled(way := carries.trace_body(body, get, put)):
                break
            trace.back(mark)
        else:
            raise TraceError("the types of what a loop carries change in each iteration")
        results = carries.emit(way, test, put)
    finally:
        put(before)
    carries.finish(results, put)


ROUNDS = 8
"""How often the body of a loop is traced until its carries are the same after as before."""


def _is_alike(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


class _Carries:
    """What a loop carries: leaves of variables, and arrays that its body writes to."""

    def __init__(self, trace: Trace, before: tuple[Any, ...], names: Sequence[str]) -> None:
        self.trace, self.before, self.names = trace, before, names
        parts = [flatten(v) for v in before]
        self.leaves = [found for found, _ in parts]
        self.trees = [tree for _, tree in parts]
        self.specs: list[list[Spec | None]] = [[None] * len(found) for found in self.leaves]
        """The types of leaves that the loop changes; None for those it leaves as they were."""
        self.arrays: list[Tensor] = []

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

    def bind(self, leaves: list[list[Any]], arrays: Sequence[Tensor], put: Put) -> None:
        """Let variables and arrays stand for ``leaves`` and ``arrays``."""
        put(tuple(unflatten(t, row) for t, row in zip(self.trees, leaves, strict=True)))
        for array, value in zip(self.arrays, arrays, strict=True):
            array.become(value)

    def trace_body(self, body: Callable[[], None], get: Get, put: Put) -> Way:
        """Trace the body once."""
        leaves, arrays = self.arguments()
        given = self.all_of(leaves, arrays)
        copies = [now(v) for v in given]
        region = Region(self.trace, given)
        for copy in copies:
            copy.scope = region.number
        count = len(given) - len(arrays)

        def run() -> None:
            self.bind(leaves, copies[count:], put)
            body()

        way = way_of(region, get, run)
        for value, name in zip(given[:count], self._owners(), strict=True):
            if any(value is other for other in way.inside):
                raise TraceError(
                    f"{quoted(name)} is bound to another array in a loop in which the one it was "
                    "is written to; assign to its elements, x[:] = ..., or begin with a copy"
                )
        return way

    def _owners(self) -> list[str]:
        rows = zip(self.names, self.specs, strict=True)
        return [name for name, specs in rows for s in specs if s is not None]

    def settled(self, way: Way) -> bool:
        """Whether what the body gives has the types of what it was given; else take those."""
        same = True
        for k, name in enumerate(self.names):
            if isinstance(self.before[k], Undefined):
                continue
            if way.trees[k] != self.trees[k]:
                raise TraceError(f"{quoted(name)} is built otherwise after an iteration")
            bound = flatten(way.values[k])[0]
            for at, leaf in enumerate(way.leaves[k]):
                same &= self._settle_leaf(k, at, leaf, bound[at], name)
        for array, _ in way.written.values():
            if not any(array is known for known in self.arrays):
                self.arrays.append(array)
                same = False
        return same

    def _settle_leaf(self, k: int, at: int, leaf: Any, bound: Any, name: str) -> bool:
        spec, before = self.specs[k][at], self.leaves[k][at]
        if spec is None:
            if bound is before or (is_number(bound) and _is_alike(bound, before)):
                return True
            if is_data(before) and is_data(leaf):
                self.specs[k][at] = joined(spec_of(before), spec_of(leaf)) or spec_of(before)
                return False
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

    def emit(self, way: Way, test: Callable[[], Any], put: Put) -> tuple[Tensor, ...]:
        """Write the op; return its results."""
        with way.region.writing():
            ends = [way.written[id(a)][1] if id(a) in way.written else a for a in self.arrays]
            after = self.all_of(
                [
                    [
                        v if s is None or isinstance(self.before[k], Undefined) else as_spec(v, s)
                        for v, s in zip(row, self.specs[k], strict=False)
                    ]
                    for k, row in enumerate(self._rows(way))
                ],
                ends,
            )
            self.trace.emit("yield", after, ())
        leaves, arrays = self.arguments()
        given = self.all_of(leaves, arrays)
        copies = [now(v) for v in given]
        region = Region(self.trace, given)
        for copy in copies:
            copy.scope = region.number
        with region.writing():
            self.bind(leaves, copies[len(given) - len(arrays) :], put)
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
        return [
            self.leaves[k] if isinstance(b, Undefined) else way.leaves[k]
            for k, b in enumerate(self.before)
        ]

    def finish(self, results: tuple[Tensor, ...], put: Put) -> None:
        """Let variables and arrays stand for the results."""
        rest = iter(results)
        values: list[Any] = []
        for k, (tree, specs) in enumerate(zip(self.trees, self.specs, strict=True)):
            row: list[Any] = []
            for leaf, spec in zip(self.leaves[k], specs, strict=True):
                if spec is None:
                    row.append(leaf)
                    continue
                found = typed(next(rest), spec)
                row.append(found.may_share(leaf) if isinstance(leaf, Tensor) else found)
            values.append(unflatten(tree, row))
        put(tuple(values))
        for array, value in zip(self.arrays, rest, strict=True):
            array.become(value)
