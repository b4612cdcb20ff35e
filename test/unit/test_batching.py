"""Every row of every op in a batch gives what a Python loop over the examples gives."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest
from op_rows import ROWS, Row
from xdsl.context import Context

from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.op_rows.row import Array, Case
from stepwell.testing.op_rows.run import parsed, reference
from stepwell.transforms.expand_transformations import ExpandTransformations


def with_axis(type: str, axis: int, size: int) -> str:
    """Return a type with one more axis."""
    *sizes, element = type.removeprefix("tensor<").removesuffix(">").split("x")
    sizes.insert(axis, "?" if size < 0 else str(size))
    return f"tensor<{'x'.join([*sizes, element])}>"


def batched(row: Row, dtype: str, axes: dict[str, int], out: list[int], size: int) -> str:
    """Return the row's program as the region of an nd.vmap; a size below 0 is told by the call."""
    types = {n: t.replace("{e}", dtype) for n, t in row.arguments.items()}
    results = (row.results,) if isinstance(row.results, str) else row.results
    results = [t.replace("{e}", dtype) for t in results]
    names = ["y"] if isinstance(row.results, str) else [f"y{i}" for i in range(len(results))]
    whole = {
        n: t if axes.get(n, -1) == -1 else with_axis(t, axes[n], size) for n, t in types.items()
    }
    head = ", ".join(f"%{n if t == 'index' else f'all_{n}'}: {t}" for n, t in whole.items())
    count = ", %lanes: index" if size < 0 and head else "%lanes: index" if size < 0 else ""
    given = {n: t for n, t in whole.items() if t != "index"}
    bound = ", ".join(f"%{n} = %all_{n}" for n in given)
    ends = [t if a == -1 else with_axis(t, a, size) for t, a in zip(results, out, strict=True)]
    told = "" if size < 0 else f", size = {size}"
    text = row.text.strip().replace("{e}", dtype)
    return f"""
func.func @main({head}{count}) -> ({", ".join(ends)}) {{
  {", ".join(f"%r{n}" for n in names)} = nd.vmap ({bound}) {"count(%lanes : index) " if size < 0 else ""}
      {{in_axes = {[axes.get(n, -1) for n in given]}, out_axes = {out}{told}}}
      : ({", ".join(given.values())}) -> ({", ".join(ends)}) {{
    {text}
    nd.yield {", ".join(f"%{n}" for n in names)} : {", ".join(results)}
  }}
  func.return {", ".join(f"%r{n}" for n in names)} : {", ".join(ends)}
}}
"""


def draw(row: Row, case: Case, axes: dict[str, int], count: int) -> list[list[Array]]:
    """Return the arguments of each example; those without an axis are the same for all."""
    found: list[list[Array]] = []
    for lane in range(count):
        random = np.random.default_rng(crc32(f"{case} {lane}".encode()))
        found.append(
            [
                given
                if axes.get(name, -1) == -1
                else row._draw(random, name, type.replace("{e}", case.dtype), case.sizes)  # pyright: ignore[reportPrivateUsage]
                for (name, type), given in zip(row.arguments.items(), case.arguments, strict=True)
            ]
        )
    return found


def check(row: Row, case: Case, axes: dict[str, int], out: list[int], size: int) -> None:
    count = 3 if size < 0 else size
    module = parsed(batched(row, case.dtype, axes, out, size))
    ExpandTransformations().apply(Context(), module)
    module.verify()
    lanes = draw(row, case, axes, count)
    stacked: list[Array] = []
    for number, name in enumerate(row.arguments):
        axis = axes.get(name, -1)
        if axis == -1:
            stacked.append(case.arguments[number])
        elif count:
            stacked.append(np.stack([lane[number] for lane in lanes], axis))
        else:
            shape = list(case.arguments[number].shape)
            stacked.append(
                np.empty([*shape[:axis], 0, *shape[axis:]], case.arguments[number].dtype)
            )
    more = [np.asarray(count, np.int64)] if size < 0 else []
    got = Interpreter(module, row.resources).call("main", [*stacked, *more])
    for lane, arguments in enumerate(lanes):
        want = reference(Case(row, case.dtype, case.sizes, case.module, arguments))
        case.check([np.take(g, lane, a) for g, a in zip(got, out, strict=True)], want)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row: Row) -> None:
    """All operands batched, one alone, and some along other axes; sizes known and told."""
    random = np.random.default_rng(crc32(row.name.encode()))
    dtype = row.dtypes[int(random.integers(len(row.dtypes)))]
    ranks = {n: t.replace("{e}", "f").count("x") for n, t in row.arguments.items() if t != "index"}
    results = (row.results,) if isinstance(row.results, str) else row.results
    choices: list[dict[str, int]] = [dict.fromkeys(ranks, 0)]
    if len(ranks) > 1:
        choices += [{n: int(random.integers(r + 1))} for n, r in ranks.items()]
    for number, axes in enumerate(choices):
        cases = list(row.cases([dtype]))
        case = cases[number % len(cases)]
        out = [int(random.integers(t.count("x") + 1)) if number else 0 for t in results]
        out = [min(o, t.replace("{e}", "f").count("x")) for o, t in zip(out, results, strict=True)]
        check(row, case, axes, out, 3)
        if number == 0:
            for size in (-1, 0):
                check(row, cases[-1], axes, out, size)
