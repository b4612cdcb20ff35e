"""arith: the ops with results defined for every input.

Integers wrap; a division by zero gives 0, with remainder 0; the smallest integer divided by -1 is
itself; a shift by the width or more gives 0 (or the sign); a float outside an integer's range
saturates, NaN becomes 0.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from stepwell.lowering.emit.integers import divided, multiplied_high, shifted, to_integer
from stepwell.lowering.emit.kinds import LANES, NARROW, Kind
from stepwell.lowering.emit.lane_masks import between_of, is_range
from stepwell.lowering.emit.minmax import INTEGER as INTEGER_CHOICE
from stepwell.lowering.emit.minmax import extreme, extreme_of_constant, integer_extreme
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer, emit
from stepwell.transforms.passes import fail

# constants


@emit(arith.ConstantOp)
def _constant(w: Writer, op: arith.ConstantOp) -> None:
    """Write a constant at its uses, so that an outlined loop need not capture it."""
    kind = w.kind(op.result)
    match op.value:
        case IntegerAttr(value=value) | FloatAttr(value=value):
            w.bind(op.result, w.spelling.literal(kind.element, value.data))
        case DenseIntOrFPElementsAttr():
            w.bind(op.result, _dense(w.spelling, kind, op.value.get_values()))
        case other:
            fail(op, f"a constant of {other} cannot be written")


def _dense(s: Spelling, kind: Kind, values: Any) -> str:
    numbers = [-int(bool(v)) for v in values] if kind.is_mask else list(values)
    element = f"i{kind.bits}" if kind.is_mask else kind.element
    texts = [s.literal(element, v) for v in numbers]
    if len(set(texts)) == 1:
        return s.splat(kind, texts[0])
    return s.lanes_of(kind, texts * (kind.lanes // len(texts)))


# floats

_FLOAT_INFIX: dict[type[Any], str] = {
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
    arith.DivfOp: "/",
}


@emit(*_FLOAT_INFIX)
def _float_infix(w: Writer, op: Any) -> None:
    kind = w.kind(op.result)
    sign = _FLOAT_INFIX[type(op)]
    if w.contracts and kind.element not in NARROW and _is_only_added(op):
        w.bind(op.result, f"({w[op.lhs]} {sign} {w[op.rhs]})", kind)
        return
    if kind.element not in NARROW:
        w.define(op.result, f"{w[op.lhs]} {sign} {w[op.rhs]}", kind)
        return
    w.define(op.result, w.narrowed(kind, f"{w.widened(op.lhs)} {sign} {w.widened(op.rhs)}"), kind)


def _is_only_added(op: Operation) -> bool:
    """Whether the only use of a product is as a term of one sum or difference."""
    users = [use.operation for use in op.results[0].uses]
    return (
        isinstance(op, arith.MulfOp)
        and len(users) == 1
        and isinstance(users[0], arith.AddfOp | arith.SubfOp)
        and users[0].parent is op.parent
    )


@emit(arith.NegfOp)
def _negf(w: Writer, op: arith.NegfOp) -> None:
    """Negate; a narrow float's sign is its highest bit."""
    kind = w.kind(op.result)
    x = w[op.operand]
    if kind.element in NARROW:
        sign = w.spelling.small(kind.unsigned, "0x8000")
        w.define(op.result, f"{x} ^ {sign}")
        return
    w.define(op.result, f"-{x}")


@emit(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)
def _float_choice(w: Writer, op: Any) -> None:
    kind = w.kind(op.result)
    wide = kind.of("f32") if kind.element in NARROW else kind
    name = op.name.removeprefix("arith.").removesuffix("f")
    x, y, known = op.lhs, op.rhs, constant(op.rhs)
    if known is None and (known := constant(op.lhs)) is not None:
        x, y = y, x
    loser = -1.0 if name.startswith("max") else 1.0
    plain = (
        known is not None and known == known and (known or python_math.copysign(1, known) != loser)
    )
    operands = (w.spelling, name, wide, w.widened(x), w.widened(y))
    best = extreme_of_constant(*operands, known == 0.0) if plain else extreme(*operands)
    w.define(op.result, w.narrowed(kind, best))


_FLOAT_TESTS: dict[int, Callable[[str, str], str]] = {
    1: lambda x, y: f"{x} == {y}",
    2: lambda x, y: f"{x} > {y}",
    3: lambda x, y: f"{x} >= {y}",
    4: lambda x, y: f"{x} < {y}",
    5: lambda x, y: f"{x} <= {y}",
    6: lambda x, y: f"({x} < {y}) | ({x} > {y})",
    7: lambda x, y: f"({x} == {x}) & ({y} == {y})",
}
"""The ordered predicates; predicate 15 - k (8 + ...) is the negation of k."""

