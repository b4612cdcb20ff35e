"""The documentation of each op, for the terminal and for the generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, OptOperandDef, OptPropertyDef, VarOperandDef, VarResultDef

from stepwell.core.diagnostics import CompileError, report
from stepwell.core.rules import RuleTable
from stepwell.dialects import nd, readings
from stepwell.dialects.nd import batching, gradients
from stepwell.dialects.nd.compare import SelectOp
from stepwell.dialects.nd.defined import DefinedOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.driver.registry import OURS, XDSL, Registry
from stepwell.lowering.nd_to_linalg import NdToLinalg
from stepwell.lowering.nd_to_linalg.table import lower

Families: TypeAlias = dict[str, list[type[IRDLOperation]]]

READINGS: tuple[RuleTable[Any], ...] = (
    readings.reference,
    readings.shape,
    readings.decomposition,
    lower,
    readings.gradient,
    readings.batching,
)

assert NdToLinalg and gradients and batching, "imported because they fill tables"


def families(known: Registry) -> Families:
    """Return the ops of `nd` by family, and those of each dialect of a plug-in."""
    found: Families = {}
    for op in nd.OPS:
        assert issubclass(op, IRDLOperation)
        found.setdefault(family(op), []).append(op)
    for (kind, name), owner in known.owner.items():
        if kind == "dialect" and owner not in (XDSL, OURS):
            try:
                ops = known.dialects[name]().operations
            except CompileError as error:  # one package fails to load: list the others
                report(replace(error.diagnostic, severity="warning"))
                continue
            found[name] = [op for op in ops if issubclass(op, IRDLOperation)]
    return found


def family(op: type[Operation]) -> str:
    """Return the family of an op: the name of its file."""
    return op.__module__.rpartition(".")[2]


def summary(kind: type[Any]) -> str:
    """Return the first line of the docstring of an op or a pass."""
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def signature(op: type[IRDLOperation]) -> str:
    """Return operands, attributes and results of an op by name.

    >>> signature(nd.shape.TransposeOp)
    'y = nd.transpose x {permutation}'
    """
    parts = op.get_irdl_definition()
    text = op.name
    if parts.operands:
        text += " " + ", ".join(_operand(name, kind) for name, kind in parts.operands)
    if parts.properties:
        text += f" {{{', '.join(_property(n, p) for n, p in parts.properties.items())}}}"
    text += "".join(f" {{ {name} }}" for name, _ in parts.regions)
    results = [f"{n}..." if isinstance(k, VarResultDef) else n for n, k in parts.results]
    return f"{', '.join(results)} = {text}" if results else text


def _operand(name: str, kind: object) -> str:
    if isinstance(kind, VarOperandDef):
        return f"{name}..."
    return f"[{name}]" if isinstance(kind, OptOperandDef) else name


def _property(name: str, kind: Any) -> str:
    if kind.default_value is not None and not isinstance(kind.default_value, UnitAttr):
        return f"{name} = {_plain(str(kind.default_value))}"
    return f"[{name}]" if isinstance(kind, OptPropertyDef) else name


def _plain(value: str) -> str:
    """Return a default value as it is written in a program."""
    return re.sub(r"(?<=\d) : [if]64$", "", value.removeprefix("array<i64: ").rstrip(">"))


def constraints(op: type[Operation]) -> list[tuple[str, str]]:
    """Return label and text of every numbered constraint of an op, the inherited ones first.

    >>> constraints(nd.shape.TransposeOp)
    [('transpose_c1', 'permutation names each axis of x once.')]
    """
    return [c for kind in reversed(op.__mro__) for c in own_constraints(kind)]


def own_constraints(kind: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield label and text of the constraints in the docstring of one class."""
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__.removesuffix("Op")).lower()
    for paragraph in re.split(r"\n\* ", inspect.cleandoc(kind.__doc__ or "")):
        if found := re.match(r"\(C(\d+)\) (.*)", paragraph, re.DOTALL):
            text = " ".join(found[2].partition("\n\n")[0].split())
            yield f"{stem}_c{found[1]}", text


def state(table: RuleTable[Any], op: type[Operation]) -> str:
    """Return whether an op has a rule in a table, or why it has none."""
    if table is readings.gradient and (kind := _derivative(op)):
        return kind
    if table.get(op) is not None:
        return "yes"
    if table.expects(op):
        return "not yet"
    if table is readings.batching and issubclass(op, Elementwise | DefinedOp):
        return "yes"  # elementwise ops have a generic rule
    if readings.decomposition.covers(op) and table is not readings.shape:
        return "by its decomposition"
    return table.why_none(op) or "none"


def _derivative(op: type[Operation]) -> str:
    """Return the kind of rule by which an op is differentiated, "" if there is none."""
    if op is SelectOp:
        return "by masking the operand that was not chosen"
    for table, kind in (
        (readings.partials, "by partial derivatives, in both modes"),
        (readings.moves, "by moving cotangents back"),
        (readings.gradient, "by a rule backward"),
    ):
        if table.get(op) is not None:
            return kind
    return ""


def not_yet(ops: Sequence[type[Operation]]) -> list[str]:
    """Return a line for each table in which some ops have no rule."""
    counts = [(t.reading, sum(t.expects(op) for op in ops)) for t in READINGS]
    return [f"no {reading} rule yet: {n} of {len(ops)} ops" for reading, n in counts if n]


def show(op: type[IRDLOperation], tables: Sequence[RuleTable[Any]] = READINGS) -> str:
    """Return the complete documentation of an op."""
    rows = [signature(op), "", inspect.getdoc(op) or "", ""]
    inherited = [c for c in constraints(op) if c not in list(own_constraints(op))]
    rows += [f"* ({label}) {text}" for label, text in inherited]
    rows += [""] if inherited else []
    rows += [f"{table.reading}: {state(table, op)}" for table in tables]
    return "\n".join(rows)
