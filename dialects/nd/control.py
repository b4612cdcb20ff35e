"""Control flow on tensors: nd.if, nd.while, nd.scan, and the terminators of their regions.

Regions may capture values. They end in nd.yield; the test of nd.while in nd.condition.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsTerminator,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    ReturnLike,
)
from xdsl.utils.exceptions import VerifyException

import stepwell.dialects.nd.control_syntax as spelled
from stepwell.core.shapes import DYNAMIC, ShapeError
from stepwell.core.shapes import control as shapes
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.nd.syntax import element, int_attr, parse_fields, print_fields, shape_of
from stepwell.dialects.readings import reference, shape
from stepwell.dialects.types import dtype

CONDITION = TensorType(IntegerType(1), [])
"""The type of a condition: a scalar tensor of i1."""


class TerminatorOp(IRDLOperation, ABC):
    """A terminator: its operands are the values that the region yields."""


@irdl_op_definition
class YieldOp(TerminatorOp):
    """End a region and yield its values."""

    name = "nd.yield"
    values = var_operand_def(TensorType)
    traits = lazy_traits_def(lambda: (IsTerminator(), ReturnLike(), Pure()))
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class ConditionOp(TerminatorOp):
    """End the test of nd.while: the operand says whether the loop continues."""

    name = "nd.condition"
    condition = operand_def(CONDITION)
    traits = lazy_traits_def(lambda: (IsTerminator(), Pure()))
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue) -> None:
        super().__init__(operands=[condition])


class RegionOp(IRDLOperation, ABC):
    """An op with regions; it has their memory effects."""

    traits = traits_def(RecursiveMemoryEffect())


def _check_end(region: Region, what: str, kind: type[Operation], types: Sequence[Any]) -> None:
    """Refuse a region whose terminator is not ``kind`` with operands of ``types``."""
    last = region.block.last_op
    if not isinstance(last, kind):
        raise VerifyException(f"{what} must end in {kind.name}")
    check_types(f"{what} must yield", last.operand_types, types)


def check_types(what: str, got: Sequence[Any], want: Sequence[Any]) -> None:
    """Refuse types that differ from those wanted."""
    if tuple(got) != tuple(want):
        raise VerifyException(f"{what} {_list(want)}, got {_list(got)}")


def _list(types: Sequence[Any]) -> str:
    return f"({', '.join(map(str, types))})"


@irdl_op_definition
class IfOp(RegionOp):
    """Run one of two regions and return the values that it yields.

    Only the chosen region runs.

    * (C1) Neither region has arguments.
    * (C2) Both end in nd.yield of values of the results' types.
    """

    name = "nd.if"
    condition = operand_def(CONDITION)
    outputs = var_result_def(TensorType)
    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(RecursivelySpeculatable())

    def __init__(
        self, condition: SSAValue, results: Sequence[Attribute], then: Region, otherwise: Region
    ) -> None:
        super().__init__(
            operands=[condition], result_types=[list(results)], regions=[then, otherwise]
        )

    def verify_(self) -> None:
        """Check C1 and C2."""
        for what, region in (("first region", self.then), ("second region", self.otherwise)):
            if region.block.args:  # if_c1
                raise VerifyException(f"{what} must not have arguments")
            _check_end(region, what, YieldOp, self.result_types)  # if_c2

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%c -> T, T { ... } else { ... }``."""
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), CONDITION)
        results = spelled.parse_results(parser)
        then = parser.parse_region()
        parser.parse_keyword("else")
        op = cls(condition, results, then, parser.parse_region())
        op.attributes = spelled.parse_attributes(parser)
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        spelled.print_results(printer, self.result_types)
        printer.print_string(" ")
        printer.print_region(self.then)
        printer.print_string(" else ")
        printer.print_region(self.otherwise)
        printer.print_op_attributes(self.attributes, print_keyword=True)


@shape(IfOp)
def _if_shape(op: IfOp) -> Sequence[Attribute]:
    last = op.then.block.last_op
    return list(last.operand_types) if last is not None else []


@evaluate(IfOp)
def _if(interpreter: Interpreter, op: IfOp, operands: Sequence[Value]) -> Sequence[Value]:
    return interpreter.run(op.then if bool(operands[0]) else op.otherwise, ())


