"""Choose a layout for every tensor of a block: preferences flow backwards, then decisions forwards.

No op is changed here. A value keeps its original layout unless the plan has another for it; an
operand that is needed in another layout than its value has is transposed, at a cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from stepwell.analysis.beyond_edges import beyond_edges
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import (
    Index,
    constant_of,
    contracts,
    indices,
    is_contraction,
    is_elementwise,
    is_parallel,
    plain,
    shape,
)
from stepwell.transforms.kernels.schedule.searching import MODEL_ERROR
from stepwell.transforms.kernels.schedule.vectors import MASKED_BITS
from stepwell.transforms.structured.fuse.splats import splat_of
from stepwell.transforms.structured.layouts.windows import (
    Window,
    filter_layout,
    image_layout,
    layouts_of,
    read_taps,
    read_windows,
)
from stepwell.transforms.structured.seconds import LIKELY, Layout, Seconds

MAX_FRACTION = 8
"""An operand of at most this fraction (1/8) of the largest is read in the layout it has: in any
order it takes no more than a line of 64 bytes for each element, of up to eight bytes."""


@dataclass
class Plan:
    """The layouts and loop orders chosen for one block."""

    block: Block
    seconds: Seconds
    windows: dict[Operation, Window] = field(default_factory=dict[Operation, Window])
    wished: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])
    layouts: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])
    """The layouts of values that differ from the original ones."""
    orders: dict[Operation, tuple[int, ...]] = field(
        default_factory=dict[Operation, tuple[int, ...]]
    )
    """The new order of the loops of an op."""
    reads: dict[tuple[Operation, int], Layout] = field(
        default_factory=dict[tuple[Operation, int], Layout]
    )
    """The layouts of operands that differ from the layouts of their values."""
    copies: dict[tuple[SSAValue, Layout], float] = field(
        default_factory=dict[tuple[SSAValue, Layout], float]
    )
    """The seconds of the copies of values in other layouts."""

    def make(self) -> None:
        """Plan the block, where an op slides a window over an image."""
        ops = list(self.block.ops)
        for op in ops:
            if isinstance(op, linalg.GenericOp) and (window := self._read(op)):
                self.windows[op] = window
        if not self.windows:
            return
        for op in reversed(ops):
            self._collect_preference(op)
        for op in ops:
            self._decide(op)

    def pays(self) -> bool:
        """Whether the ops of the plan, with its copies, take less time than they do as written.

        A plan without copies is what each window prefers: the model is not asked.
        """
        if not any(self.copies.values()):
            return True
        saved = -sum(self.copies.values())
        for op in self.block.ops:
            if isinstance(op, linalg.GenericOp) and (op in self.windows or contracts(op)):
                layouts = [
                    self.reads.get((op, k)) or self.layouts.get(v)
                    for k, v in enumerate(op.operands)
                ]
                if op in self.orders or any(layouts):
                    loops = tuple(range(len(op.iterator_types)))
                    saved += self.seconds.of(op, [None] * len(layouts), loops)
                    saved -= self.seconds.of(op, layouts, self.orders.get(op, loops))
        return saved > 0

    def _read(self, op: linalg.GenericOp) -> Window | None:
        """Return the preferences with which an op takes the least time."""
        found = read_windows(op, self.seconds.machine)
        if len(found) < 2:
            return found[0] if found else read_taps(op)
        best, least = found[0], self._seconds_of(op, found[0])
        for window in found[1:]:
            if (seconds := self._seconds_of(op, window)) < (1 - MODEL_ERROR) * least:
                best, least = window, seconds
        return best

    def _seconds_of(self, op: linalg.GenericOp, window: Window) -> float:
        inputs, order = layouts_of(op, window, natural(op.inputs[window.image]))
        layouts = [inputs.get(k) for k in range(len(op.operands))]
        loops = tuple(range(len(op.iterator_types)))
        if order is not None:
            where = indices(op)
            for k in range(len(op.inputs), len(layouts)):
                layouts[k] = sorted_axes(where[k], order)
            loops = parallel_first(op, order)
        return self.seconds.of(op, layouts, loops)

    def layout(self, value: SSAValue) -> Layout:
        """Return the layout of ``value``."""
        return self.layouts.get(value) or natural(value)

    # preferences

    def _collect_preference(self, op: Operation) -> None:
        match op:
            case linalg.GenericOp() if op in self.windows:
                window = self.windows[op]
                if window.planar:
                    return
                if not window.indifferent:
                    self._prefer(op.inputs[window.image], image_layout(op, window))
                for k in window.filters if window.places else ():
                    self._prefer(
                        op.inputs[k], filter_layout(indices(op)[k], window, is_parallel(op))
                    )
            case linalg.GenericOp():
                self._propagate_preference(op)
            case tensor.InsertSliceOp() if op.result in self.wished:
                if len(shape(op.source)) == len(shape(op.dest)):
                    self._prefer(op.source, self.wished[op.result])
                    self._prefer(op.dest, self.wished[op.result])
            case tensor.ExtractSliceOp() if op.result in self.wished:
                if len(shape(op.source)) == len(shape(op.result)):
                    self._prefer(op.source, self.wished[op.result])
            case _:
                pass

    def _propagate_preference(self, op: linalg.GenericOp) -> None:
        wished = next((r for r in op.results if r in self.wished), None)
        order = self._order_of(op, wished, self.wished[wished]) if wished is not None else None
        if order is None:
            return
        for k in self._leaders(op):
            self._prefer(op.inputs[k], sorted_axes(indices(op)[k], order))

    def _prefer(self, value: SSAValue, layout: Layout) -> None:
        self.wished.setdefault(value, layout)

    # decisions

    def _decide(self, op: Operation) -> None:
        match op:
            case linalg.GenericOp() if op in self.windows:
                self._window(op, self.windows[op])
            case linalg.GenericOp() if is_spread(op):
                self._keep_operands(op)
            case linalg.GenericOp():
                self._follow(op)
            case tensor.InsertSliceOp() if len(shape(op.source)) == len(shape(op.dest)):
                layout = self.layouts.get(op.source) or (
                    self.wished.get(op.result) if is_free(op.dest) else self.layout(op.dest)
                )
                if layout:
                    self._require(op, 0, layout)
                    self._require(op, 1, layout)
                    self._set_layout(op.result, layout)
            case tensor.ExtractSliceOp() if len(shape(op.source)) == len(shape(op.result)):
                self._set_layout(op.result, self.layout(op.source))
            case tensor.DimOp() if constant_of(op.index) is not None:
                pass
            case _:
                self._keep_operands(op)

    def _window(self, op: linalg.GenericOp, window: Window) -> None:
        layouts, order = layouts_of(op, window, self.layout(op.inputs[window.image]))
        for k, layout in layouts.items():
            self._require(op, k, layout)
        if order is not None:
            self._reorder(op, order)

    def _follow(self, op: linalg.GenericOp) -> None:
        """Order the loops of ``op`` as its largest operand that has a new layout."""
        self._keep_captured(op)
        leaders = self._leaders(op)
        where = indices(op)
        relaid = [k for k in leaders if op.inputs[k] in self.layouts]
        order = None
        if relaid:
            first = max(relaid, key=lambda k: volume(op.inputs[k]))
            order = _loops_of(op, where[first], self.layout(op.inputs[first]))
            if order is not None and len(leaders) > 1 and not all(is_parallel(op)):
                order = _sums_first(op, order)
            if order is not None and self._is_cheaper_as_written(op, leaders, relaid, order):
                order = None
        elif (result := next((r for r in op.results if r in self.wished), None)) is not None:
            order = self._order_of(op, result, self.wished[result])
        if order is None or not _is_written_plainly(op):
            self._keep_operands(op)
            return
        for k in range(len(op.inputs)):
            if k in leaders:
                self._require(op, k, sorted_axes(where[k], order))
            elif op.inputs[k] in self.layouts and not _is_small(op, k):
                self._require(op, k, natural(op.inputs[k]))
        self._reorder(op, order)

    def _is_cheaper_as_written(
        self, op: linalg.GenericOp, leaders: list[int], relaid: list[int], order: tuple[int, ...]
    ) -> bool:
        """Whether transposing operands in new layouts back costs less than transposing the rest.

        This is so where a gradient of filters meets the filters themselves, and no reader of the
        result prefers another layout.
        """
        if any(r in self.wished for r in op.results):
            return False
        where = indices(op)
        others = 0
        for k in leaders:
            value, layout = op.inputs[k], sorted_axes(where[k], order)
            if k not in relaid and (value, layout) not in self.copies:
                others += volume(value) * is_turned(value, natural(value), layout)
        results = sum(volume(r) for r in op.results)
        return others > 0 and others + results > sum(volume(op.inputs[k]) for k in relaid)

    def _reorder(self, op: linalg.GenericOp, order: tuple[int, ...]) -> None:
        """Order the loops of ``op``, parallel ones first, and lay out its results to match."""
        where, inputs = indices(op), len(op.inputs)
        for k, result in enumerate(op.results):
            layout = sorted_axes(where[inputs + k], order)
            self._require(op, inputs + k, layout)
            self._set_layout(result, layout)
        loops = parallel_first(op, order)
        if loops != tuple(range(len(loops))):
            self.orders[op] = loops

    def _order_of(
        self, op: linalg.GenericOp, result: SSAValue, layout: Layout
    ) -> tuple[int, ...] | None:
        """Return the loops in the order of the axes of ``result`` in ``layout``."""
        k = list(op.results).index(result)  # pyright: ignore[reportArgumentType]
        return _loops_of(op, indices(op)[len(op.inputs) + k], layout)

    def _leaders(self, op: linalg.GenericOp) -> list[int]:
        """Return the inputs whose layout matters: the image of a contraction, else large ones."""
        block, where = op.body.block, indices(op)
        used = [
            k
            for k, value in enumerate(op.inputs)
            if block.args[k].first_use is not None and len(shape(value)) > 1 and not is_free(value)
        ]
        parallel = is_parallel(op)
        if all(parallel) or not is_contraction(parallel, (where[k] for k in used)):
            return [k for k in used if not _is_small(op, k)]
        loops = {k: len({d for e in where[k] for d in e.used_dims() if parallel[d]}) for k in used}
        most = max(loops.values(), default=0)
        found = [k for k in used if loops[k] == most]
        return found if len(found) == 1 or _sums_places(op, found) else []

    def _set_layout(self, value: SSAValue, layout: Layout) -> None:
        if layout != natural(value):
            self.layouts[value] = layout

    def _require(self, op: Operation, operand: int, layout: Layout) -> None:
        """Read an operand in this layout; all readers that need it share one transpose."""
        value = op.operands[operand]
        have = self.layout(value)
        if have == layout:
            return
        self.reads[op, operand] = layout
        if not is_free(value) and (value, layout) not in self.copies:
            self.copies[value, layout] = 0.0
            if is_turned(value, have, layout):
                padded = isinstance(op, tensor.InsertSliceOp) and isinstance(value, BlockArgument)
                copied = padded and not self._is_never_made(op)  # in any layout
                as_written = self.seconds.of_copy(value, have, have) if copied else 0.0
                each = self.seconds.of_copy(value, have, layout) - as_written
                self.copies[value, layout] = each

    def _is_never_made(self, op: Operation) -> bool:
        """Whether a reader of a padded image whose rows are last reads beyond its edges."""
        readers = [use.operation for result in op.results for use in result.uses]
        generics = [each for each in readers if isinstance(each, linalg.GenericOp)]
        masks = self.seconds.machine.vector_bits >= MASKED_BITS
        return any(beyond_edges(each, Sizes(self.block.args), masks) for each in generics)

    def _keep_operands(self, op: Operation) -> None:
        """Let ``op`` and its nested ops read their operands in the original layouts."""
        for k, value in enumerate(op.operands):
            if value in self.layouts:
                self._require(op, k, natural(value))
        self._keep_captured(op)

    def _keep_captured(self, op: Operation) -> None:
        if not op.regions or not self.layouts:
            return
        for inner in op.walk():
            if inner is not op:
                for k, value in enumerate(inner.operands):
                    if value in self.layouts:
                        self._require(inner, k, natural(value))


def natural(value: SSAValue) -> Layout:
    """Return the original layout of a value: its axes in order."""
    return tuple(range(len(shape(value))))


def sorted_axes(index: Index, order: tuple[int, ...]) -> Layout:
    """Return the axes of an operand read at ``index``, sorted by the loops that index them."""
    position = {d: k for k, d in enumerate(order)}

    def key(axis: int) -> int:
        return min((position[d] for d in index[axis].used_dims()), default=-1)

    return tuple(sorted(range(len(index)), key=key))


def parallel_first(op: linalg.GenericOp, order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the loops in an order, parallel ones first."""
    parallel = is_parallel(op)
    return (*(d for d in order if parallel[d]), *(d for d in order if not parallel[d]))


