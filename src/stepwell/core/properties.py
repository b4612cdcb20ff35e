"""Properties of a machine: unit, range, and syntax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field
from typing import Any

KINDS = ("cpu", "device")
"""Kinds of machines: a processor that runs C, or a device on which host code launches kernels."""

INSTRUCTIONS = {
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "avx_vnni": "avx_vnni",
    "amx_int8": "amx_int8",
    "amx_bf16": "amx_bf16",
    "amx_fp16": "amx_fp16",
    "neon": "asimd",
    "neon_fp16": "asimdhp",
    "neon_dot": "asimddp",
    "neon_bf16": "bf16",
    "neon_i8mm": "i8mm",
    "sve": "sve",
    "sve2": "sve2",
}
"""Instruction sets that kernels may use, and the word in Linux's list that identifies each.

If x86 and ARM use the same word for two sets, the other words of the list distinguish them."""

DIGITS = 15
"""Maximum digits of a number: no size in bytes has more."""
SUFFIXES = {"K": 10, "M": 20, "G": 30}
"""Binary multiples, for sizes in bytes only."""


@dataclass(frozen=True)
class Property:
    """A number or word that describes a machine.

    unit : of a number; "" for words and numbers without a unit
    about : its meaning, in one line
    allowed : the allowed values, for messages
    holds : whether a value is allowed
    """

    unit: str
    about: str
    allowed: str
    holds: Callable[[Any], bool]
    is_word: bool = False

    def read(self, text: str) -> int | str | None:
        """Return the value that a text spells; None if it spells none."""
        if self.is_word:
            return text
        shift = SUFFIXES.get(text[-1:], 0) if self.unit == "bytes" else 0
        digits = text[:-1] if shift else text
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= DIGITS
        return int(digits) << shift if is_number else None


def number(default: int, unit: str, about: str, least: int = 0, most: int = 1 << 62) -> Any:
    """Describe a number from ``least`` to ``most``."""
    allowed = f"{least} or more" if most == 1 << 62 else f"from {least} to {most}"
    return _field(default, Property(unit, about, allowed, lambda n: least <= n <= most))


def flag(default: bool | int, about: str) -> Any:
    """Describe a boolean: 0 or 1."""
    return _field(default, Property("", about, "0 or 1", lambda n: n <= 1))


def power(default: int, unit: str, about: str, most: int = 1 << 62) -> Any:
    """Describe a power of two."""
    allowed = "a power of two" if most == 1 << 62 else f"a power of two up to {most}"
    return _field(default, Property(unit, about, allowed, lambda n: is_power(n) and n <= most))


def width(default: int, about: str, or_none: bool = False) -> Any:
    """Describe the width of a vector in bits; 0 is allowed if ``or_none``."""
    allowed = "0 or as vector_bits" if or_none else "a power of two from 32 to 2048"

    def holds(bits: int) -> bool:
        return (or_none and not bits) or (is_power(bits) and 32 <= bits <= 2048)

    return _field(default, Property("bits", about, allowed, holds))


def word(
    default: str, about: str, among: Iterable[str] | None = None, several: bool = False
) -> Any:
    """Describe a word, of ``among`` if given, or ``several`` joined by +."""

    def holds(text: str) -> bool:
        words = text.split("+") if several else [text]
        return among is None or (several and not text) or all(each in among for each in words)

    listed = ", ".join(among or ())
    allowed = f"of {listed}, + between" if several else f"one of {listed}" if listed else "a word"
    return _field(default, Property("", about, allowed, holds, is_word=True))


def _field(default: Any, described: Property) -> Any:
    return field(default=default, metadata={"property": described})


def property_of(of: Field[Any]) -> Property:
    """Return the property of a field of `Machine`."""
    return of.metadata["property"]


def is_power(number: int) -> bool:
    """Whether a number is a power of two."""
    return number > 0 and number & (number - 1) == 0
