"""`vjp`, `jvp`, `linearize` and `hvp`: derivatives of any function in given directions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stepwell.core.tracebacks import entrance
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import cast, is_number, lift
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace
from stepwell.frontend.transformations.differentiated import Wanted
from stepwell.frontend.transformations.gradients import grad, pair
from stepwell.frontend.transformations.regions import Region
from stepwell.frontend.transformations.residuals import (
    arguments_later,
    compute_later,
    mismatch,
    unlike,
)
from stepwell.frontend.transformations.transformed import Transformed, check_function, name_of
from stepwell.frontend.transformations.zero import is_float0, zeros_of_float0

Fun = Callable[..., Any]


@entrance
def vjp(fun: Fun, *primals: Any, has_aux: bool = False) -> Any:
    """Return the result of ``fun``, and a function from its cotangents to those of ``primals``.

    fun : takes and returns arrays, numbers, and any structures of them; with ``has_aux`` it
        returns a pair of such a result and auxiliary values
    primals : its arguments
    returns : ``(out, vjp_fn)``, with ``has_aux`` ``(out, vjp_fn, aux)``. ``vjp_fn`` takes
        cotangents in the structure of ``out`` and returns a tuple of cotangents of ``primals``.
        Integers and booleans have cotangents of `sw.float0`

    ``fun`` is computed once. ``vjp_fn`` keeps the residuals for the backward pass; it is a separate
    program that can be called any number of times. In a traced function both are one program. In a
    trace, a ``vjp_fn`` that was made outside of it computes ``fun`` again, of ``primals`` as they
    were.

    raises TypeError : cotangents have another structure than ``out``, or other dtypes
    raises ValueError : cotangents have other shapes
    source : `jax.vjp`

    >>> import numpy as np, stepwell as sw
    >>> out, vjp_fn = sw.vjp(lambda x, y: x * np.sin(y), np.array([1.0, 2.0]), 0.0)
    >>> out, vjp_fn(np.array([10.0, 100.0]))
    (array([0., 0.]), (array([0., 0.]), array(210.)))
    """
    check_function("vjp", fun)
    name = name_of(fun)
    if active_trace() is not None:
        wanted, region = _region("vjp", fun, primals, has_aux)
        out, aux = region.run()

        def pull(given: Sequence[Any], named: Sequence[str]) -> Any:
            cotangents = _matched(named, given, region.main.values, "cotangent")
            return wanted.gradients(region.backward(cotangents, region.floats)[1])

    else:
        primals = _copied_arrays(primals)
        (out, aux), kept = _compiled("vjp", fun, has_aux)(primals, ())

        def pull(given: Sequence[Any], named: Sequence[str]) -> Any:
            if active_trace() is not None:
                return _compiled("pull", fun, has_aux)(primals, given)
            return kept("cotangent", named, given)

    tree = flatten(out)[1]

    @entrance
    def vjp_fn(cotangents: Any, /) -> Any:
        given = _leaves("vjp_fn", "cotangents", cotangents, tree, f"what '{name}' returned")
        return pull(given, paths(tree, "cotangents"))

    return (out, vjp_fn, aux) if has_aux else (out, vjp_fn)


@entrance
def jvp(fun: Fun, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Return the result of ``fun`` and its derivative in the direction of ``tangents``.

    fun : takes and returns arrays, numbers, and any structures of them; with ``has_aux`` it
            returns a pair of such a result and auxiliary values
        primals : a tuple or list of its arguments
        tangents : have the structure, shapes and dtypes of ``primals``; tangents of integers and
            booleans are of `sw.float0`
    returns : ``(out, tangents_out)``, with ``has_aux`` ``(out, tangents_out, aux)``

    raises TypeError : tangents have another structure than ``primals``, or other dtypes
    raises ValueError : tangents have other shapes
    source : `jax.jvp`

    >>> import numpy as np, stepwell as sw
    >>> sw.jvp(lambda x: x ** 2, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    (array([1., 4.]), array([ 2., 40.]))
    """
    check_function("jvp", fun)
    primals, given = _directions("jvp", primals, tangents)
    if active_trace() is None:
        found = _compiled("jvp", fun, has_aux)(primals, given)
    else:
        found = _forward(fun, primals, given, has_aux)
    out, aux, more = found
    return (out, more, aux) if has_aux else (out, more)


