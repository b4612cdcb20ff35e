"""Properties of a kernel's program that the model needs: launch sizes and reuse distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, ShapedType, StringAttr
from xdsl.ir import BlockArgument, OpResult, SSAValue

from stepwell.analysis.constness import entries
from stepwell.analysis.cost.accesses import ASSUMED, VIEWS, Shapes
from stepwell.analysis.cost.work import bits_of
from stepwell.analysis.launch_sizes import Launches
from stepwell.analysis.sizes import Size, Sizes
from stepwell.analysis.structured import element, shape
from stepwell.core.host_schedule import in_call
from stepwell.dialects import kernel


@dataclass(frozen=True)
class Program:
    """The launches of a module's kernels.

    sizes : the value of each `?` of a call's arguments, where given
    """

    module: ModuleOp
    sizes: Sequence[int] | None = None

    @cached_property
    def launches(self) -> Launches:
        """The sizes of the launches."""
        return Launches(self.module)

    @cached_property
    def idle(self) -> Mapping[str, Mapping[int, float]]:
        """Bytes touched between two uses of a kernel's argument, by kernel and number.

        An argument of a call is used again in the next call, after all arguments have been touched;
        a value that one kernel passes to another is used soon.
        """
        found: dict[str, dict[int, float]] = {}
        for function in entries(self.module):
            given = sum(map(_bytes, function.args))
            for op in function.walk():
                if not isinstance(op, kernel.LaunchOp):
                    continue
                known = found.setdefault(op.callee.string_value(), {})
                for k, value in enumerate(op.operands):
                    known[k] = max(known.get(k, 0.0), given if _is_given(value) else 0.0)
        return found

    def shapes(self, function: kernel.FuncOp) -> tuple[Shapes, set[SSAValue]]:
        """Return the shape function of a kernel's arrays, and the arrays with assumed sizes."""
        inner = Sizes(function.body.block.args)
        assumed = set[SSAValue]()

        def number(size: Size) -> int | None:
            tree = self.launches.tree(function, size, inner)
            if isinstance(tree, int) or self.sizes is None:
                return tree if isinstance(tree, int) else None
            return in_call(tree, self.sizes)

        def shape_of(value: SSAValue) -> Sequence[int]:
            static = shape(value)
            if DYNAMIC_INDEX not in static:
                return static
            found = [number(size) for size in inner.shape(value)]
            if None in found:
                assumed.add(value)
            return [ASSUMED if n is None else n for n in found]

        return shape_of, assumed


def _is_given(value: SSAValue) -> bool:
    """Whether an array is a view of an argument of a call."""
    while isinstance(value, OpResult) and isinstance(value.op, VIEWS):
        value = value.op.operands[0]
    if not isinstance(value, BlockArgument):
        return False
    function = value.owner.parent_op()
    if not isinstance(function, func.FuncOp):
        return False
    roles = function.arg_attrs
    role = roles.data[value.index].data.get("kernel.role") if roles is not None else None
    return role != StringAttr("arena")


def _bytes(value: SSAValue) -> float:
    if not isinstance(value.type, ShapedType) or not _is_given(value):
        return 0.0
    sizes = [ASSUMED if n == DYNAMIC_INDEX else n for n in shape(value)]
    return prod(sizes) * bits_of(element(value)) / 8
