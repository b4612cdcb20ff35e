"""What we verify, MLIR verifies: programs with one thing altered are held against mlir-opt.

`EXAMPLES=100 python -m pytest test/unit/test_verifiers.py` alters each op so many times; `SEED`
says which way. What fails is to become a check in `dialects/upstream/verifiers/` and a lit case.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from altered_programs.alter import alone, altered, program, subjects
from altered_programs.oracle import of_mlir, of_ours
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from stepwell.dialects.parsing import parse_module
from stepwell.driver.registry import registry

TOOL = shutil.which("mlir-opt-22")
EVERY = Path(__file__).parents[1] / "dialects" / "upstream" / "Inputs" / "every_op.mlir"
EXAMPLES = int(os.environ.get("EXAMPLES", "2"))
SEED = int(os.environ.get("SEED", "1"))
BATCH = 400


def every_op() -> ModuleOp:
    return parse_module(registry().context(True), EVERY.read_text(), "every_op.mlir")


def made(op: Operation, symbols: Sequence[Operation], random: Random | None) -> str:
    """Return a program with ``op`` alone in it, altered if there is chance; "" if that failed."""
    if op in symbols:
        block = Block([op.clone()])
        if random is not None and not altered(block, random):
            return ""
        subject = block.last_op
        assert subject is not None
        subject.detach()
        return program(Block(), [subject if each is op else each for each in symbols])
    block = alone(op)
    if random is not None and not altered(block, random):
        return ""
    return program(block, symbols)


def programs(count: int, seed: int) -> list[tuple[str, str]]:
    """Return for each op its name and a text, unaltered and ``count`` times altered."""
    module, random = every_op(), Random(seed)
    symbols = [op for op in module.ops if not (isinstance(op, func.FuncOp) and op.body.blocks)]
    found: list[tuple[str, str]] = []
    for op in subjects(module):
        found.append((op.name, made(op, symbols, None)))
        found += [(op.name, made(op, symbols, random)) for _ in range(count)]
    return [each for each in found if each[1]]


def test_every_op_is_taken_as_it_is() -> None:
    for name, text in programs(0, 0):
        assert of_ours(text) == "", f"{name}\n{text}"


@pytest.mark.skipif(TOOL is None, reason="there is no mlir-opt-22 here")
def test_what_mlir_refuses_is_refused() -> None:
    assert TOOL is not None
    found = programs(EXAMPLES, SEED)
    said: list[str] = []
    for first in range(0, len(found), BATCH):
        said += of_mlir(TOOL, [text for _, text in found[first : first + BATCH]])
    passed = [
        f"{name}: {error}\n{text}"
        for (name, text), error in zip(found, said, strict=True)
        if error and not of_ours(text)
    ]
    assert not passed, f"{len(passed)} of {len(found)} pass here alone\n" + "\n".join(passed[:3])
