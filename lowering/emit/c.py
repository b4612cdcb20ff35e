"""Print loops on buffers as one C translation unit: no includes, readable, the program's names.

Before:  kernels, host functions and private functions on buffers (docs/floors/loops.md)
After:   a `CText`: source, header and signature

Every statement ends in a comment that names its source lines. A kernel is a function; each of its
parallel loops is another, called through the runtime with the values it captures. A public function
`NAME` is exported as `stepwell_NAME` with the interface of docs/floors/c.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from stepwell.core.escape import quoted
from stepwell.core.signature import Signature
from stepwell.dialects import kernel
from stepwell.lowering.emit.buffers import Buffer, number, plus
from stepwell.lowering.emit.c_spelling import CSpelling
from stepwell.lowering.emit.entry import ABI, Entry, entries, exported, guarded, header
from stepwell.lowering.emit.guarded_entry import noted_text
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.lines import Line, pruned, words
from stepwell.lowering.emit.names import FAULT
from stepwell.lowering.emit.parameters import RUNTIME
from stepwell.lowering.emit.unit import FunctionWriter, Piece, Unit

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


class CUnit(Unit):
    """A translation unit of C."""

    def text(self, title: str, exports: Sequence[str]) -> str:
        """Return the whole translation unit."""
        needed = "-fwrapv -fno-strict-aliasing " if self.guards is not None else ""
        about = (
            f"/* {title}, written by Stepwell. Trailing comments name the source lines.\n"
            " * GNU C11: cc -shared -fPIC -O2 -march=native -fno-math-errno "
            f"{needed}program.c -lm\n"
            " * gcc 12 needs -mstore-max=128 for AVX-512: it repeats numbers that zeros follow. */"
        )
        texts = [
            *self.spelling.prelude.functions.values(),
            *(piece.text for piece in self.globals),
            *(piece.titled(self.notes) for piece in self.pieces),
        ]
        return self.unit(about, [*texts, *exports])

    def unit(self, about: str, texts: Sequence[str]) -> str:
        """Return ``texts`` after the preamble of a translation unit."""
        for name in ("int64", "int32"):
            self.spelling.type(Kind(f"i{name[3:]}"))
        types = "\n".join(self.spelling.prelude.types.values())
        return "\n\n".join([about, types, ABI, PREAMBLE, *texts]) + "\n"


@dataclass
class CWriter(FunctionWriter):
    """Writes a function of C."""

    bodies: int = 0

    def parallel(self, op: scf.ParallelOp) -> None:
        """Pass the first loop to the runtime as a function; its captured values are in a struct."""
        if not self.threads:
            self.serial(op)
            return
        function = self.unit.unique(f"{self.name}_body{self.bodies or ''}")
        self.bodies += 1
        known = {**self.declared, RUNTIME: "const struct sw_runtime *"}
        outer, streamed = self.lines, self.streamed
        self.lines, self.threads, self.streamed = [], False, False
        inside, self.outlined = self.outlined, True
        low, step = self[op.lowerBound[0]], self[op.step[0]]
        depth, self.depth = self.depth, 2
        loop = self._body(op, low, step)
        body, self.lines = pruned(self.lines), outer
        self.depth, self.threads, self.outlined = depth, True, inside
        used = words(body)
        captured = {name: type for name, type in known.items() if name in used}
        text = self._outlined(function, captured, loop, body)
        self.streamed = streamed
        self.unit.pieces.append(Piece(function, text))
        grain = op.attributes.get("kernel.grain")
        chunk = str(grain.value.data) if isinstance(grain, IntegerAttr) else "1"
        if isinstance(op.prev_op, kernel.GrainOp):
            chunk = self[op.prev_op.iterations]
        self._launch(function, captured, _trips(low, self[op.upperBound[0]], step), chunk)

    def leave(self, op: Operation) -> None:
        """Write a fence after non-temporal stores."""
        if self.streamed:
            self.line(self.spelling.fence())
        super().leave(op)

    def concurrent(self, op: kernel.ConcurrentOp) -> None:
        """Pass the branches to the runtime as one function, whose argument selects a branch."""
        function = self.unit.unique(f"{self.name}_branches{self.bodies or ''}")
        self.bodies += 1
        outer, known = self.lines, {**self.declared, RUNTIME: "const struct sw_runtime *"}
        depth, self.lines, self.depth = self.depth, [], 2
        inside, self.outlined = self.outlined, True
        number = self.fresh("branch", "int64_t")
        for n, branch in enumerate(op.branches):
            with self.block(f"if ({number} == {n})"):
                self.ops(branch.block)
        body, self.lines, self.depth = pruned(self.lines), outer, depth
        self.outlined = inside
        used = words(body)
        captured = {name: type for name, type in known.items() if name in used}
        text = self._outlined(function, captured, number, body)
        self.unit.pieces.append(Piece(function, text))
        self._launch(function, captured, str(len(op.branches)), "1")

    def _body(self, op: scf.ParallelOp, low: str, step: str) -> str:
        """Write the body of one iteration; return the name of the iteration counter."""
        index = op.body.block.args[0]
        if (low, step) == ("0", "1"):
            self.declare(index)
            counter = self[index]
        else:
            counter = self.fresh("iteration", "int64_t")
            scaled = counter if step == "1" else f"{counter} * {step}"
            self.line(f"const {self.declare(index)} = {plus(low, scaled)};")
        self.serial(op, first=1)
        return counter

    def _outlined(
        self, function: str, captured: dict[str, str], counter: str, body: list[Line]
    ) -> str:
        """Return a struct of a loop's captured values, and the loop as a function."""
        taken = "void *context, int64_t begin, int64_t end"
        before = f"{self.spelling.scalar_code}static" if self.scalar else "static"
        alone = "restrict " if self.scalar and self.alone else ""
        rows = [Line(0, f"{before} void {function}({taken}) {{", "")]
        struct = ""
        if captured:
            fields = " ".join(f"{_declared(type, name)};" for name, type in captured.items())
            struct = f"struct {function}_context {{ {fields} }};\n"
            cast = f"const struct {function}_context *const captured = context;"
            rows.append(Line(1, cast, self.note))
        else:
            rows.append(Line(1, "(void)context;", self.note))
        for name, type in captured.items():
            const = f"{type}{alone}const {name}" if type[-1] == "*" else f"const {type} {name}"
            rows.append(Line(1, f"{const} = captured->{name};", self.note))
        head = f"for (int64_t {counter} = begin; {counter} < end; {counter}++) {{"
        rows += [Line(1, head, self.note), *body, Line(1, "}", "")]
        if self.streamed:
            rows.append(Line(1, self.spelling.fence(), self.note))
        rows.append(Line(0, "}", ""))
        return struct + "\n".join(map(str, rows))

    def _launch(self, function: str, captured: dict[str, str], trips: str, grain: str) -> None:
        context = "(void *)0"
        if captured:
            name = self.fresh("captures", f"struct {function}_context")
            self.line(f"struct {function}_context {name} = {{{', '.join(captured)}}};")
            context = f"&{name}"
        self.line(f"{RUNTIME}->parallel({RUNTIME}, {function}, {context}, {trips}, {grain});")
        if self.faults is not None and FAULT in captured:
            self.line(f"if ({self.spelling.faulted()}) {self.bail()}")

    def copy(self, source: Buffer, target: Buffer, count: str) -> None:
        """Call the C library."""
        size = Kind(target.element).bits // 8
        known = number(count)
        bytes = str(known * size) if known is not None else f"{count} * {size}"
        move = "memcpy" if self.guards is None else "memmove"  # they may overlap
        self.line(f"__builtin_{move}({target.pointer}, {source.pointer}, {bytes});")


