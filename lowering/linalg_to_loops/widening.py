"""The casts with which a body widens one operand, done where that operand is packed instead."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import element, widening
from stepwell.lowering.linalg_to_loops.builder import Builder, vector_type
from stepwell.lowering.linalg_to_loops.structured import Structured


class Widening:
    """The casts of one operand of an op; there may be none."""

    def __init__(self, op: Structured, operand: int) -> None:
        self.body, self.operand = op.body, operand
        self.casts = [] if op.body is None else widening(op.body.args[operand])
        source = element(op.inputs[operand].buffer)
        self.element = self.casts[-1].results[0].type if self.casts else source
        """The type of an element after the casts."""

    def write(self, writer: Builder, value: SSAValue, lanes: int) -> SSAValue:
        """Widen an element, or a vector of ``lanes``."""
        for cast in self.casts:
            kind = cast.results[0].type
            value = writer.again(
                cast, [value], vector_type(kind, lanes) if lanes else kind, value.name_hint
            )
        return value

    def body_after(self) -> Block | None:
        """Return the body on operands that are widened already."""
        body = self.body
        if body is None or not self.casts:
            return body
        types = list(body.arg_types)
        types[self.operand] = self.element
        new = Block(arg_types=types)
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, new.args, strict=True))
        for arg, old in zip(new.args, body.args, strict=True):
            arg.name_hint = old.name_hint
        values[self.casts[-1].results[0]] = new.args[self.operand]
        for op in body.ops:
            if op not in self.casts:
                copy = op.clone(values)
                copy.location = op.location
                new.add_op(copy)
        return new
