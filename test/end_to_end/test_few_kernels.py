"""How few kernels, buffers and copies whole programs become, and how little memory they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.source import Source
from stepwell.core.targets import machine_for
from stepwell.dialects.kernel import FuncOp, LaunchOp
from stepwell.driver.lowering import Lowering
from stepwell.driver.pass_pipeline import parse

pytestmark = pytest.mark.machine("halved")

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape, np.float32)


def down(function: Callable[..., Any], arguments: tuple[Any, ...], stage: str) -> str:
    """Return the module of a traced function after ``stage``."""
    return str(sw.jit(function).trace(*arguments).lower(stage))


def kernels(text: str) -> list[str]:
    return re.findall(r"kernel\.func @(\w+)", text)


def heads(x: Any) -> Any:
    return snp.permute_dims(snp.reshape(x, (5, 2, 8)), (1, 0, 2))


def two_layers(x: Any, w: Any, v: Any) -> Any:
    return sw.nn.relu(sw.nn.relu(x @ w) @ v)


def fused(x: Any) -> Any:
    return snp.sum((x + x) * x)


X, W, B = array(5, 16), array(16, 16), array(16)
ONE_KERNEL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add, multiply, sum": (lambda x, y, z: snp.sum((x + y) * z), (X, X, X)),
    "add, multiply, sum of rows": (lambda x, y, z: snp.sum((x + y) * z, axis=1), (X, X, X)),
    "softmax": (lambda x: sw.nn.softmax(x, axis=-1), (X,)),
    "softmax of columns": (lambda x: sw.nn.softmax(x, axis=0), (X,)),
    "log softmax": (lambda x: sw.nn.log_softmax(x, axis=-1), (X,)),
    "layer norm": (lambda x, g, b: sw.nn.layer_norm(x, g, b), (X, B, B)),
    "bias and activation": (lambda x, w, b: sw.nn.relu(x @ w + b), (X, W, B)),
    "bias and gelu": (lambda x, w, b: sw.nn.gelu(x @ w + b, False), (X, W, B)),
    "convolution, bias, activation": (
        lambda x, w, b: sw.nn.relu(sw.nn.conv(x, w) + snp.reshape(b, (-1, 1, 1))),
        (array(1, 3, 9, 9), array(4, 3, 3, 3), array(4)),
    ),
    "sum and maximum": (lambda x: (snp.sum(x, axis=1), snp.max(x, axis=1)), (X,)),
    "sum and maximum of everything": (lambda x: (snp.sum(x), snp.max(x)), (X,)),
    "repeated layers": (two_layers, (array(40, 40), array(40, 40), array(40, 40))),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_is_enough(name: str) -> None:
    function, arguments = ONE_KERNEL[name]
    assert len(kernels(down(function, arguments, "kernels"))) == 1


@pytest.mark.parametrize("name", [n for n in ONE_KERNEL if n != "repeated layers"])
def test_no_buffer_between(name: str) -> None:
    """Nothing is allocated by the host, and nothing but numbers of one iteration in the kernel."""
    function, arguments = ONE_KERNEL[name]
    assert "memref.alloc()" not in down(function, arguments, "buffers").split("func.func")[1]
    for found in re.findall(r"memref\.alloca.* : memref<(.*)>", down(function, arguments, "loops")):
        assert prod(int(n) for n in re.findall(r"(\d+)x", found)) <= 16 * 64


def attend(x: Any, w: Any, b: Any) -> Any:
    """Scores of two heads, each from its own part of the columns of a product and a bias."""
    q, k = heads(x @ w + b), heads(x @ w - b)
    return q @ snp.permute_dims(k, (0, 2, 1))


def test_heads_are_views() -> None:
    """A bias goes into the product before the heads, which the next product reads as they lie."""
    text = down(attend, (X, W, B), "kernels")
    assert [k.split("_", 1)[1] for k in kernels(text)] == ["matmul_sub_add", "matmul"]


def test_a_sum_and_a_maximum_read_once() -> None:
    text = down(*ONE_KERNEL["sum and maximum"], "structured")
    assert text.count("linalg.generic") == 1


def block(x: Any, w: Any, v: Any, b: Any) -> Any:
    """An encoder layer with one head."""
    q, k, u = x @ w, x @ w + b, x @ v
    a = sw.nn.softmax(q @ snp.permute_dims(k, (1, 0)), axis=-1) @ u
    x = sw.nn.layer_norm(x + a @ w, b, b)
    return sw.nn.layer_norm(x + sw.nn.gelu(x @ v + b, False) @ w, b, b)


def deep(count: int, layer: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, *weights: Any) -> Any:
        for _ in range(count):
            x = layer(x, *weights)
        return x

    return run


S = array(48, 48)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "chain": (deep(6, lambda x, w: sw.nn.relu(x @ w)), (S, S)),
    "diamond": (deep(4, lambda x, w: (x @ w) @ (snp.exp(x) @ w)), (S, S)),
    "residual": (deep(4, lambda x, w: x + sw.nn.relu(x @ w) @ w), (S, S)),
    "attention": (deep(3, block), (S, S, S, array(48))),
}


def busiest(module: ModuleOp) -> int:
    """Return the most bytes of temporaries in use at one launch, counted by first and last use.

    A temporary that ends where another of its size begins counts once if the kernel allows it.
    """
    main = next(f for f in module.ops if isinstance(f, func.FuncOp) and "." not in f.sym_name.data)
    known = {k.sym_name.data: k for k in module.ops if isinstance(k, FuncOp)}
    launches = [op for op in main.body.block.ops if isinstance(op, LaunchOp)]
    spans: dict[Any, tuple[int, int, int]] = {}
    for op in main.body.block.ops:
        if isinstance(op, memref.AllocOp):
            at = [
                i for i, each in enumerate(launches) if any(_is_from(v, op) for v in each.operands)
            ]
            assert isinstance(op.memref.type, MemRefType)
            size = prod(op.memref.type.get_shape()) * 4
            spans[op.memref] = (min(at), max(at), size)
    most = 0
    for i, launch in enumerate(launches):
        total = sum(size for start, stop, size in spans.values() if start <= i <= stop)
        pairs: Any = known[launch.callee.root_reference.data].attributes.get("kernel.in_place", ())
        for pair in list(pairs)[:1]:
            a, b = (launch.operands[n] for n in pair.get_values())
            if a in spans and b in spans and spans[a][1] == i == spans[b][0]:
                total -= spans[a][2]
        most = max(most, total)
    return most


def _is_from(value: Any, alloc: memref.AllocOp) -> bool:
    while isinstance(value.owner, Operation) and value is not alloc.memref and value.owner.operands:
        value = value.owner.operands[0]
    return value is alloc.memref


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_arena_holds_little_more_than_what_is_in_use(name: str) -> None:
    function, arguments = PROGRAMS[name]
    traced = sw.jit(function).trace(*arguments)
    serial = machine_for("c", "threads=1")  # branches that run at a time have more in use
    compiled = traced.compile(machine=serial)
    descent = Lowering.of(Source(str(traced), name, compiled.signature.entry, serial))
    descent.to("kernels")
    for step in parse("bufferize", descent.placed.known.passes):
        step.run(descent.context, descent.module)
    arena = compiled.signature.arena
    assert arena is not None and 0 < arena <= 1.05 * busiest(descent.module)
    assert "memref.copy" not in compiled.text("buffers")


def counted(x: Any) -> Any:
    return sw.lax.fori_loop(0, 50, lambda _, u: snp.sin(u) + u, x)


def grown(x: Any) -> Any:
    return sw.lax.while_loop(lambda u: snp.sum(u) < 100.0, lambda u: u * 2.0 + 1.0, x)


def chosen(x: Any) -> Any:
    return sw.lax.cond(snp.sum(x) > 0, lambda u: snp.exp(u), lambda u: u - 1.0, x)


def scanned(x: Any) -> Any:
    return sw.lax.scan(lambda c, u: (c + u, snp.tanh(c)), snp.zeros_like(x[0]), x)[1]


@pytest.mark.parametrize(
    "function, words",
    [(counted, r"for \("), (grown, r"(while|for) \("), (chosen, r"if \("), (scanned, r"for \(")],
)
def test_control_flow_stays_control_flow(function: Callable[..., Any], words: str) -> None:
    """Where rows are long the host has the branch or the loop once, and calls each kernel once."""
    compiled = sw.jit(function).trace(np.ones((50, 5000), np.float32)).compile()
    name = compiled.signature.entry
    host = compiled.source.split(f" func_{name}(")[1].split("\n}\n")[0]
    assert re.search(words, host)
    calls = re.findall(r"(kernel_\w+)\(", host)
    assert len(calls) <= 4 and len(set(calls)) == len(calls)


def test_a_long_sum_of_unknown_length() -> None:
    compiled = sw.compile(
        "func.func @main(%x: tensor<3x?xi32>) -> tensor<i32> {"
        " %y = nd.reduce_sum %x {axes = [0, 1]} : tensor<3x?xi32> -> tensor<i32>"
        " func.return %y : tensor<i32> }"
    )
    for n in (0, 1, 5461, 5462, 40009, 400009):
        x = np.arange(3 * n, dtype=np.int32).reshape(3, n)
        assert compiled(x) == x.sum(dtype=np.int32)
