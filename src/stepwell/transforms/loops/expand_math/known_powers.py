"""Powers with a small constant exponent, by products, quotients and roots, within 2 ulp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from stepwell.transforms.loops.expand_math.division import evaluated
from stepwell.transforms.loops.expand_math.lanes import Lanes, square_root

INFINITY = float("inf")


def _fourth(x: Lanes) -> Lanes:
    square = x * x
    return square * square


def _endless(x: Lanes, limit: float, result: Lanes) -> Lanes:
    """Correct the root of -inf: `pow` has a limit there, even for an exponent of a half."""
    return x.equals(-INFINITY).choose(limit, result)


_RULES: dict[float, tuple[str, Callable[[Lanes], Lanes]]] = {
    -2.0: ("powf_m2", lambda x: 1.0 / x / x),
    -1.5: ("powf_m3_2", lambda x: _endless(x, 0.0, 1.0 / x / square_root(x))),
    -1.0: ("powf_m1", lambda x: 1.0 / x),
    -0.5: (
        "powf_m1_2",
        lambda x: x.equals(0.0).choose(INFINITY, _endless(x, 0.0, 1.0 / square_root(x))),
    ),
    1.5: ("powf_3_2", lambda x: _endless(x, INFINITY, x * square_root(x))),
    3.0: ("powf_3", lambda x: x * x * x),
    4.0: ("powf_4", _fourth),
}
"""Each has at most three roundings, and its products overflow or underflow only where the result
does: hence ``1 / x / x``, not ``1 / (x * x)``."""


def formula(op: Operation) -> tuple[str, Callable[[Lanes], Lanes]] | None:
    """Return the name and the formula of a power, None for other ops."""
    if not isinstance(op, math.PowFOp) or (lanes := evaluated(op.rhs)) is None:
        return None
    first = float(np.ravel(lanes)[0])
    return _RULES.get(first) if np.all(lanes == first) else None
