"""Print IR: as text for files and tools, optionally without large constants."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.dialects.faults import in_words
from stepwell.dialects.resources import key_of, metadata, resources_of
from stepwell.dialects.spellings import IN_GENERIC_FORM, RESPELLED
from stepwell.dialects.types import UNSUPPORTED_FLOATS, place_of

_PLAIN = re.compile(rb"[ !#-\[\]-~]*+")


_LONG = 64
"""Minimum elements of a list that is printed at once."""


def _is_wide(type: Attribute) -> bool:
    """Whether numbers of a type print as digits: those of one bit print as words."""
    return isinstance(type, IndexType) or (isinstance(type, IntegerType) and type.width.data > 1)


PRINTERS: dict[str, Callable[[Any, Printer], None]] = {}
"""Printers of custom syntax, by op name, for ops that xDSL prints differently or not at all."""


class ElidingPrinter(Printer):
    """xDSL's printer; a dense constant of more than ``elide`` elements is replaced by its name."""

    elide: int | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._all_generic = self.print_generic_format
        self.used: set[tuple[str, str]] = set()

    def print_bytes_literal(self, bytestring: bytes) -> None:
        """Print as xDSL does, but at once if no character needs an escape."""
        if _PLAIN.fullmatch(bytestring) is None:
            super().print_bytes_literal(bytestring)
        else:
            self.print_string(f'"{bytestring.decode("ascii")}"')

    def print_op(self, op: Operation) -> None:
        """Print as xDSL does, ops of `PRINTERS` in their own syntax; `CompileError` on failure."""
        outside = self.print_generic_format
        self.print_generic_format = self._all_generic or op.name in IN_GENERIC_FORM
        try:
            self._print_one(op)
        except (CompileError, RecursionError, MemoryError, OSError):
            raise
        except Exception as error:  # a printer failed on an op that it does not handle
            said = f"'{op.name}' cannot be printed: {in_words(error)}"
            raise CompileError(Diagnostic("error", said, place_of(op))) from error
        self.print_generic_format = outside

    def _print_one(self, op: Operation) -> None:
        custom = None if self.print_generic_format else PRINTERS.get(op.name)
        if custom is None:
            super().print_op(op)
            return
        self._print_results(op)
        self.print_string(op.name)
        custom(op, self)
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)

    def print_op_with_default_format(self, op: Operation) -> None:
        """Print the generic form as xDSL does, but with MLIR's names of properties."""
        respelled = RESPELLED.get(op.name)
        if respelled is None:
            super().print_op_with_default_format(op)
            return
        kept = op.properties, op.attributes
        op.properties, op.attributes = respelled.as_mlir(*kept)
        try:
            super().print_op_with_default_format(op)
        finally:
            op.properties, op.attributes = kept

    def print_resource_handle(self, dialect: str, handle: str) -> None:
        """Print the name of a resource, whose contents are printed at the end."""
        self.used.add((dialect, handle))
        self.print_string(key_of(handle))

    def print_float(self, value: float, type: Any) -> None:
        """Print as xDSL does; for types that it cannot pack, print all digits of the number."""
        if not isinstance(type, UNSUPPORTED_FLOATS):
            super().print_float(value, type)
            return
        if not math.isfinite(value):
            raise ValueError(f"{value} of type {type} has no spelling")
        short = f"{value:.6e}"
        self.print_string(short if float(short) == value else f"{Decimal(value):e}")

    def print_attribute(self, attribute: Attribute) -> None:
        """Print ``attribute``, or MLIR's placeholder for a large one."""
        limit = self.elide
        if limit is not None and isinstance(attribute, DenseIntOrFPElementsAttr):
            large = math.prod(attribute.get_shape()) > limit
            if large:
                self.print_string("dense_resource<__elided__> : ")
                attribute = attribute.type
        elif isinstance(attribute, ArrayAttr) and self._print_long_list(attribute):
            return
        super().print_attribute(attribute)

    def _print_long_list(self, attribute: ArrayAttr[Attribute]) -> bool:
        """Print a list of integers of one type at once; return False for other lists."""
        if len(attribute.data) < _LONG:
            return False
        first = attribute.data[0]
        if not isinstance(first, IntegerAttr) or not _is_wide(first.type):
            return False
        numbers: list[int] = []
        for each in attribute.data:
            if not isinstance(each, IntegerAttr) or each.type != first.type:
                return False
            numbers.append(each.value.data)
        kind = f" : {first.type}"
        self.print_string("[" + ", ".join(f"{n}{kind}" for n in numbers) + "]")
        return True


def text_of(
    op: Operation, *, generic: bool = False, locations: bool = False, elide: int | None = None
) -> str:
    """Return the text of ``op``, ending in a newline.

    generic : every op in generic form
    locations : with a ``loc(...)`` after every op
    elide : the maximum elements of a printed constant; None prints all
    """
    stream = io.StringIO()
    printer = ElidingPrinter(stream, print_generic_format=generic, print_debuginfo=locations)
    printer.elide = elide
    printer.print_op(op)
    stream.write("\n")
    if beside := metadata(resources_of(op), printer.used):
        stream.write(f"{beside}\n")
    return stream.getvalue()
