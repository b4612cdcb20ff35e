"""Assign offsets in one arena to buffers, so that no two with overlapping live ranges overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepwell.transforms.buffers.plan_memory.lifetimes import Lifetime

ALIGNMENT = 64


def aligned(bytes: int) -> int:
    """Return ``bytes`` rounded up to a whole number of cache lines.

    >>> aligned(0), aligned(1), aligned(64)
    (0, 64, 64)
    """
    return -(-bytes // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Reservation:
    """A buffer of known size."""

    life: Lifetime
    bytes: int


def lower_bound(blocks: Sequence[Reservation]) -> int:
    """Return the largest number of bytes that are live at one time."""
    steps: dict[int, int] = {}
    for block in blocks:
        steps[block.life.start] = steps.get(block.life.start, 0) + block.bytes
        steps[block.life.stop + 1] = steps.get(block.life.stop + 1, 0) - block.bytes
    now = most = 0
    for time in sorted(steps):
        now += steps[time]
        most = max(most, now)
    return most


_ORDERS: tuple[Callable[[Reservation], tuple[int, ...]], ...] = (
    lambda b: (-b.bytes, b.life.start),
    lambda b: (b.life.start, -b.bytes),
    lambda b: (-(b.life.stop - b.life.start), -b.bytes, b.life.start),
    lambda b: (-b.bytes * (b.life.stop - b.life.start + 1), b.life.start),
    lambda b: (-b.life.stop, -b.bytes),
)
"""The placement orders to try: no greedy order is the best for all inputs."""


def pack(blocks: Sequence[Reservation]) -> tuple[list[int], int]:
    """Return an offset for each block, and the size of the arena in bytes."""
    bound = lower_bound(blocks)
    best: tuple[list[int], int] | None = None
    for order in _ORDERS:
        offsets = _place(blocks, order)
        peak = max((o + b.bytes for o, b in zip(offsets, blocks, strict=True)), default=0)
        if best is None or peak < best[1]:
            best = offsets, peak
        if best[1] == bound:
            break
    assert best is not None
    return best


def _place(
    blocks: Sequence[Reservation], order: Callable[[Reservation], tuple[int, ...]]
) -> list[int]:
    """Place the blocks in order, each in the tightest gap among those with overlapping ranges."""
    offsets = [0] * len(blocks)
    placed: list[int] = []
    for number in sorted(range(len(blocks)), key=lambda n: order(blocks[n])):
        block = blocks[number]
        taken = sorted(
            (offsets[n], blocks[n].bytes) for n in placed if blocks[n].life.meets(block.life)
        )
        offsets[number] = _gap(taken, block.bytes)
        placed.append(number)
    return offsets


def _gap(taken: Sequence[tuple[int, int]], bytes: int) -> int:
    """Return the offset of the smallest gap that ``bytes`` fit in; the end if there is none."""
    end, best, room = 0, None, 0
    for offset, size in taken:
        if offset - end >= bytes and (best is None or offset - end < room):
            best, room = end, offset - end
        end = max(end, offset + size)
    return end if best is None else best
