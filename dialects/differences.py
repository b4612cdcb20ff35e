"""Compare the derivatives of a function with central differences, and with each other.

Forward mode is compared with differences in f64 along a random direction, for elements at which
differences of two widths agree: the others are at a kink or a step. Reverse mode is compared with
forward mode: ``c . (J t) = (J^T c) . t``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.nd.gradients.functions import write_derivative
from stepwell.dialects.nd.gradients.reverse import is_float
from stepwell.dialects.nd.syntax import element
from stepwell.dialects.nd.transformations import JvpOp, VjpOp
from stepwell.dialects.types import dtype

Array: TypeAlias = "NDArray[Any]"
Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]

WIDTH = 1e-5
"""Width of central differences in f64: the error is about its square plus 1e-16 / width."""
AGREE = 1e-4
"""Tolerance, relative to the largest, between differences of two widths away from kinks."""
CLOSE = 1e-3
"""Tolerance between a derivative and differences."""
DUAL = 1e-8
"""Tolerance between the two modes, relative to the size of the summands."""
FUEL = 300_000
"""The number of ops that one call may evaluate."""


@dataclass
class Derived:
    """A function with its two derivatives."""

    module: ModuleOp
    name: str = "main"
    resources: Mapping[str, Array] = field(default_factory=dict[str, Array])
    wrt: list[int] = field(init=False)
    of: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Write the derivatives."""
        function = next(
            op
            for op in self.module.ops
            if isinstance(op, func.FuncOp) and op.sym_name.data == self.name
        )
        last = function.body.block.last_op
        assert last is not None
        self.wrt = [n for n, a in enumerate(function.args) if is_float(a)]
        self.of = [n for n, r in enumerate(last.operands) if is_float(r)]
        self.results = len(last.operands)
        self.kinds = [dtype(element(function.args[n])).name for n in self.wrt]
        if self.wrt and self.of:
            for word, kind in (("vjp", VjpOp), ("jvp", JvpOp)):
                name = f"{self.name}_{word}"
                write_derivative(function, name, kind, self.wrt, self.of, whole=True)
            self.module.verify()

    @property
    def text(self) -> str:
        """The module as text."""
        return str(self.module)

    def run(self, arguments: Sequence[Array], what: str = "") -> tuple[Array, ...]:
        """Call the function, or its derivative with suffix ``what``."""
        with np.errstate(all="ignore"):
            interpreter = Interpreter(self.module, self.resources, fuel=FUEL)
            return interpreter.call(self.name + what, list(arguments))


@dataclass(frozen=True)
class Compared:
    """The extent of a check."""

    elements: int
    """The number of elements of results whose tangents were compared with differences."""
    dual: bool
    """Whether the two modes were compared."""


def check(
    derived: Derived, arguments: Sequence[Array], seed: int = 0, *, kinks: bool = False
) -> Compared:
    """Raise an error unless the derivatives of a function in f64 are correct at ``arguments``.

    kinks : whether arguments may be at kinks; differences, invalid there, are then not computed
    """
    random = np.random.default_rng(seed)
    wrt, of, n = derived.wrt, derived.of, derived.results
    if not wrt or not of:
        return Compared(0, False)
    outs = derived.run(arguments)
    tangents = [np.asarray(random.uniform(-1, 1, np.shape(arguments[k]))) for k in wrt]
    forward = derived.run([*arguments, *tangents], "_jvp")
    _same(forward[:n], outs, "forward mode")
    found = forward[n:]
    elements = 0
    if not kinks:
        elements = _differences(derived, arguments, tangents, [outs[k] for k in of], found)
    cotangents = [np.asarray(random.uniform(-1, 1, np.shape(outs[k]))) for k in of]
    backward = derived.run([*arguments, *cotangents], "_vjp")
    _same(backward[:n], outs, "reverse mode")
    gradients = backward[n:]
    finite = all(np.isfinite(a).all() for a in found)
    if finite:
        _dual(cotangents, found, gradients, tangents)
    return Compared(elements, finite)


def _same(got: Sequence[Array], want: Sequence[Array], mode: str) -> None:
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        said = f"{mode} changes result {number}"
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=said)


def _central_differences(
    run: Run,
    arguments: Sequence[Array],
    tangents: Sequence[Array],
    wrt: Sequence[int],
    of: Sequence[int],
) -> list[list[Array]]:
    """Return central differences of two widths."""

    def at(step: float) -> list[Array]:
        moved = list(arguments)
        for k, t in zip(wrt, tangents, strict=True):
            moved[k] = np.asarray(arguments[k] + step * t)
        results = run(moved)
        return [results[k] for k in of]

    with np.errstate(all="ignore"):
        return [
            [np.asarray((a - b) / (2 * w)) for a, b in zip(at(w), at(-w), strict=True)]
            for w in (WIDTH, WIDTH / 2)
        ]


