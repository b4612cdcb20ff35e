"""Ops that slide a window over an image: the loop orders and layouts that they may prefer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import (
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.structured import (
    Index,
    bits_of,
    bytes_of,
    element,
    extents,
    indices,
    is_parallel,
    linear,
    plain,
    quotients,
)
from stepwell.core.machine import Machine
from stepwell.transforms.structured.seconds import LIKELY, Layout

LINE_PART = 2
"""Features that fill no such part of a cache line are read where they lie: the line is read whole
for each of them in any layout."""


@dataclass(frozen=True)
class Window:
    """The preferences of an op that slides a window over input ``image``."""

    image: int
    order: tuple[int, ...]
    """All its loops: batch, places, features, then the window's and the other reduction loops."""
    features: frozenset[int]
    """The parallel loops that should be innermost."""
    filters: tuple[int, ...]
    """The inputs that are multiplied with the window's elements."""
    dense: bool
    """Whether each result sums over features, so that filters are packed in any case."""
    indifferent: bool
    """Whether the image's layout does not matter."""
    places: frozenset[int] = frozenset()
    """The loops over places, where these are reduced, as in gradients of filters: both inputs
    are images then, and should have their features last, ..."""
    planar: bool = False
    """... unless both have too few to fill vectors: then places should be last."""
    narrow: bool = False
    """Whether there are so few features that vectors run along the reduced features, which should
    then be the last axis of the filters too."""
    sliding: frozenset[int] = frozenset()
    """The loops over places and the window, where places should be last: groups of a few result
    features for each image feature cannot be vectorized."""


@dataclass(frozen=True)
class _Slide:
    """The loops and inputs of an op that slides a window over an image."""

    image: int
    filters: tuple[int, ...]
    loops: Sequence[int]
    """The loops that index the results, in their order."""
    read: set[int]
    """Those that index the image too."""
    features: Sequence[int]
    spatial: frozenset[int]
    """The loops over places."""
    moving: frozenset[int]
    """The loops over the window."""


def _read(op: linalg.GenericOp) -> _Slide | None:
    parallel = is_parallel(op)
    if all(parallel):
        return None
    where = indices(op)
    used = [k for k in range(len(op.inputs)) if op.body.block.args[k].first_use is not None]
    images = [k for k in used if any(_slides(e, parallel) for e in where[k])]
    loops = _written(where[len(op.inputs) :])
    if len(images) != 1 or len(where[images[0]]) < 3:
        return None
    if loops is None or len(set(loops)) != len(loops) or not all(parallel[d] for d in loops):
        return None
    (image,) = images
    read = _parallel_loops(where[image], parallel)
    summed = {d for e in where[image] for d in e.used_dims() if not parallel[d]}
    filters = tuple(k for k in used if k != image and summed & _dims(where[k]))
    others = {d for k in filters for d in _dims(where[k]) if parallel[d]}
    places = [e for e in where[image] if _slides(e, parallel) and not others & e.used_dims()]
    if not places or any(linear(e) is None for e in places):
        return None
    spatial = frozenset(d for e in places for d in e.used_dims() if parallel[d])
    if not filters:
        kept = [d for d in loops if d in read and d not in spatial]
        others = set(kept[-1:] if len(kept) > 1 else ())
    features = [d for d in loops if d in others]
    moving = frozenset(d for e in places for d in e.used_dims() if not parallel[d])
    return _Slide(image, filters, loops, read, features, spatial, moving) if features else None


