"""kernel.schedule: how a kernel's loops run, as a list of levels, outermost first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from xdsl.context import Context
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

PARALLEL, FOR, UNROLL, VECTOR = "parallel", "for", "unroll", "vector"
GROUP, LANE = "group", "lane"
"""Kinds of levels on devices: distributed over work groups, and over the work items of one."""
KINDS: Final = (PARALLEL, GROUP, LANE, FOR, UNROLL, VECTOR)
OUTERMOST: Final = (PARALLEL, GROUP)
PEEL, OVERLAP, REPEAT, BORDER = "peel", "overlap", "repeat", "border"
MASK = "mask"
TAILS: Final = (PEEL, OVERLAP, REPEAT, BORDER, MASK)
"""How a loop ends whose extent is no multiple of its step; the first is not printed."""
MOST_STEP = 1 << 31
"""Maximum iterations of one step: no array that a kernel splits has more."""
WIDEST = 256
"""Maximum lanes of a vector: more than any machine has."""
WRITTEN_OUT = 256
"""Maximum unrolled iterations: vectors or rows beyond the registers of any machine."""
MOST_LEVELS = 64
"""Maximum levels of a list: deeper than the nest of any kernel, and still readable."""


@dataclass(frozen=True)
class Action:
    """A transformation at a level besides its loop: ``pack 1 as dot``, ``grain 8``, ``prefetch 0``.

    number : of an operand of the op, or an amount; None if the action has none
    detail : a variant, after ``as``; "" if there is none
    """

    name: str
    number: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        """Return the text that is parsed back to it."""
        number = "" if self.number is None else f" {self.number}"
        return f"{self.name}{number}{f' as {self.detail}' if self.detail else ''}"


ACTIONS: Final[dict[str, tuple[bool | None, tuple[str, ...]]]] = {
    "grain": (True, ()),
    "pipeline": (True, ()),
    "prefetch": (None, ()),
    "pack": (True, ("first", "double_buffered", "dot", "biased_dot")),
    "stage": (True, ()),
    "nontemporal": (True, ()),
    "mirror": (False, ()),
}
"""For each action: whether a number follows (None: or not), and the words allowed after ``as``."""


@dataclass(frozen=True)
class Level:
    """A loop level: runs through loop ``d<loop>`` in steps.

    step : iterations that one step of this level leaves to the levels inside of it
    parts : instead of steps, the number of parts of a reduction, whose results are added in order
    tail : how the loop ends whose extent is no multiple of the step
    """

    kind: str
    loop: int
    step: int = 1
    parts: int = 0
    actions: tuple[Action, ...] = ()
    tail: str = PEEL

    def __str__(self) -> str:
        """Return the text that is parsed back to it."""
        by = f" by {self.step}" if self.step > 1 else ""
        into = f" into {self.parts}" if self.parts else ""
        tail = f" {self.tail}" if self.tail != PEEL else ""
        actions = f" {{{', '.join(map(str, self.actions))}}}" if self.actions else ""
        return f"{self.kind} d{self.loop}{by}{into}{tail}{actions}"

    def doing(self, *actions: Action) -> Level:
        """Return a copy with further actions."""
        return replace(self, actions=(*self.actions, *actions))

    def action(self, name: str) -> Action | None:
        """Return the first action of this name."""
        return next((each for each in self.actions if each.name == name), None)


Levels = tuple[Level, ...]


@dataclass(frozen=True)
class Schedule:
    """The levels shared by all ops of a kernel, and further inner levels of single ops.

    ops : by number among the linalg.generic ops of the kernel
    """

    levels: Levels = ()
    ops: dict[int, Levels] = field(default_factory=dict[int, Levels])

    def __hash__(self) -> int:
        """Hash the fields that are compared."""
        return hash((self.levels, tuple(self.ops.items())))

    def __str__(self) -> str:
        """Return the text that is parsed back to it."""
        lists = [_spelled(self.levels)] if self.levels or not self.ops else []
        lists += [f"op {number} {_spelled(levels)}" for number, levels in self.ops.items()]
        return ", ".join(lists)

    @property
    def has_groups(self) -> bool:
        """Whether its outer loops are distributed over work groups."""
        return bool(self.levels) and self.levels[0].kind == GROUP

    def all_levels(self) -> Levels:
        """Return the levels of all lists."""
        return (*self.levels, *(level for levels in self.ops.values() for level in levels))

    def of(self, op: int) -> Levels:
        """Return all the levels of an op, from the outermost to the innermost."""
        return (*self.levels, *self.ops.get(op, ()))


def _spelled(levels: Levels) -> str:
    return f"[{', '.join(map(str, levels))}]"


@irdl_attr_definition
class ScheduleAttr(Data[Schedule]):
    """The schedule of a kernel's loops: ``#kernel.schedule<[parallel d0 by 66, for d1 by 64]>``.

    A level runs through a loop of the ops, ``dN`` in their maps, in steps; the levels inside of it
    run through one step. ``op N [...]`` gives further levels to one op.

    * (C1) Steps are 1 or more, and less than the step of the enclosing level of the same loop;
      those of unroll and vector divide it, others leave a shorter step for the remainder.
    * (C2) A vector is the innermost level of its loop; parallel levels, or those of groups, come
      before all others. Lanes need levels of groups.
    * (C3) A level has steps or parts, not both; only levels that are parallel or of groups have
      parts.
    * (C4) No level is redundant: one without effect is refused.
    * (C5) A vector has a power of two of iterations, up to 256; at most 256 iterations or vectors
      are unrolled.
    * (C6) Parallel and for levels of several iterations have a tail policy other than peel.
    """

    name = "kernel.schedule"

    def verify(self) -> None:
        """Check C1 to C6."""
        for op in (None, *self.data.ops):
            levels = self.data.levels if op is None else self.data.of(op)
            _check(levels, "" if op is None else f" of op {op}")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Schedule:
        """Parse ``<[level, ...], op 0 [level, ...], ...>``."""
        with parser.in_angle_brackets():
            return parse_schedule(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the form that `parse_parameter` reads."""
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def _check(levels: Levels, where: str) -> None:
    if len(levels) > MOST_LEVELS:
        raise VerifyException(f"there are {len(levels)} levels{where}, at most {MOST_LEVELS}")
    steps: dict[int, int] = {}
    vectors: set[int] = set()
    inside, beside = False, 1
    for level in levels:
        if level.loop in vectors:  # kernel_schedule_c2
            raise VerifyException(f"'{level}'{where} is inside of the vectors of d{level.loop}")
        _check_step(level, steps.get(level.loop), where)
        if level.kind in OUTERMOST and (inside or level.kind != levels[0].kind):
            others = "parallel" if level.kind == PARALLEL else "of groups"  # kernel_schedule_c2
            raise VerifyException(f"'{level}'{where} must come before levels that are not {others}")
        inside = inside or level.kind not in OUTERMOST
        if level.kind == LANE and levels[0].kind != GROUP:  # kernel_schedule_c2
            raise VerifyException(f"'{level}'{where} is of no group: begin with 'group'")
        if level.kind == VECTOR:
            vectors.add(level.loop)
        if level.kind == UNROLL:
            beside *= steps.get(level.loop, level.step) // level.step
            if beside > WRITTEN_OUT:  # kernel_schedule_c5
                raise VerifyException(
                    f"'{level}'{where}: {beside} iterations stand side by side, at most "
                    f"{WRITTEN_OUT} may"
                )
        if not level.parts:
            steps[level.loop] = 1 if level.kind == VECTOR else level.step


