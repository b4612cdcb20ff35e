"""`stop_gradient`, `custom_vjp` and `custom_jvp`: derivatives defined by the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from inspect import signature
from typing import Any

from stepwell.core.shapes import show
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import cast, fresh, full, is_number, lift
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace, current_trace
from stepwell.frontend.transformations.differentiated import names_of
from stepwell.frontend.transformations.products import values_of
from stepwell.frontend.transformations.regions import (
    Results,
    Type,
    derivatives,
    same_number,
    taken_apart,
)
from stepwell.frontend.transformations.transformed import (
    Transformed,
    call,
    name_of,
    signature_of,
)
from stepwell.frontend.transformations.zero import is_float0, zeros_of_float0

Fun = Callable[..., Any]

_rules: ContextVar[tuple[int, ...]] = ContextVar("rules", default=())
"""The functions whose rules are being traced, outermost first, by `id`."""


def stop_gradient(x: Any) -> Any:
    """Return ``x``, which derivatives treat as a constant: they are zero.

    x : a value, or any structure of values; leaves that are not floats are returned unchanged
    source : `jax.lax.stop_gradient`

    >>> import stepwell as sw
    >>> sw.grad(lambda x: x * sw.stop_gradient(x))(3.0)
    array(3.)
    """
    if active_trace() is None:
        return x
    leaves, tree = flatten(x)
    return unflatten(tree, [_stopped(leaf) for leaf in leaves])


def _stopped(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor) or leaf.kind.kind != "float":
        return leaf
    return same_number(leaf, leaf.graph.emit("stop_gradient", [leaf], [(leaf.kind, leaf.shape)])[0])


class _Custom(Transformed):
    """A function with a user's rule for its derivative."""

    __slots__ = ("_apart", "_exact", "_rule")

    def __init__(self, fun: Fun, what: str, nondiff_argnums: int | Sequence[int]) -> None:
        super().__init__(fun, what, self._write)
        static = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        parameters = list(signature_of(fun).parameters.values())
        count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        for n in static:
            if not -count <= n < count and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
                raise ValueError(
                    f"nondiff_argnums={n} of {what}, but '{name_of(fun)}' has {count} arguments"
                )
        self._apart = frozenset(n % count if n < 0 else n for n in static)
        self._rule: Any = None
        self._exact = False
        self.__dict__["__signature__"] = self._signature

    def is_exact(self) -> None:
        """Declare that the rule computes the function's own derivative."""
        self._exact = True

    def _write(self, fun: Fun, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Write the op for a call of the function."""
        what, name = self._what, name_of(fun)
        if self._rule is None:
            raise AttributeError(
                f"'{name}' has no rule for its derivative: call its method "
                f"{'defvjp' if what == 'custom_vjp' else 'defjvp'} before it is used"
            )
        if kwargs:
            raise TypeError(
                f"{what}: '{name}' takes {', '.join(map(repr, kwargs))} by name alone, which its "
                "rule does not get; let arguments have places"
            )
        depth = _rules.get().count(id(self))
        if depth >= max(1, derivatives()):  # so deep in its own rule nothing differentiates it
            return call(fun, *args)
        return _Call(what, fun, args, self._apart).write(self._rule, id(self), self._exact)


class _Call:
    """A call of a function with a rule: its flattened arguments, and the regions of the op."""

    def __init__(self, what: str, fun: Fun, args: tuple[Any, ...], apart: frozenset[int]) -> None:
        self.what, self.fun, self.args = what, fun, args
        self.name = name_of(fun)
        self.numbers = [n for n in range(len(args)) if n not in apart]
        self.others = [args[n] for n in range(len(args)) if n in apart]
        """The nondiff arguments; rules get them first."""
        names = names_of(fun, len(args))
        self.trees: list[Tree] = []
        self.values: list[Tensor] = []
        self.paths: list[str] = []
        for n in self.numbers:
            leaves, tree = flatten(args[n])
            self.trees.append(tree)
            for path, leaf in zip(paths(tree, names[n]), leaves, strict=True):
                self.values.append(self._value(path, leaf, n))
                self.paths.append(path)

    def _value(self, path: str, leaf: Any, n: int) -> Tensor:
        try:
            return lift(leaf)
        except TraceError:
            raise
        except TypeError:
            raise TypeError(
                f"{self.what}: argument '{path}' of '{self.name}' is {type(leaf).__name__}, no "
                f"data: name it in nondiff_argnums=({n},)"
            ) from None

    def write(self, rule: Any, owner: int, exact: bool) -> Any:
        """Write the op; return the function's result."""
        body, results = self.region(self.values, self.paths, self.fun, self.put)
        token = _rules.set((*_rules.get(), owner))
        try:
            if self.what == "custom_vjp":
                more = self.forward_and_backward(results, *rule)
            else:
                more = [self.tangents(results, rule)]
        finally:
            _rules.reset(token)
        text = [*body, *(line for region in more for line in region)]
        said: dict[str, Any] = {"exact": True} if exact else {}
        found = current_trace().emit(self.what, self.values, results.types, text, **said)
        return results.of(found)

    def region(
        self,
        values: Sequence[Tensor],
        named: Sequence[str],
        function: Fun,
        put: Callable[[Sequence[Tensor]], tuple[Any, ...]],
        check: Callable[[Any], Any] | None = None,
    ) -> tuple[list[str], Results]:
        """Trace a call of ``function`` into a region.

        put : converts the region's arguments to those of the function
        check : converts the function's result to the values that the region yields
        """
        trace = current_trace()
        seen = [trace.argument(p, v.kind, v.shape) for p, v in zip(named, values, strict=True)]
        for given, value in zip(seen, values, strict=True):
            given.weak = value.weak
        with trace.block(seen) as text:
            returned = call(function, *put(seen))
            if check is None:
                returned = values_of(self.what, self.name, returned)
            else:
                returned = check(returned)
            results = taken_apart(returned)
            written = trace.journals[-1].written
            for value, path in zip(seen, named, strict=True):
                if id(value) in written:
                    raise TraceError(
                        f"'{name_of(function)}' assigns to its argument '{path}', which "
                        f"{self.what} does not allow: assign to a copy, {path} = {path}.copy()"
                    )
            trace.emit("yield", [lift(v) for v in results.values], ())
        return text, results

    def put(self, seen: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return the call's arguments, with the leaves replaced by the region's arguments."""
        found, args = iter(seen), list(self.args)
        for n, tree in zip(self.numbers, self.trees, strict=True):
            leaves = [next(found) for _ in paths(tree, "")]
            args[n] = unflatten(tree, leaves)
        return tuple(args)

    def built(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return leaves, one for each of `values`, in the structure of the arguments."""
        rest = iter(leaves)
        return tuple(unflatten(tree, [next(rest) for _ in paths(tree, "")]) for tree in self.trees)

    # -- custom_vjp

    def forward_and_backward(self, results: Results, fwd: Fun, bwd: Fun) -> list[list[str]]:
        """Trace the two regions of a custom_vjp rule."""
        kept: Any = None

        def pair(returned: Any) -> Any:
            nonlocal kept
            what = f"the rule '{name_of(fwd)}' of '{self.name}'"
            if not isinstance(returned, tuple) or len(returned) != 2:  # pyright: ignore
                raise TypeError(f"{what} must return a pair: the result and the residuals")
            out = values_of(self.what, name_of(fwd), returned[0])  # pyright: ignore
            self._check_same(what, taken_apart(out), results)
            kept = returned[1]  # pyright: ignore
            return out, kept

        forward, _ = self.region(self.values, self.paths, fwd, self.put, pair)
        more = taken_apart(kept)
        types = [v for v in results.values if v.kind.kind == "float"]
        trace = current_trace()
        stand_ins = [
            Tensor(trace, v.name, v.kind, v.shape, 0, v.created) for v in (*more.values, *types)
        ]
        for stand_in, value in zip(stand_ins, more.values, strict=False):
            stand_in.weak = value.weak
        count = len(more.values)

        def arguments(seen: Sequence[Tensor]) -> tuple[Any, ...]:
            given = iter(seen[count:])
            cotangents = [
                next(given) if v.kind.kind == "float" else zeros_of_float0(v.shape)
                for v in results.values
            ]
            return (*self.others, more.of(seen[:count]), unflatten(results.tree, cotangents))

        def check(returned: Any) -> Any:
            return self._cotangents(f"the rule '{name_of(bwd)}' of '{self.name}'", returned)

        named = [*(["kept"] * count), *paths(results.tree, "cotangent")][: len(stand_ins)]
        backward, _ = self.region(stand_ins, named, bwd, arguments, check)
        return [forward, backward]

    def _check_same(self, what: str, got: Results, want: Results) -> None:
        if got.tree != want.tree or got.types != want.types:
            raise TypeError(
                f"{what} must return what '{self.name}' returns, {_types_text(want.types)}, got "
                f"{_types_text(got.types)}"
            )

    def _cotangents(self, what: str, returned: Any) -> list[Tensor]:
        """Return the cotangents that a backward rule returned, one for each float argument."""
        count = len(self.numbers)
        if not isinstance(returned, tuple | list) or len(returned) != count:  # pyright: ignore
            raise TypeError(
                f"{what} must return a tuple of {count} cotangent{'s' if count != 1 else ''}, one "
                f"for each argument, got {_sort(returned)}"
            )
        return self._of_arguments(what, returned, "cotangent")  # pyright: ignore

    def _of_arguments(self, what: str, returned: Sequence[Any], called: str) -> list[Tensor]:
        values = iter(zip(self.paths, self.values, strict=True))
        found: list[Tensor] = []
        for tree, more in zip(self.trees, returned, strict=True):
            count = len(paths(tree, ""))
            leaves, built = flatten(more)
            mine = [next(values) for _ in range(count)]
            if more is None:
                leaves = [None] * count
            elif built != tree:
                raise TypeError(
                    f"{what} must return {called}s built like the arguments, or None for zeros"
                )
            for leaf, (path, value) in zip(leaves, mine, strict=True):
                if value.kind.kind == "float":
                    found.append(fitting(f"{what}: the {called} of '{path}'", leaf, value))
        return found

    # -- custom_jvp

    def tangents(self, results: Results, rule: Fun) -> list[str]:
        """Trace the region of a custom_jvp rule."""
        what = f"the rule '{name_of(rule)}' of '{self.name}'"
        count = len(self.values)
        floats = [v for v in self.values if v.kind.kind == "float"]

        def arguments(seen: Sequence[Tensor]) -> tuple[Any, ...]:
            given = iter(seen[count:])
            more = [
                next(given) if v.kind.kind == "float" else zeros_of_float0(v.shape)
                for v in self.values
            ]
            return (*self.others, self.built(seen[:count]), self.built(more))

        def check(returned: Any) -> Any:
            if not isinstance(returned, tuple) or len(returned) != 2:  # pyright: ignore
                raise TypeError(f"{what} must return a pair: the result, and its tangent")
            out = values_of(self.what, name_of(rule), returned[0])  # pyright: ignore
            self._check_same(what, taken_apart(out), results)
            more: Any = returned[1]  # pyright: ignore
            leaves, tree = flatten(more)
            if tree != results.tree:
                raise TypeError(f"{what} must return a tangent built like the result")
            pairs = zip(leaves, results.values, strict=True)
            return out, [
                fitting(f"{what}: its tangent", leaf, v)
                for leaf, v in pairs
                if v.kind.kind == "float"
            ]

        named = [
            *self.paths,
            *(
                f"t_{p}"
                for p, v in zip(self.paths, self.values, strict=True)
                if v.kind.kind == "float"
            ),
        ]
        return self.region([*self.values, *floats], named, rule, arguments, check)[0]


def fitting(what: str, leaf: Any, value: Tensor) -> Tensor:
    """Return a tangent or cotangent of ``value``, whose type it must have; None means zeros."""
    if leaf is None or is_float0(leaf):
        return full(value.shape, 0.0, value.kind)
    found = lift(leaf, value.kind)
    found = cast(found, value.kind) if found.weak or is_number(leaf) else fresh(found)
    if (found.kind, found.shape) != (value.kind, value.shape):
        raise TypeError(
            f"{what} must be {_types_text([(value.kind, value.shape)])}, got "
            f"{_types_text([(found.kind, found.shape)])}"
        )
    return found


def _types_text(types: Sequence[Type]) -> str:
    return ", ".join(f"{kind.name}[{show(shape)}]" for kind, shape in types) or "nothing"


def _sort(value: Any) -> str:
    return f"{len(value)} of them" if isinstance(value, tuple | list) else type(value).__name__  # pyright: ignore


def _signature_stub(fun: Fun, nondiff_argnums: int | Sequence[int] = ()) -> None:
    """Define the signature of both classes below, which users call as functions."""


class custom_vjp(_Custom):
    """Give a function a custom rule for its backward derivative.

    fun : the function; it is called unchanged if nothing is differentiated
    nondiff_argnums : arguments that are not data (functions, strings), or not differentiated;
        backward rules get them first

    Define the rule with `defvjp` before the function is used. Captured values of ``fun`` or its
    rule are constants: differentiating by one of them is an error.

    raises TypeError : a rule returns a wrong structure or type
    source : `jax.custom_vjp`

    >>> import numpy as np, stepwell as sw
    >>> @sw.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1.0, 1.0),))
    >>> sw.grad(lambda x: 10.0 * clip_gradient(x))(2.0)
    array(1.)
    """

    __slots__ = ()

    def __init__(self, fun: Fun, nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, "custom_vjp", nondiff_argnums)

    __signature__ = signature(_signature_stub)

    def defvjp(
        self, fwd: Fun, bwd: Fun, symbolic_zeros: bool = False, optimize_remat: bool = False
    ) -> None:
        """Define the rule.

        fwd : takes the function's arguments; returns a pair of the function's result and any
            residuals that ``bwd`` needs
        bwd : takes the arguments of ``nondiff_argnums``, the residuals, and the cotangent of the
            result; returns a tuple of cotangents of the other arguments, None for zeros
        symbolic_zeros : False: zero cotangents are passed as arrays
        optimize_remat : has no effect: duplicate computations are merged anyway
        """
        if symbolic_zeros:
            raise TypeError("defvjp has no symbolic_zeros: cotangents that are zero are arrays")
        for rule in (fwd, bwd):
            if not callable(rule):
                raise TypeError(f"defvjp takes two functions, got {rule!r}")
        self._rule = fwd, bwd


def made_otherwise(fun: Fun, fwd: Fun, bwd: Fun) -> custom_vjp:
    """Return ``fun`` with a rule that computes its own backward derivative in another way.

    In forward mode ``fun`` itself is differentiated.
    """
    created = custom_vjp(fun)
    created.defvjp(fwd, bwd)
    created.is_exact()
    return created


class custom_jvp(_Custom):
    """Give a function a custom rule for its derivative.

    fun : the function; it is called unchanged if nothing is differentiated
    nondiff_argnums : arguments that are not data (functions, strings), or not differentiated;
        rules get them first

    Define the rule with `defjvp` or `defjvps` before the function is used. Backward mode transposes
    the rule, which must be linear in the tangents. Captured values of ``fun`` or its rule are
    constants: differentiating by one of them is an error.

    raises TypeError : a rule returns a wrong structure or type
    source : `jax.custom_jvp`

    >>> import numpy as np, stepwell as sw
    >>> @sw.custom_jvp
    ... def safe_sqrt(x):
    ...     return np.sqrt(x)
    >>> @safe_sqrt.defjvp
    ... def safe_sqrt_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     y = safe_sqrt(x)
    ...     return y, t / np.maximum(2 * y, 1e-3)
    >>> sw.grad(safe_sqrt)(4.0), sw.grad(safe_sqrt)(0.0)
    (array(0.25), array(1000.))
    """

    __slots__ = ()

    def __init__(self, fun: Fun, nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, "custom_jvp", nondiff_argnums)

    __signature__ = signature(_signature_stub)

    def defjvp(self, jvp: Fun, symbolic_zeros: bool = False) -> Fun:
        """Define the rule; return it.

        jvp : takes the arguments of ``nondiff_argnums``, a tuple of the others and a tuple of their
                tangents; returns a pair of the result and its tangent
            symbolic_zeros : False: zero tangents are passed as arrays
        """
        if symbolic_zeros:
            raise TypeError("defjvp has no symbolic_zeros: tangents that are zero are arrays")
        if not callable(jvp):
            raise TypeError(f"defjvp takes a function, got {jvp!r}")
        self._rule = jvp
        return jvp

    def defjvps(self, *jvps: Fun | None) -> None:
        """Define a rule for each argument separately.

        jvps : for each argument a function that takes its tangent, the result and all arguments,
            and returns its contribution to the result's tangent; None for a zero contribution
        """
        if self._apart:
            raise TypeError("defjvps has no nondiff_argnums: say the rule by defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise TypeError(
                    f"defjvps of '{self.__name__}' has {len(jvps)} rules for {len(primals)} "
                    "arguments"
                )
            out = call(self, *primals)
            parts = [
                call(rule, t, out, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            total: Any = parts[0] if parts else zeros_like(out)
            for part in parts[1:]:
                total = _sum(total, part)
            return out, total

        self._rule = jvp


def zeros_like(value: Any) -> Any:
    """Return zeros in the structure of ``value``."""
    leaves, tree = flatten(value)
    return unflatten(tree, [full(v.shape, 0.0, v.kind) for v in map(lift, leaves)])


def _sum(a: Any, b: Any) -> Any:
    leaves, tree = flatten(a)
    return unflatten(tree, [x + y for x, y in zip(leaves, flatten(b)[0], strict=True)])
