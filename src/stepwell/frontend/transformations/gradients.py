"""`grad` and `value_and_grad`: derivatives of a number by arguments, backward."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from stepwell.core.shapes import show
from stepwell.frontend.promotion import full, lift
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten
from stepwell.frontend.spelling import Verbatim
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.regions import (
    Results,
    result_values,
    same_number,
    write_region,
)
from stepwell.frontend.transformations.transformed import Transformed, call
from stepwell.frontend.transformations.zero import zeros_of_float0

Numbers = int | Sequence[int]


def grad(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    allow_int: bool = False,
) -> Transformed:
    """Return a function that computes the gradient of ``fun``.

    fun : returns one float without axes; with ``has_aux`` a pair of that and more values, which
        are returned as they are
    argnums : the arguments that the gradient is by: a number, or several; each is an array of
        floats, or any structure of those
    allow_int : lets integers and booleans be among them; their gradients are of `sw.float0`

    The gradient has the structure, shapes and dtypes of the argument, a tuple of such where
    ``argnums`` is one; with ``has_aux`` a pair of it and what else ``fun`` returns. Call it in a
    function that is traced, or with NumPy arrays: then it is compiled at its first call.

    raises TypeError : ``fun`` returns no float without axes, or an argument is no float
    raises ValueError : there is no argument of such a number
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


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    allow_int: bool = False,
) -> Transformed:
    """Return a function that computes what ``fun`` returns and its gradient.

    fun, argnums, has_aux, allow_int : as those of `grad`

    It returns a pair: the value (with ``has_aux`` a pair of the value and what else ``fun``
    returns), and the gradient.

    raises TypeError : ``fun`` returns no float without axes, or an argument is no float
    raises ValueError : there is no argument of such a number
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


class Wanted:
    """The arguments that a derivative is by, taken apart: floats, and what is none.

    what : the transformation, for messages
    """

    def __init__(
        self,
        what: str,
        function: Callable[..., Any],
        argnums: Numbers,
        args: tuple[Any, ...],
        allow_int: bool,
    ) -> None:
        self.what, self.args = what, args
        self.name = str(getattr(function, "__name__", "function"))
        self.single = isinstance(argnums, int)
        self.numbers = _numbers(what, argnums, len(args), self.name)
        names = _names(function, len(args))
        self.trees: dict[int, Tree] = {}
        self.leaves: dict[int, list[Any]] = {}
        self.floats: list[Tensor] = []
        """The values that there are derivatives by."""
        self.paths: list[str] = []
        for n in dict.fromkeys(self.numbers):
            leaves, tree = flatten(args[n])
            self.trees[n], self.leaves[n] = tree, []
            for path, leaf in zip(paths(tree, names[n]), leaves, strict=True):
                value = self._value(leaf, path)
                self.leaves[n].append(value)
                if value.kind.kind == "float":
                    self.floats.append(value)
                    self.paths.append(path)
                elif not allow_int:
                    raise TypeError(
                        f"{what} is by floats, but argument '{path}' of '{self.name}' is "
                        f"{value.kind.name}: pass floats (3.0, x.astype(float)), choose others by "
                        "argnums=, or allow_int=True for gradients of sw.float0"
                    )

    def _value(self, leaf: Any, path: str) -> Tensor:
        try:
            return lift(leaf)
        except TypeError:
            raise TypeError(
                f"{self.what} is by floats, but argument '{path}' of '{self.name}' is "
                f"{type(leaf).__name__}: choose others by argnums="
            ) from None

    def put(self, values: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return the arguments with ``values`` for those that there are derivatives by."""
        found, args = iter(values), list(self.args)
        for n, tree in self.trees.items():
            floats = [leaf.kind.kind == "float" for leaf in self.leaves[n]]
            given = [
                next(found) if is_float else leaf
                for is_float, leaf in zip(floats, self.leaves[n], strict=True)
            ]
            args[n] = unflatten(tree, given)
        return tuple(args)

    def gradients(self, values: Sequence[Tensor]) -> Any:
        """Return what is put together of ``values``, one for each of `floats`."""
        found = iter(values)
        by_number = {
            n: unflatten(
                tree,
                [
                    same_number(leaf, next(found))
                    if leaf.kind.kind == "float"
                    else zeros_of_float0(leaf.shape)
                    for leaf in self.leaves[n]
                ],
            )
            for n, tree in self.trees.items()
        }
        if self.single:
            return by_number[self.numbers[0]]
        return tuple(by_number[n] for n in self.numbers)


class Backward:
    """Writes ``nd.vjp`` of a function that returns a number."""

    def __init__(
        self, what: str, function: Callable[..., Any], argnums: Numbers, allow_int: bool
    ) -> None:
        self.what, self.function, self.argnums = what, function, argnums
        self.allow_int = allow_int

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], has_aux: bool
    ) -> tuple[tuple[Any, Any], Any]:
        """Return the value and what else the function returns, and the gradients."""
        wanted = Wanted(self.what, self.function, self.argnums, args, self.allow_int)

        def traced(seen: list[Tensor]) -> Results:
            returned = call(self.function, *wanted.put(seen), **kwargs)
            aux = None
            if has_aux:
                returned, aux = pair(self.what, wanted.name, returned)
            return result_values(self._number(returned, wanted.name), aux)

        body, results = write_region(self.what, wanted.name, wanted.floats, wanted.paths, traced)
        n = len(wanted.floats)
        found = current_trace().emit(
            "vjp",
            [*wanted.floats, full((), 1.0, results.values[0].kind)],
            [*results.types, *((v.kind, v.shape) for v in wanted.floats)],
            body,
            wrt=range(n),
            of=(0,),
            operandSegmentSizes=Verbatim(f"array<i32: {n}, 1>"),
        )
        count = len(results.values)
        return results.of(found[:count]), wanted.gradients(found[count:])

    def _number(self, returned: Any, name: str) -> Tensor:
        """Return the float without axes that the function returned."""
        leaves, tree = flatten(returned)
        if tree is not ...:
            got = f"{type(returned).__name__}" if returned is not None else "None"
            help = "with more values, return (loss, them) and say has_aux=True"
            raise TypeError(f"{self.what} needs '{name}' to return one float, got {got}; {help}")
        try:
            value = lift(leaves[0])
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
    """Return what a function returns with ``has_aux``."""
    if not isinstance(returned, tuple) or len(returned) != 2:  # pyright: ignore
        raise TypeError(
            f"{what} with has_aux=True needs '{name}' to return a pair, the value and what else "
            f"there is, got {type(returned).__name__}"
        )
    return returned  # pyright: ignore


def _numbers(what: str, argnums: Numbers, count: int, name: str) -> tuple[int, ...]:
    """Return the numbers of arguments, from 0 on."""
    given = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in given:
        if isinstance(n, bool) or not isinstance(n, int):  # pyright: ignore
            raise TypeError(f"argnums= of {what} names arguments by number, got {n!r}")
        if not -count <= n < count:
            raise ValueError(
                f"argnums={n} of {what}, but '{name}' is called with {count} "
                f"argument{'s' if count != 1 else ''}"
            )
    return tuple(n % count for n in given)


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """Return what the arguments of ``function`` are called."""
    found: list[str] = []
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        parameters = ()
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            found += [f"{p.name}[{k}]" for k in range(count - len(found))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.name)
    return [*found, *(f"argument {k}" for k in range(len(found), count))]