@entrance
def linearize(fun: Fun, *primals: Any, has_aux: bool = False) -> Any:
    """Return the result of ``fun``, and its derivative at ``primals`` as a linear function.

    fun : takes and returns arrays, numbers, and any structures of them; with ``has_aux`` it
            returns a pair of such a result and auxiliary values
        primals : its arguments
        returns : ``(out, jvp_fn)``, with ``has_aux`` ``(out, jvp_fn, aux)``. ``jvp_fn`` takes
            tangents in the structure of ``primals`` and returns the tangents of ``out``

        ``fun`` is computed once, as in `vjp`.

    raises TypeError : tangents have another structure than ``primals``, or other dtypes
    raises ValueError : tangents have other shapes
    source : `jax.linearize`

    >>> import stepwell as sw
    >>> out, jvp_fn = sw.linearize(lambda x: x ** 3, 2.0)
    >>> out, jvp_fn(1.0), jvp_fn(10.0)
    (array(8.), array(12.), array(120.))
    """
    check_function("linearize", fun)
    if active_trace() is not None:
        wanted, region = _region("linearize", fun, primals, has_aux)
        out, aux = region.run()

        def push(given: Sequence[Any], named: Sequence[str]) -> Any:
            values = [leaf for n in wanted.trees for leaf in wanted.leaves[n]]
            return _tangents(region, region.forward(_matched(named, given, values, "tangent"))[1])

    else:
        primals = _copied_arrays(primals)
        (out, aux), kept = _compiled("linearize", fun, has_aux)(primals, ())

        def push(given: Sequence[Any], named: Sequence[str]) -> Any:
            if active_trace() is not None:
                return _compiled("jvp", fun, has_aux)(primals, given)[2]
            return kept("tangent", named, given)

    tree = flatten(primals)[1]

    @entrance
    def jvp_fn(*tangents: Any) -> Any:
        return push(
            _leaves("jvp_fn", "tangents", tangents, tree, "primals"), paths(tree, "tangents")
        )

    return (out, jvp_fn, aux) if has_aux else (out, jvp_fn)


@entrance
def hvp(fun: Fun, primals: Any, tangents: Any) -> Any:
    """Return the product of the Hessian of ``fun`` at ``primals`` with ``tangents``.

    fun : returns one float without axes
    primals : a tuple or list of its arguments: floats, and any structures of them
    tangents : have the structure, shapes and dtypes of ``primals``
    returns : the product in the structure of ``primals``; without the tuple for a single argument

    The Hessian is never computed: this is the derivative of the gradient in one direction.

    raises TypeError : see `jvp` and `grad`
    raises ValueError : tangents have other shapes
    source : `jax.jvp` of `jax.grad`

    >>> import numpy as np, stepwell as sw
    >>> sw.hvp(lambda x: np.sum(x ** 3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    check_function("hvp", fun)
    primals, given = _directions("hvp", primals, tangents)
    if active_trace() is None:
        return _compiled("hvp", fun, False)(primals, given)
    numbers = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return _forward(grad(fun, numbers), primals, given, False, "hvp")[2]


@lru_cache(maxsize=256)
def _cached(what: str, fun: Fun, has_aux: bool) -> Transformed:
    def apply(function: Fun, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
        primals, given = args
        if what in ("vjp", "linearize"):
            return _split_program(what, function, primals, has_aux)
        if what == "jvp":
            return _forward(function, primals, given, has_aux)
        if what == "hvp":
            return hvp(function, primals, given)
        wanted, region = _region("vjp", function, primals, has_aux)  # "pull"
        named = paths(region.main.tree, "cotangents")
        cotangents = _matched(named, given, region.main.values, "cotangent")
        return wanted.gradients(region.backward(cotangents, region.floats)[1])

    return Transformed(fun, what, apply, _TWO)


def _compiled(what: str, fun: Fun, has_aux: bool) -> Transformed:
    """Return the compiled transformation for calls outside of a trace; the last 256 are cached."""
    try:
        hash(fun)
    except TypeError:
        return _cached.__wrapped__(what, fun, has_aux)
    return _cached(what, fun, has_aux)


_TWO = inspect.signature(lambda primals, given: None)  # pyright: ignore[reportUnknownLambdaType]


def _region(what: str, fun: Fun, primals: Sequence[Any], has_aux: bool) -> tuple[Wanted, Region]:
    """Trace a function into a region whose arguments are all floats among ``primals``."""
    wanted = Wanted(what, fun, range(len(primals)), tuple(primals), allow_int=True)

    def parts(returned: Any) -> tuple[Any, Any]:
        main, aux = pair(what, wanted.name, returned) if has_aux else (returned, None)
        return values_of(what, wanted.name, main), aux

    return wanted, wanted.region({}, parts)


def _split_program(what: str, fun: Fun, primals: Sequence[Any], has_aux: bool) -> Any:
    """Trace a function, and its derivative as the second program (see `residuals`)."""
    wanted, region = _region(what, fun, primals, has_aux)
    if what == "vjp":
        types = region.main.types
        given = arguments_later(paths(region.main.tree, "cotangents"), types)
        run, found = region.backward(given, region.floats)
        compute_later(given, wanted.gradients(found), types)
    else:
        values = [leaf for n in wanted.trees for leaf in wanted.leaves[n]]
        types = [(v.kind, v.shape) for v in values]
        given = arguments_later(paths(flatten(tuple(primals))[1], "tangents"), types)
        run, found = region.forward(given)
        compute_later(given, _tangents(region, found), types)
    return run


def values_of(what: str, name: str, returned: Any) -> Any:
    """Return the function's result, with arrays and numbers converted to traced values."""
    leaves, tree = flatten(returned)
    found: list[Tensor] = []
    for leaf, path in zip(leaves, paths(tree, "its result"), strict=True):
        try:
            found.append(lift(leaf))
        except TraceError:
            raise
        except TypeError:
            raise TypeError(
                f"{what} needs '{name}' to return arrays, but {path} is {type(leaf).__name__}; "
                "what is no data belongs to has_aux=True"
            ) from None
    return unflatten(tree, found)


