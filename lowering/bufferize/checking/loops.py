"""The contents of buffers in and after a loop: a fixpoint of the state at the loop's head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from stepwell.lowering.bufferize.checking.contents import Contents, Gaps, Key, Named, Region
from stepwell.lowering.bufferize.checking.memory import Memory
from stepwell.lowering.bufferize.exchanges import cycle, trip_count
from stepwell.lowering.bufferize.halos import complement
from stepwell.lowering.bufferize.views import Slice, Steps

ROUNDS = 8
"""Limit on the traversals of a loop before the check fails, as there is no fixpoint."""
GUESSES = 2
"""The number of first traversals after which the state of the back edge is assumed at the head."""

Fault = tuple[Operation, str]


def is_array(value: SSAValue) -> bool:
    """Whether ``value`` is a tensor or buffer."""
    return isinstance(value.type, TensorType | MemRefType)


def arrays(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return those of ``values`` that are tensors or buffers."""
    return [v for v in values if is_array(v)]


@dataclass
class Walked:
    """The outcome of one traversal of a loop's body, with values on tensors and on buffers."""

    state: Contents
    """The state at the end of the body."""
    ends: Sequence[SSAValue]
    end_buffers: Sequence[SSAValue]
    left: Contents
    """The state where the loop exits."""
    results: Sequence[SSAValue]
    """The values that become the loop's results there."""
    result_buffers: Sequence[SSAValue]


