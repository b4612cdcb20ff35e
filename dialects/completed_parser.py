"""xDSL's parser with additions that MLIR reads: parts of locations, resources and maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BytesAttr, FusedLoc, IndexType, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.traits import SingleBlockImplicitTerminator


class CompletedParser(Parser):
    """Reads ``fused<"pass">[...]``, ``dense_resource<"a key">``, and dims in ``affine.load``."""

    def _parse_location(self) -> Any:
        here = self._current_token.span
        if here.text != "fused" or here.input.at(here.end) != "<":
            return super()._parse_location()
        self.parse_keyword("fused")
        with self.in_angle_brackets():
            metadata = self.parse_attribute()
        parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
        return FusedLoc(tuple(parts), metadata)

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: Any) -> str:
        if (quoted := self.parse_optional_str_literal()) is not None:
            return quoted
        return self.parse_identifier(" for resource handle")

    def parse_affine_map_of_ssa_ids(self) -> tuple[AffineMap, Sequence[SSAValue[IndexType]]]:
        """Parse as xDSL does, but values are dimensions; only `symbol(...)` makes symbols."""
        map, operands = super().parse_affine_map_of_ssa_ids()
        count = map.num_dims + map.num_symbols
        dims = [AffineExpr.dimension(k) for k in range(count)]
        first, rest = dims[: map.num_dims], dims[map.num_dims :]
        return map.replace_dims_and_symbols(first, rest, count, 0), operands


def as_text(found: BytesAttr) -> Attribute:
    r"""Return an escaped string literal as a string; as bytes if it is not valid UTF-8.

    >>> as_text(BytesAttr(b"\xc3\xbc")) == StringAttr("ü"), as_text(BytesAttr(b"\xff"))
    (True, BytesAttr(data=b'\xff'))
    """
    try:
        return StringAttr(found.data.decode())
    except UnicodeDecodeError:
        return found


def end_implicitly(op: Operation) -> None:
    """Append the implicit terminator of an op in custom form, also after an unregistered op."""
    for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
        for region in op.regions:
            for block in region.blocks:
                if isinstance(block.last_op, UnregisteredOp):
                    block.add_op(trait.op_type.create())
