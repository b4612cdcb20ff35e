"""Types and vectors of GNU C.

Vectors of booleans are vectors of integers, all bits set or none, as wide as the compared
elements; gcc and clang use mask registers for comparison, and/andnot and blend of these where
the machine has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import C_WORDS
from stepwell.lowering.emit.spelling.values import Values
from stepwell.lowering.emit.x86 import doubled, shuffled

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


class CValues(Values):
    """The vector extensions of gcc and clang."""

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

    def shuffle(self, kind: Kind, x: str, y: str, source: Kind, lanes: Sequence[int]) -> str:
        """Use the builtin that clang and gcc (since 12) share, or a macro of that name."""
        self.type(kind)
        self.prelude.functions["__builtin_shufflevector"] = SHUFFLE
        return f"__builtin_shufflevector({x}, {y}, {', '.join(map(str, lanes))})"

    def permuted(self, table: Kind, which: Kind, x: str, y: str) -> list[str]:
        """Use gcc's or clang's builtin, whose indices have the number and width of the lanes.

        Fewer indices are repeated until they have.
        """
        few = 1 < which.lanes < table.lanes
        if table.bits != which.bits or not (few or which.lanes == table.lanes):
            return []
        if few:
            repeated = [k % which.lanes for k in range(table.lanes)]
            y = self.shuffle(Kind(which.element, table.lanes), y, y, which, repeated)
        kind = Kind(table.element, which.lanes)
        rows: list[str] = []
        ways = [("defined(__GNUC__) && !defined(__clang__)", "__builtin_shuffle"), shuffled(table)]
        for condition, builtin in ways:
            if not builtin:
                continue
            found = f"{builtin}({x}, {y})"
            if few:
                found = self.shuffle(kind, found, found, table, range(which.lanes))
            rows += [f"#{'elif' if rows else 'if'} {condition}", f"return {found};"]
        return [*rows, "#else"]


_AVX512 = ("defined(__AVX512VL__)", "v")
_AVX = ("defined(__AVX__)", "x")
_REGISTERS = {
    512: [_AVX512],
    256: [_AVX512, _AVX],
    128: [_AVX512, ("defined(__SSE2__)", "x"), ("defined(__aarch64__)", "w")],
    64: [
        ("defined(__SSE2__) && defined(__x86_64__) && !defined(__clang__)", "x"),
        ("defined(__aarch64__)", "w"),
    ],
}
"""By vector length in bits: the machines with such registers, and their asm constraints.

clang holds vectors of 64 bits in no register of SSE.
"""

SHUFFLE = """\
#if !SW_HAS(__builtin_shufflevector) /* gcc before 12 shuffles vectors of one length alone */
#define __builtin_shufflevector(x, y, ...) __extension__ ({ \\
  enum { \\
    from_ = sizeof(x) / sizeof((x)[0]), to_ = sizeof((signed char[]){__VA_ARGS__}), \\
    all_ = from_ > to_ ? from_ : to_, bytes_ = sizeof((x)[0]) \\
  }; \\
  typedef __typeof__((__typeof__((x)[0]))0) lane_; \\
  typedef __typeof__( \\
      __builtin_choose_expr(bytes_ == 8, 0LL, __builtin_choose_expr(bytes_ == 4, 0, \\
      __builtin_choose_expr(bytes_ == 2, (short)0, (signed char)0)))) index_; \\
  typedef lane_ whole_ __attribute__((vector_size(all_ * bytes_))); \\
  typedef index_ indices_ __attribute__((vector_size(all_ * bytes_))); \\
  lane_ result_ __attribute__((vector_size(to_ * bytes_))); \\
  const __typeof__(x) x_ = (x), y_ = (y); \\
  whole_ a_, b_; \\
  __builtin_memcpy(&a_, &x_, sizeof x_); \\
  __builtin_memcpy(&b_, &y_, sizeof y_); \\
  indices_ at_ = {__VA_ARGS__}; \\
  at_ += (at_ >= (index_)from_) & (index_)(all_ - from_); \\
  a_ = __builtin_shuffle(a_, b_, at_); \\
  __builtin_memcpy(&result_, &a_, sizeof result_); \\
  result_; \\
})
#endif"""


def _intermediate_kind(to: Kind, source: Kind) -> Kind | None:
    """Return the intermediate kind of a conversion that gcc else does lane by lane, or None.

    Small integers and floats are converted through i32, which holds all of the integers.
    """
    whole, real = (source, to) if to.element[0] == "f" else (to, source)
    small = whole.element[0] != "f" and whole.bits < 32
    return to.of("i32") if small and real.element in ("f32", "f64") else None
