"""What a compiled program takes and returns, and what else its caller must know.

It stands between emitter and runtime, as `program.json` on the disk (`core.description`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from stepwell.core.checks import Check
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
        """Spell it as a NumPy user would.

        >>> print(Tensor("x", "f32", (4, DYNAMIC)))
        float32[4, ?]
        """
        return spell(numpy_name(self.dtype), self.shape)


@dataclass(frozen=True)
class Constant(Tensor):
    """A weight, kept beside the program; ``sha256`` is that of its bytes, "" where unknown."""

    sha256: str = ""
    made: int | None = None
    """Which result of `Signature.maker` it is, where it is not given."""


LINE = 64
"""Bytes of a cache line, with which each weight in constants.bin begins."""


def constant_offsets(constants: Sequence[Constant]) -> tuple[list[int], int]:
    """Return where each weight begins in constants.bin, and the bytes of the whole file.

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
    """One kernel of the program, the source lines (file:line) it came from, and what it does.

    flops, bytes : operations of one launch, and bytes it must read and write at least: a number, a
        tree over a call's `?` as in `core.host_schedule`, or None where only the run knows
    bits : of the widest float it computes with
    """

    name: str
    lines: tuple[str, ...] = ()
    flops: Tree | None = None
    bytes: Tree | None = None
    bits: int = 32

    def in_call(self, sizes: Sequence[int]) -> Kernel:
        """Return what it does in a call whose arguments' `?` are ``sizes``, in order."""
        return replace(self, flops=in_call(self.flops, sizes), bytes=in_call(self.bytes, sizes))


@dataclass(frozen=True)
class Signature:
    """Everything a caller of a compiled program must know."""

    entry: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    constants: tuple[Constant, ...] = ()
    arena: int | None = 0
    """Bytes of scratch memory; None where only the program's `_arena` function can tell."""
    kernels: tuple[Kernel, ...] = ()
    equal: tuple[tuple[int, ...], ...] = ()
    """Groups of `?` of the arguments (numbered in order) that must be equal in every call."""
    fixed: tuple[tuple[int, int], ...] = ()
    """`?` of the arguments that must have one size in every call: (number, size)."""
    checks: tuple[Check, ...] = ()
    """What else must hold of the `?` of the arguments in every call."""
    loops: bool = False
    """Whether the host runs loops: such a call may take long however small its arrays are."""
    target: str = "c"
    machine: str = ""
    """Features of the processor it was compiled for, as in `core.machine`."""
    host: tuple[Any, ...] = ()
    """For targets without a host of their own (OpenCL): what the runtime walks."""
    into: tuple[tuple[int, int], ...] = ()
    """Results that may be given the very array that is an argument: (result, argument)."""
    guards: tuple[Guard, ...] = ()
    """What ends a call while it runs, numbered from `guards.FIRST`; none below nd's own floors."""
    maker: Signature | None = None
    """What makes some of the constants of others, in the same program, when it is loaded."""

    @property
    def dynamic(self) -> int:
        """How many `?` the arguments have together."""
        return sum(a.shape.count(DYNAMIC) for a in self.arguments)

    def sizes(self, shapes: Sequence[Shape]) -> list[int]:
        """Return what each `?` of the arguments is in a call with arrays of these shapes."""
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
    """Return the name of a kernel as the comment above it in the program's text has it.

    What follows there begins with a comma, and so the name has none.
    """
    return quoted(name).replace(",", "%2C")


def numpy_name(dtype: str) -> str:
    """Return what NumPy calls a dtype of ours ('bfloat16' for the one it lacks)."""
    return "bfloat16" if dtype == "bf16" else DTYPES[dtype].numpy.name


def spell(dtype: str, shape: Shape) -> str:
    """Spell dtype and shape the way error messages do.

    >>> spell("float32", (4, DYNAMIC))
    'float32[4, ?]'
    """
    return f"{dtype}[{', '.join('?' if n == DYNAMIC else str(n) for n in shape)}]"
