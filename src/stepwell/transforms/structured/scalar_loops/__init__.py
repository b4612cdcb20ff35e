"""Turn loops over numbers, rows and windows into scalar code: plain loops with values in registers.

Before:  %n, %y = scf.while (%i = %zero, %x = %x0) : (tensor<i64>, tensor<9xf64>) -> ... {
           %t = linalg.generic ins(%i : tensor<i64>) outs(...) { cmpi slt, 9 }
           %c = tensor.extract %t[]
           scf.condition(%c) %i, %x
         } do { ... tensor.insert %v into %x[%k] ... linalg.generic ins(%i) { addi 1 } ... }
After:   %y, %n = scf.for %once = %c0 to %c1 step %c1 iter_args(%a = %x0, %b = %empty) {
           %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) {
             ... %z = tensor.insert %v into %x[%i] ... scf.yield %z }
           %m = tensor.insert %c9 into %b[]
           scf.yield %r, %m }

The pass rewrites loops that compute with one-element tensors and small arrays, and that read and
write elements and slices of loop-carried arrays; this includes nested loops and branches.
Afterwards such a loop is inside one scf.for of a single iteration on arrays, which becomes one
kernel. One-element tensors are numbers there, and a loop with a fixed step is an scf.for.
Elementwise ops and reductions of a row or window are loops over elements, whose bounds replace
masks. Comparisons that the ranges of counters decide are folded. Any other loop is unchanged, and
the loops nested in it are tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.analysis.structured import extents, yielded
from stepwell.transforms.passes import Pass, remark
from stepwell.transforms.structured.scalar_loops.code import Code, Refused, erase_unused
from stepwell.transforms.structured.scalar_loops.flow import is_kept, is_number
from stepwell.transforms.structured.scalar_loops.loops import RULES, for_loop, while_loop
from stepwell.transforms.structured.scalar_loops.nests import SHORT
from stepwell.transforms.structured.scalar_loops.translate import Translation


@dataclass(frozen=True)
class ScalarLoops(Pass):
    """Write loops over numbers, elements, rows and windows as scalar code."""

    name = "scalar-loops"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the loops of each function, the outermost that qualify."""
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    _block(block)


def _block(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, scf.WhileOp | scf.ForOp) and _rewritten(op):
            continue
        for region in op.regions:
            for inner in region.blocks:
                _block(inner)


def _rewritten(loop: scf.WhileOp | scf.ForOp) -> bool:
    """Replace a loop by scalar code, if possible."""
    if any(not isinstance(r.type, TensorType) for r in loop.results) or _is_scalar(loop):
        return False
    found, stored = None, frozenset[SSAValue]()
    while found is None:
        code = Code(Block())
        try:
            found = _scalar(loop, code, stored)
        except Refused as refused:
            code.abandon()
            again = refused.store
            if again is None or again in stored or not _is_short(again) or len(stored) == _MOST:
                remark(refused.op, f"a loop is no scalar code: {refused.why}")
                return False
            stored |= {again}
    new, results = found
    for old, value in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(value)
    loop.detach()
    loop.erase()
    erase_unused(new.body.block)
    return True


_MOST = 8
"""The most arrays of a loop that are stored, each found by translating the loop anew."""


def _is_short(value: SSAValue) -> bool:
    """Whether an array takes few iterations to store."""
    made_by = value.owner
    sizes = extents(made_by) if isinstance(made_by, linalg.GenericOp) else [DYNAMIC_INDEX]
    return DYNAMIC_INDEX not in sizes and prod(sizes) <= SHORT


_SCALAR = (
    *(scf.ForOp, scf.IfOp, scf.YieldOp),
    *(tensor.ExtractOp, tensor.InsertOp, tensor.DimOp),
)


def _is_scalar(loop: Operation) -> bool:
    """Whether a loop is scalar code already, such as the loop of a scatter."""
    return isinstance(loop, scf.ForOp) and all(
        isinstance(op, _SCALAR) or op.dialect_name() in ("arith", "math") for op in loop.walk()
    )


def _scalar(
    loop: scf.WhileOp | scf.ForOp, code: Code, stored: frozenset[SSAValue]
) -> tuple[scf.ForOp, list[SSAValue]]:
    """Write scalar code before a loop; return it, and the replacement of each result.

    code : the empty scalar code to write into
    stored : the arrays of the loop that are stored where they are made
    """
    inits = list(loop.arguments if isinstance(loop, scf.WhileOp) else loop.iter_args)
    kept = [_is_kept(loop, k) for k in range(len(inits))]
    arrays = [k for k, v in enumerate(inits) if not is_number(v) and not kept[k]]
    scalars = [k for k, r in enumerate(loop.results) if is_number(r) and r.first_use is not None]
    index = IndexType()
    types = [inits[k].type for k in arrays] + [loop.results[k].type for k in scalars]
    top = code.top
    for type in (index, *types):
        top.insert_arg(type, len(top.args))
    code.source = loop
    translation = Translation(code, loop, RULES)
    translation.stored = stored
    starts = dict(zip(arrays, top.args[1:], strict=False))
    for k, argument in starts.items():
        argument.name_hint = inits[k].name_hint
        code.arrays.add(argument)
    given = [starts[k] if k in starts else translation.value(v) for k, v in enumerate(inits)]
    if isinstance(loop, scf.WhileOp):
        found = while_loop(translation, loop, given)
    else:
        found = for_loop(translation, loop, given)
    ends = [found[k] for k in arrays]
    for k, into in zip(scalars, top.args[1 + len(arrays) :], strict=False):
        assert isinstance(into.type, TensorType)
        at = [code.index(0) for _ in into.type.get_shape()]
        ends.append(code.put(tensor.InsertOp(found[k], into, at)).results[0])
    code.put(scf.YieldOp(*ends, *code.scratches))
    code.finish()
    zero, one = (arith.ConstantOp(IntegerAttr(n, index)) for n in (0, 1))
    made = [*(loop.results[k].type for k in scalars), *(v.type for v in code.scratches)]
    empties = [tensor.EmptyOp([], type) for type in made]
    carried = [*(inits[k] for k in arrays), *(e.tensor for e in empties)]
    new = scf.ForOp(zero, one, one, carried, Region(top))
    parent = loop.parent
    assert parent is not None
    parent.insert_ops_before([zero, one, *empties, new], loop)
    for op in (zero, one, *empties, new):
        op.location = loop.location
    results = [inits[k] for k in range(len(inits))]
    for k, result in zip([*arrays, *scalars], new.results, strict=False):
        result.name_hint = loop.results[k].name_hint
        results[k] = result
    return new, results


def _is_kept(loop: scf.WhileOp | scf.ForOp, slot: int) -> bool:
    if isinstance(loop, scf.WhileOp):
        return is_kept(loop, slot)
    return yielded(loop.body.block)[slot] is loop.body.block.args[slot + 1]
