"""Walk over ops iteratively: xDSL's nested generators pass each op up through all levels.

The cost of a walk is then linear in the number of ops, however deeply they are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xdsl.ir import Block, Operation, Region


def _walk(root: Operation | Region | Block) -> Iterator[Operation]:
    """Yield every op of ``root``, each before the ops in its regions."""
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
            following = op.next_op  # read before the current op may be erased
            yield op
            if op.regions:
                waiting.append(following)
                _enter(waiting, op.regions)
                break
            op = following


def _enter(waiting: list[Operation | Block | None], regions: Sequence[Region]) -> None:
    """Push the blocks of ``regions`` on the stack, the first on top."""
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
        """Iterate over all contained ops, in the requested order."""
        if reverse or region_first:
            return walk(self, reverse=reverse, region_first=region_first)
        return _walk(self)

    kind.walk = replacement


for each in (Operation, Region, Block):
    _patched(each)
