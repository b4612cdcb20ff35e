"""Lower a function's signature: types become signless, and weights become arguments."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute

from stepwell.dialects.types import dtype
from stepwell.lowering.nd_to_linalg.table import Lowering, Resource, signless

Extra = dict[str, Attribute]


def finish(function: func.FuncOp, lowering: Lowering) -> None:
    """Give ``function``, whose body has been lowered, its new type and attributes.

    A resource is a trailing argument with ``nd.resource`` (its name) and ``nd.sha256``
    (if known); an unsigned argument or result has its dtype in ``nd.dtype``.
    """
    type = function.function_type
    inputs, outputs = type.inputs.data, type.outputs.data
    found = list(lowering.resources.values())
    arguments = _merged(function.arg_attrs, [_unsigned(t) for t in inputs])
    arguments += [_resource(r) | _unsigned(TensorType(r.element, [])) for r in found]
    function.properties["function_type"] = FunctionType.from_lists(
        [*(signless(t) for t in inputs), *(r.value.type for r in found)],
        [signless(t) for t in outputs],
    )
    _set(function, "arg_attrs", arguments)
    _set(function, "res_attrs", _merged(function.res_attrs, [_unsigned(t) for t in outputs]))


def _resource(resource: Resource) -> Extra:
    name: Extra = {"nd.resource": StringAttr(resource.name)}
    return name | ({"nd.sha256": StringAttr(resource.sha256)} if resource.sha256 else {})


def pass_resources(lowered: dict[str, tuple[func.FuncOp, Lowering]]) -> None:
    """Add the weights of called functions to their callers, transitively, and to the calls."""
    calls = [
        (op, caller)
        for caller, (function, _) in lowered.items()
        for op in function.walk()
        if isinstance(op, func.CallOp) and op.callee.string_value() in lowered
    ]
    grown = True
    while grown:
        grown = False
        for call, caller in calls:
            callee, outer = lowered[call.callee.string_value()][1], lowered[caller][1]
            for each in [r for r in callee.resources.values() if r.name not in outer.resources]:
                outer.adopt(each)
                grown = True
    for call, caller in calls:
        needed = lowered[call.callee.string_value()][1].resources
        weights = [lowered[caller][1].resources[name].value for name in needed]
        call.operands = [*call.operands, *weights]


def _unsigned(type: Attribute) -> Extra:
    element = type.element_type if isinstance(type, TensorType) else type
    if not isinstance(element, IntegerType) or element.signedness.data == Signedness.SIGNLESS:
        return {}
    return {"nd.dtype": StringAttr(dtype(element).name)}


def _merged(old: ArrayAttr[DictionaryAttr] | None, new: Sequence[Extra]) -> list[Extra]:
    given = [dict(a.data) for a in old] if old is not None else [{} for _ in new]
    return [{**a, **b} for a, b in zip(given, new, strict=True)]


def _set(function: func.FuncOp, name: str, attributes: Sequence[Extra]) -> None:
    if any(attributes):
        function.properties[name] = ArrayAttr(DictionaryAttr(a) for a in attributes)
