"""The scalars of a function: which of them on buffers are equal to which on tensors."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.sizes import Shape, Sizes


@dataclass
class Scalars:
    """The scalars of one function, by value numbers."""

    sizes: Sizes
    _known: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])
    """Results of scalar ops on tensors by value number: op, attributes and operands."""

    def record(self, op: Operation) -> None:
        """Record a scalar op on tensors."""
        for key, result in self._results(op):
            self._known.setdefault(key, result)

    def match(self, op: Operation) -> None:
        """Equate the results of a scalar op on buffers with those of an equal op on tensors."""
        for key, result in self._results(op):
            if key in self._known:
                self.sizes.equate(result, self._known[key])

    def _results(self, op: Operation) -> Iterator[tuple[Hashable, SSAValue]]:
        if op.regions or any(is_array(v) for v in op.operands):
            return
        of = (*sorted(op.properties.items()), *sorted(op.attributes.items()))
        operands = self.numbers(op.operands)
        for number, result in enumerate(op.results):
            yield (type(op), of, operands, result.type, number), result

    def equate(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Equate the scalars among block arguments or results, on tensors and on buffers."""
        for was, now in zip([v for v in old if not is_array(v)], new, strict=False):
            self.sizes.equate(now, was)

    def numbers(self, values: Sequence[SSAValue]) -> Shape:
        """Return the value number of each scalar among ``values``."""
        return tuple(self.sizes.of(v) for v in values if not is_array(v))


def is_array(value: SSAValue) -> bool:
    """Whether a value is a tensor or a buffer."""
    return isinstance(value.type, TensorType | MemRefType)


def arrays(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the tensors and buffers among ``values``."""
    return [v for v in values if is_array(v)]
