"""Control flow and other primitives on traced values. ``sw.lax``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError, show
from stepwell.core.shapes import reduction as windows
from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import dynamic_slice, dynamic_update_slice
from stepwell.frontend.linear_algebra import dot_general as _dot_general
from stepwell.frontend.promotion import BOOL, INTEGER, as_dtype, cast, is_number, lift, same_narrow
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.sorting import top_k
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Verbatim, current_trace
from stepwell.frontend.ufuncs import weakened


def _lifted(tree: Any) -> tuple[list[Tensor], Tree]:
    leaves, structure = flatten(tree)
    return [lift(leaf) for leaf in leaves], structure


def _arguments(values: Sequence[Tensor], stem: str) -> list[Tensor]:
    trace = current_trace()
    return [trace.argument(stem, v.kind, v.shape) for v in values]


def _end(op: str, values: Sequence[Tensor]) -> None:
    current_trace().emit(op, values, ())


def _returned(
    value: Any, tree: Tree, wanted: Sequence[Tensor], what: str, must: str = "keep its"
) -> list[Tensor]:
    """Return the leaves of ``value``, which must have the structure and types of ``wanted``.

    what, must : as in 'the body of a loop must keep its type'
    A Python number takes the dtype that is wanted; every other value must have it.
    """
    leaves, structure = flatten(value)
    if structure != tree:
        raise TypeError(f"{what} must {must} structure")
    got = [lift(leaf, w.kind) for leaf, w in zip(leaves, wanted, strict=True)]
    for at, (g, w) in enumerate(zip(got, wanted, strict=True)):
        if (g.kind, g.shape) != (w.kind, w.shape):
            raise TypeError(
                f"{what} must {must} type: value {at} was {w.kind.name}[{show(w.shape)}], "
                f"now {g.kind.name}[{show(g.shape)}]"
            )
    return got


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any):
    """Return ``true_fun(*operands)`` where ``pred`` is true, else ``false_fun(*operands)``.

    pred : a value without axes. Only the chosen function runs. Both must return values of the
    same structure, dtypes and shapes. They may use values from outside.
    """
    for branch in (true_fun, false_fun):
        if not callable(branch):
            raise TypeError(f"the branches of cond are functions, got {branch!r}; pass lambda: ...")
    if isinstance(pred, bool | np.bool_):
        return true_fun(*operands) if pred else false_fun(*operands)
    chosen = lift(pred)
    if chosen.shape:
        raise TypeError(f"a condition has no axes, got [{show(chosen.shape)}]; use where")
    chosen = chosen if chosen.kind is BOOL else e.not_equal(chosen, 0)
    trace = current_trace()
    with trace.block(()) as then:
        values, tree = _lifted(true_fun(*operands))
        _end("yield", values)
    with trace.block(()) as otherwise:
        _end(
            "yield",
            _returned(false_fun(*operands), tree, values, "both branches of cond", "have one"),
        )
    types = [(v.kind, v.shape) for v in values]
    return unflatten(tree, trace.emit("if", [chosen], types, [*then, *otherwise]))


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any):
    """Repeat ``val = body_fun(val)`` as long as ``cond_fun(val)``; return the last ``val``.

    val : any structure of values; the body must keep its structure, dtypes and shapes
    """
    init, tree = _lifted(init_val)
    trace = current_trace()
    seen = _arguments(init, "state")
    with trace.block(seen) as test:
        go_on = lift(cond_fun(unflatten(tree, seen)))
        if go_on.shape or go_on.kind is not BOOL:
            raise TypeError(f"the condition of a loop is one boolean, got {go_on!r}")
        _end("condition", [go_on])
    seen = _arguments(init, "state")
    with trace.block(seen) as body:
        result = body_fun(unflatten(tree, seen))
        _end("yield", _returned(result, tree, init, "the body of a loop"))
    types = [(v.kind, v.shape) for v in init]
    return unflatten(tree, trace.emit("while", init, types, [*test, *body]))


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Repeat ``val = body_fun(i, val)`` for i from ``lower`` below ``upper``; return the last.

    lower, upper : plain or traced integers. The body must keep structure, dtypes and shapes.
    """
    init, tree = _lifted(init_val)
    init_val = unflatten(tree, init)

    def body(i: Any, val: Any) -> Any:
        result = body_fun(weakened(i), val)
        return unflatten(tree, _returned(result, tree, init, "the body of a loop"))

    if is_number(lower) and is_number(upper):
        length = max(int(upper) - int(lower), 0)
        start = lift(int(lower))

        def step(carry: Any, _: Any) -> Any:
            i, val = carry
            return (e.add(i, 1), body(i, val)), None

        return scan(step, (start, init_val), None, length=length)[0][1]
    last = cast(lift(upper), INTEGER)
    first = (cast(lift(lower), INTEGER), init_val)
    return while_loop(
        lambda carry: e.less(carry[0], last),
        lambda carry: (e.add(carry[0], 1), body(*carry)),
        first,
    )[1]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Run ``carry, y = f(carry, x)`` over the slices of ``xs`` along axis 0.

    init : any structure of values; ``f`` must keep its structure, dtypes and shapes
    xs : any structure of values of one size along axis 0, or None with ``length``
    reverse : from the last slice to the first; ys lie as xs do
    returns : the last carry, and the ys stacked along axis 0
    """
    carried, tree = _lifted(init)
    slices, xs_tree = _lifted(xs)
    count = _length(slices, length)
    trace = current_trace()
    seen = _arguments(carried, "carry")
    parts = [trace.argument("x", v.kind, v.shape[1:]) for v in slices]
    with trace.block([*seen, *parts]) as body:
        result: Any = f(unflatten(tree, seen), unflatten(xs_tree, parts))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError("the function given to scan must return (carry, y)")
        after = _returned(result[0], tree, carried, "the carry of a scan")
        ys, ys_tree = _lifted(result[1])
        _end("yield", [*after, *ys])
    types = [(v.kind, v.shape) for v in carried]
    types += [(y.kind, (count, *y.shape)) for y in ys]
    segments = Verbatim(f"array<i32: {len(carried)}, {len(slices)}, 0, 0>")
    results = trace.emit(
        "scan",
        [*carried, *slices],
        types,
        body,
        length=None if slices else count,
        reverse=bool(reverse),
        operandSegmentSizes=segments,
    )
    n = len(carried)
    return unflatten(tree, results[:n]), unflatten(ys_tree, results[n:])


def _length(xs: Sequence[Tensor], length: int | None) -> int:
    sizes = {x.shape[0] if x.shape else None for x in xs}
    if length is not None:
        if isinstance(length, Tensor):
            raise TraceError("the length of a scan must be known while tracing; use while_loop")
        sizes.add(int(length))
    if None in sizes:
        raise ShapeError("xs of a scan must have axes, got a value without")
    if len(sizes) > 1:
        listed = " and ".join(map(str, dict.fromkeys([*(x.shape[0] for x in xs), *sizes])))
        raise ShapeError(f"xs of a scan must have one size along axis 0, got {listed}")
    if not sizes:
        raise ValueError("a scan needs xs or a length")
    (count,) = sizes
    assert count is not None
    return count


def stop_gradient(x: Any) -> Any:
    """Return ``x``; derivatives take it as a constant."""
    return lift(x)


def dot_general(x: Any, w: Any, batch: Any = ((), ()), contract: Any = ((), ())) -> Tensor:
    """Multiply elementwise over ``batch`` axes and sum over ``contract`` axes.

    batch, contract : pairs of lists of axes of ``x`` and ``w``
    returns : batch axes, then the free axes of ``x``, then those of ``w``
    """
    a, b = same_narrow(x, w)
    return _dot_general(a, b, batch, contract)


def reduce_window(
    x: Any, op: str, window: Any, strides: Any = None, padding: Any = None, dilation: Any = None
) -> Tensor:
    """Reduce each window of ``x`` by ``op``, one of 'sum', 'max' and 'min'.

    window, strides, dilation : one int per axis        padding : a pair (before, after) per axis
    """
    if op not in ("sum", "max", "min"):
        raise ValueError(f"op must be 'sum', 'max' or 'min', got {op!r}")
    value = lift(x)
    ones, zeros = (1,) * value.ndim, (0,) * value.ndim
    size = tuple(window)
    strides = ones if strides is None else tuple(strides)
    apart = ones if dilation is None else tuple(dilation)
    low = zeros if padding is None else tuple(p[0] for p in padding)
    high = zeros if padding is None else tuple(p[1] for p in padding)
    shape = windows.window_reduce(value.shape, size, strides, low, high, apart)
    return value.trace.emit(
        f"window_{op}",
        [value],
        [(value.kind, shape)],
        (),
        window=size,
        strides=strides,
        low=low,
        high=high,
        dilation=apart,
    )[0]


def random_bits(key: Any, start: Any, shape: Any, dtype: Any = "ui32") -> Tensor:
    """Return random integers that depend on ``key`` and ``start`` alone.

    key : (2,) uint32        start : uint64 without axes, the number of the first element
    dtype : ui32 or ui64
    """
    first = cast(lift(start), as_dtype("ui64"))
    words = cast(lift(key), as_dtype("ui32"))
    kind = (as_dtype(dtype), checked_shape(shape))
    return current_trace().emit("random_bits", [words, first], [kind])[0]


def _primitive(op: str, doc: str, result: Any = None) -> Callable[..., Tensor]:
    def function(*operands: Any) -> Tensor:
        values = same_narrow(*operands)
        first = values[0]
        return first.trace.emit(op, values, [(result or first.kind, first.shape)])[0]

    function.__name__, function.__doc__ = op, doc
    return function


clz = _primitive("clz", "Return the number of leading zero bits of integers.")
clamp = _primitive("clamp", "Return ``min(max(x, low), high)`` of three arrays of one shape.")
fma = _primitive("fma", "Return ``x * y + z`` rounded once, for floats of one shape.")

__all__ = [
    "clamp",
    "clz",
    "cond",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "fma",
    "fori_loop",
    "random_bits",
    "reduce_window",
    "scan",
    "stop_gradient",
    "top_k",
    "while_loop",
]


def __dir__() -> list[str]:
    """Leave out what is imported."""
    return __all__
