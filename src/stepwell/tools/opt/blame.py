"""Find the op that a pass changed: the first with a different value, searched from the results.

Both modules are run again and every value is recorded. Where a result differs, the two ops that
define it are compared: if they are equal the difference is in one of their operands, and the search
continues there; if all operands agree, or another op defines the value now, the op is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import SymbolTable

from stepwell.core.diagnostics import Place
from stepwell.dialects import kernel
from stepwell.dialects.readings import Array
from stepwell.dialects.types import places

MAX_NOTED_OPS = 4000
"""The most ops whose values are recorded in a run."""
LARGEST = 1 << 16
"""The most elements of a value that is recorded."""

Same: TypeAlias = Callable[[Array, Array], bool]


@dataclass
class Record:
    """One evaluated op: its operands and results, and the buffers it was given afterwards."""

    op: Operation
    operands: Sequence[Any]
    results: Sequence[Any]

    @property
    def name(self) -> str:
        """The name of the op."""
        return name_of(self.op)

    @property
    def place(self) -> Place | None:
        """The location of the op in the source."""
        found = places(self.op.location)
        return found[0] if found else None


@dataclass
class Run:
    """The ops of one call, in execution order."""

    records: list[Record] = field(default_factory=list[Record])
    created: dict[SSAValue, Record] = field(default_factory=dict[SSAValue, Record])

    def watch(self, op: Operation, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Record an op; the interpreter calls this."""
        if len(self.records) >= MAX_NOTED_OPS:
            return
        record = Record(op, [_recorded(v) for v in operands], [_recorded(v) for v in results])
        self.records.append(record)
        for value in op.results:
            self.created[value] = record


