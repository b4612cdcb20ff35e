"""Elementwise order and choice: comparisons, predicates, max and min, clamp, select."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, traits_def
from xdsl.traits import Commutative
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.nd.base import ANY, FLOAT, I1, NUMBER, like, tensor_of
from stepwell.dialects.nd.elementwise import Binary, Elementwise, in_numpy, same_type
from stepwell.dialects.readings import shape


class Comparison(Elementwise, ABC):
    """A comparison, with an i1 result. With a NaN all but `ne` are false; false < true."""

    ELEMENTS: ClassVar = ANY
    CONVERTS: ClassVar = True
    a = operand_def(TensorType)
    b = operand_def(TensorType)

    def __init__(self, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[a, b], result_types=[like(tensor_of(a), I1)])


@irdl_op_definition
class EqOp(Comparison):
    """``y = (a = b)``; +0 equals -0."""

    name = "nd.eq"
    traits = traits_def(Commutative())


@irdl_op_definition
class NeOp(Comparison):
    """``y = (a ≠ b)``; NaN differs from everything."""

    name = "nd.ne"
    traits = traits_def(Commutative())


@irdl_op_definition
class LtOp(Comparison):
    """``y = (a < b)``."""

    name = "nd.lt"


@irdl_op_definition
class LeOp(Comparison):
    """``y = (a ≤ b)``."""

    name = "nd.le"


@irdl_op_definition
class GtOp(Comparison):
    """``y = (a > b)``."""

    name = "nd.gt"


@irdl_op_definition
class GeOp(Comparison):
    """``y = (a ≥ b)``."""

    name = "nd.ge"


class Predicate(Elementwise, ABC):
    """A predicate of one floating-point number, with an i1 result."""

    ELEMENTS: ClassVar = FLOAT
    CONVERTS: ClassVar = True
    x = operand_def(TensorType)

    def __init__(self, x: SSAValue) -> None:
        super().__init__(operands=[x], result_types=[like(tensor_of(x), I1)])


@irdl_op_definition
class IsnanOp(Predicate):
    """``y`` = whether x is NaN."""

    name = "nd.isnan"


@irdl_op_definition
class IsinfOp(Predicate):
    """``y`` = whether x is inf or -inf."""

    name = "nd.isinf"


@irdl_op_definition
class IsfiniteOp(Predicate):
    """``y`` = whether x is neither infinite nor NaN."""

    name = "nd.isfinite"


@irdl_op_definition
class MaxOp(Binary):
    """``y`` = the greater of a and b; NaN if either is NaN. For +0 and -0 it may be either."""

    name = "nd.max"
    ELEMENTS: ClassVar = NUMBER
    traits = traits_def(Commutative())


@irdl_op_definition
class MinOp(Binary):
    """``y`` = the lesser of a and b; NaN if either is NaN. For +0 and -0 it may be either."""

    name = "nd.min"
    ELEMENTS: ClassVar = NUMBER
    traits = traits_def(Commutative())


@irdl_op_definition
class CopysignOp(Binary):
    """``y`` = |a| with the sign of b, also where b is zero or NaN."""

    name = "nd.copysign"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class ClampOp(Elementwise):
    """``y = min(max(x, low), high)``; NaN if any of the three is NaN; high where low > high."""

    name = "nd.clamp"
    ELEMENTS: ClassVar = NUMBER
    x = operand_def(TensorType)
    low = operand_def(TensorType)
    high = operand_def(TensorType)

    def __init__(self, x: SSAValue, low: SSAValue, high: SSAValue) -> None:
        super().__init__(operands=[x, low, high], result_types=[x.type])


@irdl_op_definition
class SelectOp(Elementwise):
    """``y = a where condition else b``. Unchosen elements have no influence, NaN included.

    * (C1) ``condition`` has elements i1 and the shape of ``a``.
    * (C2) ``a``, ``b`` and ``y`` have the same type.
    """

    name = "nd.select"
    ELEMENTS: ClassVar = ANY
    condition = operand_def(TensorType)
    a = operand_def(TensorType)
    b = operand_def(TensorType)

    def __init__(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[condition, a, b], result_types=[a.type])

    @classmethod
    def types_from(cls, type: Attribute) -> Sequence[Attribute]:
        """Return the type of the condition, then twice the type of the alternatives."""
        condition = like(type, I1) if isinstance(type, TensorType) else type
        return (condition, type, type)

    def written_type(self) -> Attribute:
        """Return the type of the alternatives."""
        return self.a.type

    def verify_(self) -> None:
        """Check C1 and C2."""
        a = tensor_of(self.a)
        if self.condition.type != (want := like(a, I1)):  # select_c1
            raise VerifyException(f"condition must be {want}, got {self.condition.type}")
        if self.b.type != a or self.y.type != a:  # select_c2
            other = self.b.type if self.b.type != a else self.y.type
            raise VerifyException(f"alternatives and result must have one type, got {a}, {other}")


shape(EqOp, NeOp, LtOp, LeOp, GtOp, GeOp, IsnanOp, IsinfOp, IsfiniteOp)(
    lambda op: (like(tensor_of(op.operands[0]), I1),)
)
same_type(MaxOp, MinOp, CopysignOp, ClampOp)
shape(SelectOp)(lambda op: (op.a.type,))

in_numpy(
    {
        EqOp: np.equal,
        NeOp: np.not_equal,
        LtOp: np.less,
        LeOp: np.less_equal,
        GtOp: np.greater,
        GeOp: np.greater_equal,
        IsnanOp: np.isnan,
        IsinfOp: np.isinf,
        IsfiniteOp: np.isfinite,
        MaxOp: np.maximum,
        MinOp: np.minimum,
        CopysignOp: np.copysign,
        ClampOp: lambda x, low, high: np.minimum(np.maximum(x, low), high),
        SelectOp: np.where,
    }
)

OPS = (
    EqOp,
    NeOp,
    LtOp,
    LeOp,
    GtOp,
    GeOp,
    IsnanOp,
    IsinfOp,
    IsfiniteOp,
    MaxOp,
    MinOp,
    CopysignOp,
    ClampOp,
    SelectOp,
)
