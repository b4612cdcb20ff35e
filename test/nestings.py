"""Kernels of tests whose loops nest as their attributes say, in short.

`tile = [2, 2], blocks = [4, 8, 4], parallel = 2` on a kernel and `lanes = [1, 4, 1]` on its ops
stand for the levels that say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser

from stepwell.analysis.levels import (
    KernelLevels,
    Lanes,
    kernel_levels,
    loop_ops,
    rebuilt,
    write_schedule,
)
from stepwell.analysis.levels.building import Inner, around_tiles, in_parts, in_threads, nest
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import FOR, PARALLEL, Schedule
from stepwell.driver.registry import registry
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.nest import parallel_steps
from stepwell.transforms.kernels.schedule.vectors import read

ROWS = 8
"""Rows that a part of a sum over rows reads side by side."""


def write_levels(module: ModuleOp) -> None:
    """Write levels on the kernels of a module in place of what is said in short."""
    for function in module.ops:
        if isinstance(function, kernel.FuncOp):
            _write(function)


def _write(function: kernel.FuncOp) -> None:
    names = [name for name in function.attributes if not name.startswith("kernel.")]
    said = {name: _value(function.attributes.pop(name)) for name in names}
    ops = loop_ops(function)
    found = [op.attributes.pop("lanes", None) for op in ops]
    if not said and not any(found):
        return
    lanes = [Lanes(*_value(each)) if each else Lanes() for each in found]
    write_schedule(function, _levels(function, lanes, said))


def _levels(function: kernel.FuncOp, lanes: Sequence[Lanes], said: dict[str, Any]) -> Schedule:
    """Return the levels of a kernel that are told in short, each word of which is used."""
    ops, shared = loop_ops(function), choices.number(function, "kernel.shared")
    parallel, prefetch = said.pop("parallel", 0), int(said.pop("prefetch", 0))
    if split := said.pop("split", 0):
        assert not said, said
        return in_parts(ops, shared, lanes, split, ROWS if shared else 0, prefetch)
    axis, width, many, *_ = lanes[0]
    tile, grain, band = said.pop("tile", (1, 1)), said.pop("grain", 1), said.pop("band", 1)
    if "blocks" in said or "strip" in said:
        found = _in_steps(function, lanes, tile, said | {"prefetch": prefetch > 0})
        levels = KernelLevels(function, found)
        outer = tuple(
            replace(x, kind=FOR) if x.kind == PARALLEL and x.loop >= parallel else x
            for x in around_tiles(levels)
        )
        return rebuilt(levels, outer=outer, lanes=lanes, grain=grain)
    steps = [1] * shared
    if tile != (1, 1):
        steps[-2:] = tile
    elif shared:
        steps[-1] = band
    if 0 <= axis < shared:
        steps[axis] = width * (tile[1] if tile != (1, 1) else many)
    most = max(len(read(op).parallel) for op in ops)
    unroll = range(shared, most) if said.pop("unroll", False) else ()
    inner = Inner(steps, lanes, unroll, prefetch)
    assert not said, said
    own = any(len(read(op).parallel) > shared for op in ops)
    of_threads = steps if own else parallel_steps(steps, parallel, inner.lanes[0].axis)
    return nest(ops, inner, in_threads(of_threads[:parallel], grain))


def _in_steps(
    function: kernel.FuncOp, lanes: Sequence[Lanes], tile: tuple[int, int], said: dict[str, Any]
) -> Schedule:
    """Return the levels of blocks or strips."""
    dots, biased, first, rows = (
        said.pop(name, False) for name in ("dots", "bias_to_unsigned", "pack_first", "pack_rows")
    )
    chosen = Contraction(
        max(each.width for each in lanes),
        tile,
        said.pop("blocks", ()),
        said.pop("strip", None),
        pack_columns="dot" if dots else "first" if first else "",
        pack_rows=("biased_dot" if biased else "dot" if dots else "") if rows else None,
        prefetch=said.pop("prefetch"),
    )
    assert not said, said
    ops = [read(op) for op in loop_ops(function)]
    return chosen.levels(ops, choices.number(function, "kernel.shared"))


def _value(found: Attribute) -> Any:
    match found:
        case UnitAttr():
            return True
        case IntegerAttr():
            return found.value.data
        case ArrayAttr():
            return tuple(map(_value, found))
        case _:
            raise ValueError(found)


def levels_in(text: str) -> list[KernelLevels]:
    """Return the levels of each kernel of a text."""
    module = Parser(registry().context(), text).parse_module()
    return [kernel_levels(each) for each in module.ops if isinstance(each, kernel.FuncOp)]


def has(text: str, fact: str) -> bool:
    """Whether a kernel of a text has a tile, blocks, ..., or packs an operand in some way."""
    return any(_has(levels, fact) for levels in levels_in(text))


def _has(levels: KernelLevels, fact: str) -> bool:
    match fact:
        case "strip":
            return levels.in_steps is not None and not levels.blocks
        case "tile":
            return levels.tile != (1, 1)
        case "bias_to_unsigned":
            return "biased_dot" in levels.packs.values()
        case "dots" | "pack_first":
            return {"dots": "dot", "pack_first": "first"}[fact] in levels.packs.values()
        case _:
            return bool(getattr(levels, fact))