@irdl_op_definition
class WhileOp(RegionOp):
    """Run ``body`` on the carried values while ``test``, run on them, yields true.

    * (C1) Both regions have one argument for each carried value, of its type.
    * (C2) ``test`` ends in nd.condition, ``body`` in nd.yield of values of the carried types.
    * (C3) The results have the carried types.
    """

    name = "nd.while"
    carried = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    test = region_def("single_block")
    body = region_def("single_block")

    def __init__(self, carried: Sequence[SSAValue], test: Region, body: Region) -> None:
        super().__init__(
            operands=[list(carried)],
            result_types=[[v.type for v in carried]],
            regions=[test, body],
        )

    def verify_(self) -> None:
        """Check C1, C2 and C3."""
        types = self.operand_types
        for what, region in (("test", self.test), ("body", self.body)):
            check_types(f"{what} must have arguments", region.block.arg_types, types)  # while_c1
        _check_end(self.test, "test", ConditionOp, [CONDITION])  # while_c2
        _check_end(self.body, "body", YieldOp, types)  # while_c2
        check_types("results must be", self.result_types, types)  # while_c3

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%i = %n, %x = %y) : T, T { ... } do (%i, %x) { ... }``."""
        at = parser.pos
        names, values = spelled.parse_bindings(parser)
        types: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        carried = parser.resolve_operands(values, types, at)
        test = parser.parse_region([n.resolve(t) for n, t in zip(names, types, strict=True)])
        parser.parse_keyword("do")
        inside = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        if len(inside) != len(types):
            parser.raise_error(f"expected {len(types)} names, one for each carried value", at)
        body = parser.parse_region([n.resolve(t) for n, t in zip(inside, types, strict=True)])
        op = cls(carried, test, body)
        op.attributes = spelled.parse_attributes(parser)
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        spelled.print_bindings(printer, self.test.block, self.carried)
        if self.carried:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.test, print_entry_block_args=False)
        printer.print_string(" do (")
        printer.print_list(self.body.block.args, printer.print_ssa_value)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)


@shape(WhileOp)
def _while_shape(op: WhileOp) -> Sequence[Attribute]:
    return list(op.operand_types)


@evaluate(WhileOp)
def _while(interpreter: Interpreter, op: WhileOp, operands: Sequence[Value]) -> Sequence[Value]:
    carried = tuple(operands)
    while bool(interpreter.run(op.test, carried)[0]):
        carried = interpreter.run(op.body, carried)
    return carried


@irdl_op_definition
class ScanOp(RegionOp):
    """Run ``body`` once for each element of ``xs`` along axis 0, with loop-carried values.

    The arguments of ``body`` are the carried values, then one slice of each of ``xs``; it yields
    the next carried values, then one slice of each result that is stacked along axis 0.
    ``reverse`` runs from the last element to the first; slice i of a stacked result still belongs
    to element i. Results: the carried values after the last step, then the stacked results.

    * (C1) ``xs`` have one size along axis 0, which is the number of steps; with no ``xs`` it is
      ``length`` or the operand ``steps``.
    * (C2) ``body`` has arguments of the carried types, then of the types of slices of ``xs``.
    * (C3) ``body`` ends in nd.yield of the carried types, then of slices of the other results.
    * (C4) There is one of ``sizes`` for each `?` of the stacked results beyond axis 0, in order.
    """

    name = "nd.scan"
    carried = var_operand_def(TensorType)
    xs = var_operand_def(TensorType)
    steps = opt_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    outputs = var_result_def(TensorType)
    length = opt_prop_def(IntegerAttr)
    reverse = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RecursivelySpeculatable())

    def __init__(
        self,
        carried: Sequence[SSAValue],
        xs: Sequence[SSAValue],
        body: Region,
        *,
        length: int | SSAValue | None = None,
        sizes: Sequence[SSAValue] = (),
        reverse: bool = False,
    ) -> None:
        known = length if isinstance(length, int) else None
        steps = DYNAMIC if isinstance(length, SSAValue) else known
        count = shapes.scan_length([shape_of(x) for x in xs], steps)
        last = body.block.last_op
        types = [] if last is None else [v.type for v in last.operands]
        super().__init__(
            operands=[
                list(carried),
                list(xs),
                [length] if isinstance(length, SSAValue) else [],
                list(sizes),
            ],
            result_types=[
                [*types[: len(carried)], *(_stacked(t, count) for t in types[len(carried) :])]
            ],
            properties={
                **({} if known is None else {"length": int_attr(known)}),
                **({"reverse": UnitAttr()} if reverse else {}),
            },
            regions=[body],
        )

    @property
    def count(self) -> int:
        """The number of steps; DYNAMIC if known only at run time."""
        known = None if self.length is None else self.length.value.data
        length = DYNAMIC if self.steps is not None and known is None else known
        return shapes.scan_length([shape_of(x) for x in self.xs], length)

    @property
    def stacked(self) -> Sequence[SSAValue]:
        """The stacked results."""
        return self.outputs[len(self.carried) :]

    def verify_(self) -> None:
        """Check C1 to C4."""
        try:
            count = self.count  # scan_c1
        except ShapeError as error:
            raise VerifyException(str(error)) from None
        carried = [v.type for v in self.carried]
        slices = [_slice(x.type) for x in self.xs]
        got = self.body.block.arg_types
        check_types("body must have arguments", got, [*carried, *slices])  # scan_c2
        if len(self.outputs) < len(carried):  # scan_c3
            raise VerifyException(f"expected a result for each of {len(carried)} carried values")
        for y in self.stacked:
            if shape_of(y)[:1] != (count,):  # scan_c3
                size = "?" if count == DYNAMIC else count
                raise VerifyException(f"stacked result must have {size} elements, got {y.type}")
        ends = [*carried, *(_slice(y.type) for y in self.stacked)]
        _check_end(self.body, "body", YieldOp, ends)  # scan_c3
        check_types("results must be", self.result_types[: len(carried)], carried)  # scan_c3
        unknown = sum(shape_of(y)[1:].count(DYNAMIC) for y in self.stacked)
        if len(self.sizes) != unknown:  # scan_c4
            raise VerifyException(
                f"expected {unknown} sizes, one for each ? beyond axis 0 of the stacked results, "
                f"got {len(self.sizes)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%c = %c0) over (%x = %xs) length(%n) sizes(%m) {...} : type { ... }``."""
        at = parser.pos
        names, carried = spelled.parse_bindings(parser)
        more, xs = (
            spelled.parse_bindings(parser) if parser.parse_optional_keyword("over") else ([], [])
        )
        steps = spelled.parse_group(parser, "length")
        sizes = spelled.parse_group(parser, "sizes")
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        inputs = type.inputs.data
        values = parser.resolve_operands([*carried, *xs], inputs, at)
        seen = [*inputs[: len(carried)], *map(_slice, inputs[len(carried) :])]
        names = [n.resolve(t) for n, t in zip([*names, *more], seen, strict=True)]
        properties = {k: fields.pop(k) for k in ("length", "reverse") if k in fields}
        return cls.build(
            operands=[values[: len(carried)], values[len(carried) :], steps, sizes],
            result_types=[type.outputs.data],
            properties=properties,
            attributes=fields,
            regions=[parser.parse_region(names)],
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        block = self.body.block
        spelled.print_bindings(printer, block, self.carried)
        if self.xs:
            printer.print_string(" over ")
            spelled.print_bindings(printer, block, self.xs, len(self.carried))
        spelled.print_group(printer, "length", [self.steps] if self.steps else [])
        spelled.print_group(printer, "sizes", self.sizes)
        fields = {k: v for k, v in self.properties.items() if k in ("length", "reverse")}
        print_fields(printer, {**fields, **self.attributes})
        printer.print_string(" : ")
        inputs = [v.type for v in (*self.carried, *self.xs)]
        printer.print_function_type(inputs, self.result_types)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _slice(type: Attribute) -> Attribute:
    if not isinstance(type, TensorType) or not type.get_num_dims():
        return type
    return TensorType(type.element_type, shapes.scan_slice(type.get_shape()))


def _stacked(type: Attribute, count: int) -> Attribute:
    if not isinstance(type, TensorType):
        raise ShapeError(f"a scan stacks tensors, got {type}")
    return TensorType(type.element_type, shapes.scan_stack(type.get_shape(), count))


@shape(ScanOp)
def _scan_shape(op: ScanOp) -> Sequence[Attribute]:
    last = op.body.block.last_op
    types = [] if last is None else list(last.operand_types)
    carried, rest = types[: len(op.carried)], types[len(op.carried) :]
    return [*carried, *(_stacked(t, op.count) for t in rest)]


@evaluate(ScanOp)
def _scan(interpreter: Interpreter, op: ScanOp, operands: Sequence[Value]) -> Sequence[Value]:
    first, second = len(op.carried), len(op.carried) + len(op.xs)
    carried, xs = tuple(operands[:first]), operands[first:second]
    sizes = iter(int(n) for n in (operands[second + 1 :] if op.steps else operands[second:]))
    count = len(xs[0]) if xs else int(operands[second]) if op.steps else op.count
    stacked = [
        np.zeros(
            (count, *(next(sizes) if n == DYNAMIC else n for n in shape_of(y)[1:])),
            dtype(element(y)).numpy,
        )
        for y in op.stacked
    ]
    for i in reversed(range(count)) if op.reverse else range(count):
        results = interpreter.run(op.body, (*carried, *(x[i] for x in xs)))
        carried = results[:first]
        for into, value in zip(stacked, results[first:], strict=True):
            if np.shape(value) != into.shape[1:]:  # assignment would broadcast a smaller row
                raise ValueError(f"a scan stacks rows of {into.shape[1:]}, not {np.shape(value)}")
            into[i] = value
    return (*carried, *stacked)


shape.none(YieldOp, ConditionOp, reason="it has no results")
reference.none(IfOp, WhileOp, ScanOp, reason="it runs regions: see its evaluate rule")
reference.none(YieldOp, ConditionOp, reason="it computes nothing")

OPS = (IfOp, WhileOp, ScanOp, YieldOp, ConditionOp)
