"""Integer arithmetic that never traps and is defined for all inputs, as helper functions."""

from __future__ import annotations

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling import Spelling

_FLOOR = "return x / y - ((x % y != 0) & ((x < 0) != (y < 0)));"
_CEIL = "return x / y + ((x % y != 0) & ((x < 0) == (y < 0)));"

_BODIES: dict[str, tuple[str, ...]] = {
    "divsi": ("return y == 0 ? 0 : y == -1 ? (T)(0 - (U)x) : (T)(x / y);",),
    "divui": ("return y == 0 ? 0 : (T)((U)x / (U)y);",),
    "remsi": ("return y == 0 || y == -1 ? 0 : (T)(x % y);",),
    "remui": ("return y == 0 ? 0 : (T)((U)x % (U)y);",),
    "floordivsi": ("if (y == 0) return 0;", "if (y == -1) return (T)(0 - (U)x);", _FLOOR),
    "ceildivsi": ("if (y == 0) return 0;", "if (y == -1) return (T)(0 - (U)x);", _CEIL),
    "ceildivui": ("return y == 0 ? 0 : (T)((U)x / (U)y + ((U)x % (U)y != 0));",),
    "shli": ("return (U)y < BITS ? (T)((U)x << y) : 0;",),
    "shrui": ("return (U)y < BITS ? (T)((U)x >> y) : 0;",),
    "shrsi": ("return (T)(x >> ((U)y < BITS ? y : BITS - 1));",),
}


def divided(s: Spelling, name: str, kind: Kind, x: str, y: str, by: int | None) -> str:
    """Return a quotient or remainder; ``by`` is the divisor if it is a constant."""
    if kind.is_bool:
        return f"({x} & {y})" if "div" in name else f"({x} & 0)"
    if by is not None and by not in (0, -1) and not kind.lanes and name in ("divsi", "remsi"):
        return s.convert(kind, f"({x} {'/' if name == 'divsi' else '%'} {y})", _promoted(kind))
    return _call(s, name, kind, x, y)


def shifted(s: Spelling, name: str, kind: Kind, x: str, y: str, by: int | None) -> str:
    """Return a shift; ``by`` is the amount if it is a constant."""
    if kind.is_bool:
        return f"{x}" if name == "shrsi" else f"({x} & {'~' if kind.lanes else '!'}{y})"
    if by is None or not 0 <= by < kind.bits:
        return _call(s, name, kind, x, y)
    if name == "shrsi":
        return s.convert(kind, f"({x} >> {by})", _promoted(kind))
    sign = "<<" if name == "shli" else ">>"
    moved = f"({s.bits(kind.unsigned, x, kind)} {sign} {by})"
    return s.bits(kind, moved, kind.unsigned if kind.lanes else _promoted(kind.unsigned))


def _promoted(kind: Kind) -> Kind:
    """Return the type to which C promotes small scalars in arithmetic."""
    return kind if kind.lanes or kind.bits >= 32 else Kind("i32")


def _call(s: Spelling, name: str, kind: Kind, x: str, y: str) -> str:
    return f"{_function(s, name, kind.signed)}({x}, {y})"


def _function(s: Spelling, name: str, kind: Kind) -> str:
    """Declare a function such as ``sw_divsi_i32``; vectors shift whole and divide by lanes."""
    parameters = [(kind, "x"), (kind, "y")]
    if not kind.lanes:
        return s.helper(f"sw_{name}_{kind}", kind, parameters, _scalar_body(s, name, kind))
    if name[:2] == "sh":
        return s.helper(f"sw_{name}_{kind}", kind, parameters, _vector_shift(s, name, kind))
    each = _function(s, name, kind.scalar)
    body = s.each_lane(kind, parameters, lambda x, y: f"{each}({x}, {y})")
    return s.helper(f"sw_{name}_{kind}", kind, parameters, body)


def _scalar_body(s: Spelling, name: str, kind: Kind) -> list[str]:
    signed, unsigned, bits = s.type(kind), s.type(kind.unsigned), str(kind.bits)
    return [
        row.replace("(T)", f"({signed})").replace("(U)", f"({unsigned})").replace("BITS", bits)
        for row in _BODIES[name]
    ]


