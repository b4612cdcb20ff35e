"""Replace math functions on f32 by calls of functions written in plain arithmetic.

Before:  %y = math.exp %x : vector<16xf32>
After:   %y = func.call @exp_f32x16(%x) : (vector<16xf32>) -> vector<16xf32>
         func.func private @exp_f32x16(%x: vector<16xf32>) -> vector<16xf32> { arith, math.fma }

Afterwards every function that has an `expansion` rule is called, on f32 and vectors of it; the
others, and f64, are left to the C library. The scalar function is written by the same formulas, so
an element does not depend on whether it was computed in a vector or in the tail of a loop.
Results are within 2 units in the last place of the exact ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, VectorType, f32
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.rewriter import Rewriter

from stepwell.dialects.types import fuse_locations
from stepwell.lowering.expand_math import exponential, logarithm, other, trigonometric
from stepwell.lowering.expand_math.lanes import Body, Lanes, expansion
from stepwell.transforms.passes import Pass

RULES = (exponential, logarithm, trigonometric, other)
"""The modules whose rules are in the table."""


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Write math functions on f32 as polynomials."""

    name = "expand-math"
    expects_work = False
    numerics = "approximating"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace every function of the module that has a rule."""
        library = _Library(op)
        for each in list(_found(op)):
            library.replace(each)


def _found(module: ModuleOp) -> Iterator[Operation]:
    for op in module.walk():
        if op.results and expansion.get(type(op)) is not None and _width(op.results[0].type) >= 0:
            yield op


def _width(type: Attribute) -> int:
    """Return the lanes of a vector of f32, 0 for f32, -1 for what is left alone."""
    if isinstance(type, VectorType):
        lanes = type.get_shape()
        return lanes[0] if len(lanes) == 1 and type.element_type == f32 else -1
    return 0 if type == f32 else -1


@dataclass
class _Library:
    """The functions written so far."""

    module: ModuleOp
    written: dict[tuple[type[Operation], int], func.FuncOp] = field(
        default_factory=dict[tuple[type[Operation], int], func.FuncOp]
    )

    def __post_init__(self) -> None:
        names = (op.properties.get("sym_name") for op in self.module.ops)
        self.taken = {name.data for name in names if isinstance(name, StringAttr)}

    def replace(self, op: Operation) -> None:
        """Call the function that computes ``op``."""
        key = (type(op), _width(op.results[0].type))
        callee = self.written.get(key)
        if callee is None:
            callee = self.written[key] = self._write(op, key[1])
        callee.location = fuse_locations((callee.location, op.location))
        call = func.CallOp(callee.sym_name.data, op.operands, [op.results[0].type])
        call.location = op.location
        call.results[0].name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, call)

    def _write(self, op: Operation, width: int) -> func.FuncOp:
        value_type = op.results[0].type
        block = Block(arg_types=[value_type] * len(op.operands))
        for arg, name in zip(block.args, "xy", strict=False):
            arg.name_hint = name
        body = Body(block, width, op.location)
        result = expansion[type(op)](*(Lanes(arg, body) for arg in block.args))
        end = func.ReturnOp(result.value)
        end.location = op.location
        block.add_op(end)
        name = op.name.removeprefix("math.") + ("_f32" if width == 0 else f"_f32x{width}")
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        types = ([value_type] * len(op.operands), [value_type])
        function = func.FuncOp(name, types, Region(block), visibility="private")
        function.location = op.location
        self.module.body.block.add_op(function)
        return function
