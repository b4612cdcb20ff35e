"""Read hex digits in a dense literal as the bits of a float, as MLIR writes infinities and NaN."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import AnyFloat
from xdsl.parser import AttrParser

_Element = AttrParser._TensorLiteralElement  # pyright: ignore[reportPrivateUsage]
_to_type = _Element.to_type


def _with_bits(self: Any, parser: AttrParser, type: Any) -> Any:
    written = self.span.text[:2] in ("0x", "0X")
    if not (written and isinstance(type, AnyFloat) and isinstance(self.value, int)):
        return _to_type(self, parser, type)
    try:
        bits = self.value.to_bytes(type.compile_time_size, "little")
    except OverflowError:
        parser.raise_error(f"{self.span.text} has more bits than {type}", at_position=self.span)
    return type.unpack(bits, 1)[0]


_Element.to_type = _with_bits
