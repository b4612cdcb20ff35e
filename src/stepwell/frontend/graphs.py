"""`Graph`: describe values first; compute any of them later from any others.

A graph is a trace that stays open. A run takes the backward slice of its lines from the fetched
values to the fed ones, and compiles it as a function; each combination of fetched and fed values
is compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from threading import RLock, get_ident
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.api.compiled import Compiled, compile
from stepwell.api.modules import ModuleText
from stepwell.core.dtypes import dtype_of
from stepwell.core.once import Once
from stepwell.core.shapes import show
from stepwell.core.tracebacks import entrance
from stepwell.frontend import operators
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, is_number, lift
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.traced import function_text
from stepwell.frontend.tracing import Trace, place_of, tracing, users_frame

assert operators, "imported to fill the table of operators"

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_VALUE = re.compile(r"%\w+", re.ASCII)


@dataclass(frozen=True)
class _Line:
    """One op of the graph's top level, with the text of its regions."""

    text: str
    gives: tuple[str, ...]
    takes: frozenset[str]

    @staticmethod
    def of(text: str) -> _Line:
        bare = _QUOTED.sub("", text)
        head, equals, rest = bare.partition(" = ")
        named = bool(equals) and head.lstrip().startswith("%")
        gives = tuple(_VALUE.findall(head)) if named else ()
        return _Line(text, gives, frozenset(_VALUE.findall(rest if named else bare)))

    def without(self, given: Mapping[str, Any]) -> str:
        """Return the text; rename results that are fed, since arguments have their names."""
        if not any(name in given for name in self.gives):
            return self.text
        _, equals, rest = self.text.partition(" = ")
        names = (f"{name}__computed" if name in given else name for name in self.gives)
        return f"  {', '.join(names)}{equals}{rest}"


def _needed(
    lines: Sequence[_Line], names: set[str], given: Mapping[str, Any]
) -> tuple[set[str], set[int]]:
    """Return all values that some need, and the lines that compute them from the fed values."""
    needed, kept = set(names), set[int]()
    for at in reversed(range(len(lines))):
        if any(name in needed and name not in given for name in lines[at].gives):
            needed |= lines[at].takes
            kept.add(at)
    return needed, kept


class _GraphTrace(Trace):
    """A trace whose values remain usable whenever the graph is open, and as keys of feeds."""

    keys = True

    def check(self, value: Tensor) -> None:
        try:
            super().check(value)
        except TraceError as error:
            if value.scope or self.ended:
                raise
            raise TraceError(
                f"{str(error).rpartition(';')[0]}; open the graph to go on describing it, "
                f"'with graph:', and call its run(...) to compute"
            ) from None


