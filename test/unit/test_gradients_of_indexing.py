"""Gradients of gathers, scatters and dynamic slices against differences: twice the same, too far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import check, tensor

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((5, 4))
ROWS = np.array([1, -3, 4, 1, 9, 0, 1])
COLUMNS = np.array([3, 2, 0, 3, 1, 7, 2], np.int32)
U = RANDOM.standard_normal((7, 4))
V = RANDOM.standard_normal(7)
SCATTERS = ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")


def test_gathers() -> None:
    rows = f"nd.gather %x, indices(%i) {{axes = [0]}} : ($x, $i) -> {tensor(U)}"
    check(rows, {"x": X, "i": ROWS}, ["x"], 0)
    check(rows, {"x": X, "i": ROWS.astype(np.int8)}, ["x"], 0, second=False)
    check(rows, {"x": X, "i": np.abs(ROWS).astype(np.uint64)}, ["x"], 0, second=False)
    check(rows.replace("7x4x", "?x?x"), {"x": X, "i": ROWS}, ["x"], 0, {"x": [0, 1], "i": [0]})
    single = "nd.gather %x, indices(%i, %j) {axes = [0, 1]} : ($x, $i, $j) -> tensor<7xf64>"
    check(single, {"x": X, "i": ROWS, "j": COLUMNS}, ["x"], 1)
    columns = "nd.gather %x, indices(%i) {axes = [1]} : ($x, $i) -> tensor<5x2x3xf64>"
    check(columns, {"x": X, "i": COLUMNS[:6].reshape(2, 3)}, ["x"], 2)
    one = "nd.gather %x, indices(%i) {axes = [0]} : ($x, $i) -> tensor<4xf64>"
    check(one, {"x": X, "i": np.array(3)}, ["x"], 3)
    none = "nd.gather %x, indices(%i) {axes = [0]} : ($x, $i) -> tensor<0x4xf64>"
    check(none, {"x": X, "i": ROWS[:0]}, ["x"], 3)


@pytest.mark.parametrize("kind", SCATTERS)
def test_scatters(kind: str) -> None:
    rows = f"nd.{kind} %x, %u, indices(%i) {{axes = [0]}} : ($x, $u, $i) -> $x"
    operands: dict[str, Any] = {"x": X, "u": U, "i": ROWS}
    check(rows, operands, ["x", "u"], 0)
    check(rows, operands, ["u"], 0, {"x": [0], "u": [0, 1], "i": [0]}, second=False)
    check(rows, operands | {"i": COLUMNS.astype(np.uint8)}, ["x"], 0, second=False)
    single = f"nd.{kind} %x, %u, indices(%i, %j) {{axes = [0, 1]}} : ($x, $u, $i, $j) -> $x"
    check(single, {"x": X, "u": V, "i": ROWS, "j": COLUMNS}, ["x", "u"], 1)
    columns = f"nd.{kind} %x, %u, indices(%i) {{axes = [1]}} : ($x, $u, $i) -> $x"
    check(columns, {"x": X, "u": RANDOM.standard_normal((5, 7)), "i": COLUMNS}, ["x", "u"], 2)


def test_products_with_zeros() -> None:
    u = V.copy()
    u[[0, 2, 3]] = 0
    op = "nd.scatter_mul %x, %u, indices(%i) {axes = [0]} : ($x, $u, $i) -> $x"
    check(op, {"x": X[:, 0], "u": u, "i": ROWS}, ["x", "u"], 0, second=False)


def test_parts_at_places() -> None:
    for place in (-2, 1, 4):
        at = {"i": np.array(place), "j": np.array(1, np.uint8)}
        part = "nd.dynamic_slice %x, starts(%i, %j) {axes = [0, 1], sizes = [3, 2]} : ($x, $i, $j)"
        check(f"{part} -> tensor<3x2xf64>", {"x": X, **at}, ["x"], 0)
        put = "nd.dynamic_update_slice %x, %u, starts(%i, %j) {axes = [0, 1]}"
        types = "($x, $u, $i, $j) -> $x"
        check(f"{put} : {types}", {"x": X, "u": U[:3, :2], **at}, ["x", "u"], 1)
        apart = put.replace("}", ", strides = [2, 3]}")
        check(f"{apart} : {types}", {"x": X, "u": U[:2, :2], **at}, ["x", "u"], 2)
        told = {"x": [0, 1], "u": [0, 1]}
        for op in (put, apart):
            check(f"{op} : {types}", {"x": X, "u": U[:2, :2], **at}, ["x", "u"], 3, told)
