"""What control flow becomes in a function whose source was rewritten (`frontend.rewriting`).

Where a condition is a Python value, Python goes on as ever. Where only the run knows it, both ways
are traced, each in a region, and what differs after them is carried: variables that were assigned,
and arrays that were written to. Each function here gets the user's variables by two functions,
``get`` and ``put``, and what they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

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
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Region, Trace, current_trace

Get: TypeAlias = Callable[[], tuple[Any, ...]]
Put: TypeAlias = Callable[[tuple[Any, ...]], None]

RESULT = "the result of the function"
"""What the variable is called that holds what an early return gives."""
CONDITIONAL = "the conditional expression"


class Undefined:
    """The value of a variable that has none on some way; using it is an error."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise `TraceError`."""
        raise TraceError(
            f"'{self.__dict__['name']}' has no value on each way that leads here; "
            "assign it before the branch or loop"
        )

    __getattr__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __call__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = refuse
    __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __mod__ = __floordiv__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __float__ = __int__ = refuse
    __array__ = refuse


@dataclass(frozen=True)
class Spec:
    """The type of a value that a region gives."""

    kind: DType
    shape: Shape
    weak: bool

    def __str__(self) -> str:
        return f"{self.kind.name}[{show(self.shape)}]"


class Zeros:
    """Stands for zeros of the type that is wanted."""


def truth(value: Tensor) -> Tensor:
    """Return what ``bool(value)`` is, as a boolean without axes."""
    if value.size != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. "
            "Use a.any() or a.all()"
        )
    value = reshape(value, ()) if value.shape else value
    return value if value.kind is BOOL else e.not_equal(value, 0)


def is_data(value: Any) -> bool:
    """Whether ``value`` can be a value of a region: traced, an array, or a number."""
    if isinstance(value, np.ndarray | np.generic):
        return dtype_of(value.dtype) is not None
    return isinstance(value, Tensor) or is_number(value)


def spec_of(value: Any) -> Spec:
    """Return the type of a traced value or a number."""
    if isinstance(value, Tensor):
        return Spec(value.kind, value.shape, value.weak)
    if isinstance(value, np.ndarray | np.generic):
        return Spec(as_dtype(value.dtype), value.shape, False)
    kind = as_dtype("f64") if isinstance(value, float) else number_dtype(value)
    return Spec(kind, (), True)


def joined(a: Spec, b: Spec) -> Spec | None:
    """Return the type for values of both types, where NumPy would go on alike with either."""
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
    """Return ``value`` as one of type ``spec``."""
    if isinstance(value, Zeros):
        return full(spec.shape, 0, spec.kind)
    if is_number(value):
        return full((), value, spec.kind)
    return cast(lift(value), spec.kind)


@dataclass
class Way:
    """What a region gives when it was traced: the values of variables, and of arrays."""

    region: Region
    leaves: list[list[Any]]
    """For each variable its leaves, as they are at the region's end."""
    trees: list[Tree]
    values: tuple[Any, ...]
    """The variables, as they were bound."""
    written: dict[int, tuple[Tensor, Tensor]]
    """Arrays from outside that were written to, and what they stand for at the region's end."""
    inside: list[Tensor]
    """Arrays of the region that were written to."""
    ended: bool = False
    """Whether it ends with an exception, so that nothing comes after it."""


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
    """Return what stands for what a leaf is here, whatever becomes of it."""
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
    """Do an ``if`` statement."""
    if not isinstance(test, Tensor):
        (body if test else orelse)()
        return
    chosen, trace, before = truth(test), current_trace(), get()
    ways: list[Way] = []
    try:
        for run, truth_of in ((body, True), (orelse, False)):
            put(before)
            ways.append(_branch(Region(trace, (), names), chosen, truth_of, run, get))
    finally:
        put(before)
    one, other = ways
    merge = _Merge(trace, one, other)
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
    put(tuple(value(results) for value in after))
    if one.ended and other.ended:
        raise ended(trace.scopes[-1])
    if one.ended or other.ended:
        trace.ranges.suppose(chosen, other.ended)


def _branch(region: Region, test: Tensor, value: bool, run: Callable[[], None], get: Get) -> Way:
    """Trace what is done where ``test`` is ``value``."""
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


