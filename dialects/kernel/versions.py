"""Versions of a kernel: schedules for ranges of the length of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.kernel.levels import ScheduleAttr

VERSIONS = "kernel.versions"
"""Attribute of a kernel with its versions."""
FIRST_FITS = "kernel.first_fits"
"""Attribute of a kernel: the range of each of its versions has the length of every launch."""


@irdl_attr_definition
class VersionAttr(ParametrizedAttribute):
    """The levels of a kernel for ``low`` to ``high`` iterations of its loop ``loop``.

    A loop that ops do not share is that of the first op which has one of this number.

    Syntax: ``#kernel.version<d0 from 2 to 11, #kernel.schedule<[for d0 by 4, ...]>>``.

    * (C1) 0 <= low <= high.
    """

    name = "kernel.version"
    loop: IntAttr = param_def()
    low: IntAttr = param_def()
    high: IntAttr = param_def()
    schedule: ScheduleAttr = param_def()

    @classmethod
    def of(cls, loop: int, low: int, high: int, schedule: ScheduleAttr) -> VersionAttr:
        """Build one from plain numbers."""
        return cls(IntAttr(loop), IntAttr(low), IntAttr(high), schedule)

    def with_schedule(self, schedule: ScheduleAttr) -> VersionAttr:
        """Return the version for the same lengths with other levels."""
        return VersionAttr(self.loop, self.low, self.high, schedule)

    @property
    def exact(self) -> int | None:
        """The only length of the version, None if it has several."""
        return self.low.data if self.low == self.high else None

    def verify(self) -> None:
        """Check C1."""
        if not 0 <= self.low.data <= self.high.data:  # kernel_version_c1
            raise VerifyException(
                f"a version runs from one length to one as large, of 0 or more, got "
                f"{self.low.data} to {self.high.data}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<d0 from 2 to 11, #kernel.schedule<...>>``."""
        with parser.in_angle_brackets():
            start = parser.pos
            name = parser.parse_identifier(" that names a loop, as d0")
            if name[0] != "d" or not (name[1:].isdecimal() and name.isascii() and len(name) < 5):
                parser.raise_error(f"expected a loop, as d0, got '{name}'", start, parser.pos)
            parser.parse_keyword("from")
            low = parser.parse_integer(allow_boolean=False)
            parser.parse_keyword("to")
            high = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            schedule = parser.parse_attribute()
            if not isinstance(schedule, ScheduleAttr):
                parser.raise_error("expected #kernel.schedule<[...]>")
        return IntAttr(int(name[1:])), IntAttr(low), IntAttr(high), schedule

    def print_parameters(self, printer: Printer) -> None:
        """Print the form that `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.range}, ")
            printer.print_attribute(self.schedule)

    @property
    def range(self) -> str:
        """The range of lengths, as text."""
        return f"d{self.loop.data} from {self.low.data} to {self.high.data}"


def versions_in(value: Attribute | None) -> list[VersionAttr]:
    """Return the versions in an attribute.

    >>> versions_in(None)
    []
    """
    each = value.data if isinstance(value, ArrayAttr) else ()
    return [version for version in each if isinstance(version, VersionAttr)]


def check_versions(attributes: dict[str, Attribute], loops: int) -> None:
    """Check C11 of kernel.func.

    loops : how many loops the op has that has the most
    """
    if not isinstance(attributes.get(FIRST_FITS, UnitAttr()), UnitAttr):  # kernel_func_c11
        raise VerifyException(f"{FIRST_FITS} has no value, got {attributes[FIRST_FITS]}")
    if VERSIONS not in attributes:
        return
    value = attributes[VERSIONS]
    found = versions_in(value)
    if not isinstance(value, ArrayAttr) or not found or len(found) != len(value.data):
        raise VerifyException(  # kernel_func_c11
            f"{VERSIONS} must be a list of #kernel.version<...>, got {value}"
        )
    for version in found:
        if version.loop.data >= loops:  # kernel_func_c11
            raise VerifyException(
                f"a version is for the length of a loop, of which no op has more than {loops}, got "
                f"d{version.loop.data}"
            )