def backward_off(
    run: Run,
    derivative: Run,
    arguments: Sequence[Array],
    wrt: Sequence[int],
    of: Sequence[int],
) -> str | None:
    """Describe how a function's reverse-mode derivative deviates from differences; "" if it agrees.

    None if ``arguments`` allow no comparison: a value is not finite, or not smooth.
    """
    random = np.random.default_rng(0)
    tangents = [np.asarray(random.uniform(-1, 1, np.shape(arguments[k]))) for k in wrt]
    outs = run(arguments)
    cotangents = [np.asarray(random.uniform(-1, 1, np.shape(outs[k]))) for k in of]
    rough = _central_differences(run, arguments, tangents, wrt, of)
    for a, b in zip(*rough, strict=True):
        if not np.isfinite(a - b).all() or (np.abs(a - b) > AGREE * (np.abs(b) + 1e-3)).any():
            return None
    gradients = derivative([*arguments, *cotangents])[len(outs) :]
    forth = [np.asarray(c * t) for c, t in zip(cotangents, rough[1], strict=True)]
    back = [np.asarray(g * t) for g, t in zip(gradients, tangents, strict=True)]
    a, b = (float(sum(v.sum() for v in each)) for each in (forth, back))
    size = sum(float(np.abs(v).sum()) for v in (*forth, *back)) + 1e-3
    return "" if abs(a - b) <= CLOSE * size else f"{b:.6g} along a direction, not {a:.6g}"


def forward_off(
    run: Run,
    derivative: Run,
    arguments: Sequence[Array],
    wrt: Sequence[int],
    of: Sequence[int],
) -> str | None:
    """Describe how a function's forward-mode derivative deviates, like `backward_off`."""
    random = np.random.default_rng(0)
    tangents = [np.asarray(random.uniform(-1, 1, np.shape(arguments[k]))) for k in wrt]
    rough = _central_differences(run, arguments, tangents, wrt, of)
    found = derivative([*arguments, *tangents])[len(run(arguments)) :]
    for a, b, got in zip(*rough, found, strict=True):
        if not np.isfinite(a - b).all() or (np.abs(a - b) > AGREE * (np.abs(b) + 1e-3)).any():
            return None
        off = ~(np.abs(got - b) <= CLOSE * (np.abs(b) + 1e-3))
        if off.any():
            place = tuple(int(i) for i in np.argwhere(off)[0])
            return f"{got[place]:.6g} at {list(place)}, not {b[place]:.6g}"
    return ""


def _differences(
    derived: Derived,
    arguments: Sequence[Array],
    tangents: Sequence[Array],
    outs: Sequence[Array],
    found: Sequence[Array],
) -> int:
    """Compare tangents with differences; return the number of compared elements."""

    compared = 0
    rough = _central_differences(derived.run, arguments, tangents, derived.wrt, derived.of)
    pairs = zip(*rough, found, outs, strict=True)
    for number, (first, second, got, out) in enumerate(pairs):
        finite = np.isfinite(first) & np.isfinite(second) & np.isfinite(out)
        noise = 1e-15 * np.abs(out) / WIDTH
        scale = np.abs(second) + 1e-3
        with np.errstate(all="ignore"):
            smooth = finite & (np.abs(first - second) <= AGREE * scale + 10 * noise)
            off = smooth & ~(np.abs(got - second) <= CLOSE * scale + 100 * noise)
        compared += int(smooth.sum())
        if off.any():
            place = tuple(int(i) for i in np.argwhere(off)[0])
            raise AssertionError(
                f"tangent {number} at {list(place)} is {got[place]}, differences say "
                f"{second[place]} ({off.sum()} of {off.size} elements are off)"
            )
    return compared


def _dual(
    cotangents: Sequence[Array],
    found: Sequence[Array],
    gradients: Sequence[Array],
    tangents: Sequence[Array],
) -> None:
    forth = [np.asarray(c * t) for c, t in zip(cotangents, found, strict=True)]
    back = [np.asarray(g * t) for g, t in zip(gradients, tangents, strict=True)]
    a, b = (float(sum(v.sum() for v in each)) for each in (forth, back))
    size = sum(float(np.abs(v).sum()) for v in (*forth, *back)) + 1e-3
    if not abs(a - b) <= DUAL * size:
        raise AssertionError(f"the modes disagree: forward gives {a!r}, reverse {b!r}")


def check_second(derived: Derived, arguments: Sequence[Array], seed: int = 1) -> Compared:
    """Check the derivatives of the reverse-mode derivative that `Derived` has built."""
    random = np.random.default_rng(seed)
    outs = derived.run(arguments)
    cotangents = [np.asarray(random.uniform(-1, 1, np.shape(outs[k]))) for k in derived.of]
    second = Derived(derived.module, f"{derived.name}_vjp", derived.resources)
    return check(second, [*arguments, *cotangents], seed)
