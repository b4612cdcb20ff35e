"""Programs on the kernel floor, in text, and what it takes to run them before and after a pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import arith, func, linalg, math, memref, scf, tensor
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from stepwell.core.diagnostics import Diagnostic, listening
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.kernel import KERNEL
from stepwell.lowering.bufferize import Bufferize
from stepwell.transforms.buffers.plan_memory import PlanMemory

assert upstream, "imported for its patches of upstream syntax"

Array = NDArray[Any]

T = "tensor<?x?xf32>"
ID, FLIP, ROW = (f"affine_map<(d0, d1) -> ({r})>" for r in ("d0, d1", "d1, d0", "d0"))


def generic(result: str, maps: Sequence[str], ins: str, out: str, op: str, of: str = T) -> str:
    """Spell a generic that combines its two block arguments ``%a``, ``%b`` (of three) by ``op``."""
    names = ins.split(", ")
    kinds = ", ".join("tensor<?xf32>" if n in ("%s",) else T for n in names)
    kind = "reduction" if of != T else "parallel"
    scalars = ", ".join(f"%{c}: f32" for c in "abc"[: len(maps)])
    return f"""
      {result} = linalg.generic {{indexing_maps = [{", ".join(maps)}],
          iterator_types = ["parallel", "{kind}"]}} ins({ins} : {kinds}) outs({out} : {of}) {{
      ^bb0({scalars}):
        %1 = {op} : f32
        linalg.yield %1 : f32
      }} -> {of}"""


def kernel(name: str, ins: str, body: str, shared: int = 2) -> str:
    """Spell a kernel of matrices that returns ``%r``."""
    arguments = ", ".join(f"{n}: {T}" for n in [*filter(None, ins.split(", ")), "%y"])
    return f"""
    kernel.func @{name}({arguments}) -> {T} attributes {{kernel.shared = {shared} : i64}} {{
      {body}
      kernel.return %r : {T}
    }}"""


ROWS = f"""
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = tensor.dim %x, %c0 : {T}
      %m = tensor.dim %x, %c1 : {T}
      %e = tensor.empty(%n) : tensor<?xf32>
      %e2 = tensor.empty(%n, %m) : {T}
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      {generic("%s", [ID, ROW], "%x", "%f", "arith.addf %a, %b", "tensor<?xf32>")}
      {generic("%d", [ID, ROW, ID], "%x, %s", "%e2", "arith.subf %a, %b")}
      {generic("%r", [ID, ROW, ID], "%d, %s", "%y", "arith.mulf %a, %b")}
