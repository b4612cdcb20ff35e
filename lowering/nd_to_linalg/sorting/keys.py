"""Sort keys: unsigned integers in the required order, one for each element."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from stepwell.core.dtypes import DTYPES, DType
from stepwell.core.shapes import Shape
from stepwell.dialects.nd.sorting import ArgsortOp, OrderOp
from stepwell.dialects.nd.syntax import element
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body, signless_element
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering

_NAN_BITS = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}
"""The bits of infinity; those of any NaN, without the sign, are greater."""


@dataclass(frozen=True)
class Keys:
    """The keys of elements of one dtype.

    Keys that only order elements (``stable``) are equal if the elements are. Keys that elements are
    recovered from distinguish -0.0, which comes first, from 0.0; all NaN have the same key.
    """

    kind: DType
    """The dtype of the elements."""
    descending: bool = False
    stable: bool = True

    @property
    def dtype(self) -> DType:
        """The unsigned dtype of keys, as wide as the elements."""
        return DTYPES[f"ui{8 * self.kind.bytes}"]

    @property
    def bits(self) -> int:
        """The width of a key in bits."""
        return 8 * self.kind.bytes

    def of(self, b: Body, x: SSAValue) -> SSAValue:
        """Return an unsigned integer that is ordered as the element is."""
        return self.of_bits(b, self.bits_of(b, x))

    def bits_of(self, b: Body, x: SSAValue) -> SSAValue:
        """Return the bits of an element as an integer."""
        match self.kind.kind:
            case "bool":
                return b.emit(arith.ExtUIOp(x, IntegerType(8)))
            case "float":
                return b.emit(arith.BitcastOp(x, IntegerType(self.bits)))
            case _:
                return x

    def element(self, b: Body, raw: SSAValue) -> SSAValue:
        """Return the element with the bits of an integer."""
        match self.kind.kind:
            case "bool":
                return b.emit(arith.TruncIOp(raw, IntegerType(1)))
            case "float":
                return b.emit(arith.BitcastOp(raw, signless_element(self.kind)))
            case _:
                return raw

    def of_bits(self, b: Body, raw: SSAValue) -> SSAValue:
        """Return the key of the element with these bits."""
        b, sign = b.of(self.dtype), 1 << self.bits - 1
        match self.kind.kind:
            case "signed":
                key = b.differ(raw, b.number(sign))
            case "float":
                size = b.both(raw, b.number(sign - 1))
                negative = b.compare("ge", raw, b.number(sign))
                key = b.differ(raw, b.select(negative, b.number(-1), b.number(sign)))
                nan = b.compare("gt", size, b.number(_NAN_BITS[self.kind.name]))
                key = b.select(nan, b.number(-1), key)
                if self.stable:
                    key = b.select(b.compare("eq", size, b.number(0)), b.number(sign), key)
            case _:
                key = raw
        return b.differ(key, b.number(-1)) if self.descending else key

    def back(self, b: Body, key: SSAValue) -> SSAValue:
        """Return the element of a key."""
        return self.element(b, self.back_to_bits(b, key))

    def back_to_bits(self, b: Body, key: SSAValue) -> SSAValue:
        """Return the bits of the element of a key."""
        b, sign = b.of(self.dtype), 1 << self.bits - 1
        if self.descending:
            key = b.differ(key, b.number(-1))
        match self.kind.kind:
            case "signed":
                return b.differ(key, b.number(sign))
            case "float":
                positive = b.compare("ge", key, b.number(sign))
                return b.differ(key, b.select(positive, b.number(sign), b.number(-1)))
            case _:
                return key


@dataclass
class Sort:
    """One sort, with the parameters of all its loops."""

    lowering: Lowering
    x: SSAValue
    kind: DType
    """The element type of x."""
    axis: int
    descending: bool = False
    places: IntegerType | None = None
    """The type of the indices to return; None if the elements are returned."""
    keys: Keys = field(init=False)
    extents: list[Size] = field(init=False)
    """The size of each axis of x."""

    def __post_init__(self) -> None:
        self.keys = Keys(self.kind, self.descending, self.places is not None)
        self.extents = Sizes(self.lowering).all_of(self.x)

    @classmethod
    def of(cls, lowering: Lowering, op: OrderOp, x: SSAValue) -> Sort:
        """Return the sort that an op describes."""
        places = element(op.y) if isinstance(op, ArgsortOp) else None
        assert places is None or isinstance(places, IntegerType)
        kind, falling = dtype(element(op.x)), op.descending is not None
        return cls(lowering, x, kind, op.axis.value.data, falling, places)

    @property
    def shape(self) -> Shape:
        """The shape of x."""
        return tensor_type(self.x).get_shape()

    @property
    def rank(self) -> int:
        """The rank of x."""
        return len(self.shape)

    @property
    def result(self) -> Attribute:
        """The element type of the result."""
        return self.places or tensor_type(self.x).element_type

    @property
    def n(self) -> Size:
        """The size of the sorted axis."""
        return self.extents[self.axis]

    @property
    def others(self) -> list[Size]:
        """The sizes of the other axes."""
        return [n for axis, n in enumerate(self.extents) if axis != self.axis]

    def rows(self) -> Size:
        """Return the number of sorts."""
        sizes = Sizes(self.lowering)
        total: Size = 1
        for n in self.others:
            total = sizes.mul(total, n)
        return total
