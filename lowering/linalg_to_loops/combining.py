"""Combine the partial results of a reduction: interleaved vectors, lanes, parts of threads."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from stepwell.analysis.combiners import Combiner
from stepwell.lowering.linalg_to_loops.extremes import is_watched, joined
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Writer
from stepwell.transforms.passes import fail


def combiner_of(op: Structured, output: int) -> Combiner:
    """Return the combiner of the partial results of ``output``."""
    combiner = op.combiner(output)
    if combiner is None:
        fail(op.op, f"output {output} is not a reduction whose order is free")
    return combiner


def join(writer: Writer, combiner: Combiner, total: SSAValue, parts: list[SSAValue]) -> SSAValue:
    """Combine partial vectors pairwise, then their lanes, then the scalar."""
    if is_watched(combiner, parts[0].type):
        return combine(writer, combiner, total, joined(writer, combiner, parts))
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        some = [combine(writer, combiner, a, b) for a, b in pairs]
        parts = [*some, *parts[len(some) * 2 :]]
    value = parts[0]
    if isinstance(value.type, VectorType):
        value = writer.across(combiner.kind, value, total.name_hint)
    return combine(writer, combiner, total, value)


def combine(writer: Writer, combiner: Combiner, a: SSAValue, b: SSAValue) -> SSAValue:
    """Combine two partial results."""
    return writer.binary(combiner.op, a, b, a.name_hint)
