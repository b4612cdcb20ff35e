"""Ops that xDSL spells in other words than MLIR does.

They are respelled in the text that Stepwell reads and prints; xDSL's classes stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Attribute

Attributes = dict[str, Attribute]


@dataclass(frozen=True)
class Respelled:
    """How the generic form of an op names what xDSL's class names otherwise."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """xDSL's names of properties, and MLIR's."""
    discardable: tuple[str, ...] = ()
    """Properties that MLIR has among the attributes; as properties it would drop them."""

    def as_mlir(self, properties: Attributes, attributes: Attributes) -> tuple[Attributes, ...]:
        """Return properties and attributes as MLIR has them.

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
"""Ops whose custom form, as xDSL prints it, it cannot read again."""
