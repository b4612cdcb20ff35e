"""The result of tracing: a function as `nd` text, and its lowered stages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from stepwell.api.compiled import Compiled, compile, compile_for_call
from stepwell.api.modules import ModuleText
from stepwell.core.dtypes import DType, dtype_of
from stepwell.core.escape import literal
from stepwell.core.shapes import Shape
from stepwell.frontend import flowing
from stepwell.frontend.calls import Argument, Call
from stepwell.frontend.captures import Captures
from stepwell.frontend.effects import Effects, effects_of
from stepwell.frontend.errors import TraceError
from stepwell.frontend.outside import Array, Outside
from stepwell.frontend.promotion import fresh, full, lift
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten, with_leaves
from stepwell.frontend.result_names import result_names
from stepwell.frontend.spelling import type_text
from stepwell.frontend.standalone_variables import Alone
from stepwell.frontend.state.donation import donations
from stepwell.frontend.state.variables import A_VARIABLE, TracedVariable
from stepwell.frontend.tensor import Partial, Tensor
from stepwell.frontend.tracing import Trace, current_trace, tracing
from stepwell.frontend.transformations.residuals import Later, Second, with_residuals
from stepwell.frontend.transformations.zero import without_zeros
from stepwell.frontend.weights import is_frozen
from stepwell.frontend.window_reductions import UNRETURNABLE
from stepwell.runtime.weights import TracedWeights

Known: TypeAlias = Callable[[str, Array], bool]
"""Whether the captured array of that name is known by its content: it is then a constant."""


@dataclass(frozen=True)
class Traced:
    """A function as `nd` text, for one signature."""

    module: ModuleText
    entry: str
    out_tree: Tree
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The compile options given to `jit`."""
    effects: Effects = field(default_factory=Effects)
    """The arguments that the function assigns to: their new contents are further results."""
    results: tuple[tuple[DType, Shape], ...] = ()
    """The types of the program's results."""
    outside: Outside = field(default_factory=Outside)
    """The captured state; captured arrays are the last arguments of the program."""
    later: Later | None = None
    """The second program, which computes with the residuals that this one keeps."""

    def built_by(self, program: Compiled) -> Tree:
        """Return the tree that the results of its program are built by."""
        if self.later is None:
            return self.out_tree
        second = Second(program, self.module, self.entry, self.options, self.later)
        return with_residuals(self.out_tree, len(self.results) - len(self.later.results), second)

    def lower(self, stage: str = "loops") -> Lowered:
        """Return the module as it is after ``stage``: nd, structured, kernels, buffers, loops."""
        return Lowered(self, self.compile().text(stage))

    def compile(self, **options: Any) -> Compiled:
        """Return the compiled program; it takes and returns flat arrays.

        options : as in `sw.compile`; they override those given to `jit`
        """
        return compile(self.module, self.entry, **{**self.options, **options})

    def compile_for(self, call: Call) -> Compiled:
        """Return a program that runs a call, compiled further by calls with sizes that need it."""
        shapes = [argument.shape for argument in call.arguments]
        shapes += [array.shape for array in self.outside.arrays]
        return compile_for_call(self.module, self.entry, shapes, **self.options)

    def __str__(self) -> str:
        """Return the trace in the custom syntax of `nd`."""
        parse = import_module("stepwell.dialects.parsing").parse_module
        context = import_module("stepwell.driver.registry").registry().context()
        module = parse(context, self.module.text, self.module.name)
        return import_module("stepwell.dialects.printing").text_of(module)


@dataclass(frozen=True)
class Lowered:
    """A function at one of the levels below `nd`."""

    traced: Traced
    text: str

    def compile(self, **options: Any) -> Compiled:
        """Return the compiled program."""
        return self.traced.compile(**options)

    def __str__(self) -> str:
        return self.text


def function_text(
    entry: str,
    inputs: Sequence[Tensor],
    results: Sequence[Tensor],
    lines: Sequence[str],
    function: Callable[..., Any],
    called: Sequence[str] = (),
    into: Mapping[int, int] | None = None,
    attributes: str = "",
) -> str:
    """Return a trace as the text of a function.

    called : names of the results; empty where a result has none
    into : the argument that a result replaces, whose memory it may take
    attributes : the attributes of the function, as text
    """
    head = ", ".join(f"{t.name}: {type_text(t.kind, t.shape)}" for t in inputs)
    types = ", ".join(type_text(t.kind, t.shape) for t in results)
    names = ", ".join(t.name for t in results)
    back = f"  func.return {names} : {types}" if results else "  func.return"
    code = getattr(inspect.unwrap(function), "__code__", None)
    at = f" loc({literal(code.co_filename)}:{code.co_firstlineno}:1)" if code else ""
    called = called or [""] * len(results)
    shown = [
        _result_type(type_text(t.kind, t.shape), n, (into or {}).get(k))
        for k, (t, n) in enumerate(zip(results, called, strict=True))
    ]
    returns = f"({', '.join(shown)})" if len(shown) != 1 or "{" in shown[0] else shown[0]
    return "\n".join(
        [f"func.func @{entry}({head}) -> {returns}{attributes} {{", *lines, f"{back}{at}", "}", ""]
    )


