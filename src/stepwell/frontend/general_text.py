"""Write the program of a template: `?` in types, and index operands for ops that need sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

from stepwell.frontend.general import MARK, Growth, NotGeneralError, Template

_TYPE = re.compile(r"tensor<([^<>]*)>")
WHOLE = (1 << 63) - 1
"""The limit of a slice that reaches the end of its axis, for axes of any size."""


def program_text(template: Template) -> str:
    """Return the text of a program for any size.

    raises NotGeneralError : an op cannot be written with symbolic sizes
    """
    return _Writer(template).text()


@cache
def _op() -> re.Pattern[str]:
    """Match an op on one line; compiled lazily, when the first template is written."""
    return re.compile(
        r"^(?P<head> *(?P<result>%\w+) = \"nd\.(?P<op>\w+)\"\()(?P<operands>[^()]*)\)"
        r"(?: <\{(?P<properties>.*?)\}>)? : \((?P<inputs>[^()]*)\) -> (?P<type>tensor<[^<>]*>)"
        r"(?P<place> loc\(.*\))?$"
    )


def _closing(line: str) -> str:
    """Return how the line begins that closes the region which ``line`` opens."""
    return " " * (len(line) - len(line.lstrip())) + "}) : ("


class _Writer:
    """Writes the program of one template."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.numbers = template.numbers
        self.zero = (0,) * template.sizes.count
        """The growth of a size that no symbol changes."""
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
        found = _TYPE.sub(lambda m: f"tensor<{MARK.sub('?', m[1])}>", line)
        if MARK.search(found):
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
        if "@" not in line or not MARK.search(line):
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
        if mark := MARK.fullmatch(text):
            return self.numbers[int(mark[1])]
        return Growth(self.zero, int(text))

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
        return [n for n in self.shape(type) if n.by != self.zero]

    def _iota(self, match: re.Match[str]) -> str:
        return self.with_sizes(match, self.growing(match["type"]))

    _random_bits = _iota

    def _reshape(self, match: re.Match[str]) -> str:
        x, y = self.shape(match["inputs"]), self.shape(match["type"])
        grow = [[n for n in each if n.by != self.zero] for each in (x, y)]
        known = [prod(n.constant for n in each if n.by == self.zero) for each in (x, y)]
        if len(grow[0]) == len(grow[1]) == 1 and known[0] == known[1]:
            return self.dynamic(match[0])
        return self.with_sizes(match, grow[1])

    def _broadcast(self, match: re.Match[str]) -> str:
        dims = [int(n) for n in re.findall(r"\d+", match["properties"].partition(":")[2])]
        x, y = self.shape(match["inputs"]), self.shape(match["type"])
        given = {a for n, a in zip(x, dims, strict=True) if n.by != self.zero}
        return self.with_sizes(
            match, [n for a, n in enumerate(y) if n.by != self.zero and a not in given]
        )

    def _full(self, match: re.Match[str]) -> str:
        if not MARK.search(match["properties"]):
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
        *sizes, kind = match["type"][len("tensor<") : -1].split("x")
        for axis, (n, m) in enumerate(zip(shape, self.shape(match["type"]), strict=True)):
            if n.by != self.zero == m.by:  # a shorter axis would have less; the reshape checks that
                sizes[axis] = "?"
        loose = f"tensor<{'x'.join([*sizes, kind])}>"
        if loose == match["type"]:
            return self.with_sizes(match, [], props)
        result, place = match["result"], match["place"] or ""
        grow = self.growing(match["type"])
        operands = ", ".join([f"{result}__s", *map(self.value, grow)])
        types = ", ".join([loose, *("index" for _ in grow)])
        return self.dynamic(
            f'  {result}__s = "nd.slice"({match["operands"]}) <{{{props}}}>'
            f" : ({match['inputs']}) -> {loose}{place}\n"
            f'  {result} = "nd.reshape"({operands}) : ({types}) -> {match["type"]}{place}'
        )

    def _bound(self, text: str, size: Growth, is_limit: bool) -> str:
        """Return a slice's bound, counted from the end of the axis if it moves with the end."""
        number = self.number(text)
        if not any(number.by or (1,)):
            return text
        beyond = number - size
        if beyond is None or beyond > 0 or (beyond == 0 and not is_limit):
            raise NotGeneralError("a slice has a bound that does not move with the end of its axis")
        return str(beyond) if beyond else str(WHOLE)
