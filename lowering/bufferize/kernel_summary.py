"""The summary of a kernel: the buffer of each tensor in it, and the uses of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from stepwell.analysis.levels import levels_of_versions
from stepwell.analysis.sizes import Shape, Sizes
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.sharing import is_border
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.bufferize.chains import (
    Read,
    Write,
    operations,
    reads_of,
    returned,
    shared_axes,
    writes_of,
)

SCRATCH_BYTES = 32 * 1024
"""Limit, in bytes, on the part of a kernel's own temporary that one shared iteration needs."""
IN_FLIGHT_BYTES = 1 << 18
"""The same limit for all shared iterations that run at a time: vectors, tiles, bands of rows."""
STACK_BYTES = 1 << 19
"""Limit, in bytes, on all temporaries of a kernel: they share a thread's stack with blocks."""


@dataclass(eq=False)
class Chain:
    """Tensors that occupy the same memory one after the other."""

    values: list[SSAValue] = field(default_factory=list[SSAValue])
    first: int = 0
    """Number of the op that first writes it."""
    last: int = 0
    """Number of the op that last reads or writes it."""
    argument: int | None = None
    """The number of the kernel's argument that is its memory."""
    touched: bool = False

    @property
    def is_virtual(self) -> bool:
        """Whether it is virtual padding: readers read the source of the border generic instead."""
        return any(isinstance(v.owner, Operation) and is_border(v.owner) for v in self.values)

    @property
    def type(self) -> TensorType[Attribute]:
        """The type of the tensors."""
        return tensor_type(self.values[0])


class Accesses:
    """The ops of a kernel that read or write elements, in order, with their reads and writes."""

    def __init__(self, function: kernel.FuncOp) -> None:
        self.ops = operations(function)
        self.reads = [list(reads_of(op)) for op in self.ops]
        self.writes = [writes_of(op) for op in self.ops]
        self.of: dict[SSAValue, list[tuple[int, Read]]] = {}
        """The reads of each tensor, with the number of the op."""
        for number, reads in enumerate(self.reads):
            for read in reads:
                self.of.setdefault(read.value, []).append((number, read))


@dataclass
class KernelSummary:
    """The buffers of one kernel, and how it uses its arguments."""

    function: kernel.FuncOp
    chain_of: dict[SSAValue, Chain]
    """The chain of every tensor defined in the kernel's body."""
    extras: list[Chain]
    """Temporaries that the host allocates and passes as further destinations."""
    extra_shapes: list[Shape]
    sizes: Sizes
    reads_input: list[bool]
    """For each input, whether its elements are read, and not only its shape."""
    reads_destination: list[bool]
    """For each destination, whether its old elements are read or returned."""
    in_place: list[tuple[int, int]]
    """Pairs of an input and a destination, each numbered among its kind, that may alias."""


def summarize(function: kernel.FuncOp, wanted: Collection[tuple[int, int]] = ()) -> KernelSummary:
    """Return the summary of a kernel whose chains are linear.

    wanted : pairs as in `KernelSummary.in_place` whose aliasing spares a copy: no temporary is put
        into such a destination if its early write would prevent the aliasing
    """
    arguments = function.body.block.args
    results = len(returned(function).values)
    inputs, destinations = len(arguments) - results, arguments[len(arguments) - results :]
    accesses = Accesses(function)
    chain_of = _chains(function, accesses)
    sizes = Sizes(arguments)
    begun = {w.destination for writes in accesses.writes for w in writes if w.reads}
    kept = set(returned(function).values)
    reads_destination = [v in accesses.of or v in begun or v in kept for v in destinations]

    def usable(chain: Chain, target: Chain) -> bool:
        if target.argument is None:
            return True
        number = target.argument - inputs
        over = [arguments[i] for i, d in wanted if d == number]
        return not reads_destination[number] and not any(
            _dies_at(function, accesses, value, target)
            and not _dies_at(function, accesses, value, chain)
            for value in over
        )

    _reuse(function, accesses, chain_of, usable, None)
    _reuse(function, accesses, chain_of, usable, lambda c: not _is_small(function, accesses, c))
    _reuse(function, accesses, chain_of, usable, lambda c: _is_row(function, accesses, c))
    extras = _host_temporaries(function, accesses, chain_of)
    for number, chain in enumerate(extras):
        chain.argument = len(arguments) + number
    return KernelSummary(
        function,
        chain_of,
        extras,
        [sizes.shape(c.values[0]) for c in extras],
        sizes,
        [v in accesses.of for v in arguments[:inputs]],
        reads_destination,
        _in_place(function, accesses, chain_of, inputs, results),
    )


