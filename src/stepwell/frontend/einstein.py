"""`numpy.einsum` in all its forms: ``...``, repeated letters, lists of axes, axes of size 1."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.frontend import linear_algebra as linear
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.matrices import diagonal
from stepwell.frontend.operands import array, dtype_of, stored, unified
from stepwell.frontend.promotion import cast, fresh
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor

LETTERS = string.ascii_letters


@public()
def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Tensor:
    """`numpy.einsum`: subscripts and arrays, or arrays each followed by a list of axes.

    More than two arrays are contracted from left to right; ``optimize`` is ignored.
    """
    if not operands:
        raise ValueError("must specify the einstein sum subscripts string and at least one operand")
    subscripts, given = _subscripts_of(operands)
    values = unified(*(array(v) for v in given))
    if dtype is not None:
        values = [cast(v, dtype_of(dtype)) for v in values]
    inputs, arrow, output = "".join(subscripts.split()).partition("->")
    names = inputs.split(",")
    if len(names) != len(values):
        raise ValueError(f"{len(names)} subscripts for {len(values)} operands")
    wide = _broadcast_letters(names, values, subscripts)
    if not arrow:
        every = inputs.replace("...", "").replace(",", "")
        output = "..." * ("..." in inputs)
        output += "".join(sorted(c for c in set(every) if every.count(c) == 1))
    names = [_named(n, v, wide) for n, v in zip(names, values, strict=True)]
    output = output.replace("...", wide)
    pairs = [_without_repeats(n, v) for n, v in zip(names, values, strict=True)]
    names, values = _without_ones(pairs)
    found = linear.einsum(f"{','.join(names)}->{output}", *values)
    return stored(fresh(found), out)


def _subscripts_of(operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return the subscripts as a string, and the arrays."""
    if isinstance(operands[0], str):
        return operands[0], operands[1:]
    lists = list(operands[1::2])
    arrays = operands[0 : 2 * len(lists) : 2]
    output = "->" + _letters(operands[-1]) if len(operands) % 2 else ""
    return ",".join(map(_letters, lists)) + output, arrays


def _letters(axes: Any) -> str:
    found = ""
    for axis in axes:
        if axis is not Ellipsis and not (isinstance(axis, int) and 0 <= axis < len(LETTERS)):
            raise ValueError(f"subscript is not within the valid range [0, 52): {axis!r}")
        found += "..." if axis is Ellipsis else LETTERS[axis]
    return found


def _broadcast_letters(names: Sequence[str], values: Sequence[Tensor], subscripts: str) -> str:
    """Return letters for the axes of ``...``, as many as its largest rank."""
    most = 0
    for name, value in zip(names, values, strict=True):
        if "." in name.replace("...", "", 1):
            raise ValueError(
                f"einstein sum subscripts string has a '.' that is no part of '...': {name!r}"
            )
        if "..." in name:
            axes = value.ndim - len(name) + 3
            if axes < 0:
                raise ValueError(f"subscript {name!r} names {len(name) - 3} axes of {value.ndim}")
            most = max(most, axes)
    free = [c for c in LETTERS if c not in subscripts]
    return "".join(free[:most])


def _named(name: str, value: Tensor, wide: str) -> str:
    """Return a subscript with letters for ``...``: the last ones, as broadcasting aligns them."""
    if "..." in name:
        axes = value.ndim - len(name) + 3
        name = name.replace("...", wide[len(wide) - axes :])
    if len(name) != value.ndim:
        raise ValueError(f"subscript {name!r} names {len(name)} axes of {value.ndim}")
    return name


def _without_repeats(name: str, value: Tensor) -> tuple[str, Tensor]:
    """Take the diagonal of axes with the same letter."""
    for letter in sorted(set(name)):
        while name.count(letter) > 1:
            first = name.index(letter)
            second = name.index(letter, first + 1)
            if value.shape[first] != value.shape[second]:
                raise ValueError(
                    f"dimensions for collapsing index '{letter}' don't match "
                    f"({value.shape[first]} != {value.shape[second]})"
                )
            value = diagonal(value, 0, first, second)
            name = name[:first] + name[first + 1 : second] + name[second + 1 :] + letter
    return name, value


def _without_ones(pairs: Sequence[tuple[str, Tensor]]) -> tuple[list[str], list[Tensor]]:
    """Drop axes of size 1 whose letter is larger elsewhere: they are broadcast."""
    sizes: dict[str, int] = {}
    first: dict[str, int] = {}
    for number, (name, value) in enumerate(pairs):
        for letter, n in zip(name, value.shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter], first[letter] = n, number
    names: list[str] = []
    values: list[Tensor] = []
    for number, (name, value) in enumerate(pairs):
        kept = [(c, n) for c, n in zip(name, value.shape, strict=True) if n != 1 or sizes[c] == 1]
        for letter, n in kept:
            if n != sizes[letter]:
                raise ShapeError(
                    f"index {letter!r} of einsum has size {sizes[letter]} in operand "
                    f"{first[letter]}, "
                    f"{n} in operand {number}"
                )
        names.append("".join(c for c, _ in kept))
        values.append(reshape(value, tuple(n for _, n in kept)))
    return names, values
