"""A mask in an index, as in ``x[mask, 0]`` and ``x[:, mask]``: a view, and a mask over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepwell.frontend.manipulation import moveaxis
from stepwell.frontend.promotion import BOOL, lift
from stepwell.frontend.tensor import Tensor


@dataclass(frozen=True)
class MaskPlace:
    """``x[index]`` is a view of ``x``, with a mask over some of its axes."""

    mask: Tensor
    basic: tuple[Any, ...]
    """The index, with whole slices in place of the mask."""
    first: int
    """The first axis of ``x[basic]`` that the mask is over."""
    axis: int
    """The axis of ``x[index]`` along which the selected elements are."""

    def masked_first(self, view: Tensor) -> Tensor:
        """Return ``x[basic]`` with the axes of the mask in front."""
        count = self.mask.ndim
        return moveaxis(view, tuple(range(self.first, self.first + count)), tuple(range(count)))


def mask_place(x: Tensor, index: Any) -> MaskPlace | None:
    """Return the place of the only traced mask of an index; None if there is none.

    As in NumPy, an int beside a mask is an index array too: with a slice between the two, the axis
    of the selected elements comes first.
    """
    parts: tuple[Any, ...] = index if type(index) is tuple else (index,)
    masks = [k for k, part in enumerate(parts) if _is_mask(part)]
    if len(masks) != 1:
        return None
    (at,) = masks
    mask = parts[at]
    if len(parts) == 1:
        return MaskPlace(mask, (), 0, 0)
    others = (*parts[:at], *parts[at + 1 :])
    if not mask.ndim or not all(map(_is_basic, others)):
        return None
    ints = [k for k, part in enumerate(parts) if k != at and _is_int(part)]
    left = x.ndim - mask.ndim - sum(_is_int(p) or isinstance(p, slice) for p in others)
    first = sum(left if p is ... else not _is_int(p) for p in parts[:at])
    fancy = sorted((at, *ints))
    together = fancy[-1] - fancy[0] == len(ints)
    basic = (*parts[:at], *(slice(None),) * mask.ndim, *parts[at + 1 :])
    return MaskPlace(mask, basic, first, first if together else 0)


def _is_mask(part: Any) -> bool:
    """Whether a part of an index is a mask that only the run knows."""
    return isinstance(part, Tensor) and part.kind is BOOL and part.graph.known(lift(part)) is None


def _is_basic(part: Any) -> bool:
    return part is None or part is ... or isinstance(part, slice) or _is_int(part)


def _is_int(part: Any) -> bool:
    if isinstance(part, Tensor):
        return not part.ndim and part.kind.kind in ("signed", "unsigned")
    return isinstance(part, int | np.integer) and not isinstance(part, bool)
