"""A program as text of the kernel floor: a host function that launches kernels."""

from __future__ import annotations

from collections.abc import Sequence

from carried_programs.program import (
    ROW,
    Branch,
    Launch,
    Loop,
    N,
    Program,
    Row,
    Statement,
    T,
    signature,
    types,
)

_SAME, _FLIPPED = "d0, d1", "d1, d0"


def _kernel(name: str, inputs: Sequence[str], maps: Sequence[str], ops: str) -> str:
    """Spell a kernel whose ``ops`` on %a, %b, %c and the old %o give %s; its inputs repeat."""
    read = [inputs[min(n, len(inputs) - 1)] for n in range(len(maps))]
    spelled = ", ".join(f"affine_map<(d0, d1) -> ({m})>" for m in (*maps, _SAME))
    given = f"ins({', '.join(read)} : {', '.join([T] * len(read))}) " if read else ""
    scalars = ", ".join(f"%{c}: f32" for c in "abc"[: len(maps)] + "o")
    arguments = ", ".join(f"{n}: {T}" for n in (*inputs, "%y"))
    return f"""
kernel.func @{name}({arguments}) -> {T} attributes {{kernel.shared = 2 : i64}} {{
  %h = arith.constant 0.5 : f32
  %u = arith.constant 1.0 : f32
  %r = linalg.generic {{indexing_maps = [{spelled}], iterator_types = ["parallel", "parallel"]}}
      {given}outs(%y : {T}) {{
  ^bb0({scalars}):
    {ops}
    linalg.yield %s : f32
  }} -> {T}
  kernel.return %r : {T}
}}"""


KERNELS = "".join(
    (
        _kernel(
            "double",
            ["%x"],
            [_SAME],
            "%t = arith.mulf %a, %h : f32\n    %s = arith.addf %t, %u : f32",
        ),
        _kernel("flip", ["%x"], [_FLIPPED], "%s = arith.addf %a, %u : f32"),
        _kernel(
            "add",
            ["%x", "%z"],
            [_SAME, _SAME],
            "%t = arith.addf %a, %b : f32\n    %s = arith.mulf %t, %h : f32",
        ),
        _kernel(
            "sum",
            ["%x", "%z"],
            [_SAME, _SAME, _FLIPPED],
            "%t = arith.addf %a, %b : f32\n    %t2 = arith.addf %t, %c : f32\n"
            "    %s = arith.mulf %t2, %h : f32",
        ),
        _kernel(
            "more",
            ["%x"],
            [_SAME],
            "%t = arith.addf %a, %o : f32\n    %s = arith.mulf %t, %h : f32",
        ),
        _kernel("fill", [], [], "%s = arith.addf %h, %h : f32"),
    )
)


class _Host:
    """Spells a program as a host function that launches kernels."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []

    def put(self, *lines: str) -> None:
        self.lines += lines

    def text(self) -> str:
        program = self.program
        self.put(
            signature(program),
            *(f"%c{n} = arith.constant {n} : index" for n in range(N)),
            f"%e = tensor.empty() : {T}",
        )
        for k in range(2):
            self.put(
                f"%k{k}_ = tensor.extract %k[%c{k}] : tensor<2xi64>",
                f"%k{k}_i = arith.index_cast %k{k}_ : i64 to index",
                f"%k{k} = arith.remui %k{k}_i, %c3 : index",
            )
        self.statements(program.body)
        self.put(f"func.return {', '.join(program.results)} : {types(program.results)}", "}")
        return KERNELS + "\n".join(self.lines)

    def statements(self, rows: list[Statement]) -> None:
        for row in rows:
            match row:
                case Launch():
                    given = f"ins({', '.join(row.inputs)} : {types(row.inputs)}) "
                    self.put(
                        f"{row.result} = kernel.launch @{row.kernel} "
                        f"{given if row.inputs else ''}outs({row.into or '%e'} : {T}) -> {T}"
                    )
                case Row():
                    self.row(row)
                case Loop() if row.test is None:
                    self.counted(row)
                case Loop():
                    self.loop(row)
                case Branch():
                    self.branch(row)

    def row(self, row: Row) -> None:
        part, sizes = row.result + "_", f"[1, {N}] [1, 1]"
        self.put(
            f"{part} = tensor.extract_slice {row.source}[{row.at}, 0] {sizes} : {T} to {ROW}",
            f"{row.result} = tensor.insert_slice {part} into {row.into}[{row.to}, 0] {sizes} : "
            f"{ROW} into {T}",
        )

    def branch(self, row: Branch) -> None:
        odd, rest = row.results[0] + "_", row.results[0] + "_n"
        self.put(
            f"{rest} = arith.remui {row.of}, %c2 : index",
            f"{odd} = arith.cmpi eq, {rest}, %c1 : index",
            f"{', '.join(row.results)} = scf.if {odd} -> ({types(row.results)}) {{",
        )
        for number, (side, ends) in enumerate(zip(row.sides, row.yields, strict=True)):
            self.statements(side)
            self.put(f"scf.yield {', '.join(ends)} : {types(ends)}", "}" if number else "} else {")

    def counted(self, row: Loop) -> None:
        limit = row.count if isinstance(row.count, str) else f"%c{row.count}"
        pairs = ", ".join(f"{s} = {i}" for s, i in zip(row.slots, row.inits, strict=True))
        self.put(
            f"{', '.join(row.results)} = scf.for {row.counter} = %c0 to {limit} step %c1 "
            f"iter_args({pairs}) -> ({types(row.results)}) {{"
        )
        self.statements(row.body)
        self.put(f"scf.yield {', '.join(row.yields)} : {types(row.yields)}", "}")

    def loop(self, row: Loop) -> None:
        limit = row.count if isinstance(row.count, str) else f"%c{row.count}"
        i, kinds = row.counter, types(row.slots)
        pairs = zip([i, *row.slots], ["%c0", *row.inits], strict=True)
        self.put(
            f"{i}_r, {', '.join(row.results)} = scf.while "
            f"({', '.join(f'{s} = {v}' for s, v in pairs)}) : (index, {kinds}) -> (index, {kinds}) {{"
        )
        self.statements(row.test or [])
        arguments = [f"{i}: index", *(f"{n}: {T}" for n in row.names)]
        self.put(
            f"{i}_go = arith.cmpi ult, {i}, {limit} : index",
            f"scf.condition({i}_go) {i}, {', '.join(row.given)} : index, {kinds}",
            "} do {",
            f"^bb0({', '.join(arguments)}):",
        )
        self.statements(row.body)
        self.put(
            f"{i}_next = arith.addi {i}, %c1 : index",
            f"scf.yield {i}_next, {', '.join(row.yields)} : index, {kinds}",
            "}",
        )


def on_host(program: Program) -> str:
    """Return the program as text of the kernel floor."""
    return _Host(program).text()
