"""Merge kernels that differ in names and locations only."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.types import fuse_locations


@dataclass
class Shared:
    """The distinct kernels of a module so far, by structure; call `unite` after the last."""

    kernels: dict[Hashable, kernel.FuncOp] = field(default_factory=dict[Hashable, kernel.FuncOp])
    names: dict[str, int] = field(default_factory=dict[str, int])
    more: dict[Operation, list[LocationAttr]] = field(
        default_factory=dict[Operation, list[LocationAttr]]
    )
    """The locations of other kernels' ops that were merged into these."""

    def add(self, function: kernel.FuncOp, name: str) -> tuple[kernel.FuncOp, bool]:
        """Return the kernel with the same structure as ``function``, and whether it is new.

        A known one gets the locations of ``function`` too; a new one gets a unique name.
        """
        known = self.kernels.setdefault(structure(function), function)
        if known is not function:
            for old, new in zip(known.walk(), function.walk(), strict=True):
                if old.location != new.location:
                    self.more.setdefault(old, []).append(new.location)
            return known, False
        number = self.names.get(name, 0)
        self.names[name] = number + 1
        function.set_name(f"{name}_{number}" if number else name)
        return function, True

    def unite(self) -> None:
        """Fuse the locations of merged kernels."""
        for op, more in self.more.items():
            op.location = fuse_locations((op.location, *more))
        self.more.clear()


def structure(function: kernel.FuncOp) -> Hashable:
    """Return the structure of ``function``; equal structures compute the same."""
    numbers: dict[SSAValue, int] = {}
    return (
        function.function_type,
        frozenset(function.attributes.items()),
        _block(function.body.block, numbers),
    )


def _block(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    for argument in block.args:
        numbers[argument] = len(numbers)
    return (tuple(block.arg_types), tuple(_operation(op, numbers) for op in block.ops))


def _operation(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    operands = tuple(numbers[v] for v in op.operands)
    for result in op.results:
        numbers[result] = len(numbers)
    return (
        op.name,
        operands,
        tuple(op.result_types),
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()),
        tuple(_block(block, numbers) for region in op.regions for block in region.blocks),
    )
