"""Validate a schedule before it runs: complete steps, and every name set before it is used.

`host_schedule` documents the steps. A schedule that passes can be translated and walked without a
Python error; only the hashes of a saved program ensure that it computes the right values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from stepwell.core.dtypes import DTYPES
from stepwell.core.guards import FIRST, VALUES
from stepwell.core.host_schedule import ARITY, Step, Tree
from stepwell.core.schema import LARGEST, check_names, choice, listed, maybe, text, whole, wrong

DEEPEST = 256
"""Nesting depth of operators: each takes a frame of Python's stack, whose limit is a thousand."""
DEEPEST_BLOCKS = 64
"""Nesting depth of loops and branches."""
MOST_ROUNDS = 10**10
"""Iterations of loops with known bounds: at a microsecond each on the host, these take hours."""
MOST_ITEMS = 1 << 40
"""Work items of a launch: each writes an element, and no memory holds more."""
MOST_LANES = 1 << 10
"""Work items of a group: the maximum of any device."""

_FIELDS = {
    "sizes": ("sizes",),
    "arena": ("bytes",),
    "allocate": ("buffer", "bytes"),
    "zero": ("buffer", "bytes"),
    "require": ("holds", "number", "values"),
    "callback": ("function", "number", "inputs", "outputs"),
    "constant": ("buffer", "bytes"),
    "bind": ("names", "places"),
    "set": ("names", "values"),
    "launch": ("kernel", "of", "items", "lanes", "arguments"),
    "copy": ("source", "target", "bytes"),
    "read": ("name", "source", "dtype"),
    "write": ("target", "value", "dtype"),
    "for": ("name", "from", "to", "step", "body"),
    "while": ("test", "condition", "body"),
    "if": ("condition", "then", "else"),
}
_STEPS = {name: dict.fromkeys(("do", *fields)) for name, fields in _FIELDS.items()}
_HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2})*")
_dtype = choice(*DTYPES)
_name = text(1 << 10)
_names = listed(_name)


def check_tree(tree: Any, known: Collection[str], place: str, left: int = DEEPEST) -> None:
    """Check a tree, whose variables must be among ``known``; ValueError if it is malformed."""
    kind = type(tree)
    if kind is str:
        if tree not in known:
            raise ValueError(f"{place} uses '{tree[:40]}', which nothing has set")
    elif kind is list or kind is tuple:
        if not left:
            raise ValueError(f"{place} is nested too deeply")
        name = tree[0] if tree and type(tree[0]) is str else None
        if ARITY.get(name or "") != len(tree) - 1:
            raise wrong(place, "an operator and its operands", tree)
        if name in ("wrap", "f64"):
            _check_bits(name, tree, place)
        for each in tree[1:]:
            check_tree(each, known, place, left - 1)
    elif not (kind is int and abs(tree) <= 1 << 63) and kind is not float and kind is not bool:
        raise wrong(place, "a number, a name or an operator with operands", tree)


def _check_bits(name: str, tree: Sequence[Any], place: str) -> None:
    """Check an operator whose last operand is a literal number."""
    number = tree[-1]
    if type(number) is not int or (name == "wrap" and not 1 <= number <= 64):
        raise wrong(place, "an operator with a number of bits", list(tree))


def check_schedule(
    steps: Sequence[Any],
    dims: int,
    unknown: int,
    buffers: Sequence[tuple[str, int]],
    guards: int = 0,
    kernels: int = 0,
) -> None:
    """Check the schedule of a program; ValueError names the step that is wrong.

    dims : the number of `?` of its arguments
    unknown : the number of `?` of its results
    buffers : the kinds of buffers with their counts
    guards : the number of guards
    kernels : the number of kernels
    """
    checker = _Checker(
        {f"d{number}" for number in range(dims)},
        {"arena", *(f"{kind}{number}" for kind, count in buffers for number in range(count))},
        guards,
        kernels,
    )
    for number, what in enumerate(("sizes", "arena")):
        place = f"host[{number}]"
        if len(steps) <= number or checker.step(steps[number], place) != what:
            raise ValueError(f"{place} must be the step '{what}'")
    found = steps[0]["sizes"]
    if len(found) != unknown:
        raise ValueError(f"host[0] must have {unknown} sizes of results, it has {len(found)}")
    for number, each in enumerate(found):
        checker.amount(each, f"host[0].sizes[{number}]")
    checker.amount(steps[1]["bytes"], "host[1].bytes")
    checker.block(list(steps[2:]), "host", 2)


