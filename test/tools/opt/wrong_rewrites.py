"""Wrong rewrites of small programs: what `wrong_passes` makes passes of."""

from __future__ import annotations

from dataclasses import dataclass

from stepwell.transforms.passes import Numerics


@dataclass(frozen=True)
class Wrong:
    """A wrong rewrite of the program ``text``, lowered by ``before`` first."""

    name: str
    text: str
    pattern: str
    """What is replaced in the text of the module, once for each place where it is found."""
    replacement: str
    op: str
    """The op that has to be named as the first with another value, and the line it stands in."""
    line: int
    numerics: Numerics = "bit-exact"
    before: str = ""
    said: str = "changes the result of @main"


def program(arguments: str, results: str, *lines: str) -> str:
    """Return a function; its body begins in line 2."""
    return "\n".join([f"func.func @main({arguments}) -> {results} {{", *lines, "}", ""])


def of_four(*lines: str, more: str = "") -> str:
    """Return a function of x, and more, of four numbers; what it gives is called y."""
    return program(
        f"%x: tensor<4xf32>{more}", "tensor<4xf32>", *lines, "func.return %y : tensor<4xf32>"
    )


def _integers(*lines: str) -> str:
    return of_four(*lines, more=", %z: tensor<4xf32>").replace("f32", "i32")


F = "tensor<4xf32>"
Z = ", %z: tensor<4xf32>"
L = r"( loc\(.*\))?"
"""The location at the end of a line."""

ZERO = '%c = "nd.full"() <{value = 0.0 : f32}> : () -> tensor<4xf32>'
TWO = '%c = "nd.full"() <{value = 2 : i32}> : () -> tensor<4xi32>'
SUM = program(
    "%x: tensor<?x3xf32>, %z: tensor<?x3xf32>",
    "tensor<3xf32>",
    "%a = nd.reduce_sum %x {axes = [0]} : tensor<?x3xf32> -> tensor<3xf32>",
    "%b = nd.reduce_sum %z {axes = [0]} : tensor<?x3xf32> -> tensor<3xf32>",
    "%y = nd.sub %a, %b : tensor<3xf32>",
    "func.return %y : tensor<3xf32>",
)
EFFECTS = program(
    "%x: tensor<4xf32>",
    "tensor<4xf32>",
    f"%y = nd.neg %x : {F}",
    f"func.call @show(%x) : ({F}) -> ()",
    f"func.call @tell(%y) : ({F}) -> ()",
    f"func.return %y : {F}",
) + (f"func.func private @show({F})\nfunc.func private @tell({F})\n")
BUFFERS = """func.func @main(%x: memref<4xf32>, %z: memref<4xf32>) {
%a = arith.constant 1 : index
%b = arith.constant 2 : index
%v = memref.load %x[%a] : memref<4xf32>
memref.store %v, %z[%b] : memref<4xf32>
memref.store %v, %z[%a] : memref<4xf32>
func.return
}
"""
LOOP = """func.func @main(%x: memref<?xf32>, %n: index) {
%a = arith.constant 0 : index
%b = arith.constant 1 : index
%m = memref.dim %x, %a : memref<?xf32>
scf.for %i = %a to %m step %b {
%v = memref.load %x[%i] : memref<?xf32>
%w = arith.addf %v, %v : f32
memref.store %w, %x[%i] : memref<?xf32>
}
func.return
}
"""

