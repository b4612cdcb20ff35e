"""Rewrite source so that reads of variables, attributes and items go through `reads.Outer`."""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import Any

from stepwell.frontend.expressions import is_handed
from stepwell.frontend.sources import single

OUTER = "__outer__"
"""The variable that holds the `Outer` in rewritten source."""


class Reads(ast.NodeTransformer):
    """Redirects the reads in rewritten source to an `Outer`."""

    def __init__(self) -> None:
        self.scopes: list[set[str]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Visit a function's body, with its own variables in scope."""
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        _visit_defaults(self, node.args)
        self.scopes.append(_bound(node.args, node.body))
        node.body = [each for s in node.body for each in self._statement(s)]
        self.scopes.pop()
        return node

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Visit a lambda, with its own variables in scope."""
        _visit_defaults(self, node.args)
        self.scopes.append(_bound(node.args, [node.body]))
        node.body = self.visit(node.body)
        self.scopes.pop()
        return node

    def _comprehension(self, node: Any) -> Any:
        self.scopes.append({n.id for g in node.generators for n in _stored(g.target)})
        self.generic_visit(node)
        self.scopes.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        """Leave a pattern unchanged."""
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:
        """Leave a pattern unchanged."""
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Any:
        """Leave a pattern unchanged."""
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """Leave calls of functions unchanged that inspect the caller's frame."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "storing":
            node.args = [self._part(a, True) for a in node.args]
            return node
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        """``x``."""
        return self._name(node, False) if isinstance(node.ctx, ast.Load) else node

    def _name(self, node: ast.Name, base: bool) -> ast.expr:
        if node.id.startswith("__") or node.id in ("True", "False", "None") or is_handed(node):
            return node
        if any(node.id in scope for scope in self.scopes):
            return node if base else _outer(node, "local", node)
        return _outer(node, "variable", ast.Constant(node.id), node, ast.Constant(base))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """``x.name``."""
        return self._part(node, False)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """``x[index]``."""
        return self._part(node, False)

    def _part(self, node: ast.expr, base: bool) -> ast.expr:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return self._name(node, base)
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return self.visit(node)
        if isinstance(node.value, ast.Name) and node.value.id.startswith("__"):
            return node
        node.value = self._part(node.value, True)
        if isinstance(node, ast.Subscript):
            if not isinstance(node.ctx, ast.Load):
                node.slice = self.visit(node.slice)
                return node
            index = self.visit(_as_value(node.slice))
            return _outer(node, "item", node.value, index, ast.Constant(base))
        if not isinstance(node.ctx, ast.Load):
            return node
        return _outer(node, "attribute", node.value, ast.Constant(node.attr), ast.Constant(base))

    def _assignment(self, node: Any) -> Any:
        given = node.targets if isinstance(node, ast.Assign) else [node.target]
        targets = [t for each in given for t in single(each)]
        attributes = [t for t in targets if isinstance(t, ast.Attribute)]
        checks = [
            ast.copy_location(
                ast.Expr(
                    _outer(
                        t,
                        "storing",
                        self._part(deepcopy(t.value), True),
                        ast.Constant(t.attr),
                        ast.Constant(isinstance(node, ast.AugAssign)),
                    )
                ),
                t,
            )
            for t in attributes
            if _is_path(t.value)
        ]
        self.generic_visit(node)
        return [*checks, node]

    visit_Assign = visit_AugAssign = _assignment

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """``x: T = value``: the annotation is not evaluated."""
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _outer(at: ast.AST, name: str, *arguments: ast.expr) -> ast.expr:
    function = ast.Attribute(ast.Name(OUTER, ast.Load()), name, ast.Load())
    created = ast.Call(function, list(arguments), [])
    for each in (function, function.value, *arguments):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, at)
    return ast.copy_location(created, at)


def _as_value(index: ast.expr) -> ast.expr:
    """Return an index as an expression that is valid outside of brackets."""
    if isinstance(index, ast.Slice):
        parts = [each or ast.Constant(None) for each in (index.lower, index.upper, index.step)]
        return _outer(index, "slice", *parts)
    if isinstance(index, ast.Tuple):
        index.elts = [_as_value(each) for each in index.elts]
    return index


def _visit_defaults(visitor: Reads, arguments: ast.arguments) -> None:
    arguments.defaults = [visitor.visit(d) for d in arguments.defaults]
    arguments.kw_defaults = [d and visitor.visit(d) for d in arguments.kw_defaults]


def _stored(node: ast.AST) -> list[ast.Name]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _bound(arguments: ast.arguments, body: list[Any]) -> set[str]:
    """Return the local variables of a function."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a]
    own, others = {a.arg for a in every}, set[str]()
    rest: list[ast.AST] = list(body)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            own.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, _COMPREHENSIONS):  # comprehensions have their own scope
            rest += [part for g in node.generators for part in (g.iter, *g.ifs)]
            rest += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.comprehension)]
            continue
        if isinstance(node, ast.Nonlocal | ast.Global):
            others |= set(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.alias):
            own.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            own.add(node.name)
        rest += ast.iter_child_nodes(node)
    return own - others
