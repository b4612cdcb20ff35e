"""Size-polymorphic programs: infer a function's text for any size from a few traces (note 046).

Python code may branch on sizes, so only a trace says what a function does at a size. A template
comes from traces that differ in one size each: their texts may differ only in numbers that are
linear in the sizes. These become `?`, or index arithmetic where an op needs a size as an operand.
A call with new sizes is traced, in a millisecond: if the text matches the template, its program
serves the call.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

from stepwell.frontend.calls import Call
from stepwell.frontend.traced import Traced

STEPS = (1, 3)
"""How much one size grows in the traces that show its effect: two points test linearity."""

_NUMBER = re.compile(r"(\d+)")
_TYPE = re.compile(r"tensor<([^<>]*)>")
_MARK = re.compile(r"@(\d+)@")


@cache
def _op() -> re.Pattern[str]:
    """Match an op on one line; compiled lazily, when the first template is written."""
    return re.compile(
        r"^(?P<head> *(?P<result>%\w+) = \"nd\.(?P<op>\w+)\"\()(?P<operands>[^()]*)\)"
        r"(?: <\{(?P<properties>.*?)\}>)? : \((?P<inputs>[^()]*)\) -> (?P<type>tensor<[^<>]*>)"
        r"(?P<place> loc\(.*\))?$"
    )


WHOLE = (1 << 63) - 1
"""The limit of a slice that reaches the end of its axis, whatever the size."""


class NotGeneralError(Exception):
    """The function's text changes with its sizes in more than linear numbers."""


@dataclass(frozen=True)
class Growth:
    """A number ``constant`` + sum of ``by`` * sizes; ``by`` is None if it is not linear in them."""

    by: tuple[int, ...] | None
    constant: int = 0

    def at(self, sizes: Sequence[int]) -> int | None:
        """Return the number at these sizes; None if it is not linear."""
        if self.by is None:
            return None
        return self.constant + sum(k * n for k, n in zip(self.by, sizes, strict=True))

    def __sub__(self, other: Growth) -> int | None:
        """Return the difference if it is a constant, else None."""
        if self.by is None or self.by != other.by:
            return None
        return self.constant - other.constant


@dataclass(frozen=True)
class Axis:
    """An axis of an argument: its size is ``constant`` plus ``by`` times a symbol."""

    argument: int
    axis: int
    symbol: int
    by: int = 1
    constant: int = 0


@dataclass(frozen=True)
class Sizes:
    """The symbolic sizes of a call: which axes of its arguments depend on which symbol."""

    axes: tuple[Axis, ...]
    count: int

    def of(self, call: Call) -> tuple[int, ...] | None:
        """Return the symbols' values in a call; None if its sizes are inconsistent with them."""
        found: dict[int, int] = {}
        for axis in self.axes:
            size = call.arguments[axis.argument].shape[axis.axis] - axis.constant
            value, rest = divmod(size, axis.by)
            if rest or value < 0 or found.setdefault(axis.symbol, value) != value:
                return None
        return tuple(found[k] for k in range(self.count))

    def call(self, call: Call, values: Sequence[int]) -> Call:
        """Return ``call`` with shapes in which the symbols have these values."""
        shapes = [list(a.shape) for a in call.arguments]
        for axis in self.axes:
            shapes[axis.argument][axis.axis] = axis.constant + axis.by * values[axis.symbol]
        arguments = tuple(
            replace(a, shape=tuple(s)) for a, s in zip(call.arguments, shapes, strict=True)
        )
        return replace(call, arguments=arguments)

    def rest(self, call: Call) -> tuple[Any, ...]:
        """Return the part of a call's shapes that no symbol determines, as a key."""
        return tuple(a.shape for a in self.call(call, [2] * self.count).arguments)


def differing(call: Call, other: Call) -> Sizes | None:
    """Return the axes whose sizes differ between two calls, as symbols; equal pairs share one.

    None if no size differs, or one is 0 or 1: these have rules of their own (broadcasting).
    """
    return _grouped(
        (number, axis, (n, m))
        for number, (a, b) in enumerate(zip(call.arguments, other.arguments, strict=True))
        for axis, (n, m) in enumerate(zip(a.shape, b.shape, strict=True))
        if n != m
    )


