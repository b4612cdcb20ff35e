"""Copy arguments that the iterations of a loop reread to aligned memory.

Before:  scf.for ... { %y = kernel.launch @k ins(%c, %w) outs(%e) ... }       %w, an argument
After:   %d = kernel.launch @main_reread ins(%w) outs(%z)
         scf.for ... { %y = kernel.launch @k ins(%c, %d) outs(%e) ... }

Arguments of a program are seldom aligned to a cache line, and then each vector read from them spans
two lines. The bandwidth of the caches beyond L1 drops by a quarter, which an aligned copy soon
repays.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.constness import RESOURCE, attributes_of
from stepwell.analysis.levels import NO_LANES, Lanes, kernel_levels, write_schedule
from stepwell.analysis.levels.building import Inner, in_threads, nest
from stepwell.analysis.structured import (
    array_of_maps,
    constant_of,
    element,
    identity,
    indices,
    tensor_bytes,
)
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.types import locate
from stepwell.transforms.kernels.pack_operands.kernels import ELEMENTS_PER_THREAD
from stepwell.transforms.kernels.same_kernels import Shared
from stepwell.transforms.kernels.schedule.nest import parallel_steps
from stepwell.transforms.kernels.schedule.reasons import explain_choice, spell_bytes
from stepwell.transforms.kernels.schedule.tails import choose_tails

MIN_ITERATIONS = 16
"""Iterations that repay a copy."""
MIN_BYTES = 1 << 15
"""Bytes of an argument below which it stays in the L1 cache."""
INTERLEAVED_VECTORS = 4
"""Vectors copied at a time."""
VIEWS = (tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.ExtractSliceOp)


def copy_reread_arguments(module: ModuleOp, most: int) -> None:
    """Make loops read aligned copies of arguments of at most ``most`` bytes."""
    kernels = {f.sym_name.data: f for f in module.ops if isinstance(f, kernel.FuncOp)}
    shared = Shared(names=dict.fromkeys(kernels, 1))
    for function in list(module.ops):
        if not isinstance(function, func.FuncOp) or not function.body.blocks:
            continue
        done: dict[tuple[SSAValue, Operation], SSAValue] = {}
        for launch in list(function.walk()):
            if not isinstance(launch, kernel.LaunchOp):
                continue
            callee = kernels[launch.callee.string_value()]
            if kernel_levels(callee).blocks:  # packs its operand, or reads it packed
                continue
            for n, value in enumerate(launch.inputs):
                if not MIN_BYTES <= tensor_bytes(value) <= most or not _is_argument(
                    value, function
                ):
                    continue
                lanes = _lanes(callee, callee.body.block.args[n])
                loop = loop_around(value, launch) if lanes > 1 else None
                if loop is None:
                    continue
                if (value, loop) not in done:
                    done[value, loop] = _copied(value, loop, function, shared, lanes)
                launch.operands[n] = done[value, loop]
    shared.unite()


def _is_argument(value: SSAValue, function: func.FuncOp) -> bool:
    """Whether ``value`` is an argument of the program, or a view of one, and not a weight."""
    while isinstance(value.owner, VIEWS):
        value = value.owner.operands[0]
    if not isinstance(value, BlockArgument) or value.owner is not function.body.block:
        return False
    return RESOURCE not in attributes_of(function, value.index)


def _lanes(callee: kernel.FuncOp, argument: BlockArgument) -> int:
    """Return the lanes of the vectors in which a kernel reads all of an argument; else 0."""
    found, levels = 0, kernel_levels(callee)
    chosen: dict[Operation, Lanes] = dict(zip(levels.ops, levels.lanes, strict=True))
    for use in argument.uses:
        op = use.operation
        lanes = chosen.get(op, NO_LANES)
        if not isinstance(op, linalg.GenericOp) or lanes.axis < 0:
            return 0
        index = indices(op)[use.index]
        loops = [expr.position for expr in index if isinstance(expr, AffineDimExpr)]
        if len(set(loops)) != len(index) or loops[-1] != lanes.axis:
            return 0
        found = max(found, lanes.width)
    return found


def loop_around(value: SSAValue, reader: Operation) -> Operation | None:
    """Return the outermost loop around ``reader`` in which ``value`` is invariant.

    None where there is no such loop, or the loops have too few iterations.
    """
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    found, times, at = None, 1, reader
    while at.parent is not home:
        above = at.parent_op()
        if above is None:
            return None
        at = above
        if isinstance(at, scf.ForOp | scf.WhileOp):
            found, times = at, times * _iterations(at)
    return found if times >= MIN_ITERATIONS else None


def _iterations(loop: scf.ForOp | scf.WhileOp) -> int:
    """Return the iterations of a loop; `MIN_ITERATIONS` where they are known at run time only."""
    if isinstance(loop, scf.WhileOp):
        return MIN_ITERATIONS
    low, high, step = (constant_of(v) for v in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or not step or step < 0:
        return MIN_ITERATIONS
    return max(-(-(high - low) // step), 0)


def _copied(
    value: SSAValue, loop: Operation, function: func.FuncOp, shared: Shared, lanes: int
) -> SSAValue:
    """Return a copy of ``value`` made right before ``loop``."""
    kind = value.type
    assert isinstance(kind, TensorType)
    name = f"{function.sym_name.data.replace('.', '_')}_reread"
    copying, new = shared.add(_copying(value, kind, lanes, loop), name)
    if new:
        block = function.parent_block()
        assert block is not None
        block.insert_op_before(copying, function)
        explain_choice(copying, lambda: _why(value))
    empty = tensor.EmptyOp([], kind)
    launch = kernel.LaunchOp(copying.sym_name.data, [value], [empty.tensor])
    for op in (empty, launch):
        op.location = loop.location
    assert loop.parent is not None
    loop.parent.insert_ops_before([empty, launch], loop)
    (result,) = launch.results_
    result.name_hint = f"{value.name_hint}_copy" if value.name_hint else "copy"
    return result


def _copying(
    value: SSAValue, kind: TensorType[Attribute], lanes: int, loop: Operation
) -> kernel.FuncOp:
    """Return a kernel that copies a tensor, in vectors along its last axis."""
    rank, sizes = len(kind.get_shape()), kind.get_shape()
    block = Block(arg_types=[kind, kind])
    given, created = block.args
    given.name_hint, created.name_hint = value.name_hint, "copy"
    body = Block(arg_types=[element(given), element(given)])
    body.args[0].name_hint = value.name_hint
    body.add_op(linalg.YieldOp(body.args[0]))
    maps = array_of_maps(rank, [identity(rank), identity(rank)])
    kinds = [IteratorTypeAttr.parallel()] * rank
    copy = linalg.GenericOp([given], [created], Region(body), maps, kinds, [kind])
    block.add_ops([copy, kernel.ReturnOp([copy.results[0]])])
    outer = max(rank - 1, 1)
    steps = [1] * outer if rank > 1 else [lanes * INTERLEAVED_VECTORS]
    inner, threads = Inner(steps, [Lanes(rank - 1, lanes, INTERLEAVED_VECTORS)]), ()
    if prod(sizes) >= 2 * ELEMENTS_PER_THREAD:
        each = sizes[-1] if rank > 1 else 1
        steps = steps if rank > 1 else parallel_steps(steps, 1, 0)
        threads = in_threads(steps, -(-ELEMENTS_PER_THREAD // max(each, 1)))
    attributes: dict[str, Attribute] = {"kernel.shared": choices.spelled(outer)}
    function = kernel.FuncOp(
        "reread", FunctionType.from_lists([kind, kind], [kind]), Region(block), attributes
    )
    write_schedule(function, nest([copy], inner, threads))
    choose_tails(function)
    locate(function, loop.location)
    return function


def _why(value: SSAValue) -> str:
    """Return the explanation of a copy."""
    name = f"%{value.name_hint}" if value.name_hint else "an argument"
    return (
        f"{name} ({spell_bytes(tensor_bytes(value))}) is read in each iteration of a loop: a copy "
        "begins with a line of the caches, where an argument may begin anywhere"
    )