@dataclass
class _Checker:
    """The variables and buffers defined so far."""

    names: set[str]
    buffers: set[str]
    guards: int = 0
    """The number of guards of the program."""
    kernels: int = 0
    """The number of its kernels."""
    depth: int = 0
    rounds: int = 1
    """The known number of executions of the code being checked."""

    def step(self, step: Any, place: str) -> str:
        """Check that a step has its fields; return its kind."""
        if type(step) is not dict:
            raise wrong(place, "a step", step)
        found = cast(dict[str, Any], step)
        what = choice(*_STEPS)(found.get("do"), f"{place}.do")
        if found.keys() != _STEPS[what].keys():
            check_names(found, _STEPS[what], place)
        if what == "sizes":
            listed(lambda each, _: each)(found["sizes"], f"{place}.sizes")
        return what

    def block(self, steps: Any, place: str, first: int = 0) -> None:
        """Check steps in order."""
        if type(steps) is not list:
            raise wrong(place, "a list of steps", steps)
        if self.depth > DEEPEST_BLOCKS:
            raise ValueError(f"{place[:60]}... is nested too deeply")
        self.depth += 1
        for number, each in enumerate(cast(list[Any], steps), first):
            at = f"{place}[{number}]"
            what = self.step(each, at)
            if what in ("sizes", "arena"):
                raise ValueError(f"{at} must not be the step '{what}'")
            getattr(self, f"_{what}")(each, at)
        self.depth -= 1

    def tree(self, tree: Tree, place: str) -> None:
        """Check a tree of any number."""
        check_tree(tree, self.names, place)

    def amount(self, tree: Tree, place: str, most: int = LARGEST) -> None:
        """Check a tree that is a count or size: not negative and at most ``most``."""
        check_tree(tree, self.names, place)
        if type(tree) in (float, bool) or (type(tree) is int and not 0 <= tree <= most):
            raise wrong(place, f"an amount from 0 to {most:,}", tree)

    def place(self, found: Any, place: str) -> None:
        """Check a location in a buffer: its name and the byte offset."""
        if type(found) is not list or len(cast(list[Any], found)) != 2:
            raise wrong(place, "a buffer and the bytes to skip", found)
        self.buffer(found[0], place)
        self.amount(found[1], place)

    def buffer(self, name: Any, place: str) -> None:
        """Check the name of a buffer."""
        if _name(name, place) not in self.buffers:
            raise ValueError(f"{place} uses the buffer '{name[:40]}', which is not there")

    @contextmanager
    def apart(self) -> Generator[None]:
        """Discard on exit the definitions made inside, which may not have run."""
        names, buffers, rounds = set(self.names), set(self.buffers), self.rounds
        yield
        self.names, self.buffers, self.rounds = names, buffers, rounds

    def _allocate(self, step: Step, place: str) -> None:
        self.amount(step["bytes"], f"{place}.bytes")
        self.buffers.add(_name(step["buffer"], f"{place}.buffer"))

    def _zero(self, step: Step, place: str) -> None:
        self.buffer(step["buffer"], place)
        self.amount(step["bytes"], f"{place}.bytes")

    def _require(self, step: Step, place: str) -> None:
        self.tree(step["holds"], f"{place}.holds")
        self.guard(step["number"], f"{place}.number")
        for number, each in enumerate(listed(_any, 0, VALUES)(step["values"], f"{place}.values")):
            self.tree(each, f"{place}.values[{number}]")

    def guard(self, number: Any, place: str) -> None:
        """Check a guard's number."""
        if type(number) is not int or not 0 <= number - FIRST < self.guards:
            raise wrong(place, "the number of a guard", number)

    def _callback(self, step: Step, place: str) -> None:
        text()(step["function"], f"{place}.function")
        self.guard(step["number"], f"{place}.number")
        for kind in ("inputs", "outputs"):
            for number, each in enumerate(listed(_any)(step[kind], f"{place}.{kind}")):
                self.array(each, f"{place}.{kind}[{number}]")

    def array(self, found: Any, place: str) -> None:
        """Check an array that is passed to a Python function."""
        if type(found) is not dict:
            raise wrong(place, "an array", found)
        array = cast(dict[str, Any], found)
        check_names(array, dict.fromkeys(("place", "sizes", "strides", "dtype")), place)
        self.place(array["place"], f"{place}.place")
        sizes = listed(_any)(array["sizes"], f"{place}.sizes")
        many = len(sizes)
        strides = listed(_any, many, many)(array["strides"], f"{place}.strides")
        for each in (*sizes, *strides):
            self.amount(each, place)
        _dtype(array["dtype"], f"{place}.dtype")

    def _constant(self, step: Step, place: str) -> None:
        data = text(1 << 30)(step["bytes"], f"{place}.bytes")
        if _HEXADECIMAL.fullmatch(data) is None:
            raise wrong(f"{place}.bytes", "bytes in hexadecimal", data)
        self.buffers.add(_name(step["buffer"], f"{place}.buffer"))

    def _bind(self, step: Step, place: str) -> None:
        names = _names(step["names"], f"{place}.names")
        many = len(names)
        for number, each in enumerate(listed(_any, many, many)(step["places"], f"{place}.places")):
            self.place(each, f"{place}.places[{number}]")
        self.buffers.update(names)

    def _set(self, step: Step, place: str) -> None:
        names = _names(step["names"], f"{place}.names")
        many = len(names)
        for number, each in enumerate(listed(_any, many, many)(step["values"], f"{place}.values")):
            self.tree(each, f"{place}.values[{number}]")
        self.names.update(names)

    def _launch(self, step: Step, place: str) -> None:
        _name(step["kernel"], f"{place}.kernel")
        maybe(whole(0, self.kernels - 1))(step["of"], f"{place}.of")
        check_tree(step["items"], self.names, f"{place}.items")
        if type(step["items"]) is int and step["items"] > MOST_ITEMS:
            raise wrong(f"{place}.items", f"a number up to {MOST_ITEMS:,}", step["items"])
        if type(step["lanes"]) is not int or not 0 <= step["lanes"] <= MOST_LANES:
            raise wrong(f"{place}.lanes", f"a number up to {MOST_LANES}", step["lanes"])
        for number, each in enumerate(listed(_any)(step["arguments"], f"{place}.arguments")):
            at = f"{place}.arguments[{number}]"
            if type(each) is not dict:
                raise wrong(at, "an argument", each)
            if "buffer" in each:
                check_names(each, {"buffer": 0, "skip": 0}, at)
                self.place([each["buffer"], each["skip"]], at)
            else:
                check_names(each, {"value": 0, "dtype": 0}, at)
                self.tree(each["value"], f"{at}.value")
                _dtype(each["dtype"], f"{at}.dtype")

    def _copy(self, step: Step, place: str) -> None:
        self.place(step["source"], f"{place}.source")
        self.place(step["target"], f"{place}.target")
        self.amount(step["bytes"], f"{place}.bytes")

    def _read(self, step: Step, place: str) -> None:
        self.place(step["source"], f"{place}.source")
        _dtype(step["dtype"], f"{place}.dtype")
        self.names.add(_name(step["name"], f"{place}.name"))

    def _write(self, step: Step, place: str) -> None:
        self.place(step["target"], f"{place}.target")
        self.tree(step["value"], f"{place}.value")
        _dtype(step["dtype"], f"{place}.dtype")

    def _for(self, step: Step, place: str) -> None:
        for name in ("from", "to", "step"):
            self.tree(step[name], f"{place}.{name}")
        bounds = [step[name] for name in ("from", "to", "step")]
        if type(bounds[2]) is int and bounds[2] <= 0:
            raise wrong(f"{place}.step", "a number above 0", bounds[2])
        with self.apart():
            self.names.add(_name(step["name"], f"{place}.name"))
            if all(type(each) is int for each in bounds):
                self.rounds *= max(len(range(*bounds)), 1)
            if self.rounds > MOST_ROUNDS:
                raise ValueError(
                    f"{place} runs {self.rounds:,} times, more than {MOST_ROUNDS:,}, which takes "
                    "hours on the host of a program of OpenCL"
                )
            self.block(step["body"], f"{place}.body")

    def _while(self, step: Step, place: str) -> None:
        self.block(step["test"], f"{place}.test")
        self.tree(step["condition"], f"{place}.condition")
        if type(step["condition"]) not in (str, list) and step["condition"]:
            raise ValueError(f"{place} never ends: its condition is always true")
        with self.apart():
            self.block(step["body"], f"{place}.body")

    def _if(self, step: Step, place: str) -> None:
        self.tree(step["condition"], f"{place}.condition")
        after: list[tuple[set[str], set[str]]] = []
        for branch in ("then", "else"):
            with self.apart():
                self.block(step[branch], f"{place}.{branch}")
                after.append((self.names, self.buffers))
        self.names = after[0][0] & after[1][0]
        self.buffers = after[0][1] & after[1][1]


def _any(value: Any, place: str) -> Any:
    return value
