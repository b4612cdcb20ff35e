"""The checker of bufferize finds each fault that changes a result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from buffer_programs import parse
from carried_programs.on_host import on_host
from carried_programs.program import Program, Writer, inputs_of, run
from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.kernel import LaunchOp
from stepwell.lowering import bufferize
from stepwell.lowering.bufferize import Bufferize
from stepwell.lowering.bufferize.checking import Assumptions, check_buffers
from stepwell.lowering.bufferize.copy_insertion import Copies
from stepwell.lowering.bufferize.intervals import Positions

CALLS = 4
"""With other arguments, and other numbers of iterations."""


def mutants(function: func.FuncOp) -> Iterator[tuple[str, func.FuncOp]]:
    """Yield the function with one fault each."""
    for number, op in enumerate(function.walk()):
        if isinstance(op, memref.CopyOp):
            mutant, copy = _at(function, number)
            copy.detach()
            copy.erase()
            yield f"no copy {number}", mutant
        if isinstance(op, LaunchOp | memref.CopyOp | scf.YieldOp):
            for one, other in combinations(range(len(op.operands)), 2):
                if op.operands[one].type == op.operands[other].type:
                    mutant, swapped = _at(function, number)
                    a, b = swapped.operands[one], swapped.operands[other]
                    swapped.operands[one], swapped.operands[other] = b, a
                    yield f"operands {one} and {other} of {number} exchanged", mutant
        if isinstance(op, memref.AllocOp):
            mutant, alloc = _at(function, number)
            block = alloc.parent_block()
            assert block is not None
            allocs = [o for o in block.ops if isinstance(o, memref.AllocOp) and o is not alloc]
            for first in [o for o in allocs if o.memref.type == op.memref.type][:1]:
                alloc.results[0].replace_all_uses_with(first.memref)
                yield f"buffer {number} is another", mutant


def _at(function: func.FuncOp, number: int) -> tuple[func.FuncOp, Operation]:
    mutant = function.clone()
    return mutant, list(mutant.walk())[number]


def is_harmful(program: Program, module: ModuleOp, mutant: func.FuncOp) -> bool:
    """Whether some call gives other results."""
    changed = module.clone()
    main = SymbolTable.lookup_symbol(changed, "main")
    assert main is not None
    main.detach()
    changed.body.block.add_op(mutant.clone())
    for call in range(2 * CALLS):
        inputs, numbers = inputs_of(program, call // 2)
        want = run(program, inputs, numbers)
        given = [*(x.copy() for x in inputs), np.array(numbers)]
        into = program.into if call % 2 else {}
        outputs = [given[into[n]] if n in into else np.full_like(y, 77) for n, y in enumerate(want)]
        Interpreter(changed).call("main", [*given, *outputs])
        if not all(np.array_equal(y, z) for y, z in zip(outputs, want, strict=True)):
            return True
    return False


def check_mutants(seed: int, patch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    """Return how many harmful mutants a program has, and those that are not found."""
    seen: list[tuple[func.FuncOp, Assumptions]] = []

    def note(before: func.FuncOp, after: func.FuncOp, given: Assumptions) -> None:
        check_buffers(before, after, given)
        seen.append((before.clone(), given))

    patch.setattr(bufferize, "check_buffers", note)
    patch.setenv("STEPWELL_VERIFY", "buffers")
    program = Writer(seed).program()
    module = parse(on_host(program))
    Bufferize().apply(Context(), module)
    main = SymbolTable.lookup_symbol(module, "main")
    assert isinstance(main, func.FuncOp)
    ((before, given),) = seen
    harmful, missed = 0, list[str]()
    for name, mutant in mutants(main):
        try:
            check_buffers(before, mutant, given)
        except CompileError:
            harmful += 1
            continue
        if is_harmful(program, module, mutant):
            missed.append(name)
    return harmful, missed


@pytest.mark.parametrize(
    "seed", [3, 26, *(pytest.param(k, marks=pytest.mark.slow) for k in range(30, 130))]
)
def test_harmful_mutants_are_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, missed = check_mutants(seed, monkeypatch)
    assert found
    assert not missed


def test_a_tensor_is_live_to_the_end_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A buffer written too early for the next iteration is found."""
    monkeypatch.setattr(Positions, "outermost", lambda positions, made, use: None)
    _check_found(7, monkeypatch)


def test_a_part_is_another_in_each_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is replaced unread in one iteration is wanted in the next."""
    monkeypatch.setattr(Copies, "_is_invariant", lambda copies, box, loop: True)
    _check_found(30, monkeypatch)


def _check_found(seed: int, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("STEPWELL_VERIFY", "buffers")
    with pytest.raises(CompileError, match="compiler bug: after bufferize"):
        Bufferize().apply(Context(), parse(on_host(Writer(seed).program())))
