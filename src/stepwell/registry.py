"""Every dialect, pass and target in reach: xDSL's, ours, and those of installed plug-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.universe import STEPWELL_OVERRIDES, STEPWELL_UNIVERSE

XDSL = "xdsl"
OURS = "stepwell"
GROUP = "xdsl.universe"
"""The entry points under which plug-ins are installed."""


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
    for name, path in _installed():
        found.add(name, _load(path, f"the installed plug-in '{name}'"))
    for plugin in plugins:
        found.add(plugin, _load(plugin, f"--plugin {plugin}"))
    return found


def _installed() -> list[tuple[str, str]]:
    """Return the installed plug-ins by name, and where each universe is."""
    finders = [f for f in sys.meta_path if f is not PathFinder]
    unknown = any(hasattr(f, "find_distributions") for f in finders)
    if not unknown and not any(map(_may_have_plugins, sys.path)):
        return []
    points = import_module("importlib.metadata").entry_points(group=GROUP)
    return sorted((p.name, p.value) for p in points if p.name not in (OURS, XDSL))


def _may_have_plugins(folder: str) -> bool:
    """Whether `importlib.metadata`, which takes long to load, may find a plug-in in ``folder``."""
    try:
        found = os.listdir(folder or ".")
    except NotADirectoryError:  # an archive
        return True
    except OSError:
        return False
    if "EGG-INFO" in found:
        return True
    notes = [n for n in found if n.lower().endswith((".dist-info", ".egg-info"))]
    return any(name not in (OURS, XDSL) for note in notes for name in _named(folder, note))


def _named(folder: str, note: str) -> Iterator[str]:
    """Yield the names of the plug-ins of one installed distribution."""
    try:
        with open(os.path.join(folder, note, "entry_points.txt"), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError):
        return
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and "=" in line:
            yield line.partition("=")[0].strip()


def _load(path: str, what: str) -> Universe:
    module, _, name = path.partition(":")
    try:
        universe = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CompileError(Diagnostic("error", f"cannot load {what}: {error}")) from error
    if not isinstance(universe, Universe):
        raise CompileError(Diagnostic("error", f"cannot load {what}: it is not a Universe"))
    return universe
