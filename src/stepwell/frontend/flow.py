"""Control flow of a function whose source was rewritten (`frontend.rewriting`).

If a condition is a Python value, Python branches on it. If it is traced, both branches are traced,
each in a region, and their results are merged: variables that they assign, and arrays that they
write to. Each function here gets the user's variables as two functions, ``get`` and ``put``, and
their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stepwell.core.dtypes import DType, dtype_of
from stepwell.core.shapes import Shape, show
from stepwell.frontend import elementwise as e
from stepwell.frontend.checks import check, ended, message_of
from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import (
    BOOL,
    as_dtype,
    cast,
    fresh,
    full,
    is_number,
    lift,
    number_dtype,
)
from stepwell.frontend.pytree import Branch, Tree, flatten, unflatten
from stepwell.frontend.tensor import Partial, Tensor
from stepwell.frontend.tracing import Region, Trace, current_trace
from stepwell.frontend.unbound import Maybe, Undefined

Get: TypeAlias = Callable[[], tuple[Any, ...]]
Put: TypeAlias = Callable[[tuple[Any, ...]], None]

RESULT = "the result of the function"
"""The name of the variable that holds the value of an early return."""


@dataclass(frozen=True)
class Spec:
    """The type of a region's result."""

    kind: DType
    shape: Shape
    weak: bool

    def __str__(self) -> str:
        return f"{self.kind.name}[{show(self.shape)}]"


class Zeros:
    """A placeholder for zeros of the type that the other branch determines."""


def truth(value: Tensor) -> Tensor:
    """Return ``bool(value)`` as a traced boolean scalar."""
    if value.size != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. "
            "Use a.any() or a.all()"
        )
    value = reshape(value, ()) if value.shape else value
    return value if value.kind is BOOL else e.not_equal(value, 0)


def is_data(value: Any) -> bool:
    """Whether ``value`` can be a region's result: a traced value, an array, or a number."""
    if isinstance(value, np.ndarray | np.generic):
        return dtype_of(value.dtype) is not None
    return isinstance(value, Tensor) or is_number(value)


def spec_of(value: Any) -> Spec:
    """Return the type of a traced value, an array or a number."""
    if isinstance(value, Tensor):
        return Spec(value.kind, value.shape, value.weak)
    if isinstance(value, np.ndarray | np.generic):
        return Spec(as_dtype(value.dtype), value.shape, False)
    kind = as_dtype("f64") if isinstance(value, float) else number_dtype(value)
    return Spec(kind, (), True)


def joined(a: Spec, b: Spec) -> Spec | None:
    """Return the common type of both, or None where NumPy's promotion would tell them apart."""
    if a.shape != b.shape:
        return None
    if a.weak == b.weak and a.kind is b.kind:
        return a
    if a.weak or b.weak:
        number, other = (a, b) if a.weak else (b, a)
        order = ("bool", "unsigned", "signed", "float")
        if not other.weak and order.index(number.kind.kind) > order.index(other.kind.kind):
            return None
        kind = other.kind if not other.weak else max((a.kind, b.kind), key=_rank)
        return Spec(kind, a.shape, a.weak and b.weak)
    return None


def _rank(kind: DType) -> int:
    return ("bool", "unsigned", "signed", "float").index(kind.kind)


def as_spec(value: Any, spec: Spec) -> Tensor:
    """Convert ``value`` to the type ``spec``."""
    if isinstance(value, Zeros):
        return full(spec.shape, 0, spec.kind)
    if is_number(value):
        return full((), value, spec.kind)
    return cast(lift(value), spec.kind)


@dataclass
class Way:
    """The results of tracing a region: the values of variables, and the arrays written to."""

    region: Region
    leaves: list[list[Any]]
    """For each variable its leaves at the region's end."""
    trees: list[Tree]
    values: tuple[Any, ...]
    """The variables' values as bound at the region's end."""
    written: dict[int, tuple[Tensor, Tensor]]
    """Outside arrays that were written to, and their values at the region's end."""
    inside: list[Tensor]
    """Arrays created in the region that were written to."""
    ended: bool = False
    """Whether the region ends with an exception, so that nothing follows it."""


def way_of(region: Region, get: Get, run: Callable[[], None]) -> Way:
    """Trace ``run`` in a region."""
    with region.writing() as journal:
        run()
        values = get()
        parts = [flatten(v) for v in values]
        leaves = [[now(leaf) for leaf in found] for found, _ in parts]
        written = {id(v): (v, now(v)) for v in journal.outside(region.number)}
        inside = [v for v in journal.written.values() if id(v) not in written]
    return Way(region, leaves, [tree for _, tree in parts], values, written, inside)


def now(leaf: Any) -> Any:
    """Return a snapshot of a leaf, which later writes to the leaf do not change."""
    if not isinstance(leaf, Tensor):
        return leaf
    found = fresh(leaf)
    found.weak = leaf.weak
    return found


