"""Intervals, and the members of a buffer, are found as by comparing each with each."""

from __future__ import annotations

from random import Random

from xdsl.dialects import test
from xdsl.dialects.builtin import f32

from stepwell.analysis.sizes import Size
from stepwell.core.intervals import Intervals
from stepwell.lowering.bufferize.assignment import Member
from stepwell.lowering.bufferize.intervals import Variable
from stepwell.lowering.bufferize.member_index import MemberIndex
from stepwell.lowering.bufferize.views import Slice, part

VALUE = test.TestOp(result_types=[f32]).results[0]


def test_overlapping_intervals() -> None:
    random, intervals = Random(0), Intervals[int]()
    rows: list[tuple[int, int]] = []
    for number in range(200):
        begin = random.randrange(300)
        rows.append((begin, begin + random.choice((-1, 0, 3, 80))))
        intervals.add(*rows[-1], number)
        first, last = sorted(random.randrange(300) for _ in range(2))
        wanted = [n for n, (a, b) in enumerate(rows) if a <= last and b >= first]
        assert sorted(intervals.overlapping(first, last)) == wanted


def member(start: int, stop: int, *ends: tuple[int, int]) -> Member:
    box = Slice.between([(Size.of(a), Size.of(b)) for a, b in ends])
    return Member(Variable(VALUE, start, stop), (box,) if ends else ())


def test_members_near() -> None:
    """A buffer's members that are live with a tensor and overlap with it, the latest first."""
    random, members, index = Random(1), list[Member](), MemberIndex()
    for _ in range(120):
        a, b, start = (random.randrange(30) for _ in range(3))
        ends = random.choice(((), ((a, a + 3), (0, 40)), ((0, 9), (b, b + 1))))
        new = member(start, start + random.randrange(4), *ends)
        if len(members) % 3 == 0 or ends:
            index.members = list(members)
            found = list(index.near(new.variable, part(new.steps)))
            live = [
                m
                for m in members
                if m.variable.start <= new.variable.stop and m.variable.stop >= new.variable.start
            ]
            live.sort(key=lambda m: m.variable.start)
            assert found == [m for m in reversed(live) if m in found]
            assert all(m in found or apart(m, new) for m in live)
        members.append(new)


def apart(a: Member, b: Member) -> bool:
    """Whether the boxes of two members are apart along some axis."""
    (one,), (other,) = a.steps or (None,), b.steps or (None,)
    assert isinstance(one, Slice) and isinstance(other, Slice)
    both = zip(one.offsets, one.reach, other.offsets, other.reach, strict=True)
    ends = ([int(n.number or 0) for n in axis] for axis in both)
    return any(a >= d or c >= b for a, b, c, d in ends)


def test_parts_beside_each_other_are_left_out() -> None:
    """The last of a thousand columns, all live at once, is compared with its neighbours alone."""
    columns = [member(0, 9, (0, 64), (n, n + 1)) for n in range(1000)]
    new = member(0, 9, (0, 64), (999, 1001))
    found = list(MemberIndex(columns).near(new.variable, part(new.steps)))
    assert found == columns[-1:]
