"""Loops of a function whose source was rewritten; `flow` is for branches.

A loop over a range or an array is traced once if its body needs no Python values, else unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepwell.frontend.carries import Variables, loop
from stepwell.frontend.errors import TraceError
from stepwell.frontend.flow import Get, Put, if_
from stepwell.frontend.growing import Grown, allowed, extend, slots_of, write
from stepwell.frontend.iterables import Counted, Items, Range, items_of
from stepwell.frontend.logic import and_, not_
from stepwell.frontend.masked import unmasked
from stepwell.frontend.promotion import lift
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.swaps import Swapped
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Region, Trace, active_trace, current_trace
from stepwell.frontend.ufuncs import weakened
from stepwell.frontend.unrolling import Unrolled


@dataclass(frozen=True)
class Statement:
    """A ``for`` or ``while`` statement."""

    body: Callable[..., None]
    stop: Callable[[], Any] | None
    """Says whether a ``break`` or ``return`` left the loop; None if there is none."""
    variables: Variables

    def left(self) -> Any:
        """Return whether the loop was left."""
        return self.stop() if self.stop is not None else False

    def goes_on(self) -> Any:
        """Return whether the loop was not left."""
        return not_(self.left())

    def step(self, item: Any) -> bool:
        """Execute or trace an iteration unless the loop was left; return whether Python goes on."""
        left, v = self.left(), self.variables
        if isinstance(left, Tensor):
            if_(not_(left), lambda: self.body(item), _no_op, v.get, v.put, v.names)
            return True
        if left:
            return False
        self.body(item)
        return True


def _no_op() -> None:
    return None


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    stop: Callable[[], Any] | None,
    get: Get,
    put: Put,
    names: Sequence[str],
    entering: Sequence[str],
) -> None:
    """Execute or trace a ``while`` statement; ``stop`` says whether it was left."""
    variables = Variables(get, put, tuple(names), frozenset(entering))
    statement = Statement(body, stop, variables)

    def more() -> Any:
        return and_(statement.goes_on, test)

    go: Any = test()
    turns, unrolled = 0, Unrolled()
    trace = active_trace()
    if _is_long(trace, statement, test, go) and _rolled_while(statement, more):
        return
    while not isinstance(go, Tensor):
        if not go:
            return
        turns += 1
        if turns % TRIED == 0 and trace is not None:
            if trace.trials:  # a trial: a few iterations find the errors
                return
            if _rolled_while(statement, more):
                return
        body()
        unrolled.turn()
        left = statement.left()
        if isinstance(left, Tensor):
            break
        if left:
            return
        go = test()
    loop(more, body, variables)


def _is_long(trace: Trace | None, statement: Statement, test: Callable[[], Any], go: Any) -> bool:
    """Whether to try a ``while``, whose first test ``go`` Python decided, as one loop: its first
    `TRIED` - 1 iterations can be traced, and Python decides their tests too.
    """
    if trace is None or trace.trials or isinstance(go, Tensor) or not go:
        return False

    def goes_on() -> bool:
        for _ in range(TRIED - 1):
            statement.body()
            for ask, wanted in ((statement.left, False), (test, True)):
                value = ask()
                if isinstance(value, Tensor) or bool(value) is not wanted:
                    return False
        return True

    mark, before = trace.mark(), statement.variables.get()
    trace.trials += 1
    try:
        with Region(trace, (), statement.variables.names).writing():
            return goes_on()
    except REFUSALS:
        return False
    finally:
        trace.trials -= 1
        statement.variables.put(before)
        trace.back(mark)


def _rolled_while(statement: Statement, more: Callable[[], Any]) -> bool:
    """Trace the remaining iterations as one loop, if that is possible; return whether it was."""
    trace, variables = current_trace(), replace(statement.variables, once=True)
    trial = None if trace.trials else _trial_of(trace, statement, ())
    if trial is None or trial.refused is not None or trial.silent:
        return False
    mark, before = trace.mark(), variables.get()
    try:
        loop(more, statement.body, variables)
    except REFUSALS:
        trace.back(mark)
        variables.put(before)
        return False
    return True


def for_(
    items: Any,
    body: Callable[[Any], None],
    stop: Callable[[], Any] | None,
    get: Get,
    put: Put,
    names: Sequence[str],
    entering: Sequence[str],
    counter: str,
    lists: Callable[[], tuple[Any, ...]],
) -> None:
    """Execute or trace a ``for`` statement.

    counter : the loop's variable, if nothing else assigns to it
    lists : returns the lists that the loop only appends to
    """
    statement = Statement(body, stop, Variables(get, put, tuple(names), frozenset(entering)))
    if isinstance(items, Range):
        _counted(items, _identity, statement)
        return
    items = unmasked(items)
    if isinstance(items, Window) and (bounds := items.bounds[0]) is not None:
        inside = Range(weakened(lift(bounds.low)), weakened(lift(bounds.high)))
        _counted(inside, lambda k: items.values[k], statement)
        return
    if isinstance(items, Counted):
        _counted(Range(0, weakened(lift(items.length))), items.get, statement)
        return
    found = items_of(items)
    if found is None or active_trace() is None or _is_short(found, statement):
        unrolled = Unrolled()
        for item in items:
            if not statement.step(item):
                return
            unrolled.turn()
        return
    if isinstance(items, range):
        _Long(statement, items, _identity, counter, allowed(lists)).run()
    else:
        _Long(statement, range(len(found)), found.get, "", allowed(lists)).run()


def _is_short(items: Items, statement: Statement) -> bool:
    """Whether to unroll a loop at once: it has few iterations of few ops."""
    if len(items) > UNROLLED or len(items) < 2 or current_trace().trials:
        return len(items) <= UNROLLED
    trial = _trial_of(current_trace(), statement, (items.get(0),))
    return trial.refused is not None or trial.ops * len(items) <= MAX_UNROLLED_OPS


UNROLLED = 8
"""Maximum iterations of a loop to unroll at once; a longer one is first tried as one loop."""
MAX_UNROLLED_OPS = 100
"""Maximum ops of an unrolled short loop; a larger one is first tried as one loop."""
TRIED = 9
"""Iterations of a ``while`` in Python after which the rest is tried as one loop."""
REFUSALS = (TraceError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""Exceptions that show that a loop cannot have a traced counter. An error of the user's recurs
when the loop is unrolled, after the iterations before it."""


