"""Ops that move elements: views, slices, padding, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.core.shapes.shape import reshape_unknown
from stepwell.testing.random_programs.pointwise import unary
from stepwell.testing.random_programs.program import Program, Size, Value


def _axis(p: Program, x: Value) -> int:
    return p.number(0, len(x.shape) - 1)


def _set(shape: Sequence[Size], axis: int, size: Size) -> tuple[Size, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def transpose(p: Program, x: Value) -> Value:
    """Add a transpose."""
    if len(x.shape) < 2:
        return unary(p, x)
    axes = list(range(len(x.shape)))
    order = [axes.pop(p.number(0, len(axes) - 1)) for _ in x.shape]
    return _move(
        p, f"transpose %{x.name} {{permutation = {order}}}", x, [x.shape[a] for a in order]
    )


def _move(p: Program, text: str, x: Value, shape: Sequence[Size]) -> Value:
    created = Value("", tuple(shape), x.dtype)
    return p.op(f"nd.{text}", shape, x.dtype, x.bound, types=f"{x.type} -> {created.type}")


def reverse(p: Program, x: Value) -> Value:
    """Add a reversal along an axis."""
    if not x.shape:
        return unary(p, x)
    return _move(p, f"reverse %{x.name} {{axes = [{_axis(p, x)}]}}", x, x.shape)


def slice(p: Program, x: Value) -> Value:
    """Add a slice of one axis."""
    if not x.shape:
        return unary(p, x)
    axis, size = _axis(p, x), 0
    start, step = p.number(0, 2), p.number(1, 3)
    known = x.shape[axis]
    end = p.pick(("", "-1", "5"))
    part = f"{start or ''}:{end}" + (f":{step}" if step > 1 else "")
    parts = [":"] * len(x.shape)
    parts[axis] = part
    created: Size = p.fresh("d")
    if isinstance(known, int):
        size = len(range(known)[start : int(end) if end else None : step])
        created = size
    return _move(p, f"slice %{x.name}[{', '.join(parts)}]", x, _set(x.shape, axis, created))


def broadcast(p: Program, x: Value) -> Value:
    """Add a broadcast along a new axis, of a static size or that of another value."""
    if len(x.shape) > 2:
        return reduce_first(p, x)
    at = p.number(0, len(x.shape))
    sizes: list[Size] = [2, 5, *list(p.known)]
    size = p.pick(sizes)
    shape = (*x.shape[:at], size, *x.shape[at:])
    dims = [a for a in range(len(shape)) if a != at]
    clause = f", sizes({p.size(size)})" if isinstance(size, str) else ""
    return _move(p, f"broadcast %{x.name}{clause} {{dims = {dims}}}", x, shape)


def reduce_first(p: Program, x: Value) -> Value:
    """Add a maximum along the first axis, to keep the rank small."""
    name = "or" if x.dtype == "i1" else "max"
    shape = x.shape[1:]
    return _move(p, f"reduce_{name} %{x.name} {{axes = [0]}}", x, shape)


def reshape(p: Program, x: Value) -> Value:
    """Add a reshape: a new unit axis, two axes merged, or one split."""
    shape = list(x.shape)
    if len(shape) >= 2 and p.chance():
        a = p.number(0, len(shape) - 2)
        first, second = shape[a], shape[a + 1]
        if isinstance(first, int) and isinstance(second, int):
            merged: Size = first * second
            return _sized(p, x, [*shape[:a], merged, *shape[a + 2 :]])
        return _flatten(p, x, a)
    if len(shape) >= 3:
        return unary(p, x)
    even = [a for a, n in enumerate(shape) if isinstance(n, int) and n % 2 == 0 and n]
    if even and p.chance():
        a = p.pick(even)
        half = shape[a]
        assert isinstance(half, int)
        split = [*shape[:a], 2, half // 2, *shape[a + 1 :]]
        return _sized(p, x, split)
    at = p.number(0, len(shape))
    return _sized(p, x, [*shape[:at], 1, *shape[at:]])


def _flatten(p: Program, x: Value, a: int) -> Value:
    """Merge two axes, one of which is dynamic."""
    if not p.has_sizes(x.shape):
        return unary(p, x)
    one, two = p.size(x.shape[a]), p.size(x.shape[a + 1])
    product = f"%{p.fresh('n')}"
    p.line(f"{product} = arith.muli {one}, {two} : index")
    shape = [*x.shape[:a], p.fresh("d"), *x.shape[a + 2 :]]
    dynamic = [product if n == shape[a] else p.size(n) for n in shape if isinstance(n, str)]
    sizes = f", sizes({', '.join(dynamic)})"
    needs_sizes = reshape_unknown(_shape(x.shape), _shape(shape))
    return _move(p, f"reshape %{x.name}{sizes if needs_sizes else ''}", x, shape)


def _sized(p: Program, x: Value, shape: Sequence[Size]) -> Value:
    """Reshape ``x`` with its own dynamic sizes."""
    if not p.has_sizes(x.shape):
        return unary(p, x)
    sizes = p.sizes(shape) if reshape_unknown(_shape(x.shape), _shape(shape)) else ""
    return _move(p, f"reshape %{x.name}{sizes}", x, shape)


def _shape(shape: Sequence[Size]) -> Shape:
    return tuple(n if isinstance(n, int) else DYNAMIC for n in shape)


def pad(p: Program, x: Value) -> Value:
    """Add a padding, around and between elements."""
    if not x.shape or x.dtype == "i1":
        return unary(p, x)
    number = p.pick(("0", "2"))
    filler = p.op(f"nd.full {number}{'.0' if x.floats else ''}", (), x.dtype, 2.0)
    axis = _axis(p, x)
    low, high, interior = p.number(0, 2), p.number(0, 2), p.number(0, 1)
    how = {n: [0] * len(x.shape) for n in ("low", "high", "interior")}
    for n, value in zip(how, (low, high, interior), strict=True):
        how[n][axis] = value
    old = x.shape[axis]
    size: Size = p.fresh("d")
    if isinstance(old, int):
        size = old + low + high + interior * max(old - 1, 0)
    shape = _set(x.shape, axis, size)
    created = Value("", shape, x.dtype)
    spelled = ", ".join(f"{n} = {v}" for n, v in how.items())
    return p.op(
        f"nd.pad %{x.name}, %{filler.name} {{{spelled}}}",
        shape,
        x.dtype,
        None if x.bound is None else max(x.bound, 2.0),
        types=f"({x.type}, {filler.type}) -> {created.type}",
    )


def concat(p: Program, x: Value) -> Value:
    """Add a concatenation of two tensors that differ only along one axis."""
    if not x.shape:
        return unary(p, x)
    axis = _axis(p, x)
    y = p.some(
        lambda v: (
            v.dtype == x.dtype
            and len(v.shape) == len(x.shape)
            and _set(v.shape, axis, 0) == _set(x.shape, axis, 0)
        )
    )
    assert y is not None
    a, b = x.shape[axis], y.shape[axis]
    size: Size = a + b if isinstance(a, int) and isinstance(b, int) else p.fresh("d")
    shape = _set(x.shape, axis, size)
    bound = None if x.bound is None or y.bound is None else max(x.bound, y.bound)
    return p.op(
        f"nd.concat %{x.name}, %{y.name} {{axis = {axis}}}",
        shape,
        x.dtype,
        bound,
        types=f"({x.type}, {y.type}) -> {Value('', shape, x.dtype).type}",
    )


def _indices(p: Program, shape: Sequence[Size]) -> Value:
    """Return some integers, also out of range, as ops clamp them."""
    found = p.some(lambda v: v.shape == tuple(shape) and v.dtype in ("i32", "i64", "ui8"))
    return found if found is not None else p.argument(shape, p.pick(("i32", "ui8", "i64")))


def gather(p: Program, x: Value) -> Value:
    """Add a gather of rows; a dynamic slice if there may be no rows."""
    known = [a for a, n in enumerate(x.shape) if isinstance(n, int) and n > 0]
    if not known:
        return unary(p, x)
    axis = p.pick(known)
    i = _indices(p, [p.pick(p.lengths())])
    shape = _set(x.shape, axis, i.shape[0])
    return p.op(
        f"nd.gather %{x.name}, indices(%{i.name}) {{axes = [{axis}]}}",
        shape,
        x.dtype,
        x.bound,
        types=f"({x.type}, {i.type}) -> {Value('', shape, x.dtype).type}",
    )


def scatter(p: Program, x: Value) -> Value:
    """Add a scatter that sets, adds or compares rows, some more than once."""
    if not x.shape or not p.plain(x.shape):
        return unary(p, x)
    axis = _axis(p, x)
    length = p.pick(p.lengths())
    names = ("scatter",) if x.dtype == "i1" else ("scatter_add", "scatter", "scatter_max")
    name = p.pick(names)
    u = p.argument((length, *x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)
    if axis:
        u = p.argument(_set(x.shape, axis, length), x.dtype)
    i = _indices(p, [length])
    bound = None if x.bound is None else x.bound + 70 * 3.0
    return p.op(
        f"nd.{name} %{x.name}, %{u.name}, indices(%{i.name}) {{axes = [{axis}]}}",
        x.shape,
        x.dtype,
        bound,
        types=f"({x.type}, {u.type}, {i.type}) -> {x.type}",
    )


def dynamic_slice(p: Program, x: Value) -> Value:
    """Add a slice or its update at a dynamic start."""
    known = [a for a, n in enumerate(x.shape) if isinstance(n, int) and n >= 2]
    if not known or not p.plain(x.shape):
        return unary(p, x)
    axis, i = p.pick(known), _indices(p, [])
    part = _set(x.shape, axis, 2)
    block = Value("", part, x.dtype)
    if p.chance():
        return p.op(
            f"nd.dynamic_slice %{x.name}, starts(%{i.name}) {{axes = [{axis}], sizes = [2]}}",
            part,
            x.dtype,
            x.bound,
            types=f"({x.type}, {i.type}) -> {block.type}",
        )
    u = p.some(lambda v: v.shape == part and v.dtype == x.dtype) or p.argument(part, x.dtype)
    return p.op(
        f"nd.dynamic_update_slice %{x.name}, %{u.name}, starts(%{i.name}) {{axes = [{axis}]}}",
        x.shape,
        x.dtype,
        None if x.bound is None or u.bound is None else max(x.bound, u.bound),
        types=f"({x.type}, {u.type}, {i.type}) -> {x.type}",
    )


OPS = (
    *(transpose, reverse, slice, broadcast, broadcast, reshape, pad, concat),
    *(gather, scatter, dynamic_slice),
)
