"""Add the derivative of a function to the module.

Before:  func.func @loss(%w: T, %x: T) -> tensor<f32> { ... }
After:   func.func @loss(%w: T, %x: T) -> tensor<f32> { ... }
         func.func @loss_vjp(%w: T, %x: T, %d_y: tensor<f32>) -> (tensor<f32>, T) { ... }

Afterwards there is one more function, in ordinary ops.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from stepwell.dialects.nd.gradients.functions import Kind, write_derivative
from stepwell.dialects.nd.gradients.reverse import is_float
from stepwell.dialects.nd.transformations import JvpOp, VjpOp
from stepwell.transforms.dce import DeadCode
from stepwell.transforms.named_functions import named_function
from stepwell.transforms.passes import Pass, fail


@dataclass(frozen=True)
class Derive(Pass, ABC):
    """The part that both passes share.

    function : the name of the function to differentiate
    wrt : numbers of the arguments, from 0; all float arguments by default
    of : numbers of the results, from 0; all float results by default
    """

    KIND: ClassVar[Kind]
    one_block = True
    function: str = ""
    wrt: tuple[int, ...] = ()
    of: tuple[int, ...] = ()

    @property
    def derived(self) -> str:
        """The name of the new function."""
        return f"{self.function}_{self.name}"

    def numbers(self, function: func.FuncOp) -> tuple[list[int], list[int]]:
        """Return the numbers of the arguments and the results to differentiate by and of."""
        last = function.body.block.last_op
        assert last is not None
        return (
            _floats(function, "argument", self.wrt, function.args),
            _floats(function, "result", self.of, last.operands),
        )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add the derivative to the module."""
        function = named_function(self, op, self.function, "differentiate", self.derived)
        wrt, of = self.numbers(function)
        write_derivative(function, self.derived, self.KIND, wrt, of, whole=True)
        DeadCode().apply(ctx, op)


def _floats(
    function: func.FuncOp, what: str, requested: Sequence[int], values: Sequence[SSAValue]
) -> list[int]:
    """Return the numbers ``requested``, which must be of floats; by default those of all floats."""
    name = function.sym_name.data
    for n in requested:
        if not 0 <= n < len(values):
            fail(function, f"@{name} has no {what} {n}", f"it has {len(values)}, counted from 0")
        if not is_float(values[n]):
            said = f"{what} {n} of @{name} is {values[n].type}, which has no derivative"
            fail(function, said, "only tensors of floats have one")
    found = sorted(set(requested)) or [n for n, v in enumerate(values) if is_float(v)]
    if not found:
        fail(function, f"@{name} has no {what} with a derivative: none is a tensor of floats")
    return found


@dataclass(frozen=True)
class Vjp(Derive):
    """Add @f_vjp: the results of @f, then the cotangents of its arguments, given those of results.

    Before:
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.sin %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
    After:
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.sin %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        func.func @f_vjp(%x: tensor<4xf32>, %d_y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %y = nd.sin %x : tensor<4xf32>
          %cos = nd.cos %x : tensor<4xf32>
          %d_x = nd.mul %d_y, %cos : tensor<4xf32>
          func.return %y, %d_x : tensor<4xf32>, tensor<4xf32>
        }
    Afterwards: there is one more function. Options: function=NAME, wrt=0,1 of its arguments and
    of=0 of its results, by default all floats.
    """

    name = "vjp"
    KIND: ClassVar[Kind] = VjpOp


@dataclass(frozen=True)
class Jvp(Derive):
    """Add @f_jvp: the results of @f, then their tangents, given those of arguments.

    Before:
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.sin %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
    After:
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.sin %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        func.func @f_jvp(%x: tensor<4xf32>, %t_x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %y = nd.sin %x : tensor<4xf32>
          %cos = nd.cos %x : tensor<4xf32>
          %t_y = nd.mul %t_x, %cos : tensor<4xf32>
          func.return %y, %t_y : tensor<4xf32>, tensor<4xf32>
        }
    Afterwards: there is one more function; options as those of vjp.
    """

    name = "jvp"
    KIND: ClassVar[Kind] = JvpOp
