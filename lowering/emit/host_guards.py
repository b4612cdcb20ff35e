"""Guards in the host schedule of an OpenCL program: trees that the schedule's runner evaluates.

{"do": "require", "holds": ["u<", "i1", "d0"], "number": 1048576, "values": ["i1", "d0"]}

The words and numbers are those of `guards.py`; nothing overflows here, as trees use unbounded
integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from stepwell.core.guards import FARTHEST, LONGEST_AXIS, no_place
from stepwell.core.host_schedule import Step, Tree
from stepwell.dialects import kernel
from stepwell.dialects.types import called
from stepwell.lowering.emit.arguments import Entry
from stepwell.lowering.emit.guard_numbers import Guards
from stepwell.lowering.emit.places import Place, add, count, multiply
from stepwell.lowering.emit.unit import Unit


class Host(Protocol):
    """The interface of the class that walks a public function."""

    steps: list[Step]
    places: dict[SSAValue, Place]
    trees: dict[SSAValue, Tree]

    @property
    def unit(self) -> Unit:
        """The unit being written."""
        ...

    @property
    def guards(self) -> Guards | None:
        """The guards of the program."""


def require(h: Host, op: Operation, holds: Tree, words: tuple[str, ...], *values: Tree) -> None:
    """Append a step that ends the call unless ``holds``."""
    if h.guards is not None and holds is not True:
        number = h.guards.number(op, words)
        step = {"do": "require", "holds": holds, "number": number, "values": list(values)}
        h.steps.append(step)


def every(*conditions: Tree) -> Tree:
    """Return the conjunction of conditions, without those that are known to hold."""
    result: Tree = True
    for each in conditions:
        if each is not True:
            result = each if result is True else ["&", result, each]
    return result


def at_most(a: Tree, b: Tree) -> Tree:
    """Return the tree of ``a <= b``, folded if possible."""
    return a <= b if isinstance(a, int) and isinstance(b, int) else ["<=", a, b]


def equal(a: Tree, b: Tree) -> Tree:
    """Return the tree of ``a == b``, folded if possible."""
    if a == b:
        return True
    return False if isinstance(a, int) and isinstance(b, int) else ["==", a, b]


def check_element(h: Host, op: Any, place: Place, indices: Sequence[Tree]) -> None:
    """Require that the indices of an element are in bounds."""
    for axis, (index, size) in enumerate(zip(indices, place.sizes, strict=True)):
        holds = every(at_most(0, index), at_most(add(index, 1), size))
        require(h, op, holds, no_place(op.name, called(op.memref), axis), index, size)


def check_part(
    h: Host,
    op: Any,
    source: Place,
    offsets: Sequence[Tree],
    sizes: Sequence[Tree],
    steps: Sequence[Tree],
) -> None:
    """Require that a slice is in bounds along each axis."""
    parts = zip(offsets, sizes, steps, source.sizes, strict=True)
    for axis, (o, s, t, n) in enumerate(parts):
        last = add(o, multiply(add(s, -1), t))
        inside = every(
            *(at_most(add(o, 1), n), at_most(0, last), at_most(add(last, 1), n)),
            *(() if isinstance(t, int) and t else (["|", ["!=", t, 0], ["<", s, 2]],)),
        )
        if s == 0:
            inside = True
        elif not isinstance(s, int) and inside is not True:
            inside = ["|", ["==", s, 0], inside]
        holds = every(at_most(0, o), at_most(0, s), at_most(o, n), inside)
        words = f"{op.name}: the part from ", f" on is not within axis {axis} of "
        require(h, op, holds, (words[0], f"{words[1]}{called(op.source)}, of size ", ""), o, n)


def check_sizes(h: Host, op: Operation, sizes: Sequence[Tree]) -> None:
    """Require that a buffer may have these sizes."""
    for size in sizes:
        holds = every(at_most(0, size), at_most(size, LONGEST_AXIS))
        require(h, op, holds, (f"{op.name}: a size of ", " is not one a buffer has"), size)


def check_bytes(h: Host, op: Any, source: Place, shift: Tree, view: Place) -> None:
    """Require that a view of a byte buffer is in bounds, and aligned for its elements."""
    check_sizes(h, op, view.sizes)
    bytes, room = multiply(count(view.sizes), view.bytes), source.sizes[0]
    words = (
        f"{op.name}: bytes from ",
        f" on do not all lie within {called(op.source)}, of size ",
        "",
    )
    require(h, op, every(at_most(0, shift), at_most(add(shift, bytes), room)), words, shift, room)
    if view.bytes > 1:
        words = f"{op.name}: byte ", f" is no place for elements of {view.bytes} bytes"
        place = view.skip
        known = isinstance(place, int)
        holds = place % view.bytes == 0 if known else ["==", ["%", place, view.bytes], 0]
        require(h, op, holds, words, shift)


def check_reinterpreted(
    h: Host, op: Any, source: Place, start: Tree, sizes: Sequence[Tree], strides: Sequence[Tree]
) -> None:
    """Require that all elements of a view are elements of its source."""
    if h.guards is None:
        return
    check_sizes(h, op, sizes)
    room, within = _reach(source.sizes, source.strides), _reach(sizes, strides)
    empty = every(at_most(0, start), at_most(start, add(room[1], 1)))
    inside = every(
        *(at_most(room[0], add(start, within[0])), at_most(add(start, within[1]), room[1])),
        at_most(1, count(source.sizes)),
    )
    holds = ["select", ["==", count(sizes), 0], empty, inside]
    words = f"{op.name}: elements from ", f" on do not all lie within {called(op.source)}"
    require(h, op, holds, words, start)


def _reach(sizes: Sequence[Tree], strides: Sequence[Tree]) -> tuple[Tree, Tree]:
    low: Tree = 0
    high: Tree = 0
    for size, stride in zip(sizes, strides, strict=True):
        span = multiply(add(size, -1), stride)
        if isinstance(span, int):
            low, high = add(low, min(span, 0)), add(high, max(span, 0))
        else:
            low, high = add(low, ["min", span, 0]), add(high, ["max", span, 0])
    return low, high


def check_expanded(h: Host, op: Any, source: Place, sizes: Sequence[Tree]) -> None:
    """Require that the axes expanded from one have as many elements."""
    check_sizes(h, op, sizes)
    for axis, group in enumerate(op.reassociation.data):
        elements = count(sizes[k.value.data] for k in group.data)
        words = f"{op.name}: axis {axis} of {called(op.src)} has size ", ", not ", ""
        have = source.sizes[axis]
        require(h, op, equal(have, elements), words, have, elements)


def check_collapsed(h: Host, op: Any, source: Place) -> None:
    """Require that axes to be collapsed are contiguous."""
    assert isinstance(op.result.type, MemRefType)
    for axis, group in enumerate(op.reassociation.data):
        axes = [k.value.data for k in group.data if source.sizes[k.value.data] != 1]
        for a, b in pairwise(axes):
            step = multiply(source.sizes[b], source.strides[b])
            follows = equal(source.strides[a], step)
            if follows is not True:
                words = f"{op.name}: axis {a} of {called(op.src)} has stride ", ", not ", ""
                holds = ["|", ["<=", source.sizes[a], 1], follows]
                require(h, op, holds, words, source.strides[a], step)
        wanted, elements = (
            op.result.type.get_shape()[axis],
            count(source.sizes[k.value.data] for k in group.data),
        )
        if wanted >= 0:
            words = f"{op.name}: axis {axis} would have size ", ", not ", ""
            require(h, op, equal(elements, wanted), words, elements, wanted)


def check_cast(h: Host, op: Any, source: Place) -> None:
    """Require the sizes and strides of a cast's result type."""
    type = op.dest.type
    if not isinstance(type, MemRefType):
        return
    said = ("size", source.sizes, type.get_shape()), ("stride", source.strides, type.get_strides())
    for what, have, wanted in said:
        for axis, (old, n) in enumerate(zip(have, wanted or (), strict=False)):
            if n is not None and n >= 0:
                words = f"{op.name}: axis {axis} of {called(op.source)} has {what} ", ", not ", ""
                require(h, op, equal(old, n), words, old, n)


