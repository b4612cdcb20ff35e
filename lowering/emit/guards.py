"""Guards: bounds checks before the accesses of a module with its own addresses.

if ((uint64_t)i >= (uint64_t)n) { sw_fault(fault, 1048576, i, n); return; }  // m.mlir:5

Modules that begin at the floors of buffers or loops are printed with guards (`kernel.guarded`);
addresses that the compiler derives from higher floors are correct by construction. If a guard
fails, its number is recorded, unless another was before, and the function returns without the
access; callers return too at their next check. Every view is within its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from stepwell.core.guards import FARTHEST, LONGEST_AXIS, no_place
from stepwell.dialects.types import called
from stepwell.lowering.emit.buffers import Buffer, number
from stepwell.lowering.emit.kinds import INDEX, Kind
from stepwell.lowering.emit.writer import Writer
from stepwell.transforms.passes import fail

_U64 = Kind("u64")
_MOST = 1 << 60
"""Element counts saturate at this bound, which is too many for any buffer."""
_FAR = 1 << 56
"""Element distances saturate at this bound; the sum of 64 of them fits in 64 bits."""


def refuse(
    w: Writer,
    op: Operation,
    condition: str,
    words: tuple[str, ...],
    values: Sequence[str] = (),
) -> None:
    """Write a guard that leaves the function if ``condition`` holds."""
    if w.guards is None or not condition:
        return
    a, b = (*values, "0", "0")[:2]
    known = w.guards.number(op, words)
    w.line(f"if ({condition}) {{ {w.spelling.fault(known, a, b)} {w.bail()} }}")


# elements


def outside(w: Writer, index: str, size: str, count: int = 1) -> str:
    """Return the condition that ``count`` elements at ``index`` are out of bounds; "" for never."""
    i, n = number(index), number(size)
    unsigned = w.spelling.type(_U64)
    if i is not None and n is not None:
        return "" if 0 <= i <= n - count else "1"
    if i is not None:
        return f"{size} < {i + count}" if i >= 0 else "1"
    if n is not None:
        return f"({unsigned}){index} > {n - count}" if n >= count else "1"
    if count == 1:
        return f"({unsigned}){index} >= ({unsigned}){size}"
    return f"{index} < 0 || {index} > {size} - {count}"


def check_element(
    w: Writer, op: Operation, buffer: SSAValue, indices: Sequence[SSAValue], lanes: int = 0
) -> None:
    """Guard an access of one element, or of contiguous lanes."""
    if w.guards is None:
        return
    if lanes > 1 and not indices:
        fail(op, f"{op.name}: {called(buffer)} has one element, not {lanes}")
    sizes, last = w.buffer(buffer).sizes, len(indices) - 1
    for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
        count = lanes if lanes and axis == last else 1
        words = no_place(op.name, called(buffer), axis, count)
        refuse(w, op, outside(w, w[index], size, count), words, (w[index], size))


def is_there(w: Writer, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
    """Return the condition that an element is out of bounds; "" if it never is."""
    sizes = w.buffer(buffer).sizes
    tests = [outside(w, w[i], n) for i, n in zip(indices, sizes, strict=True)]
    return " && ".join(f"!({test})" for test in tests if test)


def check_masked(
    w: Writer, op: Any, buffer: SSAValue, indices: Sequence[SSAValue], mask: SSAValue
) -> None:
    """Guard an access of the lanes that the mask enables."""
    if w.guards is None:
        return
    if not indices:
        fail(op, f"{op.name}: {called(buffer)} has no axis along which lanes lie")
    sizes, last = w.buffer(buffer).sizes, len(indices) - 1
    for axis in range(last):
        test = outside(w, w[indices[axis]], sizes[axis])
        values = w[indices[axis]], sizes[axis]
        refuse(w, op, test, no_place(op.name, called(buffer), axis), values)
    index, size, kind = w[indices[last]], sizes[last], w.kind(mask)
    if not (whole := outside(w, index, size, kind.lanes)):
        return
    s = w.spelling
    rows = [
        f"if ({s.lane(kind, 'm', str(k))} && (i < {-k} || i >= n - {k})) return 1;"
        for k in range(kind.lanes)
    ]
    parameters = [(kind, "m"), (INDEX, "i"), (INDEX, "n")]
    name = s.helper(f"sw_beyond_{kind}", Kind("i32"), parameters, [*rows, "return 0;"])
    words = no_place(op.name, called(buffer), last, kind.lanes)
    refuse(w, op, f"({whole}) && {name}({w[mask]}, {index}, {size})", words, (index, size))


def check_lane(w: Writer, op: Operation, position: str, lanes: int) -> None:
    """Guard the index of a lane."""
    words = f"{op.name}: the vector has no lane ", ", it has ", ""
    test = outside(w, position, str(lanes)) if w.guards is not None else ""
    refuse(w, op, test, words, (position, str(lanes)))


# views


def check_part(
    w: Writer,
    op: Any,
    source: Buffer,
    offsets: Sequence[str],
    sizes: Sequence[str],
    steps: Sequence[str],
) -> None:
    """Guard a slice along each axis."""
    if w.guards is None:
        return
    name = called(op.source)
    for axis, (o, s, t, n) in enumerate(zip(offsets, sizes, steps, source.sizes, strict=True)):
        texts = f"{op.name}: the part from ", f" on is not within axis {axis} of {name}, of size "
        refuse(w, op, _beyond(w, o, s, t, n), (*texts, ""), (o, n))


def _beyond(w: Writer, o: str, s: str, t: str, n: str) -> str:
    """Return the condition that ``s`` indices from ``o`` by step ``t`` are not all below ``n``."""
    offset, size, step, room = map(number, (o, s, t, n))
    if offset is not None and size is not None and step is not None and room is not None:
        first, last = offset, offset + max(size - 1, 0) * step
        fits = (
            (step != 0 or size < 2)
            and first >= 0
            and (size == 0 or (first < room and 0 <= last < room))
        )
        return "" if size >= 0 and fits and first <= room else "1"
    if step == 1 or size in (0, 1):
        tests = [f"{o} < 0"] if offset is None else ["1"] if offset < 0 else []
        tests += [f"{s} < 0"] if size is None else ["1"] if size < 0 else []
        return " || ".join([*tests, f"{o} > {n} - {s}"])
    s_ = w.spelling
    rows = [
        "if (o < 0 || s < 0 || o > n) return 1;",
        "if (s == 0) return 0;",
        "if (o >= n) return 1;",
        "if (t > 0) return s - 1 > (n - 1 - o) / t;",
        "if (t == 0) return s > 1;",
        f"if (t < -{_MOST}) return s > 1;",
        "return s - 1 > o / -t;",
    ]
    parameters = [(INDEX, letter) for letter in "ostn"]
    return f"{s_.helper('sw_beyond', Kind('i32'), parameters, rows)}({o}, {s}, {t}, {n})"


def check_reinterpreted(
    w: Writer, op: Any, source: Buffer, start: str, sizes: Sequence[str], strides: Sequence[str]
) -> None:
    """Guard a view of other sizes and strides: its elements are elements of the source."""
    if w.guards is None:
        return
    name = called(op.source)
    check_sizes(w, op, sizes)
    room, available = _reach(w, source.sizes, source.strides), _product(w, source.sizes)
    low, high = _reach(w, sizes, strides)
    count = _product(w, sizes)
    at = w.fresh("start", w.spelling.type(INDEX))
    w.line(f"const {w.declared[at]} {at} = {start};")
    far = f"{at} < -{_FAR} || {at} > {_FAR}"
    off = f"{at} + {low} < {room[0]} || {at} + {high} > {room[1]}"
    words = f"{op.name}: elements from ", f" on do not all lie within {name}"
    test = f"{count} != 0 && ({available} == 0 || {far} || {off})"
    refuse(w, op, test, words, (at,))
    empty = f"{count} == 0 && ({at} < 0 || {at} > {room[1]} + 1)"
    refuse(w, op, empty, words, (at,))


def _reach(w: Writer, sizes: Sequence[str], strides: Sequence[str]) -> tuple[str, str]:
    """Return the least and greatest offset of an element from the buffer's first."""
    s, low, high = w.spelling, 0, 0
    lows: list[str] = []
    highs: list[str] = []
    for size, stride in zip(sizes, strides, strict=True):
        n, t = number(size), number(stride)
        if n is not None and t is not None:
            span = max(n - 1, 0) * t
            low, high = low + min(span, 0), high + max(span, 0)
            continue
        rows = [
            "if (n <= 1 || t == 0) return 0;",
            f"if (t > {_FAR} / (n - 1)) return {_FAR};",
            f"if (t < -({_FAR} / (n - 1))) return -{_FAR};",
            "return (n - 1) * t;",
        ]
        span = f"{s.helper('sw_span', INDEX, [(INDEX, 'n'), (INDEX, 't')], rows)}({size}, {stride})"
        name = w.fresh("span", s.type(INDEX))
        w.line(f"const {w.declared[name]} {name} = {span};")
        lows += [f"({name} < 0 ? {name} : 0)"] if t is None or t < 0 else []
        highs += [f"({name} > 0 ? {name} : 0)"] if t is None or t > 0 else []
    limits = max(low, -_FAR), min(high, _FAR)
    return (
        "(" + " + ".join([str(limits[0]), *lows]) + ")",
        "(" + " + ".join([str(limits[1]), *highs]) + ")",
    )


