"""kernel.dot: products of the elements of words, added to an accumulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    VectorType,
    bf16,
    f16,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from stepwell.core.dot_instructions import TOTALS, terms_of
from stepwell.dialects.readings import Array, reference

ELEMENTS: dict[str, TypeAttribute] = {
    "i8": i8,
    "ui8": IntegerType(8, Signedness.UNSIGNED),
    "f16": f16,
    "bf16": bf16,
}
"""The element types of words, by the names of `stepwell.core.dot_instructions`."""
NAMES: dict[Attribute, str] = {type: name for name, type in ELEMENTS.items()}
SUMS: dict[str, Attribute] = {"i32": i32, "f32": f32}
_TOTAL = EqAttrConstraint(i32) | EqAttrConstraint(f32)


@irdl_op_definition
class DotOp(IRDLOperation):
    """Add the products of the elements of two words to an accumulator, in every lane.

    A word has 32 bits. It holds four i8 or ui8: products are added to an i32, which wraps; or two
    f16 or bf16: products are added to an f32, the second one first. Machine instructions may treat
    subnormal elements and sums as zero.

    * (C1) ``x_of`` and ``w_of`` are i8 or ui8, and the total i32; or both f16 or both bf16, and the
      total f32.
    * (C2) Words and total are scalars, or vectors with the same number of lanes.
    """

    name = "kernel.dot"
    TOTAL: ClassVar = VarConstraint("T", _TOTAL | VectorType.constr(_TOTAL))
    WORDS: ClassVar = VarConstraint("W", EqAttrConstraint(i32) | VectorType.constr(i32))
    total = operand_def(TOTAL)
    x = operand_def(WORDS)
    w = operand_def(WORDS)
    result = result_def(TOTAL)
    x_of = prop_def(TypeAttribute)
    w_of = prop_def(TypeAttribute)
    traits = traits_def(Pure())
    assembly_format = (
        "$total `,` $x `of` $x_of `,` $w `of` $w_of attr-dict `:` type($x) `->` type($result)"
    )

    def __init__(
        self, total: SSAValue, x: SSAValue, w: SSAValue, elements: tuple[str, str]
    ) -> None:
        names = zip(("x_of", "w_of"), elements, strict=True)
        super().__init__(
            operands=[total, x, w],
            result_types=[total.type],
            properties={name: ELEMENTS[element] for name, element in names},
        )

    @property
    def elements(self) -> tuple[str, str]:
        """The names of the words' element types."""
        return NAMES[self.x_of], NAMES[self.w_of]

    def verify_(self) -> None:
        """Check C1 and C2."""
        check_elements(self.x_of, self.w_of, self.total.type)  # kernel_dot_c1
        lanes = [
            value.type.get_shape() if isinstance(value.type, VectorType) else ()
            for value in (self.total, self.x)
        ]
        if lanes[0] != lanes[1]:
            raise VerifyException("there is a total for each lane of words")  # kernel_dot_c2


def check_elements(x_of: Attribute, w_of: Attribute, total: Attribute) -> None:
    """Check that words of two element types can be multiplied and added to a type.

    raises VerifyException : they cannot
    """
    if x_of not in NAMES or w_of not in NAMES:
        raise VerifyException(f"words hold one of {', '.join(ELEMENTS)}")
    x, w = NAMES[x_of], NAMES[w_of]
    if x != w and not TOTALS[x] == TOTALS[w] == "i32":
        raise VerifyException(f"no instruction multiplies {x} by {w}")
    if get_element_type_or_self(total) != SUMS[TOTALS[x]]:
        raise VerifyException(f"products of {x} are added to {TOTALS[x]}")


@reference(DotOp)
def _dot(op: DotOp, operands: Sequence[Array]) -> Array:
    total, x, w = (np.asarray(v) for v in operands)
    return add_products(total, x, w, op.elements)


def add_products(total: Array, x: Array, w: Array, elements: tuple[str, str]) -> Array:
    """Return totals with the products of words added, lane by lane."""
    x, w = (_elements(word, name) for word, name in zip((x, w), elements, strict=True))
    if TOTALS[elements[0]] == "i32":
        return (total + (x * w).sum(axis=-1)).astype(np.int32)
    for term in reversed(range(terms_of(elements[0]))):
        # the product of two such numbers is exact in f64
        total = (total.astype(np.float64) + x[..., term] * w[..., term]).astype(np.float32)
    return total


def _elements(words: Array, name: str) -> Array:
    """Return the elements of words in a wider type, along a new last axis."""
    shape = (*words.shape, terms_of(name))
    words = np.ascontiguousarray(words)
    if name == "bf16":
        bits = words.view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64).reshape(shape)
    kind, wide = {
        "i8": (np.int8, np.int64),
        "ui8": (np.uint8, np.int64),
        "f16": (np.float16, np.float64),
    }[name]
    return words.view(kind).astype(wide).reshape(shape)
