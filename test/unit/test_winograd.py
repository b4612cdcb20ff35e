"""Convolutions in tiles of 2x2 results: any size, what follows them, accuracy, threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from reading import taken_down
from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.printing import text_of

DOWN = "decompose,nd-to-linalg,canonicalize,cse,propagate-layouts{always=true},fuse-elementwise"
ALWAYS = "winograd{always=true}"
WINDOWS = '"reduction", "reduction", "reduction"'
"""The loops of a sum over a window and features."""
LOOPS = "outline-kernels,schedule,pack-operands,bufferize,plan-memory,linalg-to-loops"
EPILOGUES = {
    "none": "",
    "bias": "%b = nd.broadcast %e {{dims = [1]}} : tensor<{k}xf32> -> {y}\n%z = nd.add %c, %b : {y}",
    "residual": "%s = nd.add %c, %e : {y}\n%z = nd.relu %s : {y}",
    "twice": "%r = nd.relu %c : {y}\n%s = nd.neg %c : {y}\n%t = nd.reduce_sum %s {{axes = [1]}} : {y} -> {t}\n"
    "%u = nd.broadcast %t {{dims = [0, 2, 3]}} : {t} -> {y}\n%z = nd.add %r, %u : {y}",
}


@dataclass(frozen=True)
class Case:
    """A padded convolution and what follows it."""

    n: int
    rows: int
    columns: int
    features: int
    out: int
    pad: int
    after: str

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of image, filters and, last, what the epilogue reads."""
        around = 2 - 2 * self.pad
        image = (self.n, self.features, self.rows + around, self.columns + around)
        result = (self.n, self.out, self.rows, self.columns)
        extra = {"bias": [(self.out,)], "residual": [result]}.get(self.after, [])
        return [image, (self.out, self.features, 3, 3), *extra]

    def text(self) -> str:
        """Return the program."""
        x, w, *extra = (_tensor(shape) for shape in self.shapes)
        y = _tensor((self.n, self.out, self.rows, self.columns))
        t = _tensor((self.n, self.rows, self.columns))
        more = "".join(f", %e: {each}" for each in extra)
        after = EPILOGUES[self.after].format(k=self.out, y=y, t=t)
        low = f"low = [{self.pad}, {self.pad}], high = [{self.pad}, {self.pad}]"
        return f"""
        func.func @main(%x: {x}, %w: {w}{more}) -> {y} {{
          %c = nd.convolution %x, %w {{{low}}} : ({x}, {w}) -> {y}
          {after}
          func.return {"%z" if after else "%c"} : {y}
        }}
        """

    def arrays(self) -> list[Any]:
        """Return arguments."""
        random = np.random.default_rng(3)
        return [random.standard_normal(shape).astype(np.float32) for shape in self.shapes]

    def right(self, arrays: list[Any]) -> Any:
        """Return the result in double precision."""
        x, w, *extra = (a.astype(np.float64) for a in arrays)
        p = self.pad
        x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
        y: Any = 0.0
        for r in range(3):
            for s in range(3):
                part = x[:, :, r : r + self.rows, s : s + self.columns]
                y = y + np.einsum("nchw,kc->nkhw", part, w[:, :, r, s], optimize=True)
        match self.after:
            case "bias":
                return y + extra[0][:, None, None]
            case "residual":
                return np.maximum(y + extra[0], 0)
            case "twice":
                return np.maximum(y, 0) - y.sum(axis=1, keepdims=True)
            case _:
                return y


def _tensor(shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def _random_case(seed: int) -> Case:
    random = np.random.default_rng(seed)
    n, rows, columns = (int(random.integers(1, most)) for most in (4, 12, 12))
    features, out = (int(random.choice([1, 3, 8, 9, 16, 17])) for _ in range(2))
    after = str(random.choice(list(EPILOGUES)))
    return Case(n, rows, columns, features, out, int(random.integers(2)), after)


def _is_taken(module: ModuleOp) -> bool:
    return WINDOWS not in text_of(module)


def _near(got: Any, right: Any) -> None:
    assert np.abs(got - right).max() <= 1e-5 * np.abs(right).max()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(24))
def test_random_convolutions(seed: int) -> None:
    case = _random_case(seed)
    arrays = case.arrays()
    _, after = taken_down(case.text(), DOWN, ALWAYS)
    (got,) = Interpreter(after).call("main", arrays)
    _near(got, case.right(arrays))
    assert _is_taken(after) or case.features < 8  # such images are read as they lie


@pytest.mark.parametrize(
    "case",
    [
        Case(1, 4, 6, 8, 16, 1, "residual"),
        Case(2, 5, 3, 9, 8, 1, "bias"),
        Case(1, 2, 7, 8, 17, 0, "twice"),
    ],
)
def test_down_to_loops(case: Case) -> None:
    arrays = case.arrays()
    after, loops = taken_down(case.text(), f"{DOWN},{ALWAYS}", LOOPS)
    assert _is_taken(after)
    right = case.right(arrays)
    got = np.full(right.shape, np.nan, np.float32)
    Interpreter(loops).call("main", [*arrays, got, np.zeros(1 << 20, np.int8)])
    _near(got, right)


@pytest.mark.parametrize(
    "case",
    [
        Case(1, 28, 28, 64, 48, 1, "residual"),
        Case(1, 37, 23, 64, 64, 1, "bias"),
        Case(2, 31, 30, 96, 64, 0, "none"),
    ],
)
def test_compiled(case: Case) -> None:
    """Weights are arguments: the cost of getting them ready is in each call."""
    arrays = case.arrays()
    found = [sw.compile(case.text(), machine=f"threads={threads}")(*arrays) for threads in (1, 2)]
    _near(found[0], case.right(arrays))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("case", "pays"),
    [
        (Case(1, 56, 56, 64, 64, 1, "none"), True),
        (Case(1, 56, 56, 8, 64, 1, "none"), False),
        (Case(1, 6, 6, 512, 512, 1, "none"), False),
    ],
)
def test_where_it_pays(case: Case, pays: bool) -> None:
    _, after, off = taken_down(case.text(), DOWN, "winograd", "winograd{l2=0}")
    assert _is_taken(after) == pays
    (off,) = taken_down(case.text(), f"{DOWN},winograd{{l2=0 always=true}}")
    assert not _is_taken(off)


def test_others_are_left() -> None:
    """Other steps and dtypes are none of ours."""
    strided = """
    func.func @main(%x: tensor<1x64x58x58xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32> {
      %y = nd.convolution %x, %w {strides = [2, 2]} : (tensor<1x64x58x58xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
      func.return %y : tensor<1x64x28x28xf32>
    }
    """
    double = Case(1, 16, 16, 64, 64, 1, "none").text().replace("f32", "f64")
    for text in (strided, double):
        (after,) = taken_down(text, f"{DOWN},{ALWAYS}")
        assert not _is_taken(after)


@pytest.mark.parametrize("strange", [np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_tiles(strange: float) -> None:
    """Every place whose window has it sees it; those further away than 3 are as without it."""
    random = np.random.default_rng(5)
    x = random.integers(-3, 4, (1, 64, 28, 28)).astype(np.float32)
    w = random.integers(1, 4, (64, 64, 3, 3)).astype(np.float32)
    program = sw.jit(lambda x: sw.nn.conv(x, w, padding=1))
    before = np.array(program(x))
    x[0, 5, 13, 14] = strange
    after = np.array(program(x))[0]
    near = np.zeros((28, 28), bool)
    near[10:17, 11:18] = True
    assert not np.isfinite(after[:, 12:15, 13:16]).any()
    np.testing.assert_array_equal(after[:, ~near], before[0][:, ~near])
