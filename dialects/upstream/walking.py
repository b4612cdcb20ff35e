"""Walk over ops without recursion: xDSL's generators hand each op up through every level of it.

A walk is then as long as there are ops, however deeply they are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xdsl.ir import Block, Operation, Region


def _walk(root: Operation | Region | Block) -> Iterator[Operation]:
    """Yield every op of ``root``, each before what it contains."""
    waiting: list[Operation | Block | None] = []
    match root:
        case Operation():
            yield root
            _enter(waiting, root.regions)
        case Region():
            _enter(waiting, (root,))
        case Block():
            waiting.append(root)
    while waiting:
        at = waiting.pop()
        op = at.first_op if isinstance(at, Block) else at
        while op is not None:
            following = op.next_op  # known before the op at hand may go
            yield op
            if op.regions:
                waiting.append(following)
                _enter(waiting, op.regions)
                break
            op = following


def _enter(waiting: list[Operation | Block | None], regions: Sequence[Region]) -> None:
    """Put the blocks of ``regions`` on the stack, the first on top."""
    for region in reversed(regions):
        first = region.first_block
        if first is None or first.next_block is None:
            waiting.append(first)
        else:
            waiting.extend(reversed([*region.blocks]))


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
