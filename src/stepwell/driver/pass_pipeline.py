"""Pass pipelines as text: ``canonicalize,func.func(cse),schedule{machine=haswell}``.

``through(STAGE)`` stands for the passes of every stage of the compiler up to that one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa, type_repr

from stepwell.core.diagnostics import CompileError, Diagnostic, Place, did_you_mean
from stepwell.core.plugins import with_broken
from stepwell.driver.check_lowered import (
    Introduced,
    check_left,
    is_foreign,
    load_dialects,
    note_introduced,
)
from stepwell.driver.pipeline import STAGE_NAMES, Stage, default_stages, stages_through
from stepwell.transforms.passes import Pass, check_one_block

SOURCE = "<pipeline>"
"""The file name of diagnostics about the pipeline's own text."""

THROUGH = "through"

Passes = Mapping[str, Callable[[], type[ModulePass]]]


@dataclass(frozen=True)
class Step:
    """One pass, applied to the module or to each op ``anchors`` leads to, outermost first."""

    anchors: tuple[str, ...]
    pass_: ModulePass
    named: bool = True
    """Whether the pipeline names the pass itself, or only its stage."""
    stage: Stage | None = None
    """The stage that it lowers to: it fails over ops of the floor above that it leaves."""
    of: str = ""
    """The stage whose list it is in, where the pipeline names that."""

    def __str__(self) -> str:
        text = str(self.pass_.spec())
        for anchor in reversed(self.anchors):
            text = f"{anchor}({text})"
        return text

    def with_options(self, known: Mapping[str, Any]) -> Step:
        """Return this step with the unset options that ``known`` has values for."""
        defaults: Any = {f.name: f.default for f in dataclasses.fields(self.pass_)}
        options = {
            name: value
            for name, value in known.items()
            if name in defaults and getattr(self.pass_, name) == defaults[name]
        }
        if not options:
            return self
        return dataclasses.replace(self, pass_=dataclasses.replace(self.pass_, **options))

    def targets(self, module: ModuleOp) -> list[Operation]:
        """Return the ops that the pass runs on."""
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

    def run(self, ctx: Context, module: ModuleOp, introduced: Introduced | None = None) -> int:
        """Apply the pass; return the number of ops it ran on.

        introduced : the classes of ops that passes of other packages have created; updated
        """
        introduced = {} if introduced is None else introduced
        load_dialects(ctx, self.pass_)
        foreign = is_foreign(self.pass_)
        before = {type(op) for op in module.walk()} if foreign else set[type[Operation]]()
        targets = self.targets(module)
        for target in targets:
            if isinstance(self.pass_, Pass) and self.pass_.one_block:
                check_one_block(target, self.pass_.name)
            if isinstance(target, ModuleOp):
                self.pass_.apply(ctx, target)
            else:
                _apply_alone(ctx, self.pass_, target)
        if foreign:
            note_introduced(ctx, module, self.pass_, before, introduced)
        if self.stage is not None:
            check_left(self.stage, self.pass_.name, module, introduced)
        return len(targets)


def _apply_alone(ctx: Context, pass_: ModulePass, target: Operation) -> None:
    """Apply a module pass to one op, in a module of its own, and put back the result."""
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


def steps_of(stage: Stage, passes: Passes) -> list[Step]:
    """Return the steps of a stage; the one that lowers to its floor has ``makes`` set."""
    known = _STEPS.get(stage)
    if known is not None and all(passes.get(n) is created for n, created in known.kinds.items()):
        return known.steps
    steps = [
        dataclasses.replace(
            step,
            named=False,
            of=stage.name,
            stage=stage if step.pass_.name == stage.converts else None,
        )
        for step in parse(stage.passes, passes)
    ]
    if not any(is_foreign(step.pass_) for step in steps):  # our own passes do not change
        _STEPS[stage] = _Steps(steps, {s.pass_.name: passes[s.pass_.name] for s in steps})
    return steps


class _Steps(NamedTuple):
    """The cached steps of a stage."""

    steps: list[Step]
    kinds: dict[str, Callable[[], type[ModulePass]]]
    """The class that each name of a pass resolved to."""


_STEPS: dict[Stage, _Steps] = {}
"""A cache: parsing them each time took a third of a small compilation."""


