"""Split a function with late arguments into the part before they arrive and the part after.

Before:  func.func @f(%x: T, %d_y: T) -> (T, T) attributes {nd.part = "before", nd.later = [1, 1]} {
           %y = nd.exp %x
           %d_x = nd.mul %d_y, %y
           func.return %y, %d_x
         }
After:   func.func @f(%x: T) -> (T, T) { %y = nd.exp %x  func.return %y, %y }

Afterwards no function has these attributes. With "after" the same function becomes
``@f(%y: T, %d_y: T) -> T { %d_x = nd.mul %d_y, %y  func.return %d_x }``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr

from stepwell.transforms.canonicalize import Canonicalize
from stepwell.transforms.cse import CommonSubexpressions
from stepwell.transforms.dce import DeadCode
from stepwell.transforms.passes import Pass, fail

PART, LATER = "nd.part", "nd.later"
"""Attributes of a function: the part to keep, and the numbers of trailing arguments and results
that belong to the part after."""


@dataclass(frozen=True)
class SplitDerivatives(Pass):
    """Keep one part of each function with nd.part: before its late arguments, or after.

    nd.later = [m, n] says that the last m arguments are late and the last n results depend on them.
    With nd.part = "before" the function takes the other arguments; it returns the other results,
    then the residuals that the part after needs: a minimum cut by bytes, behind which only cheap
    ops are recomputed. With "after" it takes the residuals and the late arguments, and returns the
    last results. Both parts of the same text agree on the residuals. So `sw.vjp` computes a
    function once for any number of cotangents.

    Before:
        func.func @f(%x: tensor<4xf32>, %d_y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
            attributes {nd.part = "after", nd.later = [1, 1]} {
          %y = nd.exp %x : tensor<4xf32>
          %d_x = nd.mul %d_y, %y : tensor<4xf32>
          func.return %y, %d_x : tensor<4xf32>, tensor<4xf32>
        }
    After:
        func.func @f(%y: tensor<4xf32>, %d_y: tensor<4xf32>) -> tensor<4xf32> {
          %d_x = nd.mul %d_y, %y : tensor<4xf32>
          func.return %d_x : tensor<4xf32>
        }
    Afterwards: no function has these attributes.
    """

    name = "split-derivatives"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split every function that has the attribute."""
        found = [
            f for f in op.body.block.ops if isinstance(f, func.FuncOp) and PART in f.attributes
        ]
        if not found:
            return
        Canonicalize().apply(ctx, op)  # so that equal values count as one residual
        CommonSubexpressions().apply(ctx, op)
        splitting = import_module("stepwell.transforms.graph.splitting")  # with all rules
        for function in found:
            splitting.split(function, *_parts_of(function))
        DeadCode().apply(ctx, op)


def _parts_of(function: func.FuncOp) -> tuple[str, tuple[int, int]]:
    """Take the attributes from a function: the part to keep, and the two numbers."""
    part, later = function.attributes.pop(PART), function.attributes.pop(LATER, None)
    given = later.data if isinstance(later, ArrayAttr) else ()
    numbers = [n.value.data for n in given if isinstance(n, IntegerAttr)]
    wanted = part.data if isinstance(part, StringAttr) else ""
    if wanted not in ("before", "after") or not len(numbers) == len(given) == 2:
        fail(function, f"{PART} is before or after, and {LATER} has two numbers")
    return wanted, (numbers[0], numbers[1])
