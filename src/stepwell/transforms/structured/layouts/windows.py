"""Ops that slide a window over an image: their preferred loop order and layouts, and the gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import (
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.structured import (
    Index,
    contracts,
    extents,
    indices,
    is_parallel,
    linear,
    plain,
    quotients,
)

Layout: TypeAlias = tuple[int, ...]
"""A permutation: the original axis of a tensor at each position in memory."""

GUESS = 64
"""The trip count assumed for a loop of dynamic size."""
LANES = 16
"""The number of features, or of contiguous elements, below which vectors are not filled."""
DENSE = 1 / 64
"""Cycles saved per product of a dense convolution if features are contiguous."""
SUMMED = 1 / 16
"""Cycles saved per product of a sum over image positions: few loads along rows are vectors."""
ALONG = 1 / 8
"""Cycles saved per product by vectors along a reduction with few results."""
PICKED = 0.3
"""Cycles saved per element of a window with a stride of two or more: with rows last the elements
are extracted from vectors."""
PICKED_FOR = 14
"""The maximum number of features that share an extracted element: the rows of a register tile."""
STEPPED = 1.0
"""Cycles saved per product of a grouped convolution whose rows are read with a stride."""
PAIRS = 4
"""The number of features per group below which a layout with features last gains nothing."""
MIN_FEATURES = 8
"""The number of features below which an image keeps its layout: fewer fill no half cache line."""
OVER = 3
"""The ratio of window positions to results from which a reduction is one over whole images."""
BATCH = 16
"""The maximum ratio of batch size to features of a reduction over whole images."""
APART = 4
"""Cycles saved per element that needs a scalar load with rows last."""
SCATTERED = 0.4
"""Cycles saved per product of several sums at once, where rows are short or read with a stride."""
TOGETHER = 1 / 24
"""Cycles saved per element that is loaded in a vector along its row with rows last."""
BY_STEP = {1: TOGETHER, 2: 1 / 8}
"""`TOGETHER` by the step of the window along the row: two vectors are loaded for a step of 2."""


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
    gain: float
    """Cycles saved if features are the last axis."""
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


def read_window(op: linalg.GenericOp) -> Window | None:
    """Return the preferences of ``op``, None where it slides no window over an image."""
    parallel = is_parallel(op)
    if all(parallel):
        return None
    where = indices(op)
    used = [k for k in range(len(op.inputs)) if op.body.block.args[k].first_use is not None]
    images = [k for k in used if any(_slides(e, parallel) for e in where[k])]
    loops = _written(where[len(op.inputs) :])
    if len(images) != 1 or len(where[images[0]]) < 3:
        return None
    if loops is None or not all(parallel[d] for d in loops):
        return None
    (image,) = images
    read = _parallel_loops(where[image], parallel)
    summed = {d for e in where[image] for d in e.used_dims() if not parallel[d]}
    filters = [k for k in used if k != image and summed & _dims(where[k])]
    others = {d for k in filters for d in _dims(where[k]) if parallel[d]}
    places = [e for e in where[image] if _slides(e, parallel) and not others & e.used_dims()]
    if not places or any(linear(e) is None for e in places):
        return None
    spatial = {d for e in places for d in e.used_dims() if parallel[d]}
    if not filters:
        kept = [d for d in loops if d in read and d not in spatial]
        others = set(kept[-1:] if len(kept) > 1 else ())
    features = [d for d in loops if d in others]
    if not features or len(set(loops)) != len(loops):
        return None
    moving = {d for e in places for d in e.used_dims() if not parallel[d]}
    inner = [d for d, runs in enumerate(parallel) if not runs and d not in moving]
    order = (*(d for d in loops if d not in others), *features, *sorted(moving), *inner)
    if sorted(order) != list(range(len(parallel))):
        return None
    dense = any(d not in read for d in features)
    grouped = _group(where[image], features[-1]) is not None
    alone = (dense or grouped) and len(filters) == 1
    its = read - set(features) if grouped else read
    summed_places = _summed_places(op, moving, spatial, its, inner) if alone else frozenset[int]()
    if _few_in_groups(where[image], features[-1]):
        return _in_rows(op, image, filters, features, spatial, moving, order)
    sizes = _sizes(op)
    summed, out = prod(sizes[d] for d in inner), prod(sizes[d] for d in features)
    narrow = dense and not summed_places and 1 < out < LANES // 2 and summed >= LANES
    planar = bool(summed_places) and max(out, *(sizes[d] for d in read - spatial)) < LANES
    each = ALONG if planar or narrow else SUMMED if summed_places and not grouped else None
    gain = _gain(op, where[image], features, dense) if each is None else prod(sizes) * each
    few = dense and summed < MIN_FEATURES and not summed_places
    return Window(
        *(image, order, frozenset(features), tuple(filters), dense, few),
        *(gain, summed_places, planar, narrow),
    )


def _few_in_groups(image: Index, feature: int) -> bool:
    """Whether groups have more than one feature, of results or of the image, but too few."""
    if (group := _group(image, feature)) is not None:
        return 1 < group < PAIRS
    forms = [form for form in map(linear, image) if form is not None]
    return any(1 < steps.get(feature, 0) < PAIRS for steps, _ in forms)


def _in_rows(
    op: linalg.GenericOp,
    image: int,
    filters: Sequence[int],
    features: Sequence[int],
    spatial: set[int],
    moving: set[int],
    order: Sequence[int],
) -> Window:
    """Return the preferences of an op whose places should be the last axes."""
    parallel = is_parallel(op)
    first = [d for d in order if parallel[d] and d not in (*features, *spatial)]
    sums = [d for d in order if not parallel[d]]
    index, last = indices(op)[image], len(indices(op)[image]) - 1
    over = prod(_sizes(op)[d] for d in moving) >= OVER * prod(_sizes(op)[d] for d in spatial)
    is_last = features[-1] in index[last].used_dims()
    return Window(
        image,
        (*first, *features, *sorted(spatial), *sums),
        frozenset(features),
        tuple(filters) if over else (),
        False,
        False,
        prod(_sizes(op)) * STEPPED if is_last else 0.0,
        sliding=frozenset(spatial | moving),
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
    last, step = plain(where[0][-1]), slices[0].properties["static_strides"]
    assert last is not None and isinstance(step, DenseArrayBase)
    sizes = _sizes(op)
    long = last != feature and step.get_values()[-1] == 1 and sizes[last] >= LANES
    work = prod(sizes) * len(op.outputs)
    return Window(
        0,
        (feature, *sums),
        frozenset({feature}),
        tuple(range(1, len(op.inputs))),
        False,
        False,
        0.0 if last == feature else work * (TOGETHER if long else SCATTERED),
        frozenset(sums),
    )


def _summed_places(
    op: linalg.GenericOp,
    moving: set[int],
    spatial: set[int],
    read: set[int],
    inner: Sequence[int],
) -> frozenset[int]:
    """Return the loops ``moving`` where they run over whole images and the results are windows.

    This requires images with one feature loop that is not reduced, and no much larger batch.
    """
    sizes = _sizes(op)
    features = [sizes[d] for d in read - spatial]
    over = prod(sizes[d] for d in moving) >= OVER * prod(sizes[d] for d in spatial)
    alone = len(features) == 1 and BATCH * features[0] >= prod(sizes[d] for d in inner)
    return frozenset(moving) if over and alone else frozenset()


def _gain(op: linalg.GenericOp, image: Index, features: list[int], dense: bool) -> float:
    sizes = _sizes(op)
    work = prod(sizes)
    group = _group(image, features[-1])
    if group and group >= PAIRS and _steps(op, image):
        return work * STEPPED
    picked = dense and len(features) == 1 and sizes[features[-1]] >= LANES // 2
    picks = work / min(sizes[features[-1]], PICKED_FOR) if picked and _steps(op, image) else 0.0
    if (group or sizes[features[-1]]) < LANES:
        return picks * PICKED
    if dense or group:
        return work * DENSE + picks * PICKED
    form = linear(image[-1])
    steps = [(d, f) for d, f in form[0].items() if is_parallel(op)[d]] if form else []
    long = len(steps) == 1 and sizes[steps[0][0]] >= LANES
    return work * (BY_STEP.get(steps[0][1], APART) if long else APART)


def _steps(op: linalg.GenericOp, image: Index) -> bool:
    """Whether the longest loop in the index of the image's last axis has a stride above 1."""
    form, sizes = linear(image[-1]), _sizes(op)
    return form is not None and bool(form[0]) and form[0][max(form[0], key=sizes.__getitem__)] > 1


def _group(image: Index, loop: int) -> int | None:
    """Return how many result features, along ``loop``, read one group; None without groups."""
    found = (quotient for expr in image for quotient in quotients(expr))
    return next((size for feature, size in found if feature == loop), None)


def product_gain(op: linalg.GenericOp) -> float:
    """Return the cycles saved by features last in a product that follows its image."""
    parallel = is_parallel(op)
    loops = _written(indices(op)[len(op.inputs) :])
    if all(parallel) or not contracts(op) or loops is None or len(loops) < 3:
        return 0.0
    return prod(_sizes(op)) * DENSE


def _sizes(op: linalg.GenericOp) -> list[int]:
    return [GUESS if n == DYNAMIC_INDEX else n for n in extents(op)]


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
