"""Every op of arith, math and vector on awkward values: C against the interpreter, bit by bit.

One module holds them all, so that the C compiler starts once. Each function runs its op on every
pair of values, as scalars and as vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

N = 64
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8")

NUMPY: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i1": np.bool_,
}


@dataclass(frozen=True)
class Case:
    """One op on one element type: ``line`` computes %r from %a, %b, %c, T standing for the type."""

    name: str
    line: str
    kinds: tuple[str, ...]
    result: str = ""
    operands: int = 2
    ulps: int = 0
    positive: bool = False

    def functions(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, element and text of a function for each element type, twice."""
        for kind in self.kinds:
            for lanes in (0, 8):
                name = f"{self.name}_{kind}_{lanes}"
                yield name, kind, self._text(name, kind, lanes)

    def _text(self, name: str, kind: str, lanes: int) -> str:
        result = self.result or kind
        type, out = (f"vector<{lanes}x{k}>" if lanes else k for k in (kind, result))
        letters = "abc"[: self.operands]
        arguments = [f'%m{x}: memref<{N}x{kind}> {{kernel.role = "input"}}' for x in letters]
        arguments.append(f'%y: memref<{N}x{result}> {{kernel.role = "output"}}')
        dialect = "vector" if lanes else "memref"
        rows = []
        for x in letters:
            extra = f", {type}" if lanes else ""
            rows.append(f"%{x} = {dialect}.load %m{x}[%i] : memref<{N}x{kind}>{extra}")
        rows.append(self.line.replace("T", type).replace("R", out))
        extra = f", {out}" if lanes else ""
        rows.append(f"{dialect}.store %r, %y[%i] : memref<{N}x{result}>{extra}")
        body = "\n    ".join(rows)
        return f"""
func.func @{name}({", ".join(arguments)}) {{
  %zero = arith.constant 0 : index
  %n = arith.constant {N} : index
  %step = arith.constant {lanes or 1} : index
  scf.for %i = %zero to %n step %step {{
    {body}
  }}
  func.return
}}"""


def _binary(dialect: str, names: str, kinds: Sequence[str], **more: Any) -> list[Case]:
    return [Case(n, f"%r = {dialect}.{n} %a, %b : T", tuple(kinds), **more) for n in names.split()]


def _unary(dialect: str, names: str, kinds: Sequence[str], **more: Any) -> list[Case]:
    return [
        Case(n, f"%r = {dialect}.{n} %a : T", tuple(kinds), operands=1, **more)
        for n in names.split()
    ]


CASES = [
    *_binary("arith", "addf subf mulf divf maximumf minimumf maxnumf minnumf", FLOATS),
    *_binary("arith", "addi subi muli andi ori xori", (*INTEGERS, "i1")),
    *_binary("arith", "divsi divui remsi remui floordivsi", INTEGERS),
    *_binary("arith", "maxsi maxui minsi minui", INTEGERS),
    *_unary("arith", "negf", FLOATS),
    *_unary("math", "absf", FLOATS),
    *_unary("math", "absi ctpop ctlz cttz", INTEGERS),
    *_unary("math", "ceil floor trunc roundeven sqrt", FLOATS),
    *_unary("math", "round", ("f64", "f32")),
    *_unary(
        "math", "exp exp2 expm1 sin cos tan tanh atan erf cbrt sinh asinh", ("f64", "f32"), ulps=4
    ),
    *_unary("math", "log log2 log10 log1p acosh atanh asin acos cosh", ("f64", "f32"), ulps=4),
    *_unary("math", "exp tanh", ("f16", "bf16"), ulps=4),
    *_unary("math", "rsqrt", ("f64", "f32"), ulps=2),
    *_binary("math", "powf atan2", ("f64", "f32"), ulps=4),
    *_binary("math", "copysign", FLOATS),
    *(
        Case(f"cmpf_{p}", f"%r = arith.cmpf {p}, %a, %b : T", FLOATS, result="i1")
        for p in [
            "false",
            "oeq",
            "ogt",
            "oge",
            "olt",
            "ole",
            "one",
            "ord",
            "ueq",
            "ugt",
            "uge",
            "ult",
            "ule",
            "une",
            "uno",
            "true",
        ]
    ),
    *(
        Case(f"cmpi_{p}", f"%r = arith.cmpi {p}, %a, %b : T", (*INTEGERS, "i1"), result="i1")
        for p in ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
    ),
    Case("fma", "%r = math.fma %a, %b, %c : T", ("f32",), operands=3),
    *(
        Case(f"to_{to}", "%r = arith.sitofp %a : T to R", (*INTEGERS, "i1"), to, 1)
        for to in ("f64", "f32")
    ),
    *(
        Case(f"uto_{to}", "%r = arith.uitofp %a : T to R", (*INTEGERS, "i1"), to, 1)
        for to in ("f64", "f32")
    ),
    *(
        Case(f"extsi_{to}", "%r = arith.extsi %a : T to R", ("i8", "i1"), to, 1)
        for to in ("i64", "i16")
    ),
    *(
        Case(f"extui_{to}", "%r = arith.extui %a : T to R", ("i8", "i1"), to, 1)
        for to in ("i64", "i16")
    ),
    *(
        Case(f"trunci_{to}", "%r = arith.trunci %a : T to R", ("i64", "i32"), to, 1)
        for to in ("i16", "i8", "i1")
    ),
    *(
        Case(f"extf_{to}", "%r = arith.extf %a : T to R", ("f16", "bf16"), to, 1)
        for to in ("f64", "f32")
    ),
    *(
        Case(f"truncf_{to}", "%r = arith.truncf %a : T to R", ("f32",), to, 1)
        for to in ("f16", "bf16")
    ),
    Case("truncf_f32", "%r = arith.truncf %a : T to R", ("f64",), "f32", 1),
    Case("bitcast_i", "%r = arith.bitcast %a : T to R", ("f32",), "i32", 1),
    Case("bitcast_f", "%r = arith.bitcast %a : T to R", ("i64",), "f64", 1),
    Case(
        "select",
        "%t = arith.cmpf olt, %a, %b : T\n    %r = arith.select %t, %a, %b : SEL T",
        FLOATS,
    ),
]