TABLE = (
    Wrong(
        "x-plus-zero",
        of_four(ZERO, f"%y = nd.add %x, %c : {F}"),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.add",
        3,
    ),
    Wrong(
        "x-times-zero",
        of_four(ZERO, f"%y = nd.mul %x, %c : {F}"),
        r"(func.return) %\w+",
        r"\1 %c",
        "nd.mul",
        3,
    ),
    Wrong(
        "x-plus-x-times-zero",
        of_four(
            ZERO, f"%m = nd.mul %x, %c : {F}", f"%a = nd.add %x, %m : {F}", f"%y = nd.abs %a : {F}"
        ),
        r"nd.abs %a",
        r"nd.abs %x",
        "nd.add",
        4,
    ),
    Wrong(
        "x-plus-x-times-zero-reassociating",
        of_four(ZERO, f"%m = nd.mul %x, %c : {F}", f"%y = nd.add %x, %m : {F}"),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.add",
        4,
        "reassociating",
    ),
    Wrong(
        "x-minus-x",
        of_four(ZERO, f"%y = nd.sub %x, %x : {F}"),
        r"(func.return) %\w+",
        r"\1 %c",
        "nd.sub",
        3,
        "approximating",
    ),
    Wrong(
        "x-over-x",
        of_four(
            f'%c = "nd.full"() <{{value = 1.0 : f32}}> : () -> {F}', f"%y = nd.div %x, %x : {F}"
        ),
        r"(func.return) %\w+",
        r"\1 %c",
        "nd.div",
        3,
        "approximating",
    ),
    Wrong(
        "swapped-operands",
        of_four(f"%s = nd.sub %x, %z : {F}", f"%y = nd.tanh %s : {F}", more=Z),
        r"nd.sub %x, %z",
        r"nd.sub %z, %x",
        "nd.sub",
        2,
    ),
    Wrong(
        "sums-in-another-order",
        of_four(
            f"%a = nd.add %x, %z : {F}", f"%y = nd.add %a, %w : {F}", more=Z + ", %w: tensor<4xf32>"
        ),
        r"nd.add %x, %z(.*\n.*)nd.add %a, %w",
        r"nd.add %z, %w\1nd.add %x, %a",
        "nd.add",
        2,
    ),
    Wrong(
        "zero-minus-x",
        of_four(ZERO, f"%y = nd.neg %x : {F}"),
        r"nd.neg %x",
        r"nd.sub %c, %x",
        "nd.neg",
        3,
    ),
    Wrong(
        "maximum-without-nan",
        of_four(f"%y = nd.maximum %x, %z : {F}", more=Z).replace("nd.maximum", "nd.max"),
        rf"%y = nd.max %x, %z : {F}{L}",
        rf"%g = nd.gt %x, %z : {F} -> tensor<4xi1>\n%y = nd.select %g, %x, %z : {F}\1",
        "nd.max",
        2,
        "approximating",
    ),
    Wrong(
        "root-of-a-square",
        of_four(f"%s = nd.mul %x, %x : {F}", f"%y = nd.sqrt %s : {F}"),
        r"nd.sqrt %s",
        r"nd.neg %x",
        "nd.sqrt",
        3,
        "approximating",
    ),
    Wrong(
        "exp-of-log",
        of_four(f"%l = nd.log %x : {F}", f"%y = nd.exp %l : {F}"),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.exp",
        3,
        "approximating",
    ),
    Wrong(
        "branches-exchanged",
        of_four(
            f"%p = nd.lt %x, %z : {F} -> tensor<4xi1>", f"%y = nd.select %p, %x, %z : {F}", more=Z
        ),
        r"%p, %x, %z",
        r"%p, %z, %x",
        "nd.select",
        3,
    ),
    Wrong(
        "less-or-equal",
        of_four(
            f"%p = nd.lt %x, %z : {F} -> tensor<4xi1>",
            f"%a = nd.abs %x : {F}",
            f"%y = nd.select %p, %x, %a : {F}",
            more=Z,
        ),
        r"nd.lt",
        r"nd.le",
        "nd.lt",
        2,
    ),
    Wrong(
        "not-less-is-greater-or-equal",
        program(
            f"%x: {F}, %z: {F}",
            "tensor<4xi1>",
            f"%p = nd.lt %x, %z : {F} -> tensor<4xi1>",
            "%y = nd.not %p : tensor<4xi1>",
            "func.return %y : tensor<4xi1>",
        ),
        rf"%y = nd.not %p : tensor<4xi1>{L}",
        rf"%y = nd.ge %x, %z : {F} -> tensor<4xi1>\1",
        "nd.not",
        3,
    ),
    Wrong(
        "there-and-back",
        of_four(
            f"%i = nd.cast %x : {F} -> tensor<4xi32>", f"%y = nd.cast %i : tensor<4xi32> -> {F}"
        ),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.cast",
        3,
    ),
    Wrong(
        "division-by-shifting",
        _integers(
            f'%c = "nd.full"() <{{value = 2 : i32}}> : () -> {F}',
            f"%o = nd.add %x, %z : {F}",
            f"%y = nd.div %o, %c : {F}",
        ),
        r"nd.div %o, %c",
        r"nd.shift_right %o, %c",
        "nd.div",
        4,
    ),
    Wrong(
        "half-of-twice",
        _integers(TWO, f"%t = nd.mul %x, %c : {F}", f"%y = nd.div %t, %c : {F}"),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.div",
        4,
    ),
    Wrong(
        "largest-without-sign",
        program(
            "%x: tensor<4xui8>, %z: tensor<4xui8>",
            "tensor<4xui8>",
            "%y = nd.max %x, %z : tensor<4xui8>",
            "func.return %y : tensor<4xui8>",
        ),
        "arith.maxui",
        "arith.maxsi",
        "arith.maxui",
        2,
        before="nd-to-linalg",
    ),
    Wrong(
        "no-more-than-64",
        LOOP,
        r"scf.for (%\w+) = (%\w+) to (%\w+)",
        r"%most = arith.constant 64 : index\n%least = arith.minsi \3, %most : index\nscf.for \1 = \2 to %least",
        "scf.for",
        5,
    ),
    Wrong(
        "one-size-for-another",
        program(
            "%x: tensor<?xf32>, %z: tensor<?xf32>, %s: tensor<f32>",
            "tensor<?xf32>",
            "%n = nd.dim %x {axis = 0} : tensor<?xf32>",
            "%y = nd.broadcast %s, sizes(%n) {dims = []} : tensor<f32> -> tensor<?xf32>",
            "func.return %y : tensor<?xf32>",
        ),
        "nd.dim %x",
        "nd.dim %z",
        "nd.dim",
        2,
    ),
    Wrong(
        "an-effect-dropped",
        EFFECTS,
        r"func.call @show.*\n",
        "",
        "func.call",
        3,
        said="changes effects: func.call took place 2 times, now 1",
    ),
    Wrong(
        "an-effect-repeated",
        EFFECTS,
        r"(func.call @show.*\n)",
        r"\1\1",
        "func.call",
        3,
        said="changes effects: func.call took place 2 times, now 3",
    ),
    Wrong(
        "an-effect-of-another-value",
        EFFECTS,
        r"func.call @tell\(%y\)",
        r"func.call @tell(%x)",
        "func.call",
        4,
        said="changes effects: what func.call is given: operand 0",
    ),
    Wrong(
        "a-print-dropped",
        of_four('"test.print"(%x) : (tensor<4xf32>) -> ()', f"%y = nd.neg %x : {F}"),
        r'"test.print".*\n',
        "",
        "test.print",
        2,
        said="changes effects: test.print took place 1 times, now 0",
    ),
    Wrong("a-store-dropped", BUFFERS, r"memref.store %\w+, %z\[%b\].*\n", "", "memref.store", 5),
    Wrong("a-store-elsewhere", BUFFERS, r"%z\[%b\]", "%z[%a]", "memref.store", 5),
    Wrong(
        "first-of-the-best",
        program(
            "%x: tensor<3x4xf32>",
            "tensor<3xi64>",
            "%y = nd.argmax %x {axis = 1} : tensor<3x4xf32> -> tensor<3xi64>",
            "func.return %y : tensor<3xi64>",
        ),
        rf"%y = nd.argmax %x(.*) : tensor<3x4xf32> -> tensor<3xi64>{L}",
        r"%r = nd.reverse %x {axes = [1]} : tensor<3x4xf32> -> tensor<3x4xf32>\n"
        r"%k = nd.argmax %r\1 : tensor<3x4xf32> -> tensor<3xi64>\n"
        r'%c = "nd.full"() <{value = 3 : i64}> : () -> tensor<3xi64>'
        "\n"
        r"%y = nd.sub %c, %k : tensor<3xi64>\2",
        "nd.argmax",
        2,
    ),
    Wrong(
        "a-transpose-dropped",
        program(
            "%x: tensor<3x3xf32>",
            "tensor<3x3xf32>",
            "%t = nd.transpose %x {permutation = [1, 0]} : tensor<3x3xf32> -> tensor<3x3xf32>",
            "%y = nd.neg %t : tensor<3x3xf32>",
            "func.return %y : tensor<3x3xf32>",
        ),
        r"nd.neg %t",
        r"nd.neg %x",
        "nd.transpose",
        2,
    ),
    Wrong(
        "a-product-turned",
        program(
            "%x: tensor<3x3xf32>, %z: tensor<3x3xf32>",
            "tensor<3x3xf32>",
            "%y = nd.matmul %x, %z : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>",
            "func.return %y : tensor<3x3xf32>",
        ),
        r"nd.matmul %x, %z",
        r"nd.matmul %z, %x",
        "nd.matmul",
        2,
        "reassociating",
    ),
    Wrong(
        "the-first-update-stays",
        program(
            "%x: tensor<4xf32>, %u: tensor<3xf32>, %i: tensor<3xi32>",
            "tensor<4xf32>",
            "%y = nd.scatter_add %x, %u, indices(%i) {axes = [0]} : (tensor<4xf32>, tensor<3xf32>, tensor<3xi32>) -> tensor<4xf32>",
            "func.return %y : tensor<4xf32>",
        ),
        "nd.scatter_add",
        "nd.scatter",
        "nd.scatter_add",
        2,
    ),
    Wrong(
        "a-scan-forwards",
        program(
            "%x: tensor<5x3xf32>, %s: tensor<3xf32>",
            "tensor<3xf32>",
            "%y = nd.scan (%t = %s) over (%r = %x) {reverse} : (tensor<3xf32>, tensor<5x3xf32>) -> (tensor<3xf32>) {",
            "%u = nd.sub %r, %t : tensor<3xf32>",
            "nd.yield %u : tensor<3xf32>",
            "}",
            "func.return %y : tensor<3xf32>",
        ),
        r" \{reverse\}",
        "",
        "nd.scan",
        2,
    ),
    Wrong(
        "inside-a-scan",
        program(
            "%x: tensor<5x3xf32>, %s: tensor<3xf32>",
            "tensor<3xf32>",
            "%y = nd.scan (%t = %s) over (%r = %x) : (tensor<3xf32>, tensor<5x3xf32>) -> (tensor<3xf32>) {",
            "%u = nd.sub %r, %t : tensor<3xf32>",
            "nd.yield %u : tensor<3xf32>",
            "}",
            "func.return %y : tensor<3xf32>",
        ),
        r"nd.sub %r, %t",
        r"nd.sub %t, %r",
        "nd.sub",
        3,
    ),
    Wrong(
        "a-part-of-a-sum",
        SUM,
        rf"%y = nd.sub %a, %b : tensor<3xf32>{L}",
        r"%d = nd.sub %x, %z : tensor<?x3xf32>\n"
        r"%y = nd.reduce_sum %d {axes = [0]} : tensor<?x3xf32> -> tensor<3xf32>\1",
        "nd.sub",
        4,
        "reassociating",
        said="cannot be run",
    ),
    Wrong(
        "another-constant",
        of_four(
            f'%c = "nd.full"() <{{value = 3.0 : f32}}> : () -> {F}', f"%y = nd.mul %x, %c : {F}"
        ),
        r"nd.full 3.0+e\+00",
        "nd.full 3.01",
        "nd.full",
        2,
        "reassociating",
    ),
    Wrong(
        "inside-a-kernel",
        SUM,
        "arith.addf",
        "arith.mulf",
        "linalg.generic",
        2,
        "reassociating",
        before="through(kernels)",
    ),
    Wrong(
        "inside-a-loop",
        program(
            "%x: tensor<?x3xf32>, %z: tensor<?x3xf32>",
            "tensor<?x3xf32>",
            "%y = nd.sub %x, %z : tensor<?x3xf32>",
            "func.return %y : tensor<?x3xf32>",
        ),
        r"arith.subf (%\w+), (%\w+)",
        r"arith.subf \2, \1",
        "arith.subf",
        2,
        before="through(loops)",
    ),
    Wrong(
        "infinity-is-the-largest-number",
        of_four(f"%y = nd.exp %x : {F}"),
        rf"%y = nd.exp %x : {F}{L}",
        rf"%e = nd.exp %x : {F}\n"
        r'%c = "nd.full"() <{value = 3.0e38 : f32}> : () -> tensor<4xf32>'
        rf"\n%y = nd.min %e, %c : {F}\1",
        "nd.exp",
        2,
        "approximating",
    ),
)
