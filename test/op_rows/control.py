"""Rows of control flow: choices, loops with captured values, scans in both directions, nesting."""

from __future__ import annotations

from stepwell.dialects.nd import control
from stepwell.testing.op_rows.row import FLOATS, NUMBERS, Row
from stepwell.testing.op_rows.values import small

OPS = (control.IfOp, control.WhileOp, control.ScanOp)

SIZES = ((0,), (1,), (7,))

NESTED = """
  %zero = nd.full 0 : tensor<i32>
  %one = nd.full 1 : tensor<i32>
  %three = nd.full 3 : tensor<i32>
  %y0, %y1 = nd.scan (%total = %zero) over (%n = %ns) {reverse} : (tensor<i32>, tensor<?xi32>) -> (tensor<i32>, tensor<?xi32>) {
    %big = nd.gt %n, %three : tensor<i32> -> tensor<i1>
    %steps = nd.if %big -> tensor<i32> {
      %i, %k = nd.while (%i = %zero, %k = %one) : tensor<i32>, tensor<i32> {
        %go = nd.lt %i, %three : tensor<i32> -> tensor<i1>
        nd.condition %go
      } do (%i, %k) {
        %j = nd.add %i, %one : tensor<i32>
        %m = nd.mul %k, %n : tensor<i32>
        nd.yield %j, %m : tensor<i32>, tensor<i32>
      }
      nd.yield %k : tensor<i32>
    } else {
      nd.yield %n : tensor<i32>
    }
    %sum = nd.add %total, %steps : tensor<i32>
    nd.yield %sum, %steps : tensor<i32>, tensor<i32>
  }
"""

ROWS: tuple[Row, ...] = (
    Row(
        "nd.if",
        {"c": "tensor<i1>", "x": "tensor<?x{e}>"},
        """
  %y0, %y1 = nd.if %c -> tensor<?x{e}>, tensor<i1> {
    %twice = nd.add %x, %x : tensor<?x{e}>
    nd.yield %twice, %c : tensor<?x{e}>, tensor<i1>
  } else {
    nd.yield %x, %c : tensor<?x{e}>, tensor<i1>
  }""",
        ("tensor<?x{e}>", "tensor<i1>"),
        NUMBERS,
        SIZES,
    ),
    Row(
        "nd.while",
        {"n": "tensor<ui8>", "x": "tensor<?x{e}>"},
        """
  %one = nd.full 1 : tensor<ui8>
  %zero = nd.full 0 : tensor<ui8>
  %y0, %y1 = nd.while (%i = %n, %a = %x) : tensor<ui8>, tensor<?x{e}> {
    %go = nd.gt %i, %zero : tensor<ui8> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %j = nd.sub %i, %one : tensor<ui8>
    %b = nd.add %a, %x : tensor<?x{e}>
    nd.yield %j, %b : tensor<ui8>, tensor<?x{e}>
  }""",
        ("tensor<ui8>", "tensor<?x{e}>"),
        FLOATS,
        SIZES,
        small,
    ),
    Row(
        "nd.scan",
        {"xs": "tensor<?x3x{e}>", "s": "tensor<3x{e}>"},
        """
  %y0, %y1 = nd.scan (%t = %s) over (%x = %xs) : (tensor<3x{e}>, tensor<?x3x{e}>) -> (tensor<3x{e}>, tensor<?x3x{e}>) {
    %u = nd.add %t, %x : tensor<3x{e}>
    nd.yield %u, %t : tensor<3x{e}>, tensor<3x{e}>
  }""",
        ("tensor<3x{e}>", "tensor<?x3x{e}>"),
        NUMBERS,
        SIZES,
        small,
        note="forward",
    ),
    Row(
        "nd.scan",
        {"xs": "tensor<4x?x{e}>", "n": "index"},
        """
  %y = nd.scan () over (%x = %xs) sizes(%n) {reverse} : (tensor<4x?x{e}>) -> tensor<4x?x{e}> {
    %u = nd.add %x, %x : tensor<?x{e}>
    nd.yield %u : tensor<?x{e}>
  }""",
        "tensor<4x?x{e}>",
        ("f32", "ui8"),
        SIZES,
        note="unknown-slices",
    ),
    Row(
        "nd.scan",
        {"n": "index", "x": "tensor<{e}>"},
        """
  %y0, %y1 = nd.scan (%t = %x) length(%n) {reverse} : (tensor<{e}>) -> (tensor<{e}>, tensor<?x{e}>) {
    %u = nd.add %t, %x : tensor<{e}>
    nd.yield %u, %u : tensor<{e}>, tensor<{e}>
  }""",
        ("tensor<{e}>", "tensor<?x{e}>"),
        ("f32", "i16"),
        SIZES,
        small,
        note="told",
    ),
    Row(
        "nd.scan",
        {"x": "tensor<{e}>"},
        """
  %y = nd.scan (%t = %x) {length = 5} : (tensor<{e}>) -> tensor<{e}> {
    %u = nd.add %t, %x : tensor<{e}>
    nd.yield %u : tensor<{e}>
  }""",
        "tensor<{e}>",
        ("f32", "i16"),
        values=small,
        note="counted",
    ),
    Row(
        "nd.scan",
        {"ns": "tensor<?xi32>"},
        NESTED,
        ("tensor<i32>", "tensor<?xi32>"),
        ("i32",),
        ((0,), (1,), (20,)),
        small,
        note="nested",
    ),
)
