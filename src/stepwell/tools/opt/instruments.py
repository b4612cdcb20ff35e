"""Observe passes: print the module around them, time them, count ops."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from xdsl.dialects.builtin import ModuleOp

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.dialects.printing import text_of
from stepwell.driver.pass_pipeline import Step

ELIDED_IN_DUMPS = 64
"""The number of elements above which a constant is elided in printed modules."""


def fingerprint(module: ModuleOp) -> int:
    """Return a hash of the module's ops, operands, types and attributes, to detect changes."""
    rows: list[object] = []
    for op in module.walk():
        rows.append(id(op))
        rows.extend(id(v) for v in op.operands)
        rows.extend(id(v.type) for v in op.results)
        rows.extend((k, id(v)) for k, v in op.properties.items())
        rows.extend((k, id(v)) for k, v in op.attributes.items())
    return hash(tuple(rows))


class IRPrinter:
    """Prints the module before or after the passes that the options name."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._before = set(filter(None, options.print_ir_before.split(",")))
        self._after = set(filter(None, options.print_ir_after.split(",")))
        self._options = options
        self._count = 0

    def check_names(self, passes: Collection[str]) -> None:
        """Reject names that are not passes."""
        for name in sorted((self._before | self._after) - set(passes)):
            help = did_you_mean(name, passes)
            raise CompileError(Diagnostic("error", f"unknown pass '{name}' to print", help=help))

    def before(self, step: Step, module: ModuleOp) -> None:
        """Print the module before ``step`` if requested."""
        if self._options.print_ir_before_all or step.pass_.name in self._before:
            self._print("before", step, module)

    def after(self, step: Step, module: ModuleOp, changed: bool) -> None:
        """Print the module after ``step`` if requested."""
        options = self._options
        named = options.print_ir_after_all or step.pass_.name in self._after
        everything = options.print_ir_tree_dir and not self._named_any()
        if named and options.print_ir_after_change and not changed:
            return
        if named or everything or (options.print_ir_after_change and changed):
            self._print("after", step, module)

    def _named_any(self) -> bool:
        options = self._options
        return bool(
            self._before
            or self._after
            or options.print_ir_before_all
            or options.print_ir_after_all
            or options.print_ir_after_change
        )

    def _print(self, when: str, step: Step, module: ModuleOp) -> None:
        options = self._options
        limit = ELIDED_IN_DUMPS if options.elide_constants is None else options.elide_constants
        text = text_of(
            module,
            generic=options.print_op_generic,
            locations=options.print_debuginfo,
            elide=limit,
        )
        head = f"// {when} {step}\n"
        if options.print_ir_tree_dir is None:
            sys.stderr.write(f"{head}{text}\n")
            return
        os.makedirs(options.print_ir_tree_dir, exist_ok=True)
        name = f"{self._count:02d}_{when}_{step.pass_.name}.mlir"
        self._count += 1
        path = os.path.join(options.print_ir_tree_dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + text)


@dataclass
class Span:
    """Wall time of one activity, and of its parts in order of first use."""

    seconds: float = 0.0
    parts: dict[str, Span] = field(default_factory=dict[str, "Span"])


@dataclass
class Timer:
    """A tree of times; a measurement nested in another is a part of it."""

    _open: list[Span] = field(default_factory=lambda: [Span()])

    @contextmanager
    def measure(self, what: str) -> Generator[None]:
        """Add the time spent inside to ``what``."""
        span = self._open[-1].parts.setdefault(what, Span())
        self._open.append(span)
        start = time.perf_counter()
        try:
            yield
        finally:
            span.seconds += time.perf_counter() - start
            self._open.pop()

    def report(self, out: TextIO) -> None:
        """Print the tree, each part with its share of the whole."""
        whole = self._open[0]
        whole.seconds = sum(part.seconds for part in whole.parts.values())
        out.write(f"{'seconds':>10} {'share':>6}  what\n")
        _report(out, "total", whole, whole.seconds, "")


def _report(out: TextIO, what: str, span: Span, total: float, indent: str) -> None:
    share = span.seconds / total if total else 0.0
    out.write(f"{span.seconds:10.4f} {share:6.1%}  {indent}{what}\n")
    for name, part in span.parts.items():
        _report(out, name, part, total, indent + "  ")


@dataclass
class Statistics:
    """Ops by dialect before and after each pass."""

    rows: list[str] = field(default_factory=list[str])

    def count(self, module: ModuleOp) -> Counter[str]:
        """Count the ops of ``module`` by dialect."""
        return Counter(op.dialect_name() for op in module.walk())

    def note(self, step: Step, before: Counter[str], after: Counter[str], changed: bool) -> None:
        """Record the ops before and after one pass."""
        deltas = [
            f"{name} {before[name]} -> {after[name]}"
            for name in sorted({*before, *after})
            if before[name] != after[name]
        ]
        what = ", ".join(deltas) or ("changed in place" if changed else "unchanged")
        self.rows.append(f"{before.total():>8} {after.total():>8}  {step}: {what}")

    def report(self, out: TextIO) -> None:
        """Print the table."""
        out.write(f"{'ops in':>8} {'ops out':>8}  pass\n")
        out.writelines(f"{row}\n" for row in self.rows)
