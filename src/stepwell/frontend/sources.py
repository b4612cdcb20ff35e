"""Queries about the source of a function, for `rewriting`."""

from __future__ import annotations

import ast
import inspect
import linecache
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

_YIELDS = (ast.Yield, ast.YieldFrom)
_OTHER = (*_YIELDS, ast.Await, ast.AsyncFor, ast.AsyncWith)
"""Statements whose function is traced without rewriting."""


_PARSING = threading.Lock()
"""Python 3.11 counts the recursion depth of its parser in one place for all threads."""


def _parsed(text: str) -> ast.Module:
    for _ in range(3):
        with suppress(SystemError), _PARSING:  # another thread was parsing too
            return ast.parse(text)
    return ast.parse(text)


def _lines_of(function: FunctionType) -> list[str]:
    """Return the lines of the file that a function is in.

    The same as `inspect.findsource`, which searches all modules for the function's.
    """
    file = function.__code__.co_filename
    linecache.checkcache(file)
    if not (lines := linecache.getlines(file, function.__globals__)):
        raise OSError("no source")
    return lines


def parsed_block(code: CodeType, lines: Sequence[str]) -> tuple[ast.Module, bool]:
    """Return the tree of the statement in which a function is defined, and whether the tree is the
    body of an ``if``, added because the statement is indented.

    lines : the lines of the whole file

    The statement extends past its code to the next line that is not indented further; if that line
    is inside of a string or brackets, tokens give the end.

    raises SyntaxError, ValueError, IndexError : it is a part of a statement, or no such text
    """
    lines = lines[code.co_firstlineno - 1 :]
    indented = lines[0][:1] in " \t"
    head = "if 1:\n" if indented else ""
    last = _last_line(code) - code.co_firstlineno + 1
    margin = _margin(lines[0])
    ends = (k for k in range(last, len(lines)) if _ends(lines[k], margin))
    with suppress(SyntaxError):
        return _parsed(head + "".join(lines[: next(ends, len(lines))])), indented
    return _parsed(head + "".join(inspect.getblock(lines))), indented


def _last_line(code: CodeType) -> int:
    lines = (last for _, last, _, _ in code.co_positions() if last is not None)
    inner = (_last_line(c) for c in code.co_consts if isinstance(c, CodeType))
    return max((code.co_firstlineno, *lines, *inner))


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _ends(line: str, margin: int) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#") and _margin(line) <= margin


def lambda_of(function: FunctionType) -> ast.Lambda | None:
    """Return the source of a lambda, at its own lines and columns; None if it is not found."""
    code = function.__code__
    try:
        module = _parsed("".join(_lines_of(function)))
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None
    inside = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    for line, last, column, end in code.co_positions():
        if line is not None and (line, column) != (last, end):
            place = (line, column), (last, end)
            inside = [node for node in inside if _contains(node.body, place)]
    found = min(inside, key=lambda node: _extent(node.body), default=None)
    if found is None or any(isinstance(n, _OTHER) for n in ast.walk(found)):
        return None
    return found


def _contains(node: ast.expr, place: tuple[Any, Any]) -> bool:
    """Whether a place, from (line, column) to (line, column), is within the source of a node."""
    end = node.end_lineno, node.end_col_offset
    return (node.lineno, node.col_offset) <= place[0] and place[1] <= end


