"""Ops that say how to differentiate what they compute: by rules of the user's, not, or again.

`sw.custom_vjp`, `sw.custom_jvp`, `sw.checkpoint` and `sw.stop_gradient` write them while a function
is traced. Where nothing differentiates them they are what their first region computes.
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
    """``y = x``, whose derivative is zero by decree."""

    name = "nd.stop_gradient"
    ELEMENTS: ClassVar = ANY


@reference(StopGradientOp)
def _same(op: StopGradientOp, operands: Sequence[Array]) -> Array:
    return operands[0]


@shape(StopGradientOp)
def _its_own(op: StopGradientOp) -> Sequence[Attribute]:
    return (op.operands[0].type,)


@decomposition(StopGradientOp)
def _operand(builder: Builder, op: StopGradientOp) -> Sequence[SSAValue]:
    return [op.operands[0]]


@partials(StopGradientOp)
def _zero(composer: Any, op: StopGradientOp) -> Sequence[None]:
    return [None]


class InlinedOp(RegionOp, ABC):
    """An op that is what its first region computes, and has more regions for its derivatives.

    Written ``(%x = %a, %w = %b) {fields} : (A, B) -> (R) { ... }``, then a word and a region for
    each of ``MORE``.
    """

    MORE: ClassVar[tuple[str, ...]] = ()
    """What the further regions are called."""

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
        """Print what `parse` reads."""
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
    """Return the values that have derivatives."""
    return [v for v in values if dtype(element(v)).kind == "float"]


@irdl_op_definition
class CustomVjpOp(InlinedOp):
    """Compute what ``body`` does; its derivative backward is what the other regions say.

    ``forward`` computes the results and whatever ``backward`` needs of the inputs; ``backward``
    takes that and the cotangents of the results, and gives those of the inputs. With ``exact``
    these are the derivative that ``body`` has, made in another way: forward mode goes through
    ``body``, not through the transpose of ``backward``.

    * (C1) ``body`` has the inputs as arguments, and yields the results.
    * (C2) ``forward`` has the same arguments, and yields the results, then more values.
    * (C3) ``backward`` has these values as arguments, then a cotangent for each result that is a
      float; it yields one for each input that is a float.
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
    """Compute what ``body`` does; its derivative forward is what the other region says.

    Backward goes the transpose of that, which must be linear in the tangents.

    * (C1) ``body`` has the inputs as arguments, and yields the results.
    * (C2) ``tangents`` has the inputs as arguments, then a tangent for each that is a float; it
      yields the results, then a tangent for each that is a float.
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
    """``y = x``, called so where policies of checkpoints speak of it.

    * (C1) ``called`` is no empty text.
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
def _its_type(op: CheckpointNameOp) -> Sequence[Attribute]:
    return (op.x.type,)


@decomposition(CheckpointNameOp)
def _named(builder: Builder, op: CheckpointNameOp) -> Sequence[SSAValue]:
    return [op.x]


POLICIES = ("nothing", "everything", "dots", "dots_without_batch")
"""What of a checkpoint is kept: nothing, all, products and convolutions, or products that have no
axes of a batch (which are as small as what they are made of)."""


@irdl_op_definition
class CheckpointOp(InlinedOp):
    """Compute what ``body`` does, and again where a derivative backward needs it.

    Only the inputs, and what ``policy`` says, are kept for the backward pass; of what
    nd.checkpoint_name calls something, that called one of ``named``, or none of ``unnamed`` (of
    which what it names is not kept either); without both what the policy says. With ``merged``
    the second computation may be found to be the first one, and be merged with it.

    * (C1) ``body`` has the inputs as arguments, and yields the results.
    * (C2) ``policy`` is one of ``nothing``, ``everything``, ``dots``, ``dots_without_batch``.
    * (C3) One of ``named`` and ``unnamed`` is given at most.
    """

    name = "nd.checkpoint"
    body = region_def("single_block")
    policy = opt_prop_def(StringAttr)
    named = opt_prop_def(ArrayAttr[StringAttr])
    unnamed = opt_prop_def(ArrayAttr[StringAttr])
    merged = opt_prop_def(UnitAttr)

    @property
    def keeps(self) -> str:
        """What of the region is kept."""
        return POLICIES[0] if self.policy is None else self.policy.data

    def keeps_name(self, name: str) -> bool:
        """Whether what is called so is kept."""
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
reference.none(*REGIONS, because="its first region says what it computes")

OPS: tuple[type[Operation], ...] = (StopGradientOp, CheckpointNameOp, *REGIONS)
