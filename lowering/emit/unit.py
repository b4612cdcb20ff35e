"""A translation unit: its functions and arrays, each written at its first use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.guards import GUARDED
from stepwell.core.signature import titled
from stepwell.dialects import kernel
from stepwell.lowering.emit.aliases import Aliases, buffers_of
from stepwell.lowering.emit.guard_numbers import Guards
from stepwell.lowering.emit.kinds import Kind, element_name, kind_of
from stepwell.lowering.emit.lines import Line, Notes, pruned, words
from stepwell.lowering.emit.names import FAULT, Names, identifier
from stepwell.lowering.emit.parameters import RUNTIME, Parameter, parameters, written
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer
from stepwell.transforms.passes import fail

STACK = 1 << 21
"""The most bytes of stack that a chain of calls may use: a quarter of the usual stack."""


@dataclass
class Function:
    """A function that has been written: its parameters, and the operands it writes."""

    name: str
    parameters: list[Parameter]
    results: list[Kind]
    result_type: str
    writes: list[bool]
    stack: int = 0
    """Bytes of stack that it uses, including its callees."""

    @property
    def guarded(self) -> bool:
        """Whether it may return early because a guard failed."""
        return any(p.part == "fault" for p in self.parameters)


@dataclass
class Piece:
    """A definition at file scope: a function, a type, or an array."""

    name: str
    text: str
    op: Operation | None = None
    """The function or kernel that it implements."""
    declaration: str = ""
    """A kernel's declaration for other translation units; other pieces are copied there."""

    def titled(self, notes: Notes) -> str:
        """Return the text below a comment with its source lines."""
        if not isinstance(self.op, func.FuncOp | kernel.FuncOp):
            return self.text
        what = "kernel" if isinstance(self.op, kernel.FuncOp) else "function"
        note = notes.of(self.op.location)
        at = f", from {note}" if note else ""
        return f"/* {what} {titled(self.op.sym_name.data)}{at} */\n{self.text}"


