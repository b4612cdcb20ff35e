"""`check_grads`: compare derivatives with finite differences, and forward with backward mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.core.tracebacks import entrance
from stepwell.frontend.errors import TraceError
from stepwell.frontend.jit import jit
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace
from stepwell.frontend.transformations.differentiated import names_of
from stepwell.frontend.transformations.gradients import grad
from stepwell.frontend.transformations.products import jvp
from stepwell.frontend.transformations.transformed import call, check_function, name_of

EPS = float(np.cbrt(np.finfo(np.float64).eps))
"""The step of central differences, relative to an element: it minimizes their error."""
ATOL, RTOL = 1e-6, 1e-5
"""The tolerated errors: those of central differences in float64, with a margin of about 100."""
MAX_MOVED = 64
"""The most elements, of all arguments together, that are moved; larger inputs are sampled."""

Array = NDArray[Any]


@entrance
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Raise if the derivatives of a function differ from finite differences.

    f : takes and returns arrays, numbers, and any structures of them
    args : a tuple or list of its arguments; floats are converted to float64, and everything is
        computed in float64. They should lie away from kinks
    order : the highest order of derivatives that is checked
    modes : "fwd" for forward mode (`jvp`), "rev" for backward mode (`grad`), or both; then their
        derivatives are also compared with each other
    atol, rtol : the absolute and relative tolerance: 1e-6 and 1e-5
    eps : the step of central differences, relative to the element: 6e-6

    If arguments have more than 64 elements together, 64 are sampled, always the same ones.

    raises AssertionError : a derivative differs; the message names the argument, the index, the
        expected and the computed value
    raises TypeError, ValueError : ``order``, ``modes`` or ``args`` are invalid
    source : `jax.test_util.check_grads`

    >>> import numpy as np, stepwell as sw
    >>> sw.check_grads(lambda x, y: np.tanh(x) * y, (np.array([0.1, 0.2]), 3.0))
    """
    check_function("check_grads", f)
    if active_trace() is not None:
        raise TraceError("check_grads calls a function with numbers: not inside of a traced one")
    if not isinstance(args, tuple | list):  # pyright: ignore
        raise TypeError(f"check_grads takes args as a tuple or list, got {type(args).__name__}")
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:  # pyright: ignore
        raise ValueError(f"order= of check_grads is 1 or more, got {order!r}")
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"modes= of check_grads has 'fwd', 'rev' or both, got {modes!r}")
    leaves, tree = flatten(tuple(args))
    names = [
        p for n, a in zip(names_of(f, len(args)), args, strict=True) for p in paths(_tree(a), n)
    ]
    check = _Check(
        name_of(f),
        modes,
        names,
        ATOL if atol is None else atol,
        RTOL if rtol is None else rtol,
        EPS if eps is None else eps,
    )
    wide = [_wide(leaf) for leaf in leaves]
    at = [k for k, leaf in enumerate(wide) if _is_float(leaf)]
    if not at:
        raise TypeError(f"check_grads of '{check.name}': none of its arguments is a float")

    def flat(*floats: Any) -> list[Any]:
        """Return the float results of ``f``, called with these floats among its arguments."""
        put = list(wide)
        for k, value in zip(at, floats, strict=True):
            put[k] = value
        found = flatten(call(f, *unflatten(tree, put)))[0]
        return [v for v in found if isinstance(v, Tensor) and v.kind.kind == "float"]

    check.names = [names[k] for k in at]
    check.run(flat, [wide[k] for k in at], order, "")


def _tree(value: Any) -> Tree:
    return flatten(value)[1]


def _wide(leaf: Any) -> Any:
    """Return floats as float64 arrays, other leaves unchanged."""
    if isinstance(leaf, float) and not isinstance(leaf, np.generic):
        return np.float64(leaf)
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "f":
        return leaf.astype(np.float64)
    if getattr(getattr(leaf, "dtype", None), "name", "") == "bfloat16":
        return np.asarray(leaf).astype(np.float64)
    return leaf


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "f"


