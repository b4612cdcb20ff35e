"""Packages that extend the compiler: the places of their universes, and errors at loading.

This file does not use the contents of a universe and imports nothing of xDSL.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from operator import attrgetter
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic

GROUP = "xdsl.universe"
"""The entry-point group of plug-ins."""
NOT_PLUGINS = ("stepwell", "xdsl")
"""Entries of that group that are not plug-ins."""
TABLES = ("all_dialects", "all_passes", "all_targets")
"""The attributes of a universe."""


@dataclass(frozen=True)
class Plugin:
    """A universe of a package: its name and its place (``module:NAME``)."""

    name: str
    place: str
    installed: bool = True
    """Whether it is found by an entry point; otherwise the user named it."""

    def __str__(self) -> str:
        return f"the installed plug-in '{self.name}'" if self.installed else f"--plugin {self.name}"

    @property
    def package(self) -> str:
        """The outermost package of its module."""
        return self.place.partition(":")[0].partition(".")[0]

    def files(self) -> list[str]:
        """Return the location of its package: folders, or the file of a module."""
        spec = sys.modules[self.package].__spec__ if self.package in sys.modules else None
        try:
            spec = spec or (None if self.installed else PathFinder.find_spec(self.package, ["."]))
            spec = spec or find_spec(self.package)
        except (ImportError, ValueError):
            return []
        if spec is None:
            return []
        return list(spec.submodule_search_locations or filter(None, [spec.origin]))


_named: ContextVar[tuple[str, ...]] = ContextVar("named", default=())


@contextmanager
def using(places: Sequence[str]) -> Generator[None]:
    """Use these plug-ins (``module:NAME``) inside the context, as if they were installed.

    >>> with using(["acme.universe:ACME_UNIVERSE"]):
    ...     named()
    ('acme.universe:ACME_UNIVERSE',)
    """
    token = _named.set((*_named.get(), *(p for p in places if p not in _named.get())))
    try:
        yield
    finally:
        _named.reset(token)


_defined: dict[str, Any] = {}


def define(dialect: Any) -> None:
    """Register a dialect defined by Python code of this process; the last of a name counts.

    dialect : has a ``name``, the tables of a universe, and the ``functions`` that define its ops
    """
    _defined[dialect.name] = dialect


def defined() -> list[Any]:
    """Return the dialects defined in this process, sorted by name."""
    return [_defined[name] for name in sorted(_defined)]


def named() -> tuple[str, ...]:
    """Return the places of the plug-ins that the user has named."""
    return _named.get()


def plugins() -> list[Plugin]:
    """Return the available plug-ins: those the user has named, then installed ones by name."""
    places = [Plugin(place, place, installed=False) for place in named()]
    return [*places, *(p for p in _installed() if p.place not in named())]


def load(plugin: Plugin) -> Any:
    """Return the universe of a plug-in; raise `CompileError` if it cannot be loaded."""
    module, _, name = plugin.place.partition(":")
    try:
        if not plugin.installed:
            _import_from_here(plugin.package)
        found = attrgetter(name)(import_module(module))
        if not all(isinstance(getattr(found, table, None), dict) for table in TABLES):
            raise TypeError("it is no Universe")
    except Exception as error:  # importing a foreign module may raise anything
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        said = said.splitlines()[0]
        raise CompileError(
            Diagnostic("error", f"cannot load {plugin}: {said}", help=_help(plugin, error))
        ) from error
    return found


def _help(plugin: Plugin, error: Exception) -> str:
    if plugin.installed:
        return f"mend or uninstall the package that has {plugin.place}"
    if isinstance(error, ModuleNotFoundError) and error.name == plugin.package:
        return "modules are searched for in the current folder and among installed packages"
    if ":" not in plugin.place:
        return "write MODULE:NAME, as in acme.universe:ACME_UNIVERSE"
    return ""


def _import_from_here(package: str) -> None:
    """Import a package from the current folder if it is there, before any installed one.

    Other modules of that folder do not take precedence over installed ones.
    """
    here = os.getcwd()
    if package in sys.modules or not package.isidentifier():
        return
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # for imports of its siblings by the package
    spec = PathFinder.find_spec(package, [here])
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules[package] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[package]
        raise


def broken() -> list[Diagnostic]:
    """Return a warning for each installed plug-in that cannot be loaded."""
    found: list[Diagnostic] = []
    for plugin in _installed():
        try:
            load(plugin)
        except CompileError as error:
            found.append(replace(error.diagnostic, severity="warning"))
    return found


def with_broken(diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic about an unknown name, with a note on each broken plug-in."""
    for warning in broken():
        diagnostic = diagnostic.with_note(
            f"{warning.message}: its dialects, passes and targets are missing"
        )
    return diagnostic


def _installed() -> list[Plugin]:
    """Return the installed plug-ins, sorted by name."""
    finders = [f for f in sys.meta_path if f is not PathFinder]
    unknown = any(hasattr(f, "find_distributions") for f in finders)
    if not unknown and not any(map(_may_have_plugins, sys.path)):
        return []
    points = import_module("importlib.metadata").entry_points(group=GROUP)
    found = sorted((p.name, p.value) for p in points if p.name not in NOT_PLUGINS)
    return [Plugin(name, place) for name, place in dict.fromkeys(found)]


def _may_have_plugins(folder: str) -> bool:
    """Whether ``folder`` may have a plug-in; avoids `importlib.metadata`, which loads slowly."""
    try:
        place = os.path.abspath(folder)
        return _has_plugins(place, os.stat(place).st_mtime_ns)
    except NotADirectoryError:  # an archive
        return True
    except OSError:
        return False


@cache
def _has_plugins(folder: str, changed: int) -> bool:
    """Answer `_may_have_plugins`, cached by modification time, which installing changes."""
    found = os.listdir(folder)
    if "EGG-INFO" in found:
        return True
    notes = [n for n in found if n.lower().endswith((".dist-info", ".egg-info"))]
    return any(name not in NOT_PLUGINS for note in notes for name in _names(folder, note))


def _names(folder: str, note: str) -> Iterator[str]:
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
