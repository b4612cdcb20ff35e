"""Checks of sizes as the attribute ``nd.checks`` of a function, and their evaluation in a call.

    nd.checks = [{holds = ["==", "d0", "d1"], words = ["%x has size ", ", %y has size ", ""],
                  values = ["d0", "d1"], at = "model.mlir:3:8"}]

A list is a tree of `core.host_schedule`; a check has the fields of `core.checks.Check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation

from stepwell.core.checks import ARITY, Check, check_all, holds
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.host_schedule import Tree
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.sizing import sizing_of
from stepwell.dialects.types import place_of

CHECKS = "nd.checks"
SERVED = "nd.served"
"""Attribute of a function: conditions on the sizes of the calls that it serves, as trees."""


def write_checks(function: func.FuncOp, checks: Sequence[Check]) -> None:
    """Set checks as an attribute of ``function``; no attribute if there are none."""
    function.attributes.pop(CHECKS, None)
    if checks:
        function.attributes[CHECKS] = ArrayAttr(
            DictionaryAttr(
                {
                    "holds": _attribute(each.holds),
                    "words": ArrayAttr(map(StringAttr, each.words)),
                    "values": ArrayAttr(map(_attribute, each.values)),
                    "at": StringAttr(each.at),
                }
            )
            for each in checks
        )


def read_checks(function: Operation) -> tuple[Check, ...]:
    """Return the checks of ``function``; `CompileError` if the attribute is malformed."""
    given = function.attributes.get(CHECKS)
    if given is None:
        return ()
    dims = {f"d{k}" for k in range(_count(function))}
    try:
        return tuple(_check(each, dims) for each in given)  # pyright: ignore
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"{CHECKS} is not a list of checks of sizes d0 to d{len(dims) - 1}: {error}"
        raise CompileError(Diagnostic("error", message, place_of(function))) from None


def write_served(function: func.FuncOp, conditions: Sequence[Tree]) -> None:
    """State which sizes ``function`` serves, besides earlier conditions."""
    if conditions:
        every = [*read_served(function), *conditions]
        function.attributes[SERVED] = ArrayAttr(map(_attribute, every))


def read_served(function: Operation) -> tuple[Tree, ...]:
    """Return the conditions on sizes of ``function``; `CompileError` if they are malformed."""
    given = function.attributes.get(SERVED)
    dims = {f"d{k}" for k in range(_count(function))}
    try:
        return tuple(_tree(each, dims) for each in given or ())  # pyright: ignore
    except (TypeError, ValueError) as error:
        message = f"{SERVED} is not a list of conditions on d0 to d{len(dims) - 1}: {error}"
        raise CompileError(Diagnostic("error", message, place_of(function))) from None


def _check(given: Any, dims: set[str]) -> Check:
    fields = given.data
    words = tuple(each.data for each in fields["words"])
    values = tuple(_tree(each, dims) for each in fields["values"])
    if len(words) != len(values) + 1 or not all(isinstance(w, str) for w in words):
        raise ValueError("there must be one text more than values")
    at = fields["at"].data
    if not isinstance(at, str):
        raise TypeError("'at' must be a text")
    return Check(_tree(fields["holds"], dims), words, values, at)


def _attribute(tree: Tree) -> Attribute:
    if isinstance(tree, str):
        return StringAttr(tree)
    if isinstance(tree, list | tuple):
        return ArrayAttr(map(_attribute, tree))
    bits = max(64, int(tree).bit_length() + 1)
    return IntegerAttr(int(tree), IntegerType(bits))


def _tree(given: Attribute, dims: set[str]) -> Tree:
    match given:
        case StringAttr(data=name):
            if name not in dims:
                raise ValueError(f"there is no size {name}")
            return name
        case IntegerAttr(value=value):
            return value.data
        case ArrayAttr(data=(StringAttr(data=operator), *operands)):
            if ARITY.get(operator) != len(operands):
                raise ValueError(f"there is no operator {operator} of {len(operands)}")
            trees = [_tree(each, dims) for each in operands]
            if operator == "wrap" and not (isinstance(trees[1], int) and 0 < trees[1] <= 64):
                raise ValueError("numbers wrap to 1 to 64 bits")
            return [operator, *trees]
        case _:
            raise ValueError(f"{given} is no size")


def _inputs(function: Operation) -> list[tuple[int, Sequence[int]]]:
    """Return number and shape of each argument that the caller passes."""
    assert isinstance(function, func.FuncOp)
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    found: list[tuple[int, Sequence[int]]] = []
    for number, argument in enumerate(function.args):
        given = attributes[number].data if number < len(attributes) else {}
        role = given.get("kernel.role", StringAttr("input"))
        if role == StringAttr("input") and isinstance(argument.type, TensorType | MemRefType):
            found.append((number, argument.type.get_shape()))
    return found


def _count(function: Operation) -> int:
    return sum(list(shape).count(DYNAMIC) for _, shape in _inputs(function))


def check_call(function: Operation, arguments: Sequence[Any]) -> None:
    """Raise ValueError if the sizes of ``arguments`` violate the conditions of ``function``."""
    if not isinstance(function, func.FuncOp):
        return
    checks: Sequence[Check] = ()
    if CHECKS in function.attributes:
        checks = read_checks(function)
    elif not any(op.name.startswith(_LOWER) for op in function.walk()):
        with suppress(CompileError):  # unknown sizes are left to NumPy's errors
            sizing = sizing_of(function)
            checks = sizing.finished() if sizing is not None else ()
    if checks:
        check_all(checks, _sizes(function, arguments))


def is_served(function: func.FuncOp, arguments: Sequence[Any]) -> bool:
    """Whether the function says that it serves calls with arguments of these sizes."""
    if SERVED not in function.attributes:
        return True
    sizes = {f"d{k}": n for k, n in enumerate(_sizes(function, arguments))}
    return all(holds(each, sizes) for each in read_served(function))


def _sizes(function: Operation, arguments: Sequence[Any]) -> list[int]:
    """Return each `?` of the arguments, in order; weights, which come last, have none."""
    return [
        size
        for number, shape in _inputs(function)
        if DYNAMIC in shape
        for size, n in zip(arguments[number].shape, shape, strict=True)
        if n == DYNAMIC
    ]


_LOWER = ("linalg.", "tensor.", "scf.", "memref.", "kernel.")
"""Ops of the floors below the graph, whose sizes are checked in other ways."""