def every(call: Call) -> Sizes | None:
    """Return all axes of a call except those of size 0 or 1; equal sizes share a symbol."""
    return _grouped(
        (number, axis, (n, n))
        for number, a in enumerate(call.arguments)
        for axis, n in enumerate(a.shape)
        if n > 1
    )


def _grouped(found: Any) -> Sizes | None:
    symbols: dict[tuple[int, int], int] = {}
    axes: list[Axis] = []
    for number, axis, sizes in found:
        if min(sizes) < 2:
            return None
        axes.append(Axis(number, axis, symbols.setdefault(sizes, len(symbols))))
    return Sizes(tuple(axes), len(symbols)) if axes else None


def _at_another_size(trace: Callable[[Call], Traced], call: Call) -> Traced:
    """Trace at sizes that the user did not ask for; turn any exception into `NotGeneralError`."""
    try:
        return trace(call)
    except Exception as error:
        name = type(error).__name__
        raise NotGeneralError(f"at another size it raises {name}: {error}") from error


@dataclass(frozen=True)
class Template:
    """A function's text at symbolic sizes: ``@3@`` stands for ``numbers[3]``."""

    sizes: Sizes
    rest: tuple[Any, ...]
    text: str
    numbers: tuple[Growth, ...]
    like: Traced
    """The trace at the original sizes."""

    @classmethod
    def of(cls, trace: Callable[[Call], Traced], call: Call, sizes: Sizes) -> Template:
        """Infer the template of a function from traces around the sizes of ``call``.

        raises NotGeneralError : the texts at other sizes differ in more than linear numbers
        """
        values = sizes.of(call)
        assert values is not None
        first = trace(sizes.call(call, values))
        traces: list[list[Traced]] = []
        for k in range(sizes.count):
            steps = [[n + s * (i == k) for i, n in enumerate(values)] for s in STEPS]
            traces.append([_at_another_size(trace, sizes.call(call, step)) for step in steps])
        texts = [_NUMBER.split(t.module.text) for t in (first, *(t for ts in traces for t in ts))]
        if any(len(t) != len(texts[0]) or t[::2] != texts[0][::2] for t in texts):
            raise NotGeneralError("its text at another size " + _first_difference(texts))
        for other in (t for ts in traces for t in ts):
            check_alike(first, other)
        numbers: list[Growth] = []
        out = list(texts[0])
        for place in range(1, len(out), 2):
            values_at = [int(t[place]) for t in texts]
            if any(n != values_at[0] for n in values_at):
                out[place] = f"@{len(numbers)}@"
                numbers.append(_growth(values_at, values))
        return cls(sizes, sizes.rest(call), "".join(out), tuple(numbers), first)

    def serves(self, call: Call) -> tuple[int, ...] | None:
        """Return the symbols' values in a call if its other sizes are the template's, else None."""
        return self.sizes.of(call) if self.sizes.rest(call) == self.rest else None

    def packed_sizes(self, call: Call) -> bytes:
        """Pack the sizes of a call that are `?` in the program, for the dispatcher."""
        axes = {(a.argument, a.axis) for a in self.sizes.axes}
        found = [call.arguments[n].shape[a] for n, a in sorted(axes)]
        return struct.pack(f"{len(found)}q", *found)

    def check(self, traced: Traced, sizes: Sequence[int]) -> None:
        """Raise `NotGeneralError` if a trace at some sizes does not match the template."""
        mine, others = _MARK.split(self.text), traced.module.text
        at = 0
        for k, part in enumerate(mine):
            if k % 2 == 0:
                if not others.startswith(part, at):
                    raise NotGeneralError(f"it does something else where sizes are {list(sizes)}")
                at += len(part)
                continue
            digits = re.compile(r"\d+").match(others, at)
            want = self.numbers[int(part)].at(sizes)
            if digits is None or (want is not None and int(digits[0]) != want):
                raise NotGeneralError(f"it computes other sizes where sizes are {list(sizes)}")
            at = digits.end()
        if at != len(others):
            raise NotGeneralError(f"it does more where sizes are {list(sizes)}")
        check_alike(self.like, traced)

    def module(self) -> str:
        """Return the text of the program for any size.

        raises NotGeneralError : an op cannot be written with symbolic sizes
        """
        return _Writer(self).text()


