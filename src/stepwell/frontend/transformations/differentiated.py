"""The arguments that a derivative is taken by, flattened: floats, and leaves of other dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import lift
from stepwell.frontend.pytree import Tree, flatten, paths, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.regions import Region, same_number, write_region
from stepwell.frontend.transformations.transformed import call, name_of, signature_of
from stepwell.frontend.transformations.zero import zeros_of_float0

Numbers: TypeAlias = int | Sequence[int]


class Wanted:
    """The arguments that a derivative is taken by.

    what : the transformation, for messages
    allow_int : whether leaves that are not floats are allowed
    """

    def __init__(
        self,
        what: str,
        function: Callable[..., Any],
        argnums: Numbers,
        args: tuple[Any, ...],
        allow_int: bool,
    ) -> None:
        self.what, self.function, self.args = what, function, args
        self.name = name_of(function)
        self.single = isinstance(argnums, int)
        self.numbers = _numbers(what, argnums, len(args), self.name)
        names = names_of(function, len(args))
        self.trees: dict[int, Tree] = {}
        self.leaves: dict[int, list[Any]] = {}
        self.floats: list[Tensor] = []
        """The values to differentiate by."""
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
        except TraceError:
            raise
        except TypeError:
            raise TypeError(
                f"{self.what} is by floats, but argument '{path}' of '{self.name}' is "
                f"{type(leaf).__name__}: choose others by argnums="
            ) from None

    def region(self, kwargs: dict[str, Any], parts: Callable[[Any], tuple[Any, Any]]) -> Region:
        """Trace the function into the region of an op.

        parts : splits the function's result into its differentiated and its auxiliary part
        """

        def run(seen: list[Tensor]) -> tuple[Any, Any]:
            return parts(call(self.function, *self.put(seen), **kwargs))

        return write_region(self.what, self.name, self.floats, self.paths, run)

    def put(self, values: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return the arguments, with ``values`` in place of the floats to differentiate by."""
        found, args = iter(values), list(self.args)
        for n, tree in self.trees.items():
            floats = [leaf.kind.kind == "float" for leaf in self.leaves[n]]
            given = [
                next(found) if is_float else leaf
                for is_float, leaf in zip(floats, self.leaves[n], strict=True)
            ]
            args[n] = unflatten(tree, given)
        return tuple(args)

    def gradients(self, values: Sequence[Tensor], of: Shape = ()) -> Any:
        """Return ``values``, one for each of `floats`, in the structure of the arguments.

        of : the leading sizes of each value: the shape of the differentiated result
        """
        found = iter(values)
        by_number = {
            n: unflatten(
                tree,
                [
                    same_number(leaf, next(found))
                    if leaf.kind.kind == "float"
                    else zeros_of_float0((*of, *leaf.shape))
                    for leaf in self.leaves[n]
                ],
            )
            for n, tree in self.trees.items()
        }
        if self.single:
            return by_number[self.numbers[0]]
        return tuple(by_number[n] for n in self.numbers)


def _numbers(what: str, argnums: Numbers, count: int, name: str) -> tuple[int, ...]:
    """Return the argument numbers, counted from 0."""
    given = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    for n in given:
        if isinstance(n, bool) or not isinstance(n, int):  # pyright: ignore
            raise TypeError(f"argnums= of {what} names arguments by number, got {n!r}")
        if not -count <= n < count:
            raise ValueError(
                f"argnums={n} of {what}, but '{name}' is called with {count} "
                f"argument{'s' if count != 1 else ''}"
            )
    return tuple(n % count for n in given)


def names_of(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the arguments of ``function``."""
    found: list[str] = []
    for p in signature_of(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            found += [f"{p.name}[{k}]" for k in range(count - len(found))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.name)
    return [*found, *(f"argument {k}" for k in range(len(found), count))][:count]
