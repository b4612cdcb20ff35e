"""Run a module of any level in NumPy, op by op: the oracle that every pass is checked against.

An op is computed by its `evaluate` rule if it has one (ops with regions, calls, buffers), else by
its `reference` rule, else by its `decomposition`. Tensors, vectors and memrefs are arrays, `index`
and scalars NumPy scalars; a memref is an array shared by all its views.
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
from xdsl.dialects.builtin import BFloat16Type, ModuleOp, TensorType, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import ConstantLike, IsTerminator, SymbolTable

from stepwell.core.dtypes import round_to_bf16
from stepwell.core.rules import MissingRule, RuleTable
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import readings

Value: TypeAlias = Any
"""The run-time value of an SSA value: a NumPy array or a NumPy scalar."""

evaluate: RuleTable[Callable[[Interpreter, Any, Sequence[Value]], Sequence[Value]]] = RuleTable(
    "evaluate"
)
"""``(interpreter, op, operands) -> results``, for ops that need more than operand values."""


class Exhausted(Exception):
    """The program exceeded its limit of evaluated ops."""


Meaning: TypeAlias = Callable[[Sequence[Value]], Sequence[Value]]
"""The function that an op computes."""

_ARRAYS = (np.generic, np.ndarray)


class _Values(dict[SSAValue, Value]):
    def __missing__(self, value: SSAValue) -> Value:
        raise KeyError(f"{value} has no value yet")


ELEMENTS = 4096
"""Numbers that NumPy computes in the time of one evaluated op: about 5 us."""


@dataclass
class _Plan:
    """The cached form of a block: its ops with operands and results, and its terminator's."""

    constants: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    steps: list[tuple[Operation, tuple[SSAValue, ...], tuple[SSAValue, ...], Meaning]] = field(
        default_factory=list[Any]
    )
    handed: tuple[SSAValue, ...] = ()


@dataclass
class Interpreter:
    """Evaluates the ops of one module; ``resources`` are its named weights."""

    module: ModuleOp
    resources: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fuel: int | None = None
    """The number of further ops that may be evaluated before `Exhausted`; None for no limit.

    An op on large arrays counts as several: see `ELEMENTS`.
    """
    effects: list[tuple[Operation, Sequence[Value]]] | None = None
    """Collects ops without a rule whose only meaning is an effect; None refuses them."""
    watch: Callable[[Operation, Sequence[Value], Sequence[Value]], None] | None = None
    """Called for each evaluated op of a block, with its operands and results."""
    loop_indices: list[Sequence[Value]] = field(default_factory=list[Sequence[Value]], init=False)
    """The loop indices of each linalg.generic being run, innermost last."""
    _values: _Values = field(default_factory=lambda: _Values(), init=False)
    """The current values of the function being run."""
    _plans: dict[Block, _Plan] = field(default_factory=dict[Block, "_Plan"], init=False)
    """The plans of the blocks run in this call, including nested calls."""
    _depth: int = field(default=0, init=False)

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Call the function or kernel ``name``; arguments and results are arrays.

        ValueError if their sizes violate the function's conditions.
        """
        callee = SymbolTable.lookup_symbol(self.module, name)
        if callee is None:
            raise LookupError(f"no function @{name} in the module")
        if not self._depth:
            self._plans = {}  # a pass may have changed blocks since the last call
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
        """Run a region of one block; return its terminator's operands."""
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
        """Run ``block`` without the ops ``but``; return values that do not depend on these."""
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
            if op is block.last_op and op.has_trait(IsTerminator):  # unregistered ops have it
                plan.handed = tuple(op.operands)
                break
            if not op.operands and len(op.results) == 1 and op.has_trait(ConstantLike):
                (value,) = self._results(op)
                if isinstance(value, np.generic):
                    plan.constants[op.results[0]] = value
                    continue
            plan.steps.append((op, tuple(op.operands), tuple(op.results), self._rule_of(op)))
        return plan

    def _rule_of(self, op: Operation) -> Meaning:
        """Return `_evaluated` for this op, with all look-ups done in advance."""
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
            return self._by_decomposition(op, operands, parts)
        if self.effects is not None and not op.results and not op.regions:
            self.effects.append((op, tuple(map(np.copy, operands))))
            return ()
        raise MissingRule(f"{op.name} has no reference rule yet; add one beside {kind.__name__}")

    def _by_decomposition(
        self, op: Operation, operands: Sequence[Value], parts: Any
    ) -> tuple[Value, ...]:
        """Evaluate the decomposition of ``op``, built in its own block."""
        block = Block(arg_types=[v.type for v in op.operands])
        stand_in = op.clone(dict(zip(op.operands, block.args, strict=True)))
        block.add_op(stand_in)
        results = parts(Builder(InsertPoint.before(stand_in)), stand_in)
        given: dict[SSAValue, Value] = dict(zip(block.args, operands, strict=True))
        found = tuple(self.values_of(block, given, results, {stand_in}))
        for each in block.ops:  # these values are new in each evaluation and never read again
            for value in each.results:
                self._values.pop(value, None)
        return found


def _elements(op: Operation, operands: Sequence[Value]) -> int:
    """Return roughly how many numbers an op computes, estimated from its operands."""
    sizes = [each.size for each in operands if isinstance(each, np.ndarray)]
    if type(op) not in readings.products or len(sizes) < 2:
        return max(sizes, default=0)
    shape = op.results[0].type.get_shape()  # pyright: ignore
    result = max(sizes) if DYNAMIC in shape else math.prod(shape)
    return math.isqrt(sizes[0] * sizes[1] * result)  # exact for a matrix product


def _as_declared(result: Value, value: SSAValue) -> Value:
    """Round to bf16 if the declared type is bf16, which NumPy lacks."""
    return round_to_bf16(np.asarray(result)) if _is_bf16(value) else result


def _is_bf16(value: SSAValue) -> bool:
    kind = value.type
    element = kind.element_type if isinstance(kind, TensorType | VectorType) else kind
    return isinstance(element, BFloat16Type)
