"""`checkpoint`: what of a function is computed again for its derivative, instead of kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from stepwell.core.tracebacks import entrance
from stepwell.frontend.promotion import lift
from stepwell.frontend.pytree import flatten, paths, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.products import values_of
from stepwell.frontend.transformations.regions import write_region
from stepwell.frontend.transformations.transformed import Transformed, call, name_of
from stepwell.frontend.transformations.wanted import names_of


class checkpoint_policies(Enum):
    """What `checkpoint` keeps for the backward pass, beside the arguments of its function.

    source : `jax.checkpoint_policies`

    >>> import stepwell as sw
    >>> sw.checkpoint_policies.dots_saveable.value
    'dots'
    """

    everything_saveable = "everything"
    """All that the derivative needs: as without a checkpoint."""
    nothing_saveable = "nothing"
    """Nothing: all of it is computed again."""
    dots_saveable = "dots"
    """The results of products and convolutions."""
    dots_with_no_batch_dims_saveable = "dots_without_batch"
    """The results of products of matrices without axes of a batch."""
    checkpoint_dots = "dots"
    checkpoint_dots_with_no_batch_dims = "dots_without_batch"


@entrance
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: checkpoint_policies | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """Return a function that computes what ``fun`` does, and again for its derivative backward.

    So the values in it are not kept from the forward pass to the backward pass, but for its
    arguments and what ``policy`` names: less memory for more time.

    fun : takes and returns arrays, numbers, and any structures of them
    prevent_cse : False lets the compiler find that both computations are the same one: where the
        function is the body of a loop they are apart anyway
    policy : one of `sw.checkpoint_policies`; None keeps nothing
    static_argnums : arguments that are no data; such are found also without it

    raises TypeError : ``policy`` is none of these, or ``fun`` returns what is no data
    source : `jax.checkpoint`, also called `jax.remat`

    >>> import numpy as np, stepwell as sw
    >>> layer = sw.checkpoint(lambda w, x: np.tanh(x @ w))
    >>> w, x = np.eye(2), np.ones((3, 2))
    >>> sw.grad(lambda w: np.sum(layer(w, layer(w, x))))(w).shape
    (2, 2)
    """
    if fun is None:
        return lambda f: checkpoint(
            f, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums
        )
    if policy is not None and not isinstance(policy, checkpoint_policies):  # pyright: ignore
        named = ", ".join(checkpoint_policies.__members__)
        raise TypeError(
            f"policy= of checkpoint is one of sw.checkpoint_policies: {named}; got {policy!r}"
        )
    told = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {n: v for n, v in enumerate(args) if n not in told and n - len(args) not in told}
        leaves, tree = flatten((given, kwargs))
        named = names_of(function, len(args))
        said = [p for n, v in given.items() for p in paths(flatten(v)[1], named[n])]
        said += paths(flatten(kwargs)[1], "kwargs")
        at = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

        def run(seen: list[Tensor]) -> tuple[Any, Any]:
            put = list(leaves)
            for k, value in zip(at, seen, strict=True):
                put[k] = value
            inside, words = unflatten(tree, put)
            values = [inside.get(n, v) for n, v in enumerate(args)]
            returned = call(function, *values, **words)
            return values_of("checkpoint", name_of(function), returned), None

        values = [lift(leaves[k]) for k in at]
        region = write_region("checkpoint", name_of(function), values, [said[k] for k in at], run)
        found = current_trace().emit(
            "checkpoint",
            values,
            region.main.types,
            region.text,
            policy=None if policy is None else policy.value,
            merged=not prevent_cse,
        )
        return region.main.of(found)

    return Transformed(fun, "checkpoint", apply)


remat = checkpoint
