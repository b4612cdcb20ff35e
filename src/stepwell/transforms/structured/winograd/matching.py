"""Match the convolutions that Winograd's algorithm can compute, and estimate the gain."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, FloatAttr, IndexType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.sizes import Result, Size, Sizes
from stepwell.analysis.structured import (
    Index,
    dims_of,
    element,
    extents,
    identity,
    indices,
    is_elementwise,
    is_not_fused,
    is_parallel,
    linear,
    plain,
    shape,
    yielded,
)
from stepwell.transforms.structured.fuse.splats import Splat, splat_of

SIZE = 3
"""Elements of a window along each axis."""
TILE = 2
"""Results of a tile along each axis."""
PRODUCTS = 20
"""Products per cycle: one or two vectors, on current machines."""
CARRIED = 8
"""Cycles per tile and feature for the input and output transforms."""
READ = 6
"""Cycles per pair of features to read its 16 numbers instead of nine from memory."""
LAID = 18
"""Cycles per pair of features to transform the filters in each call, if they are not constant."""
LAUNCHED = 8000
"""Cycles to launch three more kernels."""


@dataclass(frozen=True)
class Convolution:
    """A matched convolution: images n, row, column, feature; filters in any order."""

    op: linalg.GenericOp
    number: int
    """The number of the image operand."""
    filters: int
    order: tuple[int, ...]
    """The axes of the filters for: feature of the result, feature of the image, row, column."""
    flipped: tuple[bool, bool] = (False, False)
    """Whether rows and columns of the filters are reversed, as in gradients of images."""

    @property
    def image(self) -> SSAValue:
        """Return the image."""
        return self.op.inputs[self.number]

    @property
    def filter(self) -> SSAValue:
        """Return the filters."""
        return self.op.inputs[self.filters]

    @property
    def features(self) -> int:
        """Return how many features the image has."""
        return shape(self.image)[-1]

    @property
    def out(self) -> int:
        """Return how many features the result has."""
        return shape(self.op.results[0])[-1]

    def gain(self, sizes: Sizes, constant: bool) -> Size:
        """Return the cycles saved, as many as `PRODUCTS` counted as one.

        constant : whether the filters are
        """
        n, rows, columns, _ = sizes.shape(self.op.results[0])
        pairs = self.features * self.out
        tiles = n * tiles_of(sizes, rows) * tiles_of(sizes, columns)
        carried = PRODUCTS * CARRIED * (self.features + self.out)
        fixed = PRODUCTS * (pairs * (READ if constant else LAID) + LAUNCHED)
        saved = n * rows * columns * Size.of(9 * pairs)
        return saved - tiles * Size.of(16 * pairs + carried) - Size.of(fixed)

    def pays(self, sizes: Sizes, constant: bool) -> bool | None:
        """Whether the algorithm is faster, None where that depends on a size known at run time."""
        gain = self.gain(sizes, constant)
        if gain.number is not None:
            return gain.number > 0
        _, rows, columns, _ = shape(self.op.results[0])
        if DYNAMIC_INDEX not in (rows, columns):  # in proportion to the images
            fixed = sum(factor for monomial, factor in gain.terms if not monomial)
            slope = sum(factor for monomial, factor in gain.terms if monomial)
            return True if slope + fixed > 0 else None if slope > 0 else False
        pairs = self.features * self.out
        whole = pairs * (9 * TILE * TILE - 16) - PRODUCTS * CARRIED * (self.features + self.out)
        return None if whole > 0 else False


@dataclass(frozen=True)
class FilterGradient:
    """A sum over all places of an image of each 3x3 window times the gradient at its place."""

    op: linalg.GenericOp
    image: SSAValue
    """The image that windows read: n, row, column, feature."""
    places: SSAValue
    """The factor at each place: n, row, column, feature."""
    features: tuple[int, int]
    """The loops over the features of both, which index the result."""
    window: tuple[int, int]
    """The loops over the rows and columns of a window, which index the result."""

    @property
    def gain(self) -> int:
        """Return the cycles saved, as many as `PRODUCTS` counted as one."""
        n, rows, columns, out = shape(self.places)
        features, tiles = shape(self.image)[-1], n * -(-rows // 2) * -(-columns // 2)
        products = 9 * n * rows * columns - 16 * tiles
        cost = tiles * CARRIED * (features + out) + features * out * LAID
        return features * out * products - PRODUCTS * (cost + LAUNCHED)

    @property
    def pays(self) -> bool:
        """Whether the algorithm is faster."""
        return self.gain > 0


def share_saved(op: linalg.GenericOp, sizes: Sizes) -> float:
    """Return the part of the time of ``op`` that the algorithm saves: 0 where it is not used.

    The sizes are known, and filters change from call to call.
    """
    found = read_convolution(op, sizes) or read_filter_gradient(op)
    if found is None:
        return 0.0
    gain = found.gain(sizes, False).number if isinstance(found, Convolution) else found.gain
    return max(gain or 0, 0) / prod(extents(op))


def read_filter_gradient(op: linalg.GenericOp) -> FilterGradient | None:
    """Return ``op`` as a gradient of filters, None where it does not match."""
    parallel = is_parallel(op)
    if len(op.inputs) < 2 or len(op.outputs) != 1 or parallel != [True] * 4 + [False] * 3:
        return None
    if any(element(v) != f32 or DYNAMIC_INDEX in shape(v) for v in op.operands):
        return None
    factors = _factors(op)
    where = indices(op)
    if factors is None or where[-1] != identity(4) or not is_zero(op.outputs[0]):
        return None
    for image, places in (factors, factors[::-1]):
        loops = _summed_places(where[image], where[places])
        if loops is None:
            continue
        features, window = loops
        n, rows, columns, _ = shape(op.inputs[places])
        around = SIZE - 1
        reached = shape(op.inputs[image])[:3] == (n, rows + around, columns + around)
        sizes = shape(op.results[0])
        threes = [sizes[d] for d in window] == [SIZE, SIZE]
        if reached and threes and min(n, rows, columns, *sizes) > 0:
            return FilterGradient(op, op.inputs[image], op.inputs[places], features, window)
    return None


def _summed_places(image: Index, places: Index) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the loops of the features and of the window, None where the indices do not match."""
    loops = [plain(e) for e in places]
    if len(image) != 4 or len(loops) != 4 or sorted(d or 0 for d in loops[:3]) != [4, 5, 6]:
        return None
    mine, its = plain(image[3]), loops[3]
    window: list[int] = []
    for place, expr in zip(loops[1:3], image[1:3], strict=True):
        match linear(expr):
            case (steps, 0) if set(steps.values()) == {1} and len(steps) == 2 and place in steps:
                window += [d for d in steps if d != place]
            case _:
                return None
    if plain(image[0]) != loops[0] or mine is None or its is None:
        return None
    if sorted((mine, its, *window)) != [0, 1, 2, 3]:
        return None
    row, column = window
    return (mine, its), (row, column)


