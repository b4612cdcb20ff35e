"""A program as text of nd."""

from __future__ import annotations

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


class _Nd:
    """Spells a program in nd."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []

    def put(self, *lines: str) -> None:
        self.lines += lines

    def text(self) -> str:
        program = self.program
        self.put(
            signature(program),
            *(f"%c{n} = nd.full {n} : tensor<i64>" for n in range(N)),
            f"%h = nd.full 0.5 : {T}",
            f"%u = nd.full 1.0 : {T}",
            "%to = nd.iota {axis = 0} : tensor<3xi64>",
        )
        for k in range(2):
            self.put(
                f"%k{k}_1 = nd.slice %k[{k}:{k + 1}] : tensor<2xi64> -> tensor<1xi64>",
                f"%k{k} = nd.reshape %k{k}_1 : tensor<1xi64> -> tensor<i64>",
            )
        self.statements(program.body)
        self.put(f"func.return {', '.join(program.results)} : {types(program.results)}", "}")
        return "\n".join(self.lines)

    def statements(self, rows: list[Statement]) -> None:
        for row in rows:
            match row:
                case Launch():
                    self.launch(row)
                case Row():
                    part, to, at = row.result + "_", _index(row.to), _index(row.at)
                    self.put(
                        f"{part} = nd.dynamic_slice {row.source}, starts({at}) "
                        f"{{axes = [0], sizes = [1]}} : ({T}, tensor<i64>) -> {ROW}",
                        f"{row.result} = nd.dynamic_update_slice {row.into}, {part}, starts({to}) "
                        f"{{axes = [0]}} : ({T}, {ROW}, tensor<i64>) -> {T}",
                    )
                case Loop() if row.test is None and isinstance(row.count, int):
                    self.scan(row)
                case Loop():
                    self.loop(row)
                case Branch():
                    self.branch(row)

    def launch(self, row: Launch) -> None:
        y, (a, b) = row.result, [*row.inputs, *row.inputs, "", ""][:2]
        match row.kernel:
            case "double":
                self.put(f"{y}_ = nd.mul {a}, %h : {T}", f"{y} = nd.add {y}_, %u : {T}")
            case "flip":
                self.put(f"{y}_ = nd.transpose {a} {{permutation = [1, 0]}} : {T} -> {T}")
                self.put(f"{y} = nd.add {y}_, %u : {T}")
            case "add":
                self.put(f"{y}_ = nd.add {a}, {b} : {T}", f"{y} = nd.mul {y}_, %h : {T}")
            case "sum":
                self.put(
                    f"{y}_1 = nd.transpose {b} {{permutation = [1, 0]}} : {T} -> {T}",
                    f"{y}_2 = nd.add {a}, {b} : {T}",
                    f"{y}_3 = nd.add {y}_2, {y}_1 : {T}",
                    f"{y} = nd.mul {y}_3, %h : {T}",
                )
            case "more":
                self.put(f"{y}_ = nd.add {a}, {row.into} : {T}", f"{y} = nd.mul {y}_, %h : {T}")
            case _:
                self.put(f"{y} = nd.full 1.0 : {T}")

    def branch(self, row: Branch) -> None:
        odd, rest = row.results[0] + "_", row.results[0] + "_n"
        self.put(
            f"{rest} = nd.rem {row.of}, %c2 : tensor<i64>",
            f"{odd} = nd.eq {rest}, %c1 : tensor<i64> -> tensor<i1>",
            f"{', '.join(row.results)} = nd.if {odd} -> {types(row.results)} {{",
        )
        for number, (side, ends) in enumerate(zip(row.sides, row.yields, strict=True)):
            self.statements(side)
            self.put(f"nd.yield {', '.join(ends)} : {types(ends)}", "}" if number else "} else {")

    def scan(self, row: Loop) -> None:
        pairs = ", ".join(f"{s} = {i}" for s, i in zip(row.slots, row.inits, strict=True))
        kinds = types(row.slots)
        steps = f"%to{row.counter[1:]}"
        self.put(
            f"{steps} = nd.iota {{axis = 0}} : tensor<{row.count}xi64>",
            f"{', '.join(row.results)} = nd.scan ({pairs}) over ({row.counter} = {steps}) : "
            f"({kinds}, tensor<{row.count}xi64>) -> ({kinds}) {{",
        )
        self.statements(row.body)
        self.put(f"nd.yield {', '.join(row.yields)} : {kinds}", "}")

    def loop(self, row: Loop) -> None:
        limit = row.count if isinstance(row.count, str) else f"%c{row.count}"
        i, kinds = row.counter, f"tensor<i64>, {types(row.slots)}"
        pairs = zip([i, *row.slots], ["%c0", *row.inits], strict=True)
        self.put(
            f"{i}_r, {', '.join(row.results)} = nd.while "
            f"({', '.join(f'{s} = {v}' for s, v in pairs)}) : {kinds} {{",
            f"{i}_go = nd.lt {i}, {limit} : tensor<i64> -> tensor<i1>",
            f"nd.condition {i}_go",
            f"}} do ({', '.join([i, *row.slots])}) {{",
        )
        self.statements(row.body)
        self.put(
            f"{i}_next = nd.add {i}, %c1 : tensor<i64>",
            f"nd.yield {i}_next, {', '.join(row.yields)} : {kinds}",
            "}",
        )


def _index(text: str) -> str:
    return text if text.startswith("%") else f"%c{text}"


def on_nd(program: Program) -> str:
    """Return the program as text of nd; it has no tests with statements."""
    return _Nd(program).text()
