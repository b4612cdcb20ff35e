"""Names of a traced function's results: the returned variables, dict keys and fields.

return k, p                  k, p
return {"loss": f(x)}        loss
return x @ w, state          "", state['mean'], state['count']
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import Any

from stepwell.frontend.pytree import Branch, Node, Tree, count, paths
from stepwell.frontend.sources import parsed_block


def result_names(function: Any, tree: Tree) -> list[str]:
    """Return a name for each leaf of a function's result; "" for a leaf without a name.

    If the function returns at several places, leaves whose names differ get none. The results of a
    function without source have no names.
    """
    code = getattr(function, "__code__", None)
    returned = list(_returned(code)) if isinstance(code, CodeType) else []
    found = [_names(tree, each) for each in returned or [None]]
    return [names[0] if len(set(names)) == 1 else "" for names in zip(*found, strict=True)]


def _returned(code: CodeType) -> Iterator[ast.expr]:
    """Yield the expressions that a function may return."""
    try:
        module, _ = parsed_block(code, linecache.getlines(code.co_filename))
    except (OSError, SyntaxError, ValueError, TypeError, IndexError):  # typed in, or not whole
        return
    found = [node for node in ast.walk(module) if _is_of(node, code)]
    if len(found) != 1:
        return
    node = found[0]
    if isinstance(node, ast.Lambda):
        yield node.body
    elif isinstance(node, ast.FunctionDef):
        yield from _returns(node.body)


def _is_of(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>"
    return isinstance(node, ast.FunctionDef) and node.name == code.co_name


def _returns(statements: list[Any]) -> Iterator[ast.expr]:
    """Yield the returned expressions of statements, without those of nested functions."""
    for statement in statements:
        if isinstance(statement, ast.Return):
            if statement.value is not None:
                yield statement.value
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.expr)]
            yield from _returns(inner)


def _names(tree: Tree, said: ast.expr | None) -> list[str]:
    if isinstance(said, ast.Name):
        return paths(tree, said.id)
    if not isinstance(tree, Branch):
        return [""] * count(tree)
    is_named = not isinstance(tree.kind, Node) and hasattr(tree.kind, "_fields")
    if tree.keys is not None or is_named:
        steps = tree.keys if tree.keys is not None else tree.kind._fields
        pairs = zip(steps, tree.children, strict=True)
        return [name for step, child in pairs for name in paths(child, str(step))]
    parts: list[Any] = [None] * len(tree.children)
    if isinstance(said, ast.Tuple | ast.List) and len(said.elts) == len(parts):
        parts = [None if isinstance(e, ast.Starred) else e for e in said.elts]
        if None in parts:
            parts = [None] * len(parts)
    return [
        name
        for child, part in zip(tree.children, parts, strict=True)
        for name in _names(child, part)
    ]
