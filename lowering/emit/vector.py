"""vector: loads, stores and lanes."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from stepwell.dialects import kernel
from stepwell.lowering.emit.arith import wrapping
from stepwell.lowering.emit.guards import check_element, check_lane, check_masked
from stepwell.lowering.emit.kinds import INDEX, NARROW, Kind
from stepwell.lowering.emit.lane_masks import first_of, is_range, is_unneeded
from stepwell.lowering.emit.minmax import INTEGER_SIGNS, extreme, integer_extreme
from stepwell.lowering.emit.narrow import narrow, widen
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer, emit
from stepwell.transforms.passes import fail


def _address(w: Writer, op: Any) -> str:
    """Return the address of a vector; fail if its lanes are not contiguous."""
    buffer = w.buffer(op.base)
    if buffer.strides and buffer.strides[-1] != "1":
        fail(op, f"{op.name} needs a last dimension without gaps, its stride is not 1")
    return f"&{w.element_at(op.base, op.indices)}"


@emit(vector.LoadOp)
def _load(w: Writer, op: vector.LoadOp) -> None:
    """Load a vector; booleans are bytes in memory."""
    kind, s = w.kind(op.result), w.spelling
    check_element(w, op, op.base, op.indices, kind.lanes)
    if kind.is_mask:
        bytes = kind.of("u8")
        found = s.load(bytes, _address(w, op), w.buffer(op.base).space)
        mask = s.compared(bytes, f"{found} != {s.small(bytes, '0')}")
        w.define(op.result, mask, bytes.mask)
    else:
        x = s.load(kind, _address(w, op), w.buffer(op.base).space)
        w.define(op.result, s.held(kind, x) if _is_held(op) else x)


_HOLDING = (
    *(arith.MulfOp, arith.MuliOp, math.FmaOp),
    *(arith.MaxnumfOp, arith.MinnumfOp, arith.CmpfOp),
    kernel.DotOp,
)
"""Users for which gcc would reload memory: products, and extrema that handle NaN."""


def _is_held(op: vector.LoadOp) -> bool:
    """Whether a load in a loop with accumulators has several such users, now or once unrolled."""
    loop = op.parent_op()
    while isinstance(loop, scf.IfOp):
        loop = loop.parent_op()
    if not isinstance(loop, scf.ForOp) or not loop.iter_args:
        return False
    if "kernel.unroll" in loop.attributes:
        return True
    if op.result.has_one_use():
        return False
    return all(isinstance(u.operation, _HOLDING) for u in op.result.uses)


def _bytes(w: Writer, value: SSAValue) -> tuple[str, Kind]:
    """Return a vector in its memory representation."""
    kind, s = w.kind(value), w.spelling
    if not kind.is_mask:
        return w[value], kind
    bytes = kind.of("u8")
    mask = s.convert(kind.of("m8"), w[value], kind)
    return f"({s.bits(bytes, mask, kind.of('m8'))} & {s.small(bytes, '1')})", bytes


@emit(vector.StoreOp)
def _store(w: Writer, op: vector.StoreOp) -> None:
    text, kind = _bytes(w, op.vector)
    check_element(w, op, op.base, op.indices, kind.lanes)
    if op.nontemporal.value.data:
        w.line(w.spelling.stream(kind, _address(w, op), text, w.buffer(op.base).space))
        w.streamed = True
    else:
        w.line(w.spelling.store(kind, _address(w, op), text, w.buffer(op.base).space))


@emit(vector.BroadcastOp)
def _broadcast(w: Writer, op: vector.BroadcastOp) -> None:
    source, kind = w.kind(op.source), w.kind(op.vector)
    if source.lanes == kind.lanes:
        w.bind(op.vector, w[op.source], source)
        return
    x = w.spelling.lane(source, w[op.source], "0") if source.lanes else w[op.source]
    if kind.is_mask:
        x = f"(-({x} != 0))" if source.lanes else f"(-{x})"
    w.define(op.vector, w.spelling.splat(kind, x), kind)


def _position(w: Writer, op: Any) -> str:
    static = op.static_position.get_values()
    if not static:
        return "0"
    return w[op.dynamic_position[0]] if static[0] == DYNAMIC_INDEX else str(static[0])


@emit(vector.ExtractOp)
def _extract(w: Writer, op: vector.ExtractOp) -> None:
    kind = w.kind(op.vector)
    check_lane(w, op, _position(w, op), kind.lanes)
    x = w.spelling.lane(kind, w[op.vector], _position(w, op))
    w.define(op.result, f"{x} != 0" if kind.is_mask else x)


@emit(vector.InsertOp)
def _insert(w: Writer, op: vector.InsertOp) -> None:
    kind = w.kind(op.dest)
    check_lane(w, op, _position(w, op), kind.lanes)
    x = f"-{w[op.source]}" if kind.is_mask else w[op.source]
    w.line(f"{w.declare(op.result, kind)} = {w[op.dest]};")
    w.line(w.spelling.set_lane(kind, w[op.result], _position(w, op), x))


@emit(vector.ShuffleOp)
def _shuffle(w: Writer, op: vector.ShuffleOp) -> None:
    """Shuffle; a lane numbered -1 is undefined."""
    x, kind = w.kind(op.v1), w.kind(op.result)
    kind = kind.of(x.element)
    lanes = [max(n, 0) for n in op.mask.get_values()]
    w.define(op.result, w.spelling.shuffle(kind, w[op.v1], w[op.v2], x, lanes), kind)


@emit(kernel.LookupOp)
def _lookup(w: Writer, op: kernel.LookupOp) -> None:
    """Shuffle by dynamic indices; lane by lane if the language has no such shuffle."""
    kind, table, which, s = w.kind(op.result), w.kind(op.table), w.kind(op.indices), w.spelling
    kind = kind.of(table.element)
    last = table.lanes - 1
    rows = [f"return {s.lane(table, 'x', f'(y & {last})')};"]
    if which.lanes:
        rows = s.each_lane(kind, [(which, "y")], lambda k: s.lane(table, "x", f"({k} & {last})"))
    if quick := s.permuted(table, which, "x", "y"):
        rows = [*quick, *rows, "#endif"]
    name = s.helper(f"sw_lookup_{table}_{which}", kind, [(table, "x"), (which, "y")], rows)
    w.define(op.result, f"{name}({w[op.table]}, {w[op.indices]})", kind)


@emit(vector.BitcastOp)
def _bitcast(w: Writer, op: vector.BitcastOp) -> None:
    w.define(op.result, w.spelling.bits(w.kind(op.result), w[op.source], w.kind(op.source)))


@emit(vector.CreateMaskOp)
def _create_mask(w: Writer, op: vector.CreateMaskOp) -> None:
    """Set the first n lanes; n may be any number. Loads and stores of these take the number."""
    if w.guards is None and is_unneeded(op.mask_vector):
        return
    kind, s = w.kind(op.mask_vector), w.spelling
    lanes = kind.lanes
    numbers = kind.of(f"i{kind.element[1:]}")
    one = s.type(Kind(numbers.element))
    last = s.splat(numbers, f"({one})(n < 1 ? -1 : n > {lanes} ? {lanes - 1} : n - 1)")
    test = s.compared(numbers, f"{s.lanes_of(numbers, [str(k) for k in range(lanes)])} <= {last}")
    name = s.helper(f"sw_first_{kind}", kind, [(INDEX, "n")], [f"return {test};"])
    (n,) = op.mask_dim_sizes
    w.define(op.mask_vector, f"{name}({w[n]})")


@emit(vector.MaskedLoadOp)
def _masked_load(w: Writer, op: vector.MaskedLoadOp) -> None:
    """Access only the enabled lanes."""
    kind, s = w.kind(op.pass_thru), w.spelling
    pointer = f"{w.buffer(op.base).space}const {s.memory(kind.element)} *"
    first, in_range = first_of(op.mask), is_range(op.mask)
    if (first is not None or in_range) and not kind.is_mask and w.guards is None:
        name = s.load_range(kind, pointer) if first is None else s.load_first(kind, pointer)
        lanes = w[op.mask if first is None else first]
        w.define(op.result, f"{name}({_address(w, op)}, {lanes}, {w[op.pass_thru]})", kind)
        return
    if kind.is_mask:
        fail(op, "a masked load of truth values is not supported", help="load them as i8")
    check_masked(w, op, op.base, op.indices, op.mask)
    name = s.masked_load(kind, w.kind(op.mask), pointer)
    w.define(op.result, f"{name}({_address(w, op)}, {w[op.mask]}, {w[op.pass_thru]})", kind)


@emit(vector.MaskedStoreOp)
def _masked_store(w: Writer, op: vector.MaskedStoreOp) -> None:
    kind, mask, s = w.kind(op.value_to_store), w.kind(op.mask), w.spelling
    if (first := first_of(op.mask)) is not None and not kind.is_mask and w.guards is None:
        name = s.store_first(kind, f"{w.buffer(op.base).space}{s.memory(kind.element)} *")
        w.line(f"{name}({_address(w, op)}, {w[first]}, {w[op.value_to_store]});")
        return
    if is_range(op.mask) and not kind.is_mask and w.guards is None:
        name = s.store_range(kind, f"{w.buffer(op.base).space}{s.memory(kind.element)} *")
        w.line(f"{name}({_address(w, op)}, {w[op.mask]}, {w[op.value_to_store]});")
        return
    x, kind = _bytes(w, op.value_to_store)
    check_masked(w, op, op.base, op.indices, op.mask)
    buffer = w.buffer(op.base)
    name = s.masked_store(kind, mask, f"{buffer.space}{s.memory(kind.element)} *")
    w.line(f"{name}({_address(w, op)}, {w[op.mask]}, {x});")


# reductions: a tree that combines halves

_INFIX = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_OF_TRUTHS = {
    **{"add": "xor", "mul": "and", "maxui": "or", "minui": "and"},
    **{"maxsi": "and", "minsi": "or"},  # true is -1
}


@emit(vector.ReductionOp)
def _reduction(w: Writer, op: vector.ReductionOp) -> None:
    kind, name, s = w.kind(op.vector), op.kind.data.value, w.spelling
    if kind.is_mask:
        name = _OF_TRUTHS.get(name, name)
    helper = _tree(s, name, kind)
    x = f"{helper}({w[op.vector]})"
    if op.acc is not None:
        x = _combined(s, name, kind.scalar, w[op.acc], x)
    w.define(op.dest, x)


SHORT = 128
"""The vector length in bits up to which a shuffle has low latency."""


def _tree(s: Spelling, name: str, kind: Kind) -> str:
    """Declare a function that combines all lanes by halves, in shorter and shorter vectors."""
    rows: list[str] = []
    x, width, now = "x", kind.lanes, kind
    while width > 1:
        width //= 2
        half = Kind(kind.element, width)
        if half.bits * width >= SHORT:
            low = s.shuffle(half, x, x, now, range(width))
            high = s.shuffle(half, x, x, now, range(width, 2 * width))
            rows.append(f"const {s.type(half)} z{width} = {low};")
            x, now = f"z{width}", half
        else:
            other = [(k + width) % (2 * width) if k < 2 * width else k for k in range(now.lanes)]
            high = s.shuffle(now, x, x, now, other)
        type = s.type(now)
        rows.append(f"const {type} y{width} = {high};")
        rows.append(f"const {type} x{width} = {_combined(s, name, now, x, f'y{width}')};")
        x = f"x{width}"
    first = s.lane(now, x, "0")
    rows.append(f"return {f'{first} != 0' if kind.is_mask else first};")
    return s.helper(f"sw_reduce_{name}_{kind}", kind.scalar, [(kind, "x")], rows)


def _combined(s: Spelling, name: str, kind: Kind, x: str, y: str) -> str:
    """Combine two values, or two vectors lane by lane."""
    if kind.element in NARROW:
        wide = kind.of("f32")
        return narrow(s, kind, _combined(s, name, wide, widen(s, kind, x), widen(s, kind, y)))
    if name in INTEGER_SIGNS:
        return integer_extreme(s, name, kind, x, y)
    if name in _INFIX:
        whole = kind.element[0] in "iu" and not kind.is_bool and name in ("add", "mul")
        return wrapping(s, kind, x, _INFIX[name], y) if whole else f"({x} {_INFIX[name]} {y})"
    return extreme(s, name.removesuffix("f"), kind, x, y)