def name_of(op: Operation) -> str:
    """Return the name of an op in text."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def _recorded(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.generic) or np.size(value) <= LARGEST else None


@dataclass
class Search:
    """Compares a run of the module before a pass with one of the module after it."""

    before: Run
    after: Run
    same: Same

    def from_result(
        self, old: ModuleOp, new: ModuleOp, entry: str, number: int
    ) -> Operation | None:
        """Return the op to blame for result ``number``, preferably from before the pass."""
        was, now = _returned(old, entry), _returned(new, entry)
        if was is not None and now is not None and number < min(len(was), len(now)):
            return self._walk(was[number], now[number], set())
        return self.in_order()

    def _walk(self, was: SSAValue, now: SSAValue, seen: set[SSAValue]) -> Operation | None:
        old, new = self.before.created.get(was), self.after.created.get(now)
        if old is None or was in seen:
            return was.owner if isinstance(was.owner, Operation) else None
        seen.add(was)
        if new is None or old.name != new.name or len(old.operands) != len(new.operands):
            return self._vanished(old, seen).op
        for k, other in enumerate(_order(old.op, new.op)):
            if not self._agree(old.operands[k], new.operands[other]):
                return self._walk(old.op.operands[k], new.op.operands[other], seen) or old.op
        if (old.op.properties, old.op.attributes) != (new.op.properties, new.op.attributes):
            return old.op
        return self._nested(old, new) or old.op

    def _nested(self, old: Record, new: Record) -> Operation | None:
        """Return the difference in the regions of two equal ops, or in the functions they call."""
        was, now = _nested_ops(old.op), _nested_ops(new.op)
        if not was:
            return None
        records = [r for r in self.before.records if r.op in was]
        others = [r for r in self.after.records if r.op in now]
        return self._from_outside(was, records, others) or self._first_apart(records, others)

    def _from_outside(
        self, inside: set[Operation], old: Sequence[Record], new: Sequence[Record]
    ) -> Operation | None:
        """Return the op outside a region that defines a different operand for its first op."""
        for record, other in zip(old, new, strict=False):
            if _key(record) != _key(other) or len(record.operands) != len(other.operands):
                return None
            values = zip(record.operands, other.operands, strict=True)
            apart = [k for k, (a, b) in enumerate(values) if not self._agree(a, b)]
            for k in apart:
                was = record.op.operands[k]
                if isinstance(was, OpResult) and was.op not in inside:
                    return self._walk(was, other.op.operands[k], set())
            if apart:
                return None
        return None

    def _vanished(self, old: Record, seen: set[SSAValue]) -> Record:
        """Return ``old`` or the first op before it whose operands are all still computed."""
        for operand, value in zip(old.op.operands, old.operands, strict=True):
            record = self.before.created.get(operand)
            if record is None or operand in seen or self._is_computed(value):
                continue
            seen.add(operand)
            return self._vanished(record, seen)
        return old

    def _is_computed(self, value: Any) -> bool:
        return any(self._agree(value, each) for r in self.after.records for each in r.results)

    def _agree(self, a: Any, b: Any) -> bool:
        if a is None or b is None:
            return True
        a, b = np.asarray(a), np.asarray(b)
        return a.shape == b.shape and self.same(a, b)

    def in_order(self) -> Operation | None:
        """Return the first op in source order with a different effect on buffers."""
        return self._first_apart(self.before.records, self.after.records)

    def _first_apart(self, old: Sequence[Record], new: Sequence[Record]) -> Operation | None:
        after: dict[Any, list[Record]] = {}
        for record in new:
            after.setdefault(_key(record), []).append(record)
        gone: Operation | None = None
        for record in old:
            others = after.get(_key(record))
            if others:
                if not self._are_equal(record, others.pop(0)):
                    return gone or record.op
            elif others is not None:  # it was evaluated less often
                return record.op.parent_op()
            elif not record.results:  # its effect is missing
                return record.op
            else:
                gone = gone or record.op
        more = next((r.op for records in after.values() for r in records), None)
        return gone or more or _out_of_order(old, new)

    def _are_equal(self, old: Record, new: Record) -> bool:
        was, now = (*old.operands, *old.results), (*new.operands, *new.results)
        return len(was) == len(now) and all(map(self._agree, was, now))


def _out_of_order(old: Sequence[Record], new: Sequence[Record]) -> Operation | None:
    """Return the first op without results whose order has changed."""
    was, now = ([r for r in records if not r.results] for records in (old, new))
    return next((a.op for a, b in zip(was, now, strict=False) if _key(a) != _key(b)), None)


def _order(old: Operation, new: Operation) -> list[int]:
    """Map each operand of ``old`` to the operand of ``new`` that matches, if they were swapped."""
    was, now = [_origin(v) for v in old.operands], [_origin(v) for v in new.operands]
    if was == now or sorted(was) != sorted(now):
        return list(range(len(was)))
    left = list(range(len(now)))
    return [left.pop(next(i for i, k in enumerate(left) if now[k] == key)) for key in was]


def _origin(value: SSAValue) -> tuple[str, str, int]:
    """Return a description of a value's definition that is stable across a pass."""
    if isinstance(value, OpResult):
        return name_of(value.op), str(places(value.op.location)), value.index
    assert isinstance(value, BlockArgument)
    return "", "", value.index


def _nested_ops(op: Operation) -> set[Operation]:
    """Return the ops in an op's regions, or in the function that it calls."""
    found: Operation | None = op
    if isinstance(op, func.CallOp | kernel.LaunchOp):
        found = SymbolTable.lookup_symbol(op, op.callee)
    return {each for each in found.walk() if each not in (op, found)} if found else set()


def _key(record: Record) -> tuple[str, str]:
    return record.name, str(record.place)


def _returned(module: ModuleOp, entry: str) -> Sequence[SSAValue] | None:
    """Return the operands of a function's return; None if it writes buffers instead."""
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == entry:
            last = op.body.block.last_op
            if isinstance(last, func.ReturnOp) and last.operands:
                return tuple(last.operands)
    return None


def spelled(op: Operation) -> str:
    """Return an op as messages name it."""
    hint = next((r.name_hint for r in op.results if r.name_hint), "")
    return f"{name_of(op)} (%{hint})" if hint else name_of(op)
