"""Rows of the ops that make tensors out of nothing."""

from __future__ import annotations

import numpy as np

from stepwell.dialects.nd import creation
from stepwell.testing.op_rows.row import NUMBERS, Row
from stepwell.testing.op_rows.values import spread

OPS = creation.OPS

SIZES = ((0,), (1,), (7,), (64,))

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)

ROWS: tuple[Row, ...] = (
    Row(
        "nd.constant",
        {},
        "%y = nd.constant dense<[[0, 1], [1, 0], [1, 1]]> : tensor<3x2x{e}>",
        "tensor<3x2x{e}>",
        NUMBERS,
    ),
    Row(
        "nd.constant",
        {},
        '%y = nd.constant #nd.resource<"weight", ""> : tensor<2x3x{e}>',
        "tensor<2x3x{e}>",
        ("f32",),
        resources={"weight": WEIGHT},
        note="resource",
    ),
    Row(
        "nd.full",
        {"n": "index"},
        "%y = nd.full 1, sizes(%n) : tensor<3x?x{e}>",
        "tensor<3x?x{e}>",
        NUMBERS,
        SIZES,
    ),
    Row("nd.full", {}, "%y = nd.full true : tensor<5xi1>", "tensor<5xi1>", ("i1",), note="true"),
    Row("nd.full", {}, "%y = nd.full 200 : tensor<ui8>", "tensor<ui8>", ("ui8",), note="unsigned"),
    Row(
        "nd.full",
        {},
        "%y = nd.full 0x7FC00000 : tensor<2xf32>",
        "tensor<2xf32>",
        ("f32",),
        note="nan",
    ),
    Row(
        "nd.iota",
        {"n": "index"},
        "%y = nd.iota sizes(%n) {axis = 1} : tensor<3x?x{e}>",
        "tensor<3x?x{e}>",
        NUMBERS,
        (*SIZES, (300,)),
    ),
    Row(
        "nd.random_bits",
        {"key": "tensor<2xui32>", "start": "tensor<ui64>", "n": "index"},
        "%y = nd.random_bits %key, %start, sizes(%n) : tensor<3x?x{e}>",
        "tensor<3x?x{e}>",
        ("ui32", "ui64"),
        SIZES,
        values=spread,
    ),
    Row(
        "nd.random_bits",
        {"key": "tensor<2xui32>", "start": "tensor<ui64>"},
        "%y = nd.random_bits %key, %start : tensor<{e}>",
        "tensor<{e}>",
        ("ui32", "ui64"),
        values=spread,
        note="scalar",
    ),
    Row(
        "nd.random_bits",
        {"key": "tensor<2xui32>", "start": "tensor<ui64>"},
        "%y = nd.random_bits %key, %start : tensor<3x5x{e}>",
        "tensor<3x5x{e}>",
        ("ui32", "ui64"),
        values=spread,
        note="static",
    ),
)
