"""kernel.dot4: products of four bytes each, added to an integer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import UnitAttr, VectorType, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from stepwell.dialects.readings import Array, reference


@irdl_op_definition
class Dot4Op(IRDLOperation):
    """Add four products of bytes to a number, in every lane.

    A word of 32 bits stands for its four bytes, signed ones unless it is said that those of the
    first or of the second word are not. The sum wraps around.
    """

    name = "kernel.dot4"
    WORDS: ClassVar = VarConstraint("T", EqAttrConstraint(i32) | VectorType.constr(i32))
    total = operand_def(WORDS)
    x = operand_def(WORDS)
    w = operand_def(WORDS)
    result = result_def(WORDS)
    x_unsigned = opt_prop_def(UnitAttr)
    w_unsigned = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    assembly_format = (
        "$total `,` (`unsigned` $x_unsigned^)? $x `,` (`unsigned` $w_unsigned^)? $w "
        "attr-dict `:` type($result)"
    )

    def __init__(
        self, total: SSAValue, x: SSAValue, w: SSAValue, signs: tuple[bool, bool] = (True, True)
    ) -> None:
        names = zip(("x_unsigned", "w_unsigned"), signs, strict=True)
        super().__init__(
            operands=[total, x, w],
            result_types=[total.type],
            properties={name: UnitAttr() for name, signed in names if not signed},
        )

    @property
    def signs(self) -> tuple[bool, bool]:
        """Whether the bytes of either word are signed."""
        return self.x_unsigned is None, self.w_unsigned is None


@reference(Dot4Op)
def _dot4(op: Dot4Op, operands: Sequence[Array]) -> Array:
    total, *words = (np.asarray(v) for v in operands)
    x, w = (
        np.ascontiguousarray(word).view(np.int8 if signed else np.uint8).astype(np.int64)
        for word, signed in zip(words, op.signs, strict=True)
    )
    sums = (x * w).reshape(*total.shape, 4).sum(axis=-1)
    return (total + sums).astype(np.int32)
