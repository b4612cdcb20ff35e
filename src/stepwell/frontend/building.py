"""`Builder`: write a program of `nd` op by op, for frontends that import models."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.api.compiled import Compiled, compile
from stepwell.api.modules import ModuleText
from stepwell.core.diagnostics import CompileError, Diagnostic, Place
from stepwell.core.dtypes import DType
from stepwell.core.escape import literal
from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.frontend.promotion import as_dtype
from stepwell.frontend.spelling import Verbatim, fresh_name, properties_text, type_text
from stepwell.frontend.weights import kept


@dataclass(frozen=True, eq=False)
class Value:
    """A value of a program under construction.

    shape : sizes; None for a size known only at a call
    """

    text: str
    kind: DType
    sizes: Shape
    region: int

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes; None for a size known only at a call."""
        return tuple(None if n == DYNAMIC else n for n in self.sizes)

    @property
    def dtype(self) -> str:
        """The dtype's name: ``f32``, ``i64``, ``i1``."""
        return self.kind.name

    @property
    def type(self) -> str:
        """The type as text."""
        return type_text(self.kind, self.sizes)


class Builder:
    """A function of `nd` that is written op by op; each op is verified when it is written.

    Result types follow from the op's shape rule, sizes may be unknown, and errors are reported at
    the location in the model that `at` sets. Nothing is broadcast or promoted: a frontend
    implements the rules of its own language.

    function : the name of the function; the program's entry
    source : the model's name in messages and locations

    >>> import numpy as np
    >>> from stepwell.extending import Builder
    >>> b = Builder(source="model.json")
    >>> x = b.argument("x", np.float32, (None, 3))
    >>> with b.at(line=7):
    ...     y = b.op("nd.matmul", x, b.constant(np.ones((3, 2), np.float32), "w"))
    >>> y.shape
    (None, 2)
    >>> b.result(b.op("nd.tanh", y), "y")
    >>> b.compile()(np.zeros((1, 3), np.float32))
    array([[0., 0.]], dtype=float32)
    """

    def __init__(self, function: str = "main", source: str = "<model>") -> None:
        if not re.fullmatch(r"[A-Za-z_][\w.$]*", function, re.ASCII):
            raise ValueError(f"a function is named as a word, got {function!r}")
        self.function, self.source = function, source
        self._arguments: list[Value] = []
        self._results: list[tuple[Value, str]] = []
        self._resources: dict[str, NDArray[Any]] = {}
        self._names: dict[str, int] = {}
        self._lines: list[str] = []
        self._regions = [0]
        self._count = 0
        self._place: Place | None = None

    # the contents of a program

    def argument(self, name: str, dtype: Any, shape: Sequence[int | None]) -> Value:
        """Return an argument of the program; arguments are in the order of these calls.

        shape : None stands for a size known only at a call

        raises ValueError : a size is negative
        raises TraceError : the dtype is not supported
        """
        value = self._value(name, as_dtype(dtype), _sizes(shape))
        self._arguments.append(value)
        return value

    def constant(self, array: NDArray[Any], name: str = "constant") -> Value:
        """Return a constant: its array is stored beside the text, under ``name`` or a similar name.

        raises TraceError : the dtype is not supported
        """
        kind = as_dtype(array.dtype)
        array = kept(
            np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        )
        value = self._value(name, kind, array.shape)
        self._resources[key := value.text[1:]] = array
        attribute = Verbatim(f'#nd.resource<{literal(key)}, "">')
        self._line("nd.constant", (), [value], properties_text({"value": attribute}))
        return value

    def op(
        self,
        name: str,
        *operands: Value,
        regions: Sequence[str] = (),
        results: Sequence[tuple[Any, Sequence[int | None]]] | None = None,
        **attributes: Any,
    ) -> Any:
        """Write an op; return its result, or a tuple of results unless there is exactly one.

        name : ``dialect.op``, of `nd` or of a plug-in package
        regions : regions returned by `region`
        results : dtype and shape of each; by default the op's shape rule infers them
        attributes : numbers, text, dtypes, lists of integers

        raises CompileError : the op does not exist, or rejects its operands or attributes
        """
        spelled = properties_text(attributes)
        if results is None:
            types = tuple(value.type for value in operands)
            kinds = import_module("stepwell.core.dtypes").DTYPES
            try:
                found = import_module("stepwell.driver.inference").op_class(name)
                result_types = [(kinds[k], s) for k, s in found.infer(types, spelled)]
            except TypeError as error:
                raise self._error(str(error)) from None
        else:
            result_types = [(as_dtype(dtype), _sizes(shape)) for dtype, shape in results]
        self._check(name, operands)
        values = [self._value(name.rpartition(".")[2], kind, sizes) for kind, sizes in result_types]
        self._line(name, operands, values, spelled, regions)
        return values[0] if len(values) == 1 else tuple(values)

    def region(
        self,
        types: Sequence[tuple[Any, Sequence[int | None]]],
        body: Callable[..., Any],
        ends: str = "nd.yield",
    ) -> str:
        """Return a region for `op`, whose block has arguments of ``types``.

        body : takes the block's arguments, writes ops, and returns one or several values
        ends : the op that ends the block, with the values that ``body`` returns
        """
        outer, self._lines = self._lines, []
        self._count += 1
        self._regions.append(self._count)
        try:
            values = [self._value("arg", as_dtype(d), _sizes(s)) for d, s in types]
            given = body(*values)
            back: tuple[Value, ...] = given if isinstance(given, tuple) else (given,)
            self._check(ends, back)
            self._line(ends, back, ())
            head = ", ".join(f"{v.text}: {v.type}" for v in values)
            return "\n".join(["{", *([f"^bb0({head}):"] if values else []), *self._lines, "}"])
        finally:
            self._lines = outer
            self._regions.pop()

    def result(self, value: Value, name: str = "") -> None:
        """Return ``value`` from the program; results are in the order of these calls.

        raises CompileError : the value belongs to a region
        """
        self._check("the program", (value,))
        self._results.append((value, name))

    @contextmanager
    def at(self, line: int, column: int = 1, source: str = "") -> Generator[None]:
        """Set the location in the model of the ops written in this context; lines count from 1."""
        before, self._place = self._place, Place(source or self.source, line, column)
        try:
            yield
        finally:
            self._place = before

    # outputs

    def module(self) -> ModuleText:
        """Return the program as text, with its weights."""
        head = ", ".join(f"{v.text}: {v.type}" for v in self._arguments)
        types = ", ".join(
            f"{v.type} {{nd.name = {literal(name)}}}" if name else v.type
            for v, name in self._results
        )
        names = ", ".join(v.text for v, _ in self._results)
        plain = ", ".join(v.type for v, _ in self._results)
        back = f"func.return {names} : {plain}" if self._results else "func.return"
        lines = [f"func.func @{self.function}({head}) -> ({types}) {{", *self._lines, back, "}", ""]
        return ModuleText("\n".join(lines), self.source, self._resources)

    def compile(self, **options: Any) -> Compiled:
        """Compile the program.

        options : as in `sw.compile`
        """
        return compile(self.module(), self.function, **options)

    # spelling

    def _value(self, stem: str, kind: DType, sizes: Shape, region: int | None = None) -> Value:
        return Value(
            fresh_name(self._names, stem),
            kind,
            sizes,
            self._regions[-1] if region is None else region,
        )

    def _line(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        properties: str = "",
        regions: Sequence[str] = (),
    ) -> None:
        gives = ", ".join(v.text for v in results)
        takes = ", ".join(v.text for v in operands)
        inputs, outputs = (", ".join(v.type for v in some) for some in (operands, results))
        bodies = f" ({', '.join(regions)})" if regions else ""
        at = self._place
        where = f" loc({literal(at.file)}:{at.line}:{at.column})" if at else ""
        self._lines.append(
            f'{gives}{" = " if gives else ""}"{name}"({takes}){properties}{bodies}'
            f" : ({inputs}) -> ({outputs}){where}"
        )

    def _check(self, user: str, values: Sequence[Value]) -> None:
        """Refuse values that are out of scope where they are used."""
        for value in values:
            if value.region not in self._regions:
                message = f"{user} uses {value.text}, which is of a region that has ended"
                raise self._error(message)

    def _error(self, message: str) -> CompileError:
        return CompileError(Diagnostic("error", message, self._place))


def _sizes(shape: Sequence[int | None]) -> Shape:
    if any(n is not None and n < 0 for n in shape):
        raise ValueError(f"a size is a number from 0 on, or None, got {tuple(shape)}")
    return tuple(DYNAMIC if n is None else int(n) for n in shape)
