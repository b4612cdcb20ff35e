"""Control flow, with random bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stepwell.testing.random_programs.pointwise import unary
from stepwell.testing.random_programs.program import Program, Value

Steps = Callable[[Program, int], None]
"""Writes a given number of random ops."""


def choice(p: Program, x: Value, steps: Steps) -> Value:
    """Add a branch between two bodies."""
    truth = p.some(lambda v: v.dtype == "i1" and not v.shape) or p.argument((), "i1")
    name, sides = p.fresh(), list[list[str]]()
    bounds: list[float | None] = []
    for _ in range(2):
        before = len(p.lines)
        with p.region():
            steps(p, p.number(0, 2))
            y = _of_size(p, x)
            p.line(f"nd.yield %{y.name} : {y.type}")
            bounds.append(y.bound)
        sides.append(p.lines[before:])
        del p.lines[before:]
    p.line(f"%{name} = nd.if %{truth.name} -> {x.type} {{")
    p.lines += sides[0]
    p.line("} else {")
    p.lines += sides[1]
    p.line("}")
    known = [b for b in bounds if b is not None]
    return _made(p, Value(name, x.shape, x.dtype, max(known) if len(known) == 2 else None))


def _of_size(p: Program, x: Value) -> Value:
    """Return a value of the type of ``x``, of provably the same size if that is dynamic."""
    if all(isinstance(n, int) for n in x.shape):
        return p.like(x)
    return unary(p, x) if p.chance() else x


def _made(p: Program, *values: Value) -> Value:
    for value in values:
        p.values.append(value)
    return values[0]


def _body(p: Program, carried: Value, steps: Steps) -> Value:
    """Write a body that yields a new value for the carried one."""
    p.values.append(carried)
    steps(p, p.number(0, 2))
    return _of_size(p, carried)


def loop(p: Program, x: Value, steps: Steps) -> Value:
    """Add a while loop of a few iterations."""
    if x.floats:  # carried values are inexact
        x = p.like(x)
    rounds, zero, one = (p.op(f"nd.full {n}", (), "i32") for n in (p.number(0, 3), 0, 1))
    count, name = p.fresh(), p.fresh()
    i, a, j, b = (p.fresh() for _ in range(4))
    p.line(
        f"%{count}, %{name} = nd.while (%{i} = %{zero.name}, %{a} = %{x.name}) : "
        f"tensor<i32>, {x.type} {{"
    )
    with p.region():
        p.line(f"%go{i} = nd.lt %{i}, %{rounds.name} : tensor<i32> -> tensor<i1>")
        p.line(f"nd.condition %go{i}")
    p.line(f"}} do (%{j}, %{b}) {{")
    with p.region():
        y = _body(p, replace(x, name=b, bound=None), steps)
        p.line(f"%next{i} = nd.add %{j}, %{one.name} : tensor<i32>")
        p.line(f"nd.yield %next{i}, %{y.name} : tensor<i32>, {x.type}")
    p.line("}")
    return _made(p, Value(name, x.shape, x.dtype), Value(count, (), "i32"))


def scan(p: Program, x: Value, steps: Steps) -> Value:
    """Add a scan along the first axis of ``x``, with a carried and a stacked value."""
    if not x.shape or not all(isinstance(n, int) for n in x.shape[1:]):
        return unary(p, x)
    part = replace(x, name=p.fresh(), shape=x.shape[1:])
    fits = p.some(lambda v: v.shape == part.shape and v.dtype == x.dtype)
    start = fits if fits is not None else p.argument(part.shape, x.dtype)
    last, stack, carried = p.fresh(), p.fresh(), p.fresh()
    way = " {reverse}" if p.chance() else ""
    p.line(
        f"%{last}, %{stack} = nd.scan (%{carried} = %{start.name}) over (%{part.name} = %{x.name})"
        f"{way} : ({start.type}, {x.type}) -> ({start.type}, {x.type}) {{"
    )
    with p.region():
        p.values.append(part)
        y = _body(p, replace(start, name=carried, bound=None), steps)
        z = _body(p, replace(start, name=carried, bound=None), steps)
        p.line(f"nd.yield %{y.name}, %{z.name} : {start.type}, {part.type}")
    p.line("}")
    return _made(p, Value(stack, x.shape, x.dtype), Value(last, start.shape, x.dtype))


OPS = (choice, loop, scan)
