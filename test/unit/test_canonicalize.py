"""What canonicalize, cse and dce leave means, bit for bit, what was there before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_rows import ROWS, Row, elementwise
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from stepwell.core.dtypes import DTYPES
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.types import dense, element_type
from stepwell.testing.op_rows.row import ALL, FLOATS, INTEGERS, NUMBERS, Array, Case
from stepwell.testing.op_rows.run import parsed, reference
from stepwell.testing.op_rows.values import anything
from stepwell.transforms.canonicalize import Canonicalize, canonicalize
from stepwell.transforms.cse import CommonSubexpressions


def same_bits(got: Any, want: Any) -> None:
    """Fail unless two arrays are equal, zeros told apart by sign; NaN is NaN."""
    got, want = np.asarray(got), np.asarray(want)
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


def _simplify(module: ModuleOp) -> None:
    Canonicalize().apply(Context(), module)
    CommonSubexpressions().apply(Context(), module)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row: Row) -> None:
    """No row changes its meaning."""
    for case in row.cases(row.dtypes[:1]):
        module = parsed(case.module)
        _simplify(module)
        module.verify()
        got = Interpreter(module, case.row.resources).call("main", case.arguments)
        case.check(got, reference(case))


def _constant_arguments(case: Case) -> str:
    """Return the row's program with its arguments written into it."""
    _, _, rest = case.module.partition("->")
    lines = [
        f"  %{name} = nd.constant {dense(array, _element(type.replace('{e}', case.dtype)))}\n"
        for (name, type), array in zip(case.row.arguments.items(), case.arguments, strict=True)
    ]
    head, brace, body = rest.partition("{\n")
    text = f"func.func @main() ->{head}{brace}{''.join(lines)}{body}"
    return text.replace("?", str(case.sizes[0]) if case.sizes else "?")


def _element(type: str) -> Any:
    return element_type(type.removesuffix(">").rpartition("x")[2].rpartition("<")[2])


ELEMENTWISE = [r for r in elementwise.ROWS if set(r.arguments.values()) == {"tensor<?x{e}>"}]


@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_folding(row: Row) -> None:
    """An op of constants becomes the constant it is."""
    for case in row.cases():
        if case.sizes != (1,):
            continue
        module = parsed(_constant_arguments(case))
        canonicalize(module)
        (function,) = module.ops
        assert isinstance(function, FuncOp)
        first, *rest = function.body.block.ops
        assert isinstance(first, ConstantOp | FullOp)
        assert len(rest) == 1, str(module)
        same_bits(Interpreter(module).call("main", ())[0], reference(case)[0])


FILLS = ("0", "1", "2", "3", "4", "8")
FLOAT_FILLS = ("0.0", "-0.0", "1.0", "-1.0", "2.0", "-2.0", "0.5", "3.0", "1.0e-3", "4096.0")
BINARY = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "mod", "floor_div", "pow"), NUMBERS),
    **dict.fromkeys(("max", "min"), NUMBERS),
    **dict.fromkeys(("and", "or", "xor"), (*INTEGERS, "i1")),
    **dict.fromkeys(("shift_left", "shift_right"), INTEGERS),
    **dict.fromkeys(("copysign", "atan2", "hypot"), FLOATS),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), ALL),
}
UNARY = {
    **dict.fromkeys(("neg", "abs", "sign", "square"), NUMBERS),
    **dict.fromkeys(("reciprocal", "ceil", "floor", "round", "trunc", "cos"), FLOATS),
    "not": (*INTEGERS, "i1"),
}


def _programs(dtype: str) -> list[str]:
    """Return one function for each identity that might be thought to hold."""
    lines: list[tuple[str, str]] = []
    kind = DTYPES[dtype].kind
    fills = FLOAT_FILLS if kind == "float" else ("true", "false") if kind == "bool" else FILLS
    fills = (*fills, "-1") if kind == "signed" else fills
    type = f"tensor<?x{dtype}>"
    for name, dtypes in BINARY.items():
        if dtype not in dtypes:
            continue
        result = "tensor<?xi1>" if name in ("eq", "ne", "lt", "le", "gt", "ge") else type
        to = f"{type} -> {result}" if name in ("eq", "ne", "lt", "le", "gt", "ge") else type
        for fill in fills:
            full = f"%c = nd.full {fill}, sizes(%n) : {type}"
            lines.append((f"{full}\n%y = nd.{name} %x, %c : {to}", result))
            lines.append((f"{full}\n%y = nd.{name} %c, %x : {to}", result))
        lines.append((f"%y = nd.{name} %x, %x : {to}", result))
        inner = "not" if kind == "bool" else "neg"
        lines.append((f"%m = nd.{inner} %x : {type}\n%y = nd.{name} %z, %m : {to}", result))
        lines.append((f"%m = nd.{inner} %x : {type}\n%y = nd.{name} %m, %z : {to}", result))
    mine = [name for name, dtypes in UNARY.items() if dtype in dtypes]
    for one in mine:
        for other in mine:
            lines.append((f"%m = nd.{one} %x : {type}\n%y = nd.{other} %m : {type}", type))
    for middle in ALL:
        for to in {"i8": 0, "ui32": 0, "f64": 0, "bf16": 0, "i1": 0, dtype: 0}:
            cast = f"%m = nd.cast %x : {type} -> tensor<?x{middle}>\n"
            cast += f"%y = nd.cast %m : tensor<?x{middle}> -> tensor<?x{to}>"
            lines.append((cast, f"tensor<?x{to}>"))
    return [
        f"func.func @f{i}(%x: {type}, %z: {type}, %n: index) -> {result} {{\n"
        f"{text}\nfunc.return %y : {result}\n}}\n"
        for i, (text, result) in enumerate(lines)
    ]


def _results(module: ModuleOp, arguments: list[Array]) -> list[Any]:
    interpreter = Interpreter(module)
    names = [f.sym_name.data for f in module.ops if isinstance(f, FuncOp)]
    return [interpreter.call(name, arguments)[0] for name in names]


FEW = ("f32", "f16", "i8", "i64", "ui32", "i1")
"""Dtypes of every kind; the slow lane takes the others."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=() if d in FEW else pytest.mark.slow) for d in ALL]
)
def test_identities_are_exact(dtype: str) -> None:
    """Every op with every telling constant, with itself and after every other keeps its bits."""
    random = np.random.default_rng(7)
    x, z = (anything(random, DTYPES[dtype], (400,)) for _ in range(2))
    arguments = [x, z, np.asarray(400)]
    programs = _programs(dtype)
    module = parsed("".join(programs))
    before = _results(module, arguments)
    _simplify(module)
    module.verify()
    for text, want, got in zip(programs, before, _results(module, arguments), strict=True):
        try:
            same_bits(got, want)
        except AssertionError as error:
            raise AssertionError(f"{text}\n{error}") from None