def _result_type(type: str, name: str, into: int | None) -> str:
    """Return the type of a result with its attributes: a name (plain names only), a donation."""
    attributes = [f'nd.name = "{name}"'] if _PLAIN.fullmatch(name) else []
    attributes += [f"nd.into = {into} : i64"] if into is not None else []
    return f"{type} {{{', '.join(attributes)}}}" if attributes else type


_PLAIN = re.compile(r"[\w.'\[\]-]{1,60}", re.ASCII)


def endless(name: str) -> str:
    """Return the message that tracing a function does not end."""
    return (
        f"'{name}' calls itself, and nothing known while tracing ends that; "
        "name the argument that ends it in static_argnames"
    )


def trace(
    function: Callable[..., Any],
    signature: inspect.Signature,
    call: Call,
    *args: Any,
    **kwargs: Any,
) -> Traced:
    """Trace a function, as `_once` does.

    `f.trace` traces again if the function assigns to variables from outside.
    """
    return Alone().traced(lambda alone: _once(function, signature, call, alone, *args, **kwargs))


def _once(
    function: Callable[..., Any],
    signature: inspect.Signature,
    call: Call,
    alone: Alone,
    options: Mapping[str, Any],
    known: Known | None = None,
    traced_weights: TracedWeights | None = None,
    same: tuple[int, ...] = (),
    general: bool = False,
    checks: Mapping[str, Any] = MappingProxyType({}),
    donated: Collection[str] = (),
) -> Traced:
    """Trace a function.

    alone : the variables that the function assigns to, for `f.trace`
    known : which captured arrays are known by their content; without it captured arrays are
        constants with their present content, except for these variables
    same : for each argument the first one that is the same array
    donated : arguments whose memory results may take
    general : whether the text is for any size: ops compute arrays that NumPy made from a size
    """
    name, where = name_of(function), _where(function)[0]
    written = Trace(name, traced_weights=traced_weights or TracedWeights(), **checks)
    written.computed = _op_of_size if general else None
    captures = written.captures = Captures(written, known) if known else None
    written.standing = None if known else alone.begin(written)
    inputs = [_argument(written, a, where) for a in call.arguments]
    head = [fresh(value) for value in inputs]
    for value, argument in zip(inputs, call.arguments, strict=True):
        value.weak, value.cell = argument.weak, argument.cell
    with tracing(written):
        if captures is not None:
            _record_roots(captures, function, call)
        result = _run(function, signature, call, [inputs[k] for k in same] or inputs)
        returned, tree = without_zeros(*flatten(result))
        results = [result_of(value, f"'{name}' at {where}") for value in returned]
        outside = _outside(written, results)
        inputs += [after for after, _ in outside.inputs]
        head += [before for _, before in outside.inputs]
        effects, results = effects_of(
            [*(a.path for a in call.arguments), *outside.names], inputs, returned, results
        )
        results = [written.solid(value) for value in results]
        given = _donated_arrays(call, donated) if not same else []
        effects = donations(effects, head, results, given, written.lines)
    called = dict(zip(effects.places, result_names(function, tree), strict=False))
    names = [called.get(k, "") for k in range(len(results))] if called else []
    first = len(results) - len(effects.written)
    into = dict([*enumerate(effects.written, first), *effects.donated])
    if (later := written.later) is not None:
        head, results = [*head, *later.arguments], [*results, *later.results]
    entry = _entry(name)
    module = _module(written, entry, head, results, function, names, into)
    types = tuple((value.kind, value.shape) for value in results)
    built = _with_variables(tree, returned, inputs)
    seen = replace(effects, apart=written.apart)
    return Traced(module, entry, built, options, seen, types, outside, later)


def _run(
    function: Callable[..., Any],
    signature: inspect.Signature,
    call: Call,
    inputs: Sequence[Tensor],
) -> Any:
    """Run a function on the tensors of its arguments, and check that it keeps their containers."""
    rest = iter(inputs)
    values, handed = dict(call.static), dict[str, list[Tensor]]()
    for argument, tree in call.trees:
        handed[argument] = [next(rest) for _ in paths(tree, argument)]
        values[argument] = unflatten(tree, handed[argument])
    bound = signature.bind_partial()
    bound.arguments = {n: values[n] for n in signature.parameters if n in values}
    try:
        result = flowing.call(function, *bound.args, **bound.kwargs)
    except RecursionError:
        raise TraceError(endless(name_of(function))) from None
    for argument, tree in call.trees:
        _check_unchanged(argument, values[argument], tree, handed[argument], name_of(function))
    return result


