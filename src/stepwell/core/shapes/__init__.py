"""Shape rules as plain functions on tuples of ints; DYNAMIC is a size known only at run time.

The ops of `nd` infer and verify their result types with these functions; so does the tracer, which
must not import the compiler.
"""

from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]

DYNAMIC = -(2**63)
"""The size of a `?` axis: the number that xDSL and MLIR use."""


class ShapeError(ValueError):
    """The shapes do not fit; the message has the sizes and the expected ones."""


def same_size(a: int, b: int) -> int | None:
    """Return the size of two axes that must agree, None if they cannot agree.

    >>> same_size(4, DYNAMIC), same_size(4, 5)
    (4, None)
    """
    if a == b or b == DYNAMIC:
        return a
    return b if a == DYNAMIC else None


def show(shape: Shape) -> str:
    """Spell a shape as IR does.

    >>> show((4, DYNAMIC))
    '4x?'
    """
    return "x".join("?" if n == DYNAMIC else str(n) for n in shape)
