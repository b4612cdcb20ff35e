"""Derivatives of branches and loops by the interpreter: both modes, first and second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.dialects.differences import Derived, check, check_second
from stepwell.dialects.nd.gradients import whiles
from stepwell.testing.op_rows.run import parsed

SCAN = """func.func @f(%W: tensor<3xf64>, %x: tensor<4x3xf64>, %s: tensor<3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>) {
  %y0, %y1 = nd.scan (%t = %s) over (%v = %x) : (tensor<3xf64>, tensor<4x3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>) {
    %a = nd.mul %t, %W : tensor<3xf64>
    %u = nd.add %a, %v : tensor<3xf64>
    %z = nd.tanh %u : tensor<3xf64>
    nd.yield %z, %a : tensor<3xf64>, tensor<3xf64>
  }
  func.return %y0, %y1 : tensor<3xf64>, tensor<4x3xf64>
}
"""
UNKNOWN = (
    SCAN.replace("4x3x", "?x?x")
    .replace("tensor<3x", "tensor<?x")
    .replace("over (%v = %x) :", "over (%v = %x) sizes(%n) :")
    .replace("  %y0", "  %n = nd.dim %x {axis = 1} : tensor<?x?xf64>\n  %y0", 1)
)
BRANCH = """func.func @f(%c: tensor<i1>, %x: tensor<3xf64>, %w: tensor<3xf64>) -> (tensor<3xf64>) {
  %y0 = nd.if %c -> tensor<3xf64> {
    %a = nd.mul %x, %w : tensor<3xf64>
    %b = nd.reduce_sum %a {axes=[0]} : tensor<3xf64> -> tensor<f64>
    %d = nd.broadcast %b {dims=[]} : tensor<f64> -> tensor<3xf64>
    %u = nd.mul %d, %a : tensor<3xf64>
    nd.yield %u : tensor<3xf64>
  } else {
    nd.yield %x : tensor<3xf64>
  }
  func.return %y0 : tensor<3xf64>
}
"""
NESTED = """func.func @f(%W: tensor<3xf64>, %x: tensor<4x3xf64>, %s: tensor<3xf64>) -> (tensor<3xf64>, tensor<4xf64>) {
  %y0, %y1 = nd.scan (%t = %s) over (%v = %x) {reverse} : (tensor<3xf64>, tensor<4x3xf64>) -> (tensor<3xf64>, tensor<4xf64>) {
    %zero = nd.full 0.0 : tensor<f64>
    %one = nd.full 1.0 : tensor<f64>
    %q = nd.scan (%p = %zero) over (%i = %v) : (tensor<f64>, tensor<3xf64>) -> (tensor<f64>) {
        %pi = nd.mul %p, %i : tensor<f64>
        %c = nd.gt %i, %p : tensor<f64> -> tensor<i1>
        %r = nd.if %c -> tensor<f64> { 
          %rs = nd.reduce_sum %W {axes=[0]} : tensor<3xf64> -> tensor<f64>
          %pp = nd.sin %pi : tensor<f64>
          %pq = nd.mul %pp, %rs : tensor<f64>
          nd.yield %pq : tensor<f64>
        } else {
          %pp = nd.exp %pi : tensor<f64>
          nd.yield %pp : tensor<f64>
        }
        nd.yield %r : tensor<f64>
    }
    %d = nd.broadcast %q {dims=[]} : tensor<f64> -> tensor<3xf64>
    %a = nd.mul %t, %d : tensor<3xf64>
    %z = nd.tanh %a : tensor<3xf64>
    nd.yield %z, %q : tensor<3xf64>, tensor<f64>
  }
  func.return %y0, %y1 : tensor<3xf64>, tensor<4xf64>
}
"""
WHILE = """func.func @f(%n: tensor<i64>, %x: tensor<{S}xf64>, %w: tensor<{S}xf64>) -> (tensor<{S}xf64>, tensor<i64>) {
    %zero = nd.full 0 : tensor<i64>
    %three = nd.full {N} : tensor<i64>
    %a0 = nd.sin %x : tensor<{S}xf64>
    %k, %r = nd.while (%i = %zero, %p = %a0) : tensor<i64>, tensor<{S}xf64> {
      {TEST}
      nd.condition %c
    } do (%i, %p) {
      %one = nd.full {STEP} : tensor<i64>
      %j = nd.add %i, %one : tensor<i64>
      %s = nd.sin %p : tensor<{S}xf64>
      %q = nd.mul %s, %w : tensor<{S}xf64>
      %if = nd.cast %i : tensor<i64> -> tensor<f64>
      %u = nd.dim %x {axis=0} : tensor<{S}xf64>
      %ib = nd.broadcast %if{D} {dims=[]} : tensor<f64> -> tensor<{S}xf64>
      %q2 = nd.add %q, %ib : tensor<{S}xf64>
      %q3 = nd.mul %q2, %p : tensor<{S}xf64>
      nd.yield %j, %q3 : tensor<i64>, tensor<{S}xf64>
    }
    func.return %r, %k : tensor<{S}xf64>, tensor<i64>
}
"""

BELOW = "%c = nd.lt %i, %n : tensor<i64> -> tensor<i1>"
AT_MOST = "%c = nd.ge %three, %i : tensor<i64> -> tensor<i1>"
UNTIL = """%m = nd.reduce_max %p {axes = [0]} : tensor<3xf64> -> tensor<f64>
      %most = nd.full 3.0 : tensor<f64>
      %small = nd.lt %m, %most : tensor<f64> -> tensor<i1>
      %below = nd.lt %i, %n : tensor<i64> -> tensor<i1>
      %c = nd.and %below, %small : tensor<i1>"""


def loop(test: str, step: int, size: str = "3") -> str:
    text = WHILE.replace("{TEST}", test).replace("{STEP}", str(step)).replace("{S}", size)
    return text.replace("{N}", "7").replace("{D}", ", sizes(%u)" if size == "?" else "")


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    random = np.random.default_rng(0)
    return [random.uniform(0.2, 0.9, shape) for shape in shapes]


@pytest.mark.parametrize("text", [SCAN, UNKNOWN], ids=["known", "unknown"])
def test_scan(text: str) -> None:
    derived = Derived(parsed(text), "f")
    arguments = numbers((3,), (4, 3), (3,))
    assert check(derived, arguments).dual
    check_second(derived, arguments)


def test_a_scan_of_no_step() -> None:
    derived = Derived(parsed(UNKNOWN), "f")
    assert check(derived, numbers((3,), (0, 3), (3,))).dual


def test_a_scan_that_carries_its_slices() -> None:
    """Of no step, what is carried is what it began with; xs without a cotangent tell the steps."""
    text = """
func.func @f(%x: tensor<?xf64>, %s: tensor<f64>) -> tensor<f64> {
  %one = nd.full 1.0 : tensor<f64>
  %y = nd.scan (%t = %s) over (%v = %x) : (tensor<f64>, tensor<?xf64>) -> tensor<f64> {
    nd.yield YIELD : tensor<f64>
  }
  func.return %y : tensor<f64>
}
"""
    for value in ("%one", "%t", "%v"):
        derived = Derived(parsed(text.replace("YIELD", value)), "f")
        for steps in (0, 3):
            assert check(derived, numbers((steps,), ())).dual


@pytest.mark.parametrize("chosen", [True, False])
def test_branch(chosen: bool) -> None:
    derived = Derived(parsed(BRANCH), "f")
    arguments = [np.array(chosen), *numbers((3,), (3,))]
    assert check(derived, arguments).dual
    check_second(derived, arguments)


def test_branches_in_loops_in_loops() -> None:
    derived = Derived(parsed(NESTED), "f")
    arguments = numbers((3,), (4, 3), (3,))
    assert check(derived, arguments).dual
    check_second(derived, arguments)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tape", [1, 2, 3, 1024])
@pytest.mark.parametrize(
    "text",
    [loop(BELOW, 1), loop(BELOW, 2, "?"), loop(UNTIL, 1), loop(AT_MOST, 3)],
    ids=["counts", "unknown-sizes", "until", "constant"],
)
def test_while(text: str, tape: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tapes shorter than the loop give the same: steps are done again in pieces."""
    monkeypatch.setattr(whiles, "SHORTEST_TAPE", 1)
    monkeypatch.setattr(whiles, "LONGEST_TAPE", tape)
    derived = Derived(parsed(text), "f")
    x, w = numbers((3,), (3,))
    for steps in (0, 1, 7, 23) if tape == 2 else (0, 1, 7):
        assert check(derived, [np.array(steps), x, w * 0.3]).dual
    if tape == 2:
        check_second(derived, [np.array(3), x, w * 0.3])


def test_steps_of_long_loops_are_done_again_a_few_times() -> None:
    """Of states that are as large as a tape of 16 allows: by a logarithm, not by their number."""

    def f(x: Any, n: int) -> Any:
        return sw.lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) * 1.01), (0, x)
        )[1].sum()

    x, g = np.linspace(0.1, 1, 8192), sw.jit(sw.grad(f), threads=1)
    for n in (0, 1, 16, 17, 257, 600):
        y, want = x, np.ones_like(x)
        for _ in range(n):
            want, y = want * np.cos(y) * 1.01, np.sin(y) * 1.01
        np.testing.assert_allclose(g(x, n), want, rtol=1e-9)
    for n, times in ((200, 2), (3000, 4)):  # once to record, the rest to come there
        kernels = g.profile(x, n, repeat=1).kernels
        calls = sum(k.calls for k in kernels if k.kernel.name.startswith("f_sin_mul"))
        assert n < calls <= times * n


def test_loops_that_call_python_are_refused() -> None:
    text = """
func.func @f(%x: tensor<f64>) -> tensor<f64> {
  %r = nd.while (%p = %x) : tensor<f64> {
    %one = nd.full 1.0 : tensor<f64>
    %c = nd.gt %p, %one : tensor<f64> -> tensor<i1>
    nd.condition %c
  } do (%p) {
    %q = nd.callback(%p) {name = "h"} : (tensor<f64>) -> tensor<f64>
    %s = nd.sqrt %p : tensor<f64>
    nd.yield %s : tensor<f64>
  }
  func.return %r : tensor<f64>
}
"""
    with pytest.raises(CompileError, match="a loop that calls Python has no gradient"):
        Derived(parsed(text), "f")


def test_compiled_loops() -> None:
    """A scan, and a loop whose number of steps only the call tells, in one program."""

    def loss(x: Any, n: int) -> Any:
        last, rows = sw.lax.scan(lambda h, v: (np.tanh(h * v + 0.5), h * v), x[0], x)
        y = sw.lax.fori_loop(0, n, lambda i, t: np.sin(t) * x + t * 0.1, x)
        return last + (rows * rows).sum() + y.sum()

    def plain(x: Any, n: int) -> float:
        h, total, y = x[0], 0.0, x
        for v in x:
            h, row = np.tanh(h * v + 0.5), h * v
            total += row * row
        for _ in range(n):
            y = np.sin(y) * x + y * 0.1
        return float(h + total + y.sum())

    x = np.linspace(0.3, 0.8, 9)
    got = np.asarray(sw.jit(sw.grad(loss))(x, 5))
    for k in range(9):
        step = np.zeros(9)
        step[k] = 1e-6
        want = (plain(x + step, 5) - plain(x - step, 5)) / 2e-6
        assert np.isclose(got[k], want, rtol=1e-5, atol=1e-8)
