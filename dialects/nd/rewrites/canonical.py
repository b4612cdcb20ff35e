"""Attach canonicalization patterns to op classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait

from stepwell.dialects.traits import give_trait

PatternT = TypeVar("PatternT", bound=RewritePattern)

_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {}


@dataclass(frozen=True)
class Canonical(HasCanonicalizationPatternsTrait):
    """The op has the patterns that `canonicalizes` registered."""

    def verify(self, op: Operation) -> None:
        """Accept every op."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        """Return the patterns of ``op``, in the order of registration."""
        return _PATTERNS.get(op, ())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        """Return the patterns of all ops: none."""
        return ()


def canonicalizes(*ops: type[Operation]) -> Callable[[type[PatternT]], type[PatternT]]:
    """Register the decorated pattern for ``ops``."""

    def register(pattern: type[PatternT]) -> type[PatternT]:
        for op in ops:
            if not op.has_trait(Canonical):
                give_trait(op, Canonical())
            _PATTERNS[op] = (*_PATTERNS.get(op, ()), pattern())
        return pattern

    return register
