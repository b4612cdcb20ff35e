"""Programs of test rows as the regions of nd.vmap, and arguments for each example."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from stepwell.testing.op_rows.row import Array, Case, Row


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
