"""Rewrite tensors as buffers: kernels write into destinations that the host provides.

Before:  %e = tensor.empty() : tensor<4xf32>
         %y = kernel.launch @k ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
         func.return %y : tensor<4xf32>
After:   func.func @main(%x: memref<4xf32> {kernel.role = "input"},
                         %y: memref<4xf32> {kernel.role = "output"}) {
           kernel.launch @k ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
           func.return

Afterwards no tensor is left. Inputs and constants are never written; results are written into the
caller's outputs; every temporary of the host is a `memref.alloc` at the start of the innermost
block around its uses. Each copy that remains is a `memref.copy` with a remark that says why.
`@main.shapes` computes the `?` of the results. `kernel.in_place` on a kernel lists the inputs that
a destination may alias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.chains import linearize
from stepwell.lowering.bufferize.checking import Assumptions, check_buffers
from stepwell.lowering.bufferize.constants import Constants
from stepwell.lowering.bufferize.fills import fill_early
from stepwell.lowering.bufferize.host import host_on_buffers
from stepwell.lowering.bufferize.kernel_summary import KernelSummary, summarize
from stepwell.lowering.bufferize.kernels import kernel_on_buffers
from stepwell.lowering.bufferize.returns import copy_old_values, wanted_in_place
from stepwell.lowering.bufferize.views import Steps, buffer_of
from stepwell.transforms.passes import Pass, fail
from stepwell.transforms.verifying import checks_buffers


@dataclass(frozen=True)
class Bufferize(Pass):
    """Rewrite kernels and host functions from tensors to buffers.

    Before:  %y = kernel.launch @k ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> ...
    After:   kernel.launch @k ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)

    Afterwards no tensor is left, and copies remain only where a remark says why.
    """

    name = "bufferize"
    one_block = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                copy_old_values(function)
        constants = Constants(op)
        kernels = Kernels(op, constants)
        for function in list(op.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                _function(function, kernels, constants)
        kernels.finish()
        constants.finish()


def _function(function: func.FuncOp, kernels: Kernels, constants: Constants) -> None:
    types = (*function.function_type.inputs.data, *function.function_type.outputs.data)
    if not any(isinstance(t, TensorType) for t in types):
        return
    for op in reversed(list(function.body.block.ops)):
        if op.name.startswith("linalg.") and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
    fill_early(function.body.block)
    block = function.parent_block()
    assert block is not None
    new = host_on_buffers(function, kernels.summary, kernels.variant, constants)
    if checks_buffers():
        check_buffers(
            function, new[0], Assumptions(kernels.called, kernels.named, constants.elements)
        )
    block.insert_ops_after(new, function)
    function.detach()
    function.erase()


class Kernels:
    """The kernels of a module on tensors, and their variants on buffers by argument types."""

    def __init__(self, module: ModuleOp, constants: Constants) -> None:
        self.constants = constants
        self._old = {
            op.sym_name.data: op
            for op in module.ops
            if isinstance(op, kernel.FuncOp) and _is_on_tensors(op)
        }
        self._wanted = wanted_in_place(module)
        self._summaries: dict[str, KernelSummary] = {}
        self._new: dict[str, dict[tuple[Attribute, ...], kernel.FuncOp]] = {
            name: {} for name in self._old
        }

    def summary(self, launch: kernel.LaunchOp) -> KernelSummary:
        """Return the summary of the kernel that ``launch`` runs."""
        return self._summary_of(launch.callee.root_reference.data, launch)

    def _summary_of(self, name: str, launch: kernel.LaunchOp | None = None) -> KernelSummary:
        if (known := self._summaries.get(name)) is None:
            function = self._old.get(name)
            if function is None:
                assert launch is not None
                fail(launch, f"no kernel @{name} on tensors in the module")
            linearize(function)
            known = self._summaries[name] = summarize(function, self._wanted.get(name, ()))
        return known

    def called(self, name: str) -> KernelSummary:
        """Return the summary of the kernel named ``name``, on tensors or on buffers."""
        for old, variants in self._new.items():
            if name == old or any(name == v.sym_name.data for v in variants.values()):
                return self._summaries[old]
        raise LookupError(f"no kernel @{name} was rewritten")

    def named(self, name: str) -> kernel.FuncOp:
        """Return the kernel on buffers named ``name``."""
        for variants in self._new.values():
            for each in variants.values():
                if each.sym_name.data == name:
                    return each
        raise LookupError(f"no kernel @{name} was made")

    def variant(
        self, launch: kernel.LaunchOp, types: Sequence[Attribute], rows: Sequence[Steps]
    ) -> str:
        """Return the name of the variant of the launched kernel for arguments of ``types``.

        rows : the view of each result, if all results are rows of one destination
        """
        return self._variant(self.summary(launch), types, rows)

    def _variant(
        self, summary: KernelSummary, types: Sequence[Attribute], rows: Sequence[Steps] = ()
    ) -> str:
        old = summary.function.sym_name.data
        made = self._new[old]
        if (known := made.get(key := tuple(types))) is None:
            name = old if key == _plain(summary) else self.constants.fresh(f"{old}_view")
            known = made[key] = kernel_on_buffers(summary, name, types, self.constants, rows)
        return known.sym_name.data

    def finish(self) -> None:
        """Replace the kernels on tensors by their variants on buffers."""
        for name, old in self._old.items():
            if not self._new[name]:
                summary = self._summary_of(name)
                self._variant(summary, _plain(summary))
            block = old.parent_block()
            assert block is not None
            block.insert_ops_before(list(self._new[name].values()), old)
            old.detach()
            old.erase()


def _is_on_tensors(function: kernel.FuncOp) -> bool:
    """Whether a kernel has no buffers; one that only checks numbers may have no tensors either."""
    made = (result.type for op in function.walk() for result in op.results)
    return not any(isinstance(t, MemRefType) for t in (*function.function_type.inputs, *made))


def _plain(summary: KernelSummary) -> tuple[Attribute, ...]:
    """Return the types of contiguous arguments, extra destinations included."""
    arguments = [
        buffer_of(a.type) if isinstance(a.type, TensorType) else a.type
        for a in summary.function.body.block.args
    ]
    return (*arguments, *(buffer_of(c.type) for c in summary.extras))
