"""Print loops on buffers as one C translation unit: no includes, readable, the program's names.

Before:  kernels, host functions and private functions on buffers (see "loops" in architecture.md)
After:   a `CText`: source, header and signature

Every statement ends in a comment that names the source lines it came from. A kernel is a function;
each of its parallel loops is another, called through the runtime with the values it captures. A
public function `NAME` is exported as `stepwell_NAME` with the interface of architecture.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.signature import Signature
from stepwell.dialects import kernel
from stepwell.lowering.emit.buffers import Buffer, number, plus
from stepwell.lowering.emit.c_spelling import CSpelling
from stepwell.lowering.emit.entry import ABI, Entry, entries, exported, header
from stepwell.lowering.emit.kinds import Kind, element_name, kind_of
from stepwell.lowering.emit.names import Names, identifier
from stepwell.lowering.emit.parameters import RUNTIME, Parameter, parameters, written
from stepwell.lowering.emit.writer import Line, Notes, Writer, pruned, words
from stepwell.transforms.passes import fail

PREAMBLE = """#if defined(__has_builtin)
#define SW_HAS(builtin) __has_builtin(builtin)
#else
#define SW_HAS(builtin) 0
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif"""


@dataclass(frozen=True)
class CText:
    """A compiled program as text."""

    source: str
    header: str
    signature: Signature


@dataclass
class Function:
    """A function already written: how to call it and what it does to its operands."""

    name: str
    parameters: list[Parameter]
    results: list[Kind]
    result_type: str
    writes: list[bool]


@dataclass
class Unit:
    """The translation unit being written."""

    module: ModuleOp
    spelling: CSpelling = field(default_factory=CSpelling)
    notes: Notes = field(default_factory=Notes)
    names: Names = field(default_factory=lambda: Names(frozenset()))
    symbols: dict[str, Operation] = field(default_factory=dict[str, Operation])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    arrays: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])
    globals: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])

    def name(self, prefix: str, symbol: str) -> str:
        """Return a new name at file scope."""
        self.names.reserved = frozenset()
        name = f"{prefix}_{identifier(symbol)}"
        while name in self.names.taken:
            name += "_"
        self.names.taken.add(name)
        return name

    def function(self, user: Operation, symbol: str) -> Function:
        """Return the function or kernel ``symbol``, writing it first if need be."""
        if symbol not in self.functions:
            op = self.symbols.get(symbol)
            if not isinstance(op, func.FuncOp | kernel.FuncOp):
                fail(user, f"no function or kernel @{symbol} in the module")
            self.functions[symbol] = self._write(op)
        return self.functions[symbol]

    def _write(self, op: func.FuncOp | kernel.FuncOp) -> Function:
        if op.body.blocks.first is None:
            fail(
                op, f"@{op.sym_name.data} has no body", "only functions with bodies can be written"
            )
        is_kernel = isinstance(op, kernel.FuncOp)
        name = self.name("kernel" if is_kernel else "func", op.sym_name.data)
        writes = written(op.body, lambda user, symbol: self.function(user, symbol).writes)
        writer = CWriter(
            self.spelling, self.notes, Names(self.spelling.words), unit=self, name=name
        )
        writer.threads = is_kernel
        writer.names.taken.update((RUNTIME, "context", "begin", "end", "captured"))
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
        kept = [p for p in (runtime, *wanted) if p.name in used]
        inline = "" if is_kernel or RUNTIME in used else "inline "
        taken = ", ".join(p.declaration for p in kept) or "void"
        head = f"static {inline}{result_type} {name}({taken}) {{"
        title = f"/* {'kernel' if is_kernel else 'function'} {op.sym_name.data}"
        at = f", from {writer.note}" if writer.note else ""
        self.texts.append("\n".join([f"{title}{at} */", head, *map(str, lines), "}"]))
        return Function(name, kept, results, result_type, [a in writes for a in arguments])

    def _result_type(self, name: str, results: Sequence[Kind]) -> str:
        if len(results) <= 1:
            return self.spelling.type(results[0]) if results else "void"
        fields = " ".join(f"{self.spelling.type(kind)} r{k};" for k, kind in enumerate(results))
        self.texts.append(f"struct {name}_results {{ {fields} }};")
        return f"struct {name}_results"

    def array(self, user: Operation, symbol: str) -> tuple[str, bool]:
        """Return name and writability of a memref.global, declaring it first if need be."""
        if symbol not in self.arrays:
            op = self.symbols.get(symbol)
            if not isinstance(op, memref.GlobalOp):
                fail(user, f"no memref.global @{symbol} in the module")
            self.arrays[symbol] = (self._declare(op), op.constant is None)
        return self.arrays[symbol]

    def _declare(self, op: memref.GlobalOp) -> str:
        """Declare an array with its values, sixteen a line."""
        name = self.name("data", op.sym_name.data)
        element = element_name(op.type.element_type)
        if element is None:
            fail(op, f"elements of type {op.type.element_type} have no place in memory")
        kind = Kind(element)
        count = 1
        for n in op.type.get_shape():
            count *= n
        const = "const " if op.constant is not None else ""
        head = f"static {const}{self.spelling.memory(kind.element)} {name}[{max(count, 1)}]"
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
        self.globals.append(head + body)
        return name

    def text(self, title: str, exports: Sequence[str]) -> str:
        """Return the whole translation unit."""
        for name in ("int64", "int32"):
            self.spelling.type(Kind(f"i{name[3:]}"))
        prelude = self.spelling.prelude
        parts = [
            f"/* {title}, written by Stepwell. Trailing comments name the source lines.\n"
            " * Compile as GNU C11, with -fno-math-errno for speed. */",
            "\n".join(prelude.types.values()),
            ABI,
            PREAMBLE,
            *prelude.functions.values(),
            *self.globals,
            *self.texts,
            *exports,
        ]
        return "\n\n".join(parts) + "\n"


@dataclass
class CWriter(Writer):
    """Writes a function of C."""

    unit: Unit = field(kw_only=True)
    name: str = field(kw_only=True)
    threads: bool = False
    """Whether a parallel loop met here is to be handed to the runtime."""
    bodies: int = 0
    results: list[Kind] = field(default_factory=list[Kind])
    result_type: str = "void"

    def returned(self, op: Operation, type: Attribute) -> Kind:
        """Return the kind in which a function hands back a value."""
        if (kind := kind_of(type)) is None:
            fail(op, f"a function cannot return {type} in C", "write into an argument instead")
        return kind

    def parallel(self, op: scf.ParallelOp) -> None:
        """Hand the first loop to the runtime as a function; what it captures goes in a struct."""
        if not self.threads:
            self.serial(op)
            return
        function = f"{self.name}_body{self.bodies or ''}"
        self.bodies += 1
        outer, known = self.lines, dict(self.declared)
        self.lines, self.threads = [], False
        low, step = self[op.lowerBound[0]], self[op.step[0]]
        depth, self.depth = self.depth, 2
        loop = self._body(op, low, step)
        body, self.lines = pruned(self.lines), outer
        self.depth, self.threads = depth, True
        used = words(body)
        captured = {name: type for name, type in known.items() if name in used}
        self.unit.texts.append(self._outlined(function, captured, loop, body))
        grain = op.attributes.get("kernel.grain")
        chunk = grain.value.data if isinstance(grain, IntegerAttr) else 1
        self._launch(function, captured, _trips(low, self[op.upperBound[0]], step), chunk)

    def _body(self, op: scf.ParallelOp, low: str, step: str) -> str:
        """Write what one iteration does; return the name that counts iterations."""
        index, *inner = op.body.block.args
        if (low, step) == ("0", "1"):
            self.declare(index)
            counter = self[index]
        else:
            counter = self.fresh("iteration", "int64_t")
            scaled = counter if step == "1" else f"{counter} * {step}"
            self.line(f"const {self.declare(index)} = {plus(low, scaled)};")
        for i, lower, upper, by in zip(
            inner, op.lowerBound[1:], op.upperBound[1:], op.step[1:], strict=True
        ):
            self.line(f"{self.loop_head(i, self[lower], self[upper], self[by])} {{")
            self.depth += 1
        self.ops(op.body.block)
        for _ in inner:
            self.depth -= 1
            self.end()
        return counter

    def _outlined(
        self, function: str, captured: dict[str, str], counter: str, body: list[Line]
    ) -> str:
        """Return a struct for what a loop captures and the loop as a function."""
        taken = "void *context, int64_t begin, int64_t end"
        rows = [Line(0, f"static void {function}({taken}) {{", "")]
        struct = ""
        if captured:
            fields = " ".join(f"{_declared(type, name)};" for name, type in captured.items())
            struct = f"struct {function}_context {{ {fields} }};\n"
            cast = f"const struct {function}_context *const captured = context;"
            rows.append(Line(1, cast, self.note))
        else:
            rows.append(Line(1, "(void)context;", self.note))
        for name, type in captured.items():
            const = f"{type}const {name}" if type[-1] == "*" else f"const {type} {name}"
            rows.append(Line(1, f"{const} = captured->{name};", self.note))
        head = f"for (int64_t {counter} = begin; {counter} < end; {counter}++) {{"
        rows += [Line(1, head, self.note), *body, Line(1, "}", ""), Line(0, "}", "")]
        return struct + "\n".join(map(str, rows))

    def _launch(self, function: str, captured: dict[str, str], trips: str, grain: int) -> None:
        context = "(void *)0"
        if captured:
            name = self.fresh("captures", f"struct {function}_context")
            self.line(f"struct {function}_context {name} = {{{', '.join(captured)}}};")
            context = f"&{name}"
        self.line(f"{RUNTIME}->parallel({RUNTIME}, {function}, {context}, {trips}, {grain});")

    def copy(self, source: Buffer, target: Buffer, count: str) -> None:
        """Leave it to the C library."""
        size = Kind(target.element).bits // 8
        known = number(count)
        bytes = str(known * size) if known is not None else f"{count} * {size}"
        self.line(f"__builtin_memcpy({target.pointer}, {source.pointer}, {bytes});")

    def global_array(self, op: Operation, symbol: str) -> tuple[str, str, bool]:
        """Return an array at file scope."""
        name, writable = self.unit.array(op, symbol)
        return name, "", writable

    def call(self, op: Operation, callee: str, operands: Sequence[SSAValue]) -> None:
        """Call what has been written before."""
        function = self.unit.function(op, callee)
        call = f"{function.name}({', '.join(p.given(self, operands) for p in function.parameters)})"
        if not op.results:
            self.line(f"{call};")
        elif len(op.results) == 1:
            result, kind = op.results[0], function.results[0]
            pure = not any(function.writes)
            self.line(f"const {self.declare(result, kind)} = {call};", self[result] if pure else "")
        else:
            name = self.fresh("results", function.result_type)
            self.line(f"const {function.result_type} {name} = {call};")
            for k, (result, kind) in enumerate(zip(op.results, function.results, strict=True)):
                self.bind(result, f"{name}.r{k}", kind)

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


def _declared(type: str, name: str) -> str:
    return f"{type}{name}" if type[-1] == "*" else f"{type} {name}"


def _trips(low: str, high: str, step: str) -> str:
    """Return how often a loop runs; not positive where it does not."""
    a, b, c = number(low), number(high), number(step)
    if a is not None and b is not None and c is not None:
        return str(max(0, -((a - b) // c)))
    span = high if a == 0 else f"({high} - {low})"
    return span if c == 1 else f"({span} + {step} - 1) / {step}"


def emit_c(module: ModuleOp, name: str = "main") -> CText:
    """Return the C text of a module on the loops floor.

    name : of the public function to export; the others are exported too
    """
    unit = Unit(module)
    for op in module.ops:
        if isinstance(op, func.FuncOp | kernel.FuncOp | memref.GlobalOp):
            unit.symbols[op.sym_name.data] = op
        else:
            fail(op, f"{op.name} has no place at the top of a module on the loops floor")
    found = entries(module)
    exports = [
        text
        for entry in found
        for text in exported(entry, unit.function, unit.notes.of(entry.op.location))
    ]
    return CText(unit.text(name, exports), header(found), _signature_of(found, name))


def _signature_of(found: Sequence[Entry], name: str) -> Signature:
    named = [entry for entry in found if entry.name == name] or list(found)
    return named[0].signature