@dataclass
class Unit:
    """The translation unit being written."""

    module: ModuleOp
    spelling: Spelling
    writer_type: type[FunctionWriter]
    notes: Notes = field(default_factory=Notes)
    names: Names = field(default_factory=lambda: Names(frozenset()))
    symbols: dict[str, Operation] = field(default_factory=dict[str, Operation])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    arrays: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])
    globals: list[Piece] = field(default_factory=list[Piece])
    pieces: list[Piece] = field(default_factory=list[Piece])
    begun: list[str] = field(default_factory=list[str])
    fault_space: ClassVar[str] = ""
    """The address space of the record of faults, in languages that have them."""
    guards: Guards | None = None
    """The guards of a module with its own addresses, else None."""
    faults: Guards | None = None
    """The same guards, or else those of the user's checks, if there are any."""

    def __post_init__(self) -> None:
        if GUARDED in self.module.attributes:
            self.guards = self.faults = Guards()
        elif any(isinstance(op, kernel.CheckOp | kernel.CallbackOp) for op in self.module.walk()):
            self.faults = Guards()
        for op in self.module.ops:
            if isinstance(op, func.FuncOp | kernel.FuncOp | memref.GlobalOp):
                self.symbols[op.sym_name.data] = op
            else:
                fail(op, f"{op.name} has no place at the top of a module on the loops floor")

    def adopt(self, lowered: ModuleOp) -> None:
        """Register the functions of another module that its kernels call."""
        for op in lowered.ops:
            if isinstance(op, func.FuncOp):
                self.symbols.setdefault(op.sym_name.data, op)

    def writer(self, name: str) -> FunctionWriter:
        """Return a writer of a new function."""
        names = Names(self.spelling.words, {RUNTIME, "context", "begin", "end", "captured"})
        created = self.writer_type(self.spelling, self.notes, names, unit=self, name=name)
        created.guards, created.faults = self.guards, self.faults
        if self.faults is not None:
            names.taken.add(FAULT)
            created.declared[FAULT] = self.fault_type
        return created

    @property
    def fault_type(self) -> str:
        """The pointer type of the record in which guards note a failure."""
        return f"{self.fault_space}struct sw_fault *"

    def name(self, prefix: str, symbol: str) -> str:
        """Return a new name at file scope."""
        return self.unique(f"{prefix}_{identifier(symbol)}")

    def unique(self, name: str) -> str:
        """Return ``name``, with underscores appended until it is unused at file scope."""
        while name in self.names.taken:
            name += "_"
        self.names.taken.add(name)
        return name

    def function(self, user: Operation, symbol: str) -> Function:
        """Return the function or kernel ``symbol``, after writing it if necessary."""
        if symbol not in self.functions:
            op = self.symbols.get(symbol)
            if not isinstance(op, func.FuncOp | kernel.FuncOp):
                fail(user, f"no function or kernel @{symbol} in the module")
            if symbol in self.begun:
                fail(user, f"@{symbol} calls itself", "write a loop instead")
            self.begun.append(symbol)
            self.functions[symbol] = self._write(op)
        return self.functions[symbol]

    def _write(self, op: func.FuncOp | kernel.FuncOp) -> Function:
        if op.body.blocks.first is None:
            fail(
                op, f"@{op.sym_name.data} has no body", "only functions with bodies can be written"
            )
        is_kernel = isinstance(op, kernel.FuncOp)
        name = self.name("kernel" if is_kernel else "func", op.sym_name.data)
        writes = self.written_in(op)
        writer = self.writer(name)
        writer.threads = True
        writer.scalar = "kernel.scalar" in op.attributes
        writer.alone = self.guards is None and "kernel.in_place" not in op.attributes
        writer.note = self.notes.of(op.location)
        arguments = op.body.block.args
        wanted = parameters(writer, op, arguments, "", writes)
        results = [writer.returned(op, t) for t in op.function_type.outputs]
        result_type = self._result_type(name, results)
        writer.results, writer.result_type = results, result_type
        writer.ops(op.body.block)
        lines = pruned(writer.lines)
        used = words(lines)
        runtime = Parameter(RUNTIME, "const struct sw_runtime *")
        fault = Parameter(FAULT, self.fault_type, part="fault")
        first = (runtime,) if self.faults is None else (runtime, fault)
        kept = [p for p in (*first, *wanted) if p.name in used]
        stack = writer.on_stack(op)
        before = self.spelling.private_function
        if is_kernel or RUNTIME in used:
            before = before.replace("inline ", "")
        if writer.scalar:
            before = f"{self.spelling.scalar_code}{before}"
            if writer.alone:
                kept = [replace(p, alone=True) for p in kept]
        taken = ", ".join(p.declaration for p in kept) or "void"
        head = f"{result_type} {name}({taken})"
        quick = self._quick(op, kept, results)
        body = [*quick, *map(str, lines), *["#endif"][: len(quick)]]
        text = "\n".join([f"{before}{head} {{", *body, "}"])
        self.pieces.append(Piece(name, text, op, head if is_kernel else ""))
        written_ones = [a in writes for a in arguments]
        return Function(name, kept, results, result_type, written_ones, stack)

    def written_in(self, op: func.FuncOp | kernel.FuncOp) -> set[SSAValue]:
        """Return every buffer that ``op`` may write; fail if one is constant."""
        writes = written(op.body, lambda user, symbol: self.function(user, symbol).writes)
        if self.guards is None:
            return writes
        aliases = Aliases(op.body)
        aliases.check_kept()
        writes = aliases.spread(writes, buffers_of(op.body))
        for value in writes:
            if isinstance(created := value.owner, memref.GetGlobalOp):
                array = self.symbols.get(created.name_.string_value())
                if isinstance(array, memref.GlobalOp) and array.constant is not None:
                    said = f"@{created.name_.string_value()} is constant, but may be written"
                    fail(created, said)
        return writes

    def _quick(
        self, op: func.FuncOp | kernel.FuncOp, kept: Sequence[Parameter], results: Sequence[Kind]
    ) -> list[str]:
        """Return the rows that replace a body where the machine has an instruction for it."""
        what = op.attributes.get("kernel.instruction")
        if not isinstance(what, StringAttr) or [p.name for p in kept] not in (["x"], ["x", "y"]):
            return []
        rows = self.spelling.quick(what.data, results[0])
        note = self.notes.of(op.location)
        return [row if row[0] == "#" else str(Line(1, row, note)) for row in rows]

    def _result_type(self, name: str, results: Sequence[Kind]) -> str:
        if len(results) <= 1:
            return self.spelling.type(results[0]) if results else "void"
        fields = " ".join(f"{self.spelling.type(kind)} r{k};" for k, kind in enumerate(results))
        self.pieces.append(Piece(f"{name}_results", f"struct {name}_results {{ {fields} }};"))
        return f"struct {name}_results"

    def array(self, user: Operation, symbol: str) -> tuple[str, bool]:
        """Return name and writability of a memref.global, after declaring it if necessary."""
        if symbol not in self.arrays:
            op = self.symbols.get(symbol)
            if not isinstance(op, memref.GlobalOp):
                fail(user, f"no memref.global @{symbol} in the module")
            self.arrays[symbol] = (self._declare(op), op.constant is None)
        return self.arrays[symbol]

    def _declare(self, op: memref.GlobalOp) -> str:
        """Declare an array with its values, sixteen per line."""
        name = self.name("data", op.sym_name.data)
        element = element_name(op.type.element_type)
        if element is None:
            fail(op, f"elements of type {op.type.element_type} have no place in memory")
        count = 1
        for n in op.type.get_shape():
            count *= n
        before = self.spelling.constant_array if op.constant is not None else "static "
        head = f"{before}{self.spelling.memory(element)} {name}[{max(count, 1)}]"
        head += " __attribute__((aligned(64)))"
        rows: list[str] = []
        if isinstance(op.initial_value, DenseIntOrFPElementsAttr):
            numbers: Any = op.initial_value.get_values()
            values = [self.spelling.literal(element, v) for v in numbers]
            values = values * (count // len(values)) if values else values
            rows = [f"  {', '.join(values[k : k + 16])}," for k in range(0, len(values), 16)]
        note = self.notes.of(op.location)
        comment = f"  // {note}" if note else ""
        body = "\n".join([" = {" + comment, *rows, "};"]) if rows else f" = {{0}};{comment}"
        self.globals.append(Piece(name, head + body))
        return name


@dataclass
class FunctionWriter(Writer):
    """Writes a function that may call others of its unit."""

    unit: Unit = field(kw_only=True)
    name: str = field(kw_only=True)
    threads: bool = False
    """Whether parallel loops in it are passed to the runtime."""
    results: list[Kind] = field(default_factory=list[Kind])
    result_type: str = "void"
    outlined: bool = False
    """Whether the current lines are of an outlined loop."""
    scalar: bool = False
    """Whether loops are left to the C compiler's vectorizer."""
    alone: bool = False
    """Whether its pointers never alias."""
    deepest: int = 0
    """The most bytes of stack that a callee uses."""

    def bail(self) -> str:
        """Return from the function, with a zero value if it has results."""
        if self.outlined or self.result_type == "void":
            return "return;"
        return f"return ({self.result_type}){{0}};"

    def on_stack(self, op: Operation) -> int:
        """Return the bytes of stack it uses; in guarded modules fail if they exceed the limit."""
        kinds = (self.kinds[v] for v in self.values if v in self.kinds)
        values = sum(kind.bits // 8 * max(kind.lanes, 1) for kind in kinds)
        bytes = self.stack + values + self.deepest
        if self.guards is not None and bytes > STACK:
            said = f"it and what it calls have {bytes} bytes on the stack, more than {STACK}"
            fail(op, said, "pass buffers as arguments: those of the entry are not on the stack")
        return bytes

    def returned(self, op: Operation, type: Attribute) -> Kind:
        """Return the kind in which a function returns a value."""
        if (kind := kind_of(type)) is None:
            fail(op, f"a function cannot return {type} in C", "write into an argument instead")
        return kind

    def global_array(self, op: Operation, symbol: str) -> tuple[str, str, bool]:
        """Return an array at file scope."""
        name, writable = self.unit.array(op, symbol)
        return name, self.spelling.constant_space if not writable else "", writable

    def call(self, op: Operation, callee: str, operands: Sequence[SSAValue]) -> None:
        """Call a function of the unit."""
        function = self.unit.function(op, callee)
        self.deepest = max(self.deepest, function.stack)
        call = f"{function.name}({', '.join(p.given(self, operands) for p in function.parameters)})"
        if not op.results:
            self.line(f"{call};")
        elif len(op.results) == 1:
            result, kind = op.results[0], function.results[0]
            pure = not any(function.writes) and not function.guarded
            self.line(f"const {self.declare(result, kind)} = {call};", self[result] if pure else "")
        else:
            name = self.fresh("results", function.result_type)
            self.line(f"const {function.result_type} {name} = {call};")
            for k, (result, kind) in enumerate(zip(op.results, function.results, strict=True)):
                self.bind(result, f"{name}.r{k}", kind)
        if function.guarded:
            self.line(f"if ({self.spelling.faulted()}) {self.bail()}")

    def leave(self, op: Operation) -> None:
        """Return nothing, a value, or a struct of values."""
        values = [
            self.spelling.convert(kind, self[v], self.kind(v))
            for kind, v in zip(self.results, op.operands, strict=True)
        ]
        if len(values) == 1:
            self.line(f"return {values[0]};")
        elif values:
            self.line(f"return ({self.result_type}){{{', '.join(values)}}};")
