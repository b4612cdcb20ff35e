"""The syntax of a C-like language: types, vectors and functions, where C and OpenCL C differ.

Every method that returns an expression returns one that may be an operand of any operator. A
method that needs a type or a function declared adds it to the `Prelude`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from stepwell.core.dtypes import round_to_bf16
from stepwell.lowering.emit.kinds import INDEX, Kind
from stepwell.lowering.emit.names import FAULT


@dataclass
class Prelude:
    """The declarations before the functions of the text, each once, in order of first use."""

    types: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, str] = field(default_factory=dict[str, str])


class Spelling(ABC):
    """One C-like language."""

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

    # types and literals

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

    @abstractmethod
    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Return the vector at ``address``, which need not be aligned.

        space : the address space, if the language has several
        """

    def side_by_side(self, sums: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Return the pragmas that vectorize a loop with independent iterations.

        sums : operators and variables of its reductions, which may be reassociated
        """
        return ()

    def unroll(self, times: int) -> str:
        """Return the pragma that unrolls the next loop; "" if there is none."""
        return ""

    def independent(self) -> str:
        """Return the pragma that the next loop's iterations are independent, or ""."""
        return ""

    def held(self, kind: Kind, x: str) -> str:
        """Return ``x``, just loaded, forced into a register rather than reloaded at each use."""
        del kind
        return x

    def prefetch(self, address: str) -> str:
        """Return the statement that prefetches the cache line at ``address``, or ""."""
        del address
        return ""

    # guards

    @abstractmethod
    def pinned(self, kind: Kind, x: str) -> str:
        """Return the scalar ``x``, which must not be loaded from memory again."""

    def fault(self, number: int, a: str, b: str) -> str:
        """Return the statement that records the first guard to fail, and two numbers."""
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
        """Return the beginning of the function that records a fault, up to its argument's type.

        Then the rows that record its number, and return if another was recorded before.
        """

    @abstractmethod
    def faulted(self) -> str:
        """Return the condition that some guard has failed."""

    @abstractmethod
    def address(self, pointer: str) -> str:
        """Return a pointer converted to an integer."""

    @abstractmethod
    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Return the statement that writes ``x`` at ``address``."""

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Return the statement for a non-temporal store of ``x``, or a plain one."""
        return self.store(kind, address, x, space)

    def fence(self) -> str:
        """Return the fence that makes non-temporal stores visible to others; "" if not needed."""
        return ""

    @abstractmethod
    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Return a shuffle: the lanes of ``x``, then of ``y``, that ``lanes`` numbers."""

    def permuted(self, table: Kind, which: Kind, x: str, y: str) -> list[str]:
        """Return rows, ending in `#else`, that return lanes ``y`` of ``x``, modulo the size.

        [] if the language has no shuffle by dynamic indices.
        """
        del table, which, x, y
        return []

    # functions

    def quick(self, what: str, kind: Kind) -> list[str]:
        """Return rows that compute ``what`` of ``x`` and ``y`` by an instruction of the machine.

        They end in `#else`; [] if the language has no such instructions. ``what`` is ``maximum``,
        ``minnum`` etc., optionally with ``_of_constant`` appended, or the name of a function's
        ``kernel.instruction``; or ``dot`` and both operands' elements, words whose products are
        added to ``z``.
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
        """Call a function of the math library by its C name without suffix."""

    def bit_count(self, what: str, kind: Kind) -> list[str]:
        """Return the body of a bit count of the scalar ``x``; [] if a loop must do it."""
        return []

    @abstractmethod
    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Return a function of address, mask and the values of disabled lanes."""

    @abstractmethod
    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Return a function of address, mask and vector."""

    def load_first(self, kind: Kind, pointer: str, numbers: Sequence[str] = ("n",)) -> str:
        """Return a function of address, number of first lanes, and the values of the others.

        numbers : names of the numbers; of two, lanes that only one of them counts are loaded
        """
        test = " != ".join(f"(k < {number})" for number in numbers)
        rows = [f"for (int k = 0; k < {kind.lanes}; k++) if ({test}) y[k] = p[k];", "return y;"]
        parameters = [(pointer, "p"), *((INDEX, number) for number in numbers), (kind, "y")]
        quick = self.first_lanes(kind, *numbers)
        name = f"sw_load_{'first' if len(numbers) == 1 else 'between'}_{kind}"
        return self.helper(name, kind, parameters, [*quick, *rows, *["#endif"][: len(quick)]])

    def store_first(self, kind: Kind, pointer: str) -> str:
        """Return a function of address, number of first lanes, and vector.

        It stores halves, quarters and so on: loads wait long for a masked store that they overlap.
        """
        rows = [
            f"if (n >= {kind.lanes}) {{",
            f"  {self.store(kind, 'p', 'x', '')}",
            "  return;",
            "}",
            "if (n < 1) return;",
        ]
        x, lanes, now = "x", kind.lanes // 2, kind
        while lanes:
            half = Kind(kind.element, lanes if lanes > 1 else 0)
            low, high = (self._part(now, x, lanes, first) for first in (0, lanes))
            if lanes == 1:
                rows += ["if (n & 1) {", f"  p[0] = {low};", "}"]
                break
            rows += [f"{self.type(half)} x{lanes} = {low};", f"if (n & {lanes}) {{"]
            rows += [f"  {self.store(half, 'p', f'x{lanes}', '')}", f"  p += {lanes};"]
            rows += [f"  x{lanes} = {high};", "}"]
            x, now, lanes = f"x{lanes}", half, lanes // 2
        parameters = [(pointer, "p"), (INDEX, "n"), (kind, "x")]
        return self.helper(f"sw_store_first_{kind}", None, parameters, rows)

    def _part(self, kind: Kind, x: str, lanes: int, first: int) -> str:
        """Return some lanes of a vector, or one."""
        if lanes == 1:
            return self.lane(kind, x, str(first))
        return self.shuffle(Kind(kind.element, lanes), x, x, kind, range(first, first + lanes))

    def first_lanes(self, kind: Kind, *numbers: str) -> list[str]:
        """Return lines that load the first lanes at once, under ``#if``.

        numbers : how many; of two, lanes that only one of them counts are loaded
        """
        del kind, numbers
        return []

    @abstractmethod
    def high_half(self, signed: bool) -> str:
        """Return the upper 64 bits of the product of the i64 ``x`` and ``y``."""

    def half_conversion(self, kind: Kind, widening: bool) -> list[str]:
        """Return lines that convert f16 by the machine's instructions, under ``#if``."""
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
