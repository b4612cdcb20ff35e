"""Rewrite expressions (note 041): their conditions and calls go through `frontend.flowing`.

Also builders of syntax nodes, for `rewriting` and `statements`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from typing import Any

RUNTIME = "__stepwell__"
"""The variable by which rewritten source reaches `frontend.flowing`."""

_LEFT = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}
"""Functions that inspect their caller's frame: calls of them are not rewritten."""

MAKING = frozenset(
    (
        *("arange", "array", "astype", "copy", "empty", "empty_like", "eye", "full", "full_like"),
        *("identity", "linspace", "ones", "ones_like", "repeat", "tile", "zeros", "zeros_like"),
    )
)
"""NumPy functions and methods that return an array in memory of its own."""

_COMPARES: dict[type[ast.cmpop], Any] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def name_of(name: str, store: bool = False) -> ast.Name:
    """Return the variable ``name``."""
    return ast.Name(name, ast.Store() if store else ast.Load())


def set_to(name: str, value: ast.expr) -> ast.stmt:
    """Return ``name = value``."""
    return ast.Assign([name_of(name, True)], value)


def tuple_of(names: Sequence[str], store: bool = False) -> ast.Tuple:
    """Return a tuple of variables that are passed on unread: unbound ones too."""
    context = ast.Store() if store else ast.Load()
    return ast.Tuple([_handed(name_of(n, store)) for n in names], context)


def _handed(node: ast.Name) -> ast.Name:
    vars(node)["handed"] = True
    return node


def is_handed(node: ast.Name) -> bool:
    """Whether a variable is passed on, not read."""
    return "handed" in vars(node)


def runtime(name: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a function in `frontend.flowing`."""
    return ast.Call(ast.Attribute(name_of(RUNTIME), name, ast.Load()), list(arguments), [])


def later(value: ast.expr) -> ast.expr:
    """Return ``lambda: value``."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def define(name: str, body: list[ast.stmt], arguments: Sequence[str] = ()) -> ast.FunctionDef:
    """Return the definition of a function."""
    takes = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return ast.FunctionDef(name, takes, body or [ast.Pass()], [])


_PLACED = (ast.stmt, ast.expr, ast.arg)


def place(node: Any, at: Any) -> Any:
    """Give nodes without a source location the beginning of ``at``, if it has one."""
    for each in ast.walk(node):
        if hasattr(at, "lineno") and not hasattr(each, "lineno") and isinstance(each, _PLACED):
            each.lineno = each.end_lineno = at.lineno
            each.col_offset, each.end_col_offset = at.col_offset, at.col_offset + 1
    return node


def setter(name: str) -> str:
    """Return the name of the function that binds a variable inside an expression."""
    return f"__set_{name}__"


def stays(node: ast.expr) -> ast.expr:
    """Mark a call whose result is bound to a variable and never written to through it."""
    vars(node)["local"] = True
    return node


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def as_test(test: ast.expr) -> ast.expr:
    """Mark the parts of a condition of which only the truth counts; return the condition."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            vars(as_test(part))["tested"] = True
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        as_test(test.operand)
    return test


class Expressions(ast.NodeTransformer):
    """Rewrite the conditions and calls of an expression."""

    def __init__(self, inside: int = 0) -> None:
        self.inside = inside
        """How many of the user's functions, nested in the expression, enclose the current node."""

    def visit_Call(self, node: ast.Call) -> Any:
        """Rewrite ``f(x)`` to ``call(f, x)``."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _LEFT:
            return node
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(base, ast.Name) and base.id == RUNTIME:
            return node
        name = "make" if _called(node) in MAKING and "local" not in vars(node) else "call"
        call = ast.copy_location(runtime(name).func, node.func)  # Python reports this line
        call_node = ast.Call(call, [node.func, *node.args], node.keywords)
        return place(ast.copy_location(call_node, node), node)

    def _displayed(self, node: Any) -> Any:
        """Rewrite ``[a, b]``, ``{k: v}``, ``[f(x) for x in y]``, which create a new object."""
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return node
        return place(ast.copy_location(runtime("own", node), node), node)

    visit_List = visit_Dict = visit_Set = visit_ListComp = visit_DictComp = _displayed
    visit_SetComp = _displayed

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Rewrite ``x if c else y``."""
        as_test(node.test)
        self.generic_visit(node)
        call_node = runtime("ternary", node.test, later(node.body), later(node.orelse))
        return place(call_node, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Rewrite ``a and b``, ``a or b``."""
        truths = ["tested" in vars(part) for part in node.values]
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        pairs = zip(node.values, truths, strict=True)
        parts = [runtime("truth_of", part) if only else part for part, only in pairs]
        return place(runtime(name, *map(later, parts)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Rewrite ``not a``."""
        as_test(node)
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return place(runtime("not_", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Rewrite ``a < b < c`` and ``a in b``."""
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            found = runtime("in_", node.left, node.comparators[0])
            return place(found if isinstance(node.ops[0], ast.In) else runtime("not_", found), node)
        if len(node.ops) == 1 or any(type(o) not in _COMPARES for o in node.ops):
            return node
        parts: list[ast.expr] = [
            ast.Tuple([runtime("x").func, later(right)], ast.Load()) for right in node.comparators
        ]
        for part, op in zip(parts, node.ops, strict=True):
            assert isinstance(part, ast.Tuple)
            part.elts[0] = ast.Attribute(name_of(RUNTIME), _COMPARES[type(op)].__name__, ast.Load())
        return place(runtime("compare", node.left, *parts), node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """Rewrite a replacement field of an f-string: a traced value has no digits yet."""
        self.generic_visit(node)
        node.value = place(runtime("shown", node.value), node)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        """Rewrite ``(x := value)`` to a call, since it may move into a nested function."""
        self.generic_visit(node)
        if self.inside:
            return node
        return place(ast.Call(name_of(setter(node.target.id)), [node.value], []), node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Rewrite a lambda, in which ``:=`` binds its own variables."""
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        return node
