"""How a C-like language spells types, vectors and functions: what C and OpenCL C do differently.

Every method that yields an expression yields one that may stand next to any operator. A method
that needs a type or a function declared asks the `Prelude` for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from stepwell.core.dtypes import round_to_bf16
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import FAULT


@dataclass
class Prelude:
    """What the text declares before its functions, each once, in order of first use."""

    types: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, str] = field(default_factory=dict[str, str])


class Spelling(ABC):
    """One C-like language."""

    words: ClassVar[frozenset[str]]
    """What an identifier may not be."""
    scalars: ClassVar[dict[str, str]]
    """The type of a value, by element."""
    private_function: ClassVar[str]
    """What stands before a function that only this text calls."""
    scalar_code: ClassVar[str] = ""
    """What stands before a function whose loops the compiler is to make quick."""
    constant_array: ClassVar[str] = "static const "
    """What stands before an array of constants."""
    constant_space: ClassVar[str] = ""
    """Where such an array lies."""

    def __init__(self) -> None:
        self.prelude = Prelude()

    # types and literals

    @abstractmethod
    def type(self, kind: Kind) -> str:
        """Return the type of a value."""

    def memory(self, element: str) -> str:
        """Return the type an element has in memory."""
        return self.type(Kind("u8" if element == "i1" else element))

    def literal(self, element: str, value: float) -> str:
        """Return a constant of a scalar element type; floats come back to the last bit."""
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

    # vectors

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
        """Return the result of comparing two of ``kind``, as its mask."""

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
        """Return an integer constant that may meet a vector of ``kind`` in an operator."""
        return constant

    @abstractmethod
    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Return the vector that lies at ``address``, which need not be aligned.

        space : of the address, where the language has several
        """

    def side_by_side(self, sums: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Ask for vectors of a loop whose iterations may run side by side.

        sums : operators and variables that it adds up, in any order
        """
        return ()

    def unroll(self, times: int) -> str:
        """Ask for the next loop to be written out; "" where that cannot be said."""
        return ""

    def independent(self) -> str:
        """Say that iterations of the next loop do not wait for each other; "" where it cannot."""
        return ""

    def held(self, kind: Kind, x: str) -> str:
        """Return ``x``, just loaded, to be kept in a register rather than loaded at each use."""
        del kind
        return x

    def prefetch(self, address: str) -> str:
        """Return the statement that asks for the line of memory at ``address``; none if empty."""
        del address
        return ""

    # guards

    @abstractmethod
    def pinned(self, kind: Kind, x: str) -> str:
        """Return the scalar ``x``, not to be read from memory again where it is used."""

    def fault(self, number: int, a: str, b: str) -> str:
        """Return the statement that notes which guard failed first, and two numbers."""
        integer, long = self.type(Kind("i32")), self.type(Kind("i64"))
        head, first = self.noting()
        self.prelude.types["sw_fault"] = (
            f"struct sw_fault {{ {integer} number; {long} values[2]; }};"
        )
        self.prelude.functions["sw_fault"] = "\n".join(
            (
                f"{head} *fault, {integer} number, {long} a, {long} b) {{",
                *(f"  {row}" for row in first),
                "  fault->values[0] = a;",
                "  fault->values[1] = b;",
                "}",
            )
        )
        return f"sw_fault({FAULT}, {number}, {a}, {b});"

    @abstractmethod
    def noting(self) -> tuple[str, Sequence[str]]:
        """Return how the function that notes a fault begins, up to the type of its argument.

        Then the rows that note its number, and return where another was noted before.
        """

    @abstractmethod
    def faulted(self) -> str:
        """Return whether some guard has failed."""

    @abstractmethod
    def address(self, pointer: str) -> str:
        """Return a pointer as a number."""

    @abstractmethod
    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Return the statement that writes ``x`` at ``address``."""

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Return the statement that writes ``x`` past the caches, where that can be said."""
        return self.store(kind, address, x, space)

    def fence(self) -> str:
        """Return the statement after which others see what `stream` wrote; nothing if they do."""
        return ""

    @abstractmethod
    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Return the lanes of ``x`` and ``y``, numbered through, that ``lanes`` names."""

    def permuted(self, table: Kind, which: Kind, x: str, y: str) -> list[str]:
        """Return rows, ending in `#else`, that return lanes ``y`` of ``x``, counted round.

        There are none where the language has no shuffle by numbers that only the run knows.
        """
        del table, which, x, y
        return []

    # functions

    def quick(self, what: str, kind: Kind) -> list[str]:
        """Return rows that compute ``what`` of ``x`` and ``y`` where the machine has it.

        They end in `#else`; there are none where the language cannot ask for an instruction.
        ``what`` is ``maximum`` and its kin, these with ``_of_constant`` after, or the name of a
        function's ``kernel.instruction``; or ``dot`` and the elements of both operands, words whose
        products are added to ``z``.
        """
        del what, kind
        return []

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
    def each_lane(
        self, result: Kind, sources: Sequence[tuple[Kind, str]], each: Callable[..., str]
    ) -> list[str]:
        """Return a function body: ``each`` applied lane by lane."""

    @abstractmethod
    def function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        """Call a function of the mathematical library by its C name without suffix."""

    def bit_count(self, what: str, kind: Kind) -> list[str]:
        """Return the body of a bit count of the scalar ``x``; nothing where a loop must do."""
        return []

    @abstractmethod
    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Return a function of address, mask and what the unset lanes are."""

    @abstractmethod
    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Return a function of address, mask and vector."""

    @abstractmethod
    def high_half(self, signed: bool) -> str:
        """Return the upper 64 bits of the product of the i64 ``x`` and ``y``."""

    def half_conversion(self, kind: Kind, widening: bool) -> list[str]:
        """Return lines that convert f16 with the machine's own instruction, under ``#if``."""
        return []

    @abstractmethod
    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Return ``x * y + z``, rounded once."""


def narrow_bits(element: str, value: float) -> int:
    """Return the bits of a float as f16 or bf16."""
    if element == "f16":
        with np.errstate(over="ignore"):
            return int(np.float16(value).view(np.uint16))
    return int(round_to_bf16(np.array([value], np.float32)).view(np.uint32)[0] >> 16)
