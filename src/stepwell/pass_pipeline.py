"""Pass pipelines as text: ``canonicalize,func.func(cse),schedule{vector-bits=256}``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from stepwell.core.diagnostics import CompileError, Diagnostic, Place
from stepwell.dialects.parsing import did_you_mean

SOURCE = "<pipeline>"
"""The file name of diagnostics about the pipeline's own text."""

Passes = Mapping[str, Callable[[], type[ModulePass]]]


@dataclass(frozen=True)
class Step:
    """One pass, run on the module or on each op ``anchors`` leads to, outermost first."""

    anchors: tuple[str, ...]
    pass_: ModulePass

    def __str__(self) -> str:
        text = str(self.pass_.spec())
        for anchor in reversed(self.anchors):
            text = f"{anchor}({text})"
        return text

    def targets(self, module: ModuleOp) -> list[Operation]:
        """Return the ops the pass runs on."""
        found: list[Operation] = [module]
        for anchor in self.anchors:
            found = [
                op
                for above in found
                for region in above.regions
                for block in region.blocks
                for op in block.ops
                if op.name == anchor
            ]
        return found

    def run(self, ctx: Context, module: ModuleOp) -> int:
        """Apply the pass; return on how many ops it ran."""
        targets = self.targets(module)
        for target in targets:
            if isinstance(target, ModuleOp):
                self.pass_.apply(ctx, target)
            else:
                _apply_alone(ctx, self.pass_, target)
        return len(targets)


def _apply_alone(ctx: Context, pass_: ModulePass, target: Operation) -> None:
    """Apply a module pass to one op, alone in a module of its own, and put back what is left."""
    block = target.parent
    assert block is not None
    after = target.next_op
    target.detach()
    alone = ModuleOp([target])
    try:
        pass_.apply(ctx, alone)
    finally:
        for op in list(alone.ops):
            op.detach()
            if after is None:
                block.add_op(op)
            else:
                block.insert_op_before(op, after)


def parse(text: str, passes: Passes) -> list[Step]:
    """Parse a pipeline; raise `CompileError` with the column of what is wrong.

    A pipeline may stand inside ``builtin.module(...)``. Options are ``{name=value flag}``.
    """
    return list(_Reader(text, passes).read((), ""))


@dataclass
class _Reader:
    text: str
    passes: Passes
    at: int = 0

    def read(self, anchors: tuple[str, ...], end: str) -> Iterator[Step]:
        """Read elements up to ``end``: a closing parenthesis, or nothing at the end of the text."""
        self._blank()
        while end or self.text:
            yield from self._element(anchors)
            self._blank()
            if self._peek() == end:
                return
            if self._peek() != ",":
                self._fail(f"expected ',' or {repr(end) if end else 'the end of the pipeline'}")
            self.at += 1
            self._blank()

    def _element(self, anchors: tuple[str, ...]) -> Iterator[Step]:
        start = self.at
        while self._peek().isalnum() or self._peek() in ("-", "_", "."):
            self.at += 1
        name = self.text[start : self.at]
        if not name:
            self._fail("expected the name of a pass, or of an op followed by '('")
        if self._peek() != "(":
            yield self._pass(name, start, anchors)
            return
        self.at += 1
        outermost = not anchors and name == "builtin.module"
        yield from self.read(anchors if outermost else (*anchors, name), ")")
        self.at += 1

    def _pass(self, name: str, start: int, anchors: tuple[str, ...]) -> Step:
        if name not in self.passes:
            self._fail(f"unknown pass '{name}'", start, did_you_mean(name, self.passes), len(name))
        options = ""
        if self._peek() == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                self._fail("'{' is never closed")
            options = self.text[self.at : end + 1]
            self.at = end + 1
        kind = self.passes[name]()
        return Step(anchors, self._configure(kind, name, options, start))

    def _configure(self, kind: type[ModulePass], name: str, options: str, start: int) -> ModulePass:
        try:
            (spec,) = parse_pipeline(name + options)
        except ArgSpecParseError:
            self._fail(f"cannot read the options {options}", start + len(name), "", len(options))
        spec = spec.normalize_parameter_names()
        types = get_type_hints(kind)
        fields = {f.name for f in dataclasses.fields(kind)}
        given: dict[str, Any] = {}
        for key, value in spec.parameters.items():
            if key not in fields:
                known = [f.replace("_", "-") for f in sorted(fields)]
                help = did_you_mean(key.replace("_", "-"), known) or (
                    f"its options are {', '.join(known)}" if known else "it takes no options"
                )
                at = self.text.find(key[:1], start + len(name))
                self._fail(f"pass '{name}' has no option '{key.replace('_', '-')}'", at, help)
            given[key] = (True,) if types.get(key) is bool and not value else value
        try:
            return kind.from_spec(ArgSpec(name, given))
        except (ValueError, TypeError) as error:
            message = str(error)[:1].lower() + str(error)[1:]
            self._fail(f"pass '{name}': {message}", start, "", len(name) + len(options))

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]  # "" at the end

    def _blank(self) -> None:
        while self._peek().isspace():
            self.at += 1

    def _fail(
        self, message: str, at: int | None = None, help: str = "", width: int = 1
    ) -> NoReturn:
        column = (self.at if at is None else at) + 1
        place = Place(SOURCE, 1, column, width)
        raise CompileError(Diagnostic("error", message, place, help=help))
