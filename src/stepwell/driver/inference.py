"""Infer the result types of an op of another package, when a trace calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OptOperandDef, OptResultDef, VarOperandDef, VarResultDef
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.core.diagnostics import did_you_mean
from stepwell.core.shapes import Shape, ShapeError
from stepwell.dialects import readings
from stepwell.dialects.nd.base import element_dtype, tensor_of
from stepwell.dialects.nd.defined import DefinedOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.driver.registry import registry


@dataclass(frozen=True)
class OpClass:
    """The class of an op of a plug-in, with a context that has its dialect."""

    kind: type[IRDLOperation]
    context: Context

    @property
    def elementwise(self) -> bool:
        """Whether its operands must have one type."""
        return issubclass(self.kind, Elementwise | DefinedOp)

    def infer(self, types: Sequence[str], attributes: str) -> list[tuple[str, Shape]]:
        """Return dtype and shape of each result; TypeError where the op rejects its arguments.

        attributes : spelled as properties, ``<{axis = 1 : i64}>``, or nothing
        """
        rule = readings.shape.get(self.kind)
        if rule is None:
            name = self.kind.name
            raise TypeError(f"{name} has no shape rule; register one in stepwell.dialects.readings")
        self._check(len(types), attributes)
        operands = Block(arg_types=[Parser(self.context, t).parse_type() for t in types]).args
        try:
            fields = self._fields(attributes)
            wanted = rule(self._create(operands, fields, self._unknown()))
            created = self._create(operands, fields, wanted)
            created.verify(verify_nested_ops=False)
            return [
                (element_dtype(tensor_of(v)).name, tensor_of(v).get_shape())
                for v in created.results
            ]
        except (VerifyException, ShapeError, ParseError) as error:
            raise TypeError(f"{self.kind.name}: {str(error).splitlines()[0]}") from None

    def _check(self, operands: int, attributes: str) -> None:
        """Compare the number of operands and the attributes with the class's definition."""
        parts = self.kind.get_irdl_definition()
        plain = not any(isinstance(o, OptOperandDef | VarOperandDef) for _, o in parts.operands)
        if plain and operands != len(parts.operands):
            wanted = ", ".join(name for name, _ in parts.operands)
            raise TypeError(f"{self.kind.name} takes ({wanted}), got {operands} arguments")
        known = [*parts.properties, *parts.attributes]
        for name in self._fields(attributes):
            if name not in known:
                help = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
                raise TypeError(f"{self.kind.name} has no attribute '{name}'; {help}")

    def _fields(self, attributes: str) -> dict[str, Attribute]:
        text = attributes.strip().removeprefix("<").removesuffix(">")
        return Parser(self.context, text).parse_optional_attr_dict() if text else {}

    def _create(
        self,
        operands: Sequence[SSAValue],
        fields: Mapping[str, Attribute],
        types: Sequence[Attribute],
    ) -> Operation:
        known = self.kind.get_irdl_definition().properties
        usual = {k: p.default_value for k, p in known.items() if p.default_value is not None}
        return self.kind.create(
            operands=operands,
            result_types=types,
            properties=usual | {k: v for k, v in fields.items() if k in known},
            attributes={k: v for k, v in fields.items() if k not in known},
        )

    def _unknown(self) -> list[Attribute]:
        """Return placeholders for the types of the results during inference."""
        results = self.kind.get_irdl_definition().results
        if any(isinstance(result, OptResultDef | VarResultDef) for _, result in results):
            raise TypeError(f"{self.kind.name} has any number of results: write it in text")
        return [NoneAttr() for _ in results]


def op_class(name: str) -> OpClass:
    """Return the class of the op ``name``; TypeError if no dialect has it."""
    context = registry().context()
    kind = context.get_optional_op(name)
    if kind is None or not issubclass(kind, IRDLOperation):
        hint = did_you_mean(name, [op.name for op in context.loaded_ops])
        raise TypeError(f"there is no op '{name}'" + (f"; {hint}" if hint else ""))
    return OpClass(kind, context)
