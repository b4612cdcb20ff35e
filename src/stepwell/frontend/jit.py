"""`jit`: a Python function, traced once for each dtype and shape signature, and compiled."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, overload

from stepwell.compiled import Compiled, compile
from stepwell.core.escape import literal
from stepwell.core.once import Once
from stepwell.frontend import flowing, operators
from stepwell.frontend.calls import (
    Call,
    Spelling,
    argument_of,
    has_traced,
    spelling,
    take_apart,
)
from stepwell.frontend.effects import (
    Effects,
    aliases,
    check_updated,
    effects_of,
    placed,
)
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import fresh, is_number, lift
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten
from stepwell.frontend.result_names import result_names
from stepwell.frontend.spelling import type_text
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Trace, active_trace, tracing
from stepwell.modules import ModuleText
from stepwell.runtime.extension import Dispatcher, prepare
from stepwell.runtime.program import make_dispatcher
from stepwell.runtime.weights import Trail

assert operators, "imported to fill the table of operators"


_LAZY = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


@dataclass(frozen=True)
class Traced:
    """A function as `nd` text, for one signature."""

    module: ModuleText
    entry: str
    out_tree: Tree
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What `jit` was told of how to compile."""
    effects: Effects = field(default_factory=Effects)
    """The arguments that it assigns to: their new contents are further results."""

    def lower(self, stage: str = "loops") -> Lowered:
        """Return the module as it is after ``stage``: nd, structured, kernels, buffers, loops."""
        return Lowered(self, self.compile().text(stage))

    def compile(self, **options: Any) -> Compiled:
        """Return the compiled program; it takes and returns flat arrays.

        options : as in `sw.compile`; they come before those that were given to `jit`
        """
        return compile(self.module, self.entry, **{**self.options, **options})

    def __str__(self) -> str:
        """Spell the trace in the custom syntax of `nd`."""
        parse = import_module("stepwell.dialects.parsing").parse_module
        context = import_module("stepwell.registry").registry().context()
        module = parse(context, self.module.text, self.module.name)
        return import_module("stepwell.dialects.printing").text_of(module)


@dataclass(frozen=True)
class Lowered:
    """A function on one of the floors below `nd`."""

    traced: Traced
    text: str

    def compile(self, **options: Any) -> Compiled:
        """Return the compiled program."""
        return self.traced.compile(**options)

    def __str__(self) -> str:
        return self.text


class _Program(NamedTuple):
    """What a signature was compiled to."""

    program: Compiled
    tree: Tree
    effects: Effects