class _Merge:
    """The values that two regions give in each other's place."""

    def __init__(self, trace: Trace, one: Way, other: Way) -> None:
        self.trace, self.one, self.other = trace, one, other
        self.pairs: list[tuple[Any, Any, Spec]] = []

    def add(self, a: Any, b: Any, spec: Spec) -> int:
        """Give ``a`` in the one way and ``b`` in the other; return the number of the result."""
        self.pairs.append((a, b, spec))
        return len(self.pairs) - 1

    def variable(self, k: int, name: str) -> Callable[[Sequence[Tensor]], Any]:
        """Return what makes the value of a variable of the results."""
        a, b = self.one.values[k], self.other.values[k]
        if a is b:
            return lambda _: a
        if self.one.ended != self.other.ended:
            return self._only(k, b if self.one.ended else a)
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            if name != RESULT:
                return lambda _: Undefined(name)
            leaves, tree = self._leaves(k, isinstance(a, Undefined))
            given = [self._placeholder(leaf, isinstance(a, Undefined)) for leaf in leaves]
            return lambda results: unflatten(tree, [g(results) for g in given])
        if self.one.trees[k] != self.other.trees[k]:
            raise TraceError(f"{quoted(name)} is built otherwise in the two branches of an if")
        pairs = zip(self.one.leaves[k], self.other.leaves[k], strict=True)
        sources = zip(flatten(a)[0], flatten(b)[0], strict=True)
        found = [self._leaf(*p, s, name) for p, s in zip(pairs, sources, strict=True)]
        tree = self.one.trees[k]
        return lambda results: unflatten(tree, [f(results) for f in found])

    def _only(self, k: int, value: Any) -> Callable[[Sequence[Tensor]], Any]:
        """Return what makes a variable that one way gives and the other, which raises, does not."""
        if isinstance(value, Undefined):
            return lambda _: value
        leaves, tree = self._leaves(k, self.one.ended)
        given = [self._placeholder(leaf, self.one.ended) for leaf in leaves]
        sources = flatten(value)[0]

        def made(results: Sequence[Tensor]) -> Any:
            found = [g(results) for g in given]
            for leaf, source in zip(found, sources, strict=True):
                if isinstance(source, Tensor) and source.scope in self.trace.scopes:
                    leaf.may_share(source)
            return unflatten(tree, found)

        return made

    def _leaves(self, k: int, of_other: bool) -> tuple[list[Any], Tree]:
        way = self.other if of_other else self.one
        return way.leaves[k], way.trees[k]

    def _placeholder(self, leaf: Any, first: bool) -> Callable[[Sequence[Tensor]], Any]:
        """Let the way that returns nothing yet give zeros, which nobody sees."""
        if not is_data(leaf):
            return lambda _: leaf
        spec = spec_of(leaf)
        nothing = Zeros()
        at = self.add(nothing, leaf, spec) if first else self.add(leaf, nothing, spec)
        return lambda results: typed(results[at], spec)

    def _leaf(
        self, a: Any, b: Any, sources: tuple[Any, Any], name: str
    ) -> Callable[[Sequence[Tensor]], Any]:
        if not is_data(a) or not is_data(b):
            if type(a) is type(b) and bool(a == b):
                return lambda _: a
            raise TraceError(
                f"{quoted(name)} is {told(a)} in one branch of an if and {told(b)} in the "
                "other, which only the run chooses between"
            )
        if is_number(a) and type(a) is type(b) and repr(a) == repr(b):
            return lambda _: a
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
                if isinstance(source, Tensor) and source.scope in self.trace.scopes:
                    found.may_share(source)
            return found

        return value

    def emit(self, chosen: Tensor) -> tuple[Tensor, ...]:
        """Write the op; return its results."""
        for way, side in ((self.one, 0), (self.other, 1)):
            with way.region.writing():
                given = [as_spec(p[side], p[2]) for p in self.pairs]
                self.trace.emit("yield", given, ())
        types = [(spec.kind, spec.shape) for *_, spec in self.pairs]
        return self.trace.emit(
            "if", [chosen], types, [self.one.region.text, self.other.region.text]
        )


def typed(value: Tensor, spec: Spec) -> Tensor:
    """Return ``value``, weak where ``spec`` is."""
    value.weak = spec.weak
    return value


