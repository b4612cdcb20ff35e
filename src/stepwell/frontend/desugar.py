"""Lower statements to simpler ones before a function is rewritten."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from stepwell.frontend.expressions import name_of, place, runtime, set_to
from stepwell.frontend.sources import may_leave


class Desugar(ast.NodeTransformer):
    """Rewrites statements of one function: ``match``, ``del``, ``x: T``, ``:=`` in a ``while``."""

    def __init__(self, first: str) -> None:
        """Rewrite a function whose first parameter is ``first``, "" for none."""
        self.first = first
        self.subjects = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Skip nested functions: they are rewritten separately."""
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Skip nested functions."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Skip nested classes: their methods are rewritten separately."""
        return node

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Rewrite ``del x``, which unbinds the variable."""
        found: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.append(set_to(target.id, runtime("Undefined", ast.Constant(target.id))))
            else:
                found.append(ast.Delete([target]))
        return [place(ast.copy_location(f, node), node) for f in found]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Rewrite ``x: T = value`` to ``x = value``: nonlocal variables cannot be annotated."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Pass ``super()`` the first parameter of the function that contains it."""
        self.generic_visit(node)
        bare = isinstance(node.func, ast.Name) and node.func.id == "super"
        if bare and self.first and not node.args:
            node.args = [place(name_of(n), node) for n in ("__class__", self.first)]
        return node

    def visit_While(self, node: ast.While) -> Any:
        """Rewrite ``while (x := f()) > 0``: move the test into the body, where it binds."""
        self.generic_visit(node)
        if not any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            return node
        if may_leave(node.orelse, ast.Break) or may_leave(node.orelse, ast.Continue):
            return node
        asked = ast.If(ast.UnaryOp(ast.Not(), node.test), [*node.orelse, ast.Break()], [])
        loop = ast.While(ast.Constant(True), [place(asked, node.test), *node.body], [])
        return place(ast.copy_location(loop, node), node)

    def visit_Match(self, node: ast.Match) -> Any:
        """Lower a ``match`` over values to ``if`` statements; other patterns inspect objects."""
        self.generic_visit(node)
        if not all(_is_plain(case.pattern) for case in node.cases):
            return node
        subject = f"__subject{self.subjects}__"
        self.subjects += 1
        first = ast.copy_location(set_to(subject, node.subject), node)
        return [place(first, node), *self._cases(node.cases, subject, node)]

    def _cases(self, cases: Sequence[ast.match_case], subject: str, at: ast.Match) -> list[Any]:
        if not cases:
            return []
        case, *rest = cases
        head: list[ast.stmt] = []
        if isinstance(case.pattern, ast.MatchAs) and case.pattern.name:
            head.append(set_to(case.pattern.name, name_of(subject)))
        tests = [_test(case.pattern, subject), *([case.guard] if case.guard else [])]
        tests = [t for t in tests if t is not None]
        if not tests:
            return [place(s, case.body[0]) for s in (*head, *case.body)]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        found = ast.If(test, case.body, self._cases(rest, subject, at))
        return [place(s, case.pattern) for s in (*head, found)]


def _is_plain(pattern: ast.pattern) -> bool:
    """Whether a pattern only compares its subject with values, or captures it."""
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton():
            return True
        case ast.MatchOr():
            return all(isinstance(p, ast.MatchValue | ast.MatchSingleton) for p in pattern.patterns)
        case ast.MatchAs():
            return pattern.pattern is None
        case _:
            return False


def _test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    match pattern:
        case ast.MatchValue():
            return ast.Compare(name_of(subject), [ast.Eq()], [pattern.value])
        case ast.MatchSingleton():
            return ast.Compare(name_of(subject), [ast.Is()], [ast.Constant(pattern.value)])
        case ast.MatchOr():
            tests = [t for p in pattern.patterns if (t := _test(p, subject)) is not None]
            return ast.BoolOp(ast.Or(), tests)
        case _:
            return None