def _forward(
    fun: Fun, primals: Sequence[Any], given: Sequence[Any], has_aux: bool, what: str = "jvp"
) -> tuple[Any, Any, Any]:
    """Write ``nd.jvp``; return the result of the function, its aux values, and the tangents."""
    wanted, region = _region(what, fun, primals, has_aux)
    values = [leaf for n in wanted.trees for leaf in wanted.leaves[n]]
    named = paths(flatten(tuple(primals))[1], "tangents")
    (out, aux), found = region.forward(_matched(named, given, values, "tangent"))
    return out, aux, _tangents(region, found)


def _tangents(region: Region, found: Sequence[Tensor]) -> Any:
    """Return the tangents of a function's float results, in the structure of its result."""
    values = iter(found)
    leaves = [
        next(values) if v.kind.kind == "float" else zeros_of_float0(v.shape)
        for v in region.main.values
    ]
    return unflatten(region.main.tree, leaves)


def _directions(what: str, primals: Any, tangents: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Return primals as a tuple, and the leaves of tangents, which have the same structure."""
    for value, named in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(value, tuple | list):
            raise TypeError(f"{what} takes {named} as a tuple or list, got {type(value).__name__}")
    primals = tuple(primals)
    tree = flatten(primals)[1]
    return primals, _leaves(what, "tangents", tuple(tangents), tree, "primals")


def _leaves(what: str, named: str, value: Any, tree: Tree, like: str) -> list[Any]:
    """Return the leaves of a value that must have the structure ``tree``; None for `float0`."""
    leaves, found = flatten(value)
    if found != tree:
        raise TypeError(
            f"{what}: {named} must be built like {like}, which has {_built(tree, like)}, "
            f"got {_built(found, named)}"
        )
    return [None if is_float0(leaf) else leaf for leaf in leaves]


def _built(tree: Tree, name: str) -> str:
    found = paths(tree, name.split(" ")[-1] if not name.isidentifier() else name)
    return ", ".join(found[:4]) + (", ..." if len(found) > 4 else "") if found else "nothing"


def _matched(
    named: Sequence[str], given: Sequence[Any], values: Sequence[Tensor], what: str
) -> list[Tensor]:
    """Return tangents or cotangents of the floats among ``values``, of their types."""
    found: list[Tensor] = []
    for path, leaf, value in zip(named, given, values, strict=True):
        type = value.kind, value.shape
        if (error := mismatch(what, path, leaf, type)) is not None:
            raise error
        if leaf is None:
            continue
        try:
            more = lift(leaf, value.kind)
        except TraceError:
            raise
        except TypeError:
            got = leaf.__class__.__name__
            raise TypeError(f"{path}: a {what} is an array or a number, got {got}") from None
        if is_number(leaf) or more.weak:
            more = cast(more, value.kind)
        if (error := unlike(path, (more.kind, more.shape), type)) is not None:
            raise error
        found.append(more)
    return found


def _copied_arrays(primals: Sequence[Any]) -> tuple[Any, ...]:
    """Return a copy of the arguments, which later assignments to arrays do not change."""
    leaves, tree = flatten(tuple(primals))
    return unflatten(
        tree, [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    )
