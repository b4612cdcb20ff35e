"""Batch a random program; each example must give the result of the program on it alone."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.func import FuncOp

from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.nd.batching.functions import write_batch
from stepwell.dialects.verification import verify
from stepwell.testing.op_rows.run import parsed
from stepwell.testing.random_programs.checking import SIZES, compare
from stepwell.testing.random_programs.program import Program

EXAMPLES = 2
"""The number of examples."""


def check_batched(p: Program) -> None:
    """Compare a batch, along random axes, with the program on each example."""
    axes = [p.number(-1, len(a.shape)) for a in p.arguments]
    if all(axis == -1 for axis in axes):
        axes[0] = 0
    outs = [p.number(0, len(v.shape)) for v in p.results]
    module = parsed(p.text)
    (main,) = module.ops
    assert isinstance(main, FuncOp)
    write_batch(main, "batch", axes, outs, EXAMPLES)
    verify(module)
    for run in range(len(SIZES) if p.unknown else 1):
        sizes = {n: SIZES[(run + i) % len(SIZES)] for i, n in enumerate(p.unknown)}
        drawn = [p.inputs(sizes, run + k) for k in range(EXAMPLES)]
        lanes = [
            [d[n] if axis != -1 else drawn[0][n] for n, axis in enumerate(axes)] for d in drawn
        ]
        given = [
            lanes[0][n] if axis == -1 else np.stack([lane[n] for lane in lanes], axis)
            for n, axis in enumerate(axes)
        ]
        got = call(Interpreter(module), "batch", given)
        for k, lane in enumerate(lanes):
            parts = [np.take(g, k, axis) for g, axis in zip(got, outs, strict=True)]
            wanted = call(Interpreter(module), "main", lane)
            compare(p, parts, wanted, f"example {k} of a batch along {axes}, run {run}")
