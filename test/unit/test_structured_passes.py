"""Random structured programs mean the same before and after each pass that moves ops about."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from reading import all_dialects
from xdsl.parser import Parser

from stepwell.dialects import kernel, upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.lowering.outline_kernels import OutlineKernels
from stepwell.transforms.kernels.schedule import Schedule
from stepwell.transforms.structured.fuse import FuseElementwise

assert upstream


def _map(loops: int, results: str) -> str:
    return f"affine_map<({', '.join(f'd{i}' for i in range(loops))}) -> ({results})>"


def _ident(rank: int) -> str:
    return ", ".join(f"d{i}" for i in range(rank))


@dataclass
class Value:
    name: str
    shape: tuple[int, ...]
    dynamic: tuple[bool, ...]

    @property
    def type(self) -> str:
        sizes = ("?x" if d else f"{n}x" for n, d in zip(self.shape, self.dynamic, strict=True))
        return f"tensor<{''.join(sizes)}f32>"


@dataclass
class Program:
    """Text of a function, written one random op at a time."""

    pick: random.Random
    lines: list[str] = field(default_factory=list[str])
    values: list[Value] = field(default_factory=list[Value])
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def argument(self, shape: tuple[int, ...]) -> Value:
        dynamic = tuple(self.pick.random() < 0.3 for _ in shape)
        return Value(self.name(), shape, dynamic)

    def size(self, value: Value, axis: int) -> str:
        c, n = self.name(), self.name()
        self.lines.append(f"{c} = arith.constant {axis} : index")
        self.lines.append(f"{n} = tensor.dim {value.name}, {c} : {value.type}")
        return n

    def empty(self, sizes: list[tuple[Value, int]]) -> Value:
        shape = tuple(v.shape[a] for v, a in sizes)
        dynamic = tuple(v.dynamic[a] for v, a in sizes)
        operands = [self.size(v, a) for v, a in sizes if v.dynamic[a]]
        result = Value(self.name(), shape, dynamic)
        self.lines.append(f"{result.name} = tensor.empty({', '.join(operands)}) : {result.type}")
        return result

    def fill(self, number: float, into: Value) -> Value:
        c, result = self.name(), Value(self.name(), into.shape, into.dynamic)
        self.lines.append(f"{c} = arith.constant {number} : f32")
        self.lines.append(
            f"{result.name} = linalg.fill ins({c} : f32) outs({into.name} : {into.type}) "
            f"-> {into.type}"
        )
        return result

    def generic(
        self,
        loops: str,
        inputs: list[tuple[Value, str]],
        outputs: list[tuple[Value, str]],
        body: list[str],
    ) -> list[Value]:
        maps = ", ".join(_map(len(loops), m) for _, m in (*inputs, *outputs))
        kinds = ", ".join('"parallel"' if c == "p" else '"reduction"' for c in loops)
        results = [Value(self.name(), v.shape, v.dynamic) for v, _ in outputs]
        arguments = [f"%i{k}" for k in range(len(inputs))] + [f"%o{k}" for k in range(len(outputs))]
        ins = f"ins({_list(inputs)}) " if inputs else ""
        self.lines.append(
            f"{', '.join(r.name for r in results)} = linalg.generic "
            f"{{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins}outs({_list(outputs)}) {{"
        )
        self.lines.append(f"^bb0({', '.join(f'{a}: f32' for a in arguments)}):")
        self.lines.extend(body)
        types = ", ".join(r.type for r in results)
        self.lines.append(f"}} -> {types if len(results) == 1 else f'({types})'}")
        return results


def _list(values: list[tuple[Value, str]]) -> str:
    return f"{', '.join(v.name for v, _ in values)} : {', '.join(v.type for v, _ in values)}"


def _like(p: Program, x: Value) -> Value:
    return p.empty([(x, a) for a in range(len(x.shape))])


def _unary(p: Program, x: Value) -> list[Value]:
    kind = p.pick.choice(["arith.negf", "math.absf", "math.tanh", "math.exp"])
    own, n = _ident(len(x.shape)), "p" * len(x.shape)
    return p.generic(
        n, [(x, own)], [(_like(p, x), own)], [f"%z = {kind} %i0 : f32", "linalg.yield %z : f32"]
    )


def _binary(p: Program, x: Value) -> list[Value]:
    """An op on x and a value of the same shape, or one broadcast to it along the first axis."""
    same = [v for v in p.values if v.shape == x.shape]
    rows = [v for v in p.values if len(x.shape) == 2 and v.shape == x.shape[:1]]
    y = p.pick.choice([*same, *rows])
    where = "d0" if y in rows else _ident(len(x.shape))
    kind = p.pick.choice(["arith.addf", "arith.subf", "arith.mulf", "arith.maximumf"])
    own = _ident(len(x.shape))
    return p.generic(
        "p" * len(x.shape),
        [(x, own), (y, where)],
        [(_like(p, x), own)],
        [f"%z = {kind} %i0, %i1 : f32", "linalg.yield %z : f32"],
    )


def _splat(p: Program, x: Value) -> list[Value]:
    y = p.fill(p.pick.choice([0.5, -2.0]), _like(p, x))
    own = _ident(len(x.shape))
    return p.generic(
        "p" * len(x.shape),
        [(y, own), (x, own)],
        [(_like(p, x), own)],
        ["%z = arith.mulf %i0, %i1 : f32", "linalg.yield %z : f32"],
    )


def _transpose(p: Program, x: Value) -> list[Value]:
    if len(x.shape) != 2:
        return _reverse(p, x)
    into = p.empty([(x, 1), (x, 0)])
    return p.generic("pp", [(x, "d1, d0")], [(into, "d0, d1")], ["linalg.yield %i0 : f32"])


def _reverse(p: Program, x: Value) -> list[Value]:
    if not x.shape or x.dynamic[-1]:
        return _unary(p, x)
    rank = len(x.shape)
    last = f"d{rank - 1} * -1 + {x.shape[-1] - 1}"
    where = ", ".join([*(f"d{i}" for i in range(rank - 1)), last])
    return p.generic(
        "p" * rank, [(x, where)], [(_like(p, x), _ident(rank))], ["linalg.yield %i0 : f32"]
    )


def _broadcast(p: Program, x: Value) -> list[Value]:
    wide = [v for v in p.values if len(v.shape) == 2 and v.shape[:1] == x.shape]
    if not wide:
        return _unary(p, x)
    into = _like(p, p.pick.choice(wide))
    return p.generic("pp", [(x, "d0")], [(into, "d0, d1")], ["linalg.yield %i0 : f32"])


def _reduce(p: Program, x: Value) -> list[Value]:
    if not x.shape:
        return _unary(p, x)
    axis = p.pick.randrange(len(x.shape))
    kind, start = p.pick.choice([("arith.addf", "0.0"), ("arith.maximumf", "-1000000.0")])
    into = p.fill(float(start), p.empty([(x, a) for a in range(len(x.shape)) if a != axis]))
    kept = ", ".join(f"d{a}" for a in range(len(x.shape)) if a != axis)
    loops = "".join("r" if a == axis else "p" for a in range(len(x.shape)))
    return p.generic(
        loops,
        [(x, _ident(len(x.shape)))],
        [(into, kept)],
        [f"%z = {kind} %o0, %i0 : f32", "linalg.yield %z : f32"],
    )


def _cumulate(p: Program, x: Value) -> list[Value]:
    if len(x.shape) != 2:
        return _unary(p, x)
    total = p.fill(0.0, p.empty([(x, 0)]))
    return p.generic(
        "pr",
        [(x, "d0, d1")],
        [(_like(p, x), "d0, d1"), (total, "d0")],
        ["%z = arith.addf %o1, %i0 : f32", "linalg.yield %z, %z : f32, f32"],
    )


def _matmul(p: Program, x: Value) -> list[Value]:
    other = [v for v in p.values if len(x.shape) == 2 == len(v.shape) and v.shape[0] == x.shape[1]]
    if not other:
        return _transpose(p, x)
    y = p.pick.choice(other)
    into = p.fill(0.0, p.empty([(x, 0), (y, 1)]))
    return p.generic(
        "ppr",
        [(x, "d0, d2"), (y, "d2, d1")],
        [(into, "d0, d1")],
        [
            "%p = arith.mulf %i0, %i1 : f32",
            "%z = arith.addf %o0, %p : f32",
            "linalg.yield %z : f32",
        ],
    )


def _number(p: Program, x: Value) -> list[Value]:
    own = _ident(len(x.shape))
    loop = p.pick.randrange(len(x.shape)) if x.shape else None
    if loop is None:
        return _unary(p, x)
    body = [
        f"%k = linalg.index {loop} : index",
        "%c = arith.index_cast %k : index to i32",
        "%f = arith.sitofp %c : i32 to f32",
        "linalg.yield %f : f32",
    ]
    return p.generic("p" * len(x.shape), [], [(_like(p, x), own)], body)


def _two_results(p: Program, x: Value) -> list[Value]:
    own, n = _ident(len(x.shape)), "p" * len(x.shape)
    body = [
        "%z = arith.negf %i0 : f32",
        "%y = math.absf %i0 : f32",
        "linalg.yield %z, %y : f32, f32",
    ]
    return p.generic(n, [(x, own)], [(_like(p, x), own), (_like(p, x), own)], body)


def _collapse(p: Program, x: Value) -> list[Value]:
    if len(x.shape) != 2 or any(x.dynamic):
        return _unary(p, x)
    flat = Value(p.name(), (x.shape[0] * x.shape[1],), (False,))
    p.lines.append(
        f"{flat.name} = tensor.collapse_shape {x.name} [[0, 1]] : {x.type} into {flat.type}"
    )
    return _unary(p, flat)


def _gather(p: Program, x: Value) -> list[Value]:
    if len(x.shape) != 1 or x.dynamic[0]:
        return _unary(p, x)
    body = [
        "%k = linalg.index 0 : index",
        f"%c = arith.constant {max(x.shape[0], 1)} : index",
        "%t = arith.addi %k, %k : index",
        "%m = arith.remui %t, %c : index",
        f"%e = tensor.extract {x.name}[%m] : {x.type}",
        "linalg.yield %e : f32",
    ]
    return p.generic("p", [], [(_like(p, x), "d0")], body)


_OPS = [
    _unary,
    _binary,
    _binary,
    _splat,
    _transpose,
    _reverse,
    _broadcast,
    _reduce,
    _reduce,
    _cumulate,
    _matmul,
    _number,
    _two_results,
    _collapse,
    _gather,
]


def _program(seed: int) -> tuple[str, list[tuple[int, ...]]]:
    p = Program(random.Random(seed))
    sizes = [p.pick.choice([0, 1, 2, 3, 5, 7]) if seed % 7 == 0 else p.pick.choice([1, 2, 3, 5])]
    sizes.append(p.pick.choice([1, 2, 4, 5]))
    n, m = sizes
    arguments = [p.argument(s) for s in ((n, m), (m, n), (n,), (n, m))]
    p.values.extend(arguments)
    for _ in range(p.pick.randrange(2, 14)):
        x = p.pick.choice(p.values[-6:])
        p.values.extend(p.pick.choice(_OPS)(p, x))
    made = p.values[len(arguments) :]
    results = [*made[-1:], *p.pick.sample(made, min(len(made), p.pick.randrange(3)))]
    types = ", ".join(r.type for r in results)
    header = ", ".join(f"{a.name}: {a.type}" for a in arguments)
    body = "\n  ".join(p.lines)
    names = ", ".join(r.name for r in results)
    text = (
        f"func.func @f({header}) -> ({types}) {{\n  {body}\n  func.return {names} : {types}\n}}\n"
    )
    return text, [a.shape for a in arguments]


def _compare(before: tuple[Any, ...], after: tuple[Any, ...], what: str) -> None:
    for x, y in zip(before, after, strict=True):
        assert np.shape(x) == np.shape(y), what
        np.testing.assert_array_equal(x, y, what)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", range(8))
def test_random_programs_keep_their_meaning(block: int) -> None:
    context = all_dialects()
    for seed in range(block * 25, block * 25 + 25):
        text, shapes = _program(seed)
        module = Parser(context, text).parse_module()
        module.verify()
        draw = np.random.default_rng(seed)
        arguments = [draw.integers(-4, 5, s).astype(np.float32) for s in shapes]
        before = Interpreter(module).call("f", arguments)
        for each in (FuseElementwise(), OutlineKernels(), Schedule()):
            each.apply(context, module)
            module.verify()
            after = Interpreter(module).call("f", arguments)
            _compare(before, after, f"seed {seed}, after {each.name}\n{text}\n{module}")
        left = [o.name for o in module.walk() if o.name.startswith("linalg.")]
        host = [
            o.name
            for o in module.walk()
            if o.name in ("linalg.generic", "linalg.fill")
            and not isinstance(o.parent_op(), kernel.FuncOp)
        ]
        assert left and not host, f"seed {seed}: {host} on the host\n{module}"
