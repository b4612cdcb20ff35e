"""C with the vector extensions of gcc and clang: no includes, only compiler builtins.

Vectors of booleans are vectors of integers, all bits set or none, as wide as the compared
elements; gcc and clang use mask registers for comparison, and/andnot and blend of these where
the machine has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from stepwell.lowering.emit.dot_instructions import dots
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import C_WORDS, FAULT
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.x86 import (
    doubled,
    extreme,
    extreme_of_constant,
    first_lanes,
    instruction,
    integer_extreme,
    shuffled,
    streaming,
)

_SCALARS = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "index": "int64_t",
    "i1": "_Bool",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}

_FMA = {
    "f32x16": ("__AVX512F__", "vfmaddps512_mask(x, y, z, -1, 4)"),
    "f64x8": ("__AVX512F__", "vfmaddpd512_mask(x, y, z, -1, 4)"),
    "f32x8": ("__FMA__", "vfmaddps256(x, y, z)"),
    "f64x4": ("__FMA__", "vfmaddpd256(x, y, z)"),
    "f32x4": ("__FMA__", "vfmaddps(x, y, z)"),
    "f64x2": ("__FMA__", "vfmaddpd(x, y, z)"),
}
"""Fused multiply-add of vectors: gcc makes sixteen calls of a loop over lanes."""

_ROUND = {"floor": 9, "ceil": 10, "trunc": 11, "rint": 8}
"""Rounding modes of x86 (with exceptions suppressed)."""

_WHOLE = frozenset({*_ROUND, "sqrt", "fma"})
"""Functions with whole-vector builtins in some compilers."""

_BUILTIN = frozenset({"floor", "ceil", "trunc", "rint", "sqrt", "fabs", "copysign", "fma"})
"""Functions that the compilers inline; the others are declared and called."""


class CSpelling(Spelling):
    """GNU C11."""

    words: ClassVar[frozenset[str]] = C_WORDS
    scalars: ClassVar[dict[str, str]] = _SCALARS
    private_function: ClassVar[str] = "static inline "
    scalar_code: ClassVar[str] = (
        '__attribute__((optimize("O3", "no-tree-slp-vectorize", "vect-cost-model=dynamic")))\n'
    )
    """Disables gcc's SLP vectorizer: the next iteration would wait for its stores."""

    def type(self, kind: Kind) -> str:
        """Return a C type; vectors are named like ``f32x16``."""
        if not kind.lanes:
            name = _SCALARS[kind.element]
            if name.endswith("_t") and name not in self.prelude.types:
                macro = f"__{name[:-2].upper()}_TYPE__"
                self.prelude.types[name] = f"typedef {macro} {name};"
            return name
        if kind.is_mask or kind.element == "index":
            return self.type(kind.signed)
        if kind.element in ("f16", "bf16", "i1"):
            return self.type(kind.unsigned)
        name = str(kind)
        if name not in self.prelude.types:
            scalar, size = self.type(kind.scalar), kind.bits // 8 * kind.lanes
            self.prelude.types[name] = (
                f"typedef {scalar} {name} __attribute__((vector_size({size})));\n"
                f"typedef {scalar} {name}_u __attribute__((vector_size({size}), "
                f"aligned({kind.bits // 8}), may_alias));"
            )
        return name

    def not_a_number(self, element: str, infinite: bool) -> str:
        """Spell NaN and infinity without math.h."""
        suffix = "f" if element == "f32" else ""
        return f"__builtin_inf{suffix}()" if infinite else f'__builtin_nan{suffix}("")'

    def splat(self, kind: Kind, x: str) -> str:
        """Broadcast: gcc and clang emit one instruction for ``x - (f32x16){0}``, which is exact."""
        name, vector = self.type(kind), self.type(kind)
        scalar = Kind(vector.partition("x")[0])
        self.helper(f"sw_splat_{name}", kind, [(scalar, "x")], [f"return x - ({vector}){{0}};"])
        return f"sw_splat_{name}({x})"

    def unroll(self, times: int) -> str:
        """Use the pragma that gcc and clang share."""
        return f"#pragma GCC unroll {times}"

    def side_by_side(self, sums: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Use OpenMP's simd pragma, which compilers accept without its library."""
        added = "".join(f" reduction({operator}:{name})" for operator, name in sums)
        return (f"#pragma omp simd{added}",)

    def independent(self) -> str:
        """Use the pragma of either compiler."""
        self.prelude.types["SW_INDEPENDENT"] = (
            "#if defined(__clang__)\n"
            '#define SW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")\n'
            "#else\n"
            '#define SW_INDEPENDENT _Pragma("GCC ivdep")\n'
            "#endif"
        )
        return "SW_INDEPENDENT"

    def held(self, kind: Kind, x: str) -> str:
        """Hide the value of ``x`` by an empty asm: gcc would reload it at each of a few uses."""
        condition = _REGISTERS.get(kind.bits * kind.lanes)
        if condition is None:
            return x
        rows = [
            row
            for n, (machine, letter) in enumerate(condition)
            for row in (
                f"#{'elif' if n else 'if'} {machine}",
                f'__asm__("" : "+{letter}"(x));',
            )
        ]
        name = f"sw_held_{self.type(kind)}"
        return f"{self.helper(name, kind, [(kind, 'x')], [*rows, '#endif', 'return x;'])}({x})"

    def pinned(self, kind: Kind, x: str) -> str:
        """Hide the value of ``x`` by an empty asm, so that no earlier fact about it is used."""
        rows = ['__asm__("" : "+r"(x));', "return x;"]
        return f"{self.helper(f'sw_pinned_{kind}', kind, [(kind, 'x')], rows)}({x})"

    def noting(self) -> tuple[str, Sequence[str]]:
        """Record the guard of the first thread to fail, by a compare-and-swap."""
        head = "__attribute__((cold, noinline, unused)) static void sw_fault(struct sw_fault"
        swap = "__atomic_compare_exchange_n(&fault->number, &none, number, 0, "
        swap += "__ATOMIC_RELAXED, __ATOMIC_RELAXED)"
        return head, (f"{self.type(Kind('i32'))} none = 0;", f"if (!{swap}) return;")

    def faulted(self) -> str:
        """Read the number atomically, as other threads may write it."""
        return f"__atomic_load_n(&{FAULT}->number, __ATOMIC_RELAXED)"

    def address(self, pointer: str) -> str:
        """Cast the pointer to an integer."""
        return f"(__UINTPTR_TYPE__){pointer}"

    def prefetch(self, address: str) -> str:
        """Prefetch for reading, into the second-level cache."""
        return f"__builtin_prefetch({address}, 0, 2);"

    def lanes_of(self, kind: Kind, lanes: Sequence[str]) -> str:
        """Return a compound literal."""
        return f"({self.type(kind)}){{{', '.join(lanes)}}}"

    def bits(self, to: Kind, x: str, source: Kind) -> str:
        """Cast vectors, and scalars of one family; copy the bytes of others."""
        target, origin = self.type(to), self.type(source)
        if target == origin:
            return x
        floats = {"float", "double"} & {target, origin}
        if to.lanes or source.lanes or not floats:
            return f"(({target}){x})"
        name = f"sw_bits_{to}_from_{source}"
        body = [f"{target} y;", "__builtin_memcpy(&y, &x, sizeof y);", "return y;"]
        return f"{self.helper(name, to, [(source, 'x')], body)}({x})"

    def convert(self, to: Kind, x: str, source: Kind) -> str:
        """Cast scalars; convert vectors by one expression over all lanes."""
        target = self.type(to)
        if target == self.type(source):
            return x
        middle = _intermediate_kind(to, source) if to.lanes else None
        if middle is not None:
            return self.convert(to, self.convert(middle, x, source), middle)
        if rows := doubled(to, source) if to.lanes else []:
            body = [*rows, f"return __builtin_convertvector(x, {target});", "#endif"]
            return f"{self.helper(f'sw_{to}_from_{source}', to, [(source, 'x')], body)}({x})"
        if to.lanes and source.bits == 8 and to.bits >= 32:
            x = self.held(source, x)  # otherwise gcc reloads the bytes one by one
        return f"__builtin_convertvector({x}, {target})" if to.lanes else f"(({target}){x})"

    def compared(self, kind: Kind, comparison: str) -> str:
        """Cast a vector comparison to its mask type: compilers differ in its type."""
        return f"(({self.type(kind.mask)})({comparison}))" if kind.lanes else f"({comparison})"

    def select(self, kind: Kind, mask: str, yes: str, no: str) -> str:
        """Blend by and/andnot: ``m ? a : b`` of vectors is an error in C."""
        vector, bits = self.type(kind), self.type(kind.signed)
        name = self.helper(
            f"sw_select_{vector}",
            kind,
            [(kind.mask, "m"), (kind, "x"), (kind, "y")],
            [f"return ({vector})((m & ({bits})x) | (~m & ({bits})y));"],
        )
        return f"{name}({mask}, {yes}, {no})"

    def lane(self, kind: Kind, x: str, number: str) -> str:
        """Use a subscript."""
        return f"{x}[{number}]"

    def set_lane(self, kind: Kind, x: str, number: str, value: str) -> str:
        """Assign to a subscript."""
        return f"{x}[{number}] = {value};"

    def load(self, kind: Kind, address: str, space: str = "") -> str:
        """Load through a type that may be unaligned and alias anything."""
        return f"*(const {self.type(kind)}_u *){address}"

    def store(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Store through the same type."""
        return f"*({self.type(kind)}_u *){address} = {x};"

    def stream(self, kind: Kind, address: str, x: str, space: str = "") -> str:
        """Use non-temporal stores for aligned vectors; test the alignment at run time."""
        type = self.type(kind)
        if not (rows := streaming(kind, type)):
            return self.store(kind, address, x)
        body = [*rows, self.store(kind, "p", "x")]
        name = self.helper(f"sw_stream_{type}", None, [("void *", "p"), (kind, "x")], body)
        return f"{name}({address}, {x});"

    def fence(self) -> str:
        """Use a store fence: on x86 a release does not order non-temporal stores."""
        rows = ["#if defined(__SSE__)", "__builtin_ia32_sfence();", "#endif"]
        return f"{self.helper('sw_fence', None, [], rows)}();"

    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Use the builtin that clang and gcc (since 12) share."""
        self.type(kind)
        return f"__builtin_shufflevector({x}, {y}, {', '.join(map(str, lanes))})"

    def permuted(self, table: Kind, which: Kind, x: str, y: str) -> list[str]:
        """Use gcc's builtin, whose indices must have the number and width of the lanes."""
        if (table.lanes, table.bits) != (which.lanes, which.bits):
            return []
        condition = "#if defined(__GNUC__) && !defined(__clang__)"
        return [condition, f"return __builtin_shuffle({x}, {y});", *shuffled(table), "#else"]

    def each_lane(
        self, result: Kind, sources: Sequence[tuple[Kind, str]], each: Callable[..., str]
    ) -> list[str]:
        """Loop over the lanes."""
        lanes = (
            f"({name}[k] != 0)" if kind.is_mask else f"{name}[k]" if kind.lanes else name
            for kind, name in sources
        )
        value = each(*lanes)
        return [
            f"{self.type(result)} r = {{0}};",
            f"for (int k = 0; k < {result.lanes}; k++) "
            f"r[k] = {f'-({value})' if result.is_mask else value};",
            "return r;",
        ]

    def function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        """Call the C library, lane by lane if there is no vector version."""
        if kind.lanes:
            return self._vector_function(name, kind, operands)
        suffix = "f" if kind.element == "f32" else ""
        if name in _BUILTIN:
            return f"__builtin_{name}{suffix}({', '.join(operands)})"
        scalar = self.type(kind)
        called = f"{name}{suffix}"
        self.prelude.types.setdefault(
            called, f"{scalar} {called}({', '.join([scalar] * len(operands))});"
        )
        return f"{called}({', '.join(operands)})"

    def _vector_function(self, name: str, kind: Kind, operands: Sequence[str]) -> str:
        parameters = [(kind, letter) for letter in "xyz"[: len(operands)]]
        loop = self.each_lane(
            kind, parameters, lambda *lanes: self.function(name, kind.scalar, lanes)
        )
        fast = _fast_paths(name, kind)
        helper = self.helper(
            f"sw_{name}_{kind}", kind, parameters, [*fast, *loop, *["#endif"][: len(fast)]]
        )
        return f"{helper}({', '.join(operands)})"

    def bit_count(self, what: str, kind: Kind) -> list[str]:
        """Use the compiler's builtins, which are undefined for zero."""
        unsigned = f"({self.type(kind.unsigned)})x"
        if what == "ones":
            return [f"return __builtin_popcountll({unsigned});"]
        count = "__builtin_ctzll" if what == "trailing" else "__builtin_clzll"
        less = f" - {64 - kind.bits}" if what == "leading" and kind.bits < 64 else ""
        return [f"return x == 0 ? {kind.bits} : {count}({unsigned}){less};"]

    def first_lanes(self, kind: Kind, *numbers: str) -> list[str]:
        """Use AVX-512."""
        return first_lanes(kind, numbers)

    def masked_load(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Load lane by lane."""
        body = [
            f"for (int k = 0; k < {kind.lanes}; k++) if (m[k]) y[k] = p[k];",
            "return y;",
        ]
        parameters = [(pointer, "p"), (mask, "m"), (kind, "y")]
        return self.helper(f"sw_load_{kind}_{mask}", kind, parameters, body)

    def masked_store(self, kind: Kind, mask: Kind, pointer: str) -> str:
        """Store lane by lane."""
        body = [f"for (int k = 0; k < {kind.lanes}; k++) if (m[k]) p[k] = x[k];"]
        parameters = [(pointer, "p"), (mask, "m"), (kind, "x")]
        return self.helper(f"sw_store_{kind}_{mask}", None, parameters, body)

    def high_half(self, signed: bool) -> str:
        """Multiply in 128 bits."""
        if signed:
            return "(int64_t)((__int128)x * y >> 64)"
        wide = self.type(Kind("u64"))
        return f"(int64_t)((unsigned __int128)({wide})x * ({wide})y >> 64)"

    def half_conversion(self, kind: Kind, widening: bool) -> list[str]:
        """Use AVX-512 or F16C for vectors of their width; the rounding is the same."""
        if kind.lanes == 16:
            condition, size, mask = "defined(__AVX512F__)", "512_mask", ", (ZERO){0}, -1"
        elif kind.lanes == 8:
            condition = "defined(__F16C__) && SW_HAS(__builtin_ia32_vcvtph2ps256)"
            size, mask = "256", ""
        else:
            return []
        shorts, wide = self.type(kind.of("i16")), self.type(kind.of("f32"))
        if widening:
            extra = mask.replace("ZERO", wide) + (", 4" if mask else "")
            call = f"return __builtin_ia32_vcvtph2ps{size}(({shorts})h{extra});"
        else:
            extra = mask.replace("ZERO", shorts)
            call = f"return ({self.type(kind)})__builtin_ia32_vcvtps2ph{size}(x, 0{extra});"
        return [f"#if {condition}", call, "#else"]

    def quick(self, what: str, kind: Kind) -> list[str]:
        """Use the builtins of gcc and clang for x86."""
        if what.startswith("dot "):
            _, x, y = what.split()
            return dots(x, y, kind, self.type)
        name, _, constant = what.partition("_")
        if constant:
            return extreme_of_constant(name, kind)
        if name.endswith(("si", "ui")):
            return integer_extreme(name, kind)
        if name.startswith(("max", "min")):
            return extreme(name, kind)
        return instruction(name, kind)

    def fma(self, kind: Kind, x: str, y: str, z: str) -> str:
        """Use one fused instruction where the machine has it."""
        return self.function("fma", kind, (x, y, z))


_AVX512 = ("defined(__AVX512VL__)", "v")
_AVX = ("defined(__AVX__)", "x")
_REGISTERS = {
    512: [_AVX512],
    256: [_AVX512, _AVX],
    128: [_AVX512, ("defined(__SSE2__)", "x"), ("defined(__aarch64__)", "w")],
    64: [("defined(__SSE2__) && defined(__x86_64__)", "x"), ("defined(__aarch64__)", "w")],
}
"""By vector length in bits: the machines with such registers, and their asm constraints."""


def _intermediate_kind(to: Kind, source: Kind) -> Kind | None:
    """Return the intermediate kind of a conversion that gcc else does lane by lane, or None.

    Small integers and floats are converted through i32, which holds all of the integers.
    """
    whole, real = (source, to) if to.element[0] == "f" else (to, source)
    small = whole.element[0] != "f" and whole.bits < 32
    return to.of("i32") if small and real.element in ("f32", "f64") else None


def _fast_paths(name: str, kind: Kind) -> list[str]:
    """Return preprocessor branches that compute ``name`` on whole vectors."""
    if name not in _WHOLE:
        return []
    arguments = "x, y, z" if name == "fma" else "x"
    rows = [
        f"#if SW_HAS(__builtin_elementwise_{name})",
        f"return __builtin_elementwise_{name}({arguments});",
    ]
    letter, size = ("s" if kind.element == "f32" else "d"), kind.bits * kind.lanes
    condition, call = "", ""
    if name == "fma":
        condition, call = _FMA.get(str(kind), ("", ""))
    elif size == 512:
        condition = "__AVX512F__"
        call = f"sqrtp{letter}512_mask(x, x, -1, 4)"
        if name != "sqrt":
            call = f"rndscalep{letter}_mask(x, {_ROUND[name]}, x, -1, 4)"
    elif size == 256:
        condition = "__AVX__"
        call = f"sqrtp{letter}256(x)" if name == "sqrt" else f"roundp{letter}256(x, {_ROUND[name]})"
    if condition:
        rows += [f"#elif defined({condition})", f"return __builtin_ia32_{call};"]
    return [*rows, "#else"]