def _values(kind: str, seed: int) -> Any:
    """Return N values of a kind, half of them awkward."""
    random = np.random.default_rng(seed)
    if kind == "i1":
        return random.integers(0, 2, N).astype(np.bool_)
    if kind[0] == "i":
        type = NUMPY[kind]
        info = np.iinfo(type)
        special = [0, 0, 1, -1, info.min, info.max, 2, -2, 7, info.min + 1, info.max - 1, 3]
        whole = random.integers(info.min, info.max, N, dtype=type, endpoint=True)
        whole[: N // 2] = random.choice(np.array(special, type), N // 2)
        return whole
    values = random.normal(0, 3, N)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5, 65504.0, 1e-7]
    values[: N // 2] = random.choice(special, N // 2)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(NUMPY[kind])


@pytest.fixture(scope="module")
def program(compiled: Any) -> Any:
    """Every case in one program."""
    texts = [text for case in CASES for _, _, text in case.functions()]
    return compiled("\n".join(_select(text) for text in texts))


def _select(text: str) -> str:
    """arith.select names the type of its condition only where that is a vector."""
    if "SEL vector" in text:
        return text.replace("SEL ", "vector<8xi1>, ")
    return text.replace("SEL ", "")


def _number(kind: str, x: Any) -> Any:
    if kind == "bf16":
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_c_computes_what_the_interpreter_does(case: Case, program: Any) -> None:
    for seed, (name, kind, _) in enumerate(case.functions()):
        arrays = [_values(kind, 10 * seed + k) for k in range(case.operands)]
        result = case.result or kind
        arrays.append(np.zeros(N, NUMPY[result]))
        *_, got = program.c(name, arrays)
        with np.errstate(all="ignore"):
            *_, want = program.interpreted(name, arrays)
        _compare(case, name, _number(result, got), _number(result, want), arrays[:-1])


def _compare(case: Case, name: str, got: Any, want: Any, inputs: Any) -> None:
    if case.ulps:
        a, b = (np.asarray(v, np.float64) for v in (got, want))
        a, b = (np.where(np.isinf(v), 1e300 * np.sign(v), v) for v in (a, b))
        eps = 2.0**-7 if "bf16" in name else np.finfo(got.dtype).eps
        close = np.abs(a - b) <= case.ulps * eps * np.maximum(np.abs(b), 1e-30)
        same = close | (np.isnan(a) & np.isnan(b)) | (a == b)
    else:
        same = (got == want) | ((got != got) & (want != want))
    wrong = np.flatnonzero(~same)
    assert not len(wrong), (
        f"{name}: {[(tuple(x[k] for x in inputs), got[k], want[k]) for k in wrong[:4]]}"
    )
