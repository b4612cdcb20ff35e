"""``x[i*i::i] = v``: assignment to a slice whose step is known at run time only."""

from __future__ import annotations

from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend.bounds import bounds_of
from stepwell.frontend.carries import Variables, loop
from stepwell.frontend.checks import check
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import INTEGER, cast, fresh, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.windowed import spread

ADVICE = "write a loop: for k in range(start, stop): if k % step == start % step: ..."


def has_traced_step(index: Any) -> bool:
    """Whether a slice in an index has a step known at run time only."""
    parts: tuple[Any, ...] = index if type(index) is tuple else (index,)
    return any(isinstance(p.step, Tensor) for p in parts if isinstance(p, slice))


def write_steps(x: Tensor, index: Any, value: Any) -> None:
    """Emit ``x[start:stop:step] = value`` with a traced step, element by element in a loop.

    The step must be positive; value : must have no axis along the slice
    """
    parts = spread(x, index if type(index) is tuple else (index,))
    stepped = [a for a, p in enumerate(parts) if isinstance(p, slice) and _is_traced(p.step)]
    at = stepped[0]
    part, size = parts[at], x.shape[at]
    given = fresh(lift(value, x.kind))
    if len(stepped) > 1 or given.ndim > sum(isinstance(p, slice) for p in parts[at + 1 :]):
        raise TraceError(
            f"a slice with a traced step is assigned one value, of no axis along it; {ADVICE}"
        )
    if part.step.shape or part.step.kind.kind not in ("signed", "unsigned"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    step = cast(part.step, INTEGER)
    known = step.graph.ranges.of(step)
    if known is None or known[0] < 1:
        words = ("a slice with a traced step goes forward, not by ", "")
        check(e.greater(step, 0), "ValueError", words, [step])
    step = e.minimum(step, max(size, 1))  # no overflow past the end
    bounds = bounds_of(slice(part.start, part.stop), size)
    place = [cast(lift(bounds.low), INTEGER)]

    def get() -> tuple[Any, ...]:
        return (place[0],)

    def put(values: tuple[Any, ...]) -> None:
        (place[0],) = values

    def body() -> None:
        place[0].graph.ranges.tell(place[0], 0, size - 1)
        x[(*parts[:at], place[0], *parts[at + 1 :])] = given
        place[0] = e.add(place[0], step)

    def more() -> Any:
        return e.less(place[0], bounds.high)

    loop(more, body, Variables(get, put, ("the place in the slice",), frozenset()))


def _is_traced(step: Any) -> bool:
    return isinstance(step, Tensor)
