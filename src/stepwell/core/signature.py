"""The signature of a compiled program: arguments, results and all else that its callers need.

It is the interface of emitter and runtime, stored as `program.json` (`core.description`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from stepwell.core.checks import Check, holds
from stepwell.core.dtypes import DTYPES
from stepwell.core.escape import mangled, quoted
from stepwell.core.guards import Guard
from stepwell.core.host_schedule import Tree, in_call
from stepwell.core.shapes import DYNAMIC, Shape


@dataclass(frozen=True)
class Tensor:
    """One argument or result: its name, dtype (as in IR) and shape, DYNAMIC where `?`."""

    name: str
    dtype: str
    shape: Shape

    def __str__(self) -> str:
        """Spell it as NumPy users do.

        >>> print(Tensor("x", "f32", (4, DYNAMIC)))
        float32[4, ?]
        """
        return spell(numpy_name(self.dtype), self.shape)


@dataclass(frozen=True)
class Constant(Tensor):
    """A weight, stored beside the program; ``sha256`` is that of its bytes, "" if unknown."""

    sha256: str = ""
    made: int | None = None
    """The number of the result of `Signature.maker` that computes it; None if it is given."""


LINE = 64
"""Bytes of a cache line, the alignment of each weight in constants.bin."""


def constant_offsets(constants: Sequence[Constant]) -> tuple[list[int], int]:
    """Return the offset of each weight in constants.bin, and the file's size in bytes.

    >>> constant_offsets([Constant("a", "f32", (3,)), Constant("b", "i8", (70,))])
    ([0, 64], 134)
    """
    offsets: list[int] = []
    end = 0
    for each in constants:
        offsets.append(-(-end // LINE) * LINE)
        end = offsets[-1] + DTYPES[each.dtype].bytes * prod(each.shape)
    return offsets, end


@dataclass(frozen=True)
class Kernel:
    """A kernel of the program, the source lines (file:line) it comes from, and its cost.

    flops, bytes : operations of one launch, and the minimum bytes it reads and writes: a number, a
        tree over a call's `?` as in `core.host_schedule`, or None if known only at run time
    bits : of the widest float it computes with
    """

    name: str
    lines: tuple[str, ...] = ()
    flops: Tree | None = None
    bytes: Tree | None = None
    bits: int = 32

    def in_call(self, sizes: Sequence[int]) -> Kernel:
        """Return a copy with the cost of a call whose arguments' `?` are ``sizes``, in order."""
        return replace(self, flops=in_call(self.flops, sizes), bytes=in_call(self.bytes, sizes))


@dataclass(frozen=True)
class Signature:
    """Everything a caller of a compiled program must know."""

    entry: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    constants: tuple[Constant, ...] = ()
    arena: int | None = 0
    """Bytes of scratch memory; None if the program's `_arena` function computes them."""
    kernels: tuple[Kernel, ...] = ()
    equal: tuple[tuple[int, ...], ...] = ()
    """Groups of `?` of the arguments (numbered in order) that must be equal in every call."""
    fixed: tuple[tuple[int, int], ...] = ()
    """`?` of the arguments that must have one size in every call: (number, size)."""
    checks: tuple[Check, ...] = ()
    """Further conditions on the `?` of the arguments in every call."""
    served: tuple[Tree, ...] = ()
    """Conditions on the `?` of the calls that a program serves which lacks code for others."""
    loops: bool = False
    """Whether the host runs loops: the call may take long even for small arrays."""
    target: str = "c"
    machine: str = ""
    """Features of the target processor, as in `core.machine`."""
    host: tuple[Any, ...] = ()
    """For targets without host code (OpenCL): the schedule that the runtime executes."""
    into: tuple[tuple[int, int], ...] = ()
    """Results that may reuse the array of an argument: (result, argument)."""
    guards: tuple[Guard, ...] = ()
    """Run-time guards, numbered from `guards.FIRST`; none for programs that begin below nd."""
    maker: Signature | None = None
    """The signature of the function in this program that computes constants at load time."""

    @property
    def dynamic(self) -> int:
        """The number of `?` of all arguments."""
        return sum(a.shape.count(DYNAMIC) for a in self.arguments)

    @property
    def tested(self) -> tuple[Check, ...]:
        """All conditions on `?` that the program's `_checks` function tests, in order."""
        return (*self.checks, *(Check(each, ("",)) for each in self.served))

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the program has code for calls whose `?` are ``sizes``."""
        variables = {f"d{k}": n for k, n in enumerate(sizes)}
        return all(holds(each, variables) for each in self.served)

    def sizes(self, shapes: Sequence[Shape]) -> list[int]:
        """Return the size of each `?` of the arguments in a call with arrays of these shapes."""
        return [
            size
            for argument, shape in zip(self.arguments, shapes, strict=True)
            for size, n in zip(shape, argument.shape, strict=True)
            if n == DYNAMIC
        ]

    @property
    def sized_by_program(self) -> bool:
        """Whether a result has a `?`, so that the program has a `_shapes` function."""
        return any(DYNAMIC in r.shape for r in self.results)

    @property
    def symbol(self) -> str:
        """The name of the function in the program's library."""
        return f"stepwell_{mangled(self.entry)}"

    def __str__(self) -> str:
        """Spell it like a Python signature.

        >>> print(Signature("main", (Tensor("x", "f32", (DYNAMIC,)),), (Tensor("y", "i32", ()),)))
        main(x: float32[?]) -> int32[]
        """
        arguments = ", ".join(f"{quoted(a.name)}: {a}" for a in self.arguments)
        results = ", ".join(str(r) for r in self.results)
        one = len(self.results) == 1
        return f"{quoted(self.entry)}({arguments}) -> {results if one else f'({results})'}"


def titled(name: str) -> str:
    """Return the name of a kernel as written in the comment above it in the program's text.

    The name is followed by a comma there, so commas in it are escaped.
    """
    return quoted(name).replace(",", "%2C")


def numpy_name(dtype: str) -> str:
    """Return NumPy's name of one of our dtypes ('bfloat16' for the one it lacks)."""
    return "bfloat16" if dtype == "bf16" else DTYPES[dtype].numpy.name


def spell(dtype: str, shape: Shape) -> str:
    """Spell dtype and shape as error messages do.

    >>> spell("float32", (4, DYNAMIC))
    'float32[4, ?]'
    """
    return f"{dtype}[{', '.join('?' if n == DYNAMIC else str(n) for n in shape)}]"