def _extent(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    lines = node.end_lineno - node.lineno
    return lines, node.end_col_offset - (0 if lines else node.col_offset)


def compiled(module: ast.Module, file: str) -> CodeType:
    """Return the compiled code of a tree."""
    with _PARSING:
        return compile(ast.fix_missing_locations(module), file, "exec")


def definition(function: FunctionType) -> ast.FunctionDef | None:
    """Return the source of a function, at its own lines and columns; None if it is unusable."""
    code = function.__code__
    if code.co_name == "<lambda>":
        return None
    first = code.co_firstlineno
    try:
        module, indented = parsed_block(code, _lines_of(function))
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None
    body = module.body[0].body if indented else module.body  # pyright: ignore
    node = body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return None
    if any(isinstance(n, _OTHER) for n in _own(node.body)):
        return None
    if any(_leaves_finally(n) for n in ast.walk(node)):
        return None
    if (owner := _class_of(function)) and any(map(_private, ast.walk(node))):
        _Private(owner).visit(node)
    ast.increment_lineno(module, first - 1 - indented)
    return node


def _class_of(function: FunctionType) -> str:
    """Return the name of the class in whose body a function is defined, or ""."""
    path = function.__qualname__.split(".")[:-1]
    while path and path[-1] == "<locals>":
        path = path[:-2]
    return path[-1] if path else ""


def _private(node: ast.AST) -> str:
    """Return the name in a node that a class would mangle, or ""."""
    name = next((n for key in ("attr", "id", "arg") if (n := getattr(node, key, None))), "")
    return name if name.startswith("__") and not name.endswith("__") else ""


class _Private(ast.NodeTransformer):
    """Mangles the private names of a class: ``__x`` becomes ``_Class__x``."""

    def __init__(self, owner: str) -> None:
        self.owner = owner.lstrip("_")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Rename the names in a node, except keywords of calls, which Python does not mangle."""
        super().generic_visit(node)
        if self.owner and not isinstance(node, ast.keyword) and (name := _private(node)):
            key = "attr" if hasattr(node, "attr") else "id" if hasattr(node, "id") else "arg"
            setattr(node, key, f"_{self.owner}{name}")
        return node


def _leaves_finally(node: ast.AST) -> bool:
    """Whether a jump in a ``finally`` may drop an exception, which flags cannot express."""
    if not isinstance(node, ast.Try | ast.TryStar):
        return False
    return any(may_leave(node.finalbody, k) for k in (ast.Return, ast.Break, ast.Continue))


def is_generator(node: ast.FunctionDef) -> bool:
    """Whether a function is a generator."""
    return any(isinstance(n, _YIELDS) for n in _own(node.body))


def declared(node: ast.FunctionDef, kind: type[ast.Global | ast.Nonlocal]) -> set[str]:
    """Return the variables that a function declares as global or nonlocal, by ``kind``."""
    return {name for n in _own(node.body) if isinstance(n, kind) for name in n.names}


def calls(node: ast.AST) -> bool:
    """Whether a tree contains a call."""
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def bound_in_expressions(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the variables that ``:=`` binds in a function's own statements."""
    return list(dict.fromkeys(n.target.id for n in _own(nodes) if isinstance(n, ast.NamedExpr)))


_INNER = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.AsyncFunctionDef)


