"""Writing a function of the user's as the region of an op: its arguments, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import lift
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Trace, current_trace


@dataclass(frozen=True)
class Results:
    """What a function returns in a region: values that it yields, and all that is no data."""

    values: list[Tensor]
    leaves: list[Any]
    """Every leaf; those that are values are yielded."""
    tree: Tree

    @property
    def types(self) -> list[tuple[DType, Shape]]:
        """The types of the values."""
        return [(v.kind, v.shape) for v in self.values]

    def of(self, results: Sequence[Tensor]) -> Any:
        """Return what the function returned, with the results of an op for its values."""
        found = iter(results)
        put = [same_number(leaf, next(found)) if _is_value(leaf) else leaf for leaf in self.leaves]
        return unflatten(self.tree, put)


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, Tensor)


def same_number(like: Any, value: Tensor) -> Tensor:
    """Return ``value``, which stands for a Python number where ``like`` does."""
    value.weak = isinstance(like, Tensor) and like.weak
    return value


def result_values(*parts: Any) -> Results:
    """Return what a function returned, taken apart."""
    leaves, tree = flatten(parts)
    return Results([leaf for leaf in leaves if isinstance(leaf, Tensor)], leaves, tree)


def write_region(
    what: str,
    name: str,
    primals: Sequence[Tensor],
    paths: Sequence[str],
    run: Callable[[list[Tensor]], Results],
) -> tuple[list[str], Results]:
    """Write a region; return its text, and what it yields.

    what, name : of the transformation and the function, for messages
    primals : what the region's arguments are
    paths : what the user calls them
    run : traces the function, for the region's arguments
    """
    trace = current_trace()
    seen = [trace.argument(p, v.kind, v.shape, v.made) for p, v in zip(paths, primals, strict=True)]
    for given, value in zip(seen, primals, strict=True):
        given.weak, given.cell = value.weak, value.cell
    with trace.block(seen) as text:
        results = run(seen)
        _check_unwritten(trace, what, name, seen, paths)
        trace.emit("yield", [lift(v) for v in results.values], ())
    return text, results


def _check_unwritten(
    trace: Trace, what: str, name: str, seen: Sequence[Tensor], paths: Sequence[str]
) -> None:
    """Refuse assignments to what the function is given, and to arrays from outside of it."""
    written = trace.journals[-1].written
    for value, path in zip(seen, paths, strict=True):
        if id(value) in written:
            raise TraceError(
                f"'{name}' assigns to its argument '{path}', which {what} does not allow: "
                f"assign to a copy, {path} = {path}.copy()"
            )
    if outside := trace.journals[-1].outside(trace.scopes[-1]):
        raise TraceError(
            f"'{name}' assigns to an array made at {outside[0].made}, outside of the function "
            f"that {what} is given: assign to a copy, or return what it becomes (has_aux=True)"
        )
