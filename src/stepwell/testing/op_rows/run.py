"""Run a test row's program in the reference interpreter, on any floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.traits import SymbolTable

from stepwell.core.plugins import named
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.driver.registry import registry
from stepwell.testing.op_rows.row import Array, Case

assert upstream, "imported for its rules"


def context() -> Context:
    """Return a context with every dialect, including those of packages."""
    return _context(named())


@cache
def _context(plugins: tuple[str, ...]) -> Context:
    assert plugins == named(), "the key of the cache"
    return registry().context()


def parsed(text: str) -> ModuleOp:
    """Return the verified module of a text."""
    module = Parser(context(), text).parse_module()
    module.verify()
    return module


def reference(case: Case) -> tuple[Array, ...]:
    """Return the reference results of the row's program."""
    return Interpreter(_program(case.module), case.row.resources).call("main", case.arguments)


@lru_cache(maxsize=64)
def _program(text: str) -> ModuleOp:
    """Return the module of a text, shared by the cases of a row, which must not change it."""
    return parsed(text)


def after(case: Case, *passes: Callable[[ModuleOp], None]) -> tuple[Array, ...]:
    """Return the results of the row's program after ``passes`` have rewritten it.

    Where integers have become signless, arguments and results are passed as their bits.
    """
    module = parsed(case.module)
    for each in passes:
        each(module)
    module.verify()
    function = SymbolTable.lookup_symbol(module, "main")
    assert isinstance(function, FuncOp)
    arguments = [*map(signed, case.arguments), *resources(function, case.row.resources)]
    results = Interpreter(module).call("main", arguments)
    return tuple(as_declared(r, w) for r, w in zip(results, _result_dtypes(case), strict=True))


def resources(function: FuncOp, found: Mapping[str, Array]) -> Sequence[Array]:
    """Return the arguments that resources have become."""
    attributes = function.arg_attrs or ArrayAttr([])
    keys = [a.data["nd.resource"] for a in attributes if "nd.resource" in a.data]
    return [found[key.data] for key in keys if isinstance(key, StringAttr)]


def signed(array: Array) -> Array:
    """Return the bits of unsigned integers as signed ones."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _result_dtypes(case: Case) -> list[np.dtype[Any]]:
    return [np.asarray(r).dtype for r in reference(case)]


def as_declared(result: Any, wanted: np.dtype[Any]) -> Array:
    """Return a result of a lower floor, where integers are signless, in its declared dtype."""
    array = np.asarray(result)
    return array.view(wanted) if wanted.kind == "u" and array.dtype.kind == "i" else array