def _product(w: Writer, factors: Iterable[str]) -> str:
    """Return a product of sizes, saturated at `_MOST`."""
    result, rest = 1, list[str]()
    for factor in factors:
        if (n := number(factor)) is None:
            rest.append(factor)
        else:
            result = min(result * n, _MOST) if n >= 0 else _MOST
    text = str(result)
    rows = [
        f"if (a < 0 || b < 0) return {_MOST};",
        "if (a == 0 || b == 0) return 0;",
        f"return a > {_MOST} / b ? {_MOST} : a * b;",
    ]
    for factor in rest:
        if text == "1":
            text = factor
            continue
        name = w.spelling.helper("sw_times", INDEX, [(INDEX, "a"), (INDEX, "b")], rows)
        text = f"{name}({text}, {factor})"
    return text


def check_sizes(w: Writer, op: Operation, sizes: Iterable[str]) -> None:
    """Guard computed sizes: none is negative, or longer than an axis may be."""
    words = f"{op.name}: a size of ", " is not one a buffer has"
    for size in sizes:
        n = number(size)
        if n is None:
            unsigned = w.spelling.type(_U64)
            refuse(w, op, f"({unsigned}){size} > {LONGEST_AXIS}", words, (size,))
        elif not 0 <= n <= LONGEST_AXIS:
            refuse(w, op, "1", words, (size,))


