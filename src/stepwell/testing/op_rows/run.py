"""Runs a test row's program in the reference interpreter, on any floor."""

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
    """Return a context that knows every dialect, those of packages among them."""
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
    """Return what the row's program means."""
    return Interpreter(_program(case.module), case.row.resources).call("main", case.arguments)


@lru_cache(maxsize=64)
def _program(text: str) -> ModuleOp:
    """Return the module of a text, the same one for the cases of a row; nobody may change it."""
    return parsed(text)


def after(case: Case, *passes: Callable[[ModuleOp], None]) -> tuple[Array, ...]:
    """Return what the row's program computes once ``passes`` have rewritten it.

    Where integers have become signless, arguments and results are taken as the bits they are.
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
    """Return the arguments that have become of resources."""
    attributes = function.arg_attrs or ArrayAttr([])
    keys = [a.data["nd.resource"] for a in attributes if "nd.resource" in a.data]
    return [found[key.data] for key in keys if isinstance(key, StringAttr)]


def signed(array: Array) -> Array:
    """Return the bits of unsigned integers as signed ones."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _result_dtypes(case: Case) -> list[np.dtype[Any]]:
    return [np.asarray(r).dtype for r in reference(case)]


def as_declared(result: Any, wanted: np.dtype[Any]) -> Array:
    """Return a result of a lower floor, where integers are signless, as it was declared."""
    array = np.asarray(result)
    return array.view(wanted) if wanted.kind == "u" and array.dtype.kind == "i" else array