def _module(
    written: Trace,
    entry: str,
    head: Sequence[Tensor],
    results: Sequence[Tensor],
    function: Callable[..., Any],
    names: Sequence[str],
    into: Mapping[int, int],
) -> ModuleText:
    """Return a trace as a module, with its weights."""
    attributes = written.later.text if written.later is not None else ""
    names = [*names, *[""] * (len(results) - len(names))]
    text = function_text(entry, head, results, written.lines, function, names, into, attributes)
    code = _where(function)[1]
    file = inspect.getsourcefile(code) if code is not None else None
    traced_weights = written.traced_weights
    return ModuleText(
        text, file or "<python>", written.resources, hashed=True, traced_weights=traced_weights
    )


def _where(function: Callable[..., Any]) -> tuple[str, Any]:
    """Return the line of a function, for messages, and its code; None if it has none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "", code


def _donated_arrays(call: Call, donated: Collection[str]) -> list[int]:
    """Return the numbers of the arrays in donated arguments; variables are never donated."""
    owners = [name for name, tree in call.trees for _ in paths(tree, name)]
    pairs = enumerate(zip(owners, call.arguments, strict=True))
    return [i for i, (owner, argument) in pairs if owner in donated and not argument.variable]


def _argument(written: Trace, argument: Argument, where: str) -> Tensor:
    """Return a new tensor for an argument of the function."""
    of = TracedVariable if argument.variable else Tensor
    created = written.argument(argument.path, argument.kind, argument.shape, where, of)
    if isinstance(created, TracedVariable):
        created.called = argument.path
    return created


def _entry(name: str) -> str:
    """Return the name of the function in the text."""
    entry = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    return entry if entry and not entry[0].isdigit() else f"function{entry}"


def _op_of_size(array: Any) -> Tensor | None:
    """Return an array as an op of its size: a fill or an iota; None if it is neither."""
    kind = dtype_of(array.dtype.newbyteorder("="))
    if kind is None or array.size < 2 or is_frozen(array):
        return None
    ends = array.flat[0].tobytes(), array.flat[-1].tobytes()
    if ends[0] == ends[1]:
        uniform = array.tobytes() == ends[0] * array.size
        return full(array.shape, array.flat[0].item(), kind) if uniform else None
    if array.ndim != 1 or kind.kind not in ("signed", "float") or kind.bytes < 4:
        return None
    first, step = array[0].item(), array[1].item() - array[0].item()
    numbers = np.arange(len(array), dtype=array.dtype)
    if not np.array_equal(array, numbers * step + first):
        return None
    if kind.kind == "float" and (first, step) != (0, 1):
        return None  # the op would round in another order
    found = current_trace().emit("iota", (), [(kind, array.shape)], (), axis=0)[0]
    return found if (first, step) == (0, 1) else found * step + first


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function."""
    return getattr(function, "__name__", "function")


def _record_roots(captures: Captures, function: Any, call: Call) -> None:
    """Record the objects whose attributes are read: the function, its self, static arguments."""
    while hasattr(type(function), "inlined"):  # transformed or jitted functions
        function = function.__wrapped__
    owner = getattr(function, "__self__", None)
    if isinstance(function, partial):
        captures.hold(function, name_of(function))
    elif owner is None:
        captures.root(function, name_of(function))
    else:
        captures.root(owner, "self")
    for name, value in call.static.items():
        captures.root(value, name)


def _outside(written: Trace, results: Sequence[Tensor]) -> Outside:
    if written.captures is None:
        return written.standing.outside()
    named = " ".join(f"{value.name} " for value in results)
    return written.captures.finished(" ".join([*written.lines, named]))


def result_of(value: Any, function: str) -> Tensor:
    """Return a result of the user's function as a tensor."""
    if isinstance(value, Partial):
        raise TraceError(f"{function} returned {UNRETURNABLE}")
    try:
        return current_trace().solid(lift(value))
    except TypeError as error:
        if isinstance(error, TraceError):
            raise
        raise TypeError(
            f"a traced function returns arrays, in tuples, lists or dicts; "
            f"{function} returned {value!r}"
        ) from None


def _with_variables(tree: Tree, returned: Sequence[Any], inputs: Sequence[Tensor]) -> Tree:
    """Return the result tree, with a marker at each leaf that is a variable passed to the call."""
    own = {id(t) for t in inputs if isinstance(t, TracedVariable)}
    if not any(id(value) in own for value in returned):
        return tree
    return with_leaves(tree, iter([A_VARIABLE if id(v) in own else ... for v in returned]))


def _check_unchanged(
    name: str, value: Any, tree: Tree, handed: Sequence[Tensor], function: str
) -> None:
    """Refuse a function that replaces entries of a dict or list argument.

    Tracing passes the function a copy of the container: the caller's would not change.
    """
    leaves, now = flatten(value)
    if now != tree or any(a is not b for a, b in zip(leaves, handed, strict=True)):
        raise TraceError(
            f"'{function}' puts something else into its argument '{name}', which the caller would "
            f"not see: return what it becomes, or assign to the array, as in {name}[...][:] = value"
        )
