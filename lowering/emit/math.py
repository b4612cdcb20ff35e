"""math: some functions are inlined by the C compilers, the others call the C library."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import math, vector

from stepwell.dialects.upstream.missing import ErfcOp, RemFOp
from stepwell.lowering.emit.kinds import NARROW, Kind
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer, emit

_C_NAMES: dict[type[Any], str] = {
    math.AcosOp: "acos",
    math.AcoshOp: "acosh",
    math.AsinOp: "asin",
    math.AsinhOp: "asinh",
    math.AtanOp: "atan",
    math.AtanhOp: "atanh",
    math.Atan2Op: "atan2",
    math.CbrtOp: "cbrt",
    math.CeilOp: "ceil",
    math.CosOp: "cos",
    math.CoshOp: "cosh",
    math.ErfOp: "erf",
    ErfcOp: "erfc",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.FloorOp: "floor",
    math.LogOp: "log",
    math.Log10Op: "log10",
    math.Log1pOp: "log1p",
    math.Log2Op: "log2",
    math.PowFOp: "pow",
    RemFOp: "fmod",
    math.RoundOp: "round",
    math.RoundEvenOp: "rint",
    math.SinOp: "sin",
    math.SinhOp: "sinh",
    math.SqrtOp: "sqrt",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.TruncOp: "trunc",
}


def _wide(kind: Kind) -> Kind:
    return kind.of("f32") if kind.element in NARROW else kind


@emit(*_C_NAMES)
def _function(w: Writer, op: Any) -> None:
    kind = w.kind(op.result)
    operands = [w.widened(v) for v in op.operands]
    call = w.spelling.function(_C_NAMES[type(op)], _wide(kind), operands)
    w.define(op.result, w.narrowed(kind, call))


@emit(math.RsqrtOp)
def _rsqrt(w: Writer, op: math.RsqrtOp) -> None:
    kind = w.kind(op.result)
    wide = _wide(kind)
    root = w.spelling.function("sqrt", wide, [w.widened(op.operand)])
    w.define(op.result, w.narrowed(kind, f"1.0{'f' if wide.element == 'f32' else ''} / {root}"))


@emit(math.FmaOp)
def _fma(w: Writer, op: math.FmaOp) -> None:
    kind = w.kind(op.result)
    x, y, z = (w.widened(v) for v in (op.a, op.b, op.c))
    w.define(op.result, w.narrowed(kind, w.spelling.fma(_wide(kind), x, y, z)))


@emit(vector.FMAOp)
def _vector_fma(w: Writer, op: vector.FMAOp) -> None:
    kind = w.kind(op.res)
    x, y, z = (w.widened(v) for v in (op.lhs, op.rhs, op.acc))
    w.define(op.res, w.narrowed(kind, w.spelling.fma(_wide(kind), x, y, z)))


def _sign_bit(s: Spelling, kind: Kind, inverted: bool) -> str:
    """Return a mask of the sign bit of a float, or of all other bits."""
    digits = kind.bits // 4
    text = "0x7" + "f" * (digits - 1) if inverted else "0x8" + "0" * (digits - 1)
    suffix = {32: "u", 64: "ul"}.get(kind.bits, "")
    return s.small(kind.unsigned, f"{text}{suffix}")


@emit(math.AbsFOp)
def _absf(w: Writer, op: math.AbsFOp) -> None:
    kind, s = w.kind(op.result), w.spelling
    if not kind.lanes and kind.element not in NARROW:
        w.define(op.result, s.function("fabs", kind, [w[op.operand]]))
        return
    twin = kind.unsigned
    kept = f"({s.bits(twin, w[op.operand], kind)} & {_sign_bit(s, kind, inverted=True)})"
    w.define(op.result, s.bits(kind, kept, twin))


@emit(math.CopySignOp)
def _copysign(w: Writer, op: math.CopySignOp) -> None:
    kind, s = w.kind(op.result), w.spelling
    if not kind.lanes and kind.element not in NARROW:
        w.define(op.result, s.function("copysign", kind, [w[op.lhs], w[op.rhs]]))
        return
    twin = kind.unsigned
    kept = f"({s.bits(twin, w[op.lhs], kind)} & {_sign_bit(s, kind, inverted=True)})"
    sign = f"({s.bits(twin, w[op.rhs], kind)} & {_sign_bit(s, kind, inverted=False)})"
    w.define(op.result, s.bits(kind, f"({kept} | {sign})", twin))


@emit(math.AbsIOp)
def _absi(w: Writer, op: math.AbsIOp) -> None:
    """Return the absolute value; the smallest integer is its own, as its negation wraps."""
    kind, s = w.kind(op.result).signed, w.spelling
    twin = kind.unsigned
    zero = s.small(kind, "0")
    negated = s.bits(kind, f"({s.small(twin, '0')} - {s.bits(twin, 'x', kind)})", twin)
    if not kind.lanes and kind.bits < 32:
        negated = s.convert(kind, "(-x)", Kind("i32"))
    body = [f"return {s.choose(kind, s.compared(kind, f'x < {zero}'), negated, 'x')};"]
    w.define(op.result, f"{s.helper(f'sw_abs_{kind}', kind, [(kind, 'x')], body)}({w[op.operand]})")


_COUNTS: dict[type[Any], str] = {
    math.CountLeadingZerosOp: "leading",
    math.CountTrailingZerosOp: "trailing",
    math.CtPopOp: "ones",
}


@emit(*_COUNTS)
def _count(w: Writer, op: Any) -> None:
    """Count bits; zero has as many leading and trailing zeros as bits."""
    kind, s, what = w.kind(op.result).signed, w.spelling, _COUNTS[type(op)]
    name = _count_function(s, what, kind.scalar)
    if kind.lanes:
        body = s.each_lane(kind, [(kind, "x")], lambda x: f"{name}({x})")
        name = s.helper(f"sw_{what}_{kind}", kind, [(kind, "x")], body)
    w.define(op.result, f"{name}({w[op.operand]})")


def _count_function(s: Spelling, what: str, kind: Kind) -> str:
    unsigned = s.type(kind.unsigned)
    last = kind.bits - 1
    loop = {
        "ones": f"for ({unsigned} rest = x; rest; rest &= rest - 1) n++;",
        "trailing": f"while (n < {kind.bits} && !((({unsigned})x >> n) & 1)) n++;",
        "leading": f"while (n < {kind.bits} && !((({unsigned})x >> ({last} - n)) & 1)) n++;",
    }[what]
    body = s.bit_count(what, kind) or ["int n = 0;", loop, "return n;"]
    return s.helper(f"sw_{what}_{kind}", kind, [(kind, "x")], body)


@emit(math.FPowIOp, math.IPowIOp)
def _power(w: Writer, op: Any) -> None:
    """Multiply by repeated squaring; an integer to a negative power is 0, 1 or -1."""
    kind, s = w.kind(op.result), w.spelling
    wide, power = _wide(kind), w.kind(op.rhs)
    whole = wide.element[0] != "f"
    name = _power_function(s, wide.scalar, power.scalar, whole)
    sources = [(wide, "x"), (power, "n")]
    if wide.lanes:
        body = s.each_lane(wide, sources, lambda x, n: f"{name}({x}, {n})")
        name = s.helper(f"sw_power_{wide}_{power}", wide, sources, body)
    w.define(op.result, w.narrowed(kind, f"{name}({w.widened(op.lhs)}, {w[op.rhs]})"))


def _power_function(s: Spelling, kind: Kind, power: Kind, whole: bool) -> str:
    unsigned = s.type(power.unsigned)
    if whole:
        kind = kind.signed
        type, product = s.type(kind.unsigned), s.type(Kind("u64"))
        start = [
            "if (n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;",
            f"{type} r = 1, square = ({type})x;",
            f"{unsigned} left = ({unsigned})n;",
        ]
        times = [f"if (left & 1) r = ({type})(({product})r * square);"]
        again = f"square = ({type})(({product})square * square);"
        end = f"return ({s.type(kind)})r;"
    else:
        type = s.type(kind)
        start = [
            f"{type} r = 1, square = x;",
            f"{unsigned} left = n < 0 ? ({unsigned})(0 - ({unsigned})n) : ({unsigned})n;",
        ]
        times = ["if (left & 1) r *= square;"]
        again = "square *= square;"
        end = "return n < 0 ? 1 / r : r;"
    body = [*start, "while (left) {", *(f"  {row}" for row in times)]
    body += ["  left >>= 1;", f"  {again}", "}", end]
    return s.helper(f"sw_power_{kind}_{power}", kind, [(kind, "x"), (power, "n")], body)
