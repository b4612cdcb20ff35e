"""Choose the destinations of kernels that are written with nontemporal stores.

Before:  kernel.func @k(%x: tensor<8388608xf32>, %y: tensor<8388608xf32>) -> tensor<8388608xf32>
         %r = kernel.launch @k ins(%x : ...) outs(%e : ...) -> tensor<8388608xf32>
         func.return %r : tensor<8388608xf32>
After:   kernel.func @k(...) attributes {kernel.nontemporal = array<i64: 1>}

An ordinary store fetches the line that it overwrites. That costs nothing where the cache still
holds the line from the last call, and the next reader finds the result in the cache; but a launch
that touches more than the last-level cache holds finds nothing there and leaves little.

Afterwards each kernel lists such destinations by argument number. An existing choice is kept.
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
from stepwell.transforms.kernels.schedule.reasons import explain_choice, spell_bytes
from stepwell.transforms.passes import Pass, remark

MIN_PART = 16
"""The smallest part of a launch's bytes, 1/16, for which nontemporal stores are chosen."""
MAX_OPS_PER_BYTE = 64
"""Operations per byte beyond which a kernel does not wait for memory."""
CHOICE = "kernel.nontemporal"


@dataclass(frozen=True)
class NontemporalStores(Pass):
    """Mark the destinations of kernels that are written with nontemporal stores.

    Before:  kernel.func @k(%x: tensor<8388608xf32>, %y: tensor<8388608xf32>)
    After:   kernel.func @k(...) attributes {kernel.nontemporal = array<i64: 1>}

    l2 : bytes of each core's L2 cache; 0 for no such stores
    l3 : bytes of the last-level cache

    Afterwards kernels list the results that launches only return to the caller, if a launch touches
    more than the last-level cache holds, and any result that is larger than it. Results whose size
    is known at run time only are left out.
    """

    name = "nontemporal-stores"
    one_block = True

    l2: int = 1 << 20
    l3: int = 32 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose for each kernel by all its launches."""
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
            and size * MIN_PART >= touched
            and (size > self.l3 or all(_is_only_returned(each.results[n]) for each in launches))
        ]
        if not chosen or operations(function) > MAX_OPS_PER_BYTE * touched:
            return
        function.attributes[CHOICE] = DenseArrayBase.from_list(i64, chosen)
        why = (
            f"{spell_bytes(sum(sizes[k] for k in chosen))} are written past the caches: a launch "
            f"touches {spell_bytes(touched)}, more than the {spell_bytes(self.l3)} of the last one"
        )
        explain_choice(function, lambda: why)
        remark(function, f"@{function.sym_name.data}: {why}")


def _bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor; 0 for an unknown size, and for a scalar."""
    if not isinstance(value.type, TensorType) or DYNAMIC_INDEX in value.type.get_shape():
        return 0
    return prod(value.type.get_shape()) * dtype(value.type.element_type).bytes


def _is_only_returned(value: SSAValue) -> bool:
    """Whether a result, or the tensor that it is inserted into, is only returned to the caller."""
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
