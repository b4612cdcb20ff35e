"""Dense constants become read-only globals of the module, one for each distinct value."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.traits import SymbolOpInterface

from stepwell.transforms.passes import fail


class Constants:
    """Makes a global for every dense constant; `finish` inserts them at the top of the module."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._globals: dict[DenseIntOrFPElementsAttr, memref.GlobalOp] = {}
        self._taken: set[str] = set()
        for op in module.ops:
            trait = op.get_trait(SymbolOpInterface)
            name = trait.get_sym_attr_name(op) if trait else None
            if name is not None:
                self._taken.add(name.data)

    def read(self, op: arith.ConstantOp) -> memref.GetGlobalOp:
        """Return the op that reads the global of a constant tensor."""
        value, type = op.value, op.result.type
        if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(type, TensorType):
            fail(op, f"bufferize has no buffer for a constant of type {type}")
        buffer = MemRefType(type.element_type, type.get_shape())
        if value not in self._globals:
            name = self.fresh(op.result.name_hint or "constant")
            made = memref.GlobalOp.get(StringAttr(name), buffer, value, constant=UnitAttr())
            made.location = op.location
            self._globals[value] = made
        return memref.GetGlobalOp(self._globals[value].sym_name.data, buffer)

    def elements(self, name: str) -> DenseIntOrFPElementsAttr:
        """Return the elements of the global named ``name``."""
        return next(v for v, op in self._globals.items() if op.sym_name.data == name)

    def fresh(self, name: str) -> str:
        """Return a symbol that the module does not have yet, ``name`` with a suffix if needed."""
        unique, number = name, 1
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return unique

    def finish(self) -> None:
        """Insert the globals at the top of the module."""
        if self._globals:
            block, first = self.module.body.block, self.module.body.block.first_op
            assert first is not None
            block.insert_ops_before(list(self._globals.values()), first)
