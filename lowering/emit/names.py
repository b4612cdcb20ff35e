"""Identifiers: derived from the program's names, legal in the target, unique in a function."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stepwell.core.escape import LONGEST

_NOT_WORD = re.compile(r"\W+", re.ASCII)
WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TAKEN = re.compile(r"(?:sw|kernel|func|host|stepwell)_|_|[fium]\d+x\d+(?:_u)?$|u?int\d+_t$|bf16")

_C = """
    auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while asm typeof bool true false nullptr constexpr thread_local
    static_assert alignas alignof NULL main linux unix
"""
_OPENCL = """
    kernel global local constant private half uchar ushort uint ulong size_t ptrdiff_t intptr_t
    uintptr_t image1d_t image2d_t image3d_t sampler_t event_t queue_t pipe complex imaginary quad
    read_only write_only read_write generic abs max min select step sign mix clamp dot cross length
    distance normalize mad fma round floor ceil trunc exp log pow sqrt any all shuffle bitselect
    M_E M_PI INFINITY NAN MAXFLOAT HUGE_VAL barrier printf rotate clz popcount degrees radians
"""

_FUNCTIONS = """
    acos acosh asin asinh atan atanh atan2 cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
    floor fma fmod log log10 log1p log2 pow rint round sin sinh sqrt tan tanh trunc
"""

C_WORDS = frozenset([*_C.split(), *_FUNCTIONS.split(), *(f"{f}f" for f in _FUNCTIONS.split())])
"""Reserved C identifiers: keywords of every C standard and of GNU C, and called functions."""

OPENCL_WORDS = C_WORDS | frozenset(_OPENCL.split())
"""The same for OpenCL C, with its types and built-in functions."""

FAULT = "fault"
"""The name of the parameter in which functions with guards record a failure."""


def identifier(text: str) -> str:
    """Return ``text`` with illegal characters replaced by underscores, and shortened.

    Different texts may give the same identifier: `Names` makes them unique.

    >>> identifier("layer.0/bias"), identifier("0")
    ('layer_0_bias', 'v0')
    """
    word = _NOT_WORD.sub("_", text).strip("_")[:LONGEST]
    return f"v{word}" if not word or word[0].isdigit() else word


@dataclass
class Names:
    """The identifiers of one function."""

    reserved: frozenset[str]
    taken: set[str] = field(default_factory=set[str])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, hint: str | None) -> str:
        """Return a new identifier, ``hint`` itself if that is unused."""
        word = identifier(hint) if hint else "v"
        if hint and self._free(word):
            self.taken.add(word)
            return word
        number = self.counts.get(word, 0)
        while True:
            number += 1
            name = f"{word}{number}" if word == "v" else f"{word}_{number}"
            if self._free(name):
                break
        self.counts[word] = number
        self.taken.add(name)
        return name

    def _free(self, word: str) -> bool:
        return word not in self.taken and word not in self.reserved and not _TAKEN.match(word)