def _vector_shift(s: Spelling, name: str, kind: Kind) -> list[str]:
    u, width = kind.unsigned, kind.bits
    amount = s.bits(u, "y", kind)
    fits = s.compared(u, f"n < {s.small(u, str(width))}")
    rows = [f"const {s.type(u)} n = {amount};"]
    if name == "shrsi":
        most = s.choose(u, fits, "n", s.splat(u, str(width - 1)))
        return [*rows, f"return x >> {s.bits(kind, most, u)};"]
    sign, mask = "<<" if name == "shli" else ">>", s.small(u, str(width - 1))
    moved = f"({s.bits(u, 'x', kind)} {sign} (n & {mask}))"
    return [*rows, f"return {s.bits(kind, s.select(u, fits, moved, s.splat(u, '0')), u)};"]


def to_integer(s: Spelling, source: Kind, target: Kind, signed: bool, x: str) -> str:
    """Return a float truncated to an integer, saturated to the range of ``target``; NaN is 0."""
    target = target.signed
    name = f"sw_{target if signed else target.unsigned}_from_{source}"
    body = (_vector_cast if target.lanes else _scalar_cast)(s, source, target, signed)
    return f"{s.helper(name, target, [(source, 'x')], body)}({x})"


def _limits(s: Spelling, target: Kind, signed: bool) -> tuple[str, str, str, str]:
    """Return the float just above the range, the smallest in it, and the saturated results."""
    bits = target.bits
    if not signed:
        return f"0x1p{bits}f", "0.0f", s.literal(target.element, -1), "0"
    most, least = (1 << bits - 1) - 1, -(1 << bits - 1)
    limit = f"0x1p{bits - 1}f"
    return limit, f"-{limit}", s.literal(target.element, most), s.literal(target.element, least)


def _scalar_cast(s: Spelling, source: Kind, target: Kind, signed: bool) -> list[str]:
    above, below, most, least = _limits(s, target, signed)
    type = s.type(target)
    inner = f"({type})x" if signed else f"({type})({s.type(target.unsigned)})x"
    return [
        "if (!(x == x)) return 0;",
        f"return x >= {above} ? {most} : x < {below} ? {least} : {inner};",
    ]


def _vector_cast(s: Spelling, source: Kind, target: Kind, signed: bool) -> list[str]:
    above, below, most, least = _limits(s, target, signed)
    mask = s.type(source.mask)
    bad = s.compared(source, "x != x")
    whole = target if signed else target.unsigned
    inside = s.bits(target, s.convert(whole, "safe", source), whole)

    def choose(condition: str, yes: str, no: str) -> str:
        return s.select(target, s.convert(target.mask, condition, source.mask), yes, no)

    zero = s.splat(source, "0")
    low = choose("low", s.splat(target, least), inside)
    return [
        f"const {mask} high = {s.compared(source, f'x >= {above}')};",
        f"const {mask} low = {s.compared(source, f'x < {below}')};",
        f"const {s.type(source)} safe = {s.select(source, f'(high | low | {bad})', zero, 'x')};",
        f"return {choose('high', s.splat(target, most), low)};",
    ]


def multiplied_high(s: Spelling, kind: Kind, signed: bool) -> str:
    """Return a function that gives the upper half of a product."""
    kind, whole = kind.signed, kind.signed if signed else kind.unsigned
    parameters = [(kind, "x"), (kind, "y")]
    name = f"sw_mul{'s' if signed else 'u'}i_high_{kind}"
    if kind.bits == 64:
        if kind.lanes:
            each = multiplied_high(s, kind.scalar, signed)
            body = s.each_lane(kind, parameters, lambda x, y: f"{each}({x}, {y})")
        else:
            body = [f"return {s.high_half(signed)};"]
        return s.helper(name, kind, parameters, body)
    wide = kind.of("i64" if signed else "u64")
    x, y = (s.convert(wide, s.bits(whole, v, kind), whole) for v in "xy")
    high = s.convert(kind, f"(({x} * {y}) >> {kind.bits})", wide)
    return s.helper(name, kind, parameters, [f"return {high};"])