def _declared(type: str, name: str) -> str:
    return f"{type}{name}" if type[-1] == "*" else f"{type} {name}"


def _trips(low: str, high: str, step: str) -> str:
    """Return the trip count of a loop; not positive if it does not run."""
    a, b, c = number(low), number(high), number(step)
    if a is not None and b is not None and c is not None:
        return str(max(0, -((a - b) // c)))
    span = high if a == 0 else f"({high} - {low})"
    return span if c == 1 else f"({span} + {step} - 1) / {step}"


def emit_c(module: ModuleOp, name: str = "main") -> CText:
    """Return the C text of a module on the loops floor.

    name : the public function to export; the others are exported too
    """
    return finished(CUnit(module, CSpelling(), CWriter), name)[0]


def finished(unit: CUnit, name: str) -> tuple[CText, list[str]]:
    """Write the rest of a unit; return the program and its exported functions."""
    found = entries(unit.module)
    exports = [
        text
        for entry in found
        for text in exported(entry, unit.function, unit.notes.of(entry.op.location), unit)
    ]
    signature = _signature_of(found, name)
    if unit.faults is not None:
        exports = [noted_text(found, unit), *exports]
        signature = guarded(signature, unit.faults.found)
    whole = CText(unit.text(quoted(name), exports), header(found, unit.faults), signature)
    return whole, exports


def _signature_of(found: Sequence[Entry], name: str) -> Signature:
    named = [entry for entry in found if entry.name == name] or list(found)
    return named[0].signature