def check_bytes(
    w: Writer, op: Any, source: Buffer, shift: str, sizes: Sequence[str], element: str
) -> None:
    """Guard a typed view of bytes: in bounds, and aligned for its elements."""
    if w.guards is None:
        return
    check_sizes(w, op, sizes)
    size = Kind(element).bits // 8
    bytes, room = _product(w, [str(size), *sizes]), source.sizes[0]
    words = (
        f"{op.name}: bytes from ",
        f" on do not all lie within {called(op.source)}, of size ",
        "",
    )
    refuse(w, op, f"{shift} < 0 || {shift} > {room} - {bytes}", words, (shift, room))
    if size > 1:
        words = f"{op.name}: byte ", f" is no place for elements of {size} bytes"
        address = w.spelling.address(f"({source.pointer} + {shift})")
        refuse(w, op, f"{address} % {size} != 0", words, (shift,))


def check_expanded(w: Writer, op: Any, source: Buffer, sizes: Sequence[str]) -> None:
    """Guard axes expanded from one: they have as many elements."""
    if w.guards is None:
        return
    check_sizes(w, op, sizes)
    for axis, group in enumerate(op.reassociation.data):
        count = _product(w, (sizes[int(k.value.data)] for k in group.data))
        words = f"{op.name}: axis {axis} of {called(op.src)} has size ", ", not ", ""
        check_equal(w, op, source.sizes[axis], count, words)


