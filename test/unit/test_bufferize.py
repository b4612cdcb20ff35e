"""bufferize: what is computed stays the same, and no copy is made that analysis can avoid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from buffer_programs import T, check, host, loop, matrices

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.parsing import parse_module
from stepwell.driver.registry import registry
from stepwell.lowering.bufferize import Bufferize, copy_insertion
from stepwell.lowering.bufferize.assignment import slice_of

ARGUMENT = "an argument is never written"
SURROUND = """
%n2 = arith.addi %n, %n : index
%w = tensor.empty(%n2, %m) : T
%f = @ones() into %w
%r = tensor.insert_slice %a into %f[%n, 0] [%n, %m] [1, 1] : T into T"""
"""A matrix of ones with %a as its lower half."""
TURNS = "which buffer a loop ends in depends on its number of iterations"

CASES: dict[str, tuple[str, str, int, int, list[str]]] = {
    # name: host body, results, copies, temporaries, reasons
    "chain": ("%a = @double(%x)\n%b = @flip(%a)\n%r = @rows(%b)", "%r", 0, 2, []),
    "result returned twice": ("%a = @double(%x)", "%a, %a", 1, 0, ["also"]),
    "argument returned": ("", "%x", 1, 0, [ARGUMENT]),
    "same input twice": ("%a = @double(%x)\n%r = @add(%a, %a)", "%r", 0, 1, []),
    "argument updated": ("%r = @more(%x) into %x", "%r", 1, 0, [ARGUMENT]),
    "dead temporary updated": ("%a = @double(%x)\n%r = @more(%x) into %a", "%r", 0, 0, []),
    "live temporary updated": (
        "%a = @double(%x)\n%b = @more(%x) into %a\n%r = @add(%a, %b)",
        "%r",
        1,
        2,
        ["%a is still read after %b is written"],
    ),
    "input updated by itself": (
        "%a = @double(%x)\n%r = @more(%a) into %a",
        "%r",
        0,
        0,
        [],
    ),
    "part of a filled whole": ("%a = @double(%x)" + SURROUND, "%r", 0, 0, []),
    "part that is read elsewhere": (
        "%a = @double(%x)" + SURROUND + "\n%b = @flip(%a)",
        "%r, %b",
        1,
        1,
        ["%a is still read"],
    ),
    "part that a later part is made of": (
        "%a = @double(%x)"
        + SURROUND.replace("%r =", "%h =")
        + "\n%w2 = tensor.empty(%m, %n2) : T\n%b = @flip(%h) into %w2",
        "%b",
        0,
        1,
        [],
    ),
    "elementwise loop": (loop("%q = @double(%s)\nyield %q", "%s", "%x"), "%r", 1, 0, [ARGUMENT]),
    "exchanging loop, even": (loop("%q = @flip(%s)\nyield %q", "%s", "%x"), "%r", 1, 1, [ARGUMENT]),
    "exchanging loop, odd": (
        "%c3 = arith.constant 3 : index" + loop("%q = @flip(%s)\nyield %q", "%s", "%x", "%c3"),
        "%r",
        1,
        1,
        [ARGUMENT],
    ),
    "exchanging loop, unknown count": (
        loop("%q = @flip(%s)\nyield %q", "%s", "%x", "%n"),
        "%r",
        2,
        2,
        [ARGUMENT, TURNS],
    ),
    "exchanging loop of a temporary": (
        "%a = @double(%x)" + loop("%q = @flip(%s)\nyield %q", "%s", "%a") + "%z = @double(%r)",
        "%z",
        0,
        2,
        [],
    ),
    "exchanging loop of a live temporary": (
        "%a = @double(%x)" + loop("%q = @flip(%s)\nyield %q", "%s", "%a") + "%z = @add(%r, %a)",
        "%z",
        1,
        3,
        ["%a is still read"],
    ),
    "loop reading from outside": (
        "%a = @double(%x)" + loop("%q = @add(%a, %s)\nyield %q", "%s", "%a"),
        "%r",
        1,
        1,
        ["%a is still read after %q is written"],
    ),
    "swap": (
        "%a = @double(%x)" + loop("yield %v, %s", "%s, %v", "%x, %a"),
        "%r, %u",
        1,
        0,
        [ARGUMENT],
    ),
    "swap, unknown count": (
        "%a = @double(%x)" + loop("yield %v, %s", "%s, %v", "%x, %a", "%n"),
        "%r, %u",
        3,
        2,
        [ARGUMENT, TURNS, TURNS],
    ),
    "recurrence of two": (
        "%a = @double(%x)" + loop("%q = @add(%s, %v)\nyield %v, %q", "%s, %v", "%x, %a"),
        "%r, %u",
        1,
        1,
        [ARGUMENT],
    ),
    "recurrence of three": (
        "%a = @double(%x)\n%b = @flip(%a)"
        + loop("%q = @add(%s, %w)\nyield %v, %w, %q", "%s, %v, %w", "%x, %a, %b"),
        "%r, %u, %v",
        1,
        1,
        [ARGUMENT],
    ),
    "same tensor yielded twice": (
        "%a = @double(%x)" + loop("%q = @flip(%v)\nyield %q, %q", "%s, %v", "%x, %a"),
        "%r, %u",
        2,
        0,
        [ARGUMENT, "is still read"],
    ),
    "carried tensor yielded twice": (
        "%a = @double(%x)" + loop("%q = @add(%v, %s)\nyield %s, %s", "%s, %v", "%x, %a"),
        "%r, %u",
        2,
        1,
        [ARGUMENT, "is still read"],
    ),
    "outer tensor yielded": (
        "%a = @double(%x)" + loop("%q = @flip(%v)\nyield %q, %x", "%s, %v", "%x, %a"),
        "%r, %u",
        2,
        0,
        [ARGUMENT, ARGUMENT],
    ),
    "outer tensor and exchange": (
        "%a = @double(%x)" + loop("%q = @flip(%v)\nyield %a, %s", "%s, %v", "%x, %a"),
        "%r, %u",
        4,
        2,
        [ARGUMENT, "is still read", "is still read", "is still read"],
    ),
    "loop updating from outside": (
        "%a = @double(%x)" + loop("%q = @more(%s) into %a\nyield %q", "%s", "%x"),
        "%r",
        2,
        2,
        [ARGUMENT, "%a is still read"],
    ),
    "loop in a loop": (
        "%a = @double(%x)"
        + loop(
            f"%o = scf.for %j = %c0 to %c4 step %c1 iter_args(%t = %s) -> ({T}) {{\n"
            f"%q = @flip(%t)\nscf.yield %q : {T}\n}}\nyield %o",
            "%s",
            "%a",
        ),
        "%r",
        0,
        1,
        [],
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_host(name: str, n: int) -> None:
    body, results, copies, allocs, reasons = CASES[name]
    outcome = check(host(body, results), matrices(n, n))
    assert (outcome.copies, outcome.allocs) == (copies, allocs), outcome.text
    assert len(outcome.remarks) == len(reasons), outcome.remarks
    for said, why in zip(outcome.remarks, reasons, strict=True):
        assert why in said


def test_a_size_that_depends_on_data_is_refused() -> None:
    text = host(
        "%v = tensor.extract %x[%c0, %c0] : T\n"
        "%w = arith.fptosi %v : f32 to i64\n"
        "%k = arith.index_cast %w : i64 to index\n"
        "%f = tensor.empty(%k, %m) : T\n"
        "%r = @ones() into %f"
    )
    with pytest.raises(CompileError, match="a size depends on what the program computes"):
        check(text, [np.ones((2, 2), np.float32)])


def test_long_chains_of_insertions_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many pieces of a tensor is looked at a few times, not once for each other piece."""
    pieces, calls = 60, list[int]()
    ctx = registry().context()

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return slice_of(*arguments)

    monkeypatch.setattr(copy_insertion, "slice_of", counted)
    insertions = "\n".join(
        f"  %y{k + 1} = tensor.insert_slice %x into %y{k}[{4 * k}] [4] [1] : "
        f"tensor<4xf32> into tensor<{4 * pieces}xf32>"
        for k in range(pieces)
    )
    all = f"tensor<{4 * pieces}xf32>"
    module = parse_module(
        ctx,
        f"func.func @main(%x: tensor<4xf32>, %y0: {all}) -> {all} {{\n{insertions}\n"
        f"  func.return %y{pieces} : {all}\n}}",
        "<test>",
    )
    Bufferize().apply(ctx, module)
    assert len(calls) <= 2 * pieces
