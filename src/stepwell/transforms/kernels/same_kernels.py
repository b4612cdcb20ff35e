"""Finding kernels that are the same but for names and locations."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.types import fuse_locations


@dataclass
class Shared:
    """The kernels of a module so far, by what they do; `unite` when there are no more."""

    kernels: dict[Hashable, kernel.FuncOp] = field(default_factory=dict[Hashable, kernel.FuncOp])
    names: dict[str, int] = field(default_factory=dict[str, int])
    more: dict[Operation, list[LocationAttr]] = field(
        default_factory=dict[Operation, list[LocationAttr]]
    )
    """Where else ops of kernels came from."""

    def add(self, function: kernel.FuncOp, name: str) -> tuple[kernel.FuncOp, bool]:
        """Return the kernel that does what ``function`` does, and whether it is new.

        A known one takes on the locations of ``function``; a new one gets a name of its own.
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
        """Give the kernels the locations of all that they stand for."""
        for op, more in self.more.items():
            op.location = fuse_locations((op.location, *more))
        self.more.clear()


def structure(function: kernel.FuncOp) -> Hashable:
    """Return what ``function`` does, equal for two kernels exactly if they do the same."""
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
