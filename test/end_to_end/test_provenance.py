"""Every op of every floor and every statement of C says which source lines it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from op_rows import FAMILIES, Row
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from stepwell.core.machine import Machine
from stepwell.core.source import Source
from stepwell.dialects.types import places
from stepwell.driver.lowering import Lowering, translate
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.pipeline import through
from stepwell.testing.op_rows.together import Together

FILE = "model.mlir"

_NOTE = re.compile(r"// \S+:\d+(-\d+)?(, \d+(-\d+)?)*(; \S+:[\d, -]+)*$")
_NEEDS_NONE = re.compile(r"^(\}.*|else|//.*|#.*|)$")
_OURS = re.compile(r"^(struct |typedef |.*\bsw_\w+\()")


def _models() -> Iterator[object]:
    """Yield two programs for each family, or more: all its rows, each for one dtype."""
    for family in FAMILIES:
        rows: list[tuple[Row, str]] = [(r, r.dtypes[0]) for r in family.ROWS]
        for first, marks in ((0, ()), (1, pytest.mark.slow)):
            for begin in range(first, len(rows), 80):
                name = f"{family.__name__.split('.')[-1]}-{begin}"
                text = Together.of(rows[begin : begin + 80 : 2]).text
                yield pytest.param(text, id=name, marks=marks)


def _lost(module: ModuleOp) -> list[Operation]:
    """Return the ops that say no source line; a module need not, nor the body a fill implies."""
    return [
        op
        for op in module.walk()
        if op is not module
        and not isinstance(op.parent_op(), linalg.FillOp)
        and not places(op.location)
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", list(_models()))
def test_each_op_and_statement_names_its_lines(text: str) -> None:
    source = Source(text, FILE, "main", Machine())
    before = Lowering.of(source)
    for step in parse(through("loops"), before.placed.known.passes):
        step.run(before.context, before.module)
        lost = _lost(before.module)
        assert not lost, (
            f"after {step}: {lost[0]} in {lost[0].parent_op()}, and {len(lost) - 1} more"
        )
    bare = [line for line in _statements(translate(source, "c").text) if not _NOTE.search(line)]
    assert not bare, "\n".join(bare[:10])


def _statements(text: str) -> Iterator[str]:
    """Yield the statements of the program's own functions; `sw_...` are ours, structs say nothing."""
    head, inside = "", False
    for line in text.splitlines():
        if not inside:
            head = line if line[:1] not in (" ", "") else head
            inside = line.endswith("{")
        elif line.startswith("}"):
            inside = False
        elif not _OURS.match(head) and not _NEEDS_NONE.match(line.strip()):
            yield line
