"""Write the body of one function: statements, the names of values, and source comments.

A rule of the table `emit` gets the writer and one op, and prints whole statements; every
statement ends in a comment with its source lines. The differences of C and OpenCL C are in a
`Spelling`, those of whole functions and parallel loops in subclasses of `Writer`.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from stepwell.core.rules import RuleTable
from stepwell.dialects import kernel
from stepwell.lowering.emit.addresses import Family, families, family
from stepwell.lowering.emit.buffers import Buffer, number
from stepwell.lowering.emit.guard_numbers import Guards
from stepwell.lowering.emit.kinds import INDEX, Kind, kind_of
from stepwell.lowering.emit.lines import FunctionText
from stepwell.lowering.emit.narrow import narrow, widen
from stepwell.transforms.passes import fail

emit: RuleTable[Callable[[Writer, Any], None]] = RuleTable("emit")
"""``(writer, op)``: print the statements of one op. Third parties add rows for their ops."""


@dataclass
class Writer(FunctionText, ABC):
    """Writes the ops of one function, and names their values."""

    values: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    kinds: dict[SSAValue, Kind] = field(default_factory=dict[SSAValue, Kind])
    buffers: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])
    yields: Sequence[SSAValue] = ()
    """The values that the scf.yield of the current region assigns."""
    guards: Guards | None = None
    """The guards of accesses, in modules with their own addresses."""
    faults: Guards | None = None
    """Numbers everything that may end a call."""
    stack: int = 0
    """Bytes of its buffers on the stack."""
    contracts: ClassVar[bool] = False
    """Whether products are written inside sums, for compilers that contract expressions."""
    streamed: bool = False
    """Whether this function or loop has non-temporal stores."""
    near: set[Family] = field(default_factory=set[Family])
    """The accesses of the current block that have others near them."""
    pointers: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """The pointers of this block that accesses near each other share."""

    def ops(self, block: Block) -> None:
        """Write every op of ``block``."""
        near, pointers = self.near, self.pointers
        self.near, self.pointers = families(block), {}
        self.ops_of(block.ops)
        self.near, self.pointers = near, pointers

    def ops_of(self, ops: Iterable[Operation]) -> None:
        """Write ops, in order."""
        outer = self.note
        for op in ops:
            rule = emit.get(type(op))
            if rule is None:
                unknown(op)
            self.note = self.notes.of(op.location) or outer
            if self.guards is None:
                rule(self, op)
            else:
                with self.held(self.guards.wild_operands(op)):
                    rule(self, op)
        self.note = outer

    @contextmanager
    def held(self, values: Iterable[SSAValue]) -> Generator[None]:
        """Copy numbers from memory to variables before their check.

        A C compiler assumes that no other thread writes, and may load again after the check.
        """
        before: dict[SSAValue, str] = {}
        for value in values:
            if number(self[value]) is None:
                before[value] = self[value]
                name = self.fresh("held", self.spelling.type(INDEX))
                held = self.spelling.pinned(INDEX, self[value])
                self.line(f"const {self.declared[name]} {name} = {held};")
                self.values[value] = name
        yield
        self.values.update(before)

    # values

    def kind(self, value: SSAValue) -> Kind:
        """Return the kind of a scalar or vector value."""
        if (kind := self.kinds.get(value)) is None:
            kind = kind_of(value.type)
            if kind is None:
                op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
                assert op is not None
                fail(
                    op,
                    f"a value of type {value.type} has no place in C",
                    help="scalars are f64 f32 f16 bf16 i64 i32 i16 i8 i1 index; a vector has "
                    "one dimension and a power of two of lanes, 64 at most",
                )
            self.kinds[value] = kind
        return kind

    def __getitem__(self, value: SSAValue) -> str:
        """Return the expression of a scalar or vector value: a name or a literal."""
        return self.values[value]

    def bind(self, value: SSAValue, expression: str, kind: Kind | None = None) -> None:
        """Use ``expression``, an operand for any operator, as the value; write nothing."""
        self.values[value] = expression
        if kind is not None:
            self.kinds[value] = kind

    def declare(self, value: SSAValue, kind: Kind | None = None, hint: str | None = None) -> str:
        """Name a value and return its declaration, without ``const``."""
        if kind is not None:
            self.kinds[value] = kind
        type = self.spelling.type(self.kind(value))
        name = self.values[value] = self.fresh(hint or value.name_hint, type)
        return f"{type} {name}"

    def define(self, value: SSAValue, expression: str, kind: Kind | None = None) -> None:
        """Write ``const T name = expression;``, or nothing if the value is unused."""
        if value.first_use is None:
            return
        if expression[0] == "(" and _closes_at_end(expression):
            expression = expression[1:-1]
        declaration = self.declare(value, kind)
        self.line(f"const {declaration} = {expression};", defines=self[value])

    # memrefs

    def buffer(self, value: SSAValue) -> Buffer:
        """Return the buffer of a memref."""
        return self.buffers[value]

    def pointer(self, buffer: Buffer) -> str:
        """Return the pointer type of a buffer."""
        const = "" if buffer.writable else "const "
        return f"{buffer.space}{const}{self.spelling.memory(buffer.element)} *"

    def element_at(self, memref: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Return the element of a memref at ``indices``.

        Constants in them become one offset at the end, so that the C compiler sees the distance of
        elements: `x[i * 8 + 16]`, not `x[j * 8]` where `j = i + 2`.
        """
        buffer = self.buffers[memref]
        names: list[str] = []
        further = 0
        for index, stride in zip(indices, buffer.strides, strict=True):
            step = number(stride)
            while step is not None and step < NEAR and (parts := _sum(self, index)) is not None:
                index, added = parts
                further += added * step
            name = self[index]
            if step is not None and (known := number(name)) is not None:
                further, name = further + known * step, "0"
            names.append(name)
        is_near = self.guards is None and family(memref, indices) in self.near
        if is_near and (pointer := self._pointer_to(buffer, names)):
            return f"{pointer}[{further}]"
        return buffer.at(names, further)

    def _pointer_to(self, buffer: Buffer, names: Sequence[str]) -> str:
        """Return the pointer to an element of this block, "" where its address is no product."""
        place = (buffer.pointer, *names)
        if (found := self.pointers.get(place)) is None:
            element, found = buffer.at(names), ""
            if " * " in element:
                type = self.pointer(buffer)
                found = self.fresh(f"{buffer.pointer}_at", type)
                self.line(f"{type}const {found} = &{element};", defines=found)
            self.pointers[place] = found
        return found

    # narrow floats

    def widened(self, value: SSAValue) -> str:
        """Return a value, converted to f32 if it is a narrow float."""
        return widen(self.spelling, self.kind(value), self[value])

    def narrowed(self, kind: Kind, x: str) -> str:
        """Return an expression of f32 converted to ``kind``, if that is a narrow float."""
        return narrow(self.spelling, kind, x)

    # overridden by targets

    def parallel(self, op: scf.ParallelOp) -> None:
        """Write a parallel loop; the base class has no threads and writes a serial one."""
        self.serial(op)

    def concurrent(self, op: kernel.ConcurrentOp) -> None:
        """Write concurrent branches; without threads, one after the other."""
        for branch in op.branches:
            with self.block(""):
                self.ops(branch.block)

    def serial(self, op: scf.ParallelOp, first: int = 0) -> None:
        """Write a parallel loop as nested loops, from loop number ``first`` on."""
        heads = list(zip(op.body.block.args, op.lowerBound, op.upperBound, op.step, strict=True))
        for i, low, high, step in heads[first:]:
            self.line(f"{self.loop_head(i, self[low], self[high], self[step])} {{")
            self.depth += 1
        self.ops(op.body.block)
        for _ in heads[first:]:
            self.depth -= 1
            self.end()

    def loop_head(self, i: SSAValue, low: str, high: str, step: str) -> str:
        """Return ``for (...)`` with ``i`` as its variable."""
        declaration = self.declare(i)
        name = self[i]
        advance = f"{name}++" if step == "1" else f"{name} += {step}"
        return f"for ({declaration} = {low}; {name} < {high}; {advance})"

    def array(self, value: SSAValue, element: str, count: int) -> tuple[str, str]:
        """Declare a buffer on the stack; return its name and its space."""
        type = self.spelling.memory(element)
        name = self.fresh(value.name_hint, f"{type} *")
        start = " = {0}" if self.guards is not None else ""
        self.line(f"{type} {name}[{count}] __attribute__((aligned(64))){start};")
        return name, ""

    def strides_of(self, value: SSAValue, strides: tuple[str, ...]) -> tuple[str, ...]:
        """Return the strides of a buffer on the stack."""
        del value
        return strides

    def copy(self, source: Buffer, target: Buffer, count: str) -> None:
        """Write the copy of ``count`` contiguous elements."""
        index = self.fresh("i", self.spelling.type(Kind("index")))
        self.line(f"for ({self.declared[index]} {index} = 0; {index} < {count}; {index}++)")
        self.depth += 1
        self.line(f"{target.pointer}[{index}] = {source.pointer}[{index}];")
        self.depth -= 1

    def bail(self) -> str:
        """Return the statement that leaves the function after a failed guard."""
        return "return;"

    @abstractmethod
    def global_array(self, op: Operation, symbol: str) -> tuple[str, str, bool]:
        """Return name, space and writability of a memref.global."""

    @abstractmethod
    def call(self, op: Operation, callee: str, operands: Sequence[SSAValue]) -> None:
        """Write the call of a function or the launch of a kernel."""

    @abstractmethod
    def leave(self, op: Operation) -> None:
        """Write the end of a function or kernel, returning the operands."""


