"""Trace a user's function as the region of an op: region arguments, yielded values, results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import lift
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.spelling import Verbatim
from stepwell.frontend.state.variables import TracedVariable
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import Trace, current_trace

Type: TypeAlias = tuple[DType, Shape]

_derivatives: ContextVar[int] = ContextVar("derivatives", default=0)


def derivatives() -> int:
    """Return the nesting depth of the derivatives being traced."""
    return _derivatives.get()


@dataclass(frozen=True)
class Results:
    """The result of a function in a region: tensors, which the region yields, and other leaves."""

    values: list[Tensor]
    leaves: list[Any]
    """Every leaf of the result; the region yields the leaves that are tensors."""
    tree: Tree

    @property
    def types(self) -> list[Type]:
        """The types of the yielded values."""
        return [(v.kind, v.shape) for v in self.values]

    def of(self, results: Sequence[Tensor]) -> Any:
        """Return the function's result, with the values replaced by the results of an op."""
        found = iter(results)
        put = [same_number(v, next(found)) if isinstance(v, Tensor) else v for v in self.leaves]
        return unflatten(self.tree, put)


def same_number(like: Any, value: Tensor) -> Tensor:
    """Return ``value``, marked as a Python number (weakly typed) if ``like`` is one."""
    value.weak = isinstance(like, Tensor) and like.weak
    return value


def taken_apart(returned: Any) -> Results:
    """Flatten the result of a function."""
    leaves, tree = flatten(returned)
    return Results([leaf for leaf in leaves if isinstance(leaf, Tensor)], leaves, tree)


@dataclass(frozen=True)
class Region:
    """A function as the region of an op; the op can be emitted more than once."""

    primals: Sequence[Tensor]
    """The operands that become the region's arguments: floats."""
    text: list[str]
    main: Results
    """The result of the function that is differentiated."""
    aux: Results
    """The auxiliary result, which is not differentiated."""
    depth: int
    """The nesting depth of regions at which the text was written (for its indentation)."""

    @property
    def floats(self) -> list[int]:
        """The indices of the differentiable results: those of float type."""
        return [k for k, v in enumerate(self.main.values) if v.kind.kind == "float"]

    def run(self) -> tuple[Any, Any]:
        """Emit the op without derivatives; return the function's results (main, aux)."""
        return self._put(self._emit("vjp", (), (), (), ()))

    def backward(
        self, cotangents: Sequence[Tensor], of: Sequence[int], wrt: Sequence[int] | None = None
    ) -> tuple[tuple[Any, Any], Sequence[Tensor]]:
        """Emit ``nd.vjp``; return the function's results and the cotangents of the primals."""
        wrt = range(len(self.primals)) if wrt is None else wrt
        more = [(self.primals[n].kind, self.primals[n].shape) for n in wrt]
        found = self._emit("vjp", cotangents, wrt, of, more)
        return self._put(found), found[len(found) - len(more) :]

    def forward(
        self, tangents: Sequence[Tensor], wrt: Sequence[int] | None = None
    ) -> tuple[tuple[Any, Any], Sequence[Tensor]]:
        """Emit ``nd.jvp``; return the function's results and the tangents of its float results."""
        wrt = range(len(self.primals)) if wrt is None else wrt
        more = [self.main.types[k] for k in self.floats]
        found = self._emit("jvp", tangents, wrt, self.floats, more)
        return self._put(found), found[len(found) - len(more) :]

    def _put(self, found: Sequence[Tensor]) -> tuple[Any, Any]:
        count = len(self.main.values)
        return self.main.of(found[:count]), self.aux.of(found[count:])

    def _emit(
        self,
        op: str,
        given: Sequence[Tensor],
        wrt: Sequence[int],
        of: Sequence[int],
        more: Sequence[Type],
    ) -> tuple[Tensor, ...]:
        trace = current_trace()
        deeper = "  " * (len(trace.scopes) - self.depth)
        return trace.emit(
            op,
            [*self.primals, *given],
            [*self.main.types, *self.aux.types, *more],
            [text.replace("\n", f"\n{deeper}") for text in self.text],
            wrt=wrt,
            of=of,
            operandSegmentSizes=Verbatim(f"array<i32: {len(self.primals)}, {len(given)}>"),
        )


def write_region(
    what: str,
    name: str,
    primals: Sequence[Tensor],
    paths: Sequence[str],
    run: Callable[[list[Tensor]], tuple[Any, Any]],
    shapes: Sequence[Shape] | None = None,
) -> Region:
    """Trace a function into the region of an op.

    what, name : the transformation and the function, for messages
    primals : the operands that the region's arguments stand for
    paths : the user's names of the primals
    run : traces the function on the region's arguments; returns its main and its auxiliary result
    shapes : the shapes of the region's arguments, if they differ from those of the primals
    """
    trace = current_trace()
    shapes = [v.shape for v in primals] if shapes is None else shapes
    given = zip(paths, primals, shapes, strict=True)
    seen = [trace.argument(path, v.kind, shape, v.created) for path, v, shape in given]
    for given, value in zip(seen, primals, strict=True):
        given.weak, given.cell = value.weak, value.cell
    with trace.block(seen) as text, _deeper(what not in ("checkpoint", "vmap")):
        main, aux = map(taken_apart, run(seen))
        _check_unwritten(trace, what, name, seen, paths)
        trace.emit("yield", [lift(v) for v in (*main.values, *aux.values)], ())
    return Region(primals, text, main, aux, len(trace.scopes))


@contextmanager
def _deeper(counts: bool) -> Generator[None]:
    token = _derivatives.set(_derivatives.get() + counts)
    try:
        yield
    finally:
        _derivatives.reset(token)


def _check_unwritten(
    trace: Trace, what: str, name: str, seen: Sequence[Tensor], paths: Sequence[str]
) -> None:
    """Refuse assignments to the function's arguments and to arrays made outside of the function."""
    written = trace.journals[-1].written
    for value, path in zip(seen, paths, strict=True):
        if id(value) in written:
            raise TraceError(
                f"'{name}' assigns to its argument '{path}', which {what} does not allow: "
                f"assign to a copy, {path} = {path}.copy()"
            )
    more = "" if what == "vmap" else " (has_aux=True)"
    if outside := trace.journals[-1].outside(trace.scopes[-1]):
        if isinstance(outside[0], TracedVariable):
            raise TraceError(
                f"'{name}' assigns to the variable '{outside[0].called}', which {what} does not "
                f"allow: return what it becomes{more}, and assign that after the call"
            )
        raise TraceError(
            f"'{name}' assigns to an array made at {outside[0].created}, outside of the function "
            f"that {what} is given: assign to a copy, or return what it becomes{more}"
        )
