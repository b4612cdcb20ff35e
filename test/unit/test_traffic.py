"""Bytes that launches move, of programs whose sizes only the run tells and of whole networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from buffer_programs import bufferized, host, loop
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from stepwell.dialects.kernel import LaunchOp
from stepwell.transforms.kernels.traffic import Traffic, traffic


def _found(text: str, shape: tuple[int, ...]) -> list[Traffic | None]:
    module = bufferized(text).module

    def shape_of(value: SSAValue) -> tuple[int, ...]:
        return shape if isinstance(value.type, MemRefType) else ()

    ops = [op for op in module.walk() if isinstance(op, LaunchOp | memref.CopyOp)]
    assert all(traffic(op) is None for op in ops), "their sizes are not known"
    return [traffic(op, shape_of=shape_of) for op in ops]


@pytest.mark.parametrize("n", [0, 1, 10, 1000])
def test_each_element_once(n: int) -> None:
    bytes = 4 * n * n
    assert _found(host("%a = @double(%x)\n%r = @add(%a, %x)"), (n, n)) == [
        Traffic(2 * bytes, 2 * bytes),
        Traffic(3 * bytes, 3 * bytes),
    ]


def test_the_same_array_twice_is_one() -> None:
    assert _found(host("%r = @add(%x, %x)"), (10, 10)) == [Traffic(800, 800)]


def test_a_copy_need_not_be() -> None:
    first, second = _found(host(loop("%q = @flip(%s)\nyield %q", "%s", "%x")), (10, 10))
    assert first == Traffic(800, 0)
    assert second == Traffic(800, 800)


def test_a_cache_too_small_for_a_row_is_filled_three_times() -> None:
    (op,) = [o for o in bufferized(host("%r = @rows(%x)")).module.walk() if isinstance(o, LaunchOp)]

    def shape_of(value: SSAValue) -> Any:
        return (4, 1000) if isinstance(value.type, MemRefType) else ()

    large, small = (traffic(op, cache, shape_of) for cache in (1 << 20, 1 << 10))
    assert large is not None and small is not None
    assert large.moved < small.moved and large.least == small.least == 2 * 4 * 4000
    assert np.isclose(small.excess, small.moved / 32000)
