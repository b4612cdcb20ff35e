"""Ops that control differentiation: custom rules, no derivative, or recomputation.

`sw.custom_vjp`, `sw.custom_jvp`, `sw.checkpoint` and `sw.stop_gradient` create them during
tracing. Without differentiation each computes its first region.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

import stepwell.dialects.nd.control_syntax as spelled
from stepwell.dialects.nd.base import ANY
from stepwell.dialects.nd.control import RegionOp, YieldOp, check_types
from stepwell.dialects.nd.elementwise import Unary
from stepwell.dialects.nd.syntax import SpelledOp, element, parse_fields, print_fields
from stepwell.dialects.readings import Array, decomposition, partials, reference, shape
from stepwell.dialects.types import dtype


@irdl_op_definition
class StopGradientOp(Unary):
    """``y = x``, with derivative zero."""

    name = "nd.stop_gradient"
    ELEMENTS: ClassVar = ANY


@reference(StopGradientOp)
def _same(op: StopGradientOp, operands: Sequence[Array]) -> Array:
    return operands[0]


@shape(StopGradientOp)
def _stop_gradient_shape(op: StopGradientOp) -> Sequence[Attribute]:
    return (op.operands[0].type,)


@decomposition(StopGradientOp)
def _operand(builder: Builder, op: StopGradientOp) -> Sequence[SSAValue]:
    return [op.operands[0]]


@partials(StopGradientOp)
def _zero(composer: Any, op: StopGradientOp) -> Sequence[None]:
    return [None]


class InlinedOp(RegionOp, ABC):
    """An op that computes its first region and has further regions for its derivatives.

    Syntax: ``(%x = %a, %w = %b) {fields} : (A, B) -> (R) { ... }``, then a keyword and a region for
    each of ``MORE``.
    """

    MORE: ClassVar[tuple[str, ...]] = ()
    """The keywords of the further regions."""

    inputs = var_operand_def(TensorType)
    outputs = var_result_def()
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        results: Sequence[Attribute],
        regions: Sequence[Region],
        properties: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[list(inputs)],
            result_types=[list(results)],
            regions=list(regions),
            properties=properties or {},
        )

    def verify_(self) -> None:
        """Check the first region."""
        types = [v.type for v in self.inputs]
        check_types("body must have arguments", self.regions[0].block.arg_types, types)
        check_types("body must yield", yielded(self.regions[0], "body"), self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse the op."""
        at = parser.pos
        names, values = spelled.parse_bindings(parser)
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        properties = {k: fields.pop(k) for k in cls.get_irdl_definition().properties if k in fields}
        arguments = [n.resolve(t) for n, t in zip(names, type.inputs.data, strict=True)]
        regions = [parser.parse_region(arguments)]
        for word in cls.MORE:
            parser.parse_keyword(word)
            regions.append(parser.parse_region())
        inputs = parser.resolve_operands(values, type.inputs.data, at)
        op = cls(inputs, type.outputs.data, regions, properties)
        op.attributes.update(fields)
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        spelled.print_bindings(printer, self.regions[0].block, self.inputs)
        print_fields(printer, {**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type([v.type for v in self.inputs], self.result_types)
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_entry_block_args=False)
        for word, region in zip(self.MORE, self.regions[1:], strict=True):
            printer.print_string(f" {word} ")
            printer.print_region(region)


def yielded(region: Region, what: str) -> Sequence[Attribute]:
    """Return the types that a region yields."""
    last = region.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{what} must end in nd.yield")
    return last.operand_types


def floats(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the float values, which have derivatives."""
    return [v for v in values if dtype(element(v)).kind == "float"]


@irdl_op_definition
class CustomVjpOp(InlinedOp):
    """Compute ``body``; the other regions define its reverse-mode derivative.

    ``forward`` computes the results and the residuals that ``backward`` needs; ``backward`` takes
    the residuals and the cotangents of the results and yields the cotangents of the inputs. With
    ``exact`` these are the true derivative of ``body``: forward mode then differentiates ``body``
    instead of transposing ``backward``.

    * (C1) ``body`` has the inputs as arguments, and yields the results.
    * (C2) ``forward`` has the same arguments, and yields the results, then the residuals.
    * (C3) ``backward`` has the residuals as arguments, then a cotangent for each float result; it
      yields a cotangent for each float input.
    """

    name = "nd.custom_vjp"
    MORE: ClassVar = ("forward", "backward")
    body = region_def("single_block")
    forward = region_def("single_block")
    backward = region_def("single_block")
    exact = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        """Check C1 to C3."""
        super().verify_()  # custom_vjp_c1
        arguments, outputs = self.forward.block.arg_types, yielded(self.forward, "forward")
        types, count = [v.type for v in self.inputs], len(self.outputs)
        check_types("forward must have arguments", arguments, types)  # custom_vjp_c2
        first = outputs[:count]
        check_types("forward must yield first", first, self.result_types)  # custom_vjp_c2
        wanted = [*outputs[count:], *(v.type for v in floats(self.outputs))]
        arguments = self.backward.block.arg_types
        check_types("backward must have arguments", arguments, wanted)  # custom_vjp_c3
        wanted = [v.type for v in floats(self.inputs)]
        got = yielded(self.backward, "backward")
        check_types("backward must yield", got, wanted)  # custom_vjp_c3


@irdl_op_definition
class CustomJvpOp(InlinedOp):
    """Compute ``body``; the other region defines its forward-mode derivative.

    Reverse mode uses the transpose of that region, which must be linear in the tangents.

    * (C1) ``body`` has the inputs as arguments, and yields the results.
    * (C2) ``tangents`` has the inputs as arguments, then a tangent for each float input; it yields
      the results, then a tangent for each float result.
    """

    name = "nd.custom_jvp"
    MORE: ClassVar = ("tangents",)
    body = region_def("single_block")
    rule = region_def("single_block")

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()  # custom_jvp_c1
        wanted = [v.type for v in (*self.inputs, *floats(self.inputs))]
        arguments = self.rule.block.arg_types
        check_types("tangents must have arguments", arguments, wanted)  # custom_jvp_c2
        wanted = [v.type for v in (*self.outputs, *floats(self.outputs))]
        check_types("tangents must yield", yielded(self.rule, "tangents"), wanted)  # custom_jvp_c2


@irdl_op_definition
class CheckpointNameOp(SpelledOp):
    """``y = x``, with a name by which checkpoint policies refer to it.

    * (C1) ``called`` is not empty.
    """

    name = "nd.checkpoint_name"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    called = prop_def(StringAttr)
    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        """Check C1."""
        super().verify_()
        if not self.called.data:  # checkpoint_name_c1
            raise VerifyException("called must be a name")


@reference(CheckpointNameOp)
def _same_value(op: CheckpointNameOp, operands: Sequence[Array]) -> Array:
    return operands[0]


@shape(CheckpointNameOp)
def _checkpoint_name_shape(op: CheckpointNameOp) -> Sequence[Attribute]:
    return (op.x.type,)


@decomposition(CheckpointNameOp)
def _named(builder: Builder, op: CheckpointNameOp) -> Sequence[SSAValue]:
    return [op.x]


POLICIES = ("nothing", "everything", "dots", "dots_without_batch")
"""The values of a checkpoint that are kept: none, all, contractions, or contractions without batch
axes (whose results are no larger than their operands)."""


@irdl_op_definition
class CheckpointOp(InlinedOp):
    """Compute ``body``, and recompute it where a reverse-mode derivative needs it.

    Only the inputs and the values that ``policy`` selects are kept for the backward pass. Of the
    values named by nd.checkpoint_name, those in ``named`` are kept, or all except those in
    ``unnamed`` (whose operand is not kept either); without both lists the policy decides. With
    ``merged`` common subexpression elimination may merge the recomputation with the original.

    * (C1) ``body`` has the inputs as arguments, and yields the results.
    * (C2) ``policy`` is one of ``nothing``, ``everything``, ``dots``, ``dots_without_batch``.
    * (C3) At most one of ``named`` and ``unnamed`` is given.
    """

    name = "nd.checkpoint"
    body = region_def("single_block")
    policy = opt_prop_def(StringAttr)
    named = opt_prop_def(ArrayAttr[StringAttr])
    unnamed = opt_prop_def(ArrayAttr[StringAttr])
    merged = opt_prop_def(UnitAttr)

    @property
    def keeps(self) -> str:
        """The policy."""
        return POLICIES[0] if self.policy is None else self.policy.data

    def keeps_name(self, name: str) -> bool:
        """Whether a value of this name is kept."""
        if self.named is not None:
            return StringAttr(name) in self.named.data
        if self.unnamed is not None:
            return StringAttr(name) not in self.unnamed.data
        return self.keeps == "everything"

    def verify_(self) -> None:
        """Check C1 to C3."""
        super().verify_()  # checkpoint_c1
        if self.keeps not in POLICIES:  # checkpoint_c2
            raise VerifyException(f"policy must be one of {', '.join(POLICIES)}, got {self.keeps}")
        if self.named is not None and self.unnamed is not None:  # checkpoint_c3
            raise VerifyException("named and unnamed exclude each other")


def _types(op: InlinedOp) -> Sequence[Attribute]:
    return yielded(op.regions[0], "body")


REGIONS: tuple[type[InlinedOp], ...] = (CustomVjpOp, CustomJvpOp, CheckpointOp)
for _kind in REGIONS:
    shape(_kind)(_types)
reference.none(*REGIONS, reason="its first region says what it computes")

OPS: tuple[type[Operation], ...] = (StopGradientOp, CheckpointNameOp, *REGIONS)
