"""OpenCL C: native vectors, and built-in functions on vectors.

A vector has 2, 4, 8 or 16 lanes. Comparing vectors gives integers of the same width, all bits set
or none, as in C. f16 and bf16 are stored as bits (`ushort`), so half support is not required; f64
requires it of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import FAULT, OPENCL_WORDS
from stepwell.lowering.emit.spelling import Spelling

LANES = frozenset({0, 2, 4, 8, 16})
"""The possible numbers of lanes of a vector; 0 is a scalar."""

_WRONG_IN_VECTORS = frozenset({"sin", "cos", "tan"})
"""PoCL's are off by 0.01 for tiny numbers in vectors, but correct for scalars."""

_WHOLE = {"fabs": "abs", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
"""Vector functions that clang has as builtins: in PoCL's library each is a call of 1.2 ns or more,
instead of 0.1 to 0.3 ns (vectors of eight f32 on an AMD EPYC)."""

HAS = """\
#ifdef __has_builtin
#define SW_HAS(name) __has_builtin(name)
#else
#define SW_HAS(name) 0
#endif"""

MEMORY = """\
#ifdef __clang__
#define SW_LOAD(space, type, lanes, p) (*(space const type##_at *)(p))
#define SW_STORE(space, type, lanes, p, x) (*(space type##_at *)(p) = (x))
#else
#define SW_LOAD(space, type, lanes, p) vload##lanes(0, p)
#define SW_STORE(space, type, lanes, p, x) vstore##lanes(x, 0, p)
#endif
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store) && defined(__SSE__)
#define SW_PAST(x, p) __builtin_nontemporal_store(x, p)
#endif
#endif"""
"""Vector loads and stores: PoCL's ``vloadn`` and ``vstoren`` are function calls too."""

FMA = """\
#if defined(__clang__) && defined(__FMA__)
#pragma OPENCL FP_CONTRACT ON
#define SW_FMA(x, y, z) ((x) * (y) + (z))
#else
#define SW_FMA(x, y, z) fma(x, y, z)
#endif"""
"""A multiply-add that is rounded once. clang contracts the expression to one instruction where the
processor has it; ``fma`` of PoCL's library takes twenty times as long."""

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


class OpenCLSpelling(Spelling):
    """OpenCL C 1.2."""

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

    def small(self, kind: Kind, constant: str) -> str:
        """Cast a constant that is combined with a vector of narrower integers."""
        return f"(({self.type(Kind(kind.element))}){constant})" if kind.bits < 32 else constant

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

    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Load through a type with the alignment of an element."""
        return f"SW_LOAD({space.strip()}, {self._unaligned(kind)}, {kind.lanes}, {address})"

    def pinned(self, kind: Kind, x: str) -> str:
        """Return it unchanged: only this work-item writes the memory."""
        rows = [f"volatile {self.type(kind)} y = x;", "return y;"]
        return f"{self.helper(f'sw_pinned_{kind}', kind, [(kind, 'x')], rows)}({x})"

    def noting(self) -> tuple[str, Sequence[str]]:
        """Record the guard of the first work-item to fail."""
        swap = "atomic_cmpxchg((volatile __global int *)&fault->number, 0, number)"
        return "void sw_fault(__global struct sw_fault", (f"if ({swap}) return;",)

    def faulted(self) -> str:
        """Read the number of the recorded guard."""
        return f"{FAULT}->number"

    def address(self, pointer: str) -> str:
        """Cast the pointer to an integer."""
        return f"(ulong){pointer}"

    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Store through the same type."""
        type = self._unaligned(kind)
        return f"SW_STORE({space.strip()}, {type}, {kind.lanes}, {address}, {x});"

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Write aligned vectors with non-temporal stores, where the compiler has them."""
        type = self.type(kind)
        rows = [
            "#ifdef SW_PAST",
            f"if (((ulong)p & {kind.bits // 8 * kind.lanes - 1}) == 0) {{",
            f"  SW_PAST(x, ({space}{type} *)p);",
            "  return;",
            "}",
            "#endif",
            self.store(kind, "p", "x", space),
        ]
        pointer = f"{space}{self.type(kind.scalar)} *"
        name = f"sw_stream_{space.strip(' _')}_{type}"
        return f"{self.helper(name, None, [(pointer, 'p'), (kind, 'x')], rows)}({address}, {x});"

    def _unaligned(self, kind: Kind) -> str:
        """Declare a vector type with the alignment of an element; return its name."""
        type = self.type(kind)
        self.prelude.types["SW_LOAD"] = MEMORY
        self.prelude.types[f"{type}_at"] = (
            f"typedef {type} {type}_at __attribute__((aligned({kind.bits // 8})));"
        )
        return type

    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Build the vector from components."""
        parts = [
            self.lane(source, x if n < source.lanes else y, str(n % source.lanes)) for n in lanes
        ]
        return self.lanes_of(kind, parts)

    def each_lane(
        self, result: Kind, sources: Sequence[tuple[Kind, str]], each: Callable[..., str]
    ) -> list[str]:
        """Build the vector from its lanes."""
        rows: list[str] = []
        for number in range(result.lanes):
            lanes = (
                self.lane(kind, name, str(number)) if kind.lanes else name for kind, name in sources
            )
            tested = (
                f"({lane} != 0)" if kind.is_mask else lane
                for lane, (kind, _) in zip(lanes, sources, strict=True)
            )
            rows.append(f"-({each(*tested)})" if result.is_mask else each(*tested))
        return [f"return {self.lanes_of(result, rows)};"]

    def function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        """Call a built-in function; OpenCL has all of C's, also for vectors."""
        self.type(kind)
        if name in _WHOLE and kind.lanes:
            plain, whole = f"{name}(x)", f"__builtin_elementwise_{_WHOLE[name]}"
            self.prelude.types["SW_HAS"] = HAS
            rows = [f"#if SW_HAS({whole})", f"return {whole}(x);", "#else", f"return {plain};"]
            helper = self.helper(f"sw_{name}_{kind}", kind, [(kind, "x")], [*rows, "#endif"])
            return f"{helper}({operands[0]})"
        if name in _WRONG_IN_VECTORS and kind.lanes:
            lanes = [f"{name}({self.lane(kind, 'x', str(k))})" for k in range(kind.lanes)]
            rows = [f"return {self.lanes_of(kind, lanes)};"]
            return f"{self.helper(f'sw_{name}_{kind}', kind, [(kind, 'x')], rows)}({operands[0]})"
        return f"{name}({', '.join(operands)})"

    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Load lane by lane."""
        rows = [
            f"if ({self.lane(mask, 'm', str(k))}) {self.set_lane(kind, 'y', str(k), f'p[{k}]')}"
            for k in range(kind.lanes)
        ]
        space = pointer.split()[0].strip("_")
        parameters = [(pointer, "p"), (mask, "m"), (kind, "y")]
        name = f"sw_load_{space}_{kind}_{mask}"
        return self.helper(name, kind, parameters, [*rows, "return y;"])

    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Store lane by lane."""
        rows = [
            f"if ({self.lane(mask, 'm', str(k))}) p[{k}] = {self.lane(kind, 'x', str(k))};"
            for k in range(kind.lanes)
        ]
        space = pointer.split()[0].strip("_")
        parameters = [(pointer, "p"), (mask, "m"), (kind, "x")]
        return self.helper(f"sw_store_{space}_{kind}_{mask}", None, parameters, rows)

    def high_half(self, signed: bool) -> str:
        """Use ``mul_hi``."""
        return "mul_hi(x, y)" if signed else "(long)mul_hi((ulong)x, (ulong)y)"

    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Use an expression that clang contracts if the processor can, else ``fma``."""
        self.type(kind)
        self.prelude.types["SW_FMA"] = FMA
        return f"SW_FMA({x}, {y}, {z})"
