"""`jacfwd`, `jacrev`, `jacobian` and `hessian`: whole matrices of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stepwell.core.shapes import Shape
from stepwell.core.tracebacks import entrance
from stepwell.frontend.creation import eye
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import full
from stepwell.frontend.pytree import unflatten
from stepwell.frontend.spelling import Verbatim
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.differentiated import Numbers, Wanted
from stepwell.frontend.transformations.gradients import pair
from stepwell.frontend.transformations.products import values_of
from stepwell.frontend.transformations.regions import Region, Type
from stepwell.frontend.transformations.transformed import Transformed

Column = Callable[[Tensor], Sequence[Tensor]]


@entrance
def jacfwd(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Transformed:
    """Return a function that computes the Jacobian of ``fun``, column by column, all at once.

    fun : returns floats, in any structure; with ``has_aux`` a pair of these and auxiliary values
    argnums : the arguments to differentiate by: a number, or several; floats
    holomorphic : False: complex numbers are not supported

    The Jacobian has the structure of the result of ``fun``; each array in it is replaced by the
    structure of the argument (a tuple if ``argnums`` is one), with arrays whose shape is that of
    the result followed by that of the argument. `jacfwd` suits functions with more results than
    arguments, `jacrev` the others.

    raises TypeError : an argument or a result is not a float
    raises ValueError : there is no argument with such a number
    source : `jax.jacfwd`

    >>> import numpy as np, stepwell as sw
    >>> sw.jacfwd(lambda x: np.stack([x[0] * x[1], x[0] ** 2]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [4., 0.]])
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, holomorphic, False, _by_columns)


@entrance
def jacrev(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Transformed:
    """Return a function that computes the Jacobian of ``fun``, row by row, all at once.

    fun, argnums, has_aux, holomorphic : as in `jacfwd`, which describes the structure of the result
    allow_int : allows integers and booleans among the arguments; derivatives by them are of
        `sw.float0`

    raises TypeError : an argument or a result is not a float
    raises ValueError : there is no argument with such a number
    source : `jax.jacrev`

    >>> import numpy as np, stepwell as sw
    >>> sw.jacrev(lambda x: {"sum": x.sum(), "square": x[:1] ** 2})(np.array([2.0, 3.0]))
    {'sum': array([1., 1.]), 'square': array([[4., 0.]])}
    """
    return _jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int, _by_rows)


jacobian = jacrev


@entrance
def hessian(
    fun: Callable[..., Any],
    argnums: Numbers = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Transformed:
    """Return a function that computes the second derivatives of ``fun``: `jacfwd` of `jacrev`.

    fun, argnums, has_aux, holomorphic : as in `jacfwd`

    For a scalar function of one array the result is an array with the shape of the argument
    repeated twice.

    raises TypeError : an argument or a result is not a float
    raises ValueError : there is no argument with such a number
    source : `jax.hessian`

    >>> import numpy as np, stepwell as sw
    >>> sw.hessian(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    first = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(first, argnums, has_aux, holomorphic)


def _jacobian(
    what: str,
    fun: Callable[..., Any],
    argnums: Numbers,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    write: Callable[[Region], list[list[Tensor]]],
) -> Transformed:
    """Return a function that computes a Jacobian.

    write : returns for each result its derivatives by each argument
    """
    if holomorphic:
        raise TypeError(f"{what} with holomorphic=True is of complex numbers, which there are none")

    def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        wanted = Wanted(what, function, argnums, args, allow_int)

        def parts(returned: Any) -> tuple[Any, Any]:
            main, aux = pair(what, wanted.name, returned) if has_aux else (returned, None)
            return values_of(what, wanted.name, main), aux

        region = wanted.region(kwargs, parts)
        for value in region.main.values:
            if value.kind.kind != "float":
                raise TypeError(
                    f"{what} needs '{wanted.name}' to return floats, got {value.kind.name}"
                )
        shapes = [value.shape for value in region.main.values]
        rows = zip(write(region), shapes, strict=True)
        found = unflatten(region.main.tree, [wanted.gradients(row, shape) for row, shape in rows])
        return (found, region.run()[1]) if has_aux else found

    return Transformed(fun, what, apply)


def _by_columns(region: Region) -> list[list[Tensor]]:
    """Return the Jacobian in forward mode: for each argument all directions at once."""
    columns: list[Sequence[Tensor]] = []
    for k, value in enumerate(region.primals):
        found = _all(
            value,
            lambda tangent, k=k: region.forward([tangent], [k])[1],
            region.main.types,
            at_end=True,
        )
        columns.append(
            [
                reshape(v, (*s, *value.shape))
                for v, (_, s) in zip(found, region.main.types, strict=True)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in region.main.values]


def _by_rows(region: Region) -> list[list[Tensor]]:
    """Return the Jacobian in backward mode: for each result all cotangents at once."""
    rows: list[list[Tensor]] = []
    types = [(v.kind, v.shape) for v in region.primals]
    for k, value in enumerate(region.main.values):
        found = _all(
            value, lambda given, k=k: region.backward([given], [k])[1], types, at_end=False
        )
        rows.append(
            [reshape(v, (*value.shape, *s)) for v, (_, s) in zip(found, types, strict=True)]
        )
    return rows


def _all(value: Tensor, column: Column, types: Sequence[Type], at_end: bool) -> Sequence[Tensor]:
    """Return the results of ``column`` for each unit vector of ``value``, as one batch.

    column : computes the derivatives, of ``types``, in a direction of the type of ``value``
    at_end : whether the batch axis is the last one, else the first
    """
    n = value.size

    def batched(shape: Shape) -> Shape:
        return (*shape, n) if at_end else (n, *shape)

    if not n:
        return [full(batched(shape), 0.0, kind) for kind, shape in types]
    if n == 1:
        found = column(full(value.shape, 1.0, value.kind))
        return [reshape(v, batched(v.shape)) for v in found]
    trace = current_trace()
    basis = reshape(eye(n, dtype=value.kind), (n, *value.shape))
    seen = trace.argument("direction", value.kind, value.shape)
    with trace.block([seen]) as text:
        trace.emit("yield", column(seen), ())
    return trace.emit(
        "vmap",
        [basis],
        [(kind, batched(shape)) for kind, shape in types],
        text,
        in_axes=(0,),
        out_axes=[len(shape) if at_end else 0 for _, shape in types],
        size=n,
        operandSegmentSizes=Verbatim("array<i32: 1, 0>"),
    )