def tiles_of(sizes: Sizes, size: Size) -> Size:
    """Return how many tiles cover ``size`` results along an axis."""
    if size.number is not None:
        return Size.of(-(-size.number // TILE))
    operands = size + Size.of(TILE - 1), Size.of(TILE)
    return sizes.atom(Result(arith.DivUIOp, (), operands, IndexType()))


def read_convolution(op: linalg.GenericOp, sizes: Sizes) -> Convolution | None:
    """Return ``op`` as a convolution, None where it does not match."""
    parallel = is_parallel(op)
    if len(op.inputs) < 2 or len(op.outputs) != 1 or parallel != [True] * 4 + [False] * 3:
        return None
    if any(element(v) != f32 for v in op.operands):
        return None
    factors = _factors(op)
    where = indices(op)
    if factors is None or where[-1] != identity(4) or not is_zero(op.outputs[0]):
        return None
    for image, filter in (factors, factors[::-1]):
        order = _order(where[image], where[filter])
        if order is None:
            continue
        axes, flipped = order
        found = Convolution(op, image, filter, axes, flipped)
        if _fits(found, sizes):
            return found
    return None


def _factors(op: linalg.GenericOp) -> tuple[int, int] | None:
    """Return the two inputs whose products ``op`` sums, None if its body is another."""
    block = op.body.block
    total = yielded(block)[0].owner
    if not isinstance(total, arith.AddfOp) or len(block.ops) != 3:
        return None
    terms = [v for v in total.operands if v is not block.args[-1]]
    if len(terms) != 1 or not isinstance(product := terms[0].owner, arith.MulfOp):
        return None
    inputs = list(block.args[:-1])
    read = [inputs.index(v) for v in product.operands if v in inputs]  # pyright: ignore
    return (read[0], read[1]) if len(set(read)) == 2 else None


def is_zero(value: SSAValue) -> bool:
    """Whether all elements of ``value`` are zero."""
    match splat_of(value):
        case Splat(constant=FloatAttr() as number):
            return number.value.data == 0
        case _:
            return False


def _order(image: Index, filter: Index) -> tuple[tuple[int, ...], tuple[bool, bool]] | None:
    """Return the axes of the filters, as in `Convolution.order`, and which are reversed."""
    if len(image) != 4 or len(filter) != 4:
        return None
    forms = [linear(e) for e in image]
    window: list[int] = []
    for place, form in zip((1, 2), forms[1:3], strict=True):
        others = [d for d in form[0] if d != place] if form else []
        if form is None or form[1] or len(others) != 1 or form[0] != {place: 1, others[0]: 1}:
            return None
        window.append(others[0])
    features = plain(image[3])
    if image[0] != AffineDimExpr(0) or features is None:
        return None
    wanted = [3, features, *window]
    read = [_loop_of(e) for e in filter]
    loops = [loop for loop, _ in read]
    if sorted(wanted) != [3, 4, 5, 6] or sorted(loops) != [3, 4, 5, 6]:
        return None
    back = {loop for loop, backwards in read if backwards}
    if back - set(window):
        return None
    row, column = (loop in back for loop in window)
    return tuple(loops.index(d) for d in wanted), (row, column)


def _loop_of(expr: AffineExpr) -> tuple[int, bool]:
    """Return the loop that indexes an axis of the filters, and whether it is reversed.

    -1 where there is none.
    """
    match linear(expr):
        case (steps, first) if len(steps) == 1:
            ((loop, step),) = steps.items()
            if (step, first) in ((1, 0), (-1, SIZE - 1)):
                return loop, step < 0
        case _:
            pass
    return -1, False


def _fits(found: Convolution, sizes: Sizes) -> bool:
    """Whether windows are 3x3 and the image has exactly the size that they reach."""
    n, rows, columns, out = sizes.shape(found.op.results[0])
    window = [shape(found.filter)[axis] for axis in found.order]
    around = Size.of(SIZE - 1)
    reached = (n, rows + around, columns + around)
    return (
        min(found.features, *window) > 0  # also known
        and all(size.number != 0 for size in (n, rows, columns, out))
        and window[2:] == [SIZE, SIZE]
        and sizes.shape(found.image)[:3] == reached
    )


def epilogue(op: linalg.GenericOp, whole: bool) -> linalg.GenericOp | None:
    """Return the elementwise op after ``op`` if it is the only user of the result.

    whole : whether tiles end with the image; else nothing else that the op reads may depend on the
        row or column, since the tiles have more of them
    """
    value = op.results[0]
    use = value.get_user_of_unique_use()
    if not isinstance(use, linalg.GenericOp) or is_not_fused(use) or use.parent is not op.parent:
        return None
    if len(use.outputs) != 1 or not is_elementwise(use) or len(use.iterator_types) != 4:
        return None
    block, where = use.body.block, indices(use)
    mine = [index for v, index in zip(use.inputs, where, strict=False) if v is value]
    plainly = mine == [identity(4)] and where[-1] == identity(4)
    others = [index for v, index in zip(use.inputs, where, strict=False) if v is not value]
    if not whole and any({1, 2} & dims_of(index) for index in others):
        return None
    reads_itself = block.args[-1].first_use is not None
    simple = not any(each.regions or isinstance(each, linalg.IndexOp) for each in block.ops)
    return use if plainly and simple and not reads_itself else None
