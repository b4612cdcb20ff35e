"""A loop that leaves the edges of what it carries as they are does not copy them again."""

from __future__ import annotations

import numpy as np
import pytest
from buffer_programs import T, check, host, loop, matrices

import stepwell as sw

ROW, COLUMN = "tensor<1x?xf32>", "tensor<?x1xf32>"
BEFORE = """
%c2 = arith.constant 2 : index
%k = arith.subi %n, %c2 : index
%l = arith.subi %n, %c1 : index
%km = arith.subi %m, %c2 : index
%lm = arith.subi %m, %c1 : index
"""


def part(name: str, of: str, at: str, sizes: str, type: str) -> str:
    """Spell a part of a matrix."""
    return f"{name} = tensor.extract_slice {of}[{at}] [{sizes}] [1, 1] : T to {type}\n"


def put(name: str, piece: str, into: str, at: str, sizes: str, type: str) -> str:
    """Spell a part put into a matrix."""
    return (
        f"{name} = tensor.insert_slice {piece} into {into}[{at}] [{sizes}] [1, 1] : {type} into T\n"
    )


def sweep(of: str, q: str, edges: str = "", kernel: str = "@flip(%in)") -> str:
    """Spell ``q``: the inner part of ``of`` made anew, its edges those of ``edges``."""
    e = edges or of
    return (
        part("%in", of, "1, 1", "%k, %km", T)
        + "%ek = tensor.empty(%k, %km) : T\n"
        + f"%new = {kernel} into %ek\n"
        + part("%left", e, "1, 0", "%k, 1", COLUMN)
        + part("%right", e, "1, %lm", "%k, 1", COLUMN)
        + part("%top", e, "0, 0", "1, %m", ROW)
        + part("%bottom", e, "%l, 0", "1, %m", ROW)
        + "%w0 = tensor.empty(%k, %m) : T\n"
        + put("%w1", "%left", "%w0", "0, 0", "%k, 1", COLUMN)
        + put("%w2", "%new", "%w1", "0, 1", "%k, %km", T)
        + put("%w3", "%right", "%w2", "0, %lm", "%k, 1", COLUMN)
        + "%v0 = tensor.empty(%n, %m) : T\n"
        + put("%v1", "%top", "%v0", "0, 0", "1, %m", ROW)
        + put("%v2", "%w3", "%v1", "1, 0", "%k, %m", T)
        + put(q, "%bottom", "%v2", "%l, 0", "1, %m", ROW)
    )


WHILE = f"""
%r, %z = scf.while (%s = %x, %i = %c0) : ({T}, index) -> ({T}, index) {{
  %go = arith.cmpi slt, %i, %c4 : index
  scf.condition(%go) %s, %i : {T}, index
}} do {{
^bb0(%s1: {T}, %j: index):
  {sweep("%s1", "%q")}
  %j1 = arith.addi %j, %c1 : index
  scf.yield %q, %j1 : {T}, index
}}
"""

