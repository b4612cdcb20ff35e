"""How a pattern is attached to the op classes it looks at."""

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
    """The op has the patterns that `canonicalizes` gave it."""

    def verify(self, op: Operation) -> None:
        """Nothing to check."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        """Return the patterns of ``op``, in the order they were given."""
        return _PATTERNS.get(op, ())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        """Return what holds for every op: nothing."""
        return ()


def canonicalizes(*ops: type[Operation]) -> Callable[[type[PatternT]], type[PatternT]]:
    """Let ``canonicalize`` apply the decorated pattern to ``ops``."""

    def register(pattern: type[PatternT]) -> type[PatternT]:
        for op in ops:
            if not op.has_trait(Canonical):
                give_trait(op, Canonical())
            _PATTERNS[op] = (*_PATTERNS.get(op, ()), pattern())
        return pattern

    return register
