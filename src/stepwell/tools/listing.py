"""stepwell passes and stepwell ops: what there is."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.rules import RuleTable
from stepwell.dialects import nd, readings
from stepwell.lowering.nd_to_linalg.table import lower
from stepwell.registry import registry
from stepwell.tools.opt.listing import list_passes, show_pass

READINGS: tuple[RuleTable[Any], ...] = (
    readings.reference,
    readings.shape,
    readings.decomposition,
    lower,
    readings.gradient,
    readings.batching,
)


def passes(options: argparse.Namespace) -> int:
    """List every pass, or show one."""
    known = registry()
    print(show_pass(options.name, known) if options.name else list_passes(known))
    return 0


def ops(options: argparse.Namespace) -> int:
    """List every op of nd by family, or show one."""
    print(_show(options.name) if options.name else _list(nd.OPS))
    return 0


def _list(ops: Sequence[type[Operation]]) -> str:
    width = max(len(op.name) for op in ops)
    rows: list[str] = []
    family = ""
    for op in ops:
        if (now := op.__module__.rpartition(".")[2].replace("_", " ")) != family:
            family = now
            rows += ["", f"{family}:"]
        rows.append(f"  {op.name:<{width}}  {_summary(op)}")
    rows += ["", *_not_yet(ops)]
    return "\n".join(rows[1:])


def _not_yet(ops: Sequence[type[Operation]]) -> list[str]:
    """Return a line for each reading that some ops do not answer yet."""
    counts = [(t.reading, sum(t.expects(op) for op in ops)) for t in READINGS]
    return [f"no {reading} rule yet: {n} of {len(ops)} ops" for reading, n in counts if n]


def _summary(op: type[Operation]) -> str:
    return (inspect.getdoc(op) or "").partition("\n")[0]


def _show(name: str) -> str:
    known = {op.name: op for op in nd.OPS}
    op = known.get(name) or known.get(f"nd.{name}")
    if op is None:
        help = did_you_mean(name, known) or "stepwell ops lists them"
        raise CompileError(Diagnostic("error", f"unknown op '{name}'", help=help))
    family = op.__module__.rpartition(".")[2]
    rows = [f"{op.name}  (dialects/nd/{family}.py)", "", inspect.getdoc(op) or "", ""]
    rows += [f"{table.reading}: {_state(table, op)}" for table in READINGS]
    return "\n".join(rows)


def _state(table: RuleTable[Any], op: type[Operation]) -> str:
    if table.get(op) is not None:
        return "yes"
    if table.expects(op):
        return "not yet"
    if readings.decomposition.covers(op) and table is not readings.shape:
        return "by its decomposition"
    return table.why_none(op) or "none"