CASES: dict[str, tuple[str, str, int, int, int]] = {
    # name: what comes after BEFORE, results, copies (four are of edges), in loops, temporaries
    "edges": (loop(sweep("%s", "%q") + "yield %q", "%s", "%x"), "%r", 5, 0, 1),
    "odd": (
        "%c3 = arith.constant 3 : index" + loop(sweep("%s", "%q") + "yield %q", "%s", "%x", "%c3"),
        "%r",
        5,
        0,
        1,
    ),
    "no iteration": (loop(sweep("%s", "%q") + "yield %q", "%s", "%x", "%c0"), "%r", 5, 0, 1),
    "unknown count": (loop(sweep("%s", "%q") + "yield %q", "%s", "%x", "%n"), "%r", 6, 0, 2),
    "of a temporary": (
        "%a = @double(%x)" + loop(sweep("%s", "%q") + "yield %q", "%s", "%a") + "%z = @double(%r)",
        "%z",
        4,
        0,
        2,
    ),
    "while": (WHILE, "%r", 6, 0, 2),
    "new part in place": (
        loop(sweep("%s", "%q", kernel="@double(%in)") + "yield %q", "%s", "%x"),
        "%r",
        1,
        0,
        0,
    ),
    "edges of another": (
        loop(sweep("%s", "%q", edges="%x") + "yield %q", "%s", "%x"),
        "%r",
        5,
        4,
        1,
    ),
    "two carried": (
        "%a = @double(%x)"
        + loop(
            sweep("%s", "%q")
            + sweep("%t", "%p")
            .replace("%in", "%in_")
            .replace("%e", "%f")
            .replace("%new", "%nw")
            .replace("%w", "%y")
            .replace("%v", "%u")
            .replace("%left", "%g")
            .replace("%right", "%h")
            .replace("%top", "%o")
            .replace("%bottom", "%b")
            + "yield %q, %p",
            "%s, %t",
            "%x, %a",
        ),
        "%r, %u",
        9,
        0,
        2,
    ),
    "exchanged": (
        "%a = @double(%x)" + loop(sweep("%s", "%q") + "yield %t, %q", "%s, %t", "%x, %a"),
        "%r, %u",
        5,
        4,
        1,
    ),
    "also stacked": (
        loop(sweep("%s", "%q") + "%p = @add(%q, %t)\nyield %q, %p", "%s, %t", "%x, %x"),
        "%r, %u",
        6,
        0,
        1,
    ),
    "loop in a loop": (
        loop(
            f"%o = scf.for %j = %c0 to %c4 step %c1 iter_args(%t = %s) -> ({T}) {{\n"
            + sweep("%t", "%q")
            + f"scf.yield %q : {T}\n}}\nyield %o",
            "%s",
            "%x",
        ),
        "%r",
        5,
        4,
        1,
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [3, 6])
def test_edges(name: str, n: int) -> None:
    body, results, copies, repeated, allocs = CASES[name]
    outcome = check(host(BEFORE + body, results), matrices(n, n))
    found = outcome.copies, outcome.repeated, outcome.allocs
    assert found == (copies, repeated, allocs), outcome.text


def test_an_edge_put_over_the_new_part_is_written_each_time() -> None:
    over = (
        "%f = @flip(%s)\n%v0 = tensor.empty(%n, %m) : T\n"
        + put("%v1", "%f", "%v0", "0, 0", "%n, %m", T)
        + part("%top", "%s", "0, 0", "1, %m", ROW)
        + put("%q", "%top", "%v1", "0, 0", "1, %m", ROW)
    )
    outcome = check(host(BEFORE + loop(over + "yield %q", "%s", "%x")), matrices(4, 4))
    assert outcome.text.index("scf.for") < outcome.text.rindex("memref.copy")


def test_what_is_put_elsewhere_each_time_stays_in_place() -> None:
    rows = (
        part("%row", "%s", "%i, 0", "%c1, %m", T)
        + "%e1 = tensor.empty(%c1, %m) : T\n%new = @double(%row) into %e1\n"
        + put("%q", "%new", "%s", "%i, 0", "%c1, %m", T)
    )
    outcome = check(host(BEFORE + loop(rows + "yield %q", "%s", "%x")), matrices(4, 4))
    assert (outcome.copies, outcome.allocs) == (1, 0), outcome.text


def test_values_that_are_concatenated_with_themselves() -> None:
    """A slice has 2**40 ways into its result here; few of them are followed."""
    steps = [
        f"%c{k + 1} = nd.concat %c{k}, %c{k} {{axis = 0 : i64}}"
        " : (tensor<0x8xf32>, tensor<0x8xf32>) -> tensor<0x8xf32>"
        for k in range(40)
    ]
    text = f"""
    func.func @main(%x: tensor<0x8xf32>) -> tensor<0x8xf32> {{
      %y = nd.scan (%a = %x) {{length = 4}} : (tensor<0x8xf32>) -> tensor<0x8xf32> {{
        %c0 = nd.slice %a[0:0, :8] : tensor<0x8xf32> -> tensor<0x8xf32>
        {chr(10).join(steps)}
        nd.yield %c40 : tensor<0x8xf32>
      }}
      func.return %y : tensor<0x8xf32>
    }}"""
    assert sw.compile(text)(np.ones((0, 8), np.float32)).shape == (0, 8)