"""

KERNELS = "".join(
    (
        kernel("double", "%x", generic("%r", [ID, ID], "%x", "%y", "arith.addf %a, %a")),
        kernel("add", "%x, %z", generic("%r", [ID] * 3, "%x, %z", "%y", "arith.addf %a, %b")),
        kernel("flip", "%x", generic("%r", [FLIP, ID], "%x", "%y", "arith.addf %a, %a")),
        kernel("more", "%x", generic("%r", [ID, ID], "%x", "%y", "arith.addf %a, %b")),
        kernel(
            "ones",
            "",
            "%one = arith.constant 1.0 : f32\n"
            f"%r = linalg.fill ins(%one : f32) outs(%y : {T}) -> {T}",
        ),
        kernel("rows", "%x", ROWS, 1),
    )
)
"""Kernels on matrices: elementwise, transposing, adding to the destination, by rows."""


def host(body: str, results: str = "%r", arguments: str = f"%x: {T}") -> str:
    """Return a module with a host function; lines like ``%y = @k(%a, %b) into %e`` launch.

    ``%n`` and ``%m`` are the sizes of ``%x``; ``%e`` is an empty tensor of its type; ``T`` is
    the type of matrices.
    """
    lines = [launch(line) if " = @" in line else line for line in body.splitlines()]
    written = re.sub(r"\bT\b", T, "\n".join(lines))
    kinds = ", ".join([T] * len(results.split(",")))
    return f"""{KERNELS}
    func.func @main({arguments}) -> ({kinds}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %n = tensor.dim %x, %c0 : {T}
      %m = tensor.dim %x, %c1 : {T}
      %e = tensor.empty(%n, %m) : {T}
      {written}
      func.return {results} : {kinds}
    }}"""


def loop(body: str, slots: str, inits: str, count: str = "%c4") -> str:
    """Spell ``%r, %u = scf.for`` over ``slots`` that begin as ``inits``."""
    names = slots.split(", ")
    pairs = ", ".join(f"{s} = {i}" for s, i in zip(names, inits.split(", "), strict=True))
    results = ", ".join(["%r", "%u", "%v"][: len(names)])
    kinds = ", ".join([T] * len(names))
    first, last = body.rsplit("yield ", 1)
    return f"""
{results} = scf.for %i = %c0 to {count} step %c1 iter_args({pairs}) -> ({kinds}) {{
{first}
scf.yield {last.strip()} : {kinds}
}}
"""


def launch(line: str) -> str:
    """Spell ``%y = @k(%a, %b) into %e`` as a launch."""
    name, rest = (part.strip() for part in line.split(" = @", 1))
    callee, rest = rest.split("(", 1)
    inputs, into = rest.split(")")
    into = into.replace("into", "").strip() or "%e"
    kinds = ", ".join([T] * len(inputs.split(",")))
    ins = f"ins({inputs} : {kinds}) " if inputs else ""
    return f"{name} = kernel.launch @{callee} {ins}outs({into} : {T}) -> {T}"


def parse(text: str) -> ModuleOp:
    """Return the module, verified."""
    context = Context()
    for dialect in (
        Builtin, arith.Arith, func.Func, linalg.Linalg, math.Math, memref.MemRef, scf.Scf,
        tensor.Tensor, KERNEL,
    ):  # fmt: skip
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


@dataclass
class Outcome:
    """A module after bufferization, and the remarks."""

    module: ModuleOp
    remarks: list[str]

    @property
    def text(self) -> str:
        """The module as text."""
        return str(self.module)

    @property
    def copies(self) -> int:
        """How many copies the host makes, counted in the text."""
        return self.text.count("memref.copy")

    @property
    def repeated(self) -> int:
        """How many of them are in loops."""
        loops = [op for op in self.module.walk() if isinstance(op, scf.ForOp | scf.WhileOp)]
        return len({op for loop in loops for op in loop.walk() if isinstance(op, memref.CopyOp)})

    @property
    def allocs(self) -> int:
        """How many temporaries the host asks for."""
        host = self.text[self.text.index("func.func @main(") :]
        return host.count("memref.alloc")


def bufferized(text: str) -> Outcome:
    """Return the module on buffers; its text is read back, so that it is known to parse."""
    module = parse(text)
    found: list[Diagnostic] = []
    with listening(found.append):
        Bufferize().apply(Context(), module)
    module.verify()
    return Outcome(parse(str(module)), [d.message for d in found])


def run_on_tensors(text: str, inputs: Sequence[Array]) -> list[Array]:
    """Return what the module computes."""
    return [np.array(y) for y in Interpreter(parse(text)).call("main", [x.copy() for x in inputs])]


def run_on_buffers(
    module: ModuleOp, inputs: Sequence[Array], like: Sequence[Array], arena: int | None = None
) -> list[Array]:
    """Return what the module writes into outputs full of garbage; inputs must stay untouched."""
    given = [x.copy() for x in inputs]
    outputs = [np.full_like(y, 77) for y in like]
    more = [] if arena is None else [np.full(arena, -86, np.int8)]
    Interpreter(module).call("main", [*given, *outputs, *more])
    for before, after in zip(inputs, given, strict=True):
        np.testing.assert_array_equal(before, after, "an input was written")
    return outputs


def matrices(*shape: int, count: int = 1) -> list[Array]:
    """Return small whole numbers as matrices, so that sums are exact."""
    random = np.random.default_rng(7)
    return [random.integers(-4, 5, shape).astype(np.float32) for _ in range(count)]


def planned(outcome: Outcome) -> ModuleOp:
    """Return the module with its temporaries in an arena, its text read back."""
    module = outcome.module.clone()
    PlanMemory().apply(Context(), module)
    module.verify()
    text = str(module)
    assert "memref.alloc" not in text[text.index("func.func @main(") :], text
    return parse(text)


def check(text: str, inputs: Sequence[Array]) -> Outcome:
    """Bufferize, plan, and compare what is computed on tensors, on buffers and in an arena."""
    outcome = bufferized(text)
    want = run_on_tensors(text, inputs)
    module = planned(outcome)
    sizes = [np.int64(n) for x in inputs for n in x.shape]
    (arena,) = Interpreter(module).call("main.arena", sizes)
    got = run_on_buffers(outcome.module, inputs, want)
    packed = run_on_buffers(module, inputs, want, int(arena))
    for y, *others in zip(want, got, packed, strict=True):
        for z in others:
            np.testing.assert_array_equal(y, z)
    return outcome
