"""How the loops of one structured op are to be written: a choice, kept as an attribute."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

WIDEST, MOST = 256, 64
"""Lanes and vectors beyond those of any machine."""
UNROLLED = 256
"""So many vectors, or rows, side by side are beyond any machine's registers."""


@irdl_attr_definition
class LoopsAttr(ParametrizedAttribute):
    """Loop ``axis`` advances by vectors of ``width`` lanes, ``interleave`` of them at a time.

    Spelled ``#kernel.loops<axis = 1, width = 16, interleave = 4>`` and attached to a structured
    op under the name ``kernel.loops``. ``axis`` counts the op's own iterators; width 1 is scalar.

    * (C1) axis >= 0, width >= 1, interleave >= 1.
    * (C2) width is a power of two, as vectors of machines are.
    * (C3) width is at most 256 and interleave at most 64: each is written out.
    """

    name = "kernel.loops"
    axis: IntAttr = param_def()
    width: IntAttr = param_def()
    interleave: IntAttr = param_def()

    @classmethod
    def of(cls, axis: int, width: int, interleave: int = 1) -> LoopsAttr:
        """Build one from plain numbers."""
        return cls(IntAttr(axis), IntAttr(width), IntAttr(interleave))

    def verify(self) -> None:
        """Check C1 to C3."""
        axis, width, interleave = self.axis.data, self.width.data, self.interleave.data
        if axis < 0 or width < 1 or interleave < 1:  # kernel_loops_c1
            raise VerifyException(
                "kernel.loops needs axis >= 0, width >= 1 and interleave >= 1, "
                f"got {axis}, {width} and {interleave}"
            )
        if width & (width - 1):  # kernel_loops_c2
            raise VerifyException(f"width of kernel.loops must be a power of two, got {width}")
        if width > WIDEST or interleave > MOST:  # kernel_loops_c3
            raise VerifyException(
                f"kernel.loops must have width up to {WIDEST} and interleave up to {MOST}, "
                f"got {width} and {interleave}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<axis = 1, width = 16, interleave = 4>``."""
        numbers: list[Attribute] = []
        with parser.in_angle_brackets():
            for i, key in enumerate(("axis", "width", "interleave")):
                if i:
                    parser.parse_punctuation(",")
                parser.parse_keyword(key)
                parser.parse_punctuation("=")
                numbers.append(IntAttr(parser.parse_integer(allow_boolean=False)))
        return numbers

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        a, w, i = self.axis.data, self.width.data, self.interleave.data
        with printer.in_angle_brackets():
            printer.print_string(f"axis = {a}, width = {w}, interleave = {i}")
