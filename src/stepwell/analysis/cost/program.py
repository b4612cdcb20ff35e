"""Properties of a kernel's program that the model needs: launch sizes and reuse distances."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from stepwell.analysis.constness import RESOURCE, attributes_of, entries
from stepwell.analysis.cost.accesses import ASSUMED, VIEWS, Shapes
from stepwell.analysis.cost.reuse import reuse_distances
from stepwell.analysis.launch_sizes import Launches
from stepwell.analysis.sizes import Size, Sizes
from stepwell.analysis.structured import shape
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
        """Bytes touched between two uses of a kernel's argument, by kernel and number."""
        return reuse_distances(self.module)

    @cached_property
    def unaligned(self) -> Mapping[str, Collection[int]]:
        """The arguments of kernels that callers give and may begin within a line, by number."""
        found: dict[str, set[int]] = {}
        for function in entries(self.module):
            for launch in function.walk():
                if isinstance(launch, kernel.LaunchOp):
                    here = {n for n, v in enumerate(launch.operands) if _is_given(v, function)}
                    found.setdefault(launch.callee.string_value(), set()).update(here)
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


def _is_given(value: SSAValue, function: func.FuncOp) -> bool:
    """Whether a value is an argument of a call, or a view of one: weights are aligned."""
    while isinstance(value, OpResult) and isinstance(value.op, VIEWS):
        value = value.op.operands[0]
    if not isinstance(value, BlockArgument) or value.owner is not function.body.block:
        return False
    return RESOURCE not in attributes_of(function, value.index)
