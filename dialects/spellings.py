"""Ops whose spelling in xDSL differs from MLIR's.

Text that Stepwell reads and prints has MLIR's spelling; xDSL's classes are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Attribute

Attributes = dict[str, Attribute]


@dataclass(frozen=True)
class Respelled:
    """The differences between the generic form of an op in MLIR and in xDSL."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """MLIR's name of each renamed property, by xDSL's name."""
    discardable: tuple[str, ...] = ()
    """Properties that are discardable attributes in MLIR, which would drop them as properties."""

    def as_mlir(self, properties: Attributes, attributes: Attributes) -> tuple[Attributes, ...]:
        """Return properties and attributes in MLIR's form.

        >>> from xdsl.dialects.builtin import UnitAttr
        >>> Respelled({"global_attr": "global"}).as_mlir({"global_attr": UnitAttr()}, {})
        ({'global': UnitAttr()}, {})
        """
        own = {self.names.get(name, name): value for name, value in properties.items()}
        moved = {name: own.pop(name) for name in self.discardable if name in own}
        return own, {**attributes, **moved}

    def as_xdsl(self, attributes: Attributes) -> Attributes:
        """Return attributes or properties by xDSL's names."""
        back = {theirs: ours for ours, theirs in self.names.items()}
        return {back.get(name, name): value for name, value in attributes.items()}


RESPELLED = {
    "gpu.func": Respelled(discardable=("kernel",)),
    "ml_program.global_load_const": Respelled(names={"global_attr": "global"}),
}
IN_GENERIC_FORM = frozenset({"air.herd"})
"""Ops whose custom form xDSL prints in a way that it cannot read."""