def parse(text: str, passes: Passes, stages: Sequence[Stage] | None = None) -> list[Step]:
    """Parse a pipeline; raise `CompileError` with the column of an error.

    A pipeline may be inside ``builtin.module(...)``. Options are ``{name=value flag}``.

    stages : the stages of ``through(name)``; by default those of the default pipeline
    """
    return list(_Reader(text, passes, stages or default_stages()).read((), ""))


@dataclass
class _Reader:
    text: str
    passes: Passes
    stages: Sequence[Stage]
    at: int = 0

    def read(self, anchors: tuple[str, ...], end: str) -> Iterator[Step]:
        """Read elements up to ``end``: a closing parenthesis, or "" for the end of the text."""
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
        start, name = self.at, self._name()
        if not name:
            self._fail("expected the name of a pass, or of an op followed by '('")
        if self._peek() != "(":
            yield self._pass(name, start, anchors)
            return
        self.at += 1
        if name == THROUGH:
            yield from self._through(start, anchors)
            return
        outermost = not anchors and name == "builtin.module"
        yield from self.read(anchors if outermost else (*anchors, name), ")")
        self.at += 1

    def _name(self) -> str:
        start = self.at
        while self._peek().isalnum() or (self._peek() and self._peek() in "-_."):
            self.at += 1
        return self.text[start : self.at]

    def _through(self, start: int, anchors: tuple[str, ...]) -> Iterator[Step]:
        """Read the name of a stage and yield the steps through it."""
        if anchors:
            self._fail("a stage is for the whole module, not for parts of it", start)
        at, name = self.at, self._name()
        if name not in STAGE_NAMES:
            listed = f"the stages are {', '.join(STAGE_NAMES)}"
            help = did_you_mean(name, STAGE_NAMES) or listed
            self._fail(f"unknown stage '{name}'", at, help, max(len(name), 1))
        if self._peek() != ")":
            self._fail("expected ')'")
        self.at += 1
        for stage in stages_through(name, self.stages):
            yield from steps_of(stage, self.passes)

    def _pass(self, name: str, start: int, anchors: tuple[str, ...]) -> Step:
        if name not in self.passes:
            place = Place(SOURCE, 1, start + 1, len(name))
            help = did_you_mean(name, self.passes)
            unknown = Diagnostic("error", f"unknown pass '{name}'", place, help=help)
            raise CompileError(with_broken(unknown))
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
        fields = [f.name for f in dataclasses.fields(kind)]
        given: dict[str, Any] = {}
        for key, value in spec.parameters.items():
            at, said = self._option(key, start + len(name))
            if key not in fields:
                self._fail(
                    f"pass '{name}' has no option '{said}'", at, _suggestion(key, fields), len(said)
                )
            given[key] = (True,) if types[key] is bool and not value else value
            if not _fits(given[key], types[key]):
                shown = ",".join(map(str, value)) or "nothing"
                message = (
                    f"option '{said}' of pass '{name}' is {type_repr(types[key])}, not {shown}"
                )
                self._fail(message, at, "", len(said))
        try:
            return kind.from_spec(ArgSpec(name, given))
        except (ValueError, TypeError) as error:
            message = str(error)[:1].lower() + str(error)[1:]
            self._fail(f"pass '{name}': {message}", start, "", len(name) + len(options))

    def _option(self, key: str, start: int) -> tuple[int, str]:
        """Return the position of the option ``key`` after ``start``, and its spelling there."""
        spelled = re.compile(rf"\b{re.escape(key).replace('_', '[-_]')}(?![-\w])")
        found = spelled.search(self.text, start)
        return (found.start(), found[0]) if found else (start, key.replace("_", "-"))

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]  # "" at the end of the text

    def _blank(self) -> None:
        while self._peek().isspace():
            self.at += 1

    def _fail(
        self, message: str, at: int | None = None, help: str = "", width: int = 1
    ) -> NoReturn:
        column = (self.at if at is None else at) + 1
        place = Place(SOURCE, 1, column, width)
        raise CompileError(Diagnostic("error", message, place, help=help))


def _fits(value: Sequence[Any], type: Any) -> bool:
    """Whether the values given for an option have its type, as xDSL reads them."""
    if not value and isa(None, type):
        return True
    return isa(value, type) or (len(value) == 1 and isa(value[0], type))


def _suggestion(key: str, fields: Sequence[str]) -> str:
    """Return a hint at the existing options, for an option that does not exist."""
    known = [f.replace("_", "-") for f in fields]
    listed = f"its options are {', '.join(known)}" if known else "it takes no options"
    return did_you_mean(key.replace("_", "-"), known) or listed
