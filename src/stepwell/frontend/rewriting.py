"""Rewriting the source of a function so that its control flow can be traced (note 041).

An ``if`` becomes a call of `flow.if_` with two functions made of its branches, which share the
user's variables; loops, ``and``, ``or``, ``not``, ``a < b < c``, ``x if c else y``, ``assert`` and
calls likewise. Lines and columns are those of the source, names of code and file too.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from copy import deepcopy
from types import CellType, CodeType, FunctionType
from typing import Any

from stepwell.frontend.flow import RESULT
from stepwell.frontend.read_source import OUTER, Reads
from stepwell.frontend.reads import Outer
from stepwell.frontend.sources import (
    assigned,
    definition,
    has_flow,
    lambda_of,
    may_leave,
    returns,
    stored_in,
    written_names,
)

RUNTIME = "__stepwell__"
"""The variable by which rewritten source reaches `frontend.flowing`."""

_DONE: set[CodeType] = set()
"""Code that is rewritten already."""
_MADE: dict[CodeType, CodeType | None] = {}
"""What functions became; None for those that are traced as they are."""

_LEFT = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}
"""Functions that look at the frame they are called from."""

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


def is_rewritten(function: FunctionType) -> bool:
    """Whether the function was rewritten, or defined in one that was."""
    return function.__code__ in _DONE


def rewritten(function: FunctionType, runtime: Any) -> FunctionType:
    """Return ``function`` with its control flow rewritten; itself where that cannot be.

    Its globals, defaults and cells are those of ``function``.
    """
    code = function.__code__
    if code in _DONE:
        return function
    if code not in _MADE:
        _MADE[code] = _code_of(function)
    made = _MADE[code]
    if made is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    outer = Outer(runtime, function.__globals__, dict(cells))
    cells[RUNTIME], cells[OUTER] = CellType(runtime), CellType(outer)
    closure = tuple(cells[name] for name in made.co_freevars)
    found = FunctionType(made, function.__globals__, function.__name__, None, closure)
    found.__defaults__, found.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    found.__qualname__, found.__module__ = function.__qualname__, function.__module__
    return found


def _code_of(function: FunctionType) -> CodeType | None:
    if function.__code__.co_name == "<lambda>":
        body = _lambda_of(function)
    else:
        body = definition(function)
        if body is not None:
            _Function(body).rewrite()
            body.decorator_list = []
            Reads().visit(body)
    if body is None:
        return None
    names = [RUNTIME, OUTER, *function.__code__.co_freevars]
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    factory = ast.FunctionDef("factory", arguments, [body], [])
    module = ast.Module([ast.copy_location(factory, body)], [])
    compiled = compile(ast.fix_missing_locations(module), function.__code__.co_filename, "exec")
    (outer,) = _codes(compiled)
    (made,) = [c for c in _codes(outer) if c.co_name == function.__code__.co_name]
    made = _called(made, made.co_qualname, function.__code__.co_qualname)
    _mark(made)
    return made


def _lambda_of(function: FunctionType) -> ast.stmt | None:
    """Return a statement with a lambda, rewritten."""
    node = lambda_of(function)
    if node is None:
        return None
    node.body = _place(_Expressions().visit(node.body), node.body)
    Reads().visit(node)
    return ast.copy_location(ast.Expr(node), node)


def _called(code: CodeType, now: str, name: str) -> CodeType:
    """Return code under its own name, without that of the factory."""
    inner = [_called(c, now, name) if isinstance(c, CodeType) else c for c in code.co_consts]
    qualified = name + code.co_qualname.removeprefix(now)
    return code.replace(co_qualname=qualified, co_consts=tuple(inner))


def _codes(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _mark(code: CodeType) -> None:
    _DONE.add(code)
    for inner in _codes(code):
        _mark(inner)


def _name(name: str, store: bool = False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _set(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, True)], value)


def _tuple(names: Sequence[str], store: bool = False) -> ast.Tuple:
    context = ast.Store() if store else ast.Load()
    return ast.Tuple([_name(n, store) for n in names], context)


def _runtime(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(RUNTIME), name, ast.Load()), list(arguments), [])


def _later(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _define(name: str, body: list[ast.stmt], arguments: Sequence[str] = ()) -> ast.FunctionDef:
    takes = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return ast.FunctionDef(name, takes, body or [ast.Pass()], [])


class _Function:
    """Rewrites one function; functions in it are rewritten by others."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node
        self.count = 0
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a]
        self.arguments = {a.arg for a in every}
        nested = [s for s in node.body if not isinstance(s, ast.Return)]
        self.by_flag = may_leave(nested, ast.Return)
        self.always = returns(node.body)
        self.flags: list[str] = []
        """The variables that say that the loop, or the function, is left."""
        self.written = written_names(node)

    def rewrite(self) -> None:
        """Rewrite the function's body in place."""
        node = self.node
        flow = [n for n in node.body if self.by_flag or has_flow(n)]
        variables = [n for n in assigned(flow) if n not in self.arguments]
        if self.by_flag:
            self.flags.append("__done__")
        body = self.block(node.body)
        first: list[ast.stmt] = [
            _set(n, _runtime("Undefined", ast.Constant(n))) for n in [*variables, *self.made]
        ]
        if self.by_flag:
            first += [_set("__done__", ast.Constant(False))]
            first += [_set("__result__", _runtime("Undefined", ast.Constant(RESULT)))]
            done = _runtime(
                "returned", _name("__done__"), _name("__result__"), ast.Constant(self.always)
            )
            body.append(ast.Return(done))
        for statement in [*first, *body]:
            _place(statement, node)
        documented = ast.get_docstring(node, clean=False) is not None
        node.body = [*body[:documented], *first, *body[documented:]]

    @property
    def made(self) -> list[str]:
        """Variables that rewriting adds."""
        return [f"__left{k}__" for k in range(self.count)]

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements rewritten; what follows a flag that may be set asks for it."""
        out: list[ast.stmt] = []
        for at, statement in enumerate(statements):
            found, flags = self.statement(statement)
            for each in found:
                _place(each, statement)
            out += found
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
            rest = list(statements[at + 1 :])
            if flags and rest:
                asked = ast.UnaryOp(ast.Not(), _any(flags))
                out += self.block([_place(ast.If(asked, rest, []), rest[0])])
                break
        return out

    def statement(self, node: ast.stmt) -> tuple[list[ast.stmt], list[str]]:
        """Return what a statement becomes, and which flags it may set."""
        if isinstance(node, ast.Return):
            return self._return(node), []
        if isinstance(node, ast.Break):
            return [_set(self.flags[-2], ast.Constant(True))], []
        if isinstance(node, ast.Continue):
            return [_set(self.flags[-1], ast.Constant(True))], []
        flags = self._flags_in(node)
        if isinstance(node, ast.If):
            return self._if(node), flags
        if isinstance(node, ast.While | ast.For):
            return self._loop(node), flags
        if isinstance(node, ast.With):
            for item in node.items:
                item.context_expr = self.expression(item.context_expr)
            node.body = self.block(node.body)
            return [node], flags
        return self._simple(node), []

    def _simple(self, node: ast.stmt) -> list[ast.stmt]:
        """Return what a statement without a way of its own becomes."""
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.expression(d) for d in node.decorator_list]
            _Function(node).rewrite()
            return [node]
        if isinstance(node, ast.Assert):
            message = node.msg or ast.Constant(None)
            test, said = self.expression(node.test), self.expression(message)
            return [ast.Expr(_runtime("assert_", _later(test), _later(said)))]
        if isinstance(node, ast.Raise):
            made = [_later(self.expression(deepcopy(node.exc)))] if node.exc is not None else []
            return [ast.Expr(_runtime("raising", *made)), self.visited(node)]
        return self._plain(node)

    def _return(self, node: ast.Return) -> list[ast.stmt]:
        value = self.expression(node.value or ast.Constant(None))
        if not self.by_flag:
            return [ast.Return(value)]
        return [_set("__result__", value), _set("__done__", ast.Constant(True))]

    def _flags_in(self, node: ast.stmt) -> list[str]:
        found: list[str] = []
        if self.by_flag and may_leave([node], ast.Return):
            found.append("__done__")
        if not isinstance(node, ast.For | ast.While) and len(self.flags) > 1:
            if may_leave([node], ast.Break):
                found.append(self.flags[-2])
            if may_leave([node], ast.Continue):
                found.append(self.flags[-1])
        return found

    def _plain(self, node: ast.stmt) -> list[ast.stmt]:
        """Return an assignment or expression; what is stored to is looked at first."""
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        checks = [
            ast.Expr(_runtime("storing", *stored_in(target)))
            for target in targets
            if isinstance(target, ast.Subscript | ast.Attribute)
            or (isinstance(node, ast.AugAssign) and isinstance(target, ast.Name))
        ]
        makes = (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and len(targets) == 1
            and isinstance(targets[0], ast.Name)
            and targets[0].id in self.written
        )
        node = self.visited(node)
        if makes and isinstance(node, ast.Assign):
            assert isinstance(node.value, ast.Call)
            if isinstance(node.value.func, ast.Attribute) and node.value.func.attr == "call":
                node.value.func.attr = "make"
        return [*checks, node]

    def _if(self, node: ast.If) -> list[ast.stmt]:
        test = self.expression(node.test)
        body, orelse = self.block(node.body), self.block(node.orelse)
        names = assigned([*body, *orelse])
        return [
            _define("__body__", [*_sharing(names), *body]),
            _define("__orelse__", [*_sharing(names), *orelse]),
            *self._access(names),
            ast.Expr(_runtime("if_", test, _name("__body__"), _name("__orelse__"), *_state(names))),
        ]

    def _loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        left, skipped = f"__left{self.count}__", f"__left{self.count + 1}__"
        self.count += 2
        self.flags += [left, skipped]
        head: list[ast.stmt] = []
        if isinstance(node, ast.For):
            head.append(ast.Assign([node.target], _name("__item__")))
            given = self.expression(node.iter)
        else:
            given = _later(self.expression(node.test))
        if may_leave(node.body, ast.Continue):
            head.append(_set(skipped, ast.Constant(False)))
        body = [*head, *self.block(node.body)]
        del self.flags[-2:]
        names = assigned(body)
        stops = [left] if may_leave(node.body, ast.Break) else []
        if self.by_flag and may_leave(node.body, ast.Return):
            stops.append("__done__")
        stop = _later(self.expression(_any(stops)) if stops else ast.Constant(False))
        takes = ["__item__"] if isinstance(node, ast.For) else []
        kind = "for_" if isinstance(node, ast.For) else "while_"
        return [
            *([_set(left, ast.Constant(False))] if left in stops else []),
            _define("__body__", [*_sharing(names), *body], takes),
            *self._access(names),
            ast.Expr(_runtime(kind, given, _name("__body__"), stop, *_state(names))),
        ]

    def _access(self, names: Sequence[str]) -> list[ast.stmt]:
        unpack: list[ast.stmt] = [*_sharing(names)]
        if names:
            unpack.append(ast.Assign([_tuple(names, True)], _name("__values__")))
        return [
            _define("__get__", [ast.Return(_tuple(names))]),
            _define("__put__", unpack, ["__values__"]),
        ]

    def expression(self, node: ast.expr) -> ast.expr:
        """Return an expression rewritten."""
        return _place(_Expressions().visit(node), node)

    def visited(self, node: Any) -> Any:
        """Return a statement with its expressions rewritten."""
        return _Expressions().generic_visit(node)


_PLACED = (ast.stmt, ast.expr, ast.arg)


def _place(node: Any, at: Any) -> Any:
    """Give what has no place in the source the beginning of ``at``, where that has one."""
    for each in ast.walk(node):
        if hasattr(at, "lineno") and not hasattr(each, "lineno") and isinstance(each, _PLACED):
            each.lineno = each.end_lineno = at.lineno
            each.col_offset, each.end_col_offset = at.col_offset, at.col_offset + 1
    return node


def _any(flags: Sequence[str]) -> ast.expr:
    names: list[ast.expr] = [_name(f) for f in flags]
    return names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)


def _sharing(names: Sequence[str]) -> list[ast.stmt]:
    return [ast.Nonlocal(list(names))] if names else []


def _state(names: Sequence[str]) -> list[ast.expr]:
    told = [RESULT if n == "__result__" else n for n in names]
    words = ast.Tuple([ast.Constant(n) for n in told], ast.Load())
    return [_name("__get__"), _name("__put__"), words]


class _Expressions(ast.NodeTransformer):
    """Rewrites what an expression decides and calls."""

    def visit_Call(self, node: ast.Call) -> Any:
        """``f(x)`` becomes ``call(f, x)``."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _LEFT:
            return node
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(base, ast.Name) and base.id == RUNTIME:
            return node
        call = ast.copy_location(_runtime("call").func, node.func)  # the line that Python names
        made = ast.Call(call, [node.func, *node.args], node.keywords)
        return _place(ast.copy_location(made, node), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``x if c else y``."""
        self.generic_visit(node)
        made = _runtime("ternary", node.test, _later(node.body), _later(node.orelse))
        return _place(made, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``a and b``, ``a or b``."""
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _place(_runtime(name, *map(_later, node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """``not a``."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return _place(_runtime("not_", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """``a < b < c``."""
        self.generic_visit(node)
        if len(node.ops) == 1 or any(type(o) not in _COMPARES for o in node.ops):
            return node
        parts: list[ast.expr] = [
            ast.Tuple([_runtime("x").func, _later(right)], ast.Load()) for right in node.comparators
        ]
        for part, op in zip(parts, node.ops, strict=True):
            assert isinstance(part, ast.Tuple)
            part.elts[0] = ast.Attribute(_name(RUNTIME), _COMPARES[type(op)].__name__, ast.Load())
        return _place(_runtime("compare", node.left, *parts), node)
