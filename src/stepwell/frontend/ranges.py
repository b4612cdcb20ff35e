"""Value ranges of integers, as far as they are known while tracing.

Ranges are stored by value name. Ops propagate them; a check, or a branch taken, narrows them while
its region is written. Indices proven to lie within an axis need no bounds check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from stepwell.core.dtypes import DType

if TYPE_CHECKING:
    from stepwell.frontend.tensor import Tensor

Range: TypeAlias = tuple[int, int]
"""The least and the largest number, both inclusive."""


def limits(kind: DType) -> Range:
    """Return the least and the largest number of an integer dtype.

    >>> from stepwell.core.dtypes import DTYPES
    >>> limits(DTYPES["ui8"])
    (0, 255)
    """
    found = np.iinfo(kind.numpy)
    return int(found.min), int(found.max)


def is_integer(kind: DType) -> bool:
    """Whether values of ``kind`` have ranges."""
    return kind.kind in ("signed", "unsigned")


class Value(NamedTuple):
    """A traced value by name: later writes to its tensor do not change it."""

    name: str
    kind: DType


@dataclass
class Ranges:
    """The known facts about the integers of one trace."""

    created: dict[str, Range] = field(default_factory=dict[str, Range])
    """The ranges of values, by name, as derived from the ops that define them."""
    facts: dict[str, tuple[str, tuple[Value, ...]]] = field(default_factory=dict[str, Any])
    """The comparison or logical op that defines each boolean, by name."""
    offsets: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """For a value, by name, another value and the constant offset from it."""
    narrowed: list[dict[str, Range]] = field(default_factory=lambda: [{}])
    """The narrowed ranges in each open region, innermost last."""

    def of(self, value: Tensor | Value) -> Range | None:
        """Return the range of all elements; None if the dtype is not an integer dtype."""
        if not is_integer(value.kind):
            return None
        name = value.name
        for known in reversed(self.narrowed):
            if (found := known.get(name)) is not None:
                return found
        return self.created.get(name) or limits(value.kind)

    def offset(self, value: Tensor | Value) -> tuple[str, int]:
        """Return a base value's name and the offset from it; the name is "" for a constant."""
        found = self.of(value)
        if found is not None and found[0] == found[1]:
            return "", found[0]
        return self.offsets.get(value.name, (value.name, 0))

    def _note_offset(self, op: str, result: Tensor, operands: Sequence[Tensor]) -> None:
        if op == "cast" and is_integer(operands[0].kind):
            self.offsets[result.name] = self.offset(operands[0])
        if op not in ("add", "sub"):
            return
        a, b = self.offset(operands[0]), self.offset(operands[1])
        if not b[0]:
            self.offsets[result.name] = a[0], a[1] + (b[1] if op == "add" else -b[1])
        elif not a[0] and op == "add":
            self.offsets[result.name] = b[0], b[1] + a[1]

    def tell(self, value: Tensor | Value, low: int | None = None, high: int | None = None) -> None:
        """Narrow the range of ``value`` from here to the end of the region."""
        if (found := self.of(value)) is None:
            return
        least = found[0] if low is None else max(low, found[0])
        most = found[1] if high is None else min(high, found[1])
        if least <= most:  # an empty range: this code is unreachable
            self.narrowed[-1][value.name] = least, most

    def count(self, counter: Any, first: Any, last: Any, step: int) -> None:
        """Record in a loop's body that ``counter`` starts at ``first`` and stays before ``last``.

        Each is an int or a traced value; if ``counter`` is an int there is nothing to record.
        """
        if isinstance(counter, int):
            return
        begin, end = self._of_number(first), self._of_number(last)
        if step > 0:
            self.tell(counter, begin and begin[0], end and end[1] - 1)
        else:
            self.tell(counter, end and end[0] + 1, begin and begin[1])

    def _of_number(self, value: Any) -> Range | None:
        return (value, value) if isinstance(value, int) else self.of(value)

    def suppose(self, test: Tensor | Value, truth: bool) -> None:
        """Record the consequences of ``test`` being ``truth``, to the end of the region."""
        self.narrowed[-1][test.name] = int(truth), int(truth)
        op, operands = self.facts.get(test.name, ("", ()))
        match op, truth:
            case ("and", True) | ("or", False):
                for each in operands:
                    self.suppose(each, truth)
            case ("not", _):
                self.suppose(operands[0], not truth)
            case _ if op in _OPPOSITE:
                self._compared(op if truth else _OPPOSITE[op], *operands)
            case _:
                pass

    def truth(self, test: Tensor | Value) -> bool | None:
        """Return the known value here of a boolean without axes; None if it is unknown."""
        for known in reversed(self.narrowed):
            if (found := known.get(test.name)) is not None:
                return bool(found[0])
        op, operands = self.facts.get(test.name, ("", ()))
        if op not in ("and", "or", "not"):
            return None
        said = [self.truth(each) for each in operands]
        if op == "not":
            return None if said[0] is None else not said[0]
        if (op == "or") in said:
            return op == "or"
        return None if None in said else op == "and"

    def _compared(self, op: str, a: Value, b: Value) -> None:
        one, other = self.of(a), self.of(b)
        if one is None or other is None:
            return
        strictly = op in ("lt", "gt")
        if op in ("gt", "ge"):
            a, b, one, other = b, a, other, one
        if op in ("lt", "le", "gt", "ge"):
            self.tell(a, high=other[1] - strictly)
            self.tell(b, low=one[0] + strictly)
        elif op == "eq":
            self.tell(a, *other)
            self.tell(b, *one)

    def _where(self, test: Tensor, truth: bool, value: Tensor) -> Range | None:
        """Return the range of the elements of ``value`` where ``test`` is ``truth``."""
        self.narrowed.append({})
        self.suppose(test, truth)
        found = self.of(value)
        self.narrowed.pop()
        return found

    def note(
        self,
        op: str,
        results: Sequence[Tensor],
        operands: Sequence[Tensor],
        properties: Mapping[str, Any],
    ) -> None:
        """Record the facts that an op implies about its result."""
        if len(results) != 1:
            return
        result = results[0]
        if result.kind.kind == "bool":
            if op in _FACTS:
                self.facts[result.name] = op, tuple(Value(v.name, v.kind) for v in operands)
            return
        if not is_integer(result.kind):
            return
        if not result.shape:
            self._note_offset(op, result, operands)
        if (rule := _RULES.get(op)) is None:
            return
        if op == "select":
            given = [None, self._where(operands[0], True, operands[1])]
            given.append(self._where(operands[0], False, operands[2]))
        else:
            given = [self.of(v) for v in operands]
        found = rule(given, result, operands, properties)
        low, high = limits(result.kind)
        if found is not None and low <= found[0] <= found[1] <= high and found != (low, high):
            self.created[result.name] = found


