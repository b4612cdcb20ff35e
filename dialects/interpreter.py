"""Run a module of any level in NumPy, op by op: the oracle every pass is checked against.

An op computes by its `evaluate` rule where it has one (ops with regions, calls, buffers), else by
its `reference` rule, else by its `decomposition`. Tensors, vectors and memrefs are arrays,
`index` and scalars NumPy scalars; a memref is an array shared by all its views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import BFloat16Type, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsTerminator, SymbolTable

from stepwell.core.dtypes import round_to_bf16
from stepwell.core.rules import MissingRule, RuleTable
from stepwell.dialects import readings

Value: TypeAlias = Any
"""What a value of the program is at run time: a NumPy array or a NumPy scalar."""

evaluate: RuleTable[Callable[[Interpreter, Any, Sequence[Value]], Sequence[Value]]] = RuleTable(
    "evaluate"
)
"""``(interpreter, op, operands) -> results``, for ops that need more than their operands."""


class Exhausted(Exception):
    """The program ran longer than it was allowed to."""


@dataclass
class Interpreter:
    """Evaluates ops of one module; ``resources`` are the named weights beside it."""

    module: ModuleOp
    resources: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fuel: int | None = None
    """How many more ops may be evaluated before `Exhausted` is raised; None is no limit."""
    loop_indices: list[Sequence[Value]] = field(default_factory=list[Sequence[Value]], init=False)
    """The loop indices of each linalg.generic being run, innermost last."""
    _scopes: list[dict[SSAValue, Value]] = field(
        default_factory=list[dict[SSAValue, Value]], init=False
    )

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Call the function or kernel ``name``; arguments and results are arrays."""
        callee = SymbolTable.lookup_symbol(self.module, name)
        if callee is None:
            raise LookupError(f"no function @{name} in the module")
        outer, self._scopes = self._scopes, []
        try:
            with np.errstate(all="ignore"):
                return self.run(callee.regions[0], arguments)
        finally:
            self._scopes = outer

    def run(self, region: Region, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Run a region of one block; return what its terminator hands on."""
        return self.run_block(region.block, arguments)

    def run_block(self, block: Block, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Run ``block``; return its terminator's operands."""
        self._scopes.append(dict(zip(block.args, arguments, strict=True)))
        try:
            for op in block.ops:
                if op.has_trait(IsTerminator):
                    return tuple(self[v] for v in op.operands)
                results = self.evaluate(op, [self[v] for v in op.operands])
                self._scopes[-1].update(zip(op.results, results, strict=True))
            return ()
        finally:
            self._scopes.pop()

    def __getitem__(self, value: SSAValue) -> Value:
        """Return the present value of ``value``, from the innermost scope outwards."""
        for scope in reversed(self._scopes):
            if value in scope:
                return scope[value]
        raise KeyError(f"{value} has no value yet")

    def evaluate(self, op: Operation, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of one op."""
        if self.fuel is not None:
            self.fuel -= 1
            if self.fuel < 0:
                raise Exhausted
        kind = type(op)
        if (rule := evaluate.get(kind)) is not None:
            return tuple(rule(self, op, operands))
        if (meaning := readings.reference.get(kind)) is not None:
            results = meaning(op, operands)
            results = (results,) if isinstance(results, np.ndarray | np.generic) else results
            return tuple(_as_declared(r, v) for r, v in zip(results, op.results, strict=True))
        if (parts := readings.decomposition.get(kind)) is not None:
            return self._by_parts(op, operands, parts)
        raise MissingRule(f"{op.name} has no reference rule yet; add one beside {kind.__name__}")

    def _by_parts(self, op: Operation, operands: Sequence[Value], parts: Any) -> tuple[Value, ...]:
        """Evaluate the decomposition of ``op``, built in a block of its own."""
        block = Block(arg_types=[v.type for v in op.operands])
        stand_in = op.clone(dict(zip(op.operands, block.args, strict=True)))
        block.add_op(stand_in)
        results = parts(Builder(InsertPoint.before(stand_in)), stand_in)
        self._scopes.append(dict(zip(block.args, operands, strict=True)))
        try:
            for each in block.ops:
                if each is not stand_in:
                    values = self.evaluate(each, [self[v] for v in each.operands])
                    self._scopes[-1].update(zip(each.results, values, strict=True))
            return tuple(self[v] for v in results)
        finally:
            self._scopes.pop()


def _as_declared(result: Value, value: SSAValue) -> Value:
    """Round to bf16 where the declared type says so; NumPy has no such type to do it itself."""
    kind = value.type
    element = kind.element_type if isinstance(kind, TensorType) else kind
    return round_to_bf16(np.asarray(result)) if isinstance(element, BFloat16Type) else result
