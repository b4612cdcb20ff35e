"""The graph dialect: immutable tensors and what is computed from them. This is its op list."""

from xdsl.ir import Attribute, Dialect, Operation

from stepwell.dialects.nd import contraction

OPS: tuple[type[Operation], ...] = (*contraction.OPS,)
ATTRIBUTES: tuple[type[Attribute], ...] = ()

ND = Dialect("nd", list(OPS), list(ATTRIBUTES))
