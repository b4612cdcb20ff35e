"""Parse the assembly formats of ops at their first use.

xDSL parses the format of an op when the class is defined. A process that compiles a program defines
146 ops with formats, and neither parses nor prints the text of most of them. This module is
imported before the dialects of xDSL: formats of dialects that were imported before it are parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.irdl import OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram

_parse = FormatProgram.from_str


@dataclass(eq=False)
class DeferredFormat:
    """The format of an op; `ParseError` at the first use of one that is not valid."""

    text: str
    definition: OpDef

    @cached_property
    def program(self) -> FormatProgram:
        """The format, parsed."""
        return _parse(self.text, self.definition)

    def parse(self, parser: Any, kind: Any) -> Any:
        """Parse an op of class ``kind``."""
        return self.program.parse(parser, kind)

    def print(self, printer: Any, op: Any) -> None:
        """Print an op."""
        self.program.print(printer, op)


setattr(FormatProgram, "from_str", staticmethod(DeferredFormat))  # noqa: B010 - other result type
