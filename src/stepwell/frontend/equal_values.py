"""Structural equality of traced values: the same ops on the same values, though written twice."""

from __future__ import annotations

import re

from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Trace

_OP = re.compile(r'\s*%\S+ = "nd\.(\w+)"\(([^)]*)\)(.*)', re.DOTALL)
_EFFECTS = ("callback",)
"""Ops that may return another value each time."""
DEEP = 50
"""Maximum depth of nested ops to compare: users' expressions are less deep."""


def is_same_value(a: Tensor, b: Tensor) -> bool:
    """Whether both values are computed by equal expressions."""
    a.refresh()
    b.refresh()
    return a.graph is b.graph and _is_same(a.graph, a.name, b.name, DEEP)


def _is_same(trace: Trace, a: str, b: str, deep: int) -> bool:
    if a == b:
        return True
    one, other = _definition(trace, a), _definition(trace, b)
    if not deep or one is None or other is None or one[0] != other[0] or one[2] != other[2]:
        return False
    pairs = zip(one[1], other[1], strict=False)
    return len(one[1]) == len(other[1]) and all(_is_same(trace, x, y, deep - 1) for x, y in pairs)


def _definition(trace: Trace, name: str) -> tuple[str, list[str], str] | None:
    """Return the op that defines a value: its name, its operands, and the rest of its text."""
    head = f"{name} = "
    for lines in (trace.lines, *reversed(trace.outer)):
        for line in reversed(lines):
            if not line.lstrip().startswith(head):
                continue
            text = line[: line.rindex(" loc(")] if " loc(" in line else line
            found = _OP.match(text)
            if found is None or found[1] in _EFFECTS:
                return None
            return found[1], [v for v in found[2].split(", ") if v], found[3]
    return None