def quoted(name: str) -> str:
    """Return a variable's name for messages."""
    return name if " " in name else f"'{name}'"


def told(value: Any) -> str:
    """Return a value for messages: its type, where it has one."""
    return str(spec_of(value)) if is_data(value) else repr(value)


def ternary(test: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Return ``one() if test else other()``."""
    if not isinstance(test, Tensor):
        return one() if test else other()
    box: list[Any] = [Undefined(CONDITIONAL)]

    def put(values: tuple[Any, ...]) -> None:
        box[0] = values[0]

    def run(of: Callable[[], Any]) -> Callable[[], None]:
        return lambda: put((of(),))

    if_(test, run(one), run(other), lambda: (box[0],), put, (CONDITIONAL,))
    return box[0]


def and_(*parts: Callable[[], Any]) -> Any:
    """Return what ``a and b and ...`` gives; both sides are computed where only the run knows."""
    value = parts[0]()
    for part in parts[1:]:
        if isinstance(value, Tensor):
            value = _both_sides(value, part, False)
        elif value:
            value = part()
        else:
            return value
    return value


def or_(*parts: Callable[[], Any]) -> Any:
    """Return what ``a or b or ...`` gives; both sides are computed where only the run knows."""
    value = parts[0]()
    for part in parts[1:]:
        if isinstance(value, Tensor):
            value = _both_sides(value, part, True)
        elif not value:
            value = part()
        else:
            return value
    return value


def _both_sides(a: Tensor, part: Callable[[], Any], first: bool) -> Any:
    """Return ``a`` where its truth is ``first``, else ``part()``, computed wherever that is safe.

    What the run may raise in it is raised only where Python comes there.
    """
    test, trace = truth(a), a.graph
    mark, count = trace.mark(), len(trace.lines)
    trace.ranges.narrowed.append({})
    try:
        trace.ranges.suppose(test, not first)
        b = part()
    finally:
        trace.ranges.narrowed.pop()
    if not any('"nd.check"' in line for line in trace.lines[count:]):
        return _either(a, b, first)
    trace.back(mark)
    return ternary(test, *((lambda: a, part) if first else (part, lambda: a)))


def _either(a: Tensor, b: Any, first: bool) -> Any:
    """Return ``a`` where its truth is ``first``, else ``b``."""
    if not is_data(b):
        raise TraceError(f"'and' and 'or' of a traced value need numbers, got {b!r}")
    if spec_of(a).kind is spec_of(b).kind is BOOL:
        return (e.logical_or if first else e.logical_and)(truth(a), b if is_number(b) else truth(b))
    spec = joined(spec_of(a), spec_of(b))
    if spec is None:
        raise TraceError(
            f"the sides of 'and' or 'or' are {spec_of(a)} and {spec_of(b)}: compare them with 0"
        )
    one, other = as_spec(a, spec), as_spec(b, spec)
    return typed(e.where(truth(a), *((one, other) if first else (other, one))), spec)


def not_(value: Any) -> Any:
    """Return ``not value``."""
    return e.logical_not(truth(value)) if isinstance(value, Tensor) else not value


def compare(left: Any, *parts: tuple[Callable[[Any, Any], Any], Callable[[], Any]]) -> Any:
    """Return ``a < b < c``: each is computed once."""
    result: Any = True
    for of, right in parts:
        value = right()
        said = of(left, value)
        result = said if result is True else _and(result, said)
        if not isinstance(result, Tensor) and not result:
            return result
        left = value
    return result


def _and(a: Any, b: Any) -> Any:
    return and_(lambda: a, lambda: b)


def assert_(test: Callable[[], Any], message: Callable[[], Any]) -> None:
    """Do an ``assert`` statement."""
    said = test()
    if isinstance(said, Tensor):
        _, words, values = message_of(message)
        check(truth(said), "AssertionError", words, values)
    elif not said:
        found = message()
        raise AssertionError(*([] if found is None else [found]))


def returned(done: Any, value: Any, always: bool) -> Any:
    """Return what the function returns, which has returns in branches or loops."""
    if isinstance(done, Tensor) and not always:
        raise TraceError(
            "this function returns a value on one way and None on another, which only the run "
            "chooses between; return a value on each"
        )
    if isinstance(value, Undefined):
        return None
    return value if done is not False else None
