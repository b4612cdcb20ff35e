"""The shared loops of a kernel's structured ops, and the checks of kernel.func on them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, OpResult
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.utils.exceptions import VerifyException

from stepwell.core.diagnostics import did_you_mean
from stepwell.dialects.kernel.levels import ScheduleAttr
from stepwell.dialects.kernel.versions import FIRST_FITS, VERSIONS, check_versions

_PARALLEL = IteratorTypeAttr.parallel()
SHARED = "kernel.shared"
WITHIN = "kernel.within"
"""Attribute of a structured op with a partial loop: loop, operand numbers of begin and end."""
SCHEDULE = "kernel.schedule"
"""Attribute with the schedule of a kernel's loops."""
_KNOWN = (SHARED, SCHEDULE, VERSIONS, FIRST_FITS, "kernel.in_place", "kernel.scalar")


def parts_of(op: Operation) -> list[tuple[int, int, int]]:
    """Return the partial loops: loop, number of the operand with its begin, and with its end."""
    parts = op.attributes.get(WITHIN)
    if not isinstance(parts, ArrayAttr):
        return []
    found = [
        list(map(int, each.get_values())) for each in parts if isinstance(each, DenseArrayBase)
    ]
    return [(loop, low, high) for loop, low, high in found]


def check_parts(block: Block) -> None:
    """Check C9 of kernel.func."""
    for op in block.ops:
        if WITHIN not in op.attributes:
            continue
        if not isinstance(op, linalg.GenericOp) or not _are_parts(op):  # kernel_func_c9
            raise VerifyException(
                f"{WITHIN} must be arrays of three numbers on a linalg.generic: a loop, and the "
                "inputs, of type index, where its part begins and ends, "
                f"got {op.attributes[WITHIN]}"
            )


def _are_parts(op: linalg.GenericOp) -> bool:
    parts = op.attributes[WITHIN]
    loops, inputs = len(op.iterator_types), op.inputs
    for each in parts.data if isinstance(parts, ArrayAttr) else (None,):
        numbers = list(map(int, each.get_values())) if isinstance(each, DenseArrayBase) else []
        if len(numbers) != 3 or not 0 <= numbers[0] < loops:
            return False
        if any(not 0 <= n < len(inputs) for n in numbers[1:]):
            return False
        if not all(isinstance(inputs[n].type, IndexType) for n in numbers[1:]):
            return False
    return True


def is_border(op: Operation) -> bool:
    """Whether ``op`` copies an image into a border that is never materialized.

    Readers of the result read the image, and beyond its edges the value that fills the border.
    """
    return "kernel.border" in op.attributes


def check_names(attributes: dict[str, Attribute]) -> None:
    """Check C7 and C10 of kernel.func."""
    for name in attributes:
        if name.startswith("kernel.") and name not in _KNOWN:  # kernel_func_c7
            near = did_you_mean(name, _KNOWN) or f"there are {', '.join(_KNOWN)}"
            raise VerifyException(f"a kernel has no {name}; {near}")
    found = attributes.get(SCHEDULE)
    if found is not None and not isinstance(found, ScheduleAttr):  # kernel_func_c10
        raise VerifyException(f"{SCHEDULE} must be #kernel.schedule<[...]>, got {found}")


def check_shared(attributes: dict[str, Attribute], block: Block) -> int:
    """Check C4 and C11 of kernel.func; return the number of shared loops."""
    value = attributes.get(SHARED, IntegerAttr(0, i64))
    if not isinstance(value, IntegerAttr) or value.value.data < 0:  # kernel_func_c4
        raise VerifyException(f"{SHARED} must be a number of 0 or more, got {value}")
    shared = value.value.data
    if VERSIONS in attributes or FIRST_FITS in attributes:
        ops = (op for op in block.ops if isinstance(op, linalg.GenericOp))
        check_versions(attributes, max((len(op.iterator_types) for op in ops), default=shared))
    return shared


def check_in_place(
    attributes: dict[str, Attribute], arguments: Sequence[Attribute], results: int
) -> None:
    """Check C8 of kernel.func: only bufferize proves that two arguments may share memory."""
    value = attributes.get("kernel.in_place")
    if value is None:
        return
    if results:  # kernel_func_c8
        raise VerifyException("kernel.in_place is found by bufferize: leave it off on tensors")
    pairs = value.data if isinstance(value, ArrayAttr) else (None,)
    for pair in pairs:
        numbers = tuple(map(int, pair.get_values())) if isinstance(pair, DenseArrayBase) else ()
        if len(numbers) != 2 or not all(  # kernel_func_c8
            0 <= n < len(arguments) and isinstance(arguments[n], MemRefType) for n in numbers
        ):
            raise VerifyException(
                "kernel.in_place must be pairs of numbers of arguments that are buffers, "
                f"got {value}"
            )


def check_shared_loops(block: Block, shared: int) -> None:
    """Check C5 and C6 of kernel.func."""
    for op in block.ops:
        if not isinstance(op, linalg.GenericOp) or is_border(op):
            continue
        kinds = op.iterator_types.data
        if len(kinds) < shared or any(k != _PARALLEL for k in kinds[:shared]):  # kernel_func_c5
            raise VerifyException(
                f"the first {shared} loops of every linalg.generic must be parallel: "
                "kernel.shared says that they are the same"
            )
        for value, map in zip(op.operands, op.indexing_maps.data, strict=True):
            if isinstance(value, OpResult) and isinstance(value.op, linalg.GenericOp):
                if is_border(value.op):
                    continue
                written = value.op.indexing_maps.data[len(value.op.inputs) + value.index].data
                _check_passed(written.results, map.data.results, shared)


def _check_passed(
    written: tuple[AffineExpr, ...], read: tuple[AffineExpr, ...], shared: int
) -> None:
    for loop in range(shared):
        here = AffineDimExpr(loop)
        axes = [axis for axis, expr in enumerate(written) if expr == here]
        if not axes or any(read[axis] != here for axis in axes):  # kernel_func_c6
            raise VerifyException(
                f"a value is read at other indices of shared loop {loop} than it is written at"
            )
