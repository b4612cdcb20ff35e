"""Types and vectors of OpenCL C.

A vector has 2, 4, 8 or 16 lanes. Comparing vectors gives integers of the same width, all bits set
or none, as in C. f16 and bf16 are stored as bits (`ushort`), so half support is not required; f64
requires it of the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import OPENCL_WORDS
from stepwell.lowering.emit.spelling.values import Values

LANES = frozenset({0, 2, 4, 8, 16})
"""The possible numbers of lanes of a vector; 0 is a scalar."""

_SCALARS = {
    "f64": "double",
    "f32": "float",
    "f16": "ushort",
    "bf16": "ushort",
    "index": "long",
    "i1": "int",
    **dict(zip(("i8", "i16", "i32", "i64"), ("char", "short", "int", "long"), strict=True)),
    **dict(zip(("u8", "u16", "u32", "u64"), ("uchar", "ushort", "uint", "ulong"), strict=True)),
    **dict(zip(("m8", "m16", "m32", "m64"), ("char", "short", "int", "long"), strict=True)),
}


IN_ORDER = "#pragma clang loop vectorize(disable)"
"""Keeps Intel's compiler from reassociating the sums of a loop to vectorize it; for others such a
loop has no vectors anyway."""


HAS = """\
#ifdef __has_builtin
#define SW_HAS(name) __has_builtin(name)
#else
#define SW_HAS(name) 0
#endif"""


class OpenCLValues(Values):
    """Native vectors."""

    words: ClassVar[frozenset[str]] = OPENCL_WORDS
    scalars: ClassVar[dict[str, str]] = _SCALARS
    private_function: ClassVar[str] = ""
    float_steps: ClassVar[str] = IN_ORDER
    constant_array: ClassVar[str] = "__constant "
    constant_space: ClassVar[str] = "__constant "

    def type(self, kind: Kind) -> str:
        """Return a native type."""
        if kind.element == "f64":
            self.prelude.types["f64"] = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"
        return f"{_SCALARS[kind.element]}{kind.lanes or ''}"

    def not_a_number(self, element: str, infinite: bool) -> str:
        """Spell NaN and infinity by OpenCL's macros."""
        text = "INFINITY" if infinite else "NAN"
        return text if element == "f32" else f"((double){text})"

    def splat(self, kind: Kind, x: str) -> str:
        """Spell a vector literal of one scalar."""
        return f"(({self.type(kind)})({x}))"

    def lanes_of(self, kind: Kind, lanes: Sequence[str]) -> str:
        """Spell a vector literal."""
        return f"(({self.type(kind)})({', '.join(lanes)}))"

    def bits(self, to: Kind, x: str, source: Kind) -> str:
        """Use ``as_type``; cast between integers of one size."""
        target, origin = self.type(to), self.type(source)
        if target == origin:
            return x
        floats = {"float", "double"} & {target, origin}
        if not to.lanes and not source.lanes and not floats:
            return f"(({target}){x})"
        return f"as_{target}({x})"

    def convert(self, to: Kind, x: str, source: Kind) -> str:
        """Use ``convert_type`` for vectors."""
        target = self.type(to)
        if target == self.type(source):
            return x
        return f"convert_{target}({x})" if to.lanes else f"(({target}){x})"

    def compared(self, kind: Kind, comparison: str) -> str:
        """Return it unchanged: a comparison has the right type."""
        return f"({comparison})"

    def select(self, kind: Kind, mask: str, yes: str, no: str) -> str:
        """Use the ternary operator, which tests the highest bit of each lane."""
        return f"({mask} ? {yes} : {no})"

    def lane(self, kind: Kind, x: str, number: str) -> str:
        """Name a component; a dynamic one is read through memory."""
        if number.isdigit():
            return f"{x}.s{int(number):x}"
        return f"((const {self.type(Kind(kind.element))} *)&{x})[{number}]"

    def set_lane(self, kind: Kind, x: str, number: str, value: str) -> str:
        """Assign a component."""
        if number.isdigit():
            return f"{self.lane(kind, x, number)} = {value};"
        return f"(({self.type(Kind(kind.element))} *)&{x})[{number}] = {value};"

    def small(self, kind: Kind, constant: str) -> str:
        """Cast a constant that is combined with a vector of narrower integers."""
        return f"(({self.type(Kind(kind.element))}){constant})" if kind.bits < 32 else constant

    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Use clang's builtin, else components: LLVM merges these to shuffles of many vectors."""
        parts = [
            self.lane(source, "x" if n < source.lanes else "y", str(n % source.lanes))
            for n in lanes
        ]
        self.prelude.types["SW_HAS"] = HAS
        rows = [
            "#if SW_HAS(__builtin_shufflevector)",
            f"return __builtin_shufflevector(x, y, {', '.join(map(str, lanes))});",
            "#else",
            f"return {self.lanes_of(kind, parts)};",
            "#endif",
        ]
        name = f"sw_shuffle_{kind}_{source}_{'_'.join(map(str, lanes))}"
        return f"{self.helper(name, kind, [(source, 'x'), (source, 'y')], rows)}({x}, {y})"
