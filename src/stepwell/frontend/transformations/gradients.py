"""`grad` and `value_and_grad`: gradients of scalar functions, in backward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepwell.core.shapes import show
from stepwell.core.tracebacks import entrance
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import full, lift
from stepwell.frontend.pytree import flatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.differentiated import Numbers, Wanted
from stepwell.frontend.transformations.transformed import Transformed


@entrance
def grad(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    allow_int: bool = False,
) -> Transformed:
    """Return a function that computes the gradient of ``fun``.

    fun : returns one float without axes; with ``has_aux`` a pair of that float and auxiliary
        values, which are returned unchanged
    argnums : the arguments to differentiate by: a number, or several; each is an array of floats,
        or any structure of arrays
    allow_int : allows integers and booleans among them; their gradients are of `sw.float0`

    The gradient has the structure, shapes and dtypes of the argument; it is a tuple if ``argnums``
    is one; with ``has_aux`` the result is a pair of the gradient and the auxiliary values. Call it
    in a traced function, or with NumPy arrays: then it is compiled at its first call.

    raises TypeError : ``fun`` does not return a float without axes, or an argument is not a float
    raises ValueError : there is no argument with such a number
    source : `jax.grad`

    >>> import numpy as np, stepwell as sw
    >>> sw.grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> sw.grad(lambda w, x: np.tanh(w["a"] * x), argnums=(0, 1))({"a": 0.0}, 2.0)
    ({'a': array(2.)}, array(0.))
    """

    def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = Backward("grad", function, argnums, allow_int).run(args, kwargs, has_aux)
        (_, aux), gradients = found
        return (gradients, aux) if has_aux else gradients

    return Transformed(fun, "grad", apply)


@entrance
def value_and_grad(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    allow_int: bool = False,
) -> Transformed:
    """Return a function that computes the result of ``fun`` and its gradient.

    fun, argnums, has_aux, allow_int : as in `grad`

    The function returns a pair: the value (with ``has_aux`` a pair of the value and the auxiliary
    values of ``fun``), and the gradient.

    raises TypeError : ``fun`` does not return a float without axes, or an argument is not a float
    raises ValueError : there is no argument with such a number
    source : `jax.value_and_grad`

    >>> import numpy as np, stepwell as sw
    >>> sw.value_and_grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    (array(9.), array([ 3., 12.]))
    """

    def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        what = "value_and_grad"
        found = Backward(what, function, argnums, allow_int).run(args, kwargs, has_aux)
        (value, aux), gradients = found
        return ((value, aux) if has_aux else value), gradients

    return Transformed(fun, "value_and_grad", apply)


class Backward:
    """Writes the gradient of a scalar function."""

    def __init__(
        self, what: str, function: Callable[..., Any], argnums: Numbers, allow_int: bool
    ) -> None:
        self.what, self.function, self.argnums = what, function, argnums
        self.allow_int = allow_int

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], has_aux: bool
    ) -> tuple[tuple[Any, Any], Any]:
        """Return the value and the auxiliary values of the function, and the gradients."""
        wanted = Wanted(self.what, self.function, self.argnums, args, self.allow_int)

        def parts(returned: Any) -> tuple[Any, Any]:
            main, aux = pair(self.what, wanted.name, returned) if has_aux else (returned, None)
            return self._number(main, wanted.name), aux

        region = wanted.region(kwargs, parts)
        one = full((), 1.0, region.main.values[0].kind)
        found, gradients = region.backward([one], region.floats)
        return found, wanted.gradients(gradients)

    def _number(self, returned: Any, name: str) -> Tensor:
        """Return the function's result, which must be a float without axes."""
        leaves, tree = flatten(returned)
        if tree is not ...:
            got = f"{type(returned).__name__}" if returned is not None else "None"
            help = "with more values, return (loss, them) and say has_aux=True"
            raise TypeError(f"{self.what} needs '{name}' to return one float, got {got}; {help}")
        try:
            value = lift(leaves[0])
        except TraceError:
            raise
        except TypeError:
            got = type(returned).__name__
            raise TypeError(f"{self.what} needs '{name}' to return a float, got {got}") from None
        said = f"{value.kind.name}[{show(value.shape)}]"
        if value.shape:
            raise TypeError(
                f"{self.what} needs '{name}' to return one float, got {said}: return its sum or "
                "mean, or use sw.jacrev for the derivative of each element"
            )
        if value.kind.kind != "float":
            raise TypeError(f"{self.what} needs '{name}' to return a float, got {said}")
        return value


def pair(what: str, name: str, returned: Any) -> tuple[Any, Any]:
    """Return the result of a function with ``has_aux``, which must be a pair."""
    if not isinstance(returned, tuple) or len(returned) != 2:  # pyright: ignore
        raise TypeError(
            f"{what} with has_aux=True needs '{name}' to return a pair, the value and what else "
            f"there is, got {type(returned).__name__}"
        )
    return returned  # pyright: ignore
