"""Functional control flow of ``sw.lax``, with the names, signatures and semantics of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError, show
from stepwell.frontend import elementwise as e
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import BOOL, INTEGER, cast, is_number, lift
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.table import call_named
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Verbatim, current_trace
from stepwell.frontend.ufuncs import weakened


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a user's function, rewriting its control flow."""
    return Tensor.operators["call"](function, *args)


def lifted(tree: Any) -> tuple[list[Tensor], Tree]:
    """Return the leaves of a tree as values, and its structure."""
    leaves, structure = flatten(tree)
    return [lift(leaf) for leaf in leaves], structure


def _carried(tree: Any) -> tuple[list[Tensor], Tree]:
    """Return the initial values of a loop; Python numbers are weakly typed."""
    leaves, structure = flatten(tree)
    return [weakened(lift(v)) if is_number(v) else lift(v) for v in leaves], structure


def _arguments(values: Sequence[Tensor], stem: str) -> list[Tensor]:
    trace = current_trace()
    found = [trace.argument(stem, v.kind, v.shape) for v in values]
    for given, value in zip(found, values, strict=True):
        given.weak = value.weak
    return found


def _end(op: str, values: Sequence[Tensor]) -> None:
    current_trace().emit(op, values, ())


def _returned(
    value: Any, tree: Tree, wanted: Sequence[Tensor], what: str, must: str = "keep its"
) -> list[Tensor]:
    """Return the leaves of ``value``, which must have the structure and types of ``wanted``.

    what, must : as in 'the body of a loop must keep its type'
    A Python number is converted to the wanted dtype; every other value must have it.
    """
    leaves, structure = flatten(value)
    if structure != tree:
        raise TypeError(f"{what} must {must} structure")
    got = [_as(leaf, w) for leaf, w in zip(leaves, wanted, strict=True)]
    for at, (g, w) in enumerate(zip(got, wanted, strict=True)):
        if (g.kind, g.shape) != (w.kind, w.shape):
            raise TypeError(
                f"{what} must {must} type: value {at} was {w.kind.name}[{show(w.shape)}], "
                f"now {g.kind.name}[{show(g.shape)}]"
            )
    return got


def _as(leaf: Any, wanted: Tensor) -> Tensor:
    found = lift(leaf, wanted.kind)
    number = found.weak and found.kind.kind in ("bool", "signed")
    return cast(found, wanted.kind) if number or (found.weak and wanted.weak) else found


def _with_stable_types(
    init: list[Tensor], tree: Tree, trial: Callable[[list[Tensor]], Any]
) -> list[Tensor]:
    """Return ``init`` with weak numbers in the dtypes that they have after an iteration.

    trial : traces an iteration, which is discarded, and returns its results
    """
    trace = current_trace()
    for _ in init:
        if not any(v.weak for v in init):
            break
        mark = trace.mark()
        with trace.block(()):
            leaves, structure = flatten(trial(init))
        trace.back(mark)
        if structure != tree:
            break
        found = [
            cast(v, g.kind)
            if v.weak and isinstance(g, Tensor) and not g.weak and g.shape == v.shape
            else v
            for v, g in zip(init, leaves, strict=True)
        ]
        pairs = zip(init, found, strict=True)
        same = all(a is b or (a.kind is b.kind and not a.weak) for a, b in pairs)
        init = [lift(f) if f is not v else v for f, v in zip(found, init, strict=True)]
        if same:
            break
    return init