@dataclass
class Loop:
    """One loop, ``op`` on tensors and ``new`` on buffers, with the values that each carries."""

    op: Operation
    new: Operation
    memory: Memory
    faults: list[Fault]
    inits: Sequence[SSAValue]
    slots: Sequence[SSAValue]
    given: Sequence[Region]
    arguments: Sequence[SSAValue]

    def walk(self, entry: Contents, walk: Callable[[Contents], Walked]) -> Contents:
        """Traverse the loop to a fixpoint of the state at its head; return the state after it."""
        blank, is_blank = entry.tensors.blank, entry.tensors.is_blank
        following = self._following()
        for number, argument in enumerate(self.arguments):
            among = [self.given[n] for n in cycle(following, number)] if following else self.given
            self.memory.choose(self.new, argument, among)
        self._move(entry, self.given, [(a, ()) for a in self.arguments])
        entry.add(entry.named(self.inits, self.slots))
        for init, slot in zip(self.inits, self.slots, strict=True):
            (blank.add if is_blank(init) else blank.discard)(slot)
        known = entry
        for count in range(ROUNDS):
            head, found = known, len(self.faults)
            walked = walk(head.copy())
            back = self._back(walked)
            known = head.meet(back)
            if count < GUESSES and (more := self._at_entry(entry, back, head)):
                known = head.copy()
                known.add(more)
            rows = zip(self.slots, walked.ends, strict=True)
            filled = [slot for slot, end in rows if slot in blank and not is_blank(end)]
            if not filled and known.same(head):
                return self._leave(walked)
            blank.difference_update(filled)
            del self.faults[found:]
        self.faults.append((self.new, "what the buffers of a loop hold is not found out"))
        return entry

    def _following(self) -> list[int]:
        """Return the permutation of the buffer arguments per iteration, empty if there is none."""
        block = self.new.regions[-1].block
        names, last = arrays(block.args), block.last_op
        ends = arrays(last.operands) if last is not None else []
        if isinstance(self.new, scf.WhileOp):
            test = self.new.before_region.block
            if test.last_op is None or arrays(test.last_op.operands) != arrays(test.args):
                return []
        found = [names.index(end) for end in ends if end in names]
        whole = sorted(found) == list(range(len(self.arguments)))
        return found if whole and len(names) == len(found) else []

    def _back(self, walked: Walked) -> Contents:
        """Return the state of the back edge, under the names of the next iteration."""
        state = walked.state
        regions = [self.memory.region(v) for v in walked.end_buffers]
        rows = state.named(walked.ends, self.slots)
        self._drop_local(state)
        state.add(rows)
        ours = [*self.given, *((a, ()) for a in self.arguments)]
        for n, region in enumerate(regions):
            others = any(self.memory.overlap(region, other) for other in regions[:n])
            if others or not self.memory.within(region, ours):
                self.faults.append((self.new, "a loop goes on with other buffers"))
        self._move(state, regions, [(a, ()) for a in self.arguments])
        return state

    def _at_entry(self, entry: Contents, back: Contents, head: Contents) -> list[Named]:
        """Return contents for slots in ``back`` but not in ``head`` that also hold at entry."""
        inits: dict[Key, SSAValue] = dict(zip(self.slots, self.inits, strict=True))
        found: list[Named] = []
        for buffer, (path, key, view), gaps in back:
            if key not in inits or (path, key, view) in head.held.get(buffer, {}):
                continue
            first = _first(entry, (buffer, path), inits[key], gaps)
            if first is not None and path not in first:
                both = tuple(dict.fromkeys((*gaps, *first)))
                found.append(((buffer, path), key, both))
        return found

    def _leave(self, walked: Walked) -> Contents:
        state = walked.left
        regions = [self.memory.region(v) for v in walked.result_buffers]
        results, tensors = arrays(self.op.results), state.tensors
        rows = state.named(walked.results, results)
        for value, result in zip(walked.results, results, strict=True):
            (tensors.blank.add if tensors.is_blank(value) else tensors.blank.discard)(result)
        self._drop_local(state)
        state.add(rows)
        into: list[Region] = []
        ends = [self.memory.region(v) for v in walked.end_buffers]
        for result, region in zip(arrays(self.new.results), regions, strict=True):
            last = self._last(ends, region)
            if len(last) == 1:
                self.memory.bind(result, last[0])
            else:
                self.memory.choose(self.new, result, last)
            into.append(self.memory.region(result))
        self._move(state, regions, into)
        return state

    def _last(self, ends: Sequence[Region], region: Region) -> Sequence[Region]:
        """Return the buffers before the loop that ``region`` may be after it."""
        arguments: list[Region] = [(a, ()) for a in self.arguments]
        if region not in arguments or not all(end in arguments for end in ends):
            return self.given
        numbers = cycle([arguments.index(end) for end in ends], arguments.index(region))
        turns = trip_count(self.memory.sizes, self.op)
        return [
            self.given[n] for n in (numbers if turns is None else [numbers[turns % len(numbers)]])
        ]

    def _move(self, state: Contents, regions: Sequence[Region], into: Sequence[Region]) -> None:
        """Move the contents of ``regions`` to ``into``, and drop those of the loop's arguments."""
        moved = [state.seen(region) for region in regions]
        for argument in self.arguments:
            state.held.pop(argument, None)
        for region, rows in zip(into, moved, strict=True):
            state.put(region, rows)

    def _drop_local(self, state: Contents) -> None:
        """Drop contents that refer to values of this iteration, or to buffers local to it."""
        for buffer, held, gaps in list(state):
            path, key, view = held
            own = buffer not in self.arguments and self._is_inside(buffer)
            if own or self._is_inside(key) or self._uses_local_sizes((path, view, *gaps)):
                del state.held[buffer][held]

    def _is_inside(self, value: Key) -> bool:
        if isinstance(value, tuple):  # an element of a tensor
            value = value[0]
        if not isinstance(value, SSAValue):
            return False
        loops = self.op, self.new
        return value.owner not in loops and any(op.is_ancestor(value.owner) for op in loops)

    def _uses_local_sizes(self, views: Sequence[Steps]) -> bool:
        slices = [step for view in views for step in view if isinstance(step, Slice)]
        sizes = (n for s in slices for n in (*s.offsets, *s.sizes, *s.strides))
        unknown = self.memory.sizes.unknowns
        return any(self._is_inside(v) for n in sizes if n.number is None for v in unknown(n))


def _first(entry: Contents, region: Region, init: SSAValue, gaps: Gaps) -> Gaps | None:
    """Return the gaps of a region in ``init``, or ``gaps`` if it holds all but their single box."""
    found = entry.gaps(region, init)
    (buffer, path), box = region, gaps[0][-1] if gaps else None
    if found is not None and path not in found:
        return found
    if len(gaps) != 1 or gaps[0][:-1] != path or not isinstance(box, Slice):
        return None
    shape = entry.tensors.sizes.shape(init)
    if len(box.kept) != len(shape) or not box.is_dense:
        return None
    rest = complement([box], shape)
    each = (entry.gaps((buffer, (*path, box)), init, (box,)) == () for box in rest)
    return gaps if all(each) else None
