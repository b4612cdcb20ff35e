"""A test row, its program and inputs, and the comparison of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stepwell.core.dtypes import DTYPES, DType
from stepwell.core.shapes import Shape
from stepwell.testing.comparing import differing
from stepwell.testing.op_rows.values import anything

Array: TypeAlias = "NDArray[Any]"
Values: TypeAlias = Callable[[np.random.Generator, DType, Shape], Array]
"""``(random numbers, dtype, shape) -> an argument``; bf16 is float32 rounded to bf16."""

FLOATS = ("f32", "f64", "f16", "bf16")
SIGNED = ("i32", "i8", "i16", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = (*NUMBERS, "i1")


@dataclass(frozen=True)
class Row:
    """One op in one program, to be run on several dtypes and sizes.

    In types and text ``{e}`` stands for the element type. The text is the function's body, without
    its return; it defines the results, named ``%y``, or ``%y0``, ``%y1``, ... where there are many.

        Row("nd.add", {"a": "tensor<?x{e}>", "b": "tensor<?x{e}>"},
            "%y = nd.add %a, %b : tensor<?x{e}>", "tensor<?x{e}>", sizes=((0,), (17,)))
    """

    op: str
    arguments: Mapping[str, str]
    text: str
    results: str | tuple[str, ...]
    dtypes: Sequence[str] = FLOATS
    sizes: Sequence[Shape] = ((),)
    """The dynamic sizes of each run: the k-th is that of `?` number k of every argument, counted
    in the order of axes."""
    values: Values | Mapping[str, Values] = anything
    """How arguments are drawn: one function for all, or by name."""
    ulps: float = 0
    """The allowed difference of a float, in units in the last place."""
    absolute: float = 0
    """A difference that is always allowed."""
    resources: Mapping[str, Array] = field(default_factory=dict[str, Array])
    note: str = ""
    """The aspect that the row tests, if an op has several rows."""

    @property
    def name(self) -> str:
        """The name of a test of the row."""
        return f"{self.op}-{self.note}" if self.note else self.op

    def module(self, dtype: str) -> str:
        """Return the program for one dtype: a module with the function @main."""
        results = (self.results,) if isinstance(self.results, str) else self.results
        names = ["%y"] if isinstance(self.results, str) else [f"%y{i}" for i in range(len(results))]
        arguments = ", ".join(f"%{n}: {t}" for n, t in self.arguments.items())
        types = ", ".join(results)
        text = (
            f"func.func @main({arguments}) -> ({types}) {{\n  {self.text.strip()}\n"
            f"  func.return {', '.join(names)} : {types}\n}}\n"
        )
        return text.replace("{e}", dtype)

    def cases(self, dtypes: Sequence[str] | None = None) -> Iterator[Case]:
        """Yield the row's runs; the random numbers are always the same."""
        for dtype in self.dtypes if dtypes is None else dtypes:
            module = self.module(dtype)
            for sizes in self.sizes:
                random = np.random.default_rng(crc32(f"{self.name} {dtype} {sizes}".encode()))
                arguments = [
                    self._draw(random, name, type.replace("{e}", dtype), sizes)
                    for name, type in self.arguments.items()
                ]
                yield Case(self, dtype, sizes, module, arguments)

    def _draw(self, random: np.random.Generator, name: str, type: str, sizes: Shape) -> Array:
        if type == "index":
            return np.asarray(sizes[0], np.int64)
        *axes, element = type.removeprefix("tensor<").removesuffix(">").split("x")
        dynamic = iter(sizes)
        shape = tuple(next(dynamic) if n == "?" else int(n) for n in axes)
        draw = self.values if callable(self.values) else self.values.get(name, anything)
        dtype = DTYPES[element]
        return dtype.round(draw(random, dtype, shape)).reshape(shape)


@dataclass(frozen=True)
class Case:
    """One run of a row: a program and its arguments."""

    row: Row
    dtype: str
    sizes: Shape
    module: str
    arguments: Sequence[Array]

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.sizes))
        return "-".join(part for part in (self.row.name, self.dtype, sizes) if part)

    def check(self, got: Sequence[Any], want: Sequence[Any]) -> None:
        """Fail unless the results agree within the row's tolerance."""
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            self._check(np.asarray(g), np.asarray(w))

    def _check(self, got: Array, want: Array) -> None:
        assert got.shape == want.shape, f"{self}: shape {got.shape}, expected {want.shape}"
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want, err_msg=str(self))
            return
        off = differing(got, want, self.row.ulps, self.row.absolute, DTYPES.get(self.dtype))
        if off.any():
            first = tuple(int(i) for i in np.argwhere(off)[0])
            inputs = [a[first] for a in self.arguments if a.shape == want.shape]
            raise AssertionError(
                f"{self}: {off.sum()} of {off.size} elements differ; first at {list(first)}: "
                f"got {got[first]!r}, expected {want[first]!r}, from {inputs}"
            )
