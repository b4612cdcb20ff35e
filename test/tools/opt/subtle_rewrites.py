"""Rewrites that are wrong for few numbers, sizes or paths only."""

from __future__ import annotations

from wrong_rewrites import EFFECTS, LOOP, Wrong, of_four, program

F = "tensor<4xf32>"
N = "tensor<4xi32>"
B = "tensor<4xi1>"


def _full(name: str, value: str, kind: str = "f32") -> str:
    return f'%{name} = "nd.full"() <{{value = {value} : {kind}}}> : () -> tensor<4x{kind}>'


def _unary(op: str, *more: str) -> str:
    return of_four(*more, f"%y = nd.{op} %x : {F}")


def _of_two_integers(*lines: str) -> str:
    return program(f"%x: {N}, %z: {N}", B, *lines, f"func.return %y : {B}")


def _counted(times: int) -> str:
    """A loop that doubles so many times, as a while with a counter."""
    return program(
        "%x: tensor<f32>",
        "(tensor<i32>, tensor<f32>)",
        '%n = "nd.full"() <{value = 0 : i32}> : () -> tensor<i32>',
        f'%m = "nd.full"() <{{value = {times} : i32}}> : () -> tensor<i32>',
        '%o = "nd.full"() <{value = 1 : i32}> : () -> tensor<i32>',
        "%k, %y = nd.while (%i = %n, %a = %x) : tensor<i32>, tensor<f32> {",
        "%go = nd.lt %i, %m : tensor<i32> -> tensor<i1>",
        "nd.condition %go",
        "} do (%j, %b) {",
        "%p = nd.add %j, %o : tensor<i32>",
        "%q = nd.neg %b : tensor<f32>",
        "nd.yield %p, %q : tensor<i32>, tensor<f32>",
        "}",
        "func.return %k, %y : tensor<i32>, tensor<f32>",
    )


BRANCH = program(
    f"%x: {F}, %n: tensor<i32>",
    F,
    '%t = "nd.full"() <{value = 1234 : i32}> : () -> tensor<i32>',
    "%c = nd.eq %n, %t : tensor<i32> -> tensor<i1>",
    f"%y = nd.if %c -> {F} {{",
    f"%a = nd.exp %x : {F}",
    f"nd.yield %a : {F}",
    "} else {",
    f"%b = nd.neg %x : {F}",
    f"nd.yield %b : {F}",
    "}",
    f"func.return %y : {F}",
)
SIZED = program(
    "%s: tensor<f32>, %x: tensor<?xf32>",
    "tensor<?xf32>",
    "%n = nd.dim %x {axis = 0} : tensor<?xf32>",
    "%o = arith.constant 1 : index",
    "%y = nd.broadcast %s, sizes(%n) {dims = []} : tensor<f32> -> tensor<?xf32>",
    "func.return %y : tensor<?xf32>",
)
SIZES = r"(%y = nd.broadcast %s, )sizes\(%n\)"
IN_VECTORS = """func.func @main(%x: memref<?xf32>) {
%a = arith.constant 0 : index
%b = arith.constant 1 : index
%w = arith.constant 16 : index
%m = memref.dim %x, %a : memref<?xf32>
%r = arith.remui %m, %w : index
%e = arith.subi %m, %r : index
scf.for %i = %a to %m step %b {
%v = memref.load %x[%i] : memref<?xf32>
%s = arith.addf %v, %v : f32
memref.store %s, %x[%i] : memref<?xf32>
}
func.return
}
"""
GATHER = program(
    f"%x: {F}, %i: tensor<3xi32>",
    "tensor<3xf32>",
    f"%y = nd.gather %x, indices(%i) {{axes = [0]}} : ({F}, tensor<3xi32>) -> tensor<3xf32>",
    "func.return %y : tensor<3xf32>",
)
SCAN = program(
    "%x: tensor<5x3xf32>, %s: tensor<3xf32>, %t: tensor<3xf32>",
    "(tensor<3xf32>, tensor<3xf32>)",
    "%p, %q = nd.scan (%u = %s, %v = %t) over (%r = %x)"
    " : (tensor<3xf32>, tensor<3xf32>, tensor<5x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {",
    "%w = nd.add %u, %r : tensor<3xf32>",
    "nd.yield %w, %u : tensor<3xf32>, tensor<3xf32>",
    "}",
    "func.return %p, %q : tensor<3xf32>, tensor<3xf32>",
)
CALLED_IN_A_LOOP = """func.func @main(%x: tensor<f32>, %n: index) {
%a = arith.constant 0 : index
%b = arith.constant 1 : index
scf.for %i = %a to %n step %b {
func.call @show(%x) : (tensor<f32>) -> ()
}
func.return
}
func.func private @show(tensor<f32>)
"""

