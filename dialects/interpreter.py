"""Run a module of any level in NumPy, op by op: the oracle every pass is checked against.

An op computes by its `evaluate` rule where it has one (ops with regions, calls, buffers), else by
its `reference` rule, else by its `decomposition`. Tensors, vectors and memrefs are arrays,
`index` and scalars NumPy scalars; a memref is an array shared by all its views.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import BFloat16Type, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import ConstantLike, IsTerminator, SymbolTable

from stepwell.core.dtypes import round_to_bf16
from stepwell.core.rules import MissingRule, RuleTable
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import readings

Value: TypeAlias = Any
"""What a value of the program is at run time: a NumPy array or a NumPy scalar."""

evaluate: RuleTable[Callable[[Interpreter, Any, Sequence[Value]], Sequence[Value]]] = RuleTable(
    "evaluate"
)
"""``(interpreter, op, operands) -> results``, for ops that need more than their operands."""


class Exhausted(Exception):
    """The program ran longer than it was allowed to."""


Meaning: TypeAlias = Callable[[Sequence[Value]], Sequence[Value]]
"""What an op makes of its operands."""

_ARRAYS = (np.generic, np.ndarray)


class _Values(dict[SSAValue, Value]):
    def __missing__(self, value: SSAValue) -> Value:
        raise KeyError(f"{value} has no value yet")


ELEMENTS = 4096
"""Numbers that NumPy computes in the time that one op takes: about 5 us."""


@dataclass
class _Plan:
    """A block, read once: its ops with what they take and give, and what it hands on."""

    constants: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    steps: list[tuple[Operation, tuple[SSAValue, ...], tuple[SSAValue, ...], Meaning]] = field(
        default_factory=list[Any]
    )
    handed: tuple[SSAValue, ...] = ()


@dataclass
class Interpreter:
    """Evaluates ops of one module; ``resources`` are the named weights beside it."""

    module: ModuleOp
    resources: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fuel: int | None = None
    """How many more ops may be evaluated before `Exhausted` is raised; None is no limit.

    An op on large arrays counts as many: see `ELEMENTS`.
    """
    effects: list[tuple[Operation, Sequence[Value]]] | None = None
    """Collects what ops do whose only meaning is an effect, which no rule tells; None refuses."""
    watch: Callable[[Operation, Sequence[Value], Sequence[Value]], None] | None = None
    """Is told of each op of a block that was evaluated, with its operands and results."""
    loop_indices: list[Sequence[Value]] = field(default_factory=list[Sequence[Value]], init=False)
    """The loop indices of each linalg.generic being run, innermost last."""
    _values: _Values = field(default_factory=lambda: _Values(), init=False)
    """What the values of the function being run are at present."""
    _plans: dict[Block, _Plan] = field(default_factory=dict[Block, "_Plan"], init=False)
    """The blocks run in this call and all within it."""
    _depth: int = field(default=0, init=False)

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Call the function or kernel ``name``; arguments and results are arrays.

        ValueError where their sizes are not what the function wants.
        """
        callee = SymbolTable.lookup_symbol(self.module, name)
        if callee is None:
            raise LookupError(f"no function @{name} in the module")
        if not self._depth:
            self._plans = {}  # a pass may have changed what was run before
            import_module("stepwell.dialects.checks").check_call(callee, arguments)
        outer, self._values = self._values, _Values()
        self._depth += 1
        try:
            with np.errstate(all="ignore"):
                return self.run(callee.regions[0], arguments)
        finally:
            self._values = outer
            self._depth -= 1

    def run(self, region: Region, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Run a region of one block; return what its terminator hands on."""
        return self.run_block(region.block, arguments)

    def run_block(self, block: Block, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Run ``block``; return its terminator's operands."""
        values = self._values
        values.update(zip(block.args, arguments, strict=True))
        if (plan := self._plans.get(block)) is None:
            plan = self._plans[block] = self._planned(block)
        values.update(plan.constants)
        for op, operands, results, meaning in plan.steps:
            given = [values[v] for v in operands]
            found = meaning(given) if self.fuel is None else self.evaluate(op, given)
            if self.watch is not None:
                self.watch(op, given, found)
            if len(results) == 1 == len(found):
                values[results[0]] = found[0]
            else:
                values.update(zip(results, found, strict=True))
        return tuple([values[v] for v in plan.handed])

    def values_of(
        self,
        block: Block,
        arguments: Mapping[SSAValue, Value],
        wanted: Sequence[SSAValue],
        but: Container[Operation],
    ) -> list[Value]:
        """Run ``block`` without some of its ops; return values in it that do not need these."""
        values = self._values
        values.update(arguments)
        for op in block.ops:
            if op not in but and not op.has_trait(IsTerminator):
                values.update(zip(op.results, self._results(op), strict=True))
        return [values[v] for v in wanted]

    def _results(self, op: Operation) -> tuple[Value, ...]:
        return self.evaluate(op, [self._values[v] for v in op.operands])

    def _planned(self, block: Block) -> _Plan:
        plan = _Plan()
        for op in block.ops:
            if op is block.last_op and op.has_trait(IsTerminator):  # unregistered ops say they are
                plan.handed = tuple(op.operands)
                break
            if not op.operands and len(op.results) == 1 and op.has_trait(ConstantLike):
                (value,) = self._results(op)
                if isinstance(value, np.generic):
                    plan.constants[op.results[0]] = value
                    continue
            plan.steps.append((op, tuple(op.operands), tuple(op.results), self._meaning(op)))
        return plan

    def _meaning(self, op: Operation) -> Meaning:
        """Return what `_evaluated` does for this op, with what can be known of it looked up."""
        kind = type(op)
        if (rule := evaluate.get(kind)) is not None:
            return partial(rule, self, op)
        meaning = readings.reference.get(kind)
        if meaning is None or any(_is_bf16(value) for value in op.results):
            return partial(self._evaluated, op)

        def results(operands: Sequence[Value]) -> Sequence[Value]:
            found = meaning(op, operands)
            return (found,) if isinstance(found, _ARRAYS) else found

        return results

    def evaluate(self, op: Operation, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of one op."""
        if self.fuel is None:
            return self._evaluated(op, operands)
        self.fuel -= 1 + _elements(op, operands) // ELEMENTS
        if self.fuel < 0:
            raise Exhausted
        found = self._evaluated(op, operands)
        sizes = (each.size for each in found if isinstance(each, np.ndarray))
        self.fuel -= max(sizes, default=0) // ELEMENTS
        return found

    def _evaluated(self, op: Operation, operands: Sequence[Value]) -> tuple[Value, ...]:
        kind = type(op)
        if (rule := evaluate.get(kind)) is not None:
            return tuple(rule(self, op, operands))
        if (meaning := readings.reference.get(kind)) is not None:
            results = meaning(op, operands)
            results = (results,) if isinstance(results, _ARRAYS) else results
            return tuple(_as_declared(r, v) for r, v in zip(results, op.results, strict=True))
        if (parts := readings.decomposition.get(kind)) is not None:
            return self._by_parts(op, operands, parts)
        if self.effects is not None and not op.results and not op.regions:
            self.effects.append((op, tuple(map(np.copy, operands))))
            return ()
        raise MissingRule(f"{op.name} has no reference rule yet; add one beside {kind.__name__}")

    def _by_parts(self, op: Operation, operands: Sequence[Value], parts: Any) -> tuple[Value, ...]:
        """Evaluate the decomposition of ``op``, built in a block of its own."""
        block = Block(arg_types=[v.type for v in op.operands])
        stand_in = op.clone(dict(zip(op.operands, block.args, strict=True)))
        block.add_op(stand_in)
        results = parts(Builder(InsertPoint.before(stand_in)), stand_in)
        given: dict[SSAValue, Value] = dict(zip(block.args, operands, strict=True))
        found = tuple(self.values_of(block, given, results, {stand_in}))
        for each in block.ops:  # nobody else knows these: the next time they are others
            for value in each.results:
                self._values.pop(value, None)
        return found


def _elements(op: Operation, operands: Sequence[Value]) -> int:
    """Return about how many numbers an op computes, as far as its operands tell."""
    sizes = [each.size for each in operands if isinstance(each, np.ndarray)]
    if type(op) not in readings.products or len(sizes) < 2:
        return max(sizes, default=0)
    shape = op.results[0].type.get_shape()  # pyright: ignore
    result = max(sizes) if DYNAMIC in shape else math.prod(shape)
    return math.isqrt(sizes[0] * sizes[1] * result)  # exact for a product of matrices


def _as_declared(result: Value, value: SSAValue) -> Value:
    """Round to bf16 where the declared type says so; NumPy has no such type to do it itself."""
    return round_to_bf16(np.asarray(result)) if _is_bf16(value) else result


def _is_bf16(value: SSAValue) -> bool:
    kind = value.type
    element = kind.element_type if isinstance(kind, TensorType) else kind
    return isinstance(element, BFloat16Type)