def check_functions(what: str, *functions: Any) -> None:
    """Refuse arguments that are not callable."""
    for function in functions:
        if not callable(function):
            raise TypeError(f"{what} are functions, got {function!r}; pass lambda: ...")


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = ...,
) -> Any:
    """Return ``true_fun(*operands)`` where ``pred`` is true, else ``false_fun(*operands)``.

    pred : a scalar. Only the chosen function runs
    true_fun, false_fun : return values of the same structure, dtypes and shapes; they may capture
        values
    operand : one operand, by name
    raises TypeError : the branches return different types, or the condition is not a scalar
    source : `jax.lax.cond`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def root(x):
    ...     return sw.lax.cond(x > 0, lambda: np.sqrt(x), lambda: x * 0)
    >>> float(root(4.0)), float(root(-4.0))
    (2.0, -0.0)
    """
    check_functions("the branches of cond", true_fun, false_fun)
    if operand is not ...:
        if operands:
            raise TypeError("cond takes operands by position, or one as operand=, not both")
        operands = (operand,)
    if isinstance(pred, bool | np.bool_):
        return call(true_fun if pred else false_fun, *operands)
    chosen = lift(pred)
    if chosen.shape:
        raise TypeError(f"a condition has no axes, got [{show(chosen.shape)}]; use where")
    chosen = chosen if chosen.kind is BOOL else e.not_equal(chosen, 0)
    trace = current_trace()
    with trace.block(()) as then:
        values, tree = lifted(call(true_fun, *operands))
        _end("yield", values)
    with trace.block(()) as otherwise:
        other = call(false_fun, *operands)
        _end("yield", _returned(other, tree, values, "both branches of cond", "have one"))
    types = [(v.kind, v.shape) for v in values]
    return unflatten(tree, trace.emit("if", [chosen], types, [*then, *otherwise]))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return ``branches[index](*operands)``; an index out of range is clamped.

    index : an integer scalar. Only the chosen function runs
    branches : functions that return values of the same structure, dtypes and shapes
    raises TypeError : they return different types, or the index is not an integer scalar
    raises ValueError : there are no branches
    source : `jax.lax.switch`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def f(i, x):
    ...     return sw.lax.switch(i, [lambda x: x + 1, lambda x: x * 10], x)
    >>> float(f(0, 3.0)), float(f(5, 3.0))
    (4.0, 30.0)
    """
    branches = tuple(branches)
    check_functions("the branches of switch", *branches)
    if not branches:
        raise ValueError("switch needs at least one branch")
    last = len(branches) - 1
    if is_number(index) or isinstance(index, np.integer):
        if isinstance(index, bool | float):
            raise TypeError(f"the index of switch is an integer, got {index!r}")
        return call(branches[min(max(int(index), 0), last)], *operands)
    at = lift(index)
    if at.shape or at.kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"the index of switch is an integer without axes, got {at!r}")

    def chosen(first: int) -> Any:
        if first == last:
            return call(branches[last], *operands)
        here = e.less_equal(at, first)
        return cond(here, lambda: call(branches[first], *operands), lambda: chosen(first + 1))

    return chosen(0)


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Repeat ``val = body_fun(val)`` while ``cond_fun(val)``; return the last ``val``.

    init_val : any structure of values; the body must keep its structure, dtypes and shapes. An
        initial Python number takes the dtype that it has after an iteration
    raises TypeError : the body changes a type, or the condition is not one boolean
    source : `jax.lax.while_loop`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def halve(x):
    ...     return sw.lax.while_loop(lambda v: v > 1, lambda v: v / 2, x)
    >>> float(halve(40.0))
    0.625
    """
    check_functions("the condition and the body of a loop", cond_fun, body_fun)
    init, tree = _carried(init_val)
    init = _with_stable_types(init, tree, lambda given: call(body_fun, unflatten(tree, given)))
    trace = current_trace()
    seen = _arguments(init, "state")
    with trace.block(seen) as test:
        go_on = lift(call(cond_fun, unflatten(tree, seen)))
        if go_on.shape or go_on.kind is not BOOL:
            raise TypeError(f"the condition of a loop is one boolean, got {go_on!r}")
        _end("condition", [go_on])
    seen = _arguments(init, "state")
    with trace.block(seen) as body:
        result = call(body_fun, unflatten(tree, seen))
        _end("yield", _returned(result, tree, init, "the body of a loop"))
    types = [(v.kind, v.shape) for v in init]
    return unflatten(tree, trace.emit("while", init, types, [*test, *body]))


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Repeat ``val = body_fun(i, val)`` for i from ``lower`` below ``upper``; return the last.

    lower, upper : plain or traced integers
    init_val : any structure of values; the body must keep its structure, dtypes and shapes
    unroll : True, or the number of iterations, unrolls the whole loop if the bounds are plain
        integers; a smaller number has no effect
    raises TypeError : the body changes a type
    raises ValueError : unroll= is given, and the bounds are traced
    source : `jax.lax.fori_loop`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def squares(n):
    ...     return sw.lax.fori_loop(0, n, lambda i, total: total + i * i, 0)
    >>> int(squares(5))
    30
    """
    check_functions("the body of a loop", body_fun)
    init, tree = _carried(init_val)
    start = weakened(cast(lift(lower), INTEGER))
    init = _with_stable_types(
        init, tree, lambda given: call(body_fun, start, unflatten(tree, given))
    )
    init_val = unflatten(tree, init)

    def body(i: Any, val: Any) -> Any:
        result = call(body_fun, weakened(i), val)
        return unflatten(tree, _returned(result, tree, init, "the body of a loop"))

    if is_number(lower) and is_number(upper):
        length = max(int(upper) - int(lower), 0)

        def step(carry: Any, _: Any) -> Any:
            i, val = carry
            return (e.add(i, 1), body(i, val)), None

        first = lift(int(lower))
        return scan(step, (first, init_val), None, length=length, unroll=unroll or 1)[0][1]
    if unroll not in (None, 1, False):
        raise ValueError("unroll= needs bounds that are plain integers")
    last = cast(lift(upper), INTEGER)
    return while_loop(
        lambda carry: e.less(carry[0], last),
        lambda carry: (e.add(carry[0], 1), body(*carry)),
        (cast(lift(lower), INTEGER), init_val),
    )[1]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Run ``carry, y = f(carry, x)`` over the slices of ``xs`` along axis 0.

    init : any structure of values; ``f`` must keep its structure, dtypes and shapes. A Python
        number takes the dtype that it has after an iteration
    xs : any structure of values of one size along axis 0, or None with ``length``
    reverse : go from the last slice to the first; the ys are in the order of xs
    unroll : True, or the number of iterations, unrolls the whole loop; a smaller number has no
        effect
    returns : the last carry, and the ys stacked along axis 0
    raises TypeError : ``f`` changes a type, or does not return a pair
    raises ShapeError : xs have different sizes along axis 0, or no axes
    raises ValueError : neither xs nor a length is given
    source : `jax.lax.scan`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def running(x):
    ...     return sw.lax.scan(lambda s, v: (s + v, s), 0.0, x)
    >>> running(np.array([1.0, 2.0, 4.0]))
    (array(7.), array([0., 1., 3.]))
    """
    check_functions("what is given to scan", f)
    carried, tree = _carried(init)
    slices, xs_tree = lifted(xs)
    count = _length(slices, length)
    many = _unrolled(unroll, count)

    def first(given: list[Tensor]) -> Any:
        parts = [v[0] for v in slices] if count else [v.sum(axis=0) for v in slices]
        result: Any = call(f, unflatten(tree, given), unflatten(xs_tree, parts))
        return _pair(result)[0]

    carried = _with_stable_types(carried, tree, first)
    if many >= count and count and many > 1:
        return _repeated(f, unflatten(tree, carried), slices, xs_tree, count, reverse)
    trace = current_trace()
    seen = _arguments(carried, "carry")
    parts = [trace.argument("x", v.kind, v.shape[1:]) for v in slices]
    with trace.block([*seen, *parts]) as body:
        result = _pair(call(f, unflatten(tree, seen), unflatten(xs_tree, parts)))
        after = _returned(result[0], tree, carried, "the carry of a scan")
        ys, ys_tree = lifted(result[1])
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


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore
        raise TypeError("the function given to scan must return (carry, y)")
    return result  # pyright: ignore