def _identity(counter: Any) -> Any:
    return counter


@dataclass(frozen=True)
class _Trial:
    """The result of tracing an iteration and discarding it."""

    refused: Exception | None
    grown: Grown
    ops: int
    """The number of lines that the iteration wrote; if 0, Python knows all its values."""

    @property
    def silent(self) -> bool:
        """Whether the iteration wrote nothing."""
        return not self.ops and not self.grown.values


def _trial_of(
    trace: Trace,
    statement: Statement,
    arguments: tuple[Any, ...],
    lists: dict[int, list[Any]] | None = None,
) -> _Trial:
    """Trace an iteration and discard it. Its inner loops run fewer iterations than they should, so
    a user's exception is not final: it recurs when Python executes the iteration.
    """
    mark, before = trace.mark(), statement.variables.get()
    region = Region(trace, (), statement.variables.names)
    region.grown = grown = Grown(lists or {})
    trace.trials += 1
    try:
        with region.writing():
            statement.body(*arguments)
    except REFUSALS as error:
        return _Trial(error, grown, 0)
    finally:
        trace.trials -= 1
        grown.undo()
        statement.variables.put(before)
        trace.back(mark)
    return _Trial(None, grown, sum(text.count("\n") + 1 for text in region.lines))


@dataclass
class _Long:
    """A loop of many iterations whose number is known."""

    statement: Statement
    counters: range
    item: Callable[[Any], Any]
    """Returns the loop's item for a counter."""
    counter: str
    """The variable that equals the counter and that nothing else assigns to."""
    lists: dict[int, list[Any]]
    """The lists that the loop only appends to."""
    trial: _Trial | None = None
    reason: Exception | None = None
    """The exception that prevents one loop."""

    def run(self) -> None:
        """Trace the loop."""
        trace = current_trace()
        if trace.trials:  # a trial: the first iteration finds the errors
            self.statement.step(self.item(self.counters[0]))
            return
        start = 0
        for _ in range(2):
            start, tried = self._in_python(trace, start)
            if not tried or len(self.counters) - start < 2:
                break
            if self._rolled(trace, start):
                return
            self.statement.step(self.item(self.counters[start]))
            start += 1
        self._unrolled(start)

    def _in_python(self, trace: Trace, start: int) -> tuple[int, bool]:
        """Execute the first iterations in Python, as long as they write no ops.

        returns : the first remaining counter, and whether the rest may be traced as one loop
        """
        if self.statement.left() is True:
            return len(self.counters), False
        lists = {} if trace.branches or self.statement.stop is not None else self.lists
        trial = _trial_of(trace, self.statement, (self.item(self.counters[start]),), lists)
        self.trial = trial
        if trial.refused is not None:
            self.reason = trial.refused
            return start, False
        while trial.silent and start < len(self.counters):
            count = len(trace.lines)
            if not self.statement.step(self.item(self.counters[start])):
                return len(self.counters), False
            start += 1
            if len(trace.lines) != count:
                break
        return start, True

    def _rolled(self, trace: Trace, start: int) -> bool:
        """Trace the remaining iterations as one loop; return whether that was possible."""
        counters, variables = self.counters[start:], self.statement.variables
        mark, before = trace.mark(), variables.get()
        known = self.counter in variables.names and self.statement.stop is None
        inner = _without(variables, self.counter) if known else variables
        swaps = self.statement.stop is not None
        statement = replace(self.statement, variables=replace(inner, once=True, swaps=swaps))
        try:
            try:
                self._count(counters, statement)
            except Swapped as error:
                trace.back(mark)
                variables.put(before)
                self._in_turns(counters, statement, error.order)
        except REFUSALS as error:
            self.reason = error
            trace.back(mark)
            variables.put(before)
            return False
        if known:
            values = list(variables.get())
            values[variables.names.index(self.counter)] = counters[-1]
            variables.put(tuple(values))
        return True

    def _count(self, counters: range, statement: Statement) -> None:
        """Trace the remaining iterations as one loop, which carries growing lists as arrays."""
        assert self.trial is not None
        if not self.trial.grown.values:
            _counted(_range(counters), self.item, statement)
            return
        trace = current_trace()
        slots = slots_of(self.trial.grown, len(counters))

        def grows(region: Region) -> None:
            region.grown = Grown(self.lists)

        def body(counter: Any) -> None:
            grown = trace.branches[-1].grown
            try:
                statement.body(self.item(counter))
            finally:
                grown.undo()
            at = counter - counters.start if counters.start else counter
            write(grown, slots, at // counters.step if counters.step != 1 else at)

        inner = replace(statement.variables, grows=grows)
        _counted(_range(counters), _identity, replace(statement, body=body, variables=inner))
        extend(slots, len(counters))

    def _in_turns(self, counters: range, statement: Statement, order: int) -> None:
        """Trace a loop that permutes arrays, unrolled by the order of the permutation."""
        whole = len(counters) // order * order

        def turn(counter: Any) -> None:
            for k in range(order):
                statement.body(self.item(counter + k * counters.step if k else counter))

        _counted(_range(counters[:whole:order]), _identity, replace(statement, body=turn))
        for counter in counters[whole:]:
            statement.body(self.item(counter))

    def _unrolled(self, start: int) -> None:
        """Unroll the remaining iterations."""
        count = len(self.counters) - start if self.statement.stop is None else None
        unrolled = Unrolled(count, self.reason)
        for k in range(start, len(self.counters)):
            if not self.statement.step(self.item(self.counters[k])):
                return
            unrolled.turn()


def _range(counters: range) -> Range:
    return Range(counters.start, counters.stop, counters.step)


def _without(variables: Variables, name: str) -> Variables:
    """Return the variables without ``name``."""
    at = variables.names.index(name)

    def get() -> tuple[Any, ...]:
        values = variables.get()
        return (*values[:at], *values[at + 1 :])

    def put(values: tuple[Any, ...]) -> None:
        variables.put((*values[:at], variables.get()[at], *values[at:]))

    names = (*variables.names[:at], *variables.names[at + 1 :])
    return replace(variables, get=get, put=put, names=names)


COUNTER = "the counter of the loop"


def _counted(items: Range, item: Callable[[Any], Any], statement: Statement) -> None:
    counter: list[Any] = [items.first]
    own = statement.variables

    def step() -> None:
        current_trace().ranges.count(counter[0], items.first, items.last, items.step)
        statement.body(item(counter[0]))
        counter[0] = counter[0] + items.step

    def get() -> tuple[Any, ...]:
        return (counter[0], *own.get())

    def put(values: tuple[Any, ...]) -> None:
        counter[0] = values[0]
        own.put(values[1:])

    def test() -> Any:
        more = counter[0] < items.last if items.step > 0 else counter[0] > items.last
        return and_(statement.goes_on, lambda: more)

    names, entering = (COUNTER, *own.names), own.entering | {COUNTER}
    loop(test, step, replace(own, get=get, put=put, names=names, entering=entering))
