"""Add a trait to one class of ops only."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.ir.core import OpTraits
from xdsl.traits import OpTrait


def give_trait(op: type[Operation], trait: OpTrait) -> None:
    """Add a trait to ``op`` alone: `OpTraits.add_trait` affects all classes that share the object.

    The traits of arith.remui, for example, are those of an interface, shared by all its ops.
    """
    known = op.traits.traits
    op.traits = OpTraits(lambda: (*known, trait))
