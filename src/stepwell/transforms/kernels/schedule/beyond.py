"""What lies beyond the second cache: how fast it comes, and whether it stays from call to call."""

from __future__ import annotations

from xdsl.ir import Operation

from stepwell.transforms.kernels.schedule.reasons import because
from stepwell.transforms.kernels.schedule.vectors import Vectors

STAYS = 3, 4
"""An operand of more than three in four bytes of the last cache does not stay in it: what else a
call touches is there too."""
SECONDS = 24
"""No operand of fewer second caches is taken for one that comes from memory: that is what three in
four bytes of Zen 4's last cache are; where the last cache is slow, nobody has measured better."""
NEXT = "what is read next is asked for before, for it comes from memory"

PAGES = 2 << 12
"""Rows of at most so many bytes end before a processor reads much of them ahead: it stops at the
end of a page. Asked for, 768 columns come from memory at 22 GB/s, else at 16 (f32) and 11 (bf16);
from the caches they take up to a tenth longer (Zen 4)."""
SHORT_ROWS = "what is read next is asked for before: a row is two pages at most, and ends too soon"


def reads_in_place(l2: int) -> int:
    """Return how many bytes of an operand are found quickly enough on the pages they lie on."""
    return l2 // 4


def is_near(op: Operation, rows: int, bytes: int, machine: Vectors) -> bool:
    """Whether what lies beyond the second cache comes as fast as a tile consumes it.

    Then its first tile may pack while it computes, and loads ahead hide what is left. Where it
    comes slower, tiles wait for both: on Sapphire Rapids, which gives 7 bytes in a cycle where a
    tile takes 21, large products gain 13 to 25 % without them; on Zen 4, which gives 25 where a
    tile takes 11, they lose.

    bytes : of a vector
    """
    taken = machine.consumes(rows, bytes)
    if taken <= machine.far_bytes:
        return True
    said = f"{machine.far_bytes} bytes come in a cycle where a tile takes {taken:.0f}"
    because(op, lambda: f"nothing is packed while a tile computes, nor asked for before: {said}")
    return False


def stays(machine: Vectors, l2: int) -> int:
    """Return fewer than how many bytes are in a cache still when a call reads them again."""
    part, of = STAYS
    return max(machine.last_cache * part // of, SECONDS * l2)


def ends_soon(op: Operation, row: int, bytes: int, l2: int) -> bool:
    """Whether rows of ``row`` bytes, of an operand no cache of a core holds, are short ones."""
    if row > PAGES or bytes < l2 // 2:
        return False
    because(op, lambda: SHORT_ROWS)
    return True


def is_beyond(op: Operation, bytes: int, machine: Vectors, l2: int) -> bool:
    """Whether so many bytes come from memory, not from the last cache, in every call."""
    if bytes < stays(machine, l2):
        return False
    because(op, lambda: NEXT)
    return True