def read_windows(op: linalg.GenericOp, machine: Machine) -> list[Window]:
    """Return the preferences that ``op`` may have, [] where it slides no window over an image."""
    slide = _read(op)
    if slide is None:
        return []
    where, sizes, parallel = indices(op), _sizes(op), is_parallel(op)
    image, features, filters, read = slide.image, slide.features, slide.filters, slide.read
    inner = [d for d, runs in enumerate(parallel) if not runs and d not in slide.moving]
    kept = [d for d in slide.loops if d not in features]
    order = (*kept, *features, *sorted(slide.moving), *inner)
    if sorted(order) != list(range(len(parallel))):
        return []
    dense = any(d not in read for d in features)
    part = machine.l1_line // LINE_PART
    summed, out = prod(sizes[d] for d in inner), prod(sizes[d] for d in features)
    few = dense and summed * bytes_of(op.inputs[image]) < part
    usual = Window(image, order, frozenset(features), filters, dense, few)
    found = [usual]
    if _in_groups(where[image], features[-1]):
        found.append(_in_rows(op, usual, slide))
    grouped = _group(where[image], features[-1]) is not None
    its = read - slide.spatial - (set(features) if grouped else set())
    over = _over_images(sizes, slide) and len(filters) == len(its) == 1
    if (dense or grouped) and over:
        places = replace(usual, indifferent=False, places=slide.moving)
        found += [places, replace(places, planar=True)]
    lanes = machine.full_lanes(bits_of(element(op.results[0])))
    if dense and 1 < out < lanes // 2 and summed >= lanes:
        found.append(replace(usual, narrow=True))
    return found


def _in_groups(image: Index, feature: int) -> bool:
    """Whether groups have more than one feature, of results or of the image."""
    if (group := _group(image, feature)) is not None:
        return group > 1
    forms = [form for form in map(linear, image) if form is not None]
    return any(steps.get(feature, 0) > 1 for steps, _ in forms)


def _over_images(sizes: Sequence[int], slide: _Slide) -> bool:
    """Whether the results are windows and sums run over whole images, as in gradients."""
    return prod(sizes[d] for d in slide.moving) > prod(sizes[d] for d in slide.spatial)


def _in_rows(op: linalg.GenericOp, usual: Window, slide: _Slide) -> Window:
    """Return the preferences of an op whose places should be the last axes."""
    parallel = is_parallel(op)
    inner = (*slide.features, *sorted(slide.spatial))
    first = [d for d in slide.loops if d not in inner]
    sums = [d for d in usual.order if not parallel[d]]
    return replace(
        usual,
        order=(*first, *inner, *sums),
        filters=usual.filters if _over_images(_sizes(op), slide) else (),
        dense=False,
        indifferent=False,
        sliding=slide.spatial | slide.moving,
    )


def row_layout(index: Index, window: Window) -> Layout:
    """Return the layout of an image with places last: batch, features, places."""

    def key(axis: int) -> int:
        loops = index[axis].used_dims()
        return 1 if loops & window.features else 2 if loops & window.sliding else 0

    return tuple(sorted(range(len(index)), key=key))


def read_taps(op: linalg.GenericOp) -> Window | None:
    """Return the preferences of several sums over places at once, as for depthwise filters.

    Each sum multiplies another slice of one image by the same operand, for each feature; the
    feature should be the last axis of all.
    """
    parallel = is_parallel(op)
    if len(op.outputs) < 2 or len(op.inputs) != len(op.outputs) + 1 or parallel.count(True) != 1:
        return None
    where, slices = indices(op), [v.owner for v in op.inputs[:-1]]
    one = {v.source for v in slices if isinstance(v, tensor.ExtractSliceOp)}
    loops = {tuple(sorted(plain(e) or 0 for e in index)) for index in where[: len(op.inputs)]}
    if len(one) > 1 or not isinstance(slices[0], tensor.ExtractSliceOp) or len(loops) > 1:
        return None
    if loops != {tuple(range(len(parallel)))} or len(parallel) < 3:
        return None
    sums = tuple(d for d, runs in enumerate(parallel) if not runs)
    feature = parallel.index(True)
    assert plain(where[0][-1]) is not None
    others = tuple(range(1, len(op.inputs)))
    order = (feature, *sums)
    return Window(0, order, frozenset({feature}), others, False, False, frozenset(sums))


def _group(image: Index, loop: int) -> int | None:
    """Return how many result features, along ``loop``, read one group; None without groups."""
    found = (quotient for expr in image for quotient in quotients(expr))
    return next((size for feature, size in found if feature == loop), None)


