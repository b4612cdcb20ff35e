"""Instructions that add several products to each lane of a register, in one table.

A row has everything the compiler needs of an instruction: the element types it multiplies, their
number, the machines that have it, and its spelling in C. The schedule looks up the instructions of
a machine in the table, packing reads the number of elements per word from it, and the C emitter its
spellings. A new instruction is a new row.

Packed operands have the same layout for all rows. A word of 32 bits holds ``terms`` consecutive
elements of the reduction. For the operand with the columns, the words of neighbouring columns are
adjacent; a word of the operand with the rows is broadcast to all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

WORD = 32
"""Bits of a word, and of a lane of the accumulator."""
BITS = {"i8": 8, "ui8": 8, "f16": 16, "bf16": 16}
"""The element types that words consist of, with their widths; ``i8`` is signed."""
TOTALS = {"i8": "i32", "ui8": "i32", "f16": "f32", "bf16": "f32"}
"""The accumulator type of each element type."""


class Builtin(NamedTuple):
    """A builtin of gcc or clang: register allocation treats it best.

    name : ``{lanes}`` stands for the number of lanes
    factor : the C element type of the vectors that are multiplied; "" for plain words
    condition : the condition under which the compiler has it
    """

    name: str
    factor: str = ""
    condition: str = ""


@dataclass(frozen=True)
class DotInstruction:
    """An instruction: ``total[lane] += x[lane][0] * w[lane][0] + x[lane][1] * w[lane][1] + ...``.

    set : its instruction set, by the name in `Machine.instructions`
    x, w : the element types; it multiplies the first by the second, in this order
    lanes : the numbers of lanes of the registers it works on
    defined : the condition under which a C compiler supports it
    flag : the option that enables it in gcc and clang
    text : its assembler syntax: %0 is the accumulator, %1 and %2 are the factors
    builtins : the compilers' functions of accumulator and factors, tried in order
    intrinsic, header : the vendors' names
    rows : of the accumulator tile, for an instruction that adds to more than one register
    per_fma : how many can start per multiply-add of the same number of lanes
    flushes : whether subnormal factors and sums count as zero
    """

    set: str
    x: str
    w: str
    lanes: tuple[int, ...]
    defined: str
    flag: str
    text: str
    intrinsic: str
    header: str
    builtins: tuple[Builtin, ...] = ()
    rows: int = 1
    per_fma: float = 1.0
    flushes: bool = False

    @property
    def total(self) -> str:
        """The accumulator type."""
        return TOTALS[self.x]

    @property
    def terms(self) -> int:
        """The number of products that one lane adds."""
        return terms_of(self.x)


def terms_of(element: str) -> int:
    """Return the number of elements per word.

    >>> terms_of("i8"), terms_of("bf16")
    (4, 2)
    """
    return WORD // BITS[element]


PER_FMA_OF_TILES = 7.2
"""A tile instruction multiplies 16 rows, 16 lanes and 16 words, 256 registers of lanes, in 16
cycles, in which two ports begin 32 multiply-adds (Intel's manual): eight times as many. On an Intel
Xeon it was measured to take 5.17 ns, where two ports at the measured 3.44 GHz need 37 ns for 256.
"""
_X86, _ARM = "immintrin.h", "arm_neon.h"
_VL = " && defined(__AVX512VL__)"
_BUSD, _BF = "vpdpbusd %2, %1, %0", "vdpbf16ps %2, %1, %0"
_BUSDS = (Builtin("__builtin_ia32_vpdpbusd_v{lanes}si"),)
_BFS = (
    Builtin("__builtin_ia32_dpbf16ps_v{lanes}sf", "short", "__GNUC__ < 13"),
    Builtin("__builtin_ia32_dpbf16ps_v{lanes}sf", "__bf16"),
)

# fmt: off
_OF_REGISTERS = (
    DotInstruction("avx512_vnni", "ui8", "i8", (16,), "defined(__AVX512VNNI__)",
                   "-mavx512vnni", _BUSD, "_mm512_dpbusd_epi32", _X86, _BUSDS),
    DotInstruction("avx512_vnni", "ui8", "i8", (8, 4), "defined(__AVX512VNNI__)" + _VL,
                   "-mavx512vnni", _BUSD, "_mm256_dpbusd_epi32", _X86, _BUSDS),
    DotInstruction("avx_vnni", "ui8", "i8", (8, 4), "defined(__AVXVNNI__)",
                   "-mavxvnni", "{vex} " + _BUSD, "_mm256_dpbusd_avx_epi32", _X86, _BUSDS),
    DotInstruction("avx512_bf16", "bf16", "bf16", (16,), "defined(__AVX512BF16__)",
                   "-mavx512bf16", _BF, "_mm512_dpbf16_ps", _X86, _BFS, flushes=True),
    DotInstruction("avx512_bf16", "bf16", "bf16", (8, 4), "defined(__AVX512BF16__)" + _VL,
                   "-mavx512bf16", _BF, "_mm256_dpbf16_ps", _X86, _BFS, flushes=True),
    DotInstruction("neon_dot", "i8", "i8", (4,), "defined(__ARM_FEATURE_DOTPROD)",
                   "-march=armv8.2-a+dotprod", "sdot %0.4s, %1.16b, %2.16b", "vdotq_s32", _ARM),
    DotInstruction("neon_dot", "ui8", "ui8", (4,), "defined(__ARM_FEATURE_DOTPROD)",
                   "-march=armv8.2-a+dotprod", "udot %0.4s, %1.16b, %2.16b", "vdotq_u32", _ARM),
    DotInstruction("neon_i8mm", "ui8", "i8", (4,), "defined(__ARM_FEATURE_MATMUL_INT8)",
                   "-march=armv8.2-a+i8mm", "usdot %0.4s, %1.16b, %2.16b", "vusdotq_s32", _ARM),
    DotInstruction("neon_bf16", "bf16", "bf16", (4,),
                   "defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)",
                   "-march=armv8.2-a+bf16", "bfdot %0.4s, %1.8h, %2.8h", "vbfdotq_f32", _ARM,
                   flushes=True),
)
# fmt: on
_AMX = (
    ("amx_int8", "i8", "i8", "bssd"),
    ("amx_int8", "i8", "ui8", "bsud"),
    ("amx_int8", "ui8", "i8", "busd"),
    ("amx_int8", "ui8", "ui8", "buud"),
    ("amx_bf16", "bf16", "bf16", "bf16ps"),
)
_OF_TILES = tuple(
    DotInstruction(
        *(set, x, w, (16,), f"defined(__{set.upper()}__)"),
        *(f"-m{set.replace('_', '-')}", f"tdp{name}", f"_tile_dp{name}", _X86),
        rows=16,
        per_fma=PER_FMA_OF_TILES,
        flushes=x == "bf16",
    )
    for set, x, w, name in _AMX
)
DOT_INSTRUCTIONS: tuple[DotInstruction, ...] = (*_OF_REGISTERS, *_OF_TILES)
"""All instructions, for each kind the widest and fastest first.

f16 has no row. AVX512-FP16 and NEON accumulate products of f16 in f16, which keeps 11 bits of a sum
where f32 keeps 24, so such products are computed in f32. OpenCL has no rows: its compilers share no
name for such an instruction.
"""


def instructions_for(x: str, w: str, lanes: int = 0) -> list[tuple[DotInstruction, bool]]:
    """Return the rows for two element types, and whether the factors are exchanged.

    lanes : of the registers; 0 for any
    """
    found: list[tuple[DotInstruction, bool]] = []
    for row in DOT_INSTRUCTIONS:
        if (
            row.rows == 1
            and (not lanes or lanes in row.lanes)
            and {(row.x, row.w)} & {(x, w), (w, x)}
        ):
            found.append((row, (row.x, row.w) != (x, w)))
    return found


def tile_instruction(sets: Sequence[str], x: str, w: str) -> DotInstruction | None:
    """Return a machine's instruction that adds to a whole accumulator tile, None without one.

    >>> tile_instruction(["amx_int8"], "ui8", "i8").text
    'tdpbusd'
    """
    fits = (row for row in DOT_INSTRUCTIONS if (row.x, row.w) == (x, w) and row.rows > 1)
    return next((row for row in fits if row.set in sets), None)


def speedup(sets: Sequence[str], x: str, w: str) -> float:
    """Return the multiply-add rate of these instruction sets relative to f32.

    0 without an instruction for the elements.

    >>> speedup(["avx512_bf16"], "bf16", "bf16")
    2.0
    >>> speedup(["avx512_bf16"], "f16", "f16")
    0.0
    """
    rates = [row.terms * row.per_fma for row, _ in instructions_for(x, w) if row.set in sets]
    tiles = tile_instruction(sets, x, w)
    return max([*rates, tiles.terms * tiles.per_fma] if tiles else rates, default=0.0)
