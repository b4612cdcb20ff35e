"""The size-polymorphic programs of a function, and the policy of when to compile one."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepwell.api.compiled import Compiled
from stepwell.api.modules import ModuleText
from stepwell.core.diagnostics import CompileError
from stepwell.frontend.calls import Call
from stepwell.frontend.traced import Traced

if TYPE_CHECKING:  # imported lazily, for the first size-polymorphic program
    from stepwell.frontend.general import Sizes, Template

LOG = logging.getLogger("stepwell")

TRIES = 3
"""Maximum number of attempts per group of calls: small sizes may fail, larger ones succeed."""
MODES = ("auto", "always", "never")


class GeneralPrograms:
    """Programs with `?` sizes, by the parts of a call other than its sizes.

    mode : "auto" compiles one when a call differs from an earlier one only in sizes, "always"
        at the first call, "never" only where the user asks for it by `Dim`
    """

    def __init__(self, name: str, mode: str) -> None:
        if mode not in MODES:
            raise ValueError(f"dynamic is one of {', '.join(map(repr, MODES))}, got {mode!r}")
        self.name, self.mode = name, mode
        self._made: dict[Any, list[tuple[Template, Compiled]]] = {}
        self._tried: Counter[Any] = Counter()
        """The number of failed attempts for each group of calls."""

    def of(self, call: Call) -> list[tuple[Template, Compiled]]:
        """Return the programs that may serve a call."""
        return list(self._made.get(_group(call), ()))

    def first(self, call: Call, declared: Sizes | None) -> Any:
        """Return the group of a call if its first program is one for any size, else None."""
        at_once = declared is not None or self.mode == "always"
        return _group(call) if at_once and not self.of(call) else None

    def wanted(self, call: Call, earlier: Sequence[Call], declared: Sizes | None) -> Sizes | None:
        """Return the axes that a new program for this call is to leave symbolic, or None.

        declared : the axes that the user declared by `Dim`
        """
        if declared is None and self.mode != "always" and not earlier:
            return None
        from stepwell.frontend.general import differing, every

        group = _group(call)
        if self._tried[group] >= TRIES:
            return None
        if declared is None and self.mode == "always":
            declared = every(call)
        for other in reversed(earlier if declared is None else ()):
            if _group(other) == group and (declared := differing(call, other)) is not None:
                break
        if any(template.sizes == declared for template, _ in self.of(call)):
            return None  # the existing program was tried and does not serve this call
        return declared

    def compiled(self, template: Template, call: Call, traced: Traced) -> Compiled:
        """Compile the program of a template."""
        from stepwell.frontend.general_text import program_text

        module = traced.module
        text = ModuleText(program_text(template), module.name, module.resources, hashed=True)
        program = replace(traced, module=text).compile_for(call)
        self._made.setdefault(_group(call), []).append((template, program))
        return program

    def refused(self, call: Call, error: Exception) -> None:
        """Count and log a failed attempt at a size-polymorphic program."""
        self._tried[_group(call)] += 1
        level = logging.WARNING if isinstance(error, CompileError) else logging.INFO
        said = "'%s' has a program for each size: %s"
        LOG.log(level, said, self.name, str(error).splitlines()[0])

    def log(self, error: Exception) -> None:
        """Log why no size-polymorphic program serves a call."""
        LOG.info("'%s' is compiled for a size: %s", self.name, error)

    def clear(self) -> None:
        """Forget all programs and attempts."""
        self._made.clear()
        self._tried.clear()


def _group(call: Call) -> Any:
    types = tuple((a.path, a.kind.name, len(a.shape), a.weak) for a in call.arguments)
    return call.key[0], call.key[1], types
