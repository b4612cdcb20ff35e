"""The programs of a function that serve any size, and when one is made."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepwell.api.compiled import Compiled
from stepwell.api.modules import ModuleText
from stepwell.frontend.calls import Call
from stepwell.frontend.traced import Traced

if TYPE_CHECKING:  # loaded by the first program for any size
    from stepwell.frontend.general import Sizes, Template

LOG = logging.getLogger("stepwell")

TRIES = 3
"""How often a program for any size is tried; small sizes may be treated unlike others."""
MODES = ("auto", "always", "never")


class GeneralPrograms:
    """Programs with `?`, by what calls of them have in common.

    mode : "auto" makes one when a call differs from one before in sizes alone, "always" for the
        first call, "never" none that the user does not ask for by `Dim`
    """

    def __init__(self, name: str, mode: str) -> None:
        if mode not in MODES:
            raise ValueError(f"dynamic is one of {', '.join(map(repr, MODES))}, got {mode!r}")
        self.name, self.mode = name, mode
        self._made: dict[Any, list[tuple[Template, Compiled]]] = {}
        self._tried: Counter[Any] = Counter()
        """How often no such program could be made for calls."""

    def of(self, call: Call) -> list[tuple[Template, Compiled]]:
        """Return the programs that may serve a call."""
        return list(self._made.get(_group(call), ()))

    def wanted(self, call: Call, earlier: Sequence[Call], told: Sizes | None) -> Sizes | None:
        """Return which axes a program for this call is to leave open, None for none.

        told : what the user says of them
        """
        if told is None and self.mode != "always" and not earlier:
            return None
        from stepwell.frontend.general import differing, every

        group = _group(call)
        if self._tried[group] >= TRIES:
            return None
        if told is None and self.mode == "always":
            told = every(call)
        for other in reversed(earlier if told is None else ()):
            if _group(other) == group and (told := differing(call, other)) is not None:
                break
        if any(template.sizes == told for template, _ in self.of(call)):
            return None  # it does not serve this call
        return told

    def compiled(self, template: Template, call: Call, traced: Traced) -> Compiled:
        """Return the program of a template."""
        module = traced.module
        text = ModuleText(template.module(), module.name, module.resources, hashed=True)
        program = replace(traced, module=text).compile()
        self._made.setdefault(_group(call), []).append((template, program))
        return program

    def refused(self, call: Call, error: Exception) -> None:
        """Note that there is no program for any size."""
        self._tried[_group(call)] += 1
        LOG.info("'%s' has a program for each size: %s", self.name, str(error).splitlines()[0])

    def log(self, error: Exception) -> None:
        """Say why a program for any size does not serve a call."""
        LOG.info("'%s' is compiled for a size: %s", self.name, error)

    def clear(self) -> None:
        """Forget all."""
        self._made.clear()
        self._tried.clear()


def _group(call: Call) -> Any:
    types = tuple((a.path, a.kind.name, len(a.shape), a.weak) for a in call.arguments)
    return call.key[0], call.key[1], types
