"""Hold bufferize, and the whole compiler, to what NumPy computes for a random program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from buffer_programs import parse
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.traits import SymbolTable

import stepwell as sw
from carried_programs.on_host import on_host
from carried_programs.on_nd import on_nd
from carried_programs.program import Matrix, Program, Writer, inputs_of, run
from stepwell.dialects.interpreter import Interpreter
from stepwell.lowering.bufferize import Bufferize
from stepwell.transforms.buffers.plan_memory import PlanMemory

CALLS = 3
"""With other arguments, and other numbers of iterations."""


def check_bufferized(seed: int, rows: bool = False) -> None:
    """Bufferize a program; run it on tensors, on buffers and in an arena."""
    program = Writer(seed, rows=rows).program()
    module = parse(on_host(program))
    for call in range(CALLS):
        inputs, numbers = inputs_of(program, call)
        got = Interpreter(module).call("main", [*inputs, np.array(numbers)])
        _check_equal([np.array(y) for y in got], run(program, inputs, numbers))
    Bufferize().apply(Context(), module)
    module.verify()
    _check_on_buffers(program, module)
    PlanMemory().apply(Context(), module)
    module.verify()
    _check_on_buffers(program, module)


def _check_on_buffers(program: Program, module: ModuleOp) -> None:
    """Call it with one array for an argument and what replaces it, and with two."""
    main = SymbolTable.lookup_symbol(module, "main")
    assert isinstance(main, func.FuncOp)
    bytes = main.attributes.get("kernel.arena_bytes")
    arena = [np.full(bytes.value.data, -86, np.int8)] if isinstance(bytes, IntegerAttr) else []
    for call in range(2 * CALLS):
        inputs, numbers = inputs_of(program, call // 2)
        want = run(program, inputs, numbers)
        given = [*(x.copy() for x in inputs), np.array(numbers)]
        into = program.into if call % 2 else {}
        outputs = [given[into[n]] if n in into else np.full_like(y, 77) for n, y in enumerate(want)]
        Interpreter(module).call("main", [*given, *outputs, *arena])
        _check_equal(outputs, want)
        kept = [n for n in range(len(inputs)) if n not in into.values()]
        _check_equal([given[n] for n in kept], [inputs[n] for n in kept])


def check_compiled(seed: int) -> None:
    """Compile a program of nd; it gives what NumPy gives, in place and not."""
    program = Writer(seed, tests=False).program()
    compiled = sw.compile(on_nd(program))
    for call in range(2 * CALLS):
        inputs, numbers = inputs_of(program, call // 2)
        given = [x.copy() for x in inputs]
        run_it = compiled.update if call % 2 and program.into else compiled
        got = run_it(*given, np.array(numbers))
        want = run(program, inputs, numbers)
        _check_equal(got if isinstance(got, tuple) else [got], want)
        for number, argument in program.into.items():
            _check_equal([given[argument]], [want[number] if call % 2 else inputs[argument]])


def _check_equal(got: Sequence[Matrix], want: Sequence[Matrix]) -> None:
    for y, z in zip(got, want, strict=True):
        np.testing.assert_array_equal(y, z)
