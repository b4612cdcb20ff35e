"""Versions of a kernel taken apart: each as the kernel that it is, and which of them stay."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Attribute

from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.versions import VERSIONS, versions_in

KEPT = ("kernel.shared", "kernel.in_place", "kernel.nontemporal", "kernel.scalar")
"""What a kernel says that is no choice: it holds for every version."""


def version(function: kernel.FuncOp, number: int) -> kernel.FuncOp:
    """Return a copy of a kernel that has the choices of its version ``number`` alone."""
    some = versions_in(function.attributes.get(VERSIONS))[number]
    copy = function.clone()
    for old, new in zip(function.walk(), copy.walk(), strict=True):
        new.location = old.location
    kept = {name: copy.attributes[name] for name in KEPT if name in copy.attributes}
    copy.attributes = {**kept, **some.choices.data}
    take_version(copy, number)
    return copy


def take_version(function: kernel.FuncOp, number: int | None = None) -> None:
    """Leave the vectors of version ``number`` on the ops of a kernel, or the kernel's own."""
    for op in function.body.block.ops:
        found = op.attributes.pop(VERSIONS, None)
        if number is None or not isinstance(found, ArrayAttr):
            continue
        loops: Attribute = found.data[number]
        op.attributes.pop("kernel.loops", None)
        if not isinstance(loops, UnitAttr):
            op.attributes["kernel.loops"] = loops


def keep_packed_versions(function: kernel.FuncOp) -> None:
    """Keep the versions that read an operand packed as wide as the kernel's own blocks."""
    found = versions_in(function.attributes.pop(VERSIONS, None))
    wide = choices.numbers(function, "kernel.block")[-2:-1]
    kept = [n for n, version in enumerate(found) if version.block[-2:-1] == wide]
    if not kept:
        for op in function.body.block.ops:
            op.attributes.pop(VERSIONS, None)
        return
    function.attributes[VERSIONS] = ArrayAttr(found[n] for n in kept)
    for op in function.body.block.ops:
        if isinstance(loops := op.attributes.get(VERSIONS), ArrayAttr):
            op.attributes[VERSIONS] = ArrayAttr(loops.data[n] for n in kept)
