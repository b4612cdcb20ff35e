"""Extract the versions of a kernel as kernels, and select the versions to keep."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr

from stepwell.analysis.levels import nestings_of
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.kernel.versions import VERSIONS, versions_in


def version(function: kernel.FuncOp, number: int) -> kernel.FuncOp:
    """Return a copy of a kernel that has the levels of its version ``number`` only."""
    some = versions_in(function.attributes.get(VERSIONS))[number]
    copy = function.clone()
    for old, new in zip(function.walk(), copy.walk(), strict=True):
        new.location = old.location
    del copy.attributes[VERSIONS]
    copy.attributes[SCHEDULE] = some.schedule
    return copy


def keep_packed_versions(function: kernel.FuncOp) -> None:
    """Keep the versions whose packed panels are as wide as those of the kernel's own blocks."""
    own, *others = nestings_of(function)
    found = versions_in(function.attributes.pop(VERSIONS, None))
    wide = own.blocks[-2:-1]
    pairs = zip(found, others, strict=True)
    if kept := [version for version, nesting in pairs if nesting.blocks[-2:-1] == wide]:
        function.attributes[VERSIONS] = ArrayAttr(kept)
