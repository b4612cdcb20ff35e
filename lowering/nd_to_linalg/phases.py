"""Convolutions of dilated inputs, without the multiplications by the zeros between elements.

Adjacent places of the result meet different elements of the window: with elements d apart, place o
meets those whose number is low - o modulo d. Places that are d apart meet the same elements, so
they are a convolution of the undilated input with a part of the window: a phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.contraction import Window
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.sizes import Size, shape_of_sizes
from stepwell.lowering.nd_to_linalg.table import Lowering


@dataclass(frozen=True)
class Phase:
    """The places ``first``, ``first + step``, ... of the result along one axis."""

    first: int
    """The first of these places."""
    step: int
    """The distance between them."""
    tap: int
    """The first element of the window that meets elements of the input there."""
    taps: int
    begin: int
    """The first element of the input that is read, below 0 in the padding."""
    reads: int
    """The number of elements that are read."""


def phases(window: Window, extents: Sequence[int], places: Sequence[int]) -> list[list[Phase]]:
    """Return the phases along each spatial axis.

    [] if there is only one phase, or if sizes, strides or a dilated window do not allow the
    decomposition.

    extents, places : sizes of the input and of the result along each axis
    """
    sizes = (*extents, *places, *window.size)
    if set(window.lhs_dilation) <= {1} or DYNAMIC in sizes or min(sizes, default=0) < 1:
        return []
    found: list[list[Phase]] = []
    for i, (apart, stride, spread) in enumerate(
        zip(window.lhs_dilation, window.strides, window.rhs_dilation, strict=True)
    ):
        size, low, count = window.size[i], window.low[i], places[i]
        if apart == 1:
            reads = (count - 1) * stride + (size - 1) * spread + 1
            found.append([Phase(0, 1, 0, size, -low, reads)])
            continue
        if stride != 1 or spread != 1:
            return []
        along: list[Phase] = []
        for first in range(min(apart, count)):
            tap = (low - first) % apart
            taps = len(range(tap, size, apart))
            reads = -(-(count - first) // apart) + taps - 1
            along.append(Phase(first, apart, tap, taps, (first + tap - low) // apart, reads))
        found.append(along)
    return found


def sliced(
    lowering: Lowering,
    x: SSAValue,
    axes: Sequence[int],
    parts: Sequence[tuple[int, int, int]],
    sizes: Sequence[Size],
) -> SSAValue:
    """Return the slices ``parts`` (begin, count, step) of ``axes``; ``sizes`` are those of x."""
    begins, counts, steps = [0] * len(sizes), list(sizes), [1] * len(sizes)
    for axis, part in zip(axes, parts, strict=True):
        begins[axis], counts[axis], steps[axis] = part
    if counts == list(shape_of(x)):
        return x
    type = TensorType(tensor_type(x).element_type, shape_of_sizes(counts))
    return lowering.insert(tensor.ExtractSliceOp(x, begins, counts, steps, type)).result