def _chains(function: kernel.FuncOp, accesses: Accesses) -> dict[SSAValue, Chain]:
    chain_of: dict[SSAValue, Chain] = {}
    for op in function.body.block.ops:
        if op.name == "tensor.empty":
            chain_of[op.results[0]] = Chain([op.results[0]])
    for number, (reads, writes) in enumerate(zip(accesses.reads, accesses.writes, strict=True)):
        for read in reads:
            if (chain := chain_of.get(read.value)) is not None:
                chain.last, chain.touched = number, True
        for write in writes:
            _extend(chain_of, write, number)
    arguments = function.body.block.args
    first = len(arguments) - len(returned(function).values)
    for number, value in enumerate(returned(function).values):
        if (chain := chain_of.get(value)) is not None:
            chain.argument = first + number
    return chain_of


def _extend(chain_of: dict[SSAValue, Chain], write: Write, number: int) -> None:
    chain = chain_of.get(write.destination)
    if chain is None:
        assert isinstance(write.destination, BlockArgument)
        chain = Chain([write.destination], argument=write.destination.index)
        chain_of[write.destination] = chain
    if not chain.touched:
        chain.first, chain.touched = number, True
    chain.last = number
    chain.values.append(write.result)
    chain_of[write.result] = chain


def _reuse(
    function: kernel.FuncOp,
    accesses: Accesses,
    chain_of: dict[SSAValue, Chain],
    usable: Callable[[Chain, Chain], bool],
    kind: Callable[[Chain], bool] | None,
) -> None:
    """Put each temporary into the memory of a tensor that is first written when it is dead.

    Without ``kind``, any temporary may go into a destination. With it, temporaries of this kind,
    last to first, go into a destination or into a later temporary of this kind.
    """
    chains = list(dict.fromkeys(chain_of.values()))
    for chain in reversed(chains) if kind else chains:
        unwritten = len(chain.values) == 1
        if chain.argument is not None or not chain.touched or chain.is_virtual or unwritten:
            continue
        if kind and not kind(chain):
            continue
        for target in chains:
            open = target.argument is not None or (kind and target.touched and kind(target))
            there = chain_of[target.values[0]] is target and target is not chain
            if (
                there
                and open
                and not target.is_virtual
                and usable(chain, target)
                and _fits(function, accesses, chain, target)
            ):
                target.first = chain.first
                target.values.extend(chain.values)
                chain_of.update((v, target) for v in chain.values)
                break


def _fits(function: kernel.FuncOp, accesses: Accesses, chain: Chain, target: Chain) -> bool:
    if chain.type != target.type or chain.last > target.first:
        return False
    written = [w for w in accesses.writes[target.first] if w.result in target.values]
    if not written:
        return False
    if chain.last == target.first:
        op = accesses.ops[chain.last]
        if not all(_same_index(op, r, written[0]) for r in _uses(accesses, chain, True)):
            return False
    elif DYNAMIC_INDEX in chain.type.get_shape():
        return False
    return all(
        _same_iteration(function, map, written[0].map)
        for map in (r.map for r in _uses(accesses, chain, False))
    )


def _uses(accesses: Accesses, chain: Chain, at_the_end: bool) -> list[Read | Write]:
    """Return the reads and writes of ``chain``: those of its last op, or those of all ops."""
    members = set(chain.values)
    uses: list[Read | Write] = []
    for number in range(chain.last if at_the_end else chain.first, chain.last + 1):
        uses.extend(r for r in accesses.reads[number] if r.value in members)
        uses.extend(w for w in accesses.writes[number] if w.result in members)
    return uses


def _same_index(op: Operation, use: Read | Write, written: Write) -> bool:
    """Whether ``op`` reads each element only in the iteration that overwrites it."""
    return (
        isinstance(op, linalg.GenericOp)
        and isinstance(use, Read)
        and use.map is not None
        and use.map == written.map
        and _is_permutation(use.map)
    )


def _is_permutation(map: AffineMap) -> bool:
    dims = [e.position for e in map.results if isinstance(e, AffineDimExpr)]
    return len(dims) == len(map.results) and sorted(dims) == list(range(map.num_dims))


