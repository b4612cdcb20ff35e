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
from xdsl.ir import Block, Operation
from xdsl.traits import SymbolTable

from stepwell.analysis.sizes import Sizes
from stepwell.core.diagnostics import CompileError
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.kernel import LaunchOp
from stepwell.lowering import bufferize
from stepwell.lowering.bufferize import (
    Bufferize,
    control_copies,
    exchanges,
    interference,
    parallel_copies,
)
from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.checking import Assumptions, check_buffers
from stepwell.lowering.bufferize.copies import Copies
from stepwell.lowering.bufferize.exchanges import Exchanges
from stepwell.lowering.bufferize.interference import Interference
from stepwell.lowering.bufferize.intervals import Positions
from stepwell.lowering.bufferize.views import Steps

Place = tuple[Storage, Steps]

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


_spans = Positions.spans
_trip_count = exchanges.trip_count


def _shorter(positions: Positions, made: int, use: Operation, at: int) -> list[tuple[int, int]]:
    return [(start, end - 1) for start, end in _spans(positions, made, use, at)]


def _later(positions: Positions, made: int, use: Operation, at: int) -> list[tuple[int, int]]:
    return [(start + 1, end) for start, end in _spans(positions, made, use, at)]


def _dead_before_else(
    positions: Positions, made: int, use: Operation, at: int
) -> list[tuple[int, int]]:
    return _spans(positions, made, use, at)[-1:] or []


def _one_more(sizes: Sizes, op: Operation) -> int | None:
    turns = _trip_count(sizes, op)
    return None if turns is None else turns + 1


def _same_buffer(of: Interference, a: Place, b: Place) -> Iterator[tuple[Steps, Steps]]:
    if a[0] is b[0]:
        yield a[1], b[1]


WRONG: tuple[tuple[str, object, str, object, int, bool], ...] = (
    ("no write interferes", Interference, "_overwrites", lambda *_: False, 0, False),
    ("all launches write in place", Interference, "_in_place", lambda *_: True, 0, False),
    ("copies write nothing", Interference, "_is_no_op", lambda *_: True, 0, False),
    ("parts never meet", interference, "disjoint", lambda *_: True, 0, False),
    ("all parts are excluded", interference, "covers", lambda *_: True, 4, True),
    ("intervals end early", Positions, "spans", _shorter, 2, False),
    ("intervals begin late", Positions, "spans", _later, 103, False),
    ("dead before an else", Positions, "spans", _dead_before_else, 37, False),
    ("dead at a loop's end", Positions, "outermost", lambda *_: None, 7, False),
    ("results of loops alias nothing", Interference, "shared", _same_buffer, 25, False),
    ("all buffers may be exchanged", Exchanges, "_rotates", lambda *_: True, 0, False),
    ("one exchange too many", exchanges, "trip_count", _one_more, 17, False),
    ("all copies may be hoisted", exchanges, "disjoint", lambda *_: True, 118, True),
    ("no copy is in the loop", Exchanges, "_is_before", lambda *_: True, 118, True),
    ("all parts are loop-invariant", Copies, "is_invariant", lambda *_: True, 30, False),
    ("copies in any order", parallel_copies, "_overwrites", lambda *_: False, 7, False),
    (
        "no slot is read",
        control_copies,
        "_unread",
        lambda copies, _: {s for s in copies.variables if isinstance(s.owner, Block)},
        0,
        False,
    ),
)
"""Rules of the analysis made wrong, and the seed of a program in which the checker finds it."""


@pytest.mark.parametrize(
    ("where", "name", "rule", "seed", "rows"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_wrong_rules_are_found(
    where: object, name: str, rule: object, seed: int, rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = on_host(Writer(seed, rows=rows).program())
    monkeypatch.setenv("STEPWELL_VERIFY", "buffers")
    Bufferize().apply(Context(), parse(text))
    monkeypatch.setattr(where, name, rule)
    with pytest.raises(CompileError, match="compiler bug: after bufferize"):
        Bufferize().apply(Context(), parse(text))