class Function:
    """A compiled Python function. Call it like the original; arrays come back as NumPy arrays.

    `trace`, `.lower()` and `.compile()` give the stages of one signature; each prints as text.
    """

    # a call goes straight to the dispatcher in C; only a new signature reaches `_miss`
    __slots__ = (
        "__call__",
        "__dict__",
        "__weakref__",
        "__wrapped__",
        "_check_bounds",
        "_dispatcher",
        "_learnt",
        "_lock",
        "_options",
        "_programs",
        "_signature",
        "_spellings",
        "_static",
    )

    __call__: Callable[..., Any]

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnames: Iterable[str],
        static_argnums: Iterable[int],
        options: Mapping[str, Any],
    ) -> None:
        if any(is_lazy(function) for is_lazy in _LAZY):
            name = getattr(function, "__name__", "it")
            raise TypeError(
                f"'{name}' gives no arrays when it is called, but something to wait for"
            )
        self.__wrapped__ = function
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        self._static = {*static_argnames, *(names[i] for i in static_argnums)}
        if unknown := sorted(self._static - set(names)):
            raise ValueError(f"the function has no argument {', '.join(unknown)}")
        self._options = dict(options)
        self._check_bounds = bool(self._options.pop("check_bounds", True))
        self._programs: Once[Any, _Program] = Once()
        self._learnt: set[Any] = set()
        self._spellings: dict[Any, Spelling] = {}
        self._lock = threading.RLock()
        self._dispatcher: Dispatcher | None = None
        self.__call__ = self._first

    @property
    def __name__(self) -> str:
        return getattr(self.__wrapped__, "__name__", "function")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return lambda *args, **kwargs: self(instance, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<stepwell.jit {self.__name__}{self._signature}>"

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments like these; nothing is compiled or run."""
        return self._trace(self._take_apart(args, kwargs))

    def _first(self, *args: Any, **kwargs: Any) -> Any:
        """Make the first call, which loads the runtime, and let the dispatcher make all others."""
        prepare()  # compiles beside what is traced and compiled here
        result = self._miss(args, kwargs)
        with self._lock:
            self._dispatch()
        return result

    def _dispatch(self) -> Dispatcher:
        """Return what calls programs; the first time this waits for the extension."""
        if self._dispatcher is None:
            self._dispatcher = make_dispatcher(self._miss, self._takes_out)
            self.__call__ = self._dispatcher
        return self._dispatcher

    @property
    def _takes_out(self) -> bool:
        """Whether `out=` names arrays for the results, not an argument of the function."""
        return "out" not in self._signature.parameters

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call with arguments that fit no program the dispatcher knows."""
        if active_trace() is not None and has_traced(args, kwargs):
            return self._inline(args, kwargs)
        out = kwargs.pop("out", None) if self._takes_out else None
        call = self._take_apart(args, kwargs)

        def make(same: tuple[int, ...] = ()) -> _Program:
            traced = self._trace(call, self._trail(call), same)
            return _Program(traced.compile(), traced.out_tree, traced.effects)

        program, tree, effects = self._programs.get(call.key, make)
        if program.native:
            with self._lock:
                self._learn(program, tree, effects, call, args, kwargs)
        if effects:
            if out is not None:
                raise TypeError("out= is for functions that do not assign to their arguments")
            leaves = flatten(self._bind_data(args, kwargs))[0]
            check_updated(effects, leaves)
            if same := aliases(effects, call.leaves):
                key = call.key, same
                program, tree, effects = self._programs.get(key, lambda: make(same))
            results = list(program.update(*call.leaves))
            results[len(results) - len(effects.written) :] = [leaves[i] for i in effects.written]
            return unflatten(tree, [results[k] for k in effects.places])
        result = program(*call.leaves) if out is None else program(*call.leaves, out=out)
        return unflatten(tree, result if isinstance(result, tuple) else (result,))

    def _bind_data(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the arguments that are not static, in the order in which a program takes them."""
        bound = self._bind(args, kwargs)
        return [v for name, v in bound.arguments.items() if name not in self._static]

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function as a part of the one that is being traced and calls it."""
        if self._takes_out and kwargs.get("out") is not None:
            raise TraceError("out= names arrays, but the call is part of a traced function")
        bound = self._bind(args, kwargs)
        plain: list[Tensor] = []
        for name, value in bound.arguments.items():
            if name not in self._static:
                leaves, tree = flatten(value)
                found = [
                    leaf if isinstance(leaf, Tensor) else _lifted(path, leaf)
                    for path, leaf in zip(paths(tree, name), leaves, strict=True)
                ]
                plain += [f for f, leaf in zip(found, leaves, strict=True) if f is not leaf]
                bound.arguments[name] = unflatten(tree, found)
        returned, tree = flatten(flowing.call(self.__wrapped__, *bound.args, **bound.kwargs))
        if any(value.stamp for value in plain):
            raise TraceError(
                f"'{self.__name__}' assigns to an array that is not part of the trace; "
                "make it in the traced function, or pass it to that as an argument"
            )
        return unflatten(tree, [_result(value, f"'{self.__name__}'") for value in returned])

    def _learn(
        self,
        program: Compiled,
        tree: Tree,
        effects: Effects,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Let the dispatcher serve calls spelled like this one from now on."""
        how = len(args), tuple(kwargs)
        if (call.key, how) in self._learnt:
            return
        self._learnt.add((call.key, how))
        # one object for calls that are built alike: the dispatcher takes them apart once for it
        alike = (*call.key[:2], how, tuple(a.weak for a in call.arguments))
        spelled = self._spellings.get(alike) or spelling(self._signature, call, args, kwargs)
        if spelled is None:
            return
        self._spellings[alike] = spelled
        dispatcher = self._dispatch()
        how_built = placed(tree, effects.places) if effects else tree
        dispatcher.add(program.program, spelled, how_built)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """Return the arguments by name; what is to be known while tracing must be known."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        for name in self._static & bound.arguments.keys():
            if has_traced((bound.arguments[name],), {}):
                raise TraceError(f"the static argument '{name}' is not known while tracing")
        return bound

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return take_apart(self._bind(args, kwargs), self._static)

    def _trail(self, call: Call) -> Trail:
        """Return what is known of the weights that the function uses in such a call."""
        code = getattr(inspect.unwrap(self.__wrapped__), "__code__", None)
        if code is None:
            return Trail()
        return Trail.of(code.co_filename, str(code.co_firstlineno), repr(call.arguments))

    def _trace(self, call: Call, trail: Trail | None = None, same: tuple[int, ...] = ()) -> Traced:
        """Trace the function; ``same`` are arguments that are one array, by the first of them."""
        code = getattr(inspect.unwrap(self.__wrapped__), "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
        trace = Trace(self.__name__, trail=trail or Trail(), check_bounds=self._check_bounds)
        inputs = [trace.argument(a.path, a.kind, a.shape, where) for a in call.arguments]
        head = [fresh(value) for value in inputs]
        for value, told in zip(inputs, call.arguments, strict=True):
            value.weak = told.weak
        entry = re.sub(r"\W", "_", self.__name__, flags=re.ASCII).strip("_")
        entry = entry if entry and not entry[0].isdigit() else f"function{entry}"
        with tracing(trace):
            rest = iter([inputs[k] for k in same] or inputs)
            values = dict(call.static)
            handed: dict[str, list[Tensor]] = {}
            for name, tree in call.trees:
                handed[name] = [next(rest) for _ in paths(tree, name)]
                values[name] = unflatten(tree, handed[name])
            bound = self._signature.bind_partial()
            bound.arguments = {
                name: values[name] for name in self._signature.parameters if name in values
            }
            returned, tree = flatten(flowing.call(self.__wrapped__, *bound.args, **bound.kwargs))
            results = [_result(value, f"'{self.__name__}' at {where}") for value in returned]
            for name, given in call.trees:
                _check_unchanged(name, values[name], given, handed[name], self.__name__)
            effects, results = effects_of(
                [a.path for a in call.arguments], inputs, returned, results
            )
        called = dict(zip(effects.places, result_names(self.__wrapped__, tree), strict=False))
        names = [called.get(k, "") for k in range(len(results))] if called else []
        first = len(results) - len(effects.written)
        into = dict(enumerate(effects.written, first)) if effects else {}
        text = function_text(entry, head, results, trace.lines, self.__wrapped__, names, into)
        code = getattr(inspect.unwrap(self.__wrapped__), "__code__", None)
        file = (inspect.getsourcefile(code) if code is not None else None) or "<python>"
        module = ModuleText(text, file, trace.resources, hashed=True, trail=trace.trail)
        return Traced(module, entry, tree, self._options, effects)


def _result(value: Any, function: str) -> Tensor:
    """Return what a function returns as a value of the trace."""
    try:
        return lift(value)
    except TypeError as error:
        if isinstance(error, TraceError):
            raise
        raise TypeError(
            f"a traced function returns arrays, in tuples, lists or dicts; "
            f"{function} returned {value!r}"
        ) from None


def _check_unchanged(
    name: str, value: Any, tree: Tree, handed: Sequence[Tensor], function: str
) -> None:
    """Refuse a function that puts something else into a dict or list that it is given.

    It has one of its own while it is traced: the caller's would stay as it was.
    """
    leaves, now = flatten(value)
    if now != tree or any(a is not b for a, b in zip(leaves, handed, strict=True)):
        raise TraceError(
            f"'{function}' puts something else into its argument '{name}', which the caller would "
            f"not see: return what it becomes, or assign to the array, as in {name}[...][:] = value"
        )


def _lifted(path: str, leaf: Any) -> Tensor:
    """Return a leaf that is no traced value as one, with the dtype it has as an argument."""
    array, argument = argument_of(path, leaf)
    found = lift(leaf, argument.kind) if is_number(leaf) else lift(array)
    found.weak = argument.weak
    return found


def function_text(
    entry: str,
    inputs: Sequence[Tensor],
    results: Sequence[Tensor],
    lines: Sequence[str],
    function: Callable[..., Any],
    called: Sequence[str] = (),
    into: Mapping[int, int] | None = None,
) -> str:
    """Return a trace as the text of a function.

    called : names of the results, as far as they have any
    into : results that replace an argument and may take its memory
    """
    head = ", ".join(f"{t.name}: {type_text(t.kind, t.shape)}" for t in inputs)
    types = ", ".join(type_text(t.kind, t.shape) for t in results)
    names = ", ".join(t.name for t in results)
    back = f"  func.return {names} : {types}" if results else "  func.return"
    code = getattr(inspect.unwrap(function), "__code__", None)
    at = f" loc({literal(code.co_filename)}:{code.co_firstlineno}:1)" if code else ""
    called = called or [""] * len(results)
    told = [
        _told(type_text(t.kind, t.shape), n, (into or {}).get(k))
        for k, (t, n) in enumerate(zip(results, called, strict=True))
    ]
    returns = f"({', '.join(told)})" if len(told) != 1 or "{" in told[0] else told[0]
    return "\n".join(
        [f"func.func @{entry}({head}) -> {returns} {{", *lines, f"{back}{at}", "}", ""]
    )


def _told(type: str, name: str, into: int | None) -> str:
    """Return the type of a result with what it is called, where that is a plain name."""
    told = [f'nd.name = "{name}"'] if _PLAIN.fullmatch(name) else []
    told += [f"nd.into = {into} : i64"] if into is not None else []
    return f"{type} {{{', '.join(told)}}}" if told else type


_PLAIN = re.compile(r"[\w.'\[\]-]{1,60}", re.ASCII)


@overload
def jit(function: Callable[..., Any], /, **options: Any) -> Function: ...


@overload
def jit(
    *,
    static_argnames: Any = (),
    static_argnums: Any = (),
    check_bounds: bool = True,
    **options: Any,
) -> Callable[..., Function]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    static_argnums: int | Iterable[int] = (),
    check_bounds: bool = True,
    **options: Any,
) -> Any:
    """Compile a function of arrays: traced at its first call for each signature, then native.

    function : takes and returns arrays, Python numbers, and tuples, lists and dicts of them,
        and computes with `stepwell.numpy`, `sw.nn` and `sw.lax`
    static_argnames, static_argnums : arguments that are not data; each value is its own program,
        told from others by class and bits (``1``, ``1.0`` and ``True`` are three, ``0.0`` and
        ``-0.0`` two). They are hashable; a function, and an object whose class has no ``==`` of its
        own, is one value whatever becomes of its attributes
    check_bounds : with False indices that only the run knows are not looked at: out of range, a
        read takes the element at that end of the axis and a write is left out
    options : as in `sw.compile` (``target="opencl"``), for `trace(...).compile()` too

    Any number of threads may call it, also for the first time: each signature is compiled once.
    Called in a function that is traced, with traced values, it becomes a part of that one, and its
    own options do not count.

    raises TraceError : the function needs the numbers in a traced value (a branch on it, `float`)
    source : the names are those of `jax.jit`

    >>> import numpy as np, stepwell as sw, stepwell.numpy as snp
    >>> @sw.jit
    ... def norm(x):
    ...     return snp.sqrt(snp.sum(x * x))
    >>> norm(np.array([3.0, 4.0], np.float32))
    array(5., dtype=float32)
    """
    options["check_bounds"] = check_bounds
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if function is None:
        return lambda f: Function(f, names, numbers, options)
    return Function(function, names, numbers, options)