def _sizes(op: linalg.GenericOp) -> list[int]:
    return [LIKELY if n == DYNAMIC_INDEX else n for n in extents(op)]


def image_layout(op: linalg.GenericOp, window: Window) -> Layout:
    """Return the preferred layout of the image: batch, places, features."""
    parallel = is_parallel(op)
    if window.sliding:
        return row_layout(indices(op)[window.image], window)
    if window.places:
        return place_layout(indices(op)[window.image], window, parallel)
    position = {d: k for k, d in enumerate(window.order)}

    def key(axis: int) -> int:
        loops = [d for d in index[axis].used_dims() if parallel[d]]
        inner = not loops or any(d in window.features for d in loops)
        return len(position) if inner else min(position[d] for d in loops)

    index = indices(op)[window.image]
    return tuple(sorted(range(len(index)), key=key))


def place_layout(index: Index, window: Window, parallel: Sequence[bool]) -> Layout:
    """Return the layout of an image that is reduced over its places: batch, places, features.

    Features precede places where both images have few features.
    """

    def key(axis: int) -> int:
        loops = index[axis].used_dims()
        if loops & window.places:
            return 2 if window.planar else 1
        return (1 if window.planar else 2) if any(parallel[d] for d in loops) else 0

    return tuple(sorted(range(len(index)), key=key))


def layouts_of(
    op: linalg.GenericOp, window: Window, image: Layout
) -> tuple[dict[int, Layout], Layout | None]:
    """Return the layouts of inputs, and the order of loops if it differs.

    image : the layout that the image has, for a window that is indifferent to it
    """
    where, parallel = indices(op), is_parallel(op)
    if window.planar:
        both = (window.image, *window.filters)
        return {k: place_layout(where[k], window, parallel) for k in both}, None
    layout = image if window.indifferent else image_layout(op, window)
    found = {window.image: layout}
    if window.places or window.narrow or not window.dense:
        found |= {k: filter_layout(where[k], window, parallel) for k in window.filters}
    return found, loop_order(op, window, layout)


def loop_order(op: linalg.GenericOp, window: Window, layout: Layout) -> tuple[int, ...]:
    """Return the loops of ``op``, its reductions in the order of the image's ``layout``."""
    index, parallel = indices(op)[window.image], is_parallel(op)
    sums = [d for axis in layout for d in index[axis].used_dims() if not parallel[d]]
    kept = [d for d in window.order if d not in sums]
    return (*kept, *sums)


def filter_layout(index: Index, window: Window, parallel: Sequence[bool]) -> Layout:
    """Return the layout of the other operand of a window without sums: features last."""
    if window.sliding:
        return row_layout(index, window)
    if window.places:
        return place_layout(index, window, parallel)
    if window.narrow:
        position = {d: k for k, d in enumerate(window.order)}
        last = [max((position[d] for d in expr.used_dims()), default=-1) for expr in index]
        return tuple(sorted(range(len(index)), key=last.__getitem__))
    inner = [bool(expr.used_dims() & window.features) for expr in index]
    return tuple(sorted(range(len(index)), key=inner.__getitem__))


def _slides(expr: AffineExpr, parallel: Sequence[bool]) -> bool:
    """Whether ``expr`` depends on both a place and a position in the window."""
    if isinstance(expr, AffineDimExpr):
        return False
    dims = expr.used_dims()
    return any(parallel[d] for d in dims) and any(not parallel[d] for d in dims)


def _dims(index: Index) -> set[int]:
    return {d for expr in index for d in expr.used_dims()}


def _parallel_loops(index: Index, parallel: Sequence[bool]) -> set[int]:
    return {d for d in _dims(index) if parallel[d]}


def _written(outputs: Sequence[Index]) -> list[int] | None:
    """Return the loops that index all results, None where the results' indices differ."""
    first = [plain(expr) for expr in outputs[0]]
    if None in first or any(index != outputs[0] for index in outputs[1:]):
        return None
    return [d for d in first if d is not None]
