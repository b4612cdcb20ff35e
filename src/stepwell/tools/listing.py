"""stepwell passes, ops and targets: list the available ones."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean, report
from stepwell.core.plugins import broken, with_broken
from stepwell.core.targets import record
from stepwell.driver.registry import registry
from stepwell.tools.catalogue import Families, families, not_yet, show, summary
from stepwell.tools.opt.listing import list_passes, show_pass


def passes(options: argparse.Namespace) -> int:
    """List every pass, or show one."""
    known = registry()
    print(show_pass(options.name, known) if options.name else list_passes(known))
    _warn_of_broken(options)
    return 0


def ops(options: argparse.Namespace) -> int:
    """List every op of nd and of plug-ins by family, or show one."""
    known = families(registry())
    print(_show(options.name, known) if options.name else _list(known))
    _warn_of_broken(options)
    return 0


def targets(options: argparse.Namespace) -> int:
    """List every target by its owner, and the use of its text."""
    known = registry()
    width = max(map(len, known.targets))
    for owner in dict.fromkeys(known.owner["target", name] for name in known.targets):
        print(f"targets of {owner}:")
        for name, factory in known.targets.items():
            if known.owner["target", name] == owner:
                print(f"  {name:<{width}}  {_about(factory)}".rstrip())
    for warning in broken():
        report(warning)
    return 0


def _about(factory: Callable[[], Any]) -> str:
    """Return a one-line description of a target."""
    try:
        printing = factory()
    except CompileError as error:
        return f"({error.diagnostic.message})"
    if (found := record(printing)) is not None:
        return found.about
    said = (inspect.getdoc(printing) or "").partition("\n")[0]
    return f"{said} (by stepwell-opt -t alone)".lstrip()


def _warn_of_broken(options: argparse.Namespace) -> None:
    """Warn, where everything is listed, of plug-ins that could not be loaded."""
    for warning in () if options.name else broken():
        report(warning)


def _list(known: Families) -> str:
    width = max(len(op.name) for ops in known.values() for op in ops)
    rows: list[str] = []
    for family, ops in known.items():
        rows += ["", f"{family.replace('_', ' ')}:"]
        rows += [f"  {op.name:<{width}}  {summary(op)}" for op in ops]
    rows += ["", *not_yet([op for ops in known.values() for op in ops])]
    return "\n".join(rows[1:])


def _show(name: str, known: Families) -> str:
    by_name = {op.name: op for ops in known.values() for op in ops}
    op = by_name.get(name) or by_name.get(f"nd.{name}")
    if op is None:
        help = did_you_mean(name if "." in name else f"nd.{name}", by_name)
        message = f"unknown op '{name}'"
        unknown = Diagnostic("error", message, help=help or "stepwell ops lists them")
        raise CompileError(with_broken(unknown))
    return show(op)