def check_same_sizes(h: Host, op: Operation, have: Place, wanted: Place) -> None:
    """Require that two buffers have the same sizes."""
    for a, b in zip(have.sizes, wanted.sizes, strict=True):
        words = f"{op.name}: a size of ", " meets one of ", ""
        require(h, op, equal(a, b), words, a, b)


def check_loop(h: Host, op: Operation, low: Tree, high: Tree, step: Tree) -> None:
    """Require a loop with a positive step and bounds that are not too far apart."""
    holds = every(at_most(1, step), at_most(step, FARTHEST))
    require(h, op, holds, (f"{op.name}: it goes on by ", ""), step)
    for bound in (low, high):
        holds = every(at_most(-FARTHEST, bound), at_most(bound, FARTHEST))
        require(h, op, holds, (f"{op.name}: a bound of ", " is too far away"), bound)


def check(h: Host, op: kernel.CheckOp) -> None:
    """Require the user's condition."""
    assert h.unit.faults is not None
    number, values = h.unit.faults.number_of(op.guard), [h.trees[v] for v in op.values]
    holds = h.trees[op.condition]
    h.steps.append({"do": "require", "holds": holds, "number": number, "values": values})


def prepared(h: Host, entry: Entry, arena: Tree) -> list[Step]:
    """Return the first steps of a call: they allocate the record of faults, and zero memory.

    Memory passed to a program with its own addresses is zeroed, so that the program cannot read
    data of others.
    """
    kernels = (op for op in h.unit.module.ops if isinstance(op, kernel.FuncOp))
    checks = any(isinstance(op, kernel.CheckOp) for each in kernels for op in each.walk())
    if h.guards is None and not checks:
        return []
    steps: list[Step] = [
        {"do": "allocate", "buffer": "fault", "bytes": 64},
        {"do": "zero", "buffer": "fault", "bytes": 64},
    ]
    if h.guards is None:
        return steps
    for argument, value in zip(entry.arguments, entry.op.args, strict=True):
        place = h.places[value]
        if argument.role == "arena":
            least = 0 if argument.shape[0] < 0 else argument.shape[0]
            place = h.places[value] = replace(place, sizes=(arena,))
            said = ("the arena would have ", f" bytes, not {least} or more")
            require(h, entry.op, at_most(least, arena), said, arena)
        if argument.role in ("output", "arena"):
            bytes = multiply(count(place.sizes), place.bytes)
            steps.append({"do": "zero", "buffer": place.buffer, "bytes": bytes})
    return steps
