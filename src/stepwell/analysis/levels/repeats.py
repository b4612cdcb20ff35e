"""Whether iterations of a kernel may run twice, even at the same time in two threads.

Those of a tile do that overlaps another. A second run must compute the same: it reads nothing that
the first one has overwritten. `bufferize` decides which memory an input and an output share, so the
answer on tensors is for outputs that share none.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, memref, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import Index, identity, indices, shape
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.sharing import is_border

Accesses = list[tuple[SSAValue, Index]]


class Repeats:
    """The ops of a kernel, and the memory that they read and write."""

    def __init__(self, function: kernel.FuncOp) -> None:
        kinds = (linalg.GenericOp, linalg.FillOp, memref.CopyOp)
        ops = [op for op in function.body.block.ops if isinstance(op, kinds) and not is_border(op)]
        borders = {
            value
            for op in function.body.block.ops
            if isinstance(op, linalg.GenericOp) and is_border(op)
            for value in op.outputs
        }
        self.ops = [op for op in ops if not any(value in borders for value, _ in written(op))]
        self.shared = choices.number(function, "kernel.shared")
        self.keeping: set[Operation] = set()
        """The ops that read an old value of an output, other than one that a fill wrote."""
        self._read_fills()
        args = function.body.block.args
        self.pairs = [(args[a], args[b]) for a, b in choices.aliases(function)]
        """Pairs of an input and the output that may be the same memory."""

    def _read_fills(self) -> None:
        """Drop the fills that only initialise a sum, and find the ops that read old values."""
        filled: dict[SSAValue, linalg.FillOp] = {}
        for op in list(self.ops):
            for value in (*(v for v, _ in read(op)), *loaded(op)):
                filled.pop(value, None)
            if isinstance(op, linalg.FillOp):
                ((value, _),) = written(op)
                filled[value] = op
            if not isinstance(op, linalg.GenericOp):
                continue
            for out, index, arg in zip(
                op.outputs, indices(op)[len(op.inputs) :], op.body.block.args[len(op.inputs) :],
                strict=True,
            ):  # fmt: skip
                loops = {e.position for e in index if isinstance(e, AffineDimExpr)}
                fill = filled.pop(out, None) if len(loops) == len(index) else None
                if fill is not None and fill in self.ops:
                    self.ops.remove(fill)
                elif fill is None and arg.first_use is not None:
                    self.keeping.add(op)

    def allowed(self) -> bool:
        """Whether all iterations of the shared loops may run twice."""
        memory = [value for op in self.ops for value, _ in written(op)]
        twice = {value for value in memory if memory.count(value) > 1}
        if self.keeping or not all(map(self._is_passed, twice)):
            return False
        return all(self._is_kept(*pair) for pair in self.pairs if self._is_read(pair[0]))

    def allowed_in(self, op: Operation) -> bool:
        """Whether iterations of a loop of one op alone may run twice, one after the other."""
        results = {value for value, _ in written(op)}
        reads = {value for value, _ in read(op)} | set(loaded(op))
        outside = any(not isinstance(value.owner, memref.AllocOp) for value in results)
        overwritten = {a for a, _ in self.pairs} if outside else set[SSAValue]()
        return op not in self.keeping and not reads & (results | overwritten)

    def _is_passed(self, value: SSAValue) -> bool:
        """Whether ops pass one element of a buffer to each other within a shared iteration."""
        found = [i for op in self.ops for v, i in (*read(op), *written(op)) if v is value]
        inner = {k for expr in found[0] for k in expr.used_dims() if k >= self.shared}
        inside = any(value in loaded(op) for op in self.ops)
        return all(index == found[0] for index in found) and not inner and not inside

    def _is_read(self, value: SSAValue) -> bool:
        return any(value in [v for v, _ in read(op)] or value in loaded(op) for op in self.ops)

    def _is_kept(self, input: SSAValue, output: SSAValue) -> bool:
        """Whether one op alone reads ``input``, to select between its element and another."""
        readers = [op for op in self.ops if any(v is input for v, _ in read(op))]
        inside = any(value in (input, output) for op in self.ops for value in loaded(op))
        if len(readers) != 1 or inside or self._is_read(output):
            return False
        (op,) = readers
        numbers = [k for k, (value, _) in enumerate(read(op)) if value is input]
        if len(numbers) != 1 or not isinstance(op, linalg.GenericOp):
            return False
        argument, (_, index) = op.body.block.args[numbers[0]], read(op)[numbers[0]]
        uses, end = list(argument.uses), op.body.block.last_op
        assert end is not None
        if len(uses) == 1 and uses[0].operation is end:  # a copy
            return written(op)[uses[0].index] == (output, index)
        if len(uses) != 1 or not isinstance(chosen := uses[0].operation, arith.SelectOp):
            return False
        pairs = zip(end.operands, written(op), strict=True)
        kept = any(value is chosen.result and to == (output, index) for value, to in pairs)
        return uses[0].index > 0 and chosen.result.has_one_use() and kept


def read(op: Operation) -> Accesses:
    """Return the operands that an op reads, with their indices."""
    if isinstance(op, linalg.GenericOp):
        return list(zip(op.inputs, indices(op), strict=False))
    return [(op.operands[0], identity(len(shape(op.operands[0]))))] if _copies(op) else []


def written(op: Operation) -> Accesses:
    """Return the values that an op writes, with the indices: results on tensors, else buffers."""
    if isinstance(op, linalg.GenericOp):
        return list(zip(op.results or op.outputs, indices(op)[len(op.inputs) :], strict=True))
    value = op.results[0] if op.results else op.operands[-1]
    return [(value, identity(len(shape(value))))]


def loaded(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of loads in an op's body, as those of a gather."""
    for inner in op.walk() if isinstance(op, linalg.GenericOp) else ():
        if isinstance(inner, memref.LoadOp | tensor.ExtractOp):
            yield from inner.operands


def _copies(op: Operation) -> bool:
    return isinstance(op, memref.CopyOp)