SUBTLE = (
    Wrong(
        "halves-of-the-smallest",
        of_four(_full("c", "0.5"), f"%h = nd.mul %x, %c : {F}", f"%y = nd.div %h, %c : {F}"),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.div",
        4,
    ),
    Wrong(
        "one-more-is-greater",
        _of_two_integers(
            _full("c", "1", "i32"),
            f"%a = nd.add %x, %c : {N}",
            f"%y = nd.gt %a, %x : {N} -> {B}",
        ),
        r"nd.gt %a, %x",
        r"nd.ne %a, %x",
        "nd.gt",
        4,
    ),
    Wrong(
        "difference-of-a-comparison",
        _of_two_integers(
            _full("c", "0", "i32"),
            f"%a = nd.sub %x, %z : {N}",
            f"%y = nd.gt %a, %c : {N} -> {B}",
        ),
        r"nd.gt %a, %c",
        r"nd.gt %x, %z",
        "nd.sub",
        3,
    ),
    Wrong(
        "through-a-float",
        of_four(f"%y = nd.abs %x : {F}").replace("f32", "i32"),
        r"%y = nd.abs %x : tensor<4xi32>(.*)",
        rf"%g = nd.cast %x : {N} -> {F}\n%h = nd.abs %g : {F}\n%y = nd.cast %h : {F} -> {N}\1",
        "nd.abs",
        2,
    ),
    Wrong(
        "half-to-even",
        _unary("round"),
        rf"%y = nd.round %x : {F}(.*)",
        r'%c = "nd.full"() <{value = 0.5 : f32}> : () -> tensor<4xf32>\n'
        rf"%s = nd.add %x, %c : {F}\n%y = nd.floor %s : {F}\1",
        "nd.round",
        2,
        "approximating",
    ),
    Wrong(
        "half-away",
        _unary("round"),
        rf"%y = nd.round %x : {F}(.*)",
        r'%c = "nd.full"() <{value = 0.5 : f32}> : () -> tensor<4xf32>\n'
        rf"%g = nd.abs %x : {F}\n%s = nd.add %g, %c : {F}\n%f = nd.floor %s : {F}\n"
        rf"%y = nd.copysign %f, %x : {F}\1",
        "nd.round",
        2,
        "approximating",
    ),
    Wrong(
        "magnitude-by-comparing",
        _unary("abs", _full("c", "0.0")),
        rf"%y = nd.abs %x : {F}(.*)",
        rf"%p = nd.lt %x, %c : {F} -> {B}\n%n = nd.neg %x : {F}\n"
        rf"%y = nd.select %p, %n, %x : {F}\1",
        "nd.abs",
        3,
    ),
    Wrong(
        "equal-to-itself",
        program(f"%x: {F}", B, f"%y = nd.eq %x, %x : {F} -> {B}", f"func.return %y : {B}"),
        rf"%y = nd.eq %x, %x : {F} -> {B}(.*)",
        r'%y = "nd.full"() <{value = true}> : () -> tensor<4xi1>\1',
        "nd.eq",
        2,
        "approximating",
    ),
    Wrong(
        "not-beyond-six",
        of_four(_full("c", "6.0"), f"%y = nd.min %x, %c : {F}"),
        r"(func.return) %\w+",
        r"\1 %x",
        "nd.min",
        3,
        "reassociating",
    ),
    Wrong(
        "softmax-without-its-largest",
        of_four(f"%e = nd.exp %x : {F}", f"%y = nd.softmax %x {{axis = 0}} : {F}"),
        rf"%y = nd.softmax %x {{axis = 0}} : {F}(.*)",
        r"%s = nd.reduce_sum %e {axes = [0]} : tensor<4xf32> -> tensor<f32>\n"
        r"%t = nd.broadcast %s {dims = []} : tensor<f32> -> tensor<4xf32>\n"
        rf"%y = nd.div %e, %t : {F}\1",
        "nd.softmax",
        3,
        "reassociating",
    ),
    Wrong(
        "size-none-is-one",
        SIZED,
        SIZES,
        r"%p = arith.maxui %n, %o : index\n\1sizes(%p)",
        "nd.dim",
        2,
    ),
    Wrong(
        "size-one-is-none",
        SIZED,
        SIZES,
        r"%q = arith.cmpi eq, %n, %o : index\n%z = arith.constant 0 : index\n"
        r"%p = arith.select %q, %z, %n : index\n\1sizes(%p)",
        "nd.dim",
        2,
    ),
    Wrong(
        "short-tails-only",
        IN_VECTORS,
        r"scf.for %i = %a to %m step",
        "%q = arith.constant 8 : index\n%f = arith.minui %r, %q : index\n%g = arith.addi %e, %f : index\n"
        "scf.for %i = %a to %g step",
        "scf.for",
        8,
    ),
    Wrong(
        "short-of-many",
        LOOP,
        r"scf.for (%\w+) = (%\w+) to (%\w+)",
        r"%most = arith.constant 100 : index\n%many = arith.cmpi sgt, \3, %most : index\n"
        r"%one = arith.extui %many : i1 to i64\n%less = arith.index_cast %one : i64 to index\n"
        r"%least = arith.subi \3, %less : index\nscf.for \1 = \2 to %least",
        "scf.for",
        5,
    ),
    Wrong(
        "a-turn-less",
        _counted(101),
        r"nd.full 101",
        "nd.full 100",
        "nd.full",
        3,
    ),
    Wrong(
        "wrong-in-a-branch-hardly-taken",
        BRANCH,
        r"nd.exp %x",
        "nd.exp2 %x",
        "nd.exp",
        5,
    ),
    Wrong(
        "the-second-result",
        SCAN,
        r"nd.yield %w, %u",
        "nd.yield %w, %v",
        "nd.scan",
        2,
    ),
    Wrong(
        "carries-exchanged",
        SCAN,
        r"nd.yield %w, %u",
        "nd.yield %u, %w",
        "nd.add",
        3,
    ),
    Wrong(
        "indices-around-the-end",
        GATHER,
        r"%y = nd.gather %x, indices\(%i\)",
        r'%c = "nd.full"() <{value = 4 : i32}> : () -> tensor<3xi32>\n'
        r"%k = nd.mod %i, %c : tensor<3xi32>\n%y = nd.gather %x, indices(%k)",
        "nd.gather",
        2,
    ),
    Wrong(
        "indices-from-the-end",
        GATHER,
        r"%y = nd.gather %x, indices\(%i\)",
        r'%c = "nd.full"() <{value = 4 : i32}> : () -> tensor<3xi32>\n'
        r'%o = "nd.full"() <{value = 0 : i32}> : () -> tensor<3xi32>\n'
        r"%l = nd.lt %i, %o : tensor<3xi32> -> tensor<3xi1>\n%m = nd.add %i, %c : tensor<3xi32>\n"
        r"%k = nd.select %l, %m, %i : tensor<3xi32>\n%y = nd.gather %x, indices(%k)",
        "nd.gather",
        2,
    ),
    Wrong(
        "an-effect-once-for-many",
        CALLED_IN_A_LOOP,
        r"(scf.for .* to) %n",
        r"\1 %b",
        "scf.for",
        4,
        said="changes effects: func.call took place",
    ),
    Wrong(
        "effects-exchanged",
        EFFECTS,
        r"(func.call @show.*\n)(.*func.call @tell.*\n)",
        r"\2\1",
        "func.call",
        3,
        said="changes effects",
    ),
)
