"""A jitted function: its compiled programs, and the dispatch of its calls."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from importlib import import_module
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

from stepwell.core.machine import thread_limit
from stepwell.core.tracebacks import entrance
from stepwell.frontend import flowing, operators
from stepwell.frontend.calls import (
    Call,
    Spelling,
    constant_defaults,
    has_traced,
    is_no_data,
    lifted,
    spelling,
    take_apart,
)
from stepwell.frontend.disabling import serve
from stepwell.frontend.effects import (
    PartlyShared,
    aliases,
    check_updated,
    passed_twice,
    placed,
)
from stepwell.frontend.errors import TraceError
from stepwell.frontend.pytree import count as leaf_count
from stepwell.frontend.pytree import dispatched, flatten, is_reordered, paths, unflatten
from stepwell.frontend.retraces import MAX_TRACES, CacheInfo, limit_of
from stepwell.frontend.state.donation import donated_names, warn_of_copies
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.traced import Known, Traced, endless, name_of, result_of, trace
from stepwell.frontend.tracing import active_trace
from stepwell.frontend.variants import Tracer, Variant, Variants
from stepwell.runtime.extension import Dispatcher, prepare
from stepwell.runtime.program import make_dispatcher
from stepwell.runtime.weights import TracedWeights

assert operators, "imported to fill the table of operators"

if TYPE_CHECKING:
    from stepwell.frontend.inspecting import Explanation
    from stepwell.runtime.profiling import Profile

SIGNATURES = "stepwell.frontend.signatures"
_LAZY = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class Function:
    """A compiled Python function. Call it like the original; arrays come back as NumPy arrays.

    `trace`, `.lower()` and `.compile()` return the stages of one signature; each prints as text.
    """

    # a call enters the dispatcher in C directly; only a new signature reaches `_miss`
    __slots__ = (
        "__call__",
        "__dict__",
        "__weakref__",
        "__wrapped__",
        "_checks",
        "_defaults",
        "_dispatcher",
        "_donated",
        "_given_options",
        "_inputs",
        "_learnt",
        "_lock",
        "_options",
        "_overlapping",
        "_signature",
        "_spellings",
        "_static",
        "_variants",
        "served",
    )

    always = False  # compiled even where jit is disabled
    __call__: Callable[..., Any]
    served: Callable[..., Any]  # serves its calls, unless jit is disabled

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
        self._defaults = constant_defaults(self._signature)
        names = list(self._signature.parameters)
        self._static = {*static_argnames, *(names[i] for i in static_argnums)}
        if unknown := sorted(self._static - set(names)):
            raise ValueError(f"the function has no argument {', '.join(unknown)}")
        self._given_options = dict(options)
        self._options = dict(options)
        self._donated = donated_names(self._options, names, self._static)
        self._checks: dict[str, Any] = {"check_bounds": self._options.pop("check_bounds", True)}
        if self._options.pop("check_finite", False):
            self._checks["watch"] = import_module("stepwell.frontend.debug").watch_finite
        most = limit_of(self._options.pop("max_traces", MAX_TRACES))
        dynamic = self._options.pop("dynamic", "auto")
        self._variants = Variants(name_of(function), most, dynamic)
        specs = self._options.pop("input_signature", None)
        self._inputs = None if specs is None else import_module(SIGNATURES).InputSignature(specs)
        self._learnt: set[Any] = set()
        self._overlapping: Any = None  # an Overlapping
        self._spellings: dict[Any, Spelling] = {}
        self._lock = threading.RLock()
        self._dispatcher: Dispatcher | None = None
        thread_limit(self._options.get("threads"))
        serve(self, self._first)

    @property
    def __name__(self) -> str:
        return name_of(self.__wrapped__)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        own = getattr(instance, "__dict__", None)
        kept = None if own is None else own.get(self.kept_name)
        if kept is not None and kept.method.__wrapped__.__self__ is instance:
            return kept.method
        first = next(iter(self._signature.parameters), "")
        if own is None or first in self._static or flatten(instance)[1] is not ...:
            return MethodType(self, instance)
        method = MethodType(self.__wrapped__, instance)
        bound = _Method(method, self._static, (), self._given_options)
        own[self.kept_name] = _Kept(bound)
        return bound

    @property
    def kept_name(self) -> str:
        """The attribute in which an object keeps this function as its method."""
        return f"__jit_{id(self)}__"

    def __reduce__(self) -> Any:
        """Pickle as a pickler does a function: mostly by its name, if the name is this object's."""
        name = (
            getattr(self.__wrapped__, "__module__", ""),
            getattr(self.__wrapped__, "__qualname__", ""),
        )
        try:
            by_name = _named(*name) is self
        except (AttributeError, ImportError):
            by_name = False
        if by_name and not (name[0] == "__main__" and _pickles_main_by_value()):
            return _named, name
        return Function, (self.__wrapped__, sorted(self._static), (), self._given_options)

    def __deepcopy__(self, memory: Any) -> Function | None:
        wrapped = deepcopy(self.__wrapped__, memory)
        if wrapped is self.__wrapped__:  # a function, of which Python makes no copies either
            return self
        return Function(wrapped, self._static, (), self._given_options)

    def __repr__(self) -> str:
        return f"<stepwell.jit {self.__name__}{self._signature}>"

    @entrance
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments like these; nothing is compiled or run.

        Captured arrays become constants with their present values; a `sw.Variable` that the
        function assigns to is an argument and a result (`Compiled.update`).

        >>> import numpy as np, stepwell as sw
        >>> sw.jit(lambda x: x + 1).trace(np.ones(2)).compile()(np.ones(2))
        array([2., 2.])
        """
        return self._traced(self._take_apart(args, kwargs))

    def cache_info(self) -> CacheInfo:
        """Return how often the function was traced, and the reason of each trace but the first.

        >>> import numpy as np, stepwell as sw
        >>> f = sw.jit(lambda x: x + 1)
        >>> _ = f(np.ones(2)), f(np.ones(2)), f(np.ones((2, 2)))
        >>> f.cache_info().reasons
        ("argument 'x' is f64[2x2], was f64[2]; reshape it",)
        """
        return self._variants.info()

    def clear_cache(self) -> None:
        """Forget all programs: the next call of each signature is traced again.

        Compiled programs stay in the cache on disk.

        >>> import numpy as np, stepwell as sw
        >>> f = sw.jit(lambda x: x + 1)
        >>> _ = f(np.ones(2))
        >>> f.clear_cache()
        >>> f.cache_info().traces
        0
        """
        with self._lock:
            self._variants.clear()
            self._learnt.clear()
            self._overlapping = None
            self._spellings.clear()
            if self._dispatcher is not None:
                self._dispatcher.clear()

    @entrance
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return a report on the function's compilation for such arguments; it prints as text.

        It has arguments, guards, reasons of traces, ops, kernels, copies, times, and the calls that
        amortize compilation. The function runs a few times, also as plain Python, on copies.

        >>> import numpy as np, stepwell as sw
        >>> @sw.jit
        ... def norm(x):
        ...     return np.sqrt(np.sum(x * x))
        >>> found = norm.explain(np.ones(4))
        >>> found.traces, found.arguments, len(found.kernels), found.copies
        (1, ('x: tensor<4xf64>',), 1, ())
        """
        return import_module("stepwell.frontend.inspecting").explain(self, args, kwargs)

    @entrance
    def profile(self, *args: Any, repeat: int = 0, **kwargs: Any) -> Profile:
        """Return the time of each part of a call with such arguments; it prints as a table.

        repeat : how many calls are timed; 0 for about a second of them

        The parts are kernels, copies between them, checks and branches, and the call itself. Arrays
        that the function assigns to are copied first.

        >>> import numpy as np, stepwell as sw
        >>> found = sw.jit(lambda x, y: x @ y + 1).profile(np.ones((8, 8)), y=np.ones((8, 8)))
        >>> [kernel.kernel.flops for kernel in found.kernels]
        [1088]
        """
        inspecting = import_module("stepwell.frontend.inspecting")
        return inspecting.profile(self, args, kwargs, repeat)

    def found(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Call, Variant, list[Any]]:
        """Return the call, its program (compiled if it is new), and the arrays to pass to it."""
        call = self._take_apart(args, kwargs)
        variant, arrays = self._variants.get(call.key, call, self._tracer())
        return call, variant, [*call.leaves, *arrays]

    @entrance
    def _first(self, *args: Any, **kwargs: Any) -> Any:
        """Make the first call, which loads the runtime; the dispatcher serves all later ones."""
        prepare()  # compiles the extension concurrently
        result = self._miss(args, kwargs)
        with self._lock:
            self._dispatch()
        return result

    def _dispatch(self) -> Dispatcher:
        """Return the dispatcher; the first call waits for the extension."""
        if self._dispatcher is None:
            self._dispatcher = make_dispatcher(self._miss, self.takes_out)
            serve(self, self._dispatcher)
        return self._dispatcher

    @property
    def takes_out(self) -> bool:
        """Whether `out=` is for result arrays, rather than an argument of the function."""
        return "out" not in self._signature.parameters

    @entrance
    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call with arguments that match no program of the dispatcher."""
        if active_trace() is not None and has_traced(args, kwargs):
            return self.inlined(args, kwargs)
        out = kwargs.pop("out", None) if self.takes_out else None
        call = self._take_apart(args, kwargs)
        sizes = None if self._inputs is None else self._inputs.check(call)
        variant, arrays = self._variants.get(call.key, call, self._tracer(), sizes)
        if variant.program.dispatched:
            with self._lock:
                self._learn(variant, call, args, kwargs)
        given = [*call.leaves, *arrays]
        if effects := variant.effects:
            if out is not None:
                raise TypeError("out= is for functions that do not assign to their arguments")
            leaves = [*flatten(self._bind_data(call, args, kwargs))[0], *arrays]
            check_updated(effects, leaves)
            try:
                same = aliases(effects, given)
            except PartlyShared as error:
                if self._overlapping is None:
                    overlaps = import_module("stepwell.frontend.overlaps")
                    self._overlapping = overlaps.Overlapping(
                        self._signature, self._given_options, Function
                    )
                return self._overlapping.call(self.__wrapped__, call, leaves, error)
            if same:
                count = len(call.leaves)
                if list(same[count:]) != list(range(count, len(same))):
                    raise ValueError(passed_twice(effects, same, count))
                tracer = self._tracer(same[:count])
                variant, arrays = self._variants.get((call.key, same), call, tracer)
                effects = variant.effects
                given, leaves[count:] = [*call.leaves, *arrays], arrays
            results = list(variant.program.update(*given, donated=effects.donated))
            results[len(results) - len(effects.written) :] = [leaves[i] for i in effects.written]
            return unflatten(variant.tree, [results[k] for k in effects.places])
        if effects.donated and out is None:
            results = variant.program.update(*given, donated=effects.donated)
            return unflatten(variant.tree, warn_of_copies(effects, given, results, variant.program))
        result = variant.program(*given) if out is None else variant.program(*given, out=out)
        return unflatten(variant.tree, result if isinstance(result, tuple) else (result,))

    def _bind_data(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the non-static arguments, in the order in which a program takes them."""
        bound, _ = self._bind(args, kwargs)
        return [v for name, v in bound.arguments.items() if name not in call.static]

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inline the function into the traced function that calls it."""
        if self.takes_out and kwargs.get("out") is not None:
            raise TraceError("out= names arrays, but the call is part of a traced function")
        bound, static = self._bind(args, kwargs)
        plain: list[Tensor] = []
        for name, value in bound.arguments.items():
            if name not in static:
                leaves, tree = flatten(value)
                given = zip(paths(tree, name), leaves, strict=True)
                found = [lifted(path, leaf) for path, leaf in given]
                plain += [f for f, leaf in zip(found, leaves, strict=True) if f is not leaf]
                bound.arguments[name] = unflatten(tree, found)
        try:
            returned, tree = flatten(flowing.call(self.__wrapped__, *bound.args, **bound.kwargs))
        except RecursionError:
            raise TraceError(endless(self.__name__)) from None
        if any(value.stamp for value in plain):
            raise TraceError(
                f"'{self.__name__}' assigns to an array that is not part of the trace; "
                "make it in the traced function, or pass it to that as an argument"
            )
        return unflatten(tree, [result_of(value, f"'{self.__name__}'") for value in returned])

    def _learn(
        self, variant: Variant, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Register a program with the dispatcher for calls spelled like this one."""
        if variant.effects.apart:
            return
        how = len(args), tuple(kwargs), id(variant.outside)
        if (call.key, how) in self._learnt:
            return
        self._learnt.add((call.key, how))
        # calls of one spelling share the object, so that the dispatcher flattens their arguments
        # once
        alike = (*call.key[:2], how[:2], tuple(a.weak for a in call.arguments))
        spelled = self._spellings.get(alike) or spelling(self._signature, call, args, kwargs)
        if spelled is None:
            return
        self._spellings[alike] = spelled
        dispatcher = self._dispatch()
        tree, outside, effects = variant.tree, variant.outside, variant.effects
        if effects or is_reordered(tree):
            tree = placed(tree, effects.places if effects else range(leaf_count(tree)))
        how_built = dispatched(tree, results=True)
        watch, taken = outside.watch(), len(outside.types)
        dispatcher.add(variant.program.program, spelled, how_built, watch, taken, variant.sizes)

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[inspect.BoundArguments, set[str]]:
        """Return the arguments by name, and the names of static ones: those declared static,
        omitted ones with constant defaults, and texts, functions and the like.

        raises TraceError : a declared static argument is a traced value
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        left = self._defaults - bound.arguments.keys()
        bound.apply_defaults()
        for name in self._static & bound.arguments.keys():
            if has_traced((bound.arguments[name],), {}):
                raise TraceError(f"the static argument '{name}' is not known while tracing")
        no_data = {name for name, value in bound.arguments.items() if is_no_data(value)}
        return bound, self._static | left | no_data

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        bound, static = self._bind(args, kwargs)
        call = take_apart(bound, static)
        if self._inputs is not None and len(call.arguments) < len(self._inputs.specs):
            return take_apart(bound, self._static)  # the signature covers the defaults too
        return call

    def _traced_weights(self, call: Call) -> TracedWeights:
        """Return the fingerprints of weights that an earlier trace of such a call used."""
        code = getattr(inspect.unwrap(self.__wrapped__), "__code__", None)
        if code is None:
            return TracedWeights()
        return TracedWeights.of(code.co_filename, str(code.co_firstlineno), repr(call.arguments))

    def _tracer(self, same: tuple[int, ...] = ()) -> Tracer:
        return lambda call, known, general: self._traced(
            call, known, None if general else self._traced_weights(call), same, general
        )

    def _traced(
        self,
        call: Call,
        known: Known | None = None,
        traced_weights: TracedWeights | None = None,
        same: tuple[int, ...] = (),
        general: bool = False,
    ) -> Traced:
        return trace(
            self.__wrapped__,
            self._signature,
            call,
            self._options,
            known,
            traced_weights,
            same,
            general,
            checks=self._checks,
            donated=self._donated,
        )


def _pickles_main_by_value() -> bool:
    """Whether the pickler that asks sends functions of `__main__` to processes without them."""
    frame: Any = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame.f_globals.get("__name__") == "pickle" and frame.f_back is not None:
        frame = frame.f_back
    packages = frame.f_globals.get("__name__", "").split(".")
    return "cloudpickle" in packages or "dill" in packages  # joblib has a cloudpickle of its own


def _named(module: str, name: str) -> Any:
    """Return what a module calls ``name``."""
    return attrgetter(name)(import_module(module))


class _Method(Function):
    """A method bound to one object; it is pickled and copied as Python's bound methods are."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        owner, name = self._owner, self._attribute()
        return super().__reduce__() if name is None else (getattr, (owner, name))

    def __deepcopy__(self, memory: Any) -> Any:
        owner, name = self._owner, self._attribute()
        return (
            super().__deepcopy__(memory) if name is None else getattr(deepcopy(owner, memory), name)
        )

    @property
    def _owner(self) -> Any:
        """The object that it is bound to."""
        return cast(MethodType, self.__wrapped__).__self__

    def _attribute(self) -> str | None:
        """Return the attribute of its object that it is; None if it is none of them."""
        owner = self._owner
        kinds = (vars(kind).items() for kind in type(owner).__mro__)
        names = (n for items in kinds for n, v in items if isinstance(v, Function))
        return next((n for n in names if getattr(owner, n, None) is self), None)


class _Kept:
    """Holds a method in the object that it is bound to; copies of the object have none."""

    __slots__ = ("method",)

    def __init__(self, method: _Method) -> None:
        self.method = method

    def __reduce__(self) -> Any:
        return _Kept.nothing, ()

    @staticmethod
    def nothing() -> None:
        """Return nothing: a copy makes its own method when it needs one."""
