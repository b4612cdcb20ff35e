"""Walk over ops without recursion: xDSL's generators hand each op up through every level of it.

A walk is then as long as there are ops, however deeply they are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from xdsl.ir import Block, Operation, Region


def _inside(op: Operation) -> Iterator[Operation]:
    return (each for region in op.regions for block in region.blocks for each in block.ops)


def _of_blocks(region: Region) -> Iterator[Operation]:
    return (each for block in region.blocks for each in block.ops)


def _walk(root: Operation | Region | Block) -> Iterator[Operation]:
    """Yield every op of ``root``, each before what it contains."""
    stack: list[Iterator[Operation]]
    match root:
        case Operation():
            yield root
            stack = [_inside(root)]
        case Region():
            stack = [_of_blocks(root)]
        case Block():
            stack = [iter(root.ops)]
    while stack:
        for op in stack[-1]:
            yield op
            if op.regions:
                stack.append(_inside(op))
                break
        else:
            stack.pop()


def _patched(kind: Any) -> None:
    walk = kind.walk

    def replacement(
        self: Any, *, reverse: bool = False, region_first: bool = False
    ) -> Iterable[Operation]:
        """Iterate all operations contained, in the order that is asked for."""
        if reverse or region_first:
            return walk(self, reverse=reverse, region_first=region_first)
        return _walk(self)

    kind.walk = replacement


for each in (Operation, Region, Block):
    _patched(each)