def _unrolled(unroll: Any, count: int) -> int:
    if isinstance(unroll, bool):
        return count if unroll else 1
    if not isinstance(unroll, int) or unroll < 1:
        raise ValueError(f"unroll= is a positive integer, or True, got {unroll!r}")
    return unroll


def _repeated(
    f: Callable[[Any, Any], Any],
    carry: Any,
    slices: Sequence[Tensor],
    xs_tree: Tree,
    count: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """Unroll a scan completely."""
    ys: list[Any] = []
    wanted, tree = flatten(carry)
    for k in reversed(range(count)) if reverse else range(count):
        carry, y = _pair(call(f, carry, unflatten(xs_tree, [v[k] for v in slices])))
        carry = unflatten(tree, _returned(carry, tree, wanted, "the carry of a scan"))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    rows = [flatten(y)[0] for y in ys]
    stacked = [
        call_named("stack", ([lift(v) for v in row],), {}) for row in zip(*rows, strict=True)
    ]
    return carry, unflatten(flatten(ys[0])[1], stacked)


def _length(xs: Sequence[Tensor], length: int | None) -> int:
    sizes = {x.shape[0] if x.shape else None for x in xs}
    if length is not None:
        if isinstance(length, Tensor):
            raise TraceError("the length of a scan must be known while tracing; use while_loop")
        sizes.add(int(length))
    if None in sizes:
        raise ShapeError("xs of a scan must have axes, got a value without")
    if len(sizes) > 1:
        listed = " and ".join(str(n) for n in dict.fromkeys([*(x.shape[0] for x in xs), *sizes]))
        raise ShapeError(f"xs of a scan must have one size along axis 0, got {listed}")
    if not sizes:
        raise ValueError("a scan needs xs or a length")
    (count,) = sizes
    assert count is not None
    return count


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Return ``f(x)`` for each slice of ``xs`` along axis 0, stacked along axis 0.

    xs : any structure of values of one size along axis 0
    batch_size : has no effect: the compiler chooses how to batch the slices
    raises ShapeError : xs have different sizes along axis 0, or no axes
    source : `jax.lax.map`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def lengths(rows):
    ...     return sw.lax.map(lambda row: np.sqrt(np.sum(row * row)), rows)
    >>> lengths(np.array([[3.0, 4.0], [6.0, 8.0]]))
    array([ 5., 10.])
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size= is a positive integer, got {batch_size!r}")
    return scan(lambda _, x: (None, call(f, x)), None, xs)[1]