def volume(value: SSAValue) -> int:
    """Return the number of elements of a tensor, estimated where it is dynamic."""
    return prod(LIKELY if n == DYNAMIC_INDEX else n for n in shape(value))


def is_free(value: SSAValue) -> bool:
    """Whether ``value`` costs the same in any layout: uninitialized, a splat or a broadcast."""
    match value.owner:
        case tensor.EmptyOp():
            return True
        case linalg.FillOp() as op:
            return isinstance(op.outputs[0].owner, tensor.EmptyOp)
        case arith.ConstantOp():
            return splat_of(value) is not None
        case linalg.GenericOp() as op:
            return is_spread(op)
        case _:
            return False


def is_spread(op: linalg.GenericOp) -> bool:
    """Whether ``op`` broadcasts small inputs, so that a second copy costs no more than a read."""
    return (
        len(op.outputs) == 1
        and is_elementwise(op)
        and isinstance(op.outputs[0].owner, tensor.EmptyOp)
        and all(_is_small(op, k) for k in range(len(op.inputs)))
        and not any(
            isinstance(inner, linalg.IndexOp) or inner.regions for inner in op.body.block.ops
        )
    )


def is_turned(value: SSAValue, have: Layout, layout: Layout) -> bool:
    """Whether a change of layout moves elements, that is, reorders axes longer than 1."""
    sizes = shape(value)
    return [a for a in have if sizes[a] != 1] != [a for a in layout if sizes[a] != 1]