_NEGATED = {8: 6, 9: 5, 10: 4, 11: 3, 12: 2, 13: 1, 14: 7}
"""Each unordered predicate negates an ordered one: ueq one, ugt ole, uge olt, ... uno ord."""


@emit(arith.CmpfOp)
def _cmpf(w: Writer, op: arith.CmpfOp) -> None:
    kind = w.kind(op.lhs)
    kind = kind.of("f32") if kind.element in NARROW else kind
    number = op.predicate.value.data
    if number in (0, 15):
        value = str(int(number == 15))
        text = w.spelling.splat(kind.mask, f"(-{value})") if kind.lanes else value
        w.define(op.result, text, kind.mask)
        return
    test = _FLOAT_TESTS[_NEGATED.get(number, number)](w.widened(op.lhs), w.widened(op.rhs))
    if not kind.lanes:
        test = test.replace(" | ", " || ").replace(" & ", " && ")
    result = w.spelling.compared(kind, test)
    if number in _NEGATED:
        result = f"{'~' if kind.lanes else '!'}{result}"
    w.define(op.result, result, kind.mask)


# integers

_INTEGER_INFIX: dict[type[Any], str] = {arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*"}
_BITS: dict[type[Any], str] = {arith.AndIOp: "&", arith.OrIOp: "|", arith.XOrIOp: "^"}
_OF_TRUTH = {"+": "^", "-": "^", "*": "&"}


@emit(*_INTEGER_INFIX)
def _integer_infix(w: Writer, op: Any) -> None:
    kind, sign = w.kind(op.result), _INTEGER_INFIX[type(op)]
    if kind.is_bool:
        _bitwise(w, op, _OF_TRUTH[sign])
        return
    w.define(op.result, wrapping(w.spelling, kind, w[op.lhs], sign, w[op.rhs]))


def wrapping(s: Spelling, kind: Kind, x: str, sign: str, y: str) -> str:
    """Return a sum or product that wraps; an index never overflows."""
    if kind.element == "index" and not kind.lanes:
        return f"{x} {sign} {y}"
    if not kind.lanes and kind.bits < 32:
        return s.convert(kind, f"({x} {sign} {y})", Kind("i32"))
    twin = kind.unsigned
    return s.bits(kind, f"({s.bits(twin, x, kind)} {sign} {s.bits(twin, y, kind)})", twin)


@emit(*_BITS)
def _bits(w: Writer, op: Any) -> None:
    if w.guards is None and (numbers := between_of(op.result)) and is_range(op.result):
        name = w.spelling.range_of_lanes(w.kind(op.result).lanes)
        w.define(op.result, f"{name}({', '.join(w[n] for n in numbers)})", LANES)
        return
    _bitwise(w, op, _BITS[type(op)])


def _bitwise(w: Writer, op: Any, sign: str) -> None:
    kind = w.kind(op.lhs)
    x, y = w[op.lhs], as_mask(w, op.rhs, kind) if kind.is_mask else w[op.rhs]
    text = f"{x} {sign} {y}"
    if not kind.lanes and kind.bits < 32 and kind.element != "i1":
        text = w.spelling.convert(kind, f"({text})", Kind("i32"))
    w.define(op.result, text, kind)


def as_mask(w: Writer, value: SSAValue, kind: Kind) -> str:
    """Return a mask converted to the lane width of ``kind``."""
    mask = Kind(f"m{kind.bits}", kind.lanes)
    return w.spelling.convert(mask, w[value], w.kind(value))


_DIVISIONS: dict[type[Any], str] = {
    arith.DivSIOp: "divsi",
    arith.DivUIOp: "divui",
    arith.RemSIOp: "remsi",
    arith.RemUIOp: "remui",
    arith.FloorDivSIOp: "floordivsi",
    arith.CeilDivSIOp: "ceildivsi",
    arith.CeilDivUIOp: "ceildivui",
}
_SHIFTS: dict[type[Any], str] = {
    arith.ShLIOp: "shli",
    arith.ShRUIOp: "shrui",
    arith.ShRSIOp: "shrsi",
}


@emit(*_DIVISIONS)
def _division(w: Writer, op: Any) -> None:
    kind = w.kind(op.result)
    text = divided(w.spelling, _DIVISIONS[type(op)], kind, w[op.lhs], w[op.rhs], constant(op.rhs))
    w.define(op.result, text)


@emit(*_SHIFTS)
def _shift(w: Writer, op: Any) -> None:
    kind = w.kind(op.result)
    text = shifted(w.spelling, _SHIFTS[type(op)], kind, w[op.lhs], w[op.rhs], constant(op.rhs))
    w.define(op.result, text)


def constant(value: SSAValue) -> Any:
    """Return the constant that every lane of a value equals; None if unknown."""
    from_op = value.owner
    if isinstance(from_op, arith.ConstantOp):
        match from_op.value:
            case IntegerAttr(value=number) | FloatAttr(value=number):
                return number.data
            case DenseIntOrFPElementsAttr() as dense:
                values = set(dense.get_values())
                return values.pop() if len(values) == 1 else None
            case _:
                return None
    source = getattr(from_op, "source", None) if _is_broadcast(from_op) else None
    return constant(source) if source is not None else None


def _is_broadcast(op: Any) -> bool:
    return getattr(op, "name", "") == "vector.broadcast"


@emit(*INTEGER_CHOICE)
def _integer_choice(w: Writer, op: Any) -> None:
    kind = w.kind(op.result)
    name = INTEGER_CHOICE[type(op)]
    if kind.is_bool:  # as a signed i1, true is -1
        _bitwise(w, op, "|" if name in ("maxui", "minsi") else "&")
        return
    w.define(op.result, integer_extreme(w.spelling, name, kind, w[op.lhs], w[op.rhs]))


_INTEGER_SIGNS = ("==", "!=", "<", "<=", ">", ">=")


@emit(arith.CmpiOp)
def _cmpi(w: Writer, op: arith.CmpiOp) -> None:
    kind, number = w.kind(op.lhs), op.predicate.value.data
    signed = number < 6
    sign = _INTEGER_SIGNS[number if signed else number - 4]
    x, y = w[op.lhs], w[op.rhs]
    if kind.is_mask:  # lanes are 0 and -1
        y = as_mask(w, op.rhs, kind)
        kind = kind.signed
    elif kind.is_bool and signed and number > 1:
        x, y = f"-{x}", f"-{y}"
    w.define(op.result, _compared(w.spelling, kind, x, sign, y, signed or number < 2), kind.mask)


def _compared(s: Spelling, kind: Kind, x: str, sign: str, y: str, signed: bool) -> str:
    if not signed and kind.element != "i1":
        x, y = (s.bits(kind.unsigned, v, kind) for v in (x, y))
    return s.compared(kind, f"{x} {sign} {y}")


@emit(arith.SelectOp)
def _select(w: Writer, op: arith.SelectOp) -> None:
    """Select; a scalar condition may select whole vectors."""
    if w.guards is None and is_range(op.result):
        w.define(op.result, f"({w[op.cond]} ? {w[op.lhs]} : 0)", LANES)
        return
    kind = w.kind(op.lhs)
    x, y = w[op.lhs], as_mask(w, op.rhs, kind) if kind.is_mask else w[op.rhs]
    if w.kind(op.cond).lanes:
        w.define(op.result, w.spelling.select(kind, as_mask(w, op.cond, kind), x, y), kind)
    else:
        w.define(op.result, f"({w[op.cond]} ? {x} : {y})", kind)


@emit(arith.AddUIExtendedOp)
def _add_extended(w: Writer, op: arith.AddUIExtendedOp) -> None:
    """Add; the sum has overflowed if it is less than an operand."""
    kind = w.kind(op.sum)
    w.bind(op.sum, w.fresh(op.sum.name_hint, w.spelling.type(kind)))
    total = wrapping(w.spelling, kind, w[op.lhs], "+", w[op.rhs])
    w.line(f"const {w.spelling.type(kind)} {w[op.sum]} = {total};")
    test = _compared(w.spelling, kind, w[op.sum], "<", w[op.lhs], signed=False)
    w.define(op.overflow, test, kind.mask)


@emit(arith.MulUIExtendedOp, arith.MulSIExtendedOp)
def _multiply_extended(w: Writer, op: Any) -> None:
    kind = w.kind(op.low)
    s, signed = w.spelling, isinstance(op, arith.MulSIExtendedOp)
    w.define(op.low, wrapping(s, kind, w[op.lhs], "*", w[op.rhs]))
    w.define(op.high, f"{multiplied_high(s, kind, signed)}({w[op.lhs]}, {w[op.rhs]})")


# conversions


@emit(arith.IndexCastOp, arith.TruncIOp, arith.ExtSIOp)
def _resize(w: Writer, op: Any) -> None:
    """Sign-extend integers; truncation keeps the low bits."""
    source, target = w.kind(op.input), w.kind(op.result)
    x = w[op.input]
    if target.is_bool and not source.is_bool:
        one, zero = (w.spelling.small(source, n) for n in "10")
        test = w.spelling.compared(source, f"({x} & {one}) != {zero}")
        w.define(op.result, test, source.mask if source.lanes else target)
    elif source.is_bool and not source.lanes:
        w.define(op.result, w.spelling.convert(target, f"(-{x})", Kind("i32")))
    elif w.spelling.type(source) == w.spelling.type(target):
        w.bind(op.result, x, target)
    else:
        w.define(op.result, w.spelling.convert(target, x, source))


@emit(arith.ExtUIOp)
def _extend_unsigned(w: Writer, op: arith.ExtUIOp) -> None:
    source, target, s = w.kind(op.input), w.kind(op.result), w.spelling
    if source.is_mask:
        w.define(op.result, f"{s.convert(target, w[op.input], source)} & {s.small(target, '1')}")
    elif source.is_bool:
        w.define(op.result, s.convert(target, w[op.input], source))
    else:
        unsigned = s.bits(source.unsigned, w[op.input], source)
        wide = s.convert(target.unsigned, unsigned, source.unsigned)
        w.define(op.result, s.bits(target, wide, target.unsigned))


@emit(arith.SIToFPOp, arith.UIToFPOp)
def _to_float(w: Writer, op: Any) -> None:
    source, target, s = w.kind(op.input), w.kind(op.result), w.spelling
    x, signed = w[op.input], isinstance(op, arith.SIToFPOp)
    if source.is_bool:
        if source.lanes:
            x = x if signed else f"({x} & {s.small(source, '1')})"
            source = source.signed
        else:
            x, source = f"({'-' if signed else '+'}{x})", Kind("i32")
    elif not signed:
        x, source = s.bits(source.unsigned, x, source), source.unsigned
    wide = target.of("f32") if target.element in NARROW else target
    w.define(op.result, w.narrowed(target, s.convert(wide, x, source)))


@emit(arith.FPToSIOp, arith.FPToUIOp)
def _from_float(w: Writer, op: Any) -> None:
    source, target = w.kind(op.input), w.kind(op.result)
    wide = source.of("f32") if source.element in NARROW else source
    signed = isinstance(op, arith.FPToSIOp)
    if target.is_bool:
        test = w.spelling.compared(wide, f"{w.widened(op.input)} != 0")
        w.define(op.result, test, wide.mask)
        return
    x = w.widened(op.input)
    if _is_within(op.input, target, signed):
        whole = target.signed if signed else target.unsigned
        created = w.spelling.convert(whole, x, wide)
        w.define(op.result, w.spelling.bits(target, created, whole))
        return
    w.define(op.result, to_integer(w.spelling, wide, target, signed, x))


def _is_within(value: SSAValue, target: Kind, signed: bool) -> bool:
    """Whether the operand is clamped to the integer's range, which also removes NaN."""
    least = -(1 << target.bits - 1) if signed else 0
    most = (1 << target.bits - signed) - 1
    upper = value.owner
    lower = upper.lhs.owner if isinstance(upper, arith.MinnumfOp) else None
    if not isinstance(upper, arith.MinnumfOp) or not isinstance(lower, arith.MaxnumfOp):
        return False
    low, high = constant(lower.rhs), constant(upper.rhs)
    return low is not None and high is not None and least <= low <= high <= most


@emit(arith.ExtFOp, arith.TruncFOp)
def _float_to_float(w: Writer, op: Any) -> None:
    """Convert between f64 and a narrow float through f32."""
    source, target, s = w.kind(op.input), w.kind(op.result), w.spelling
    x = w.widened(op.input)
    middle = source.of("f32") if source.element in NARROW else source
    wide = target.of("f32") if target.element in NARROW else target
    if middle != wide:
        x = s.convert(wide, x, middle)
    w.define(op.result, w.narrowed(target, x))


@emit(arith.BitcastOp)
def _bitcast(w: Writer, op: arith.BitcastOp) -> None:
    source, target = w.kind(op.input), w.kind(op.result)
    w.define(op.result, w.spelling.bits(target, w[op.input], source))
