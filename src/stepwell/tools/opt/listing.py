"""--list-passes and --show-pass: list the passes without loading the compiler."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_type_hints

from xdsl.utils.hints import type_repr

from stepwell import __version__
from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.files import in_words
from stepwell.core.plugins import broken, using, with_broken
from stepwell.driver.registry import OURS, XDSL, Registry, registry
from stepwell.driver.universe import OVERRIDES, PASSES


def answer(options: argparse.Namespace) -> int:
    """Handle --version, --list-passes or --show-pass; return the exit code."""
    try:
        if options.version:
            print(f"stepwell-opt {__version__}")
        elif options.show_pass:
            with using(options.plugin):
                print(show_pass(options.show_pass, registry()))
        else:
            with using(options.plugin):
                print(list_passes(registry()))
                for warning in broken():
                    print(warning.render(), file=sys.stderr)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader closed the pipe: no error
        return 1
    except OSError as error:
        print(Diagnostic("error", in_words(error)).render(), file=sys.stderr)
        return 1
    return 0


def list_passes(known: Registry) -> str:
    """Return a line for each pass of ours and of plug-ins, and the names of xDSL's passes."""
    rows: list[str] = []
    owners = sorted({o for (kind, _), o in known.owner.items() if kind == "pass"} - {XDSL})
    owners.sort(key=lambda owner: owner != OURS)
    width = max((len(n) for n in known.passes if known.owner["pass", n] != XDSL), default=0)
    for owner in owners:
        rows.append(f"passes of {owner}:")
        for name in known.passes:
            if known.owner["pass", name] == owner:
                summary = (
                    _summary((PASSES | OVERRIDES)[name]) if owner == OURS else _doc(known, name)
                )
                rows.append(f"  {name:<{width}}  {summary}".rstrip())
    others = sorted(n for n in known.passes if known.owner["pass", n] == XDSL)
    rows += ["passes of xdsl:", *(f"  {name}" for name in others)]
    return "\n".join(rows)


def _summary(path: str) -> str:
    """Return the first line of a pass's docstring from its source, without importing it."""
    module, name = path.split(":")
    tree = ast.parse(_source(module).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
        names = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom) and node.module and name in names:
            return _summary(f"{node.module}:{name}")
    return ""


def _source(module: str) -> Path:
    """Return the file of one of our modules; only the outermost packages are imported."""
    package, part, *rest = module.split(".")
    spec = find_spec(f"{package}.{part}")
    assert spec is not None and spec.origin is not None, module
    if not rest:
        return Path(spec.origin)
    path = Path(spec.origin).parent.joinpath(*rest)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _doc(known: Registry, name: str) -> str:
    try:
        return (inspect.getdoc(known.passes[name]()) or "").partition("\n")[0]
    except CompileError as error:
        return f"({error.diagnostic.message})"


def show_pass(name: str, known: Registry) -> str:
    """Return the description of a pass, its options, and its numerics."""
    if name not in known.passes:
        help = did_you_mean(name, known.passes)
        unknown = Diagnostic("error", f"unknown pass '{name}'", help=help)
        raise CompileError(with_broken(unknown))
    kind = known.passes[name]()
    rows = [f"{name}  (of {known.owner['pass', name]})", ""]
    module = inspect.getmodule(kind)
    for text in (inspect.getdoc(kind), inspect.getdoc(module) if module else None):
        if text and text not in rows:
            rows += [*text.splitlines(), ""]
    if numerics := getattr(kind, "numerics", None):
        rows += [f"numerics: {numerics}"]
    types = get_type_hints(kind)
    if fields := dataclasses.fields(kind):
        rows += ["options:"]
    for option in fields:
        default = "" if option.default is dataclasses.MISSING else f" (default {option.default})"
        rows += [f"  {option.name.replace('_', '-')}: {type_repr(types[option.name])}{default}"]
    return "\n".join(rows).rstrip()
