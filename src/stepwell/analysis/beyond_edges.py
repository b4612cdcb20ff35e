"""Find the ops that slide a window along the rows of an image, and can read beyond its edges.

The kernel of such an op reads the image itself, so that no padded copy is made.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, Float32Type, Float64Type, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.padded import Padded, padded
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import (
    Index,
    contracts,
    element,
    extents,
    indices,
    is_parallel,
    linear,
    plain,
    shape,
)

ROW = 8
"""The number of elements below which a row fills no vector."""
AROUND = 4
"""The most padded columns in a row: each needs code of its own for a window that sticks out."""
STEPS = 1, 2
"""Steps of a window along a row whose elements are read as vectors."""
PLANES = 64
"""The number of images that keeps the threads busy, so that none is split by rows."""
FEATURES = 14
"""The features of a dense convolution that one register tile holds: more read each row again."""


class Beyond(NamedTuple):
    """An operand that an op may read beyond the edges of the image within."""

    operand: int
    image: Padded


def beyond_edges(op: linalg.GenericOp, known: Sizes, masks: bool) -> Beyond | None:
    """Return the padded operand of ``op`` that need not be made.

    masks : whether images of unknown size may be read so: vectors are loaded under a mask
    """
    parallel = is_parallel(op)
    if all(parallel):
        return None
    loops = [d for d, runs in enumerate(parallel) if runs]
    if [plain(e) for e in indices(op)[-1]] != loops or len(loops) < 3:
        return None
    dense = contracts(op)
    if dense and not _is_narrow(op, loops):
        return None
    for k, index in enumerate(indices(op)[: len(op.inputs)]):
        if _slides_along_rows(index, loops) and (_is_dense if dense else _is_own)(op, k, loops):
            image = _interior(op.inputs[k], known, masks and not dense)
            return Beyond(k, image) if image is not None else None
    return None


def _slides_along_rows(index: Index, loops: list[int]) -> bool:
    """Whether an operand is read along its last axis by the last loop and the window."""
    last = linear(index[-1]) if len(index) == len(loops) else None
    return (
        last is not None
        and last[0].get(loops[-1]) in STEPS
        and not isinstance(index[-1], AffineDimExpr)
    )


def _own(op: linalg.GenericOp, k: int) -> list[list[int]]:
    """Return the loops of results that index each axis of an operand."""
    parallel = is_parallel(op)
    return [[d for d in expr.used_dims() if parallel[d]] for expr in indices(op)[k]]


def _is_own(op: linalg.GenericOp, k: int, loops: list[int]) -> bool:
    """Whether each result reads its own window, and there are enough images for the threads."""
    sizes = [PLANES if n == DYNAMIC_INDEX else n for n in shape(op.inputs[k])[:-2]]
    return _own(op, k) == [[d] for d in loops] and prod(sizes) >= PLANES


def _is_narrow(op: linalg.GenericOp, loops: list[int]) -> bool:
    """Whether a register tile holds a place of all results, in the type of the sums."""
    kind = element(op.outputs[0])
    alike = all(element(v) == kind for v in op.inputs)
    few = 0 < extents(op)[loops[1]] <= FEATURES
    return alike and few and isinstance(kind, Float32Type | Float64Type)


def _is_dense(op: linalg.GenericOp, k: int, loops: list[int]) -> bool:
    """Whether all features of a batch's image are summed, last of all along a row."""
    batch, _, *places = loops
    last = indices(op)[k][-1]
    moved = len(extents(op)) - 1 in last.used_dims()
    return moved and _own(op, k) == [[batch], [], *([d] for d in places)]


def _interior(value: SSAValue, known: Sizes, masks: bool) -> Padded | None:
    """Return the interior of a padded tensor, its offsets, and the fill of the padding."""
    found = padded(value)
    if found is None:
        return None
    pairs = zip(found.offsets, known.shape(found.inner), known.shape(value), strict=True)
    if any(not offset and m != n for offset, m, n in pairs):
        return None  # a loop would be shorter than the axis that it alone indexes
    columns = shape(found.inner)[-1]
    if columns == DYNAMIC_INDEX:
        return found if masks and element(value) != i1 else None
    if columns < ROW or DYNAMIC_INDEX in shape(value)[-2:]:
        return None
    return found if shape(value)[-1] - columns <= AROUND else None
