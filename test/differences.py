"""Gradients of one op against central differences in float64, along directions drawn at random."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reading import parsed

from stepwell.dialects.interpreter import Interpreter

Array = NDArray[Any]
KINDS = {"float64": "f64", "float16": "f16", "float32": "f32", "int64": "i64", "int32": "i32"} | {
    "int8": "i8",
    "uint8": "ui8",
    "uint64": "ui64",
    "uint16": "ui16",
}
STEP = 1e-5


def tensor(x: Array, unknown: Sequence[int] = ()) -> str:
    """Return the type of an array, with `?` for some of its sizes."""
    sizes = ("?" if axis in unknown else str(n) for axis, n in enumerate(x.shape))
    return f"tensor<{''.join(f'{n}x' for n in sizes)}{KINDS[x.dtype.name]}>"


def programs(op: str, types: Mapping[str, str], wrt: Sequence[str], y: str) -> str:
    """Return the op, its gradient, and the gradient of that.

    op : how it is spelled, with operands named as ``types`` says
    """
    names = list(types)
    given = ", ".join(f"%{n}: {t}" for n, t in types.items())
    every = ", ".join(types.values())
    outer = ", ".join(f"%{n}_0: {t}" for n, t in types.items())
    numbers = [names.index(n) for n in wrt]
    slopes = [f"%d_{n}" for n in wrt]
    of = ", ".join(types[n] for n in wrt)
    inner = f"""
        %v, {", ".join(slopes)} = nd.vjp ({", ".join(f"%{n} = %{n}_1" for n in names)}) cotangents(%g_1 : {y}) {{wrt = {numbers}, of = [0]}} : ({every}) -> ({y}, {of}) {{
          %y = {op}
          nd.yield %y : {y}
        }}"""
    first = inner.replace("_1", "_0")
    twice = ", ".join(f"%s{k}" for k in range(len(wrt) + 1))
    around = ", ".join(f"%{n}_1 = %{n}_0" for n in names)
    seeds = ", ".join(f"%h{k} : {types[n]}" for k, n in enumerate(wrt))
    return f"""
    func.func @f({given}) -> {y} {{
      %y = {op}
      func.return %y : {y}
    }}
    func.func @first({outer}, %g_0: {y}) -> ({of}) {{{first}
      func.return {", ".join(slopes)} : {of}
    }}
    func.func @second({outer}, %g_0: {y}, {seeds}) -> ({y}, {of}) {{
      {", ".join(f"%r{k}" for k in range(len(wrt)))}, {twice} = nd.vjp (%g_1 = %g_0, {around}) cotangents({seeds}) {{wrt = {[0, *(n + 1 for n in numbers)]}, of = {list(range(len(wrt)))}}} : ({y}, {every}) -> ({of}, {y}, {of}) {{{inner}
        nd.yield {", ".join(slopes)} : {of}
      }}
      func.return {twice} : {y}, {of}
    }}
    """


def check(
    op: str,
    operands: Mapping[str, Array],
    wrt: Sequence[str],
    seed: int,
    unknown: Mapping[str, Sequence[int]] | None = None,
    second: bool = True,
    tolerance: float = 1e-6,
) -> None:
    """Compare the gradient of ``op``, and that of the gradient, with differences.

    op : spelled as ``nd.name %x {...} : $x -> tensor<...>``, ``$x`` being the type of ``x``
    """
    random = np.random.default_rng(seed)
    told = unknown or {}
    types = {n: tensor(x, told.get(n, ())) for n, x in operands.items()}
    spelled = Template(op).substitute(types)
    y = re.split(" -> | : ", spelled)[-1]
    run = Interpreter(parsed(programs(spelled, types, wrt, y))[1]).call
    arrays = [np.asarray(x) for x in operands.values()]
    (value,) = run("f", arrays)
    g = random.standard_normal(np.shape(value))

    def moved(directions: Mapping[str, Array], step: float) -> list[Array]:
        return [x + step * directions[n] if n in directions else x for n, x in operands.items()]

    slopes = run("first", [*arrays, g])
    along = {n: random.standard_normal(operands[n].shape) for n in wrt}
    for name, slope in zip(wrt, slopes, strict=True):
        assert np.shape(slope) == operands[name].shape, name
    there, back = (run("f", moved(along, h))[0] for h in (STEP, -STEP))
    change = np.sum(g * (np.asarray(there) - np.asarray(back))) / (2 * STEP)
    dot = sum(np.sum(along[n] * np.asarray(s)) for n, s in zip(wrt, slopes, strict=True))
    np.testing.assert_allclose(dot, change, rtol=tolerance, atol=tolerance)
    if not second:
        return
    seeds = [random.standard_normal(operands[n].shape) for n in wrt]
    more = random.standard_normal(g.shape)
    d_g, *twice = run("second", [*arrays, g, *seeds])
    ends = [run("first", [*moved(along, h), g + h * more]) for h in (STEP, -STEP)]
    change = sum(
        np.sum(h * (np.asarray(a) - np.asarray(b))) / (2 * STEP)
        for h, a, b in zip(seeds, *ends, strict=True)
    )
    dot = np.sum(more * np.asarray(d_g))
    dot += sum(np.sum(along[n] * np.asarray(s)) for n, s in zip(wrt, twice, strict=True))
    np.testing.assert_allclose(dot, change, rtol=10 * tolerance, atol=10 * tolerance)
