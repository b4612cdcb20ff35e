"""Translate ops on arrays to scalar code: element reads, element writes and reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.structured import (
    EXPENSIVE,
    Index,
    contracts,
    cost,
    extents,
    indices,
    inverse,
    is_parallel,
    plain,
)
from stepwell.dialects import kernel
from stepwell.dialects.types import tensor_type
from stepwell.transforms.structured.scalar_loops.code import Refused, refuse, truth
from stepwell.transforms.structured.scalar_loops.flow import (
    constant,
    is_number,
    is_single,
    kept_axes,
)
from stepwell.transforms.structured.scalar_loops.nests import (
    MAX_ELEMENTS,
    SHORT,
    UNKNOWN_SIZE,
    Element,
)
from stepwell.transforms.structured.scalar_loops.translate import Part, Rule, Translation


def _check(t: Translation, op: kernel.CheckOp) -> None:
    """Write a check unless it is known to hold; its condition is a fact from there on."""
    condition = t.value(op.condition)
    if truth(condition):
        return
    t.code.put(op.clone({v: t.value(v) for v in op.operands}))
    t.code.bounds.assume(condition)


def _extract(t: Translation, op: tensor.ExtractOp) -> None:
    t.bind(op.result, t.element(op, op.tensor, [t.value(v) for v in op.indices]))


def _insert(t: Translation, op: tensor.InsertOp) -> None:
    if is_number(op.dest):
        t.bind(op.result, t.value(op.scalar))
    else:
        _write(t, op, op.dest, [t.value(v) for v in op.indices], t.value(op.scalar))


def _write(
    t: Translation,
    op: tensor.InsertOp | tensor.InsertSliceOp,
    into: SSAValue,
    place: Sequence[SSAValue],
    new: SSAValue,
) -> None:
    """Store an element; of a few that are stored nowhere, such as a stack, choose where read."""
    shape = tensor_type(into).get_shape()
    if into in t.code.values or (before := t.views.get(into)) is None or prod(shape) > _FEW:
        store(t, op, into)
        t.write(op, into, place, new)
        return
    code = t.code

    def element(at: Sequence[SSAValue]) -> SSAValue:
        found = code.constant(IntegerAttr(1, 1))
        for i, axis in zip(at, place, strict=True):
            same = code.number(arith.CmpiOp(i, axis, "eq"))
            found = code.number(arith.AndIOp(found, same))
        return code.number(arith.SelectOp(found, new, before(at)))

    t.views[op.results[0]] = element


def _extract_slice(t: Translation, op: tensor.ExtractSliceOp) -> None:
    offsets = [] if is_number(op.source) else t.places(op.static_offsets, op.offsets)
    if is_number(op.result):
        t.bind(op.result, t.element(op, op.source, offsets))
        return
    steps = t.places(op.static_strides, op.strides)
    kept = kept_axes(op.static_sizes.get_values(), op.result.type.get_shape())
    if kept is None:
        refuse(op, "a part of an array is taken, without some of its axes")

    def element(at: Sequence[SSAValue]) -> SSAValue:
        places = list(offsets)
        for axis, i in zip(kept, at, strict=True):
            places[axis] = t.code.add(offsets[axis], t.code.times(i, steps[axis]))
        return t.element(op, op.source, places)

    t.views[op.result] = element


def _insert_slice(t: Translation, op: tensor.InsertSliceOp) -> None:
    if not is_number(op.source):
        _insert_part(t, op)
    elif is_number(op.dest):
        t.bind(op.result, t.value(op.source))
    else:
        _write(t, op, op.dest, t.places(op.static_offsets, op.offsets), t.value(op.source))


def _insert_part(t: Translation, op: tensor.InsertSliceOp) -> None:
    """Write a slice of an array; later reads of the source load from it while it is unchanged."""
    offsets = t.places(op.static_offsets, op.offsets)
    steps = t.places(op.static_strides, op.strides)
    kept = kept_axes(op.static_sizes.get_values(), tensor_type(op.source).get_shape())
    if kept is None:
        refuse(op, "a part of an array is written, without some of its axes")

    def place(at: Sequence[SSAValue]) -> list[SSAValue]:
        places = list(offsets)
        for axis, i in zip(kept, at, strict=True):
            places[axis] = t.code.add(offsets[axis], t.code.times(i, steps[axis]))
        return places

    store(t, op, op.dest)
    into = t.readable(op.dest, op)
    counts = op.static_sizes.get_values()
    fixed = [None if counts[a] != 1 else offset for a, offset in enumerate(offsets)]
    rows = counts[-1] != 1 and op.static_strides.get_values()[-1] == 1
    part = Part(place, lambda at: t.element(op, op.source, at), fixed, rows)
    created = t.write_all(op, into, t.sizes(op.source), part)
    t.bind(op.result, created)
    if (view := t.views.get(op.source)) is not None:

        def element(at: Sequence[SSAValue]) -> SSAValue:
            stale = t.code.arrays.is_stale(created)
            return view(at) if stale else t.element(op, op.result, place(at))

        t.views[op.source] = element


def write_whole(t: Translation, op: Operation, value: SSAValue, into: SSAValue) -> SSAValue:
    """Store an array that exists only as an element function in ``into``; return it."""
    fixed = [None for _ in tensor_type(value).get_shape()]
    part = Part(list, lambda at: t.element(op, value, at), fixed, True)
    created = t.write_all(op, into, t.sizes(value), part)
    t.bind(value, created)
    return created


def store(t: Translation, op: Operation, value: SSAValue, its_own: bool = False) -> None:
    """Store an array that is only computed where it is read, because ``op`` changes it.

    its_own : whether it must not take the place of an array that it is computed of
    """
    if value in t.code.values or value not in t.views:
        return
    arrays = t.code.arrays
    if not its_own and (into := _replaced(t, op, value)) is not None:
        assert isinstance(value.owner, Operation)
        t.write_readers_first(value.owner)
        write_whole(t, op, value, arrays.newest[arrays.of[into]])
        del t.views[value]
        return
    if DYNAMIC_INDEX in tensor_type(value).get_shape():
        refuse(op, "an array that is made in the loop has no known size")
    arrays.add(scratch := t.code.scratch(tensor_type(value)), scratch=True)
    if isinstance(value.owner, tensor.EmptyOp):
        t.bind(value, scratch)
    else:
        write_whole(t, op, value, scratch)
        if t.nests.length > SHORT:
            refuse(op, "an array that the loop makes takes long to compute one by one")
    del t.views[value]


def _replaced(t: Translation, op: Operation, value: SSAValue) -> SSAValue | None:
    """Return the array that ``value`` is computed of and may overwrite: nothing else reads it."""
    made_by, block, arrays = value.owner, op.parent_block(), t.code.arrays
    if not isinstance(made_by, linalg.GenericOp) or block is None:
        return None
    for old in dict.fromkeys(v for each in made_by.walk() for v in each.operands):
        state = t.code.values.get(old)
        if (
            state is None
            or state not in arrays.of
            or old.type != value.type
            or arrays.is_stale(state)
        ):
            continue
        readers = [block.find_ancestor_op_in_block(use.operation) for use in old.uses]
        if all(r is not None and (r in t.done or r.is_before_in_block(op)) for r in readers):
            return state
    return None


def _reshape(t: Translation, op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> None:
    if is_number(op.results[0]):
        t.bind(op.results[0], t.value(op.operands[0]))
        return
    source, result = (tensor_type(v).get_shape() for v in (op.operands[0], op.results[0]))
    inner = max(source, result, key=len)
    groups = [[k.value.data for k in group.data] for group in op.reassociation.data]
    if any(sum(inner[k] != 1 for k in group) > 1 for group in groups):
        refuse(op, "an array is reshaped")
    kept = [next((k for k in group if inner[k] != 1), group[0]) for group in groups]

    def element(at: Sequence[SSAValue]) -> SSAValue:
        if len(source) < len(result):
            return t.element(op, op.operands[0], [at[k] for k in kept])
        places = [t.code.index(0) for _ in source]
        for k, i in zip(kept, at, strict=True):
            places[k] = i
        return t.element(op, op.operands[0], places)

    t.views[op.results[0]] = element


def _empty(t: Translation, op: tensor.EmptyOp) -> None:
    """Return 0 for any element: none is read before it is written."""
    zero = t.code.zero(tensor_type(op.tensor).element_type)
    if is_number(op.tensor):
        t.bind(op.tensor, zero)
    else:
        t.views[op.tensor] = lambda at: zero


def _fill(t: Translation, op: linalg.FillOp | tensor.SplatOp) -> None:
    filled = t.value(op.operands[0])
    if is_number(op.results[0]):
        t.bind(op.results[0], filled)
    else:
        t.views[op.results[0]] = lambda at: filled


def _constant(t: Translation, op: arith.ConstantOp) -> None:
    if isinstance(op.result.type, TensorType):
        refuse(op, "an array is made of constants")
    t.bind(op.result, t.code.number(op.clone()))


def _dim(t: Translation, op: tensor.DimOp) -> None:
    """Return the size of a carried array from its initial value."""
    axis = constant(op.index)
    if axis is None:
        refuse(op, "the size along an axis is asked for that only the run knows")
    t.bind(op.result, t.size(op.source, axis))


_CHEAP = 4
"""The cost of an element, in additions, up to which each reader recomputes it."""
_FEW = 16
"""The number of elements up to which even expensive ops are computed one by one."""
_FEW_PRODUCTS = 1 << 9
"""The most iterations of a matrix product (8 x 8 x 8); a larger one stays a kernel with tiles."""


def _generic(t: Translation, op: linalg.GenericOp) -> None:
    """Write the body of an op of one iteration; compute elements of others where they are read."""
    if is_single(op):
        zero = t.code.index(0)
        ends = t.iteration(op, [zero] * len(op.iterator_types))
        for result, value in zip(op.results, ends, strict=True):
            t.bind(result, value)
        return
    costly = cost(op.body.block) >= EXPENSIVE and prod(extents(op)) > _FEW
    if costly and not (all(is_parallel(op)) and t.depth):
        refuse(op, "kernels compute this op with vectors")
    if not all(is_parallel(op)):
        _reduction(t, op)
        return
    again = cost(op.body.block) <= _CHEAP
    for number, result in enumerate(op.results):
        place = inverse(indices(op)[len(op.inputs) + number], len(op.iterator_types))
        if place is None:
            refuse(op, "not every element of an array is written once")

        def element(
            at: Sequence[SSAValue], number: int = number, place: Sequence[int] = place
        ) -> SSAValue:
            if costly:
                t.nests.costly[-1] = Refused(op, "kernels compute this op with vectors")
            return t.iteration(op, [at[axis] for axis in place])[number]

        _offer(t, op, result, element, None if again else not costly)


def _offer(
    t: Translation, op: Operation, result: SSAValue, element: Element, once: bool | None = False
) -> None:
    """Compute the elements of a result where they are read, or store all if that has failed.

    once : whether a loop over a window may compute an element for each of its results; otherwise
        it is computed once; None if it is cheap
    """
    t.views[result] = element if once is None else _computed_once(t, op, result, element, once)
    if result in t.stored:
        store(t, op, result, its_own=True)


def _computed_once(
    t: Translation, op: Operation, result: SSAValue, element: Element, in_windows: bool
) -> Element:
    """Return an element function that refuses where an element would be computed repeatedly.

    in_windows : whether it may be computed for each result that a loop over a window computes
    """
    depth, outer, large = t.depth, len(t.nests.indices), _is_large(op)
    why = "values that the loop reads would be computed again in each iteration"

    def checked(at: Sequence[SSAValue]) -> SSAValue:
        used = {t.code.bounds.sum_of(i)[0] for i in at}
        again = not used.issuperset(t.nests.indices[outer:])
        if not used.issuperset(t.counters[depth:]) or (again and not in_windows):
            raise Refused(op, why, store=result)
        if again or (t.depth > depth and large):
            t.nests.costly[-1] = Refused(op, why)
        return element(at)

    return checked


def _is_large(op: Operation) -> bool:
    sizes = extents(op) if isinstance(op, linalg.GenericOp) else []
    return prod(UNKNOWN_SIZE if n == DYNAMIC_INDEX else n for n in sizes) > MAX_ELEMENTS


def _reduction(t: Translation, op: linalg.GenericOp) -> None:
    """Write a reduction to scalars; compute one to arrays where an element of it is read."""
    outputs = indices(op)[len(op.inputs) :]
    if any(index != outputs[0] for index in outputs):
        _scan(t, op, outputs)
        return
    if contracts(op) and prod(extents(op)) > _FEW_PRODUCTS:
        refuse(op, "kernels have tiles for a product of matrices")
    if _sums_rows(op) and prod(extents(op)) > _FEW_PRODUCTS:
        refuse(op, "kernels have vectors along the rows that this op adds up")
    if all(map(is_number, op.results)):
        found = _write_reduction(t, op, outputs[0], [t.code.index(0) for _ in outputs[0]])
        for result, value in zip(op.results, found, strict=True):
            t.bind(result, value)
        return
    for number, result in enumerate(op.results):

        def element(at: Sequence[SSAValue], number: int = number) -> SSAValue:
            return _write_reduction(t, op, outputs[0], at)[number]

        _offer(t, op, result, element)


def _scan(t: Translation, op: linalg.GenericOp, outputs: Sequence[Index]) -> None:
    """Let the loop that reads running sums, or the like, one after the other compute them."""
    summed = [d for d, parallel in enumerate(is_parallel(op)) if not parallel]
    each = [any(plain(e) in summed for e in index) for index in outputs]
    wanted = [r.first_use is not None for r in op.results]
    taken = [op.body.block.args[len(op.inputs) + k].first_use for k in range(len(outputs))]
    places = [inverse(index, len(op.iterator_types)) for index in outputs]
    for k, every in enumerate(each):
        unlike = (every and (taken[k] or places[k] is None)) or (not every and wanted[k])
        if unlike or len(summed) != 1:
            refuse(op, "a reduction gives several results that lie differently")

    def element(number: int, at: Sequence[SSAValue]) -> SSAValue:
        place = places[number]
        assert place is not None
        loops = [at[axis] for axis in place]
        starts: list[SSAValue] = []
        for value, index, every in zip(op.outputs, outputs, each, strict=True):
            if not every:
                starts.append(t.element(op, value, [t.code.affine(e, loops) for e in index]))

        def body(given: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
            rest = iter(given)
            zeros = [t.code.zero(tensor_type(v).element_type) for v in op.outputs]
            all = [zero if every else next(rest) for zero, every in zip(zeros, each, strict=True)]
            found = t.iteration(op, loops, all)
            return [v for v, every in zip(found, each, strict=True) if not every], found

        return t.nests.scanned(op, op.results[number], loops[summed[0]], starts, body)[number]

    for number, result in enumerate(op.results):
        if each[number]:
            _offer(t, op, result, partial(element, number))


def _sums_rows(op: linalg.GenericOp) -> bool:
    """Whether a reduction to an array traverses an input in non-contiguous steps."""
    if all(map(is_number, op.results)):
        return False
    parallel = is_parallel(op)
    for index in indices(op)[: len(op.inputs)]:
        loops = [plain(expression) for expression in index]
        summed = any(loop is not None and not parallel[loop] for loop in loops)
        if summed and loops[-1] is not None and parallel[loops[-1]]:
            return True
    return False


def _write_reduction(
    t: Translation, op: linalg.GenericOp, output: Index, at: Sequence[SSAValue]
) -> list[SSAValue]:
    """Write the loops that reduce to the elements at ``at``."""
    summed = [d for d, parallel in enumerate(is_parallel(op)) if not parallel]
    loops = [t.code.index(0)] * len(op.iterator_types)
    for expression, i in zip(output, at, strict=True):
        if (loop := plain(expression)) is not None:
            loops[loop] = i
    starts = [t.element(op, value, at) for value in op.outputs]

    def body(at: Sequence[SSAValue], given: Sequence[SSAValue]) -> list[SSAValue]:
        for loop, i in zip(summed, at, strict=True):
            loops[loop] = i
        return t.iteration(op, list(loops), given)

    sizes = t.loop_sizes(op)
    return t.nests.write(op, [sizes[d] for d in summed], starts, body, lambda: True)


def _index(t: Translation, op: linalg.IndexOp) -> None:
    t.bind(op.result, t.loops[-1][op.dim.value.data])


ELEMENTS: Mapping[type[Operation], Rule] = {
    arith.ConstantOp: _constant,
    tensor.ExtractOp: _extract,
    tensor.InsertOp: _insert,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.InsertSliceOp: _insert_slice,
    tensor.CollapseShapeOp: _reshape,
    tensor.ExpandShapeOp: _reshape,
    tensor.EmptyOp: _empty,
    tensor.SplatOp: _fill,
    tensor.DimOp: _dim,
    linalg.FillOp: _fill,
    linalg.GenericOp: _generic,
    linalg.IndexOp: _index,
    kernel.CheckOp: _check,
}
"""The translation of the ops that compute numbers, and read and write elements."""