def _own(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Return statements and expressions of a body, without those of nested functions."""
    for node in nodes:
        yield node
        if not isinstance(node, _INNER):
            yield from _own(ast.iter_child_nodes(node))


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


DEFINED = ("__body__", "__orelse__", "__get__", "__put__")
"""Functions that rewriting defines, each for the following statement only."""


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the variables that statements assign to, in order."""
    names: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            if node.name not in DEFINED:
                names[node.name] = None
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= dict.fromkeys(a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name
        ):
            names[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        ours = isinstance(node, ast.FunctionDef) and node.name in DEFINED
        if isinstance(node, _COMPREHENSIONS):
            names |= dict.fromkeys(bound_in_expressions([node]))
        elif ours or not isinstance(node, _INNER):
            names |= dict.fromkeys(assigned(ast.iter_child_nodes(node)))
    return list(names)


def may_leave(nodes: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether statements contain a break or continue of their own loop, or a return."""
    for node in nodes:
        if isinstance(node, kind):
            return True
        if isinstance(node, _INNER):
            continue
        if isinstance(node, ast.For | ast.While) and kind is not ast.Return:
            inner: list[ast.stmt] = node.orelse
        else:
            inner = [c for c in _statements(node) if isinstance(c, ast.stmt)]
        if may_leave(inner, kind):
            return True
    return False


def _statements(node: ast.AST) -> Iterable[ast.AST]:
    """Return the children of a statement, and the statements of its handlers and cases."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from ast.iter_child_nodes(child)
        else:
            yield child


def returns(nodes: Sequence[ast.stmt]) -> bool:
    """Whether statements end in a return or an error on every path."""
    if not nodes:
        return False
    last = nodes[-1]
    if isinstance(last, ast.Return | ast.Raise):
        return True
    if isinstance(last, ast.With):
        return returns(last.body)
    if isinstance(last, ast.Try) and not last.orelse:
        return returns(last.body) and all(returns(h.body) for h in last.handlers)
    if isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value:
        return not may_leave(last.body, ast.Break)
    return isinstance(last, ast.If) and returns(last.body) and returns(last.orelse)


_SIMPLE = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple, ast.BinOp),
    *(ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context),
)


_KEYS = (ast.Constant, ast.Name, ast.JoinedStr)
"""Index expressions that can be evaluated twice, and write nothing to a trace."""


def single(target: ast.expr) -> list[ast.expr]:
    """Return the single targets that a target unpacks to."""
    if isinstance(target, ast.Starred):
        return single(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return [t for each in target.elts for t in single(each)]
    return [target]


def stored_in(target: ast.expr, updated: bool = False) -> list[ast.expr]:
    """Return the object that storing to ``target`` changes; none if it cannot be evaluated twice.

    updated : whether it is an update, as in ``x.name += 1``: then also the attribute name or index
    """
    if isinstance(target, ast.Name):
        return [ast.Name(target.id, ast.Load())]
    attribute = isinstance(target, ast.Attribute)
    base = target.value if isinstance(target, ast.Subscript | ast.Attribute) else None
    simple = base is not None and all(isinstance(n, _SIMPLE) for n in ast.walk(base))
    more: list[ast.expr] = [ast.Constant(True)] if attribute else []
    if updated and isinstance(target, ast.Attribute):
        more += [ast.Constant(target.attr)]
    elif updated and isinstance(target, ast.Subscript) and isinstance(target.slice, _KEYS):
        more += [ast.Constant(False), _loaded(target.slice)]
    return [_loaded(base), *more] if base is not None and simple else []


def _loaded(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def written_names(node: ast.FunctionDef) -> set[str]:
    """Return variables whose elements the function assigns to, or that are updated in place."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            found |= _root(each.value)
        elif isinstance(each, ast.AugAssign):
            found |= _root(each.target)
        elif isinstance(each, ast.keyword) and each.arg == "out":
            found |= _root(each.value)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            if each.func.attr == "fill":
                found |= _root(each.func.value)
            elif each.func.attr == "at" and each.args:
                found |= _root(each.args[0])
    return found


def handed_names(node: ast.FunctionDef) -> set[str]:
    """Return variables that the function passes to a function, a container or another name."""
    found: set[str] = set()
    for each in ast.walk(node):
        given: list[ast.expr | None] = []
        match each:
            case ast.Call():
                given = [*each.args, *(k.value for k in each.keywords)]
            case ast.Tuple() | ast.List() | ast.Set():
                given = [*each.elts]
            case ast.Dict():
                given = [*each.values]
            case ast.Return() | ast.Yield() | ast.Assign() | ast.NamedExpr() | ast.Lambda():
                given = [each.body if isinstance(each, ast.Lambda) else each.value]
            case ast.ListComp() | ast.GeneratorExp() | ast.IfExp():
                given = [each.body, each.orelse] if isinstance(each, ast.IfExp) else [each.elt]
            case _:
                pass
        found |= {n.id for n in given if isinstance(n, ast.Name)}
    return found


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def has_flow(node: ast.AST) -> bool:
    """Whether a statement contains a branch, a loop or a with."""
    return any(isinstance(n, ast.If | ast.For | ast.While | ast.With) for n in _own([node]))
