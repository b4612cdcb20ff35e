"""The cost model: what caches keep, and how many lines are in flight beyond them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepwell.analysis.cost import Breakdown, predict
from stepwell.core.machine import Machine, known_machine
from stepwell.core.source import Source
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import schedule_from
from stepwell.driver.lowering import Lowering

XEON = replace(known_machine("sapphire-rapids"), threads=1, cores=1)
ZEN5 = replace(known_machine("zen5"), threads=1, cores=1)
IN_PLACE = "[for d0 by 6, for d1 by 64, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]"


def scheduled(text: str, levels: str, machine: Machine) -> Breakdown:
    """Return what is predicted of the one kernel of a module under a schedule."""
    outlined = Lowering.of(Source(text, "m", "main", machine))
    outlined.kernels_outlined()
    (function,) = (f for f in outlined.module.ops if isinstance(f, kernel.FuncOp))
    return predict(function, schedule_from(levels), machine)


def product(m: int, k: int, n: int) -> str:
    x, w, y = (f"tensor<{a}x{b}xf32>" for a, b in ((m, k), (k, n), (m, n)))
    return (
        f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
        f"  %y = nd.matmul %x, %w : ({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
    )


def beyond(columns: int, machine: Machine) -> float:
    """Return the time of what comes from L3, for each byte of columns that 50 tiles of rows read."""
    found = scheduled(product(300, 512, columns), IN_PLACE, machine)
    return dict(found.levels)["L3"] / (50 * 512 * columns * 4)


def test_a_cache_loses_what_it_holds_little_by_little() -> None:
    """Granite Rapids: of 1, 1.5, 2, 2.5 and 3 MiB read in turn 0, 9, 29, 56 and 80 % are lost."""
    all = beyond(4096, XEON)
    parts = [beyond(columns, XEON) / all for columns in (384, 768, 1024, 1280, 1536)]
    assert parts == pytest.approx([0, 0.09, 0.29, 0.56, 0.80], abs=0.08)


def test_where_nothing_was_measured_a_cache_keeps_all_or_nothing() -> None:
    all = beyond(4096, ZEN5)
    parts = [beyond(columns, ZEN5) / all for columns in (256, 384, 768, 1024)]
    assert parts == pytest.approx([0, 0, 1, 1], abs=0.1)


def test_lines_in_flight_beyond_the_second_cache_are_its_own() -> None:
    """Lines in any order come as quickly as in a row, where so many are in flight."""
    text = (
        "func.func @main(%x: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {\n"
        "  %y = nd.transpose %x {permutation = [1, 0]} : "
        "tensor<2048x2048xf32> -> tensor<2048x2048xf32>\n"
        "  func.return %y : tensor<2048x2048xf32>\n}\n"
    )
    levels = "[for d0 by 16, for d1 by 16, unroll d0, vector d1 by 16]"
    many, few = (
        dict(scheduled(text, levels, replace(XEON, l2_misses=n)).levels)["L3"] for n in (48, 16)
    )
    assert 1.5 * many < few < 3.1 * many


def test_short_runs_are_waited_for_between_tiles() -> None:
    """22 x 1916 x 1229, Granite Rapids, packed while tiles compute: 715 us in parts of 64 by 448
    columns, 863 of 128 by 256."""
    levels = (
        "[parallel d0 by 24, parallel d1 by {}, for d2 by {} {{pack 1 as double_buffered}}, "
        "for d1 by 64, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]"
    )
    long, short = (
        scheduled(product(22, 1916, 1229), levels.format(*sizes), XEON)
        for sizes in ((448, 64), (256, 128))
    )
    assert short.packing > 1.2 * long.packing and short.seconds > long.seconds