def _check_step(level: Level, outer: int | None, where: str) -> None:
    """Check the step of a level inside of one with a step of ``outer`` iterations."""
    if not 1 <= level.step <= MOST_STEP:  # kernel_schedule_c1
        raise VerifyException(f"'{level}'{where}: a step is of 1 to {MOST_STEP} iterations")
    if level.kind == VECTOR and (level.step & (level.step - 1) or level.step > WIDEST):
        raise VerifyException(  # kernel_schedule_c5
            f"'{level}'{where}: a vector has a power of two of iterations, up to {WIDEST}"
        )
    whole = level.kind in (UNROLL, VECTOR)
    if outer is not None and (outer % level.step if whole else level.step > outer):
        said = "must divide" if whole else "must be less than"  # kernel_schedule_c1
        raise VerifyException(f"'{level}'{where} {said} the {outer} iterations around it")
    if level.parts and (level.step > 1 or level.kind not in OUTERMOST):  # kernel_schedule_c3
        raise VerifyException(
            f"'{level}'{where}: only a parallel or group level without 'by' has parts"
        )
    if level.tail != PEEL and (level.kind not in (PARALLEL, FOR) or level.step == 1):
        raise VerifyException(  # kernel_schedule_c6
            f"'{level}'{where}: only parallel and for levels of several iterations have a tail"
        )
    if level.kind != VECTOR and outer == level.step:  # kernel_schedule_c4
        raise VerifyException(f"'{level}'{where} has one step: leave it out")


