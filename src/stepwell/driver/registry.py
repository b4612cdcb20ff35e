"""All available dialects, passes and targets: xDSL's, ours, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.placement import Placement, parse_placement
from stepwell.core.plugins import defined, load, plugins
from stepwell.driver.universe import STEPWELL_OVERRIDES, STEPWELL_UNIVERSE

XDSL = "xdsl"
OURS = "stepwell"


@dataclass
class Registry:
    """Factories by name, with their owners. Ours replace xDSL's of the same name."""

    dialects: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    passes: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    targets: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    owner: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    placements: list[Placement] = field(default_factory=list[Placement])
    """The passes of plug-ins that run in the pipeline of every program."""

    def add(self, owner: str, universe: Universe, strict: bool = True) -> None:
        """Add a universe; its names must not be in use.

        strict : whether a name in use raises `CompileError` at once, or only when that name is
            looked up
        """
        for kind, table, found in (
            ("dialect", self.dialects, universe.all_dialects),
            ("pass", self.passes, universe.all_passes),
            ("target", self.targets, universe.all_targets),
        ):
            for name, factory in found.items():
                before = self.owner.get((kind, name), XDSL)
                if before in (XDSL, owner):
                    self.owner[kind, name] = owner
                    table[name] = _loading(owner, kind, name, factory)
                    continue
                clash = Diagnostic(
                    "error",
                    f"{kind} '{name}' of {owner} is already one of {before}",
                    help="one of the packages has to choose another name",
                )
                if strict:
                    raise CompileError(clash)
                if before == OURS:
                    report(replace(clash, severity="warning"))
                    continue
                self.owner[kind, name] = f"{before} and {owner}"
                table[name] = _refusing(clash)
        for text in getattr(universe, "pipeline", ()):
            self.placements.append(parse_placement(text, owner))

    def add_pass(self, kind: type[ModulePass]) -> None:
        """Add one pass by its class; a name can only have one class."""
        known = self.passes.get(kind.name)
        if known is not None and known() is not kind:
            whose = self.owner.get(("pass", kind.name), XDSL)
            message = f"pass '{kind.name}' of {kind.__module__} is already one of {whose}"
            raise CompileError(Diagnostic("error", message))
        self.passes[kind.name] = lambda: kind
        self.owner.setdefault(("pass", kind.name), kind.__module__)

    def context(self, allow_unregistered: bool = False) -> Context:
        """Return a context with every dialect, loaded on first use."""
        context = Context(allow_unregistered=allow_unregistered)
        for name, factory in self.dialects.items():
            context.register_dialect(name, factory)
        return context


def registry() -> Registry:
    """Return everything available: installed plug-ins, and those that `core.plugins.using` names.

    An installed plug-in that cannot be loaded is left out; a look-up of an unknown name mentions
    it (`core.plugins.with_broken`). A named one that cannot be loaded raises `CompileError`.
    """
    own = _without_plugins()
    found = Registry(dict(own.dialects), dict(own.passes), dict(own.targets), dict(own.owner))
    for plugin in plugins():
        try:
            universe = load(plugin)
        except CompileError as error:
            if not plugin.installed:
                raise
            report(Diagnostic("remark", error.diagnostic.message))
            continue
        found.add(plugin.name, universe, strict=not plugin.installed)
    for dialect in defined():
        if ("dialect", dialect.name) not in found.owner:  # otherwise a plug-in replaces it
            found.add("this process", dialect)
    return found


@cache
def _without_plugins() -> Registry:
    """Return the registry of xDSL's and our own entries."""
    found = Registry()
    found.add(XDSL, Universe(all_dialects=get_all_dialects(), all_passes=get_all_passes()))
    found.add(OURS, STEPWELL_UNIVERSE)
    found.add(OURS, STEPWELL_OVERRIDES)
    return found


def _refusing(clash: Diagnostic) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise CompileError(clash)

    return refuse


def _loading(owner: str, kind: str, name: str, factory: Callable[[], Any]) -> Callable[[], Any]:
    """Return a factory that loads an entry, and names the plug-in where that fails."""
    if owner in (XDSL, OURS):
        return factory

    def get() -> Any:
        try:
            return factory()
        except CompileError:
            raise
        except Exception as error:  # importing a plug-in's module may raise anything
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            message = f"cannot load the {kind} '{name}' of {owner}: {said}"
            raise CompileError(Diagnostic("error", message)) from error

    return get