_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_FACTS = frozenset({*_OPPOSITE, "and", "or", "not"})

_Given: TypeAlias = "Sequence[Range | None]"
_Rule: TypeAlias = Callable[
    [_Given, "Tensor", "Sequence[Tensor]", Mapping[str, Any]], "Range | None"
]


def united(ranges: _Given) -> Range | None:
    """Return the union of ``ranges``; None if one of them is unknown."""
    known = [each for each in ranges if each is not None]
    if not known or len(known) != len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _corners(combine: Callable[[int, int], int]) -> _Rule:
    def rule(given: _Given, *_: Any) -> Range | None:
        a, b = given
        if a is None or b is None:
            return None
        found = [combine(x, y) for x in a for y in b]
        return min(found), max(found)

    return rule


def _extreme(low: Callable[[int, int], int]) -> _Rule:
    """Return the rule of minimum or maximum."""

    def rule(given: _Given, *_: Any) -> Range | None:
        a, b = given
        return None if a is None or b is None else (low(a[0], b[0]), low(a[1], b[1]))

    return rule


def _negated(given: _Given, *_: Any) -> Range | None:
    (a,) = given
    return a and (-a[1], -a[0])


def _absolute(given: _Given, *_: Any) -> Range | None:
    (a,) = given
    if a is None:
        return None
    least = 0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return least, max(abs(a[0]), abs(a[1]))


def _divided(given: _Given, *_: Any) -> Range | None:
    a, b = given
    if a is None or b is None or b[0] <= 0 <= b[1]:
        return None
    found = [x // y for x in a for y in b]
    return min(found), max(found)


def _remainder(given: _Given, *_: Any) -> Range | None:
    """Return the range of a remainder, which has the sign of the divisor."""
    a, b = given
    if a is None or b is None or b[0] <= 0 <= b[1]:
        return None
    if b[0] > 0:
        return (0, min(a[1], b[1] - 1)) if a[0] >= 0 else (0, b[1] - 1)
    return b[0] + 1, 0


def _first_operand(given: _Given, *_: Any) -> Range | None:
    return given[0]


def _number(
    given: _Given, result: Tensor, operands: Sequence[Tensor], properties: Mapping[str, Any]
) -> Range | None:
    text = str(properties["value"]).partition(" ")[0]
    try:
        return int(text), int(text)
    except ValueError:
        return None


def _iota(
    given: _Given, result: Tensor, operands: Sequence[Tensor], properties: Mapping[str, Any]
) -> Range | None:
    return 0, max(result.shape[properties["axis"]] - 1, 0)


def _axis_position(
    given: _Given, result: Tensor, operands: Sequence[Tensor], properties: Mapping[str, Any]
) -> Range | None:
    """Return the range of positions along an axis of the operand."""
    return 0, max(operands[0].shape[properties["axis"]] - 1, 0)


def _cast(
    given: _Given, result: Tensor, operands: Sequence[Tensor], properties: Mapping[str, Any]
) -> Range | None:
    return (0, 1) if operands[0].kind.kind == "bool" else given[0]


def _masked(given: _Given, *_: Any) -> Range | None:
    """Return the range of a bitwise and."""
    known = [each[1] for each in given if each is not None and each[0] >= 0]
    return (0, min(known)) if known else None


def _shifted(given: _Given, *_: Any) -> Range | None:
    a, b = given
    if a is None or b is None or b[0] < 0 or b[1] > 63:
        return None
    found = [x >> y for x in a for y in b]
    return min(found), max(found)


_RULES: dict[str, _Rule] = {
    "full": _number,
    "iota": _iota,
    "add": _corners(lambda x, y: x + y),
    "sub": _corners(lambda x, y: x - y),
    "mul": _corners(lambda x, y: x * y),
    "min": _extreme(min),
    "max": _extreme(max),
    "neg": _negated,
    "abs": _absolute,
    "floor_div": _divided,
    "mod": _remainder,
    "and": _masked,
    "shift_right": _shifted,
    "cast": _cast,
    "select": lambda given, *_: united(given[1:]),
    "concat": lambda given, *_: united(given),
    "dynamic_update_slice": lambda given, *_: united(given[:2]),
    "scatter": lambda given, *_: united(given[:2]),
    "argmax": _axis_position,
    "argmin": _axis_position,
    "argsort": _axis_position,
    **dict.fromkeys(
        (
            *("broadcast", "reshape", "transpose", "slice", "reverse", "gather", "dynamic_slice"),
            *("reduce_min", "reduce_max", "cumulative_min", "cumulative_max", "sort", "relu"),
        ),
        _first_operand,
    ),
}
