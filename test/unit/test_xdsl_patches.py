"""The quicker methods of xDSL's IR do what its own do: one script says the same with both."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, scf, test
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.builtin import *
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def
from xdsl.irdl import opt_prop_def, prop_def, region_def, result_def, var_operand_def
from xdsl.irdl import AttrSizedOperandSegments, traits_def, var_result_def, opt_attr_def
from xdsl.ir.affine import AffineMap
from xdsl.traits import HasParent, NoTerminator, Pure

def say(*what):
    print(*what)

def refused(make):
    try:
        say("made", make())
    except Exception as error:
        say(type(error).__name__, str(error).replace(chr(10), " / "))

@irdl_op_definition
class Mixed(IRDLOperation):
    name = "quick.mixed"
    first = operand_def()
    some = var_operand_def()
    maybe = opt_operand_def()
    ending = var_operand_def(i32)
    one = result_def()
    more = var_result_def()
    body = region_def()
    kind = prop_def(StringAttr, default_value=StringAttr("usual"))
    extra = opt_prop_def(IntegerAttr)
    note = opt_attr_def(StringAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

block = Block(arg_types=[i32, f32, i32])
a, b, c = block.args
two = test.TestOp(operands=[a, b], result_types=[i32, f32, i64])
block.add_op(two)
region = lambda: Region(Block([test.TestOp()]))
for given in (
    dict(operands=[a, [b, c], None, [c, a]], result_types=[i32, [f32]], regions=[region()]),
    dict(operands=[a, (), a, ()], result_types=[i32, []], regions=[[test.TestOp()]]),
    dict(operands=[a, two.results[:2], [b], [two.results[0]]], result_types=[i32, (f32, f32)],
         regions=[region()], properties={"kind": StringAttr("other"), "extra": None},
         attributes={"note": None, "free": UnitAttr()}),
    dict(operands=[arith.ConstantOp.from_int_and_width(1, 32), [], None, []],
         result_types=[i32, []], regions=[Region()]),
):
    op = Mixed(**given)
    say(op, op.properties, op.attributes, op.first.type, [v.type for v in op.some])
    say(op.some.types, op.maybe and op.maybe.type, op.ending.types, op.one.type, op.more.types)
    say(op.body is op.regions[0], op.results[0].op is op, [r.index for r in op.results])
    say([u.index for u in a.uses], op.location, op.operands == op.operands, len(op.operands))
    refused(lambda: op.verify(verify_nested_ops=False))
    other = op.clone()
    say(other.is_structurally_equivalent(op), other == op, hash(op) == hash(op), op in {other})
refused(lambda: Mixed(operands=[a, [], None], result_types=[i32, []], regions=[region()]))
refused(lambda: Mixed(operands=[None, [], None, []], result_types=[i32, []], regions=[region()]))
refused(lambda: Mixed(operands=[[a, b], [], None, []], result_types=[i32, []], regions=[region()]))
refused(lambda: Mixed(operands=[a, [], [a, b], []], result_types=[i32, []], regions=[region()]))
refused(lambda: Mixed(operands=[two, [], None, []], result_types=[i32, []], regions=[region()]))
refused(lambda: arith.AddiOp(a, b).verify())
refused(lambda: arith.AddiOp(a, two))
refused(lambda: setattr(arith.AddiOp(a, a), "lhs", a))
add = arith.AddiOp(a, two.results[0])
block.add_op(add)
add.operands[1] = c
say([v.index for v in add.operands], [u.index for u in c.uses], two.results[0].uses.get_length())
add.operands = [c, c]
say([u.operation.name for u in c.uses], a.uses.get_length(), add.lhs is c, add.result.owner is add)
say(type(add.operands[:1]).__name__, two.results[1:].types, type(two.results[::2]).__name__)
add.detach()
add.erase()
say(c.uses.get_length(), [op.name for op in block.ops], len(block.ops), bool(block.ops))
refused(lambda: block.add_op(two))
around = test.TestOp(regions=[Region(Block())])
refused(lambda: around.regions[0].block.add_op(around))
refused(lambda: two.results[0].__setattr__("name_hint", "1 2"))
refused(lambda: block.__setattr__("name_hint", "1 2"))
two.results[0].name_hint = "name_12"
say(two.results[0].name_hint, two)

for make in (
    lambda: IntegerAttr(3, i32), lambda: IntegerAttr(3, f32), lambda: FloatAttr(1.5, f16),
    lambda: FloatAttr(1.5, i32), lambda: TensorType(f32, [1, -1]), lambda: TensorType(1, [1]),
    lambda: TensorType.new([ArrayAttr([StringAttr("a")]), f32, NoneAttr()]),
    lambda: MemRefType(f32, [2], StringAttr("no")), lambda: MemRefType(f32, [2], NoneAttr(), i1),
    lambda: VectorType(f32, [-1]), lambda: VectorType(f32, [4]), lambda: SymbolRefAttr("a", ["b"]),
    lambda: DenseArrayBase.from_list(i32, [1, 2]), lambda: DenseArrayBase.new([f32, i32]),
    lambda: FunctionType.from_lists([i32], [f32]), lambda: IntegerType(-1), lambda: IntegerType(7),
    lambda: StridedLayoutAttr([1, None], None), lambda: FusedLoc([UnknownLoc(), i32]),
    lambda: FusedLoc([UnknownLoc()], NoneAttr()), lambda: TupleType([i32, 3]), lambda: ComplexType(i1),
):
    refused(make)
for x in (i32, a, two, block, region(), two.results[0], TensorType(f32, [1]), StringAttr("x")):
    say([isinstance(x, kind) for kind in (Attribute, SSAValue, Operation, IRDLOperation, Block,
        Region, TypeAttribute, ShapedType, TypedAttribute, test.TestOp, IntegerType, TensorType)])
    say(x == x, x != 3, x in [x], len({x, x}))
say(issubclass(TensorType, Attribute), issubclass(TensorType, Operation))
alone = Block([test.TestOp() for _ in range(4)])
for k, op in enumerate(alone.ops):
    if k == 1:
        op.next_op.detach()
    say(k, len(alone.ops), op is alone.ops.first, op is alone.ops.last)
say([op.parent is alone for op in reversed(alone.ops)])
index = Block(arg_types=[IndexType()] * 3)
say(scf.ForOp(*index.args, [], Region(Block(arg_types=[IndexType()]))))
with ImplicitBuilder(alone):
    first = test.TestOp(result_types=[i32])
    arith.AddiOp(first, first)
say([op.name for op in alone.ops])

for make in (
    lambda: TensorType(f32, [2, 3]), lambda: MemRefType(f32, [2]), lambda: VectorType(i32, [4]),
    lambda: IntegerType(7), lambda: IntegerAttr(3, i32), lambda: FloatAttr(1.5, f32),
    lambda: ArrayAttr([i32, StringAttr("x")]), lambda: DenseArrayBase.from_list(i64, [1, 2]),
    lambda: DenseIntOrFPElementsAttr.from_list(TensorType(f32, [2]), [1.0, 2.0]),
    lambda: AffineMapAttr(AffineMap.identity(2)), lambda: arith.FastMathFlagsAttr("fast"),
    lambda: FileLineColLoc(StringAttr("x"), IntAttr(1), IntAttr(2)),
):
    one, other = make(), make()
    say(hash(one) == hash(other) == hash(one), {one: 1}.get(other), one == other, type(one).__name__)

@irdl_op_definition
class Bare(IRDLOperation):
    name = "quick.bare"
    traits = traits_def(NoTerminator())

for wanted in (NoTerminator, NoTerminator(), Pure, Pure(), HasParent(Bare), HasParent(Mixed)):
    say(Bare.has_trait(wanted), Bare.get_trait(wanted), Mixed.has_trait(wanted))
Bare.traits.add_trait(HasParent(Bare))
for wanted in (NoTerminator, HasParent, HasParent(Bare), HasParent(Mixed)):
    say(Bare.has_trait(wanted), type(Bare.get_trait(wanted)).__name__, Mixed.has_trait(wanted))
image = Block(arg_types=[f32, TensorType(f32, [2]), IndexType(), MemRefType(IndexType(), [2])])
refused(lambda: linalg.FillOp(image.args[:1], image.args[1:2], [image.args[1].type]))
refused(lambda: linalg.FillOp(image.args[2:3], image.args[3:]))
say(UnregisteredOp.has_trait(Pure), UnregisteredOp.has_trait(Pure, value_if_unregistered=False))
"""


@pytest.fixture(scope="module")
def said() -> list[list[str]]:
    texts = [SCRIPT, "import stepwell.dialects.upstream\n" + SCRIPT]
    done = [
        subprocess.run([sys.executable, "-c", t], capture_output=True, text=True, check=False)
        for t in texts
    ]
    assert [one.stderr for one in done] == ["", ""]
    return [one.stdout.splitlines() for one in done]


def test_all_is_as_with_xdsl(said: list[list[str]]) -> None:
    theirs, ours = said
    assert ours == theirs
    assert len(ours) > 80


def test_something_is_refused(said: list[list[str]]) -> None:
    assert sum("Exception" in line or "Error" in line for line in said[0]) > 15