def schedule_from(text: str) -> Schedule:
    """Parse a schedule that stands alone; ParseError or VerifyException if it is invalid.

    >>> print(schedule_from("[parallel d0 by 64, for d1]").levels[0].step)
    64
    """
    parser = Parser(Context(), text)
    found = parse_schedule(parser)
    if text[parser.pos :].strip():
        parser.raise_error("expected no more", parser.pos, len(text))
    return ScheduleAttr(found).data


def parse_schedule(parser: AttrParser) -> Schedule:
    """Parse lists of levels: those of the kernel, then those of ops."""
    shared: Levels = ()
    ops: dict[int, Levels] = {}
    first = True
    while first or parser.parse_optional_punctuation(",") is not None:
        start = parser.pos
        if parser.parse_optional_keyword("op") is not None:
            number = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if number in ops:
                parser.raise_error(f"there are two lists of op {number}", start, parser.pos)
            ops[number] = _parse_levels(parser)
        elif first:
            shared = _parse_levels(parser)
        else:
            parser.raise_error("expected 'op' and its number before a further list of levels")
        first = False
    return Schedule(shared, ops)


def _parse_levels(parser: AttrParser) -> Levels:
    levels = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: _parse_level(parser), " in a schedule"
    )
    return tuple(levels)


def _parse_level(parser: AttrParser) -> Level:
    kind = _word(parser, KINDS, "a kind of level")
    loop = _parse_loop(parser)
    step, parts = 1, 0
    if parser.parse_optional_keyword("by") is not None:
        step = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if parser.parse_optional_keyword("into") is not None:
        parts = parser.parse_integer(allow_boolean=False, allow_negative=False)
    tail = next((t for t in TAILS if parser.parse_optional_keyword(t) is not None), PEEL)
    actions = parser.parse_optional_comma_separated_list(
        parser.Delimiter.BRACES, lambda: _parse_action(parser), " after a level"
    )
    return Level(kind, loop, step, parts, tuple(actions or ()), tail)


def _parse_loop(parser: AttrParser) -> int:
    start = parser.pos
    name = parser.parse_identifier(" that names a loop, as d0")
    digits = name[1:]
    if name[0] != "d" or not digits.isdecimal() or not digits.isascii() or len(digits) > 3:
        parser.raise_error(f"expected a loop, as d0, got '{name}'", start, parser.pos)
    return int(digits)


def _parse_action(parser: AttrParser) -> Action:
    name = _word(parser, tuple(ACTIONS), "an action")
    numbered, words = ACTIONS[name]
    number = parser.parse_optional_integer(allow_negative=False) if numbered is not False else None
    if numbered and number is None:
        parser.raise_error(f"expected the number of '{name}'")
    detail = ""
    if words and parser.parse_optional_keyword("as") is not None:
        detail = _word(parser, words, f"what {name} knows")
    return Action(name, number, detail)


def _word(parser: AttrParser, known: Sequence[str], what: str) -> str:
    start = parser.pos
    word = parser.parse_identifier(f" that is {what}")
    if word not in known:
        parser.raise_error(f"expected {what} ({', '.join(known)}), got '{word}'", start, parser.pos)
    return word
