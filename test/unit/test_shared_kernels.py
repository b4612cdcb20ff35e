"""Kernels that stand for many: one for all that do the same, with the places of all of them."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import LocationAttr

from stepwell.core.source import Source
from stepwell.core.targets import machine_for
from stepwell.dialects import kernel
from stepwell.dialects.types import fuse_locations, places
from stepwell.driver.lowering import Lowering
from stepwell.transforms.kernels import same_kernels


def test_places_of_equal_kernels_are_united_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["func.func @main(%x0: tensor<64x64xf32>) -> tensor<64x64xf32> {"]
    for k in range(40):
        one, other = f"%x{k}", f"%x{k + 1}"
        of = "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>"
        lines.append(f"  {other} = nd.matmul {one}, {one} : {of}")
    lines += ["  func.return %x40 : tensor<64x64xf32>", "}"]
    united: list[int] = []

    def counted(given: tuple[LocationAttr, ...]) -> LocationAttr:
        united.append(len(given))
        return fuse_locations(given)

    monkeypatch.setattr(same_kernels, "fuse_locations", counted)
    descent = Lowering.of(Source("\n".join(lines), "m", "main", machine_for("c", "")))
    descent.kernels_outlined()
    (only,) = [op for op in descent.module.ops if isinstance(op, kernel.FuncOp)]
    assert [place.line for place in places(only.location)] == list(range(2, 42))
    assert set(united) == {40}
    assert len(united) <= len(list(only.walk()))
