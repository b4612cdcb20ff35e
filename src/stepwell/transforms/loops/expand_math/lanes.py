"""Write float arithmetic as formulas that serve scalars and vectors alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    VectorType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.core.rules import RuleTable
from stepwell.dialects import kernel
from stepwell.dialects.types import UNKNOWN

SIGN = -(1 << 31)
"""The sign bit of an f32, as an i32."""


@dataclass(frozen=True)
class Format:
    """The bit layout of a float format."""

    float: Attribute
    integer: Attribute
    mantissa: int
    """The number of stored mantissa bits."""
    bias: int
    rounded: int
    """The bits of `magic`."""
    name: str

    @property
    def magic(self) -> float:
        """The number whose addition rounds a float to an integer: it leaves no fraction bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit, as an integer."""
        return -(1 << (self.mantissa + self.bias.bit_length() + 1))


SINGLE = Format(f32, i32, 23, 127, 0x4B400000, "f32")
DOUBLE = Format(f64, i64, 52, 1023, 0x4338000000000000, "f64")


@dataclass
class Body:
    """The function being written; ``width`` is its number of lanes, 0 for a scalar."""

    block: Block
    width: int
    format: Format = SINGLE
    location: LocationAttr = UNKNOWN
    call: Callable[[str, Callable[..., Lanes], Sequence[Lanes]], Lanes] | None = None
    """Calls a generated function, for which another language may have an instruction."""
    tables: bool = False
    """Whether the machine can look up sixteen numbers at once in a register."""
    _constants: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])
    _last_constant: Operation | None = None

    def insert(self, op: Operation) -> SSAValue:
        """Append ``op``; return its result."""
        op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    def type(self, element: Attribute) -> Attribute:
        """Return ``element``, or a vector of it."""
        return VectorType(element, [self.width]) if self.width else element

    def constant(self, number: float, element: Attribute) -> Lanes:
        """Return a number in every lane; constants are defined once, at the top."""
        type: Any = self.type(element)
        kind: Any = element
        if kind != self.format.float:
            number = _as_signed(int(number), kind.width.data)
        float = kind == self.format.float
        value: Any = FloatAttr(number, kind) if float else IntegerAttr(int(number), kind)
        if self.width:
            value = DenseIntOrFPElementsAttr.from_list(type, [number] * self.width)
        return self._once(value, type)

    def table(self, numbers: Sequence[float]) -> Lanes:
        """Return a vector of floats to look up, one per lane."""
        type: Any = VectorType(self.format.float, [len(numbers)])
        return self._once(DenseIntOrFPElementsAttr.from_list(type, numbers), type)

    def _once(self, value: Any, type: Attribute) -> Lanes:
        """Return a constant."""
        if (found := self._constants.get(value)) is None:
            op = arith.ConstantOp.create(result_types=[type], properties={"value": value})
            op.location = self.location
            top = self.top
            if self._last_constant is not None:
                top.insert_op_after(op, self._last_constant)
            elif top.first_op is not None:
                top.insert_op_before(op, top.first_op)
            else:
                top.add_op(op)
            self._last_constant = op
            found = self._constants[value] = op.results[0]
        return Lanes(found, self)

    def __post_init__(self) -> None:
        self.top = self.block

    def with_lanes(self, lanes: int) -> Body:
        """Return the same function, for values of ``lanes`` lanes."""
        return replace(self, width=lanes)


def _as_signed(number: int, width: int) -> int:
    """Return an integer's bits read as two's complement."""
    number &= (1 << width) - 1
    return number - (number >> (width - 1) << width)


@dataclass(frozen=True, eq=False)
class Lanes:
    """A number, or one in each lane: a float, an integer (its bits) or i1 (a condition)."""

    value: SSAValue
    body: Body

    @property
    def element(self) -> Attribute:
        """The type of one lane."""
        type = self.value.type
        return type.element_type if isinstance(type, VectorType) else type

    @property
    def is_float(self) -> bool:
        """Whether a lane is a float."""
        return self.element == self.body.format.float

    def named(self, name: str) -> Lanes:
        """Give the value a name in the text."""
        self.value.name_hint = name
        return self

    def other(self, other: Operand) -> Lanes:
        """Return an operand converted to the type of this value."""
        return other if isinstance(other, Lanes) else self.body.constant(other, self.element)

    def __add__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.AddfOp, arith.AddiOp)

    def __sub__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.SubfOp, arith.SubiOp)

    def __rsub__(self, other: float) -> Lanes:
        return self.other(other) - self

    def __mul__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.MulfOp, arith.MuliOp)

    def __truediv__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.DivfOp, arith.DivSIOp)

    def __rtruediv__(self, other: float) -> Lanes:
        return self.other(other) / self

    def __and__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.AndIOp, arith.AndIOp)

    def __or__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.OrIOp, arith.OrIOp)

    def __xor__(self, other: Operand) -> Lanes:
        return _binary(self, other, arith.XOrIOp, arith.XOrIOp)

    def __lshift__(self, by: int) -> Lanes:
        return _binary(self, by, arith.ShLIOp, arith.ShLIOp)

    def __rshift__(self, by: int) -> Lanes:
        return _binary(self, by, arith.ShRSIOp, arith.ShRSIOp)

    def __neg__(self) -> Lanes:
        return Lanes(self.body.insert(arith.NegfOp(self.value)), self.body)

    def compare(self, how: str, other: Operand) -> Lanes:
        """Compare by a predicate of arith.cmpf or arith.cmpi; NaN makes every ``o..`` false."""
        op: Any = arith.CmpfOp if self.is_float else arith.CmpiOp
        return Lanes(self.body.insert(op(self.value, self.other(other).value, how)), self.body)

    def __lt__(self, other: Operand) -> Lanes:
        return self.compare("olt" if self.is_float else "slt", other)

    def __gt__(self, other: Operand) -> Lanes:
        return self.compare("ogt" if self.is_float else "sgt", other)

    def equals(self, other: Operand) -> Lanes:
        """Return where both are equal; NaN never is."""
        return self.compare("oeq" if self.is_float else "eq", other)

    def choose(self, yes: Operand, no: Operand) -> Lanes:
        """Select ``yes`` where this condition holds, else ``no``; one of them must be lanes."""
        known = yes if isinstance(yes, Lanes) else no
        assert isinstance(known, Lanes)
        values = (known.other(yes).value, known.other(no).value)
        return Lanes(self.body.insert(arith.SelectOp(self.value, *values)), self.body)

    def bits(self) -> Lanes:
        """Return the bits of floats as integers."""
        return _cast(self, self.body.format.integer)

    def number(self) -> Lanes:
        """Return the float that has these bits."""
        return _cast(self, self.body.format.float)

    def magnitude(self) -> Lanes:
        """Return the number without its sign."""
        return (self.bits() & ~self.body.format.sign).number()

    def with_sign_of(self, other: Lanes) -> Lanes:
        """Return this non-negative number with the sign of another."""
        return (self.bits() | (other.bits() & self.body.format.sign)).number()


Operand: TypeAlias = "Lanes | float"

expansion: RuleTable[Callable[..., Lanes]] = RuleTable("expansion")
"""``(operands of the op, as lanes of f32) -> its result``, for ops of the math dialect."""
expansion_f64: RuleTable[Callable[..., Lanes]] = RuleTable("expansion of f64")
"""The same for lanes of f64."""


def _binary(a: Lanes, b: Operand, floats: type[Operation], integers: type[Operation]) -> Lanes:
    op: Any = floats if a.is_float else integers
    return Lanes(a.body.insert(op(a.value, a.other(b).value)), a.body)


def _cast(x: Lanes, element: Attribute) -> Lanes:
    op: Any = vector.BitcastOp if x.body.width else arith.BitcastOp
    return Lanes(x.body.insert(op(x.value, x.body.type(element))), x.body)


def truncated(x: Lanes) -> Lanes:
    """Return an f32 within the range of i32 as an i32, truncated."""
    type: Any = x.body.type(i32)
    return Lanes(x.body.insert(arith.FPToSIOp(x.value, type)), x.body)


def converted(n: Lanes) -> Lanes:
    """Return an i32 as an f32."""
    type: Any = n.body.type(f32)
    return Lanes(n.body.insert(arith.SIToFPOp(n.value, type)), n.body)


def looked_up(table: Lanes, index: Lanes) -> Lanes:
    """Return the lanes of ``table`` indexed by the lowest bits of integers."""
    type = index.body.type(table.element)
    return Lanes(index.body.insert(kernel.LookupOp(table.value, index.value, type)), index.body)


def square_root(x: Lanes) -> Lanes:
    """Return the square root."""
    return Lanes(x.body.insert(math.SqrtOp(x.value)), x.body)


def fma(a: Lanes, b: Operand, c: Operand) -> Lanes:
    """Return ``a * b + c``, rounded once."""
    values = (a.value, a.other(b).value, a.other(c).value)
    return Lanes(a.body.insert(math.FmaOp(*values)), a.body)


def maximum(a: Lanes, b: Operand) -> Lanes:
    """Return the maximum; NaN if ``a`` is."""
    return Lanes(a.body.insert(arith.MaximumfOp(a.value, a.other(b).value)), a.body)


def minimum(a: Lanes, b: Operand) -> Lanes:
    """Return the minimum; NaN if ``a`` is."""
    return Lanes(a.body.insert(arith.MinimumfOp(a.value, a.other(b).value)), a.body)


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Return ``sum(c[k] * x**k)`` by Horner's rule."""
    *lower, last = coefficients
    first = lower.pop()
    result = fma(x, last, first)
    for c in reversed(lower):
        result = fma(result, x, c)
    return result


