"""Many rows as one program: compiled at once, the results split by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.runtime.entry import numpy_dtype
from stepwell.testing.op_rows.row import Array, Case, Row
from stepwell.testing.op_rows.run import reference


@dataclass(frozen=True)
class Member:
    """One row for one dtype, as a function of a program."""

    row: Row
    dtype: str
    number: int

    @cached_property
    def cases(self) -> list[Case]:
        """The runs of the row."""
        return list(self.row.cases([self.dtype]))

    @property
    def arguments(self) -> Mapping[str, str]:
        """Types of arguments, by name."""
        return {n: t.replace("{e}", self.dtype) for n, t in self.row.arguments.items()}

    @property
    def results(self) -> Sequence[str]:
        """Types of results."""
        types = (self.row.results,) if isinstance(self.row.results, str) else self.row.results
        return [t.replace("{e}", self.dtype) for t in types]

    def function(self) -> str:
        """Return the row as a function with its own name."""
        text = self.row.module(self.dtype).replace("@main", f"@row{self.number}")
        return text.replace("func.func", "func.func private")

    def name(self, argument: str) -> str:
        """Return the name in the whole program of an argument of the row."""
        return f"r{self.number}_{argument}"

    def call(self) -> str:
        """Return the statements that call the row's function."""
        lines: list[str] = []
        names: list[str] = []
        for name, type in self.arguments.items():
            given = f"%{self.name(name)}"
            if type == "index":  # an entry takes only tensors: pass the size of a tensor's axis
                lines.append(f"{given}_n = nd.dim {given} {{axis = 0}} : tensor<?xi8>")
                given += "_n"
            names.append(given)
        results = ", ".join(self.result_names)
        types = f"({', '.join(self.arguments.values())}) -> ({', '.join(self.results)})"
        call = f"{results} = nd.call @row{self.number}({', '.join(names)}) : {types}"
        return "\n  ".join([*lines, call])

    @property
    def result_names(self) -> list[str]:
        """The names of the results in the whole program."""
        return [f"%r{self.number}_y{i}" for i in range(len(self.results))]

    def given(self, case: Case) -> Iterator[tuple[str, Array]]:
        """Yield a case's arguments in the program's format, by name."""
        for (name, type), value in zip(self.arguments.items(), case.arguments, strict=True):
            if type == "index":
                yield self.name(name), np.zeros(int(value), np.int8)
            else:
                yield self.name(name), outside(value, type)


@dataclass(frozen=True)
class Together:
    """A program of many rows."""

    members: Sequence[Member]

    @classmethod
    def of(cls, rows: Sequence[tuple[Row, str]]) -> Together:
        """Return the program of these rows, each for one dtype."""
        return cls([Member(row, dtype, number) for number, (row, dtype) in enumerate(rows)])

    @property
    def text(self) -> str:
        """The module: a function for each row, and @main, which calls them all."""
        functions = "".join(m.function() for m in self.members)
        arguments = ", ".join(
            f"%{m.name(n)}: {'tensor<?xi8>' if t == 'index' else t}"
            for m in self.members
            for n, t in m.arguments.items()
        )
        calls = "\n  ".join(m.call() for m in self.members)
        results = ", ".join(n for m in self.members for n in m.result_names)
        types = ", ".join(t for m in self.members for t in m.results)
        return (
            f"{functions}func.func @main({arguments}) -> ({types}) {{\n  {calls}\n"
            f"  func.return {results} : {types}\n}}\n"
        )

    @property
    def resources(self) -> Mapping[str, Array]:
        """The weights of all rows."""
        return {n: a for m in self.members for n, a in m.row.resources.items()}

    def check(self, program: Callable[..., Any]) -> None:
        """Run every case of every row, several rows in one call; compare with the reference."""
        for run in range(max(len(m.cases) for m in self.members)):
            cases = [m.cases[run % len(m.cases)] for m in self.members]
            wanted = [reference(case) for case in cases]
            self._run(program, cases, wanted)

    def _run(
        self, program: Callable[..., Any], cases: Sequence[Case], wanted: Sequence[Sequence[Array]]
    ) -> None:
        members = list(zip(self.members, cases, strict=True))
        given = {n: x for m, case in members for n, x in m.given(case)}
        kept = {n: x.copy() for n, x in given.items()}
        types = [t for m in self.members for t in m.results]
        outputs = [
            garbage(np.shape(w), type)
            for type, w in zip(types, (w for ws in wanted for w in ws), strict=True)
        ]
        program(**given, out=tuple(outputs) if len(outputs) > 1 else outputs[0])
        for name, before in kept.items():
            assert before.tobytes() == given[name].tobytes(), f"argument {name} was written"
        got = iter(outputs)
        for (member, case), want in zip(members, wanted, strict=True):
            case.check([inside(next(got), t) for t in member.results], want)


def element(type: str) -> str:
    """Return the element type of a tensor type's text."""
    return type.removeprefix("tensor<").removesuffix(">").split("x")[-1]


def outside(value: Array, type: str) -> Array:
    """Return an array of the reference in the format of programs: bf16 as a dtype of its own."""
    return np.asarray(value).astype(numpy_dtype(element(type)))


def inside(value: Array, type: str) -> Array:
    """Return a program's result in the format of the reference."""
    return value.astype(DTYPES[element(type)].numpy) if element(type) == "bf16" else value


def garbage(shape: Sequence[int], type: str) -> Array:
    """Return an array full of bytes that reveal elements which are not written."""
    created = np.empty(shape, numpy_dtype(element(type)))
    if element(type) == "i1":
        created[...] = True
    else:
        created.reshape(-1).view(np.uint8)[...] = 0x7B
    return created
