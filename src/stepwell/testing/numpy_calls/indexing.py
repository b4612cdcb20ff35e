"""Random reads and writes by index: every form of an index, and views of views."""

from __future__ import annotations

from typing import Any

from stepwell.testing.numpy_calls.values import Call, Draw


def index(g: Draw, shape: tuple[int, ...], arrays: bool = True) -> str:
    """Return the text of an index of an array of ``shape``."""
    parts: list[str] = []
    left = list(shape)
    ellipsis = g.chance(0.25)
    block = g.shape(0, 2) if arrays and g.chance(0.4) else None
    while left and not (parts and g.chance(0.25)):
        if g.chance(0.12):
            parts.append("None")
            continue
        n = left.pop(0)
        if block is not None and g.chance(0.5):
            parts.append(_array(g, n, block))
        elif arrays and g.chance(0.05):
            parts.append(f"np.array({[g.chance(0.5) for _ in range(n)]}, bool)")
        elif g.chance(0.35):
            parts.append(_integer(g, n))
        else:
            parts.append(_slice(g, n))
    if ellipsis:
        parts.append("...")
    if arrays and g.chance(0.03):
        parts.append(g.pick(("True", "False")))
    if not parts:
        return g.pick(("...", "()", "None"))
    return ", ".join(parts) + ("," if len(parts) == 1 and g.chance(0.3) else "")


def _integer(g: Draw, n: int) -> str:
    if n == 0 or g.chance(0.03):
        return str(g.pick((0, n, -n - 1)))
    return str(g.random.randrange(-n, n))


def _slice(g: Draw, n: int) -> str:
    def bound() -> str:
        return "" if g.chance(0.5) else str(g.random.randint(-n - 2, n + 2))

    step = g.pick(("", "", "", ":1", ":2", ":-1", ":-2", ":3", ":-1"))
    return f"{bound()}:{bound()}{step}"


def _array(g: Draw, n: int, block: tuple[int, ...]) -> str:
    shape = tuple(1 if g.chance(0.2) else k for k in block)
    count = 1
    for k in shape:
        count *= k
    if n == 0:
        flat: list[int] = [0] * count
    else:
        flat = [g.random.randrange(-n, n) for _ in range(count)]
    dtype = g.pick(("int64", "int64", "int32", "int8", "uint8"))
    flat = [v + n if v < 0 and dtype == "uint8" else v for v in flat]
    text = f"np.array({flat}, '{dtype}').reshape({shape})"
    if g.chance(0.5) or n == 0:
        return str(flat) if len(shape) == 1 and g.chance(0.4) else text
    name = f"a{len(g.arrays)}"
    space: dict[str, Any] = {}
    exec(f"import numpy as np\nr = {text}", space)
    g.arrays[name] = space["r"]
    return name


def read(g: Draw) -> Call:
    """Return a read by an index, perhaps of the result of another read."""
    a = g.array(g.shape(1))
    text = f"{a}[{index(g, g.of(a).shape)}]"
    return Call(f"r = {text}", g.arrays, "x[...]")


def write(g: Draw) -> Call:
    """Return a write by index to a copy, or to a view of it."""
    g.tame = True
    a = g.array(g.shape(1))
    at = index(g, g.of(a).shape)
    shape = ()
    space: dict[str, Any] = dict(g.arrays)
    try:
        exec(f"import numpy as np\nr = {a}[{at}].shape", space)
        shape = space["r"]
    except (IndexError, ValueError):
        pass
    value = g.operand(shape)
    how = g.pick(("=", "=", "=", "+=", "*=", "-=")) if shape else "="
    lines = [f"y = {a}.copy()"]
    if g.chance(0.3) and "a1[" not in at:
        lines += ["v = y[...]", f"v[{at}] {how} {value}"]
    else:
        lines += [f"y[{at}] {how} {value}"]
    return Call("; ".join([*lines, "r = y"]), g.arrays, f"x[...] {how}")


def at(g: Draw) -> Call:
    """Return an unbuffered in-place update."""
    g.tame = True
    a = g.array((g.pick((1, 3, 5)), *g.shape(0, 1)))
    n = g.of(a).shape[0]
    i = _array(g, n, g.shape(0, 1))
    name = g.pick(("add", "multiply", "maximum", "minimum", "subtract"))
    value = g.operand(())
    text = f"y = {a}.copy(); m.{name}.at(y, {i}, {value}); r = y"
    return Call(text, g.arrays, f"{name}.at", rounding="sums")
