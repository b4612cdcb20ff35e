"""Types, literals and vectors in a C-like language, where C and OpenCL C differ.

Every method that returns an expression returns one that may be an operand of any operator. A
method that needs a type or a function declared adds it to the `Prelude`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from stepwell.core.dtypes import round_to_bf16
from stepwell.lowering.emit.kinds import Kind


@dataclass
class Prelude:
    """The declarations before the functions of the text, each once, in order of first use."""

    types: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, str] = field(default_factory=dict[str, str])


class Values(ABC):
    """The syntax of types, of scalars and vectors, and of small functions of them."""

    words: ClassVar[frozenset[str]]
    """The reserved identifiers."""
    scalars: ClassVar[dict[str, str]]
    """The C type of each element."""
    private_function: ClassVar[str]
    """The prefix of a function that is local to the text."""
    scalar_code: ClassVar[str] = ""
    """The prefix of a function whose loops the compiler should optimize."""
    float_steps: ClassVar[str] = ""
    """The line before a loop that carries a float from step to step, "" if it needs none."""
    constant_array: ClassVar[str] = "static const "
    """The prefix of an array of constants."""
    constant_space: ClassVar[str] = ""
    """The address space of such an array."""

    def __init__(self) -> None:
        self.prelude = Prelude()

    @abstractmethod
    def type(self, kind: Kind) -> str:
        """Return the type of a value."""

    def memory(self, element: str) -> str:
        """Return the type of an element in memory."""
        return self.type(Kind("u8" if element == "i1" else element))

    def literal(self, element: str, value: float) -> str:
        """Return a constant of a scalar element type; floats round-trip exactly."""
        if element in ("f64", "f32"):
            return self._float(element, value)
        if element in ("f16", "bf16"):
            return f"{narrow_bits(element, value):#06x}"
        if element == "i1":
            return "1" if value else "0"
        bits = 64 if element == "index" else int(element[1:])
        whole = (int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if whole in (-(1 << 63), -(1 << 31)):
            return f"({whole + 1}{'L' if bits == 64 else ''} - 1)"
        long = "L" if not -(1 << 31) < whole < 1 << 31 else ""
        return f"({whole}{long})" if whole < 0 else f"{whole}{long}"

    @abstractmethod
    def not_a_number(self, element: str, infinite: bool) -> str:
        """Return NaN or infinity."""

    def _float(self, element: str, value: float) -> str:
        number = np.float32(value) if element == "f32" else np.float64(value)
        if not np.isfinite(number):
            text = self.not_a_number(element, bool(np.isinf(number)))
            return f"(-{text})" if np.signbit(number) else text
        text = f"{number}{'f' if element == 'f32' else ''}"
        return f"({text})" if text[0] == "-" else text

    def helper(
        self,
        name: str,
        result: Kind | None,
        parameters: Sequence[tuple[Kind | str, str]],
        body: Sequence[str],
    ) -> str:
        """Declare a small function once; return its name. A pointer's type is text."""
        if name not in self.prelude.functions:
            taken = ", ".join(
                f"{each}{word}" if isinstance(each, str) else f"{self.type(each)} {word}"
                for each, word in parameters
            )
            returned = "void" if result is None else self.type(result)
            head = f"{self.private_function}{returned} {name}({taken or 'void'}) {{"
            rows = (row if row.startswith("#") else f"  {row}" for row in body)
            self.prelude.functions[name] = "\n".join((head, *rows, "}"))
        return name

    @abstractmethod
    def splat(self, kind: Kind, x: str) -> str:
        """Return a vector whose every lane is the scalar ``x``."""

    @abstractmethod
    def lanes_of(self, kind: Kind, lanes: Sequence[str]) -> str:
        """Return a vector of the given literals."""

    @abstractmethod
    def bits(self, to: Kind, x: str, source: Kind) -> str:
        """Return the bits of ``x`` as another kind of the same size."""

    @abstractmethod
    def convert(self, to: Kind, x: str, source: Kind) -> str:
        """Return the values of ``x``, which must be in range, as another element."""

    @abstractmethod
    def compared(self, kind: Kind, comparison: str) -> str:
        """Return a comparison of two values of ``kind``, as their mask."""

    @abstractmethod
    def select(self, kind: Kind, mask: str, yes: str, no: str) -> str:
        """Return the lanes of ``yes`` where ``mask`` is set, of ``no`` elsewhere."""

    def choose(self, kind: Kind, condition: str, yes: str, no: str) -> str:
        """Return ``yes`` or ``no``: lane by lane for a vector, whose condition is a mask."""
        if kind.lanes:
            return self.select(kind, condition, yes, no)
        return f"({condition} ? {yes} : {no})"

    @abstractmethod
    def lane(self, kind: Kind, x: str, number: str) -> str:
        """Return one lane; ``number`` is a literal or an index."""

    @abstractmethod
    def set_lane(self, kind: Kind, x: str, number: str, value: str) -> str:
        """Return the statement that assigns one lane."""

    def small(self, kind: Kind, constant: str) -> str:
        """Return an integer constant that can be combined with a vector of ``kind``."""
        return constant

    def held(self, kind: Kind, x: str) -> str:
        """Return ``x``, just loaded, forced into a register rather than reloaded at each use."""
        del kind
        return x

    @abstractmethod
    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Return a shuffle: the lanes of ``x``, then of ``y``, that ``lanes`` numbers."""

    def permuted(self, table: Kind, which: Kind, x: str, y: str) -> list[str]:
        """Return rows, ending in `#else`, that return lanes ``y`` of ``x``, modulo the size.

        [] if the language has no shuffle by dynamic indices.
        """
        del table, which, x, y
        return []


def narrow_bits(element: str, value: float) -> int:
    """Return the bits of a float as f16 or bf16."""
    if element == "f16":
        with np.errstate(over="ignore"):
            return int(np.float16(value).view(np.uint16))
    return int(round_to_bf16(np.array([value], np.float32)).view(np.uint32)[0] >> 16)
