"""Powers whose exponent is known and small: products, quotients and roots, within 2 ulp as any."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from stepwell.transforms.loops.expand_math.division import evaluated
from stepwell.transforms.loops.expand_math.lanes import Lanes

INFINITY = float("inf")


def _fourth(x: Lanes) -> Lanes:
    square = x * x
    return square * square


def _endless(x: Lanes, limit: float, result: Lanes) -> Lanes:
    """Put right what a root makes of -inf: `pow` gives a limit, though the exponent is a half."""
    return x.equals(-INFINITY).choose(limit, result)


_RULES: dict[float, tuple[str, Callable[[Lanes], Lanes]]] = {
    -2.0: ("powf_m2", lambda x: 1.0 / x / x),
    -1.5: ("powf_m3_2", lambda x: _endless(x, 0.0, 1.0 / x / x.root())),
    -1.0: ("powf_m1", lambda x: 1.0 / x),
    -0.5: (
        "powf_m1_2",
        lambda x: x.equals(0.0).choose(INFINITY, _endless(x, 0.0, 1.0 / x.root())),
    ),
    1.5: ("powf_3_2", lambda x: _endless(x, INFINITY, x * x.root())),
    3.0: ("powf_3", lambda x: x * x * x),
    4.0: ("powf_4", _fourth),
}
"""Each with no more than three roundings, of which those of products may go beyond the floats only
where the result does: so ``1 / x / x``, not ``1 / (x * x)``."""


def formula(op: Operation) -> tuple[str, Callable[[Lanes], Lanes]] | None:
    """Return the name and the formula of a power, None where ``op`` is no such."""
    if not isinstance(op, math.PowFOp) or (lanes := evaluated(op.rhs)) is None:
        return None
    first = float(np.ravel(lanes)[0])
    return _RULES.get(first) if np.all(lanes == first) else None
