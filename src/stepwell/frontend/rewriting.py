"""Rewrite the source of a function so that its control flow can be traced (note 041).

An ``if`` becomes a call of `flow.if_` with a function for each branch, which share the user's
variables; loops, ``and``, ``or``, ``not``, ``a < b < c``, ``x if c else y``, ``assert`` and calls
likewise. Lines, columns, the names of code and the file are those of the source.
"""

from __future__ import annotations

import ast
import linecache
from types import CellType, CodeType, FunctionType
from typing import Any

from stepwell.frontend.expressions import RUNTIME, Expressions, place
from stepwell.frontend.read_source import OUTER, Reads
from stepwell.frontend.reads import Outer
from stepwell.frontend.sources import DEFINED, compiled, definition, lambda_of
from stepwell.frontend.statements import Function
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import users_frame

_OUTPUTS: set[CodeType] = set()
"""Rewritten code."""
_REWRITTEN: dict[CodeType, CodeType | None] = {}
"""The rewritten code of functions; None for functions that are traced without rewriting."""


def is_rewritten(function: FunctionType) -> bool:
    """Whether the function was rewritten, or defined in one that was."""
    return function.__code__ in _OUTPUTS


def rewritten(function: FunctionType, runtime: Any) -> FunctionType:
    """Return ``function`` with its control flow rewritten; itself if that is impossible.

    The globals, defaults and cells are those of ``function``.
    """
    code = function.__code__
    if code in _OUTPUTS:
        return function
    if code not in _REWRITTEN:
        _REWRITTEN[code] = _code_of(function)
    created = _REWRITTEN[code]
    if created is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    outer = Outer(runtime, function.__globals__, dict(cells))
    cells[RUNTIME], cells[OUTER] = CellType(runtime), CellType(outer)
    closure = tuple(cells[name] for name in created.co_freevars)
    found = FunctionType(created, function.__globals__, function.__name__, None, closure)
    found.__defaults__, found.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    found.__qualname__, found.__module__ = function.__qualname__, function.__module__
    return found


def why_as_it_is() -> str:
    """Return why the user's function at the current line is not rewritten; "" if it is."""
    frame = users_frame()
    if frame is None or _REWRITTEN.get(frame.f_code, frame.f_code) is not None:
        return ""
    name, file = frame.f_code.co_name, frame.f_code.co_filename
    if not linecache.getlines(file, frame.f_globals):
        return (
            f"'{name}' has no source (it was made by exec, or typed in), so its control flow is "
            "traced as it is: write it in a file, or "
        )
    return f"the source of '{name}' cannot be rewritten, so its control flow is traced as it is: "


def _code_of(function: FunctionType) -> CodeType | None:
    if function.__code__.co_name == "<lambda>":
        body = _lambda_of(function)
    else:
        body = definition(function)
        if body is not None:
            Function(body).rewrite()
            body.decorator_list = []
            Reads().visit(body)
    if body is None:
        return None
    names = [RUNTIME, OUTER, *function.__code__.co_freevars]
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    statements: list[ast.stmt] = [body]
    if isinstance(body, ast.FunctionDef) and body.name not in names:
        # a function that calls itself by name refers to the module's object of that name
        statements.insert(0, ast.copy_location(ast.Global([body.name]), body))
    factory = ast.FunctionDef("factory", arguments, statements, [])
    module = ast.Module([ast.copy_location(factory, body)], [])
    try:
        (outer,) = _codes(compiled(module, function.__code__.co_filename))
    except SyntaxError:  # the rewritten text breaks Python's rules about names
        return None
    (created,) = [c for c in _codes(outer) if c.co_name == function.__code__.co_name]
    created = _renamed(created, created.co_qualname, function.__code__.co_qualname)
    _mark(created)
    return created


def _lambda_of(function: FunctionType) -> ast.stmt | None:
    """Return a statement with the rewritten lambda."""
    node = lambda_of(function)
    if node is None:
        return None
    node.body = place(Expressions(inside=1).visit(node.body), node.body)
    Reads().visit(node)
    return ast.copy_location(ast.Expr(node), node)


def _renamed(code: CodeType, now: str, name: str) -> CodeType:
    """Return code under its own name, without that of the factory.

    Code of branches and loop bodies is named after the enclosing function, for tracebacks.
    """
    qualified = name + code.co_qualname.removeprefix(now)
    own = [part for part in qualified.split(".") if part not in ("<locals>", *DEFINED)]
    inner = [_renamed(c, now, name) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_name=own[-1], co_qualname=qualified, co_consts=tuple(inner))


def _codes(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _mark(code: CodeType) -> None:
    _OUTPUTS.add(code)
    for inner in _codes(code):
        _mark(inner)


Tensor.operators["why_as_it_is"] = why_as_it_is
