"""How the loops of one structured op are to be written: a choice, kept as an attribute."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class LoopsAttr(ParametrizedAttribute):
    """Loop ``axis`` advances by vectors of ``width`` lanes, ``interleave`` of them at a time.

    Spelled ``#kernel.loops<axis = 1, width = 16, interleave = 4>`` and attached to a structured
    op under the name ``kernel.loops``. ``axis`` counts the op's own iterators; width 1 is scalar.

    * (C1) axis >= 0, width >= 1, interleave >= 1.
    * (C2) width is a power of two, as vectors of machines are.
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
        """Check C1 and C2."""
        axis, width, interleave = self.axis.data, self.width.data, self.interleave.data
        if axis < 0 or width < 1 or interleave < 1:  # kernel_loops_c1
            raise VerifyException(
                "kernel.loops needs axis >= 0, width >= 1 and interleave >= 1, "
                f"got {axis}, {width} and {interleave}"
            )
        if width & (width - 1):  # kernel_loops_c2
            raise VerifyException(f"width of kernel.loops must be a power of two, got {width}")

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
