"""Random numbers from keys: `stepwell.random`.

``key = sw.random.key(0)``; ``sw.random.normal(key, (3, 4))`` is always the same array: on every
machine and target, for any number of threads, in a function given to `stepwell.jit` and outside of
one. A key is used once: `split` makes several of one, `fold_in` one for each step of a loop.

Element n of a drawn array depends on the key and on n alone: the counter-based generator
Threefry-2x32-20 encrypts n under the key. Bits, integers and uniform numbers are the same to the
last bit everywhere; what is computed of them (`normal`, ...) as far as `log` and `exp` are.
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
    """Leave out what is imported."""
    return __all__