class Graph:
    """A graph of values, described once; any of them can be computed from any others.

    Everything that a function under `sw.jit` can do with arrays describes a value inside ``with
    graph:``: operators, NumPy's functions, `sw.nn`, functions under `sw.jit`. Nothing is computed
    before `run`. A graph can be opened again and extended.

    options : as in `sw.compile` (``target="opencl"``)

    >>> import stepwell as sw
    >>> with sw.Graph() as graph:
    ...     a = graph.placeholder("a")
    ...     b = graph.placeholder("b")
    ...     c = graph.name("c", a + b)
    ...     d = graph.name("d", c * c)
    >>> graph.run(c, {a: 3, b: 5})
    array(8.)
    >>> graph.run(["c", "d"], {"a": 3, "b": 5})
    [array(8.), array(64.)]
    >>> graph.run("d", {"c": 10})
    array(100.)
    """

    def __init__(self, **options: Any) -> None:
        self._trace = _GraphTrace("graph")
        self._options = options
        self._names: dict[str, Tensor] = {}
        self._placeholders: dict[str, _Placeholder] = {}
        self._programs: Once[Any, Compiled] = Once()
        self._lines: list[_Line] = []
        self._cuts: dict[Any, _Cut] = {}
        self._lock = RLock()
        self._open: list[AbstractContextManager[None]] = []

    def __enter__(self) -> Graph:
        self._lock.acquire()
        self._trace.thread = get_ident()
        opened = tracing(self._trace, ends=False)
        opened.__enter__()
        self._open.append(opened)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._open.pop().__exit__(None, None, None)
        finally:
            self._lock.release()

    def __repr__(self) -> str:
        return f"<stepwell.Graph of {', '.join(self._names) or 'no names'}>"

    def placeholder(self, name: str, shape: Sequence[int] = (), dtype: Any = np.float64) -> Any:
        """Return a value that each run is fed.

        name : its name in `run`, unique in the graph
        shape, dtype : a fed array must have the shape, and a dtype that NumPy casts to this one
            within its kind (an int fits a float64, but a float does not fit an int64)

        raises ValueError : the name is taken, or the shape is invalid
        source : `tf.compat.v1.placeholder`

        >>> import numpy as np, stepwell as sw
        >>> graph = sw.Graph()
        >>> with graph:
        ...     x = graph.placeholder("x", (3,), np.float32)
        ...     total = np.sum(x)
        >>> graph.run(total, {x: [1, 2, 3]})
        array(6., dtype=float32)
        """
        kind, sizes = as_dtype(dtype), checked_shape(shape)
        with self:
            placeholder = self._trace.argument(name, kind, sizes, place_of(users_frame()))
        self.name(name, placeholder)
        self._placeholders[placeholder.name] = _Placeholder(name, placeholder.name, placeholder)
        return placeholder

    def name(self, name: str, value: Any) -> Any:
        """Name ``value``, so that `run` accepts the name; return it.

        value : a value of the graph, an array or a number

        raises ValueError : the name is taken

        >>> import stepwell as sw
        >>> with sw.Graph() as graph:
        ...     x = graph.placeholder("x")
        ...     y = graph.name("y", 2 * x)
        >>> graph.run("y", {"x": 21})
        array(42.)
        """
        if name in self._names:
            raise ValueError(
                f"the graph has a value '{name}' already, made at {self._names[name].created}"
            )
        with self:
            self._names[name] = lift(value)
        return self._names[name]

    @entrance
    def run(self, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
        """Compute values of the graph, and only the ops that they need.

        fetches : a value or its name, or tuples, lists and dicts of them; the result is built alike
        feeds : numbers or arrays for placeholders, and for any other value that is not to be
            computed, by value or name; feeds that the fetches do not need are ignored

        raises TypeError : a placeholder that the fetches need is not fed, or a dtype does not fit
        raises ValueError : a shape does not fit, or a value belongs to another graph
        raises LookupError : the graph has no value of that name
        source : `tf.compat.v1.Session.run`

        >>> import stepwell as sw
        >>> with sw.Graph() as graph:
        ...     x = graph.placeholder("x")
        ...     y = x + 1
        ...     z = y * 10
        >>> graph.run({"y": y, "z": z}, {x: 2})
        {'y': array(3.), 'z': array(30.)}
        >>> graph.run(z, {y: 5})
        array(50.)
        """
        given: Any = {} if feeds is None else feeds
        if not isinstance(given, Mapping):
            raise TypeError(f"feeds are a dict of values, got {type(given).__name__}")
        leaves, tree = flatten(fetches)
        with self:
            wanted = [self._fetched(leaf) for leaf in leaves]
            keys = [self._fed(key) for key in given]
        arrays = {
            key.name: _array(value, key, of)
            for key, of, value in zip(keys, given, given.values(), strict=True)
        }
        if len(arrays) < len(keys):
            raise ValueError("a value is given twice: by its name and as itself")
        program, taken = self._program(wanted, keys)
        result = program(*(arrays[name] for name in taken))
        return unflatten(tree, result if isinstance(result, tuple) else (result,))

    def text(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Return the program that `run` would compile for these fetches, as text of `nd`.

        feeds : the fed values; by default the placeholders that the fetches need

        >>> import stepwell as sw
        >>> with sw.Graph() as graph:
        ...     x = graph.placeholder("x")
        ...     y, unused = x + x, x * x
        >>> "nd.add" in graph.text(y), "nd.mul" in graph.text(y)
        (True, False)
        """
        with self:
            wanted = [self._fetched(leaf) for leaf in flatten(fetches)[0]]
            if feeds is None:
                keys = [_known(p) for p in self._placeholders.values()]
            else:
                keys = [self._fed(key) for key in feeds]
        return self._cut(wanted, keys).text

    def _program(
        self, wanted: Sequence[Tensor], keys: Sequence[Tensor]
    ) -> tuple[Compiled, tuple[str, ...]]:
        cut = self._cut(wanted, keys)
        program = self._programs.get(
            cut.text,
            lambda: compile(
                ModuleText(cut.text, cut.file, dict(self._trace.resources)),
                "graph",
                **self._options,
            ),
        )
        return program, cut.taken

    def _fetched(self, what: Any) -> Tensor:
        """Return the current version of a fetched value."""
        value = self._named(what) if isinstance(what, str) else what
        if not isinstance(value, Tensor):
            raise TypeError(f"a fetch is a value of the graph or its name, got {what!r}")
        self._check(value)
        value.refresh()
        return value

    def _fed(self, what: Any) -> Tensor:
        """Return a fed value; a placeholder that was written to means its first version."""
        value = self._named(what) if isinstance(what, str) else what
        if not isinstance(value, Tensor):
            raise TypeError(f"a feed is for a value of the graph or its name, got {what!r}")
        self._check(value)
        for each in self._placeholders.values():
            if each.value is value:
                return _known(each)
        value.refresh()
        return value

    def _check(self, value: Tensor) -> None:
        if value.graph is not self._trace:
            raise ValueError(f"{value!r}, made at {value.created}, is a value of another graph")
        self._trace.check(value)

    def _named(self, name: str) -> Tensor:
        if (value := self._names.get(name)) is not None:
            return value
        near = get_close_matches(name, self._names, 1)
        known = f"did you mean '{near[0]}'?" if near else f"it has {_listed(self._names)}"
        raise LookupError(f"the graph has no value '{name}'; {known}")

    def _cut(self, wanted: Sequence[Tensor], keys: Sequence[Tensor]) -> _Cut:
        """Return the function that computes the wanted values from the fed ones."""
        with self._lock:
            texts = self._trace.lines
            self._lines += [_Line.of(text) for text in texts[len(self._lines) :]]
            asked = tuple(v.name for v in wanted), tuple(k.name for k in keys), len(texts)
            if asked not in self._cuts:
                self._cuts[asked] = self._new_cut(wanted, keys)
            return self._cuts[asked]

    def _new_cut(self, wanted: Sequence[Tensor], keys: Sequence[Tensor]) -> _Cut:
        given, lines = {key.name: key for key in keys}, self._lines
        needed, kept = _needed(lines, {value.name for value in wanted}, given)
        for name, each in self._placeholders.items():
            if name in needed and name not in given:
                of = ", ".join(repr(t.name.strip("%")) for t in wanted if t.name != name)
                what = f"the placeholder '{each.name}'" + (f", which {of} needs," if of else "")
                raise TypeError(
                    f"{what} is not given: pass its value in run(..., {{'{each.name}': ...}}); "
                    f"it was made at {each.value.created}"
                )
        sources = self._placeholders.keys() | given.keys()
        for at, line in enumerate(lines):
            if not line.gives:  # a check or print: keep it if its operands' sources are known
                names, more = _needed(lines, set(line.takes), given)
                if names & sources <= needed:
                    kept |= {at, *more}
        taken = tuple(name for name in given if name in needed)
        inputs = [given[name] for name in taken]
        body = [lines[at].without(given) for at in sorted(kept)]
        text = function_text("graph", inputs, wanted, body, self.run)
        location = next((p.value.created for p in self._placeholders.values()), "")
        return _Cut(text, taken, location.rpartition(":")[0] or "<python>")


@dataclass(frozen=True)
class _Placeholder:
    """A placeholder, with its first name in the trace: writes to it give it new ones."""

    name: str
    first: str
    value: Tensor


@dataclass(frozen=True)
class _Cut:
    """A slice of the graph as a function: its text, and the names of its arguments."""

    text: str
    taken: tuple[str, ...]
    file: str


def _known(each: _Placeholder) -> Tensor:
    """Return the first version of a placeholder."""
    value = each.value
    return Tensor(value.graph, each.first, value.kind, value.shape, 0, value.created)


def _array(value: Any, key: Tensor, of: Any) -> NDArray[Any]:
    """Return the array fed for ``key``, converted to its type."""
    what = f"'{of}'" if isinstance(of, str) else repr(of)
    array = np.asarray(value)
    kind = dtype_of(array.dtype.newbyteorder("="))
    fits = kind is not None and (
        np.can_cast(array.dtype, key.dtype, "same_kind")
        or (is_number(value) and np.can_cast(type(value), key.dtype, "same_kind"))
    )
    if not fits:
        raise TypeError(
            f"{what} is {key.kind.name}; {array.dtype} is no such number: convert it before"
        )
    if array.shape != key.shape:
        raise ValueError(f"{what} has shape [{show(key.shape)}], got [{show(array.shape)}]")
    return np.ascontiguousarray(array.astype(key.dtype, copy=False)).reshape(key.shape)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "no names yet: graph.name('c', c)"
