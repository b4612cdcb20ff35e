"""Lower a module's functions by batches of kernels, so that the first can be used early.

Functions that a stage generates beside the kernels, such as `@exp_f32x16`, are generated in every
batch that needs them, and kept once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from stepwell.dialects import kernel
from stepwell.dialects.types import fuse_locations

MOST = 32
"""The maximum number of kernels in a batch. The first batch has one, each further one twice as many
as the previous one. So the first part is compiled early, and functions that kernels share are
repeated in few batches."""


@dataclass
class KernelBatches:
    """The kernels of ``module``, to be taken out, lowered, gathered and at last put back."""

    module: ModuleOp
    lowered: list[Operation] = field(default_factory=list[Operation])
    helpers: dict[str, func.FuncOp] = field(default_factory=dict[str, func.FuncOp])
    """The functions that the stage has generated, by name."""
    known: dict[str, Operation] = field(default_factory=dict[str, Operation])
    """The symbols that the module had initially, by name."""

    def __iter__(self) -> Iterator[ModuleOp]:
        """Yield modules that each hold some of the kernels, and ``module`` with the rest.

        ``module`` comes last, as nothing waits for it, unless kernels call its functions.
        """
        for op in self.module.ops:
            if isinstance(name := op.properties.get("sym_name"), StringAttr):
                self.known[name.data] = op
        kernels = [op for op in self.module.ops if isinstance(op, kernel.FuncOp)]
        for op in kernels:
            op.detach()
        calls = any(isinstance(op, func.CallOp) for each in kernels for op in each.walk())
        if calls:
            yield self.module
        size = 1
        while kernels:
            some = ModuleOp(list[Operation](kernels[:size]))
            del kernels[:size]
            size = min(2 * size, MOST)
            yield some
            for op in list(some.ops):
                op.detach()
                self.lowered.append(op)
        if not calls:
            yield self.module

    def gather(self, some: ModuleOp) -> None:
        """Keep one copy of each function that batches generate; the rest stays in ``some``."""
        for op in list(some.ops):
            if not isinstance(op, func.FuncOp) or self.known.get(op.sym_name.data) is op:
                continue
            name = wanted = op.sym_name.data
            while not self._free(name, op):
                name += "_"
            if name != wanted:
                _rename(some, op, name)
            kept = self.helpers.setdefault(name, op)
            if kept is not op:
                kept.location = fuse_locations((kept.location, op.location))
                op.detach()
                op.erase()

    def put_back(self) -> None:
        """Put everything back into the module, kernels first."""
        block = self.module.body.block
        if block.first_op is None:
            block.add_ops(self.lowered)
        else:
            block.insert_ops_before(self.lowered, block.first_op)

    def _free(self, name: str, op: func.FuncOp) -> bool:
        """Whether ``op`` may have the name: it is unused, or used by an equal function."""
        if name in self.known:
            return False
        helper = self.helpers.get(name)
        return helper is None or helper.body.is_structurally_equivalent(op.body)


def _rename(module: ModuleOp, function: func.FuncOp, name: str) -> None:
    """Rename a function of ``module`` and its calls."""
    old = function.sym_name.data
    for op in module.walk():
        if isinstance(op, func.CallOp) and op.callee.string_value() == old:
            op.properties["callee"] = SymbolRefAttr(name)
    function.properties["sym_name"] = StringAttr(name)