def if_(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get: Get,
    put: Put,
    names: Sequence[str],
) -> None:
    """Execute or trace an ``if`` statement.

    get, put : the variables; those without a name are not read afterwards
    """
    if not isinstance(test, Tensor):
        (body if test else orelse)()
        return
    chosen, trace, before = truth(test), current_trace(), get()
    ways: list[Way] = []
    try:
        for run, truth_of in ((body, True), (orelse, False)):
            put(before)
            region = Region(trace, (), names)
            ways.append(_branch(region, chosen, truth_of, run, lambda: get()[: len(names)]))
    finally:
        put(before)
    one, other = ways
    merge = _Merge(trace, one, other, chosen)
    after = [merge.variable(k, name) for k, name in enumerate(names)]
    arrays = [v for v, _ in {**one.written, **other.written}.values()]
    for array in arrays:
        merge.add(
            one.written.get(id(array), (array, array))[1],
            other.written.get(id(array), (array, array))[1],
            Spec(array.kind, array.shape, False),
        )
    results = merge.emit(chosen)
    for array, value in zip(arrays, results[len(results) - len(arrays) :], strict=True):
        array.become(value)
    put((*(value(results) for value in after), *before[len(names) :]))
    if one.ended and other.ended:
        raise ended(trace.scopes[-1])
    if one.ended or other.ended:
        trace.ranges.suppose(chosen, other.ended)


def _branch(region: Region, test: Tensor, value: bool, run: Callable[[], None], get: Get) -> Way:
    """Trace the branch in which ``test`` is ``value``."""
    raises = False

    def traced() -> None:
        nonlocal raises
        test.graph.ranges.suppose(test, value)
        try:
            run()
        except TraceError as error:
            if error.ends != region.number:
                raise
            raises = True

    way = way_of(region, get, traced)
    way.ended = raises
    return way


class _Part(NamedTuple):
    """A variable at the end of a branch: its flag (whether it is bound) and its flattened value."""

    flag: Any
    leaves: list[Any]
    tree: Tree
    sources: list[Any]
    """The leaves as they were bound."""

    @staticmethod
    def of(way: Way, k: int) -> _Part:
        """Return variable ``k`` at the end of ``way``."""
        value, leaves, tree = way.values[k], way.leaves[k], way.trees[k]
        if isinstance(value, Undefined):
            return _Part(False, [], None, [])
        if not isinstance(value, Maybe):
            return _Part(True, leaves, tree, flatten(value)[0])
        assert isinstance(tree, Branch)
        return _Part(leaves[0], leaves[1:], tree.children[1], flatten(value.value)[0])