class _Check:
    """Compares derivatives of functions of floats with finite differences."""

    def __init__(
        self,
        name: str,
        modes: Sequence[str],
        names: list[str],
        atol: float,
        rtol: float,
        eps: float,
    ) -> None:
        self.name, self.modes, self.names = name, modes, names
        self.atol, self.rtol, self.eps = atol, rtol, eps

    def run(self, f: Callable[..., Any], x: list[Any], order: int, of: str) -> None:
        """Check derivatives of ``f`` at ``x`` up to ``order``.

        of : a prefix such as "the gradient of " if ``f`` is itself a derivative
        """
        drawn = np.random.default_rng(len(of))
        shapes = [np.shape(y) for y in jit(f)(*x)]
        if not shapes:
            raise TypeError(f"check_grads: '{self.name}' returns no floats")
        weights = [drawn.uniform(0.5, 1.5, s) for s in shapes]
        tangents = [drawn.uniform(0.5, 1.5, np.shape(v)) for v in x]

        def total(*floats: Any) -> Any:
            parts = [(w * y).sum() for w, y in zip(weights, f(*floats), strict=True)]
            return sum(parts[1:], parts[0])

        numbers = tuple(range(len(x)))
        value, gradient = jit(total), grad(total, numbers)
        backward = self.backward(value, gradient, x, of) if "rev" in self.modes else None
        if "fwd" in self.modes:
            forward = self.forward(f, x, tangents, of)
            if backward is not None:
                pairs = zip(weights, forward, strict=True)
                one = sum(float(np.sum(w * t)) for w, t in pairs)
                two = sum(float(np.sum(g * t)) for g, t in zip(backward, tangents, strict=True))
                self.same(f"{of}forward mode against reverse mode, in a direction", two, one)
        if order > 1 and "rev" in self.modes:
            self.run(lambda *v: list(call(gradient, *v)), x, order - 1, f"the gradient of {of}")
        elif order > 1:

            def along(*floats: Any) -> list[Any]:
                return jvp(f, floats, tangents)[1]

            self.run(along, x, order - 1, f"the derivative in a direction of {of}")

    def backward(self, value: Any, gradient: Any, x: list[Any], of: str) -> list[Array]:
        """Compare the gradient of a scalar function with differences, element by element."""
        found = [np.asarray(g) for g in gradient(*x)]
        places = [(k, i) for k, v in enumerate(x) for i in np.ndindex(np.shape(v))]
        if len(places) > MAX_MOVED:
            chosen = np.random.default_rng(0).choice(len(places), MAX_MOVED, replace=False)
            places = [places[n] for n in sorted(chosen)]
        for k, i in places:
            step = self.eps * max(1.0, abs(float(x[k][i])))
            ends = [float(value(*self.moved(x, k, i, d))) for d in (step, -step)]
            where = f"[{', '.join(map(str, i))}]" if i else ""
            what = f"{of}reverse mode, by argument '{self.names[k]}'{where}"
            self.same(what, (ends[0] - ends[1]) / (2 * step), float(found[k][i]))
        return found

    def moved(self, x: list[Any], k: int, i: tuple[int, ...], by: float) -> list[Any]:
        """Return ``x`` with one element moved."""
        changed = np.array(x[k], np.float64)
        changed[i] += by
        return [*x[:k], changed, *x[k + 1 :]]

    def forward(
        self, f: Callable[..., Any], x: list[Any], tangents: list[Any], of: str
    ) -> list[Array]:
        """Compare the directional derivative with differences."""
        found = [np.asarray(t) for t in jvp(f, x, tangents)[1]]
        ends: list[list[Any]] = []
        compiled = jit(f)
        for by in (self.eps, -self.eps):
            ends.append(compiled(*(v + by * t for v, t in zip(x, tangents, strict=True))))
        for number, got in enumerate(found):
            expected = (np.asarray(ends[0][number]) - np.asarray(ends[1][number])) / (2 * self.eps)
            for i in np.ndindex(got.shape):
                where = "" if len(found) == 1 and not i else f" {number}"
                where += f"[{', '.join(map(str, i))}]" if i else ""
                self.same(f"{of}forward mode, of result{where}", float(expected[i]), float(got[i]))
        return found

    def same(self, what: str, expected: float, got: float) -> None:
        """Raise if two numbers differ."""
        if not abs(expected - got) <= self.atol + self.rtol * abs(expected):
            raise AssertionError(f"'{self.name}': {what}: expected {expected:.9g}, got {got:.9g}")
