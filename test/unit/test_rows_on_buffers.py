"""Every op's test row means on buffers, in an arena, what it means on the graph floor."""

from __future__ import annotations

import numpy as np
import pytest
from op_rows import ROWS, Row
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.traits import SymbolTable

from stepwell.dialects.interpreter import Interpreter
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.universe import STEPWELL_UNIVERSE
from stepwell.testing.op_rows.row import Array, Case
from stepwell.testing.op_rows.run import context, parsed, reference, resources, signed

PASSES = (
    "inline-calls,decompose,nd-to-linalg,fuse-elementwise,outline-kernels,schedule,"
    "bufferize,plan-memory"
)


def lowered(case: Case) -> tuple[ModuleOp, list[Array]]:
    """Return the row's program on buffers, and its inputs and constants."""
    module = parsed(case.module)
    ctx: Context = context()
    constants: list[Array] = []
    for step in parse(PASSES, STEPWELL_UNIVERSE.all_passes):
        step.run(ctx, module)
        if step.pass_.name == "nd-to-linalg":
            main = SymbolTable.lookup_symbol(module, "main")
            assert isinstance(main, FuncOp)
            constants = list(resources(main, case.row.resources))
    module.verify()
    return module, [*map(signed, case.arguments), *constants]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Row) -> None:
    """One of its cases; all of them are lowered to loops by test_op_table."""
    cases = [case for case in row.cases() if _possible(case)]
    if not cases:
        return
    case = cases[len(row.name) % len(cases)]
    module, inputs = lowered(case)
    main = SymbolTable.lookup_symbol(module, "main")
    assert isinstance(main, FuncOp)
    types = [str(t) for t in main.function_type.inputs]
    if any("bf16" in t for t in types):
        return  # results; see _possible
    want = reference(case)
    dims = _dims(types, inputs)
    interpreter = Interpreter(module)
    (arena,) = interpreter.call("main.arena", dims)
    outputs = [np.full_like(signed(np.asarray(y)), 1) for y in want]
    given = [np.array(x) for x in inputs]
    interpreter.call("main", [*given, *outputs, np.full(int(arena), -86, np.int8)])
    for before, after in zip(inputs, given, strict=True):
        np.testing.assert_array_equal(before, after, "an input was written")
    got = [y.view(np.asarray(w).dtype) for y, w in zip(outputs, want, strict=True)]
    case.check(tuple(got), want)


def _possible(case: Case) -> bool:
    """Whether the sizes are those of arrays, and no buffer holds the bits of bf16."""
    arguments = case.module.split("->")[0]
    return "index" not in arguments and "bf16" not in arguments


def _dims(types: list[str], inputs: list[Array]) -> list[np.int64]:
    """Return the sizes that the types leave open."""
    dims: list[np.int64] = []
    for type, array in zip(types, inputs, strict=False):
        parts = type.removeprefix("memref<").split("x")
        dims += [np.int64(n) for part, n in zip(parts, array.shape, strict=False) if part == "?"]
    return dims
