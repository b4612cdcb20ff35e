"""Scalar code inside a linalg.generic, in the arithmetic of one dtype.

The lower floors have signless integers and compute f16 and bf16 in f32. A `Body` has the dtype of
the program and picks the op: `b.max(x, y)` is maximumf, maxsi or maxui.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, linalg, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.core.dtypes import DTYPES, DType
from stepwell.dialects.types import element_type

I1 = IntegerType(1)
INDEX = IndexType()
F32 = element_type("f32")

_ARITHMETIC: dict[str, tuple[Any, Any, Any]] = {
    # name: (float, signed, unsigned)
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp),
    "sub": (arith.SubfOp, arith.SubiOp, arith.SubiOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.MuliOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp),
    "div": (arith.DivfOp, arith.DivSIOp, arith.DivUIOp),
}
_PREDICATES = {
    # name: (float, signed, unsigned)
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}
_COLUMN = {"float": 0, "signed": 1, "unsigned": 2, "bool": 2}


def computed_in(dtype: DType) -> DType:
    """Return the dtype that values of ``dtype`` are computed in: f32 for f16 and bf16."""
    return DTYPES["f32"] if dtype.name in ("f16", "bf16") else dtype


def signless_element(dtype: DType) -> Any:
    """Return the element type of ``dtype`` on the lower floors."""
    return element_type(dtype.name.removeprefix("u"))


@dataclass
class Body:
    """Appends scalar ops to ``block``; arithmetic is that of ``dtype``, which has type ``type``."""

    block: Block
    dtype: DType

    @property
    def type(self) -> Any:
        """The IR type of the computed values."""
        return signless_element(self.dtype)

    @property
    def floats(self) -> bool:
        """Whether the computed values are floats."""
        return self.dtype.kind == "float"

    def of(self, dtype: DType) -> Body:
        """Return a body for the same block with the arithmetic of another dtype."""
        return Body(self.block, dtype)

    def emit(self, op: Operation) -> SSAValue:
        """Append ``op`` and return its result."""
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: float) -> SSAValue:
        """Return a constant of the dtype; integers may be given signed or unsigned."""
        return self.constant(value, self.type)

    def constant(self, value: float, type: Attribute) -> SSAValue:
        """Return a constant of an IR type."""
        if isinstance(type, IntegerType | IndexType):
            width = 64 if isinstance(type, IndexType) else type.width.data
            wrapped = int(value) & ((1 << width) - 1)
            if width > 1 and wrapped >> (width - 1):
                wrapped -= 1 << width
            return self.emit(arith.ConstantOp(IntegerAttr(wrapped, type)))
        return self.emit(arith.ConstantOp(FloatAttr(value, type)))  # pyright: ignore

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x + y."""
        return self._arithmetic("add", x, y)

    def sub(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x - y."""
        return self._arithmetic("sub", x, y)

    def mul(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x * y."""
        return self._arithmetic("mul", x, y)

    def max(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return the maximum; NaN if either is."""
        return self._arithmetic("max", x, y)

    def min(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return the minimum; NaN if either is."""
        return self._arithmetic("min", x, y)

    def div(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x / y as the machine divides: undefined for integers if y is 0."""
        return self._arithmetic("div", x, y)

    def _arithmetic(self, name: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.emit(_ARITHMETIC[name][_COLUMN[self.dtype.kind]](x, y))

    def compare(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge`` as i1; only ne is true of NaN."""
        op = arith.CmpfOp if self.floats else arith.CmpiOp
        return self.emit(op(x, y, _PREDICATES[predicate][_COLUMN[self.dtype.kind]]))

    def is_nan(self, x: SSAValue) -> SSAValue:
        """Return whether x is NaN, as i1."""
        return self.emit(arith.CmpfOp(x, x, "uno"))

    def select(self, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x if the condition holds, else y."""
        return self.emit(arith.SelectOp(condition, x, y))

    def both(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x and y, bit by bit."""
        return self.emit(arith.AndIOp(x, y))

    def either(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x or y, bit by bit."""
        return self.emit(arith.OrIOp(x, y))

    def differ(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Return x exclusive-or y, bit by bit."""
        return self.emit(arith.XOrIOp(x, y))

    def absolute(self, x: SSAValue) -> SSAValue:
        """Return |x| of a float or a signed integer."""
        return self.emit((math.AbsFOp if self.floats else math.AbsIOp)(x))

    def index(self, axis: int) -> SSAValue:
        """Return the index of a loop of the generic."""
        return self.emit(linalg.ops.IndexOp(axis))

    def widen(self, x: SSAValue) -> SSAValue:
        """Return an f16 or bf16 as f32, anything else unchanged."""
        return self.emit(arith.ExtFOp(x, F32)) if _narrow(x.type) else x

    def narrow(self, x: SSAValue, to: Attribute) -> SSAValue:
        """Return an f32 as f16 or bf16 if ``to`` is that type, anything else unchanged."""
        return self.emit(arith.TruncFOp(x, to)) if _narrow(to) and x.type != to else x


def _narrow(type: Attribute) -> bool:
    return type in _NARROW


_NARROW = (element_type("f16"), element_type("bf16"))


def extended(b: Body, x: SSAValue, kind: DType) -> SSAValue:
    """Return an element converted to the accumulator's type ``kind``."""
    if x.type == b.type:
        return x
    if kind.kind == "float":
        return b.emit(arith.ExtFOp(x, b.type))
    extend = arith.ExtUIOp if kind.kind == "unsigned" else arith.ExtSIOp
    return b.emit(extend(x, IntegerType(8 * kind.bytes)))
