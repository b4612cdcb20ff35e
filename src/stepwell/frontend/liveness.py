"""Liveness of a function's variables: which are read again after a statement.

The usual backward analysis, on the syntax tree. Variables that nested functions read or rebind are
live everywhere; so are all variables of a function that may inspect its frame.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Names: TypeAlias = frozenset[str]
NONE: Names = frozenset()
_FRAMES = {"locals", "vars", "eval", "exec", "dir"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass
class _Exits:
    """The live variables at the targets of jumps out of a statement."""

    leaves: Names = NONE
    """At the target of ``break``."""
    again: Names = NONE
    """At the target of ``continue``."""
    raised: Names = NONE
    """At the handlers of an exception."""


@dataclass
class Liveness:
    """The live variables around the statements of one function."""

    always: Names = NONE
    after: dict[int, Names] = field(default_factory=dict[int, Names])
    """By the id of a statement, the variables live after it; for a jump, at its target."""
    exits: dict[int, Names] = field(default_factory=dict[int, Names])
    """By the id of a statement, the variables live at the targets of jumps that leave it."""
    entering: dict[int, Names] = field(default_factory=dict[int, Names])
    """By the id of a loop, the variables whose earlier values an iteration may read."""

    def behind(self, statements: Sequence[ast.stmt]) -> Names:
        """Return the variables live after consecutive statements and at their jumps' targets."""
        found = self.after.get(id(statements[-1]), NONE)
        return found.union(*(self.exits.get(id(s), NONE) for s in statements)) | self.always

    def _block(self, nodes: Sequence[ast.stmt], out: Names, exits: _Exits) -> Names:
        for node in reversed(nodes):
            out = self._statement(node, out, exits)
        return out

    def _statement(self, node: ast.stmt, out: Names, exits: _Exits) -> Names:
        """Return the variables live before a statement, given those live after it."""
        out |= exits.raised
        jump = _jump(node, exits)
        self.after[id(node)] = out if jump is None else jump
        self.exits[id(node)] = _jump_targets(node, exits)
        if jump is not None:
            return jump | reads(node)
        match node:
            case ast.If():
                ways = self._block(node.body, out, exits) | self._block(node.orelse, out, exits)
                return ways | reads(node.test)
            case ast.While() | ast.For():
                return self._loop(node, out, exits)
            case ast.With():
                out = self._block(node.body, out, exits)
                for item in reversed(node.items):
                    out = (out - stores(item)) | reads(item)
                return out
            case ast.Try() | ast.TryStar():
                return self._try(node, out, exits)
            case ast.Match():
                found = out
                for case in node.cases:
                    inside = self._block(case.body, out, exits)
                    found |= (inside | reads(case)) - stores(case.pattern)
                return found | reads(node.subject)
            case _:
                return (out - stores(node)) | reads(node)

    def _loop(self, node: ast.While | ast.For, out: Names, exits: _Exits) -> Names:
        end = self._block(node.orelse, out, exits)
        target = stores(node.target) if isinstance(node, ast.For) else NONE
        test = reads(node.test) if isinstance(node, ast.While) else NONE
        head = end | test
        while True:
            inner = _Exits(out, head, exits.raised)
            begin = self._block(node.body, head, inner) - target
            if begin | head == head:
                break
            head |= begin
        self.entering[id(node)] = begin | test | self.always
        return head | (reads(node.iter) | reads(node.target) if isinstance(node, ast.For) else NONE)

    def _try(self, node: ast.Try | ast.TryStar, out: Names, exits: _Exits) -> Names:
        after = self._block(node.finalbody, out, exits)
        outer = _Exits(exits.leaves, exits.again, exits.raised)
        if node.finalbody:
            last = self._block(node.finalbody, exits.leaves | exits.again | exits.raised, exits)
            outer = _Exits(exits.leaves | last, exits.again | last, exits.raised | last)
        caught = NONE
        for handler in node.handlers:
            own = self._block(handler.body, after, outer) | reads(handler.type)
            caught |= own - ({handler.name} if handler.name else NONE)
        inner = _Exits(outer.leaves, outer.again, outer.raised | caught)
        return self._block(node.body, self._block(node.orelse, after, outer), inner) | caught


def liveness(node: ast.FunctionDef) -> Liveness:
    """Return the liveness of the variables around each statement of a function."""
    found = Liveness(_live_everywhere(node))
    found._block(node.body, NONE, _Exits())  # pyright: ignore[reportPrivateUsage]
    return found


def _live_everywhere(node: ast.FunctionDef) -> Names:
    names: set[str] = set()
    for each in ast.walk(node):
        if each is not node and isinstance(each, (*_FUNCTIONS, ast.GeneratorExp)):
            names |= {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}
        if isinstance(each, ast.Global | ast.Nonlocal):
            names |= set(each.names)
        if isinstance(each, ast.Name) and each.id in _FRAMES:
            return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    return frozenset(names)


def _jump(node: ast.stmt, exits: _Exits) -> Names | None:
    match node:
        case ast.Break():
            return exits.leaves
        case ast.Continue():
            return exits.again
        case ast.Return() | ast.Raise():
            return exits.raised
        case _:
            return None


def _jump_targets(node: ast.AST, exits: _Exits) -> Names:
    """Return the variables live at the targets of the jumps that leave ``node``."""
    if isinstance(node, ast.Break):
        return exits.leaves
    if isinstance(node, ast.Continue):
        return exits.again
    if isinstance(node, (*_FUNCTIONS, ast.expr)):
        return NONE
    inner: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.While | ast.For):
        inner = node.orelse
    return NONE.union(*(_jump_targets(child, exits) for child in inner))


def reads(node: ast.AST | None) -> Names:
    """Return the names that are read in ``node``, also by functions defined in it."""
    if node is None:
        return NONE
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_read(n)}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.add(node.target.id)
    return frozenset(found)


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def stores(node: Any) -> Names:
    """Return the variables that ``node`` definitely assigns to."""
    match node:
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return frozenset([node.name])
        case ast.Import() | ast.ImportFrom():
            return frozenset(a.asname or a.name.partition(".")[0] for a in node.names)
        case ast.Assign():
            return NONE.union(*map(_targets, node.targets))
        case ast.AugAssign():
            return _targets(node.target)
        case ast.AnnAssign():
            return _targets(node.target) if node.value is not None else NONE
        case ast.Delete():
            return NONE.union(*map(_targets, node.targets))
        case ast.withitem():
            return _targets(node.optional_vars) if node.optional_vars else NONE
        case ast.expr():
            return _targets(node)
        case _:
            return NONE


def _targets(node: ast.expr) -> Names:
    """Return the variables in an assignment's target."""
    match node:
        case ast.Name():
            return frozenset([node.id]) if not isinstance(node.ctx, ast.Load) else NONE
        case ast.Tuple() | ast.List():
            return NONE.union(*map(_targets, node.elts))
        case ast.Starred():
            return _targets(node.value)
        case _:
            return NONE
