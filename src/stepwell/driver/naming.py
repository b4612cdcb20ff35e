"""Name the results of a program: by the function's result names, or by the values it returns.

Passes merge and replace values, so the names are read before the first pass and written on the
function (``nd.name`` of a result) before its results become arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr

NAME = "nd.name"


def result_names(module: ModuleOp, entry: str) -> tuple[str, ...]:
    """Return a distinct name for each result of the entry, "" where it has none."""
    function = _function(module, entry)
    if function is None:
        return ()
    last = function.body.block.last_op
    returned = last.operands if isinstance(last, func.ReturnOp) else ()
    given = function.res_attrs.data if function.res_attrs else (DictionaryAttr({}),) * len(returned)
    found: list[str] = []
    taken: dict[str, int] = {}
    for value, attributes in zip(returned, given, strict=False):
        attribute = attributes.data.get(NAME)
        name = attribute.data if isinstance(attribute, StringAttr) else value.name_hint or ""
        found.append(_fresh(name, taken) if name else "")
    return tuple(found)


def write_result_names(module: ModuleOp, entry: str, names: Sequence[str]) -> None:
    """Write the names on the entry's results, while its results are still values."""
    function = _function(module, entry)
    if function is None or len(function.function_type.outputs) != len(names):
        return
    given = function.res_attrs.data if function.res_attrs else (DictionaryAttr({}),) * len(names)
    function.res_attrs = ArrayAttr(
        DictionaryAttr({**attributes.data, NAME: StringAttr(name)}) if name else attributes
        for attributes, name in zip(given, names, strict=True)
    )


def _function(module: ModuleOp, entry: str) -> func.FuncOp | None:
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == entry and op.body.blocks:
            return op
    return None


def _fresh(name: str, taken: dict[str, int]) -> str:
    """Return a name that is not taken yet; a number after it says how many times it was."""
    number, found = taken.get(name, 0), name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken[name] = number
    taken.setdefault(found, 0)
    return found
