"""Every dialect, pass and target in reach: xDSL's, ours, and those of installed plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.universe import STEPWELL_OVERRIDES, STEPWELL_UNIVERSE

XDSL = "xdsl"
OURS = "stepwell"


@dataclass
class Registry:
    """Factories by name, and whose they are. Ours stand before xDSL's of the same name."""

    dialects: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    passes: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    targets: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    owner: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def add(self, owner: str, universe: Universe) -> None:
        """Add a universe; two plug-ins may not use one name."""
        for kind, table, found in (
            ("dialect", self.dialects, universe.all_dialects),
            ("pass", self.passes, universe.all_passes),
            ("target", self.targets, universe.all_targets),
        ):
            for name, load in found.items():
                before = self.owner.get((kind, name), XDSL)
                if before != XDSL and before != owner:
                    message = f"{kind} '{name}' of {owner} is already one of {before}"
                    raise CompileError(Diagnostic("error", message))
                self.owner[kind, name] = owner
                table[name] = load

    def context(self, allow_unregistered: bool = False) -> Context:
        """Return a context that knows every dialect, loaded on first use."""
        context = Context(allow_unregistered=allow_unregistered)
        for name, load in self.dialects.items():
            context.register_dialect(name, load)
        return context


def registry(plugins: Sequence[str] = ()) -> Registry:
    """Return all there is: installed plug-ins and those named ``module:NAME``."""
    found = Registry()
    found.add(XDSL, Universe(all_dialects=get_all_dialects(), all_passes=get_all_passes()))
    found.add(OURS, STEPWELL_UNIVERSE)
    found.add(OURS, STEPWELL_OVERRIDES)
    for point in sorted(entry_points(group="xdsl.universe"), key=lambda e: e.name):
        if point.name not in (OURS, XDSL):
            found.add(point.name, _load(point.value, f"the installed plug-in '{point.name}'"))
    for plugin in plugins:
        found.add(plugin, _load(plugin, f"--plugin {plugin}"))
    return found


def _load(path: str, what: str) -> Universe:
    module, _, name = path.partition(":")
    try:
        universe = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CompileError(Diagnostic("error", f"cannot load {what}: {error}")) from error
    if not isinstance(universe, Universe):
        raise CompileError(Diagnostic("error", f"cannot load {what}: it is not a Universe"))
    return universe
