"""Ops of other packages under `sw.jit`: called by name, or defined by a Python function.

The class of a plug-in's op infers its result types, so the first trace that calls one imports xDSL.
An op that a function defines needs no xDSL: tracing the function on scalars gives the result type.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from stepwell.core.dtypes import DTYPES, DType
from stepwell.core.plugins import define
from stepwell.frontend.facade import Held
from stepwell.frontend.promotion import lift, together
from stepwell.frontend.spelling import properties_text, type_text
from stepwell.frontend.statics import key_of
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.traced import function_text
from stepwell.frontend.tracing import Trace, active_trace, current_trace, tracing


def op(name: str) -> Callable[..., Any]:
    """Return the op ``name`` of a plug-in as a function of arrays, for `sw.jit`.

    Outside of a jitted function it is compiled at its first call.

    Its arguments are the op's operands (traced values, arrays, numbers); those of an elementwise
    op are broadcast together and promoted to one dtype. Keywords are its attributes: numbers,
    text, lists of integers. It returns one traced value, or a tuple if the op has several
    results.

    name : ``dialect.op``, of an installed package, of `plugins` or of a `sw.Dialect`

    raises TypeError : the op does not exist, has no shape rule, or rejects its operands

    >>> import numpy as np, stepwell as sw
    >>> negative = sw.op("nd.neg")
    >>> sw.jit(lambda x: negative(x) + 1)(np.float32([1, -2]))
    array([0., 3.], dtype=float32)
    """
    if not re.fullmatch(r"\w+(\.\w+)+", name):
        raise ValueError(f"an op is named as dialect.op, got {name!r}")

    def call(*operands: Any, **attributes: Any) -> Any:
        if (trace := active_trace()) is None:
            return _outside(call, operands, attributes)
        kind = import_module("stepwell.driver.inference").op_class(name)
        values = together(*operands) if kind.elementwise else [lift(v) for v in operands]
        types = tuple(type_text(v.kind, v.shape) for v in values)
        found = kind.infer(types, properties_text(attributes))
        results = [(DTYPES[dtype], shape) for dtype, shape in found]
        emitted = trace.emit(name, values, results, (), **attributes)
        return emitted[0] if len(emitted) == 1 else emitted

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"Return the results of the op ``{name}``."
    return call


def _outside(call: Callable[..., Any], operands: Sequence[Any], attributes: Any) -> Any:
    """Return the results of an op outside of a trace, compiled once for its attributes."""
    keys = tuple((name, key_of(attributes[name])) for name in sorted(attributes))
    return _jitted(call, keys, Held((attributes,)))(*operands)


@cache
def _jitted(call: Callable[..., Any], keys: Any, attributes: Held) -> Any:
    from stepwell.frontend.jit import jit

    def function(*operands: Any) -> Any:
        return call(*operands, **attributes.values[0])

    function.__name__ = call.__name__
    return jit(function, max_traces=None)


class Dialect:
    """A dialect whose ops are defined by Python functions; every tool can use them.

    name : the prefix of its ops in text: ``acme.softsign``

    In this process `sw.jit` and `sw.compile` know the dialect at once. Tools load it by ``--plugin
    MODULE:NAME``; an installed package registers it by an entry point that names its `universe`.

    >>> import numpy as np, stepwell as sw, stepwell.numpy as snp
    >>> acme = sw.Dialect("acme_example")
    >>> @acme.elementwise
    ... def softsign(x):
    ...     '''``y = x / (1 + |x|)``.'''
    ...     return x / (1 + snp.abs(x))
    >>> sw.jit(lambda x: softsign(x))(np.float32([1, -3]))
    array([ 0.5 , -0.75], dtype=float32)
    """

    all_passes: Mapping[str, Any] = {}
    all_targets: Mapping[str, Any] = {}

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"[a-z]\w*", name):
            raise ValueError(f"a dialect is named in lower case letters, got {name!r}")
        self.name = name
        self._ops: dict[str, _Defined] = {}
        define(self)

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The functions that define its ops, sorted by name."""
        return [self._ops[name].function for name in sorted(self._ops)]

    @property
    def all_dialects(self) -> dict[str, Callable[[], Any]]:
        """The dialect's loader by name, as in a universe of xDSL."""
        return {self.name: self._load}

    @property
    def universe(self) -> Any:
        """The dialect as a `Universe` of xDSL, for the entry point ``xdsl.universe``."""
        return import_module("xdsl.universe").Universe(all_dialects=self.all_dialects)

    def _load(self) -> Any:
        ops = [each.kind for each in self._ops.values()]
        return import_module("xdsl.ir").Dialect(self.name, ops)

    def elementwise(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Define an op by a scalar function that calls `stepwell.numpy`, `nn` and other ops.

        Its positional parameters are the op's operands. Keyword-only ones, which have a number or
        a text as default, are its attributes. Its docstring documents the op.

        Returns a function of arrays, for `sw.jit`: arguments are broadcast together and promoted
        to one dtype; the result has the dtype that ``function`` returns. Outside of a jitted
        function it is compiled at its first call.

        raises TypeError : a parameter is of another kind, or its default is
        """
        defined = _Defined(f"{self.name}.{function.__name__}", function)
        self._ops[function.__name__] = defined

        def call(*operands: Any, **numbers: Any) -> Any:
            if active_trace() is None:
                return _outside(call, operands, numbers)
            return defined(*operands, **numbers)

        call.__name__ = call.__qualname__ = function.__name__
        call.__doc__, call.__module__ = function.__doc__, function.__module__
        call.__wrapped__ = function  # pyright: ignore[reportFunctionMemberAccess]
        return call


class _Defined:
    """An elementwise op and the scalar function that defines it."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.operands: list[str] = []
        self.numbers: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self.operands.append(parameter.name)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                self.numbers[parameter.name] = parameter.default
            else:
                raise TypeError(f"{name}: an op has no *{parameter.name}")
        if not self.operands:
            raise TypeError(f"{name}: an elementwise op has an operand, so give it a parameter")
        for key, default in self.numbers.items():
            if not isinstance(default, bool | int | float | str):
                raise TypeError(f"{name}: the attribute '{key}' needs a number or text as default")
        self._traced: dict[Any, tuple[str, DType]] = {}

    def __call__(self, *operands: Any, **numbers: Any) -> Tensor:
        if len(operands) != len(self.operands):
            wanted = ", ".join(self.operands)
            raise TypeError(f"{self.name} takes ({wanted}), got {len(operands)} arguments")
        given = {key: self._attribute(key, value) for key, value in numbers.items()}
        values = together(*operands)
        _, kind = self.scalar([v.kind for v in values], {**self.numbers, **given})
        return current_trace().emit(self.name, values, [(kind, values[0].shape)], (), **given)[0]

    def _attribute(self, key: str, value: Any) -> Any:
        if key not in self.numbers:
            known = ", ".join(self.numbers) or "none"
            raise TypeError(f"{self.name} has no attribute '{key}': it has {known}")
        kind = type(self.numbers[key])
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if type(value) is not kind:
            got = value if isinstance(value, Tensor) else repr(value)
            raise TypeError(f"{self.name}: the attribute '{key}' is {kind.__name__}, not {got}")
        return value

    def scalar(self, kinds: Sequence[DType], numbers: Mapping[str, Any]) -> tuple[str, DType]:
        """Return the function as text for scalars of these dtypes, and its result's dtype."""
        key = (*kinds, *((k, type(v), v) for k, v in sorted(numbers.items())))
        if (known := self._traced.get(key)) is not None:
            return known
        trace = Trace(self.name)
        inputs = [trace.argument(n, k, ()) for n, k in zip(self.operands, kinds, strict=True)]
        with tracing(trace):
            result = lift(self.function(*inputs, **numbers))
        if result.shape:
            raise TypeError(f"{self.name} must give one number for one number, got {result!r}")
        text = function_text("main", inputs, [result], trace.lines, self.function)
        found = self._traced[key] = text, result.kind
        return found

    @cached_property
    def kind(self) -> Any:
        """The xDSL class of the op."""
        parsed: dict[str, Any] = {}

        def scalar(kinds: Sequence[DType], numbers: Mapping[str, Any]) -> Any:
            text, _ = self.scalar(kinds, {**self._flags(), **numbers})
            if text not in parsed:
                context = import_module("stepwell.driver.registry").registry().context()
                parse = import_module("stepwell.dialects.parsing").parse_module
                parsed[text] = parse(context, text, self.function.__code__.co_filename)
            return parsed[text]

        make = import_module("stepwell.dialects.nd.defined").define
        module = self.function.__module__ or "__main__"  # None in an interactive session
        about = inspect.getdoc(self.function) or "", module
        return make(self.name, self.operands, self.numbers, scalar, about)

    def _flags(self) -> dict[str, bool]:
        """Return the flags as False: an op without the attribute has the flag off."""
        return {key: False for key, default in self.numbers.items() if isinstance(default, bool)}
