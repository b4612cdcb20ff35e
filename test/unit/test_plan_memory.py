"""plan-memory: the arena is little larger than what must be in it at the busiest time."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from buffer_programs import bufferized, host, loop, matrices, parse, planned, run_on_buffers
from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from stepwell.core.diagnostics import CompileError
from stepwell.dialects import kernel
from stepwell.dialects.interpreter import Interpreter
from stepwell.transforms.buffers.plan_memory import PlanMemory
from stepwell.transforms.buffers.plan_memory.lifetimes import Lifetime, Lifetimes

SIZE = 48
BYTES = SIZE * SIZE * 4


def chain(length: int) -> str:
    """Each tensor made of the one before, never in place."""
    names = ["%x", *(f"%t{i}" for i in range(length - 1)), "%r"]
    return "\n".join(f"{b} = @flip({a})" for a, b in pairwise(names))


def diamonds(count: int) -> str:
    """One tensor goes two ways, which meet again."""
    lines, at = list[str](), "%x"
    for i in range(count):
        lines += [f"%a{i} = @flip({at})", f"%b{i} = @rows({at})"]
        lines += [f"%g{i} = @flip(%a{i})", f"%d{i} = @add(%g{i}, %b{i})"]
        at = f"%d{i}"
    return "\n".join([*lines, f"%r = @flip({at})"])


def residuals(count: int) -> str:
    """A long way and a short one, over and over."""
    lines, at = ["%s = @flip(%x)"], "%s"
    for i in range(count):
        lines += [f"%a{i} = @flip({at})", f"%b{i} = @flip(%a{i})", f"%g{i} = @rows(%b{i})"]
        lines += [f"%d{i} = @add(%g{i}, {at})"]
        at = f"%d{i}"
    return "\n".join([*lines, f"%r = @flip({at})"])


def attention(layers: int) -> str:
    """Query, key and value, their products, a way around them."""
    lines, at = ["%s = @flip(%x)"], "%s"
    for i in range(layers):
        lines += [f"%q{i} = @flip({at})", f"%k{i} = @flip({at})", f"%v{i} = @flip({at})"]
        lines += [f"%w{i} = @add(%q{i}, %k{i})", f"%p{i} = @rows(%w{i})"]
        lines += [f"%o{i} = @add(%p{i}, %v{i})", f"%f{i} = @flip(%o{i})"]
        lines += [f"%d{i} = @add(%f{i}, {at})"]
        at = f"%d{i}"
    return "\n".join([*lines, f"%r = @flip({at})"])


GRAPHS = {
    "chain": chain(12),
    "diamond": diamonds(4),
    "residual": residuals(4),
    "attention": attention(3),
}


def fixed(text: str) -> str:
    """Return the program for matrices of one size."""
    n = SIZE
    for old, new in (("?x?x", f"{n}x{n}x"), ("<?x", f"<{n}x")):
        text = text.replace(old, new)
    return re.sub(r"tensor\.empty\([^)]*\)", "tensor.empty()", text)


def bound(module: ModuleOp) -> int:
    """Return the most bytes in use at any launch, each buffer from its first to its last use.

    An input that dies at a launch which may overwrite it with its result counts once.
    """
    main = next(f for f in module.ops if isinstance(f, func.FuncOp) and f.sym_name.data == "main")
    kernels = {k.sym_name.data: k for k in module.ops if isinstance(k, kernel.FuncOp)}
    launches = [op for op in main.body.block.ops if isinstance(op, kernel.LaunchOp)]
    spans: dict[object, tuple[int, int]] = {}
    for op in main.body.block.ops:
        if isinstance(op, memref.AllocOp):
            at = [i for i, each in enumerate(launches) if op.memref in each.operands]  # pyright: ignore
            spans[op.memref] = (min(at), max(at))
    most = 0
    for i, launch in enumerate(launches):
        alive = [v for v, (start, stop) in spans.items() if start <= i <= stop]
        pairs = kernels[launch.callee.root_reference.data].attributes.get("kernel.in_place", ())
        saved = 0
        for pair in list(pairs)[:1]:  # pyright: ignore
            a, b = (launch.operands[n] for n in pair.get_values())
            saved = int(a in spans and spans[a][1] == i and spans.get(b, (i,))[0] == i)
        most = max(most, len(alive) - saved)
    return most * BYTES


@pytest.mark.parametrize("name", GRAPHS)
def test_peak_is_close_to_what_is_live(name: str) -> None:
    outcome = bufferized(fixed(host(GRAPHS[name])))
    module = planned(outcome)
    main = next(f for f in module.ops if isinstance(f, func.FuncOp) and f.sym_name.data == "main")
    arena = main.attributes["kernel.arena_bytes"]
    assert isinstance(arena, IntegerAttr)
    assert 0 < arena.value.data <= 1.05 * bound(outcome.module)
    (told,) = Interpreter(module).call("main.arena", [])
    assert told == arena.value.data


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_computed_stays_the_same(name: str) -> None:
    outcome = bufferized(fixed(host(GRAPHS[name])))
    module = planned(outcome)
    inputs = [x % 2 for x in matrices(SIZE, SIZE)]
    like = [np.zeros((SIZE, SIZE), np.float32)]
    (bytes,) = Interpreter(module).call("main.arena", [])
    want = run_on_buffers(outcome.module, inputs, like)
    got = run_on_buffers(module, inputs, like, int(bytes))
    np.testing.assert_array_equal(want[0], got[0])


@pytest.mark.parametrize("name", GRAPHS)
def test_slots_of_unknown_size_are_shared(name: str) -> None:
    """With `?` sizes the arena has as many slots as buffers are in use at once."""
    outcome = bufferized(host(GRAPHS[name]))
    (bytes,) = Interpreter(planned(outcome)).call("main.arena", [np.int64(SIZE)] * 2)
    assert bytes <= 1.05 * bound(outcome.module)


def test_a_buffer_used_in_a_loop_stays_for_the_loop() -> None:
    body = "%a = @flip(%x)\n%b = @flip(%a)" + loop(
        "%p = @flip(%s)\n%o = @add(%p, %a)\n%q = @flip(%o)\nyield %q", "%s", "%b", "%n"
    )
    outcome = bufferized(host(body))
    inputs, like = matrices(3, 3), [np.zeros((3, 3), np.float32)]
    module = planned(outcome)
    (bytes,) = Interpreter(module).call("main.arena", [np.int64(3)] * 2)
    want = run_on_buffers(outcome.module, inputs, like)
    np.testing.assert_array_equal(want[0], run_on_buffers(module, inputs, like, int(bytes))[0])


def test_planning_twice_is_refused() -> None:
    module = planned(bufferized(host("%r = @flip(%x)")))
    with pytest.raises(CompileError, match="has an arena already"):
        PlanMemory().apply(Context(), parse(str(module)))


def test_a_buffer_placed_over_a_live_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lifetime, "meets", lambda life, other: False)
    _check_found(residuals(2), monkeypatch)


def test_a_buffer_that_a_loop_reads_lives_as_long_as_it(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%p = @add(%s, %c)\n%t = @flip(%p)\n%q = @rows(%t)\nyield %q"
    text = "%a = @flip(%x)\n%c = @rows(%a)" + loop(body, "%s", "%x", "%n")
    monkeypatch.setenv("STEPWELL_VERIFY", "buffers")
    planned(bufferized(host(text, "%r")))
    monkeypatch.setattr(Lifetimes, "_span", lambda lives, op, life: lives.time[op])
    _check_found(text, monkeypatch)


def _check_found(text: str, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("STEPWELL_VERIFY", "buffers")
    module = bufferized(host(text, "%r")).module
    with pytest.raises(CompileError, match=r"compiler bug: .*plan-memory"):
        PlanMemory().apply(Context(), module)
