"""Elementwise ops defined by a Python function: class, result type and decomposition.

The function is traced with scalars instead of arrays, to a function of rank-0 `nd` ops. The op
stands for the same ops in the shape of its operands, which may have `?`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.dtypes import DType
from stepwell.dialects.nd.base import element_dtype, like, tensor_of
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.syntax import SpelledOp, shape_of
from stepwell.dialects.readings import decomposition, shape
from stepwell.dialects.types import place_of

Numbers: TypeAlias = Mapping[str, bool | int | float | str]
Scalar: TypeAlias = Callable[[Sequence[DType], Numbers], ModuleOp]
"""``(dtypes of the operands, attributes) -> @main`` that computes one element."""


class DefinedOp(SpelledOp, ABC):
    """An op that applies a Python function to each element.

    * (C1) The operands have one type.
    * (C2) The result has their shape, and the element type that the function returns.
    """

    y = result_def(TensorType)

    def verify_(self) -> None:
        """Check C1; C2 is the shape rule."""
        first = tensor_of(self.operands[0])
        for other in self.operands[1:]:
            if other.type != first:  # defined_c1
                raise VerifyException(f"operands must have one type, got {first} and {other.type}")
        super().verify_()  # defined_c2

    @abstractmethod
    def traced(self, kinds: Sequence[DType], numbers: Numbers) -> ModuleOp:
        """Return a module whose function computes one element."""

    def scalar(self) -> func.FuncOp:
        """Return the function that computes one element of these dtypes."""
        kinds = [element_dtype(tensor_of(v)) for v in self.operands]
        numbers = {k: _number(v) for k, v in self.properties.items()}
        (main,) = self.traced(kinds, numbers).ops
        assert isinstance(main, func.FuncOp)
        return main


def define(
    name: str, operands: Sequence[str], numbers: Numbers, scalar: Scalar, about: tuple[str, str]
) -> type[DefinedOp]:
    """Return the class of the op ``name``, with its rules registered.

    operands : their names
    numbers : the attributes and their defaults: numbers and text; a flag is off
    about : docstring and module of the Python function
    """
    members: dict[str, Any] = {_free(each): operand_def(TensorType) for each in operands}
    members |= {_free(key): _field(key, default) for key, default in numbers.items()}
    stem = "".join(part.capitalize() for part in name.rpartition(".")[2].split("_"))
    doc, module = about
    members |= {"name": name, "__doc__": doc, "__module__": module}
    members["traced"] = lambda _, kinds, numbers: scalar(kinds, numbers)
    kind = irdl_op_definition(type(f"{stem}Op", (DefinedOp,), members))
    shape(kind)(_result_type)
    decomposition(kind)(_decompose)
    return kind


def _free(parameter: str) -> str:
    """Return the class's name for a parameter: ``y`` and others are already attributes."""
    return f"{parameter}_" if hasattr(DefinedOp, parameter) or parameter == "name" else parameter


def _field(name: str, default: bool | int | float | str) -> Any:
    """Return the property for such a number; a flag is present or absent."""
    match default:
        case bool():
            return opt_prop_def(UnitAttr, prop_name=name)
        case int():
            return prop_def(IntegerAttr, default_value=IntegerAttr(default, i64), prop_name=name)
        case float():
            return prop_def(FloatAttr, default_value=FloatAttr(default, f64), prop_name=name)
        case str():
            return prop_def(StringAttr, default_value=StringAttr(default), prop_name=name)


def _number(attribute: Attribute) -> bool | int | float | str:
    match attribute:
        case IntegerAttr() | FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case _:
            return True


def _result_type(op: DefinedOp) -> Sequence[Attribute]:
    (result,) = op.scalar().function_type.outputs
    assert isinstance(result, TensorType)
    return (like(tensor_of(op.operands[0]), result.element_type),)


def _decompose(builder: Builder, op: DefinedOp) -> Sequence[SSAValue]:
    """Inline the scalar function's ops in the shape of the operands."""
    body = op.scalar().body.block
    compose = Composer(builder)
    first = op.operands[0]
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, op.operands, strict=True))
    whole = set(op.operands)

    def spread(value: SSAValue) -> SSAValue:
        return value if value in whole else compose.along(value, first, ())

    for inner in body.ops:
        if isinstance(inner, func.ReturnOp):
            return (spread(values[inner.operands[0]]),)
        inputs = [values[v] for v in inner.operands]
        axes = any(v in whole for v in inputs) and shape_of(first) != ()
        created = compose.of(_in_shape(inner, [spread(v) for v in inputs] if axes else inputs))
        created.name_hint = inner.results[0].name_hint
        values[inner.results[0]] = created
        if axes or shape_of(first) == ():
            whole.add(created)
    raise AssertionError("a function ends in func.return")


def _in_shape(inner: Operation, inputs: Sequence[SSAValue]) -> Operation:
    """Return the rank-0 op ``inner`` on ``inputs``, which may have axes."""
    _check_elementwise(inner)
    types = [
        like(tensor_of(inputs[0]), tensor_of(v).element_type) if inputs else v.type
        for v in inner.results
    ]
    return type(inner).create(
        operands=inputs,
        result_types=types,
        properties=dict(inner.properties),
        attributes=dict(inner.attributes),
    )


def _check_elementwise(op: Operation) -> None:
    if isinstance(op, Elementwise | DefinedOp) or not (op.operands or op.regions):
        return
    message = f"an elementwise op is made of elementwise ops, and {op.name} is none"
    help = "write a class with a decomposition instead: docs/extending.md"
    raise CompileError(Diagnostic("error", message, place_of(op), help=help))
