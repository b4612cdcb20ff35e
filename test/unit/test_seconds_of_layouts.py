"""Layouts are chosen by the seconds that the cost model predicts, on any machine."""

from __future__ import annotations

import pytest
from reading import taken_down

from stepwell.dialects.printing import text_of

DOWN = "decompose,nd-to-linalg,canonicalize,cse"
POOL = """
func.func @main(%x: tensor<{n}x32x31x31xf32>) -> tensor<{n}x32x15x15xf32> {{
  %y = nd.max_pool %x {{window = [3, 3], strides = [2, 2]}} : tensor<{n}x32x31x31xf32> -> tensor<{n}x32x15x15xf32>
  func.return %y : tensor<{n}x32x15x15xf32>
}}
"""
CONVOLUTION = """
func.func @main(%x: tensor<{n}x{c}x28x28xf32>, %w: tensor<{c}x{c}x3x3xf32>) -> tensor<{n}x{c}x26x26xf32> {{
  %y = nd.convolution %x, %w : (tensor<{n}x{c}x28x28xf32>, tensor<{c}x{c}x3x3xf32>) -> tensor<{n}x{c}x26x26xf32>
  func.return %y : tensor<{n}x{c}x26x26xf32>
}}
"""
DEPTHWISE = """
func.func @main(%x: tensor<1x64x{n}x{n}xf32>, %w: tensor<64x1x3x3xf32>) -> tensor<1x64x{n}x{n}xf32> {{
  %y = nd.convolution %x, %w {{low = [1, 1], high = [1, 1], groups = 64}} : (tensor<1x64x{n}x{n}xf32>, tensor<64x1x3x3xf32>) -> tensor<1x64x{n}x{n}xf32>
  func.return %y : tensor<1x64x{n}x{n}xf32>
}}
"""


def _copies(text: str, machine: str) -> int:
    """Return how many tensors are transposed."""
    _, after = taken_down(text, DOWN, f'propagate-layouts{{machine="{machine}"}}')
    return text_of(after).count("attrs =  {kernel.no_fuse}")


@pytest.mark.parametrize("machine", ["zen4", "sapphire-rapids", "haswell", "neoverse"])
def test_dense_convolutions_are_worth_two_copies(machine: str) -> None:
    assert _copies(CONVOLUTION.format(n=1, c=64), machine) == 2
    assert _copies(POOL.format(n=1), machine) == 0


def test_unknown_sizes_are_likely_ones() -> None:
    assert _copies(CONVOLUTION.format(n="?", c=64), "zen4") == 2


@pytest.mark.parametrize("n", ["28", "?"])
def test_images_that_are_read_beyond_their_edges_are_not_transposed(n: str) -> None:
    """`outline-kernels` removes the one copy, into the padding; where loads take masks, it does
    for images of unknown size too."""
    assert _copies(DEPTHWISE.format(n=n), "zen4") == 1


def test_empty_tensors_take_no_time() -> None:
    assert _copies(CONVOLUTION.format(n=0, c=64), "zen4") == 0


def test_without_scratch_nothing_changes() -> None:
    assert _copies(CONVOLUTION.format(n=1, c=64), "l2=0") == 0
