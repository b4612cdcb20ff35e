"""Random numbers from keys: `stepwell.random`.

``key = sw.random.key(0)``; ``sw.random.normal(key, (3, 4))`` is always the same array: on every
machine and target, for any number of threads, inside and outside of a function given to
`stepwell.jit`. Use a key once: `split` derives several keys, `fold_in` one for each loop iteration.

Element n of a drawn array depends only on the key and on n: the counter-based generator
Threefry-2x32-20 encrypts n under the key. Bits, integers and uniform numbers are identical
everywhere to the last bit; derived numbers (`normal`, ...) are so if `log` and `exp` are.
"""

from __future__ import annotations

from stepwell.frontend.distributions import (
    bernoulli,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    rayleigh,
    truncated_normal,
    uniform,
)
from stepwell.frontend.drawing import bits, fold_in, key, split
from stepwell.frontend.drawn_places import (
    categorical,
    choice,
    integers,
    permutation,
    randint,
    shuffle,
)
from stepwell.frontend.rejection import beta, chisquare, dirichlet, gamma, poisson, t

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "integers",
    "key",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "rayleigh",
    "shuffle",
    "split",
    "t",
    "truncated_normal",
    "uniform",
]


def __dir__() -> list[str]:
    """Return the public names, without imports."""
    return __all__
