"""Walks without recursion: in the order xDSL has, of any depth, while ops go."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import test as stub
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from stepwell.dialects import upstream

assert upstream, "imported for its walks"


def nest(depth: int) -> stub.TestOp:
    """Return an op with two regions, the first of two blocks, each with ops as deep."""
    if depth == 0:
        return stub.TestOp()
    blocks = [Block([nest(depth - 1), stub.TestOp()]), Block([nest(depth - 1)])]
    return stub.TestOp(regions=[Region(blocks), Region(Block([stub.TestOp()]))])


def recursive(op: Operation) -> Iterator[Operation]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inside in block.ops:
                yield from recursive(inside)


def test_the_order_is_that_of_the_text() -> None:
    op = nest(4)
    assert list(op.walk()) == list(recursive(op))
    region = op.regions[0]
    blocks = [list(block.walk()) for block in region.blocks]
    assert list(region.walk()) == [*blocks[0], *blocks[1]]
    assert [op, *region.walk(), *op.regions[1].walk()] == list(op.walk())
    assert list(op.walk(reverse=True, region_first=True)) == list(op.walk())[::-1]


def test_what_is_deep_is_walked() -> None:
    op = stub.TestOp()
    for _ in range(5_000):
        op = stub.TestOp(regions=[Region(Block([op]))])
    assert sum(1 for _ in op.walk()) == 5_001


def test_the_op_at_hand_may_go() -> None:
    module = ModuleOp([nest(2), stub.TestOp(), nest(2)])
    seen = 0
    for op in module.walk():
        seen += 1
        if isinstance(op, stub.TestOp) and not op.regions:
            op.detach()
    assert seen == 1 + 2 * sum(1 for _ in nest(2).walk()) + 1