class _Merge:
    """The merged results of two branches: those of ``one`` where ``chosen`` is true."""

    def __init__(self, trace: Trace, one: Way, other: Way, chosen: Tensor) -> None:
        self.trace, self.one, self.other, self.chosen = trace, one, other, chosen
        self.pairs: list[tuple[Any, Any, Spec]] = []

    def add(self, a: Any, b: Any, spec: Spec) -> int:
        """Add a result, ``a`` from one branch and ``b`` from the other; return its number."""
        self.pairs.append((a, b, spec))
        return len(self.pairs) - 1

    def variable(self, k: int, name: str) -> Callable[[Sequence[Tensor]], Any]:
        """Return a function from the op's results to the value of a variable."""
        a, b = self.one.values[k], self.other.values[k]
        if a is b:
            return lambda _: a
        if self.one.ended != self.other.ended:
            value = b if self.one.ended else a
            if isinstance(value, Undefined):
                return lambda _: value
            way = self.other if self.one.ended else self.one
            return self._only(way.leaves[k], way.trees[k], flatten(value)[0], self.one.ended)
        parts = _Part.of(self.one, k), _Part.of(self.other, k)
        flag = self._flag(parts[0].flag, parts[1].flag)
        for has, part in enumerate(parts):
            if parts[1 - has].flag is False:
                value_of = self._only(part.leaves, part.tree, part.sources, has == 1)
                break
        else:
            value_of = self._both(*parts, name)
        if flag is True or name == RESULT:  # another variable is the flag of the result
            return value_of
        return lambda results: Maybe(
            name, results[flag] if type(flag) is int else flag, value_of(results)
        )

    def _flag(self, a: Any, b: Any) -> Any:
        """Return the flag of a variable: a known one, or the number of the result that holds it."""
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            return a if a == b else self.chosen if a else e.logical_not(self.chosen)
        return self.add(a, b, Spec(BOOL, (), False))

    def _both(self, a: _Part, b: _Part, name: str) -> Callable[[Sequence[Tensor]], Any]:
        """Return the merge function of a variable that both branches bind."""
        if a.tree != b.tree:
            raise TraceError(
                f"{quoted(name)} is {_built(a)} in one branch of an if and "
                f"{_built(b)} in the other, which only the run chooses between"
            )
        rows = zip(a.leaves, b.leaves, zip(a.sources, b.sources, strict=True), strict=True)
        found = [self._leaf(*row, name) for row in rows]
        return lambda results: unflatten(a.tree, [f(results) for f in found])

    def _only(
        self, leaves: list[Any], tree: Tree, sources: list[Any], of_other: bool
    ) -> Callable[[Sequence[Tensor]], Any]:
        """Return the merge function of a variable of which only one branch's value is read."""
        given = [
            self._placeholder(leaf, source, of_other)
            for leaf, source in zip(leaves, sources, strict=True)
        ]

        def value_of(results: Sequence[Tensor]) -> Any:
            found = [g(results) for g in given]
            for leaf, source in zip(found, sources, strict=True):
                share(leaf, source)
            return unflatten(tree, found)

        return value_of

    def _placeholder(
        self, leaf: Any, source: Any, first: bool
    ) -> Callable[[Sequence[Tensor]], Any]:
        """Yield unread zeros from the branch without a value; keep an outside array itself."""
        if lives_on(source):
            return lambda _: source
        if not is_data(leaf) or is_number(leaf):
            return lambda _: leaf
        spec = spec_of(leaf)
        nothing = Zeros()
        at = self.add(nothing, leaf, spec) if first else self.add(leaf, nothing, spec)
        return lambda results: typed(results[at], spec)

    def _leaf(
        self, a: Any, b: Any, sources: tuple[Any, Any], name: str
    ) -> Callable[[Sequence[Tensor]], Any]:
        if sources[0] is sources[1] and lives_on(sources[0]):
            return lambda _: sources[0]
        if isinstance(a, Partial) or isinstance(b, Partial):
            raise TraceError(
                f"{quoted(name)} is a slice or a choice by a mask, of a size that only the run "
                "knows, and a branch that only the run chooses changes it: use it within the branch"
            )
        if not is_data(a) or not is_data(b):
            if type(a) is type(b) and bool(a == b):
                return lambda _: a
            raise TraceError(
                f"{quoted(name)} is {described(a)} in one branch of an if and {described(b)} in "
                "the other, which only the run chooses between"
            )
        if is_number(a) and type(a) is type(b) and repr(a) == repr(b):
            return lambda _: a
        if type(a) is type(b) is bool:
            found, spec = self._flag(a, b), spec_of(True)
            return lambda _: typed(fresh(found), spec)
        spec = joined(spec_of(a), spec_of(b))
        if spec is None:
            raise TraceError(
                f"{quoted(name)} is {spec_of(a)} in one branch of an if and {spec_of(b)} in the "
                "other; make them one type, with astype or numpy.broadcast_to"
            )
        at = self.add(a, b, spec)

        def value(results: Sequence[Tensor]) -> Tensor:
            found = typed(results[at], spec)
            for source in sources:
                share(found, source)
            return found

        return value

    def emit(self, chosen: Tensor) -> tuple[Tensor, ...]:
        """Emit the op; return its results."""
        for way, side in ((self.one, 0), (self.other, 1)):
            with way.region.writing():
                given = [as_spec(p[side], p[2]) for p in self.pairs]
                self.trace.emit("yield", given, ())
        types = [(spec.kind, spec.shape) for *_, spec in self.pairs]
        return self.trace.emit(
            "if", [chosen], types, [self.one.region.text, self.other.region.text]
        )


def _built(part: _Part) -> str:
    """Describe the structure of a value for messages."""
    if part.tree is None:
        return "None"
    return (
        described(part.leaves[0])
        if part.tree is ...
        else f"built as {unflatten(part.tree, part.leaves)!r}"
    )


def typed(value: Tensor, spec: Spec) -> Tensor:
    """Return ``value``, weakly typed if ``spec`` is."""
    value.weak = spec.weak
    return value


def lives_on(bound: Any) -> bool:
    """Whether a region bound a variable to an array from outside the region."""
    return isinstance(bound, Tensor) and bound.scope in bound.graph.scopes


def share(found: Any, source: Any) -> None:
    """Note that ``found`` may alias ``source``, which a region bound to the same variable.

    If ``source`` is a view that ends with the region, its base may be aliased instead.
    """
    if not isinstance(found, Tensor) or not isinstance(source, Tensor):
        return
    while source.part is not None and source.scope not in found.graph.scopes:
        source = source.part.base
    for each in (source, *(other() for other in source.shared)):
        if each is not None and each.scope in found.graph.scopes:
            found.may_share(each)


def quoted(name: str) -> str:
    """Return a variable's name for messages."""
    return name if " " in name else f"'{name}'"


def described(value: Any) -> str:
    """Return a value for messages: its type, if it has one."""
    return str(spec_of(value)) if is_data(value) else repr(value)


def assert_(test: Callable[[], Any], message: Callable[[], Any]) -> None:
    """Execute or trace an ``assert`` statement."""
    holds = test()
    if isinstance(holds, Tensor):
        _, words, values = message_of(message)
        check(truth(holds), "AssertionError", words, values)
    elif not holds:
        found = message()
        raise AssertionError(*([] if found is None else [found]))


def returned(done: Any, value: Any, always: bool) -> Any:
    """Return the result of a function that returns in branches or loops."""
    if isinstance(done, Tensor) and not always:
        raise TraceError(
            "this function returns a value on one way and None on another, which only the run "
            "chooses between; return a value on each"
        )
    if isinstance(value, Undefined):
        return None
    return value if done is not False else None
