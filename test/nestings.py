"""Kernels of tests whose loops nest as their attributes say: fields of `Nesting`, in short.

`tile = [2, 2], blocks = [4, 8, 4], parallel = 2` on a kernel and `lanes = [1, 4, 1]` on its ops
stand for the levels that say the same.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser

from stepwell.analysis.levels import Lanes, Nesting, loop_ops, nesting_of, write_nesting
from stepwell.analysis.levels.nesting import loops_of
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.driver.registry import registry
from stepwell.transforms.kernels.schedule.threads import parallel_steps

ROWS = 8
"""Rows that a part of a sum over rows reads side by side."""


def write_levels(module: ModuleOp) -> None:
    """Write levels on the kernels of a module in place of what is said in short."""
    for function in module.ops:
        if isinstance(function, kernel.FuncOp):
            _write(function)


def _write(function: kernel.FuncOp) -> None:
    names = [name for name in function.attributes if not name.startswith("kernel.")]
    fields = {name: _value(function.attributes.pop(name)) for name in names}
    ops = loop_ops(function)
    lanes = [op.attributes.pop("lanes", None) for op in ops]
    if not fields and not any(lanes):
        return
    nesting = Nesting(choices.number(function, "kernel.shared"), **fields)
    nesting.split_rows = ROWS if nesting.split and nesting.shared else 0
    nesting.lanes = tuple(Lanes(*_value(each)) if each else Lanes() for each in lanes)
    nesting.steps = parallel_steps(nesting, [loops_of(op) for op in ops])
    write_nesting(function, nesting)


def _value(found: Attribute) -> Any:
    match found:
        case UnitAttr():
            return True
        case IntegerAttr():
            return found.value.data
        case ArrayAttr():
            return tuple(map(_value, found))
        case _:
            raise ValueError(found)


def nestings_in(text: str) -> list[Nesting]:
    """Return how the loops of each kernel of a text nest."""
    module = Parser(registry().context(), text).parse_module()
    return [nesting_of(each) for each in module.ops if isinstance(each, kernel.FuncOp)]


def has(text: str, field: str) -> bool:
    """Whether a kernel of a text has more of ``field`` than kernels without levels."""
    plain = getattr(Nesting(), field)
    return any(getattr(nesting, field) != plain for nesting in nestings_in(text))
