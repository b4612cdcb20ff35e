"""Programs whose images were moved to another layout compute what they did before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from reading import taken_down

from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.printing import text_of

DOWN = "decompose,nd-to-linalg,canonicalize,cse"
MOVE = "propagate-layouts{always=true}"
KERNELS = "fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops"


@dataclass
class Program:
    """A random network in the making: lines of `nd` text, and values that may be read."""

    random: np.random.Generator
    lines: list[str] = field(default_factory=list[str])
    arguments: list[tuple[str, tuple[int, ...]]] = field(
        default_factory=list[tuple[str, tuple[int, ...]]]
    )

    def argument(self, *shape: int) -> str:
        self.arguments.append((f"%a{len(self.arguments)}", shape))
        return self.arguments[-1][0]

    def emit(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def step(self, x: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Append an op or two; return the new value."""
        n, c, h, w = shape
        kind = self.pick(
            "conv", "conv", "depthwise", "pool", "relu", "add", "concat", "pad", "turn"
        )
        of = tensor(shape)
        if kind in ("conv", "depthwise"):
            groups = c if kind == "depthwise" else self.pick(1, 1, c)
            out = c * self.pick(1, 2) if groups > 1 else self.pick(1, 4, 5, 8)
            size, stride, apart = self.pick(1, 2, 3), self.pick(1, 1, 2), self.pick(1, 1, 2)
            low, high = self.pick(0, 1, 2), self.pick(0, 1)
            reach = (size - 1) * apart + 1
            y = [(e + low + high - reach) // stride + 1 for e in (h, w)]
            if min(y) < 1:
                return x, shape
            filters = (out, c // groups, size, size)
            lists = {"strides": stride, "low": low, "high": high, "rhs_dilation": apart}
            given = ", ".join(f"{k} = [{v}, {v}]" for k, v in lists.items())
            new = (n, out, *y)
            text = (
                f"nd.convolution {x}, {self.argument(*filters)} {{groups = {groups}, {given}}} : "
            )
            text += f"({of}, {tensor(filters)}) -> {tensor(new)}"
            return self.emit(text), new
        if kind == "pool":
            if min(h, w) < 3:
                return x, shape
            stride = self.pick(1, 2)
            name = self.pick("nd.max_pool", "nd.avg_pool")
            new = (n, c, (h - 1) // stride + 1, (w - 1) // stride + 1)
            text = f"{name} {x} {{window = [3, 3], strides = [{stride}, {stride}], low = [1, 1], "
            return self.emit(f"{text}high = [1, 1]}} : {of} -> {tensor(new)}"), new
        if kind == "relu":
            return self.emit(f"nd.relu {x} : {of}"), shape
        if kind == "add":
            return self.emit(f"nd.add {x}, {self.argument(*shape)} : {of}"), shape
        if kind == "concat":
            new = (n, c + 2, h, w)
            other = self.argument(n, 2, h, w)
            text = f"nd.concat {x}, {other} {{axis = 1}} : ({of}, {tensor((n, 2, h, w))})"
            return self.emit(f"{text} -> {tensor(new)}"), new
        if kind == "pad":
            zero = self.emit("nd.constant dense<2.0> : tensor<f32>")
            new = (n, c + 1, h + 2, w)
            text = f"nd.pad {x}, {zero} {{low = [0, 1, 0, 0], high = [0, 0, 2, 0], "
            text += f"interior = [0, 0, 0, 0]}} : ({of}, tensor<f32>) -> {tensor(new)}"
            return self.emit(text), new
        new = (n, c, w, h)
        text = f"nd.transpose {x} {{permutation = [0, 1, 3, 2]}} : {of} -> {tensor(new)}"
        return self.emit(text), new

    def text(self, result: str, shape: tuple[int, ...]) -> str:
        arguments = ", ".join(f"{name}: {tensor(of)}" for name, of in self.arguments)
        lines = "\n".join(f"  {line}" for line in self.lines)
        head = f"func.func @main({arguments}) -> {tensor(shape)}"
        return f"{head} {{\n{lines}\n  func.return {result} : {tensor(shape)}\n}}"


def tensor(shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def random_program(seed: int) -> tuple[str, list[Any]]:
    program = Program(np.random.default_rng(seed))
    shape = (
        program.pick(1, 2),
        program.pick(1, 3, 4, 8),
        program.pick(1, 4, 7),
        program.pick(1, 5, 8),
    )
    x = program.argument(*shape)
    for _ in range(int(program.random.integers(1, 7))):
        x, shape = program.step(x, shape)
    arrays = [program.random.standard_normal(of).astype(np.float32) for _, of in program.arguments]
    return program.text(x, shape), arrays


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int) -> None:
    text, arrays = random_program(seed)
    before, after = taken_down(text, DOWN, MOVE)
    (want,) = Interpreter(before).call("main", arrays)
    (got,) = Interpreter(after).call("main", arrays)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(40, 48))
def test_random_networks_down_to_loops(seed: int) -> None:
    text, arrays = random_program(seed)
    before, _, loops = taken_down(text, DOWN, MOVE, KERNELS)
    (want,) = Interpreter(before).call("main", arrays)
    got = np.full_like(want, np.nan)
    arena = np.zeros(1 << 20, np.int8)
    Interpreter(loops).call("main", [*arrays, got, arena])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


DYNAMIC = """
func.func @main(%x: tensor<?x3x?x6xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<?x4x?x6xf32> {
  %a = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<?x3x?x6xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x?x6xf32>
  %b = nd.relu %a : tensor<?x4x?x6xf32>
  func.return %b : tensor<?x4x?x6xf32>
}
"""
LOOP = """
func.func @main(%x: tensor<1x8x6x6xf32>, %w: tensor<8x8x3x3xf32>) -> (tensor<1x8x6x6xf32>, tensor<8x36xf32>) {
  %n = nd.constant dense<3> : tensor<i32>
  %k, %y = nd.while (%i = %n, %a = %x) : tensor<i32>, tensor<1x8x6x6xf32> {
    %zero = nd.constant dense<0> : tensor<i32>
    %go = nd.gt %i, %zero : tensor<i32> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.constant dense<1> : tensor<i32>
    %j = nd.sub %i, %one : tensor<i32>
    %b = nd.convolution %a, %w {low = [1, 1], high = [1, 1]} : (tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x6x6xf32>
    %c = nd.tanh %b : tensor<1x8x6x6xf32>
    nd.yield %j, %c : tensor<i32>, tensor<1x8x6x6xf32>
  }
  %z = nd.convolution %y, %w {low = [1, 1], high = [1, 1]} : (tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x6x6xf32>
  %r = nd.reshape %z : tensor<1x8x6x6xf32> -> tensor<8x36xf32>
  func.return %y, %r : tensor<1x8x6x6xf32>, tensor<8x36xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (DYNAMIC, [(2, 3, 5, 6), (4, 3, 3, 3)]),
        (LOOP, [(1, 8, 6, 6), (8, 8, 3, 3)]),
    ],
)
def test_sizes_of_the_run_and_loops(text: str, shapes: list[tuple[int, ...]]) -> None:
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(s).astype(np.float32) for s in shapes]
    before, after = taken_down(text, DOWN, MOVE)
    assert "kernel.no_fuse" in text_of(after)
    for want, got in zip(
        Interpreter(before).call("main", arrays),
        Interpreter(after).call("main", arrays),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)  # four convolutions in a row


@pytest.mark.parametrize("rows", [1, 4, 7, 8, 19])
@pytest.mark.parametrize("columns", [1, 3, 4, 8, 21])
def test_copies_in_squares(rows: int, columns: int) -> None:
    text = f"""
    func.func @main(%x: tensor<2x{rows}x{columns}xf32>) -> tensor<2x{columns}x{rows}xf32> {{
      %y = nd.transpose %x {{permutation = [0, 2, 1]}} : tensor<2x{rows}x{columns}xf32> -> tensor<2x{columns}x{rows}xf32>
      func.return %y : tensor<2x{columns}x{rows}xf32>
    }}
    """
    _, loops = taken_down(text, DOWN, KERNELS)
    x = np.random.default_rng(1).standard_normal((2, rows, columns)).astype(np.float32)
    got = np.zeros((2, columns, rows), np.float32)
    Interpreter(loops).call("main", [x, got, np.zeros(1, np.int8)])
    np.testing.assert_array_equal(got, x.transpose(0, 2, 1))
    squares = min(rows, columns) >= 4
    assert ("vector.shuffle" in text_of(loops)) == squares
