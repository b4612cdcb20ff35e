"""Launches side by side, in the interpreter: any order of branches gives what none gives."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from reading import taken_down
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects import kernel
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.printing import text_of
from stepwell.driver.pipeline import through
from stepwell.transforms.buffers import run_together

TENSORS = f"{through('kernels')},bufferize"
N = 40
TYPE = f"tensor<{N}x{N}xf32>"


def _random_chains(seed: int) -> tuple[str, list[Any]]:
    """Return a program of chains that start apart, some of which meet, and its arguments."""
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 5))
    ends = [f"%a{k}" for k in range(count)]
    lines: list[str] = []

    def emit(op: str, *operands: str) -> str:
        name = f"%v{len(lines)}"
        kinds = f"({TYPE}, {TYPE}) -> {TYPE}" if op == "matmul" else TYPE
        lines.append(f"  {name} = nd.{op} {', '.join(operands)} : {kinds}")
        return name

    for _ in range(int(random.integers(4, 11))):
        k = int(random.integers(count))
        ends[k] = emit("matmul", ends[k], "%w") if random.random() < 0.8 else emit("tanh", ends[k])
    if random.random() < 0.5:
        ends[0] = emit("add", ends[0], ends[-1])
    arguments = ", ".join([*(f"%a{k}: {TYPE}" for k in range(count)), f"%w: {TYPE}"])
    types = ", ".join([TYPE] * count)
    body = "\n".join(lines)
    text = (
        f"func.func @main({arguments}) -> ({types}) {{\n{body}\n"
        f"  func.return {', '.join(ends)} : {types}\n}}\n"
    )
    arrays = [random.standard_normal((N, N)).astype(np.float32) * 0.2 for _ in range(count + 1)]
    return text, arrays


def _results(module: ModuleOp, arrays: list[Any]) -> list[Any]:
    """Call @main on buffers, results and arena being full of what nobody may read."""
    (entry, *_) = (op for op in module.ops if getattr(op, "sym_name", None) and _is_main(op))
    outputs = [np.full((N, N), np.nan, np.float32) for _ in range(len(arrays) - 1)]
    memory = [*arrays, *outputs]
    if len(entry.regions[0].block.args) > len(memory):
        memory.append(np.full(1 << 20, -1, np.int8))
    Interpreter(module).call("main", memory)
    return outputs


def _is_main(op: Any) -> bool:
    return op.sym_name.data == "main"


def _branches(module: ModuleOp) -> list[kernel.ConcurrentOp]:
    return [op for op in module.walk() if isinstance(op, kernel.ConcurrentOp)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_chains(seed: int, threads: int) -> None:
    text, arrays = _random_chains(seed)
    together = f'{TENSORS},run-together{{machine="threads={threads}"}}'
    (alone,) = taken_down(text, f'{TENSORS},run-together{{machine="threads=1"}}')
    assert not _branches(alone)
    want = _results(alone, arrays)
    for pipeline in (together, f"{together},plan-memory"):
        (module,) = taken_down(text, pipeline)
        np.testing.assert_array_equal(_results(module, arrays), want)
        for op in _branches(module):
            regions = list(op.regions)
            for order in list(permutations(range(len(regions))))[1:4]:
                blocks = [region.detach_block(0) for region in regions]
                for region, k in zip(regions, order, strict=True):
                    region.add_block(blocks[k])
                np.testing.assert_array_equal(_results(module, arrays), want)


def test_some_of_them_have_branches() -> None:
    pipeline = f'{TENSORS},run-together{{machine="threads=2"}}'
    found = [taken_down(_random_chains(seed)[0], pipeline)[0] for seed in range(8)]
    assert sum(bool(_branches(module)) for module in found) >= 3
    assert any("kernel.concurrent" in text_of(module) for module in found)


def test_chains_are_not_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain has nothing to run concurrently: no time is spent on its kernels."""
    (*_, module) = taken_down(_chain(6), TENSORS)
    predicted: list[Any] = []
    monkeypatch.setattr(run_together, "_time", predicted.append)
    run_together.RunTogether(machine="threads=2").apply(Context(), module)
    assert not predicted
    assert not _branches(module)


def _chain(length: int) -> str:
    lines = [
        f"  %v{k + 1} = nd.matmul %v{k}, %w : ({TYPE}, {TYPE}) -> {TYPE}" for k in range(length)
    ]
    body = "\n".join(lines)
    return (
        f"func.func @main(%v0: {TYPE}, %w: {TYPE}) -> {TYPE} {{\n{body}\n"
        f"  func.return %v{length} : {TYPE}\n}}\n"
    )