def rounded(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return the integer nearest to ``x`` as a float and as an integer.

    ``abs(x)`` must be below 2**22, or 2**51 in f64.
    """
    how = x.body.format
    shifted = x + how.magic
    return shifted - how.magic, shifted.bits() - how.rounded


def nearest(x: Lanes, factor: float) -> Lanes:
    """Return the integer nearest to ``x * factor``, as `rounded` does."""
    magic = x.body.format.magic
    return fma(x, factor, magic) - magic


def power_of_two(n: Lanes) -> Lanes:
    """Return ``2**n`` for an integral ``n`` whose power is a normal number."""
    how = n.body.format
    if n.is_float:  # the shift drops the bits of the magic number
        return ((n + (how.magic + how.bias)).bits() << how.mantissa).number()
    return ((n + how.bias) << how.mantissa).number()


def scaled(x: Lanes, n: Lanes) -> Lanes:
    """Return ``x * 2**floor(n)``, rounded once.

    ``n`` is a whole number of sixteenths, up to twice the greatest exponent.
    """
    call = x.body.call
    assert call is not None
    return call("ldexp", _ldexp, (x, n))


def _ldexp(x: Lanes, n: Lanes) -> Lanes:
    """Scale in two steps, so that neither factor overflows or vanishes."""
    how = n.body.format
    whole = ((n - 0.46875) + how.magic).bits() - how.rounded
    half = whole >> 1
    return x * power_of_two(half) * power_of_two(whole - half)


def unless_any_above(
    bits: Lanes,
    limit: int,
    given: Sequence[Lanes],
    slow: type[Operation],
    fast: Callable[[], Lanes],
) -> Lanes:
    """Return ``fast()``, or ``slow`` of all ``given`` where a lane of ``bits`` exceeds ``limit``.

    ``slow`` is an op that is left to the C library.
    """
    body, kind_of_result = bits.body, given[0].value.type
    worst = bits.value
    if body.width:
        kind = CombiningKindAttr(CombiningKindFlag.MAXSI)
        flags = arith.FastMathFlagsAttr("none")
        worst = body.insert(
            vector.ReductionOp.create(
                operands=[worst],
                result_types=[body.format.integer],
                properties={"kind": kind, "fastmath": flags},
            )
        )
    kind_of_bits: Any = body.format.integer
    bound = body.insert(arith.ConstantOp(IntegerAttr(limit, kind_of_bits)))
    beyond = body.insert(arith.CmpiOp(worst, bound, "sgt"))
    make: Any = slow
    blocks: list[Block] = []
    outer = body.block
    for write in (lambda: Lanes(body.insert(make(*(x.value for x in given))), body), fast):
        body.block = Block()
        result = write()
        end = scf.YieldOp(result.value)
        end.location = body.location
        body.block.add_op(end)
        blocks.append(body.block)
    body.block = outer
    regions = [Region(block) for block in blocks]
    return Lanes(body.insert(scf.IfOp(beyond, [kind_of_result], regions[0], regions[1])), body)