def _is_small(op: linalg.GenericOp, operand: int) -> bool:
    """Whether an input has so few elements that its layout does not matter."""
    most = max(volume(v) for v in op.operands if isinstance(v.type, TensorType))
    return volume(op.operands[operand]) * MAX_FRACTION <= most


def _is_written_plainly(op: linalg.GenericOp) -> bool:
    where = indices(op)[len(op.inputs) :]
    return all(plain(expr) is not None for index in where for expr in index)


def _loops_of(op: linalg.GenericOp, index: Index, layout: Layout) -> tuple[int, ...] | None:
    """Return all loops of ``op``, first those of ``index`` in the order of ``layout``.

    Loops that do not index the operand are placed before its first reduction loop, since the
    features of a product's result replace the reduced features; without reduction loops they are
    last. The result is None if an expression has two parallel loops.
    """
    parallel = is_parallel(op)
    found: list[int] = []
    for axis in layout:
        own = [d for d in _sorted(index[axis].used_dims()) if d not in found]
        if sum(parallel[d] for d in own) > 1:
            return None
        found.extend(own)
    missing = [d for d in range(len(parallel)) if d not in found]
    at = next((k for k, d in enumerate(found) if not parallel[d]), len(found))
    return (*found[:at], *missing, *found[at:])


def _sums_places(op: linalg.GenericOp, factors: list[int]) -> bool:
    """Whether ``op`` reduces all but one axis of its factors, as gradients of filters do."""
    where, parallel = indices(op), is_parallel(op)
    loops = [{d for e in where[k] for d in e.used_dims()} for k in factors]
    sums = {d for d, runs in enumerate(parallel) if not runs}
    return len(sums) > 1 and all(sums <= each and len(each - sums) == 1 for each in loops)


def _sums_first(op: linalg.GenericOp, order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the reduction loops in the order of ``order``, then the others in original order."""
    parallel = is_parallel(op)
    kept = [d for d, runs in enumerate(parallel) if runs]
    return (*(d for d in order if not parallel[d]), *kept)


def _sorted(dims: Iterable[int]) -> list[int]:
    return sorted(dims)