def _same_iteration(
    function: kernel.FuncOp, map: AffineMap | None, other: AffineMap | None
) -> bool:
    """Whether one iteration of the shared loops accesses the same part through both maps."""
    shared = choices.number(function, "kernel.shared")
    if not shared:
        return True
    if map is None or other is None:
        return False
    axes = shared_axes(map, shared)
    return None not in axes and axes == shared_axes(other, shared)


def _is_row(function: kernel.FuncOp, accesses: Accesses, chain: Chain) -> bool:
    """Whether a temporary is scratch with several elements for each shared iteration."""
    if not _is_small(function, accesses, chain):
        return False
    shared = choices.number(function, "kernel.shared")
    maps = [use.map for use in _uses(accesses, chain, False)]
    return all(
        map is not None and len(set(shared_axes(map, shared)) - {None}) < chain.type.get_num_dims()
        for map in maps
    )


def _host_temporaries(
    function: kernel.FuncOp, accesses: Accesses, chain_of: dict[SSAValue, Chain]
) -> list[Chain]:
    """Return the temporaries that do not fit a kernel's stack, each alone or with those before."""
    extras: list[Chain] = []
    left, points = STACK_BYTES, _in_flight(function)
    for chain in dict.fromkeys(chain_of.values()):
        if chain.argument is not None or not chain.touched or chain.is_virtual:
            continue
        bytes = _part(function, accesses, chain)
        if _is_small(function, accesses, chain) and bytes is not None and bytes * points <= left:
            left -= bytes * points
        else:
            extras.append(chain)
    return extras


def _is_small(function: kernel.FuncOp, accesses: Accesses, chain: Chain) -> bool:
    """Whether one shared iteration's part of a temporary is static and fits the scratch."""
    bytes = _part(function, accesses, chain)
    if bytes is None:
        return False
    return bytes <= SCRATCH_BYTES and bytes * _in_flight(function) <= IN_FLIGHT_BYTES


def _part(function: kernel.FuncOp, accesses: Accesses, chain: Chain) -> int | None:
    """Return the bytes of one shared iteration's part of a temporary, None if not static."""
    shape = list(chain.type.get_shape())
    for use in _uses(accesses, chain, False):
        if isinstance(use, Write) and use.map is not None:
            axes = shared_axes(use.map, choices.number(function, "kernel.shared"))
            part = [n for a, n in enumerate(shape) if a not in axes]
            known = DYNAMIC_INDEX not in part
            return prod(part) * dtype(chain.type.element_type).bytes if known else None
    return None


def _in_flight(function: kernel.FuncOp) -> int:
    """Return the number of shared iterations that run at a time, the most of any version.

    Each of them has its own part of the temporaries.
    """
    return max(
        prod(max(found.step(loop), 1) for loop in range(found.shared))
        for found in levels_of_versions(function)
    )


def _in_place(
    function: kernel.FuncOp,
    accesses: Accesses,
    chain_of: dict[SSAValue, Chain],
    inputs: int,
    results: int,
) -> list[tuple[int, int]]:
    """Return pairs of an input and a destination whose elements are read before their writes."""
    if any(isinstance(op, scf.ForOp) for op in accesses.ops):
        return []
    arguments = function.body.block.args
    found: list[tuple[int, int]] = []
    for d in range(results):
        chains = {c for c in chain_of.values() if c.argument == inputs + d and c.touched}
        if not chains:
            continue
        first = min(c.first for c in chains)
        written = [w for w in accesses.writes[first] if chain_of[w.result] in chains]
        if not written:
            continue
        for i in range(inputs):
            same = arguments[i].type == arguments[inputs + d].type
            if same and _dies_before(function, accesses, arguments[i], first, written[0]):
                found.append((i, d))
    return found


def _dies_at(function: kernel.FuncOp, accesses: Accesses, value: SSAValue, chain: Chain) -> bool:
    """Whether each element of an input is read before the same element of a chain is written."""
    written = [w for w in accesses.writes[chain.first] if w.result in chain.values]
    return bool(written) and _dies_before(function, accesses, value, chain.first, written[0])


def _dies_before(
    function: kernel.FuncOp, accesses: Accesses, value: SSAValue, first: int, written: Write
) -> bool:
    same_size = DYNAMIC_INDEX not in tensor_type(value).get_shape()
    reads = accesses.of.get(value, ())
    for number, read in reads:
        if number > first or read.map is None:
            return False
        if number == first:
            if not _same_index(accesses.ops[first], read, written):
                return False
            same_size = True
        elif not _same_iteration(function, read.map, written.map):
            return False
    return bool(reads) and same_size
