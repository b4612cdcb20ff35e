"""Rewrite the statements of one function (note 041)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy as copy_of
from typing import Any

from stepwell.frontend.desugar import Desugar
from stepwell.frontend.expressions import (
    Expressions,
    as_test,
    define,
    later,
    name_of,
    place,
    runtime,
    set_to,
    setter,
    stays,
    tuple_of,
)
from stepwell.frontend.flow import RESULT
from stepwell.frontend.liveness import Liveness, liveness
from stepwell.frontend.sources import (
    assigned,
    bound_in_expressions,
    calls,
    declared,
    handed_names,
    has_flow,
    is_generator,
    may_leave,
    returns,
    single,
    stored_in,
    written_names,
)


class Function:
    """Rewrites one function; a `Function` of its own rewrites each nested function."""

    def __init__(self, node: ast.FunctionDef, around: frozenset[str] = frozenset()) -> None:
        arguments = node.args
        first = next((a.arg for a in (*arguments.posonlyargs, *arguments.args)), "")
        node.body = [s for n in node.body for s in _as_list(Desugar(first).visit(n))]
        self.node = node
        self.count = 0
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a]
        self.arguments = {a.arg for a in every}
        nested = [s for s in node.body if not isinstance(s, ast.Return)]
        self.by_flag = may_leave(nested, ast.Return)
        self.always = returns(node.body)
        self.flags: list[str] = []
        """The flags that record a break, a continue or a return."""
        self.written = written_names(node)
        self.handed = handed_names(node)
        self.globals = declared(node, ast.Global)
        self.outer = declared(node, ast.Nonlocal)
        self.around = around
        """The variables of the enclosing rewritten functions."""
        self.live: Liveness = liveness(node)
        own = {*self.arguments, *assigned(node.body)} - self.globals - self.outer
        self.visible = around | own
        self.shared = sorted(_rebound(node) & self.visible)
        """Variables that nested functions assign to, at whichever call."""

    def rewrite(self) -> None:
        """Rewrite the function's body in place."""
        node = self.node
        flow = [n for n in node.body if self.by_flag or has_flow(n)]
        named = bound_in_expressions(node.body)
        elsewhere = {*self.arguments, *self.globals, *self.outer}
        wanted = dict.fromkeys([*assigned(flow), *named, *self.shared])
        local = {*assigned(node.body), *named}
        variables = [n for n in wanted if n in local and n not in elsewhere]
        if self.by_flag:
            self.flags.append("__done__")
        documented = ast.get_docstring(node, clean=False) is not None
        body = self.block(node.body)
        first: list[ast.stmt] = [
            *self._declarations(),
            *(
                set_to(n, runtime("Undefined", ast.Constant(n)))
                for n in [*variables, *self.created]
            ),
            *(self._setter(n) for n in named),
        ]
        if self.by_flag:
            first += [set_to("__done__", ast.Constant(False))]
            first += [set_to("__result__", runtime("Undefined", ast.Constant(RESULT)))]
            done = runtime(
                "returned", name_of("__done__"), name_of("__result__"), ast.Constant(self.always)
            )
            body.append(ast.Return(done))
        for statement in [*first, *body]:
            place(statement, node)
        node.body = [*body[:documented], *first, *body[documented:]]

    def _declarations(self) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        if self.globals:
            found.append(ast.Global(sorted(self.globals)))
        if self.outer:
            found.append(ast.Nonlocal(sorted(self.outer)))
        return found

    def _setter(self, name: str) -> ast.stmt:
        """Return the definition of the function that ``:=`` calls."""
        kept: list[ast.stmt] = self._sharing([name])
        body = [*kept, set_to(name, name_of("__value__")), ast.Return(name_of("__value__"))]
        return define(setter(name), body, ["__value__"])

    @property
    def created(self) -> list[str]:
        """The variables that rewriting adds."""
        return [f"__left{k}__" for k in range(self.count)]

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements rewritten; statements after one that may set a flag test the flag."""
        out: list[ast.stmt] = []
        for at, statement in enumerate(statements):
            found, flags = self.statement(statement)
            for each in found:
                place(each, statement)
            out += found
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
            rest = list(statements[at + 1 :])
            if flags and rest:
                asked = ast.UnaryOp(ast.Not(), _any(flags))
                out += self.block([self._asking(asked, rest, rest)])
                break
        return out

    def _asking(self, test: ast.expr, rest: list[ast.stmt], behind: Sequence[ast.stmt]) -> ast.stmt:
        """Return ``if test: rest``, with the live variables after ``behind`` as its own."""
        created = place(ast.If(test, rest, []), rest[0])
        self.live.after[id(created)] = self.live.behind(behind)
        return created

    def statement(self, node: ast.stmt) -> tuple[list[ast.stmt], list[str]]:
        """Return the rewritten statement, and the flags that it may set."""
        flags = self._flags_in(node)
        match node:
            case ast.Return():
                return self._return(node), []
            case ast.Break():
                return [set_to(self.flags[-2], ast.Constant(True))], []
            case ast.Continue():
                return [set_to(self.flags[-1], ast.Constant(True))], []
            case ast.If():
                return self._if(node), flags
            case ast.While() | ast.For():
                return self._loop(node), flags
            case ast.With() | ast.Try() | ast.TryStar() | ast.Match():
                return [self._compound(node)], flags
            case ast.Global() | ast.Nonlocal():
                return [ast.Pass()], []
            case _:
                return self._simple(node), []

    def _compound(self, node: ast.With | ast.Try | ast.TryStar | ast.Match) -> ast.stmt:
        """Return a compound statement that stays Python's, with its blocks rewritten."""
        match node:
            case ast.With():
                for item in node.items:
                    item.context_expr = self.expression(item.context_expr)
                node.body = self.block(node.body)
            case ast.Match():
                node.subject = self.expression(node.subject)
                for case in node.cases:
                    case.guard = self.expression(case.guard) if case.guard else None
                    case.body = self.block(case.body)
            case _:
                return self._try(node)
        return node

    def _try(self, node: ast.Try | ast.TryStar) -> ast.stmt:
        """Return ``try``; errors of tracing pass through every ``except``."""
        flags = [f for n in node.body for f in self._flags_in(n)]
        node.body = self.block(node.body)
        if flags and node.orelse:
            asked = ast.UnaryOp(ast.Not(), _any(list(dict.fromkeys(flags))))
            node.orelse = [self._asking(asked, node.orelse, node.orelse)]
        node.orelse = self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        bare = name_of("BaseException")
        caught = [bare if h.type is None else copy_of(h.type) for h in node.handlers]
        for handler in node.handlers:
            handler.type = self.expression(handler.type) if handler.type else None
            refuse = place(ast.Expr(runtime("caught")), handler.body[0])
            handler.body = [refuse, *self.block(handler.body)]
        if node.handlers:
            every: list[ast.expr] = [self.expression(c) for c in caught]
            types = later(ast.Tuple(every, ast.Load()))
            enter = place(ast.Expr(runtime("trying", types)), node)
            leave = place(ast.Expr(runtime("tried")), node)
            inner = ast.Try([enter, *node.body], [], [], [leave])
            node.body = [place(ast.copy_location(inner, node), node)]
        return node

    def _simple(self, node: ast.stmt) -> list[ast.stmt]:
        """Return the rewritten form of a simple statement or a definition."""
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.expression(d) for d in node.decorator_list]
            rewrite_inner(node, self.visible)
            return [*self._stored([node.name]), node]
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    rewrite_inner(inner, self.visible)
            return [*self._stored([node.name]), node]
        if isinstance(node, ast.Assert):
            message = node.msg or ast.Constant(None)
            test, said = self.expression(as_test(node.test)), self.expression(message)
            return [ast.Expr(runtime("assert_", later(test), later(said)))]
        if isinstance(node, ast.Raise):
            created = [later(self.expression(copy_of(node.exc)))] if node.exc is not None else []
            return [ast.Expr(runtime("raising", *created)), self.visited(node)]
        return self._plain(node)

    def _return(self, node: ast.Return) -> list[ast.stmt]:
        value = self.expression(node.value or ast.Constant(None))
        if not self.by_flag:
            return [ast.Return(value)]
        return [set_to("__result__", value), set_to("__done__", ast.Constant(True))]

    def _flags_in(self, node: ast.stmt) -> list[str]:
        found: list[str] = []
        if self.by_flag and may_leave([node], ast.Return):
            found.append("__done__")
        if len(self.flags) > 1:
            if may_leave([node], ast.Break):
                found.append(self.flags[-2])
            if may_leave([node], ast.Continue):
                found.append(self.flags[-1])
        return found

    def _stored(self, names: Sequence[str]) -> list[ast.stmt]:
        """Return checks of assignments to global or nonlocal variables."""
        found: list[ast.stmt] = []
        for name in names:
            if name in self.globals or name in self.outer:
                inside = name in self.outer and name in self.around
                found.append(
                    ast.Expr(runtime("rebinding", ast.Constant(name), ast.Constant(inside)))
                )
        return found

    def _plain(self, node: ast.stmt) -> list[ast.stmt]:
        """Return an assignment or expression; checks of the stored-to objects precede it."""
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [t for each in node.targets for t in single(each)]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        checks: list[ast.stmt] = [
            ast.Expr(runtime("storing", *stored_in(target, isinstance(node, ast.AugAssign))))
            for target in targets
            if isinstance(target, ast.Subscript | ast.Attribute)
            or (isinstance(node, ast.AugAssign) and isinstance(target, ast.Name))
        ]
        checks += self._stored(assigned([node]))
        makes = (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        )
        if makes and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            makes = node.targets[0].id in self.written
            if not makes and node.targets[0].id not in self.handed:
                node.value = stays(node.value)
        node = self.visited(node)
        if makes and isinstance(node, ast.Assign):
            value: Any = node.value
            if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
                node.value = place(runtime("created", node.value), node.value)
        return [*checks, node]

    def _if(self, node: ast.If) -> list[ast.stmt]:
        test = self.expression(as_test(node.test))
        written = [*node.body, *node.orelse]
        names = self._kept(written, self.live.after.get(id(node), frozenset()))
        body, orelse = self.block(node.body), self.block(node.orelse)
        names = [*names, *self._flags_set([*body, *orelse])]
        dead = self._dead(written, names)
        every = self._sharing([*names, *dead])
        read = _names_in(node.orelse)  # by the branch that is traced second
        again = [n for n in assigned(node.body) if n in dead and n in read]
        return [
            define("__body__", [*every, *body]),
            define("__orelse__", [*_copied(every), *orelse]),
            *self._access([*names, *(n for n in again if n not in self.globals)]),
            ast.Expr(
                runtime("if_", test, name_of("__body__"), name_of("__orelse__"), *_state(names))
            ),
        ]

    def _kept(self, written: Sequence[ast.stmt], live: frozenset[str]) -> list[str]:
        """Return the variables that statements may assign to and that are live afterwards."""
        live |= self.live.always
        names = [n for n in assigned(written) if n in live and n not in self.globals]
        if any(calls(s) for s in written):
            names += [n for n in self.shared if n not in names]
        return names

    def _dead(self, written: Sequence[ast.stmt], names: Sequence[str]) -> list[str]:
        """Return the variables that statements assign to and that are dead afterwards."""
        return [n for n in assigned(written) if n not in names]

    def _flags_set(self, statements: Sequence[ast.stmt]) -> list[str]:
        ours = {*self.flags, "__result__"}
        return [n for n in assigned(statements) if n in ours]

    def _loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        left, skipped = f"__left{self.count}__", f"__left{self.count + 1}__"
        self.count += 2
        after = self.live.after.get(id(node), frozenset())
        orelse = self.live.behind(node.orelse) if node.orelse else frozenset[str]()
        entering = self.live.entering[id(node)] | self.live.always
        written: list[Any] = [node.target] if isinstance(node, ast.For) else []
        written += node.body
        live = after | entering | orelse | _names_in(node.orelse)
        names = self._kept(written, live | self._test_reads(node))
        stops = [left] if may_leave(node.body, ast.Break) else []
        if self.by_flag and may_leave(node.body, ast.Return):
            stops.append("__done__")
        counter, lists = _counter(node), _appended_lists(node)
        self.flags += [left, skipped]
        head: list[ast.stmt] = []
        if isinstance(node, ast.For):
            head += self._stored(assigned([node.target]))
            head.append(ast.Assign([node.target], name_of("__item__")))
            given = self.expression(node.iter)
            if isinstance(node.iter, ast.Name | ast.Attribute | ast.Subscript):
                given = runtime("iterated", given)
        else:
            given = later(self.expression(as_test(node.test)))
        if may_leave(node.body, ast.Continue):
            head.append(set_to(skipped, ast.Constant(False)))
        body = [*head, *self.block(node.body)]
        del self.flags[-2:]
        flags = [n for n in self._flags_set(body) if n not in names]
        names = [*names, *flags, *([left] if left in stops else [])]
        every = self._sharing([*names, *self._dead(written, names)])
        stop = later(self.expression(_any(stops))) if stops else ast.Constant(None)
        takes = ["__item__"] if isinstance(node, ast.For) else []
        enter = [n for n in names if n in entering or n in (*flags, left)]
        end = [ast.Constant(counter), lists] if isinstance(node, ast.For) else []
        found: list[ast.stmt] = [
            *([set_to(left, ast.Constant(False))] if left in stops else []),
            define("__body__", [*every, *body], takes),
            *self._access(names),
            ast.Expr(_call_of_loop(given, stop, names, enter, end)),
        ]
        for each in found:
            place(each, node)
        if node.orelse:
            if not stops:
                return [*found, *self.block(node.orelse)]
            asked = ast.UnaryOp(ast.Not(), _any(stops))
            found += self.block([self._asking(asked, node.orelse, [node, *node.orelse])])
        return found

    def _test_reads(self, node: ast.While | ast.For) -> frozenset[str]:
        if isinstance(node, ast.For):
            return frozenset()
        return frozenset(n.id for n in ast.walk(node.test) if isinstance(n, ast.Name))

    def _sharing(self, names: Sequence[str]) -> list[ast.stmt]:
        """Return the declarations by which a generated function assigns to the user's variables."""
        own = [n for n in names if n not in self.globals]
        found: list[ast.stmt] = [ast.Nonlocal(own)] if own else []
        if outside := [n for n in names if n in self.globals]:
            found.append(ast.Global(outside))
        return found

    def _access(self, names: Sequence[str]) -> list[ast.stmt]:
        unpack: list[ast.stmt] = self._sharing(names)
        if names:
            unpack.append(ast.Assign([tuple_of(names, True)], name_of("__values__")))
        return [
            define("__get__", [ast.Return(tuple_of(names))]),
            define("__put__", unpack, ["__values__"]),
        ]

    def expression(self, node: ast.expr) -> ast.expr:
        """Return a rewritten expression."""
        return place(Expressions().visit(node), node)

    def visited(self, node: Any) -> Any:
        """Return a statement with its expressions rewritten."""
        return Expressions().generic_visit(node)