def check_collapsed(w: Writer, op: Any, source: Buffer) -> None:
    """Guard axes collapsed into one: they are contiguous, with the size of the result type."""
    if w.guards is None:
        return
    assert isinstance(op.result.type, MemRefType)
    name, wanted = called(op.src), op.result.type.get_shape()
    for axis, group in enumerate(op.reassociation.data):
        axes = [int(k.value.data) for k in group.data if source.sizes[int(k.value.data)] != "1"]
        for a, b in pairwise(axes):
            step = _product(w, (source.sizes[b], source.strides[b]))
            have, size = source.strides[a], source.sizes[a]
            if have == step or (number(have) is not None and number(have) == number(step)):
                continue
            words = f"{op.name}: axis {a} of {name} has stride ", ", not ", ""
            both = f"{size} > 1 && {have} != {step}"
            refuse(w, op, both, words, (have, step))
        count = _product(w, (source.sizes[int(k.value.data)] for k in group.data))
        if wanted[axis] >= 0:
            words = f"{op.name}: axis {axis} would have size ", ", not ", ""
            check_equal(w, op, count, str(wanted[axis]), words)
        else:
            check_sizes(w, op, [count])


def check_cast(w: Writer, op: Any, source: Buffer, type: MemRefType[Any]) -> None:
    """Guard the sizes and strides of a cast's result type."""
    if w.guards is None:
        return
    name = called(op.source)
    said = ("size", source.sizes, type.get_shape()), ("stride", source.strides, type.get_strides())
    for what, have, wanted in said:
        for axis, (old, n) in enumerate(zip(have, wanted or (), strict=False)):
            if n is not None and n >= 0:
                words = f"{op.name}: axis {axis} of {name} has {what} ", ", not ", ""
                check_equal(w, op, old, str(n), words)


def check_equal(w: Writer, op: Operation, a: str, b: str, words: tuple[str, ...]) -> None:
    """Guard that two numbers are equal."""
    x, y = number(a), number(b)
    if w.guards is None or a == b or (x is not None and x == y):
        return
    refuse(w, op, "1" if None not in (x, y) else f"{a} != {b}", words, (a, b))


def check_same_sizes(
    w: Writer, op: Operation, have: Buffer, wanted: Buffer, strides: bool = False
) -> None:
    """Guard that two buffers have equal shapes."""
    words = f"{op.name}: a size of ", " meets one of ", ""
    for a, b in zip(have.sizes, wanted.sizes, strict=True):
        check_equal(w, op, a, b, words)
    if strides:
        words = f"{op.name}: a stride of ", " meets one of ", ""
        for a, b in zip(have.strides, wanted.strides, strict=True):
            check_equal(w, op, a, b, words)


# loops


def check_loop(w: Writer, op: Operation, low: str, high: str, step: str) -> None:
    """Guard a loop: its step is positive, and its counter does not overflow 64 bits."""
    if w.guards is None:
        return
    by = number(step)
    if by is None:
        test = f"{step} < 1 || {step} > {FARTHEST}"
        refuse(w, op, test, (f"{op.name}: it goes on by ", ""), (step,))
    elif not 1 <= by <= FARTHEST:
        refuse(w, op, "1", (f"{op.name}: it goes on by ", ""), (step,))
    for bound in (low, high):
        n = number(bound)
        words = f"{op.name}: a bound of ", " is too far away"
        if n is None:
            test = f"{bound} < -{FARTHEST} || {bound} > {FARTHEST}"
            refuse(w, op, test, words, (bound,))
        elif abs(n) > FARTHEST:
            refuse(w, op, "1", words, (bound,))
