"""The maximum and the minimum of two values."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling import Spelling

INTEGER: dict[type[Any], str] = {
    arith.MaxSIOp: "maxsi",
    arith.MinSIOp: "minsi",
    arith.MaxUIOp: "maxui",
    arith.MinUIOp: "minui",
}
INTEGER_SIGNS = {
    "maxsi": (">", True),
    "minsi": ("<", True),
    "maxui": (">", False),
    "minui": ("<", False),
}
"""The comparison that selects the left operand, and whether it is signed."""


def extreme(s: Spelling, name: str, kind: Kind, x: str, y: str) -> str:
    """Return ``maximum``, ``minimum`` (which propagate NaN) or ``maxnum``, ``minnum`` (no NaN).

    As in IEEE 754-2019, -0 is less than +0.
    """
    sign, zero_sign = (">", "&") if name.startswith("max") else ("<", "|")
    wins = "x" if name.endswith("imum") else "y"
    bits = kind.signed
    equal = s.bits(kind, f"({s.bits(bits, 'x', kind)} {zero_sign} {s.bits(bits, 'y', kind)})", bits)
    either = "|" if kind.lanes else "||"
    takes = f"({s.compared(kind, f'x {sign} y')} {either} {s.compared(kind, f'{wins} != {wins}')})"
    otherwise = s.choose(kind, s.compared(kind, "x == y"), equal, "y")
    plain = [f"return {s.choose(kind, takes, 'x', otherwise)};"]
    body = quickly(s, name, kind, plain)
    return f"{s.helper(f'sw_{name}_{kind}', kind, [(kind, 'x'), (kind, 'y')], body)}({x}, {y})"


def quickly(s: Spelling, what: str, kind: Kind, plain: list[str]) -> list[str]:
    """Return a body that uses the machine's instruction, else the plain rows."""
    quick = s.quick(what, kind)
    return [*quick, *plain, "#endif"] if quick else plain


def extreme_of_constant(
    s: Spelling, name: str, kind: Kind, x: str, y: str, zero: bool = False
) -> str:
    """Return `extreme` for a constant ``y``, neither NaN nor the zero that never wins.

    ``zero`` says that it is the other zero.
    """
    greater = name.startswith("max")
    if name.endswith("num"):  # false on NaN
        test = s.compared(kind, f"x {'>' if greater else '<'} y")
    else:
        opposite = f"x {'<=' if greater else '>='} y"
        test = f"{'~' if kind.lanes else '!'}{s.compared(kind, opposite)}"
    text = [f"return {s.choose(kind, test, 'x', 'y')};"]
    what = f"{name}_of_{'zero' if zero else 'constant'}"
    if not zero:
        text = quickly(s, what, kind, text)
    helper = s.helper(f"sw_{what}_{kind}", kind, [(kind, "x"), (kind, "y")], text)
    return f"{helper}({x}, {y})"


def integer_extreme(s: Spelling, name: str, kind: Kind, x: str, y: str) -> str:
    """Return ``maxsi``, ``minsi``, ``maxui`` or ``minui``."""
    sign, signed = INTEGER_SIGNS[name]
    twin = kind.signed if signed or kind.element == "i1" else kind.unsigned
    if not kind.lanes:
        test = s.compared(twin, f"{s.bits(twin, x, kind)} {sign} {s.bits(twin, y, kind)}")
        return s.choose(kind, test, x, y)
    test = s.compared(twin, f"{s.bits(twin, 'x', kind)} {sign} {s.bits(twin, 'y', kind)}")
    plain = [f"return {s.choose(kind, test, 'x', 'y')};"]
    parameters: list[tuple[Kind | str, str]] = [(kind, "x"), (kind, "y")]
    body = quickly(s, name, kind, plain)
    return f"{s.helper(f'sw_{name}_{kind}', kind, parameters, body)}({x}, {y})"
