"""Views of buffers with unit axes have the strides that MLIR gives them."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr, f32

from stepwell.analysis.sizes import Size
from stepwell.lowering.bufferize.views import Reshape


def test_an_element_seen_with_more_axes() -> None:
    one = Size.of(1)
    element = MemRefType(f32, [], StridedLayoutAttr([], None))
    seen = Reshape((), (one, one), True).result(element)
    assert seen == MemRefType(f32, [1, 1], StridedLayoutAttr([1, 1], None))


def test_unit_axes_seen_as_one() -> None:
    one, many = Size.of(1), Size.of(4)
    rows = MemRefType(f32, [1, 1, 4], StridedLayoutAttr([440, 110, 11], None))
    seen = Reshape(((0, 1), (2,)), (one, one, many), False).result(rows)
    assert seen == MemRefType(f32, [1, 4], StridedLayoutAttr([440, 11], None))
