"""Trace a function: write it as `nd` text while Python runs it.

Tracing writes text directly: each op appends one line in generic form, with the user's line as its
location. So tracing needs no compiler, and a cached program is found by its text. Shapes and
dtypes are checked during tracing, because the user's line is still known then.

A trace belongs to the thread and the context that began it. Its values may be used in that thread
only, while the trace is active; values of a region only inside it. Else `Trace.check` raises.
"""

from __future__ import annotations

import dis
import inspect
import math
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import get_ident
from types import FrameType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stepwell.core.dtypes import DType, dtype_of, lacking
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.journals import Journal
from stepwell.frontend.ranges import Ranges, is_integer
from stepwell.frontend.spelling import (
    Verbatim,
    fresh_name,
    location,
    number_text,
    properties_text,
    type_text,
)
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.weights import kept
from stepwell.runtime.device_arrays import DeviceArray
from stepwell.runtime.weights import TracedWeights, fingerprint

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

INLINE_ELEMENTS = 16
"""The most elements of a captured array that is spelled inline; larger ones become weights."""

READ_ELEMENTS = 1 << 20
"""The most elements of an integer array that is scanned for its range: a scan costs time."""


class Known(str):
    """The name of a value that no op defines yet: its content is known."""

    array: NDArray[Any]

    @classmethod
    def of(cls, name: str, array: NDArray[Any]) -> Known:
        """Return the name of ``array``, which is made read-only."""
        found = cls(name)
        array.flags.writeable = False
        found.array = array
        return found