def check_alike(one: Traced, other: Traced) -> None:
    """Raise `NotGeneralError` if two traces differ outside their text."""
    if one.out_tree != other.out_tree or one.effects != other.effects:
        raise NotGeneralError("it returns something else at another size")
    if one.outside.types != other.outside.types:
        raise NotGeneralError("it reads other arrays at another size")
    mine, others = one.module.resources, other.module.resources
    if mine.keys() != others.keys() or any(not _is_same(mine[k], others[k]) for k in mine):
        raise NotGeneralError("its constants are others at another size")


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.__array_interface__["data"] == b.__array_interface__["data"] or (
        a.tobytes() == b.tobytes()
    )


def _first_difference(texts: Sequence[Sequence[str]]) -> str:
    lines = ["".join(t).splitlines() for t in texts]
    plain = [[_NUMBER.sub("0", line) for line in each] for each in lines]
    for k, line in enumerate(plain[0]):
        for other, text in zip(plain[1:], lines[1:], strict=True):
            if k >= len(other) or other[k] != line:
                found = re.search(r'loc\("(.*?)":(\d+)', text[k] if k < len(text) else lines[0][k])
                return f"differs from {found[1]}:{found[2]} on" if found else "differs"
    return "is longer"


def _growth(seen: Sequence[int], values: Sequence[int]) -> Growth:
    by: list[int] = []
    for k in range(len(values)):
        one, other = seen[1 + 2 * k] - seen[0], seen[2 + 2 * k] - seen[0]
        if one * STEPS[1] != other * STEPS[0] or one % STEPS[0]:
            return Growth(None)
        by.append(one // STEPS[0])
    return Growth(tuple(by), seen[0] - sum(b * n for b, n in zip(by, values, strict=True)))


def _closing(line: str) -> str:
    """Return how the line begins that closes the region which ``line`` opens."""
    return " " * (len(line) - len(line.lstrip())) + "}) : ("


class _Writer:
    """Write a template's program: `?` in types, and index operands for ops that need sizes."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.numbers = template.numbers
        self.head: list[str] = []
        self.created: dict[Any, str] = {}
        self.open: list[tuple[str, int]] = []
        """For each open nd.vmap and nd.scan, how its closing line begins, and its sizes that are
        operands."""

    def text(self) -> str:
        """Return the whole text."""
        first, *lines = self.template.text.split("\n")
        body = [self.line(line, k, lines) for k, line in enumerate(lines, 1)]
        found = re.findall(r"(%\w+): (tensor<[^<>]*>)", first)
        self.names = [name for name, _ in found]
        return "\n".join([self.dynamic(first), *self.sizes(first), *body])

    def dynamic(self, line: str) -> str:
        """Replace symbolic sizes in a line's types by `?`; refuse them anywhere else."""
        found = _TYPE.sub(lambda m: f"tensor<{_MARK.sub('?', m[1])}>", line)
        if _MARK.search(found):
            op = re.search(r'"([\w.]+)"\(', line)
            raise NotGeneralError(f"{op[1] if op else 'an op'} takes a size as a number")
        return found

    def line(self, line: str, follows: int, lines: Sequence[str]) -> str:
        """Return one line of the program, before line number ``follows``."""
        if self.open and line.startswith(self.open[-1][0]):
            end, count = self.open.pop()
            inputs, rest = line[len(end) :].split(")", 1)
            line = f"{end}{', '.join(filter(None, [inputs, *['index'] * count]))}){rest}"
        elif '"nd.vmap"(' in line and line.endswith("({"):
            return self.batch(line)
        elif '"nd.scan"(' in line and line.endswith("({"):
            return self.scan(line, follows, lines)
        if "@" not in line or not _MARK.search(line):
            return line
        match = _op().match(line)
        if match is None:
            return self.dynamic(line)
        write = getattr(self, f"_{match['op']}", None)
        return self.dynamic(line) if write is None else write(match)

    def batch(self, line: str) -> str:
        """Return the first line of an nd.vmap, with an operand for a symbolic size."""
        size = re.search(r"size = (@\d+@) : i64, ", line)
        sizes: list[Growth] = []
        if size is not None:
            line = re.sub(r"(array<i32: \d+), 0>", r"\1, 1>", line.replace(size[0], ""))
            sizes.append(self.number(size[1]))
        return self.opened(line, sizes)

    def scan(self, line: str, follows: int, lines: Sequence[str]) -> str:
        """Return the first line of an nd.scan, with operands for symbolic sizes.

        These are the number of steps and the sizes of results, which the closing line states.
        """
        sizes: list[Growth] = []
        if length := re.search(r"length = (@\d+@) : i64, ", line):
            line = line.replace(length[0], "")
            sizes.append(self.number(length[1]))
        closing = next(each for each in lines[follows:] if each.startswith(_closing(line)))
        segments = re.search(r"array<i32: (\d+), (\d+), 0, 0>", line)
        assert segments is not None
        for type in _TYPE.findall(closing.partition("-> ")[2])[int(segments[1]) :]:
            sizes += self.growing(f"tensor<{type.partition('x')[2]}>")
        counts = f"{segments[1]}, {segments[2]}, {int(bool(length))}, {len(sizes) - bool(length)}"
        return self.opened(line.replace(segments[0], f"array<i32: {counts}>"), sizes)

    def opened(self, line: str, sizes: Sequence[Growth]) -> str:
        """Return the first line of an op with a region, with ``sizes`` as its last operands."""
        self.open.append((_closing(line), len(sizes)))
        operands, rest = line.split(") <{", 1)
        names = ", ".join(self.value(n) for n in sizes)
        comma = "" if operands.endswith("(") or not sizes else ", "
        return self.dynamic(f"{operands}{comma}{names}) <{{{rest}")

    def number(self, text: str) -> Growth:
        """Return the value of a number or a mark."""
        if mark := _MARK.fullmatch(text):
            return self.numbers[int(mark[1])]
        return Growth((0,) * self.template.sizes.count, int(text))

    def shape(self, type: str) -> list[Growth]:
        """Return the sizes of a type."""
        return [self.number(part) for part in type[len("tensor<") : -1].split("x")[:-1]]

    def value(self, growth: Growth) -> str:
        """Return the name of an index value that computes a number."""
        if growth.by is None:
            raise NotGeneralError("a size does not grow evenly")
        total = ""
        for symbol, by in enumerate(growth.by):
            if by:
                part = self.symbol(symbol)
                part = part if by == 1 else self.make("muli", part, self.constant(by))
                total = part if not total else self.make("addi", total, part)
        if growth.constant:
            total = self.make("addi", total, self.constant(growth.constant))
        return total

    def symbol(self, number: int) -> str:
        """Return the name of a symbol's index value."""
        return self.created.setdefault(("symbol", number), f"%size__{number}")

    def constant(self, value: int) -> str:
        """Return the name of an index constant."""
        key = "constant", value
        if key not in self.created:
            self.created[key] = f"%size__c{len(self.created)}"
            op_text = f'"arith.constant"() <{{value = {value} : index}}> : () -> index'
            self.head.append(f"  {self.created[key]} = {op_text}")
        return self.created[key]

    def make(self, op: str, a: str, b: str) -> str:
        """Return the name of the result of an arith op."""
        key = op, a, b
        if key not in self.created:
            self.created[key] = f"%size__v{len(self.created)}"
            op_text = f'"arith.{op}"({a}, {b}) : (index, index) -> index'
            self.head.append(f"  {self.created[key]} = {op_text}")
        return self.created[key]

    def sizes(self, first: str) -> list[str]:
        """Return the lines that read the symbols from the arguments and compute with them."""
        types = re.findall(r"%\w+: (tensor<[^<>]*>)", first)
        lines: list[str] = []
        for key, name in list(self.created.items()):
            if key[0] != "symbol":
                continue
            axis = next(a for a in self.template.sizes.axes if a.symbol == key[1])
            if (axis.by, axis.constant) != (1, 0):
                raise NotGeneralError("no axis has the size of a symbol itself")
            type = self.dynamic(types[axis.argument])
            argument = self.names[axis.argument]
            op_text = f'"nd.dim"({argument}) <{{axis = {axis.axis} : i64}}> : ({type}) -> index'
            lines.append(f"  {name} = {op_text}")
        return lines + self.head

    def with_sizes(
        self, match: re.Match[str], sizes: Sequence[Growth], properties: str = ""
    ) -> str:
        """Return an op with index operands for ``sizes``."""
        names = [self.value(n) for n in sizes]
        operands = ", ".join(filter(None, [match["operands"], *names]))
        types = ", ".join(filter(None, [match["inputs"], *("index" for _ in names)]))
        attr = properties or match["properties"] or ""
        attr = f" <{{{attr}}}>" if attr else ""
        return self.dynamic(
            f"{match['head']}{operands}){attr} : ({types}) -> {match['type']}{match['place'] or ''}"
        )

    def growing(self, type: str) -> list[Growth]:
        """Return the symbolic sizes of a type."""
        count = self.template.sizes.count
        return [n for n in self.shape(type) if n.by != (0,) * count]

    def _iota(self, match: re.Match[str]) -> str:
        return self.with_sizes(match, self.growing(match["type"]))

    _random_bits = _iota

    def _reshape(self, match: re.Match[str]) -> str:
        x, y = self.shape(match["inputs"]), self.shape(match["type"])
        zero = (0,) * self.template.sizes.count
        grow = [[n for n in each if n.by != zero] for each in (x, y)]
        known = [prod(n.constant for n in each if n.by == zero) for each in (x, y)]
        if len(grow[0]) == len(grow[1]) == 1 and known[0] == known[1]:
            return self.dynamic(match[0])
        return self.with_sizes(match, grow[1])

    def _broadcast(self, match: re.Match[str]) -> str:
        dims = [int(n) for n in re.findall(r"\d+", match["properties"].partition(":")[2])]
        zero = (0,) * self.template.sizes.count
        x, y = self.shape(match["inputs"]), self.shape(match["type"])
        given = {a for n, a in zip(x, dims, strict=True) if n.by != zero}
        return self.with_sizes(
            match, [n for a, n in enumerate(y) if n.by != zero and a not in given]
        )

    def _full(self, match: re.Match[str]) -> str:
        if not _MARK.search(match["properties"]):
            return self.with_sizes(match, self.growing(match["type"]))
        value = re.fullmatch(r"value = (@\d+@)(?:\.0)? : (\w+)", match["properties"])
        if value is None or value[2] == "i1":
            raise NotGeneralError("a number is computed of a size")
        result, place = match["result"], match["place"] or ""
        index, kind = self.value(self.number(value[1])), f"tensor<{value[2]}>"
        steps = [f'  {result}__i = "nd.from_index"({index}) : (index) -> tensor<i64>{place}']
        last = f"{result}__i", "tensor<i64>"
        if value[2] != "i64":
            steps.append(f'  {result}__n = "nd.cast"({last[0]}) : (tensor<i64>) -> {kind}{place}')
            last = f"{result}__n", kind
        sizes = ", ".join([last[0], *(self.value(n) for n in self.growing(match["type"]))])
        types = ", ".join([last[1], *("index" for _ in self.growing(match["type"]))])
        op_text = f'"nd.broadcast"({sizes}) <{{dims = array<i64>}}> : ({types}) -> {match["type"]}'
        return "\n".join([*steps, self.dynamic(f"  {result} = {op_text}{place}")])

    def _slice(self, match: re.Match[str]) -> str:
        parts: Mapping[str, list[str]] = {
            name: numbers.split(", ")
            for name, numbers in re.findall(r"(\w+) = array<i64: ([^<>]*)>", match["properties"])
        }
        shape = self.shape(match["inputs"])
        for name in ("starts", "limits"):
            for axis, text in enumerate(parts[name]):
                parts[name][axis] = self._bound(text, shape[axis], name == "limits")
        props = ", ".join(f"{name} = array<i64: {', '.join(ns)}>" for name, ns in parts.items())
        return self.with_sizes(match, [], props)

    def _bound(self, text: str, size: Growth, is_limit: bool) -> str:
        """Return a slice's bound, counted from the end of the axis if it moves with the end."""
        number = self.number(text)
        if not any(number.by or (1,)):
            return text
        beyond = number - size
        if beyond is None or beyond > 0 or (beyond == 0 and not is_limit):
            raise NotGeneralError("a slice has a bound that does not move with the end of its axis")
        return str(beyond) if beyond else str(WHOLE)
