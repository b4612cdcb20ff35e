"""Choose which destinations of kernels are written past the caches.

Before:  kernel.func @k(%x: tensor<8388608xf32>, %y: tensor<8388608xf32>) -> tensor<8388608xf32>
         %r = kernel.launch @k ins(%x : ...) outs(%e : ...) -> tensor<8388608xf32>
         func.return %r : tensor<8388608xf32>
After:   kernel.func @k(...) attributes {kernel.nontemporal = array<i64: 1>}

An ordinary store fetches the line that it is about to overwrite. That costs nothing where the
line is in a cache still from the call before, and makes what reads the result next quick; but a
launch that touches more than the last cache holds finds nothing there and leaves little.

Afterwards each kernel names such destinations, by their numbers among its arguments. A choice
that is written already is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, ModuleOp, TensorType, i64
from xdsl.ir import SSAValue

from stepwell.analysis.costs import operations
from stepwell.dialects import kernel
from stepwell.dialects.types import dtype
from stepwell.transforms.kernels.kernel_signature import launches_of
from stepwell.transforms.kernels.schedule.reasons import because, spell_bytes
from stepwell.transforms.passes import Pass, remark

PART = 16
"""A result that is less than such a part of what a launch touches is not worth asking for."""
MAX_OPS_PER_BYTE = 64
"""A kernel with more operations for each byte does not wait for memory."""
CHOICE = "kernel.nontemporal"


@dataclass(frozen=True)
class NontemporalStores(Pass):
    """Name the destinations of kernels that are written past the caches.

    Before:  kernel.func @k(%x: tensor<8388608xf32>, %y: tensor<8388608xf32>)
    After:   kernel.func @k(...) attributes {kernel.nontemporal = array<i64: 1>}

    l2 : bytes of each core's second cache; 0 for no such stores
    l3 : bytes of the last cache

    Afterwards kernels name the results that are only handed to the caller by launches that touch
    more than the last cache holds, and any result that is larger than it. Results whose size only
    the run tells are left out.
    """

    name = "nontemporal-stores"
    one_block = True

    l2: int = 1 << 20
    l3: int = 32 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose for each kernel, once all its launches are known."""
        if not self.l2:
            return
        launches = launches_of(op)
        for function in op.ops:
            if isinstance(function, kernel.FuncOp) and CHOICE not in function.attributes:
                self._choose(function, launches.get(function.sym_name.data, []))

    def _choose(self, function: kernel.FuncOp, launches: Sequence[kernel.LaunchOp]) -> None:
        sizes = [_bytes(a) for a in function.body.block.args]
        touched, count = sum(sizes), len(function.function_type.outputs.data)
        if touched <= self.l3 or not launches:
            return
        chosen = [
            k
            for k, size in enumerate(sizes)
            if (n := k - len(sizes) + count) >= 0
            and size * PART >= touched
            and (size > self.l3 or all(_is_only_returned(each.results[n]) for each in launches))
        ]
        if not chosen or operations(function) > MAX_OPS_PER_BYTE * touched:
            return
        function.attributes[CHOICE] = DenseArrayBase.from_list(i64, chosen)
        why = (
            f"{spell_bytes(sum(sizes[k] for k in chosen))} are written past the caches: a launch "
            f"touches {spell_bytes(touched)}, more than the {spell_bytes(self.l3)} of the last one"
        )
        because(function, lambda: why)
        remark(function, f"@{function.sym_name.data}: {why}")


def _bytes(value: SSAValue) -> int:
    """Return how large a tensor is; 0 where only the run knows, and for a number."""
    if not isinstance(value.type, TensorType) or DYNAMIC_INDEX in value.type.get_shape():
        return 0
    return prod(value.type.get_shape()) * dtype(value.type.element_type).bytes


def _is_only_returned(value: SSAValue) -> bool:
    """Whether a result, or what it is put into, is handed to the caller and read by nobody."""
    for use in value.uses:
        match use.operation:
            case func.ReturnOp() | tensor.DimOp():
                pass
            case (
                tensor.InsertSliceOp()
                | tensor.ExpandShapeOp()
                | tensor.CollapseShapeOp()
                | tensor.CastOp()
                | kernel.StackOp() as part
            ):
                if not _is_only_returned(part.results[0]):
                    return False
            case _:
                return False
    return True
