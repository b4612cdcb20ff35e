"""The dominator tree of a region's blocks.

The algorithm is that of Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region


def dominators(region: Region) -> tuple[dict[Block, list[Block]], list[Block]]:
    """Return each block's children in the dominator tree, and the unreachable blocks."""
    blocks = list(region.blocks)
    order = _postorder(blocks[0])
    number = {block: k for k, block in enumerate(order)}
    above: dict[Block, Block] = {blocks[0]: blocks[0]}
    before: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for after in _successors(block):
            before[after].append(block)
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [b for b in before[block] if b in above]
            common = known[0]
            for other in known[1:]:
                common = _common_dominator(common, other, above, number)
            if above.get(block) is not common:
                above[block] = common
                changed = True
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for block in reversed(order[:-1]):
        children[above[block]].append(block)
    return children, [block for block in blocks if block not in number]


def _successors(block: Block) -> Sequence[Block]:
    """Return the successors of a block within its region."""
    after = block.last_op.successors if block.last_op is not None else ()
    return [each for each in after if each.parent is block.parent]


def _postorder(entry: Block) -> list[Block]:
    """Return the reachable blocks in postorder."""
    order: list[Block] = []
    seen = {entry}
    waiting = [(entry, iter(_successors(entry)))]
    while waiting:
        block, left = waiting[-1]
        for after in left:
            if after not in seen:
                seen.add(after)
                waiting.append((after, iter(_successors(after))))
                break
        else:
            order.append(block)
            waiting.pop()
    return order


def _common_dominator(
    one: Block, other: Block, above: dict[Block, Block], number: dict[Block, int]
) -> Block:
    """Return the closest common dominator."""
    while one is not other:
        while number[one] < number[other]:
            one = above[one]
        while number[other] < number[one]:
            other = above[other]
    return one