NEAR = 1 << 31
"""The bound of constants and of strides whose products, added to offsets, do not overflow."""


def _sum(w: Writer, index: SSAValue) -> tuple[SSAValue, int] | None:
    """Return ``index`` as a known value plus a constant, None if it is no such sum."""
    op = index.owner
    if not isinstance(op, arith.AddiOp) or op.lhs not in w.values:
        return None
    by = op.rhs.owner
    if not isinstance(by, arith.ConstantOp) or not isinstance(by.value, IntegerAttr):
        return None
    added = by.value.value.data
    if w.guards is not None and (w.guards.is_wild(index) or abs(added) >= NEAR):
        return None  # the guard compares the sum itself
    return op.lhs, added


def unknown(op: Operation) -> NoReturn:
    """Fail for an op without a rule."""
    near = difflib.get_close_matches(op.name, sorted(kind.name for kind in emit), 1)
    guess = f"did you mean {near[0]}? " if near and near[0] != op.name else ""
    fail(
        op,
        f"{op.name} cannot be written as C: no rule for it",
        help=f"{guess}register one with @emit({type(op).__name__}) from stepwell.lowering.emit, "
        "or lower the op before emission",
    )


def _closes_at_end(text: str) -> bool:
    """Whether the first parenthesis of ``text`` closes at its end."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at == len(text) - 1
    return False
