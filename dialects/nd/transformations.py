"""Ops for transformations of a region: reverse and forward derivatives, and batching.

`sw.grad`, `sw.jvp` and `sw.vmap` create them during tracing; the pass `transform` replaces each by
ordinary ops. Captured values count as constants.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

import stepwell.dialects.nd.control_syntax as spelled
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.control import RegionOp, YieldOp, check_types
from stepwell.dialects.nd.syntax import (
    AXES,
    axes,
    axes_attr,
    element,
    int_attr,
    parse_fields,
    print_fields,
    shape_of,
)
from stepwell.dialects.readings import reference, shape
from stepwell.dialects.types import dtype


class TransformationOp(RegionOp, ABC):
    """An op that stands for a transformed region; it is never executed itself.

    Syntax: ``(%x = %a, %w = %b) given(%c : T) {fields} : (A, B) -> (R) { ... }``: the region's
    arguments with their operands, then the further operands.
    """

    GIVEN: ClassVar[str] = ""
    """The name of the further operands, which is also their keyword."""

    outputs = var_result_def()
    body = region_def("single_block")

    @property
    def more(self) -> Sequence[SSAValue]:
        """The operands that are not bound to arguments of the region."""
        found = getattr(self, self.GIVEN)
        if found is None:
            return ()
        return (found,) if isinstance(found, SSAValue) else found

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """The operands bound to the region's arguments."""
        return self.operands[: len(self.operands) - len(self.more)]

    @property
    def yields(self) -> Sequence[SSAValue]:
        """The values that the region yields."""
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("body must end in nd.yield")
        return last.operands

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse the op."""
        at = parser.pos
        names, values = spelled.parse_bindings(parser)
        more: Sequence[SSAValue] = []
        if parser.parse_optional_keyword(cls.GIVEN):
            more = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN,
                lambda: parser.resolve_operand(
                    parser.parse_unresolved_operand(), _type_after_colon(parser)
                ),
            )
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        primals = parser.resolve_operands(values, type.inputs.data, at)
        properties = {k: fields.pop(k) for k in cls.get_irdl_definition().properties if k in fields}
        seen = cls.argument_types(type.inputs.data, properties)
        arguments = [n.resolve(t) for n, t in zip(names, seen, strict=True)]
        return cls.build(
            operands=[primals, list(more)],
            result_types=[type.outputs.data],
            properties=properties,
            attributes=fields,
            regions=[parser.parse_region(arguments)],
        )

    @classmethod
    def argument_types(
        cls, types: Sequence[Attribute], properties: dict[str, Attribute]
    ) -> Sequence[Attribute]:
        """Return the types of the region's arguments, given those of the operands."""
        return types

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        spelled.print_bindings(printer, self.body.block, self.inputs)
        if self.more:
            printer.print_string(f" {self.GIVEN}(")
            printer.print_list(self.more, lambda v: _print_typed(printer, v))
            printer.print_string(")")
        hidden = "operandSegmentSizes"
        fields = {k: v for k, v in self.properties.items() if k != hidden}
        print_fields(printer, {**fields, **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type([v.type for v in self.inputs], self.result_types)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _type_after_colon(parser: Parser) -> Attribute:
    parser.parse_punctuation(":")
    return parser.parse_type()


def _print_typed(printer: Printer, value: SSAValue) -> None:
    printer.print_ssa_value(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


class DerivativeOp(TransformationOp, ABC):
    """The base of the two derivative ops.

    * (C1) The region has one argument for each of ``primals``, of its type.
    * (C2) ``wrt`` lists arguments and ``of`` results, in ascending order; all are floats.
    """

    wrt = prop_def(AXES)
    of = prop_def(AXES)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        primals: Sequence[SSAValue],
        given: Sequence[SSAValue],
        results: Sequence[Attribute],
        body: Region,
        wrt: Sequence[int],
        of: Sequence[int],
    ) -> None:
        super().__init__(
            operands=[list(primals), list(given)],
            result_types=[list(results)],
            properties={"wrt": axes_attr(wrt), "of": axes_attr(of)},
            regions=[body],
        )

    def verify_(self) -> None:
        """Check C1 and C2."""
        arguments = self.body.block.arg_types
        types = [v.type for v in self.inputs]
        check_types("body must have arguments", arguments, types)  # derivative_c1
        self.check_numbers("wrt", axes(self.wrt), self.body.block.args)  # derivative_c2
        self.check_numbers("of", axes(self.of), self.yields)  # derivative_c2

    def check_numbers(self, what: str, numbers: Sequence[int], of: Sequence[SSAValue]) -> None:
        """Refuse numbers that are not ascending indices of floats among ``of``."""
        if list(numbers) != sorted(set(numbers)) or not set(numbers) <= set(range(len(of))):
            raise VerifyException(
                f"{what} must name some of {len(of)} values, rising, got {list(numbers)}"
            )
        for n in numbers:
            if dtype(element(of[n])).kind != "float":
                raise VerifyException(f"{what} names value {n}, which is no float: {of[n].type}")

    @property
    def sources(self) -> Sequence[SSAValue]:
        """The arguments that the derivative is with respect to."""
        return [self.body.block.args[n] for n in axes(self.wrt)]

    @property
    def targets(self) -> Sequence[SSAValue]:
        """The results that the derivative is of."""
        return [self.yields[n] for n in axes(self.of)]


@irdl_op_definition
class VjpOp(DerivativeOp):
    """Run the region and its reverse-mode derivative: results, then a cotangent for each ``wrt``.

    The cotangent of an argument is the sum over the results ``of`` of their cotangents times the
    derivative of that result by the argument (``J^T c``). For one scalar result with cotangent 1 it
    is the gradient.

    * (C3) There is a cotangent for each of ``of``, of its type.
    * (C4) The results are those of the region, then one of the type of each of ``wrt``.
    """

    name = "nd.vjp"
    GIVEN: ClassVar = "cotangents"
    primals = var_operand_def(TensorType)
    cotangents = var_operand_def(TensorType)

    def verify_(self) -> None:
        """Check C1 to C4."""
        super().verify_()
        wanted = [v.type for v in self.targets]
        got = [v.type for v in self.cotangents]
        check_types("cotangents must be", got, wanted)  # vjp_c3
        check_types("results must be", self.result_types, _types_backward(self))  # vjp_c4


@irdl_op_definition
class JvpOp(DerivativeOp):
    """Run the region and its forward-mode derivative: results, then a tangent for each of ``of``.

    The tangent of a result is the sum over the arguments ``wrt`` of the derivative of the result by
    that argument times its tangent (``J t``).

    * (C3) There is a tangent for each of ``wrt``, of its type.
    * (C4) The results are those of the region, then one of the type of each of ``of``.
    """

    name = "nd.jvp"
    GIVEN: ClassVar = "tangents"
    primals = var_operand_def(TensorType)
    tangents = var_operand_def(TensorType)

    def verify_(self) -> None:
        """Check C1 to C4."""
        super().verify_()
        wanted = [v.type for v in self.sources]
        got = [v.type for v in self.tangents]
        check_types("tangents must be", got, wanted)  # jvp_c3
        check_types("results must be", self.result_types, _types_forward(self))  # jvp_c4


def _types_backward(op: VjpOp) -> list[Attribute]:
    return [v.type for v in (*op.yields, *op.sources)]


def _types_forward(op: JvpOp) -> list[Attribute]:
    return [v.type for v in (*op.yields, *op.targets)]


UNBATCHED = -1
"""In place of an axis: the value is not batched, it is the same for all examples."""


@irdl_op_definition
class VmapOp(TransformationOp):
    """Run the region for each example of a batch, all at once.

    ``in_axes`` has the batch axis of each of ``primals``, -1 if the value is the same for all
    examples; ``out_axes`` has the batch axis of each result, -1 if the result does not depend on
    the example. Collectives in the region (nd.all_sum) refer to the batch by its ``axis_name``.

    * (C1) The region has one argument for each of ``primals``, of its type without the batch axis,
      and ends in nd.yield.
    * (C2) Axes are those of operands and results, counted from 0, or -1.
    * (C3) The batch axes have the same size; it is ``size``, or the operand ``count``.
    * (C4) The results have the types that the region yields, with the batch axis.
    """

    name = "nd.vmap"
    GIVEN: ClassVar = "count"
    primals = var_operand_def(TensorType)
    count = opt_operand_def(IndexType)
    in_axes = prop_def(AXES)
    out_axes = prop_def(AXES)
    size = opt_prop_def(IntegerAttr)
    axis_name = opt_prop_def(StringAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        primals: Sequence[SSAValue],
        results: Sequence[Attribute],
        body: Region,
        in_axes: Sequence[int],
        out_axes: Sequence[int],
        size: int | SSAValue,
    ) -> None:
        known = isinstance(size, int)
        super().__init__(
            operands=[list(primals), [] if known else [size]],
            result_types=[list(results)],
            properties={
                "in_axes": axes_attr(in_axes),
                "out_axes": axes_attr(out_axes),
                **({"size": int_attr(size)} if known else {}),
            },
            regions=[body],
        )

    @property
    def length(self) -> int:
        """The size of the batch; DYNAMIC if known only at run time."""
        return DYNAMIC if self.size is None else self.size.value.data

    def verify_(self) -> None:
        """Check C1 to C4."""
        inside, outside = axes(self.in_axes), axes(self.out_axes)
        yields = self.yields
        if len(inside) != len(self.inputs) or len(outside) != len(yields):  # vmap_c2
            raise VerifyException("in_axes and out_axes must have an axis for each value")
        if (self.count is None) == (self.size is None):  # vmap_c3
            raise VerifyException("the size of the batch must be given once: size or count")
        for value, axis in zip(self.inputs, inside, strict=True):
            if axis != UNBATCHED and not 0 <= axis < len(shape_of(value)):  # vmap_c2
                raise VerifyException(f"axis {axis} is none of {value.type}")
            if axis != UNBATCHED and shape_of(value)[axis] != self.length:  # vmap_c3
                raise VerifyException(f"the batch has {self.length} elements, got {value.type}")
        for value, axis in zip(yields, outside, strict=True):
            if axis != UNBATCHED and not 0 <= axis <= len(shape_of(value)):  # vmap_c2
                raise VerifyException(f"axis {axis} is none of a batch of {value.type}")
        wanted = self.argument_types([v.type for v in self.inputs], self.properties)
        check_types("body must have arguments", self.body.block.arg_types, wanted)  # vmap_c1
        check_types("results must be", self.result_types, _batched_types(self))  # vmap_c4

    @classmethod
    def argument_types(
        cls, types: Sequence[Attribute], properties: dict[str, Attribute]
    ) -> Sequence[Attribute]:
        """Return ``types`` without the batch axes."""
        in_axes = axes(properties["in_axes"])  # pyright: ignore[reportArgumentType]
        return [_without(t, a) for t, a in zip(types, in_axes, strict=True)]


def _without(type: Attribute, axis: int) -> Attribute:
    if axis == UNBATCHED or not isinstance(type, TensorType):
        return type
    sizes = list(type.get_shape())
    del sizes[axis : axis + 1]
    return TensorType(type.element_type, sizes)


def _batched_types(op: VmapOp) -> list[Attribute]:
    found: list[Attribute] = []
    for value, axis in zip(op.yields, axes(op.out_axes), strict=True):
        sizes = list(shape_of(value))
        if axis != UNBATCHED:
            sizes.insert(axis, op.length)
        found.append(TensorType(element(value), sizes))
    return found


shape(VjpOp)(_types_backward)
shape(JvpOp)(_types_forward)
shape(VmapOp)(_batched_types)
reference.none(VjpOp, JvpOp, VmapOp, reason="it stands for what the pass transform makes of it")

TRANSFORMATIONS: tuple[type[Operation], ...] = (VjpOp, JvpOp, VmapOp)
OPS = TRANSFORMATIONS
