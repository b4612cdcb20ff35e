"""Give a class of ops one more trait, and no other class."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.ir.core import OpTraits
from xdsl.traits import OpTrait


def give_trait(op: type[Operation], trait: OpTrait) -> None:
    """Add a trait to ``op`` alone: `OpTraits.add_trait` changes classes that share the traits too.

    Those of arith.remui are those of an interface, and so of every op that has it.
    """
    known = op.traits.traits
    op.traits = OpTraits(lambda: (*known, trait))
