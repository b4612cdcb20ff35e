"""Add a batched version of a function to the module.

Before:  func.func @f(%x: tensor<4xf32>, %w: tensor<f32>) -> tensor<4xf32> { ... }
After:   func.func @f(%x: tensor<4xf32>, %w: tensor<f32>) -> tensor<4xf32> { ... }
         func.func @f_vmap(%x: tensor<8x4xf32>, %w: tensor<f32>) -> tensor<8x4xf32> { ... }

Afterwards there is one more function, in ordinary ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue

from stepwell.dialects.nd.batching.functions import write_batch
from stepwell.dialects.nd.transformations import UNBATCHED
from stepwell.transforms.dce import DeadCode
from stepwell.transforms.named_functions import named_function
from stepwell.transforms.passes import Pass, fail


@dataclass(frozen=True)
class Vmap(Pass):
    """Add @f_vmap, which computes @f for each example of a batch.

    Before:
        func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.mul %x, %w : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
    After, by vmap{function=f in_axes=0,-1 size=8}:
        func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.mul %x, %w : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        func.func @f_vmap(%x: tensor<8x4xf32>, %w: tensor<4xf32>) -> tensor<8x4xf32> {
          %broadcast = nd.broadcast %w {dims = [1]} : tensor<4xf32> -> tensor<8x4xf32>
          %y = nd.mul %x, %broadcast : tensor<8x4xf32>
          func.return %y : tensor<8x4xf32>
        }
    Afterwards: there is one more function. Options: function=NAME; in_axes=0,-1 gives the batch
    axis of each argument, -1 where it has none, out_axes that of each result: one number is for
    all, 0 by default; size=8 is the number of examples, by default that of the call.
    """

    name = "vmap"
    one_block = True
    function: str = ""
    in_axes: tuple[int, ...] = (0,)
    out_axes: tuple[int, ...] = (0,)
    size: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add the batched function to the module."""
        new = f"{self.function}_vmap"
        function = named_function(self, op, self.function, "batch", new)
        last = function.body.block.last_op
        assert last is not None
        inside = _axes(function, "in_axes", "argument", self.in_axes, function.args)
        outside = _axes(function, "out_axes", "result", self.out_axes, last.operands)
        if self.size is None and all(axis == UNBATCHED for axis in inside):
            said = f"nothing tells how many examples @{self.function} is for"
            fail(function, said, "say size=8, or the axis of an argument in in_axes")
        if self.size is not None and self.size < 0:
            fail(function, f"size is how many examples there are, got {self.size}")
        write_batch(function, new, inside, outside, self.size)
        DeadCode().apply(ctx, op)


def _axes(
    function: func.FuncOp,
    option: str,
    what: str,
    requested: Sequence[int],
    values: Sequence[SSAValue],
) -> list[int]:
    """Return the batch axis of each value; the batched value has one axis more."""
    name = function.sym_name.data
    given = list(requested) * len(values) if len(requested) == 1 else list(requested)
    if len(given) != len(values):
        s = "" if len(values) == 1 else "s"
        fail(function, f"{option} has {len(given)} axes, but @{name} has {len(values)} {what}{s}")
    for n, (axis, value) in enumerate(zip(given, values, strict=True)):
        if not isinstance(value.type, TensorType):
            given[n] = UNBATCHED
        elif not UNBATCHED <= axis < value.type.get_num_dims() + 1:
            said = f"axis {axis} is none of a batch of {what} {n} of @{name}, {value.type}"
            fail(function, said, "axes are counted from 0; -1 says that there is none")
    return given
