"""`checkpoint`: recompute values of a function in its backward pass instead of keeping them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stepwell.core.escape import literal
from stepwell.core.tracebacks import entrance
from stepwell.frontend.promotion import lift
from stepwell.frontend.pytree import flatten, paths, unflatten
from stepwell.frontend.spelling import Verbatim
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace
from stepwell.frontend.transformations.differentiated import names_of
from stepwell.frontend.transformations.products import values_of
from stepwell.frontend.transformations.regions import same_number, write_region
from stepwell.frontend.transformations.transformed import Transformed, call, name_of


@dataclass(frozen=True)
class Policy:
    """The values that `checkpoint` keeps: results of ops, and values named by `checkpoint_name`.

    Created by `checkpoint_policies` only.
    """

    ops: int
    """The ops whose results are kept, as an index into `_OPS`."""
    names: frozenset[str] = frozenset()
    others: bool = False
    """Whether ``names`` are excluded: every other named value is kept."""

    def __or__(self, other: Policy) -> Policy:
        """Return the policy that keeps the values that either policy keeps."""
        ops, a, b = max(self.ops, other.ops), self, other
        if a.others and b.others:
            return Policy(ops, a.names & b.names, True)
        if a.others or b.others:
            but, only = (a, b) if a.others else (b, a)
            return Policy(ops, but.names - only.names, True)
        return Policy(ops, a.names | b.names)

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of nd.checkpoint."""
        names = sorted(self.names) or [""]  # an empty string is no valid name
        listed = Verbatim(f"[{', '.join(map(literal, names))}]")
        key = "unnamed" if self.others else "named"
        plain = not self.names and self.others == (self.ops == _EVERYTHING)
        return {"policy": _OPS[self.ops], **({} if plain else {key: listed})}


_OPS = ("nothing", "dots_without_batch", "dots", "everything")
_NOTHING, _PRODUCTS, _DOTS, _EVERYTHING = range(len(_OPS))


class checkpoint_policies:
    """The values that `checkpoint` keeps for the backward pass, besides its function's arguments.

    ``everything_saveable``: every value that the derivative needs, as without a checkpoint.
    ``nothing_saveable``: no value, all are recomputed. ``dots_saveable`` (alias
    ``checkpoint_dots``): the results of matrix products and convolutions.
    ``dots_with_no_batch_dims_saveable`` (alias ``checkpoint_dots_with_no_batch_dims``): the results
    of matrix products without batch axes.

    Names are given by `checkpoint_name`. A value named in a loop or branch within the function
    counts as a part of that op. There is one kind of memory, so nothing can be offloaded.

    source : `jax.checkpoint_policies`

    >>> import numpy as np, stepwell as sw
    >>> keep = sw.checkpoint_policies.save_only_these_names("hidden")
    >>> def layer(w, x):
    ...     return np.tanh(sw.checkpoint_name(np.tanh(x @ w), "hidden") @ w)
    >>> f = sw.checkpoint(layer, policy=keep)
    >>> sw.grad(lambda w: np.sum(f(w, np.ones((3, 2)))))(np.eye(2)).shape
    (2, 2)
    """

    everything_saveable = Policy(_EVERYTHING, others=True)
    nothing_saveable = Policy(_NOTHING)
    dots_saveable = checkpoint_dots = Policy(_DOTS)
    dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy(_PRODUCTS)

    @staticmethod
    def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
        """Keep the values with one of these names, and nothing else."""
        return Policy(_NOTHING, _names(names_which_can_be_saved))

    @staticmethod
    def save_any_names_but_these(*names_not_to_save: str) -> Policy:
        """Keep the named values except for these, and nothing else."""
        return Policy(_NOTHING, _names(names_not_to_save), others=True)

    @staticmethod
    def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
        """Keep every value except those with one of these names, which are recomputed."""
        return Policy(_EVERYTHING, _names(names_not_to_save), others=True)

    @staticmethod
    def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
        """Keep the values that either policy keeps."""
        for policy in (policy_1, policy_2):
            _check_policy("save_from_both_policies", policy)
        return policy_1 | policy_2


def _names(given: Sequence[Any]) -> frozenset[str]:
    for name in given:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a name of checkpoint_name is a text, got {name!r}")
    return frozenset(given)


def _check_policy(what: str, policy: Any) -> None:
    if not isinstance(policy, Policy):
        named = ", ".join(n for n in vars(checkpoint_policies) if not n.startswith("_"))
        raise TypeError(
            f"policy= of {what} is one of sw.checkpoint_policies: {named}; got {policy!r}"
        )


def checkpoint_name(x: Any, name: str) -> Any:
    """Return ``x``, named ``name`` for the policies of `checkpoint`.

    x : arrays and numbers in any structure
    name : a string

    Without such a policy the name has no effect.

    raises TypeError : ``name`` is not a string
    source : `jax.ad_checkpoint.checkpoint_name`

    >>> import stepwell as sw
    >>> sw.grad(lambda x: sw.checkpoint_name(x * x, "square") * x)(2.0)
    array(12.)
    """
    _names([name])
    leaves, tree = flatten(x)
    return unflatten(tree, [_named_leaf(leaf, name) for leaf in leaves])


def _named_leaf(leaf: Any, name: str) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    type = leaf.kind, leaf.shape
    found = leaf.graph.emit("checkpoint_name", [leaf], [type], (), called=name)[0]
    return same_number(leaf, found)


@entrance
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """Return a function that computes the same as ``fun`` and is recomputed in the backward pass.

    So its intermediate values are not kept from the forward to the backward pass, except for its
    arguments and the values that ``policy`` selects: less memory for more time.

    fun : takes and returns arrays, numbers, and any structures of them
    prevent_cse : False lets the compiler merge the forward and the repeated computation: in the
        body of a loop they are apart anyway
    policy : one of `sw.checkpoint_policies`; None keeps nothing
    static_argnums : arguments that are not data; they are also detected without it

    raises TypeError : ``policy`` is not a policy, or a result of ``fun`` is not data
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
    if policy is not None:
        _check_policy("checkpoint", policy)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {
            n: v for n, v in enumerate(args) if n not in static and n - len(args) not in static
        }
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
            **({} if policy is None else policy.properties),
            merged=not prevent_cse,
        )
        return region.main.of(found)

    return Transformed(fun, "checkpoint", apply)


remat = checkpoint