def rewrite_inner(node: ast.FunctionDef, around: frozenset[str]) -> None:
    """Rewrite a nested function; in a generator only its expressions."""
    if not is_generator(node):
        Function(node, around).rewrite()
        return
    node.body = [Expressions().visit(n) for n in node.body]


def _rebound(node: ast.FunctionDef) -> set[str]:
    """Return the variables that functions nested in ``node`` assign to by ``nonlocal``."""
    inner = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n is not node]
    return {name for n in inner for name in declared(n, ast.Nonlocal)}


def _as_list(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


def _copied(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [type(s)(list(s.names)) for s in statements if isinstance(s, ast.Nonlocal | ast.Global)]


def _call_of_loop(
    given: ast.expr,
    stop: ast.expr,
    names: Sequence[str],
    enter: Sequence[str],
    end: Sequence[ast.expr],
) -> ast.expr:
    """Return the call that runs or traces a loop; ``end`` is a `for` loop's counter and lists."""
    entered = ast.Tuple([ast.Constant(_user_name(n)) for n in enter], ast.Load())
    body = name_of("__body__")
    return runtime("for_" if end else "while_", given, body, stop, *_state(names), entered, *end)


def _counter(node: ast.While | ast.For) -> str:
    """Return the variable of a ``for`` loop if nothing else in the body assigns to it, or ""."""
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
        return ""
    return "" if node.target.id in assigned(node.body) else node.target.id


def _appended_lists(node: ast.While | ast.For) -> ast.expr:
    """Return a thunk of the lists that a loop only appends to, with no other use in its body."""
    used = Counter(n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name))
    appended: Counter[str] = Counter()
    for each in (n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Expr)):
        match each.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
                appended[name] += 1
            case _:
                pass
    return later(tuple_of([n for n in appended if appended[n] == used[n]]))


def _names_in(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    return frozenset(n.id for s in nodes for n in ast.walk(s) if isinstance(n, ast.Name))


def _any(flags: Sequence[str]) -> ast.expr:
    names: list[ast.expr] = [name_of(f) for f in flags]
    return names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)


def _user_name(name: str) -> str:
    return RESULT if name == "__result__" else name


def _state(names: Sequence[str]) -> list[ast.expr]:
    words = ast.Tuple([ast.Constant(_user_name(n)) for n in names], ast.Load())
    return [name_of("__get__"), name_of("__put__"), words]