@dataclass
class Trace:
    """The text of one function so far, and the weights that it uses."""

    function: str = "function"
    """The user's name of the function."""
    lines: list[str] = field(default_factory=list[str])
    resources: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    traced_weights: TracedWeights = field(default_factory=TracedWeights)
    """The fingerprints of the weights, also those of the previous trace."""
    _names: dict[str, int] = field(default_factory=dict[str, int])
    _constants: dict[tuple[str, str], Tensor] = field(default_factory=dict[Any, Any])
    _weights: dict[tuple[str, str], str] = field(default_factory=dict[Any, Any])
    """The names of the weights by fingerprint and type."""
    _masks: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    """The contents of boolean constants, by value name."""
    thread: int = field(default_factory=get_ident)
    """The thread that owns the trace: no other may write to it."""
    ended: bool = False
    captures: Any = None
    """Records reads outside of the function (`frontend.captures`); None if none are recorded."""
    standing: Any = None
    """The variables that a trace without `captures` takes as arguments (`frontend.standing`)."""
    computed: Any = None
    """Emits ops for arrays that NumPy computed from sizes, in text for any size; None otherwise."""
    subscripting: int = 0
    """Whether the user's source is subscripting a value."""
    scopes: list[int] = field(default_factory=lambda: [0])
    """The numbers of the function and of the open regions, outermost first."""
    outer: list[list[str]] = field(default_factory=list[list[str]])
    """The lines of the function and of all open regions but the innermost."""
    journals: list[Journal] = field(default_factory=list[Journal])
    """The writes to and refreshes of values in each open region."""
    regions: int = 0
    """The number of regions begun so far."""
    branches: list[Region] = field(default_factory=list["Region"])
    """The branches and loops of the user's Python that are being traced, outermost first."""
    trials: int = 0
    """The nesting depth of trial iterations, whose text is discarded."""
    apart: bool = False
    """Whether the program depends on whether an argument without axes is a number or an array."""
    trying: list[Callable[[], Any]] = field(default_factory=list[Callable[[], Any]])
    """Callables that return the exceptions caught by each enclosing ``try`` statement."""
    ranges: Ranges = field(default_factory=Ranges)
    """The value ranges of integers."""
    keys: ClassVar[bool] = False
    """Whether its values may be keys of a dict, as those of a graph are."""
    spelled: Callable[[Tensor, str], str] | None = None
    """Spells values in the message of an exception; None outside of such a message."""
    watch: Callable[[str, tuple[Tensor, ...]], None] | None = None
    """Called with each op and its results."""
    later: Any = None
    """The computation of the second program (`transformations.residuals`)."""
    check_bounds: bool = True
    """Whether indices known at run time only are checked."""
    _ticks: int = 0
    _solid: dict[tuple[str, int], str] = field(default_factory=dict[Any, Any])
    """The names of ops that materialized known arrays, by the array's own name and the region."""

    def tick(self) -> int:
        """Return a number larger than all returned before."""
        self._ticks += 1
        return self._ticks

    def changes(self, value: Tensor, written: bool = False) -> None:
        """Record the state of ``value`` before a change: the end of this region restores it."""
        if self.journals:
            journal = self.journals[-1]
            journal.states.setdefault(id(value), (value, value.state))
            if written:
                journal.written.setdefault(id(value), value)

    def name(self, stem: str) -> str:
        """Return a fresh value name made from ``stem``."""
        return fresh_name(self._names, stem)

    def emit(
        self,
        op: str,
        operands: Sequence[Tensor],
        results: Sequence[tuple[DType, Shape]],
        regions: Sequence[str] = (),
        /,
        **properties: Any,
    ) -> tuple[Tensor, ...]:
        """Write one op (dialect `nd` unless its name has another prefix); return its results."""
        for operand in operands:
            operand.graph.check(operand)
            operand.refresh()
        spelled = [self.text_of(t) if type(t.name) is Known else t.name for t in operands]
        if self.computed is not None and op == "slice":
            properties["limits"] = whole_limits(operands[0].shape, **properties)
        frame = users_frame()
        names = [self.name(op.rpartition(".")[2]) for _ in results]
        inputs = ", ".join(type_text(t.kind, t.shape) for t in operands)
        outputs = ", ".join(type_text(*r) for r in results)
        outputs = outputs if len(results) == 1 else f"({outputs})"
        bodies = f" ({', '.join(regions)})" if regions else ""
        self.lines.append(
            f"{'  ' * len(self.scopes)}{', '.join(names)}{' = ' if names else ''}"
            f'"{op if "." in op else f"nd.{op}"}"({", ".join(spelled)})'
            f"{properties_text(properties)}{bodies}"
            f" : ({inputs}) -> {outputs}{location(frame)}"
        )
        created = self.scopes[-1], place_of(frame)
        found = tuple(Tensor(self, n, *r, *created) for n, r in zip(names, results, strict=True))
        self.ranges.note(op, found, operands, properties)
        if self.watch is not None:
            self.watch(op, found)
        return found

    def text_of(self, value: Tensor) -> str:
        """Return the name of the op that defines a known value; emit it if there is none yet."""
        name = value.name
        assert isinstance(name, Known)
        for scope in self.scopes:
            if (found := self._solid.get((name, scope))) is not None:
                return found
        data = name.array
        if _is_uniform(data):
            text = Verbatim(number_text(data.flat[0].item(), value.kind))
            found = self.emit("full", (), [(value.kind, value.shape)], (), value=text)[0].name
        else:
            found = self.constant(data).name
        self._solid[name, self.scopes[-1]] = found
        return found

    def solid(self, value: Tensor) -> Tensor:
        """Return ``value`` as the result of an op."""
        value.refresh()
        if type(value.name) is not Known:
            return value
        return Tensor(
            self, self.text_of(value), value.kind, value.shape, self.scopes[-1], value.created
        )

    def argument(
        self, stem: str, kind: DType, shape: Shape, place: str = "", of: type[Tensor] = Tensor
    ) -> Tensor:
        """Return a new argument of the function, or of the region that `block` begins next.

        of : the class of the tensor
        """
        return of(self, self.name(stem), kind, shape, 0, place or place_of(users_frame()))

    def resident(self, array: DeviceArray) -> Tensor:
        """Return a device array: a hidden argument, or a constant if reads are not recorded."""
        if self.captures is None:
            return self.constant(np.asarray(array))
        leaf = self.captures.leaves.get(id(array)) or self.captures.bind(array, "array")
        return self.captures.tensor_of(leaf)

    def constant(self, array: NDArray[Any]) -> Tensor:
        """Return a user's array as a value: an inline constant, a weight or an argument."""
        if (found := self._made_of(array)) is not None:
            return found
        kind = dtype_of(array.dtype.newbyteorder("="))
        if kind is None:
            raise TraceError(
                f"arrays of dtype {array.dtype} cannot be used: {lacking(array.dtype)}"
            )
        shape = array.shape
        given = array
        array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
        if not np.may_share_memory(array, given):
            array.flags.writeable = False  # copied already
        print = fingerprint(array)
        key = print, type_text(kind, shape)
        if (known := self._constants.get(key)) is not None and not self._inside:
            return Tensor(self, known.name, kind, shape, known.scope, known.created)
        if array.size <= INLINE_ELEMENTS and array.size:
            data = array.reshape(-1).view(np.uint8).tobytes().hex()
            if kind.name == "i1":
                data = str(array.reshape(shape).tolist()).lower()
            value = f"dense<{data}>" if kind.name == "i1" else f'dense<"0x{data}">'
            value = f"{value} : {key[1]}"
        else:
            value = f'#nd.resource<"{self._weight(key, array, shape)}", "">'
        (result,) = self.emit("constant", (), [(kind, shape)], (), value=Verbatim(value))
        if kind.name == "i1":
            self._masks[result.name] = array.reshape(shape).copy()
        elif is_integer(kind) and 0 < array.size <= READ_ELEMENTS:
            self.ranges.created[result.name] = int(array.min()), int(array.max())
        if not self._inside:
            self._constants[key] = result
        return Tensor(self, result.name, kind, shape, result.scope, result.created)

    def _made_of(self, array: NDArray[Any]) -> Tensor | None:
        """Return an array as an argument or the result of ops; None if it must be a constant."""
        if self.captures is not None and (found := self.captures.of(array)) is not None:
            found.refresh()
            return found
        return None if self.computed is None else self.computed(array)

    def _weight(self, key: tuple[str, str], array: NDArray[Any], shape: Shape) -> str:
        """Return the weight name of an array; keep a copy unless its content is known unchanged."""
        if (name := self._weights.get(key)) is not None:
            return name
        name = self._weights[key] = f"weight_{len(self.resources)}"
        if not self.traced_weights.keeps_uncopied(name, array, key[0]):
            array = kept(array)
        self.resources[name] = array.reshape(shape)
        return name

    def known(self, value: Tensor) -> NDArray[Any] | None:
        """Return the content of a boolean constant or known array; None for other values."""
        return value.name.array if isinstance(value.name, Known) else self._masks.get(value.name)

    def is_subscript(self) -> bool:
        """Whether the user's line is reading or writing an element of an object."""
        if self.subscripting:
            return True
        frame = users_frame()
        if frame is None:
            return False
        found = next(
            (i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None
        )
        return found is not None and (
            found.opname in ("BINARY_SUBSCR", "STORE_SUBSCR")
            or (found.opname.startswith("BINARY_OP") and found.argrepr == "[]")
        )

    def mark(self) -> Any:
        """Return the present state of the trace, for `back`."""
        tables = dict(self.resources), dict(self._weights), dict(self._constants)
        return len(self.lines), *tables, dict(self._solid), dict(self.ranges.narrowed[-1])

    def back(self, mark: Any) -> None:
        """Discard everything written since ``mark``."""
        count, resources, self._weights, self._constants, self._solid, narrowed = mark
        self.ranges.narrowed[-1] = narrowed
        del self.lines[count:]
        self.resources.clear()
        self.resources.update(resources)

    def check(self, value: Tensor) -> None:
        """Raise `TraceError` if ``value``, of this trace, is used out of its scope."""
        current = active_trace()
        if self is current and value.scope in self.scopes:
            return
        if self is current:
            what = f"a value within a loop, branch, gradient or vmap of '{self.function}' was used"
            what += " outside of it"
            help = "return it from the function given to scan, cond, grad, vmap or the loop"
        elif not self.ended and self.thread != get_ident():
            what = (
                f"a value of '{self.function}' was used in another thread than the one tracing it"
            )
            help = "compute with traced values in the thread that calls the function"
        elif current is None:
            what = f"a value of '{self.function}' was used outside of its trace"
            help = "return it from the function, whose caller gets its numbers"
        else:
            what = f"a value of one traced function was used in another, of '{self.function}' in "
            what += f"'{current.function}'" if current.function != self.function else "a later call"
            help = "pass it as an argument instead"
        here = place_of(users_frame())
        raise TraceError(f"{what}: {value!r}, made at {value.created}, used at {here}; {help}")

    @property
    def _inside(self) -> bool:
        """Whether a region is open: its values are not visible outside of it."""
        return len(self.scopes) > 1

    @contextmanager
    def where(self, scope: int) -> Generator[None]:
        """Append to the text of the open region ``scope``, before the regions nested in it.

        The appended ops run wherever that region runs, so they must not be able to raise.
        """
        kept = self.lines, self.scopes, self.ranges.narrowed
        count = self.scopes.index(scope) + 1
        if count < len(self.scopes):
            self.lines = self.outer[count - 1]
            self.scopes, self.ranges.narrowed = kept[1][:count], kept[2][:count]
        try:
            yield
        finally:
            self.lines, self.scopes, self.ranges.narrowed = kept

    @contextmanager
    def block(self, arguments: Sequence[Tensor]) -> Generator[list[str]]:
        """Open a region; at the end the yielded list holds its lines, in braces."""
        self.outer.append(self.lines)
        self.lines = []
        self.regions += 1
        self.scopes.append(number := self.regions)
        for argument in arguments:
            argument.scope = number
        self.journals.append(journal := Journal())
        self.ranges.narrowed.append({})
        head = ", ".join(f"{a.name}: {type_text(a.kind, a.shape)}" for a in arguments)
        text: list[str] = []
        try:
            yield text
            if outside := journal.outside(number):  # ``number`` need not be the last region
                called = getattr(outside[0], "called", "")  # set for variables only
                place = outside[0].created
                what = f"the variable '{called}'" if called else f"an array made at {place}"
                raise TraceError(
                    f"{what} was assigned to in a function given to stepwell.lax; "
                    "return it from the function as a part of what it carries"
                )
            pad = "  " * (len(self.scopes) - 1)
            label = [f"{pad}^bb0({head}):"] if arguments else []
            text.append("\n".join(["{", *label, *self.lines, f"{pad}}}"]))
        finally:
            self.journals.pop().undo()
            self.ranges.narrowed.pop()
            self.scopes.pop()
            self.lines = self.outer.pop()


def whole_limits(
    shape: Shape, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """Return the limits of a slice; a limit that reaches the end of its axis becomes its size."""
    parts = zip(shape, starts, limits, strides, strict=True)
    return tuple(
        n if len(range(first, n, step)) == len(range(first, end, step)) else end
        for n, first, end, step in parts
    )


class Region:
    """A block that is written in several parts; value changes in each are undone after it."""

    def __init__(
        self, trace: Trace, arguments: Sequence[Tensor] = (), names: Sequence[str] = ()
    ) -> None:
        trace.regions += 1
        self.trace, self.number = trace, trace.regions
        self.lines: list[str] = []
        self.names = names
        """The user's variables that the block may change."""
        self.grown: Any = None
        """The lists that grow in the block (`growing.Grown`); None if none may."""
        self.own: dict[int, Any] = {}
        """Objects that the block itself creates, by id."""
        self.depth = len(trace.scopes)
        self.head = ", ".join(f"{a.name}: {type_text(a.kind, a.shape)}" for a in arguments)
        for argument in arguments:
            argument.scope = self.number

    @contextmanager
    def writing(self) -> Generator[Journal]:
        """Append to the block."""
        trace = self.trace
        trace.outer.append(trace.lines)
        trace.lines = self.lines
        trace.scopes.append(self.number)
        trace.journals.append(journal := Journal())
        trace.ranges.narrowed.append({})
        trace.branches.append(self)
        try:
            yield journal
        finally:
            trace.branches.pop()
            trace.ranges.narrowed.pop()
            trace.journals.pop().undo()
            trace.scopes.pop()
            trace.lines = trace.outer.pop()

    @property
    def text(self) -> str:
        """The text of the block, in braces."""
        pad = "  " * self.depth
        label = [f"{pad}^bb0({self.head}):"] if self.head else []
        return "\n".join(["{", *label, *self.lines, f"{pad}}}"])


def _is_uniform(array: NDArray[Any]) -> bool:
    """Whether all elements are the same finite number, bit by bit."""
    if not array.size:
        return False
    words = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return bool((words == words[0]).all()) and math.isfinite(array.flat[0])


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def active_trace() -> Trace | None:
    """Return the trace that this thread is writing, or None."""
    trace = _current.get()
    # a copied context may outlive its trace, or be run in another thread
    return None if trace is None or trace.ended or trace.thread != get_ident() else trace


def current_trace() -> Trace:
    """Return the active trace; raise `TraceError` if there is none."""
    if (trace := active_trace()) is None:
        raise TraceError(
            "the functions of stepwell.numpy, nn and lax describe a computation: "
            "call them inside a function given to stepwell.jit, in the thread that calls it"
        )
    return trace


@contextmanager
def tracing(trace: Trace, ends: bool = True) -> Generator[None]:
    """Make ``trace`` the current one.

    ends : whether the trace ends afterwards: nothing can be written to it any more
    """
    token = _current.set(trace)
    try:
        yield
    finally:
        trace.ended = ends
        _current.reset(token)


def place_of(frame: FrameType | None) -> str:
    """Return the file and line of ``frame``, for messages."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown line"


def users_frame() -> FrameType | None:
    """Return the innermost frame outside this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame
