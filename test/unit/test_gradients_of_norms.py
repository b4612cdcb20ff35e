"""Gradients of norms, softmax and its kin and gelu, and of those, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import check, tensor
from reading import parsed

from stepwell.dialects.interpreter import Interpreter

X = np.random.default_rng(0).standard_normal((3, 4, 5))
SCALE = np.random.default_rng(1).standard_normal((4, 5))
OPS = (
    "nd.softmax %x {axis = 1} : $x",
    "nd.log_softmax %x {axis = 2} : $x",
    "nd.logsumexp %x {axes = [0, 2]} : $x -> tensor<4xf64>",
    'nd.gelu %x {approximate = "none"} : $x',
    'nd.gelu %x {approximate = "tanh"} : $x',
    "nd.layer_norm %x {axis = 1, eps = 1.0e-3} : $x",
    "nd.rms_norm %x {axis = 2, eps = 1.0e-3} : $x",
)


@pytest.mark.parametrize("op", OPS)
def test_of_one_array(op: str) -> None:
    check(op if "->" in op else f"{op} -> $x", {"x": X}, ["x"], 1)
    unknown = op.replace("tensor<4x", "tensor<?x")
    told = {"x": (1, 2)} if "norm" not in op else {"x": (0,)}
    check(unknown if "->" in op else f"{op} -> $x", {"x": X}, ["x"], 1, told, second=False)


def test_parameters() -> None:
    row = SCALE[0]
    norms: list[tuple[str, dict[str, Any]]] = [
        ("nd.layer_norm %x, %s, %b {axis = 1, eps = 1.0e-3}", {"s": SCALE, "b": SCALE + 1}),
        ("nd.layer_norm %x, %s {axis = 2, eps = 1.0e-3}", {"s": row}),
        ("nd.rms_norm %x, %s {axis = 2, eps = 1.0e-3}", {"s": row}),
        (
            "nd.batch_norm %x, %s, %b, %m, %v {axis = 2, eps = 1.0e-3}",
            {"s": row, "b": row + 1, "m": row - 1, "v": row**2 + 0.5},
        ),
    ]
    for op, parameters in norms:
        operands = {"x": X, **parameters}
        types = ", ".join(f"${n}" for n in operands)
        check(f"{op} : ({types}) -> $x", operands, list(operands), 2)
        some = [n for n in operands if n in ("s", "v")]
        check(f"{op} : ({types}) -> $x", operands, some, 3, second=False)


def _gradient(op: str, x: Any, g: Any) -> Any:
    t, y = tensor(x), tensor(g)
    text = f"""
    func.func @main(%a: {t}, %g: {y}) -> {t} {{
      %y, %d = nd.vjp (%x = %a) cotangents(%g : {y}) {{wrt = [0], of = [0]}} : ({t}) -> ({y}, {t}) {{
        %y = {op} : {t} -> {y}
        nd.yield %y : {y}
      }}
      func.return %d : {t}
    }}"""
    return Interpreter(parsed(text)[1]).call("main", [x, g])[0]


def test_far_out_and_nothing_at_all() -> None:
    """No NaN comes of infinities on the way."""
    far = np.array([-1e30, -200, 200, 1e30], np.float32)
    for how in ("none", "tanh"):
        found = _gradient(f'nd.gelu %x {{approximate = "{how}"}}', far, np.ones(4, np.float32))
        np.testing.assert_array_equal(found, [0, 0, 1, 1])
    nothing = np.array([[-np.inf, -np.inf], [0, -np.inf]])
    found = _gradient("nd.logsumexp %x {axes = [1]}", nothing, np.ones(2))
    np.testing.assert_array_equal(found, [[0, 0], [1, 0]])


def test_half_precision_is_summed_in_single() -> None:
    """Of 4096 ones a sum kept in f16 would stop growing at 2048."""
    x = np.zeros((4096, 1), np.float16)
    text = """
    func.func @main(%a: tensor<4096x1xf16>, %c: tensor<1xf16>, %g: tensor<4096x1xf16>) -> tensor<1xf16> {
      %y, %d = nd.vjp (%x = %a, %s = %c, %b = %c) cotangents(%g : tensor<4096x1xf16>) {wrt = [2], of = [0]} : (tensor<4096x1xf16>, tensor<1xf16>, tensor<1xf16>) -> (tensor<4096x1xf16>, tensor<1xf16>) {
        %y = nd.layer_norm %x, %s, %b {axis = 1, eps = 1.0e-3} : (tensor<4096x1xf16>, tensor<1xf16>, tensor<1xf16>) -> tensor<4096x1xf16>
        nd.yield %y : tensor<4096x1xf16>
      }
      func.return %d : tensor<1xf16>
    }"""
    (found,) = Interpreter(parsed(text)[1]).call(
        "main", [x, np.ones(1, np.float16), np.ones((4096, 1), np.float16)]
    )
    assert float(np.asarray(found)[0]) == 4096
