"""Random chains of ops that move elements: canonicalized and lowered, they move them as before."""

from __future__ import annotations

import random

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.core.shapes.shape import END, reshape_unknown
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.nd.shape import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import element_type
from stepwell.lowering.nd_to_linalg import NdToLinalg
from stepwell.transforms.canonicalize import Canonicalize

assert upstream, "imported for its rules"


def _reshape(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    """Move a unit axis in or out, merge two axes, or split one."""
    shape = list(shape_of(x))
    choice, at = draw.randrange(3), draw.randrange(len(shape) + 1)
    told: list[SSAValue] = []
    if choice == 0 or not shape:
        shape.insert(at, 1)
    elif choice == 1 and len(shape) > 1 and DYNAMIC not in shape[:2]:
        shape[:2] = [shape[0] * shape[1]]
    elif shape[-1] != DYNAMIC and shape[-1] % 2 == 0 and shape[-1]:
        shape[-1:] = [shape[-1] // 2, 2]
    if reshape_unknown(shape_of(x), tuple(shape)):
        told = [DimOp(x, a).n for a, n in enumerate(shape_of(x)) if n == DYNAMIC]
    return ReshapeOp(x, shape, told).y


def _slice(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    ranges = [
        draw.choice([(0, END, 1), (0, END, 2), (1, END, 1), (1, -1, 1), (-3, END, 2), (0, 4, 3)])
        for _ in shape_of(x)
    ]
    starts, limits, strides = zip(*ranges, strict=True) if ranges else ((), (), ())
    return SliceOp(x, starts, limits, strides).y


def _broadcast(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    shape = list(shape_of(x))
    at = draw.randrange(len(shape) + 1)
    dims = [axis + (axis >= at) for axis in range(len(shape))]
    shape.insert(at, draw.choice([1, 2]))
    if 1 in shape and draw.random() < 0.5:
        shape[shape.index(1)] = 3
    return BroadcastOp(x, dims, shape).y


def _transpose(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    return TransposeOp(x, draw.sample(range(len(shape_of(x))), len(shape_of(x)))).y


def _reverse(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    return ReverseOp(x, [a for a in range(len(shape_of(x))) if draw.random() < 0.5]).y


def _pad(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    low, high, interior = ([draw.choice([0, 0, 1, 2]) for _ in shape_of(x)] for _ in range(3))
    return PadOp(x, zero, low, high, interior if draw.random() < 0.3 else None).y


def _concat(draw: random.Random, x: SSAValue, zero: SSAValue) -> SSAValue:
    if not shape_of(x):
        return x
    return ConcatOp([x] * draw.choice([1, 2]), draw.randrange(len(shape_of(x)))).y


MOVES = (_reshape, _slice, _broadcast, _transpose, _reverse, _pad, _concat, _slice, _reshape)


def _chain(draw: random.Random, shape: Shape) -> ModuleOp:
    types = [TensorType(element_type("f32"), n) for n in (shape, ())]
    block = Block(arg_types=types)
    with ImplicitBuilder(block):
        value: SSAValue = block.args[0]
        for _ in range(draw.randrange(2, 6)):
            if len(shape_of(value)) < 5:
                value = draw.choice(MOVES)(draw, value, block.args[1])
        func.ReturnOp(value)
    return ModuleOp([func.FuncOp("main", (types, [value.type]), Region(block))])


@pytest.mark.parametrize("seed", range(150))
def test_chain(seed: int) -> None:
    draw = random.Random(seed)
    sizes = tuple(draw.choice([0, 1, 2, 3, 6]) for _ in range(draw.randrange(4)))
    known = tuple(DYNAMIC if seed % 2 and draw.random() < 0.6 else n for n in sizes)
    module = _chain(draw, known)
    module.verify()
    arguments = [np.random.default_rng(seed).random(sizes, np.float32), np.float32(7)]
    (want,) = Interpreter(module).call("main", [np.asarray(a) for a in arguments])
    text = str(module)
    Canonicalize().apply(Context(), module)
    module.verify()
    (got,) = Interpreter(module).call("main", [np.asarray(a) for a in arguments])
    np.testing.assert_array_equal(got, want, f"{text}\n{module}")
    NdToLinalg().apply(Context(), module)
    module.verify()
    (got,) = Interpreter(module).call("main", [np.asarray(a) for a in arguments])
    np.testing.assert_array_equal(got, want, f"{text}\n{module}")
