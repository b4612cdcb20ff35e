"""Put equal sequences of ops, such as the layers of a model, into a function that is lowered once.

Before:  func.func @main(%x, %v, %w) {
           %a = nd.dot_general %x, %v   %b = nd.exp %a
           %c = nd.dot_general %b, %w   %d = nd.exp %c   func.return %d }
After:   func.func private @main.layer(%x, %v) attributes {nd.layer_of = "main"} {
           %a = nd.dot_general %x, %v   %b = nd.exp %a   func.return %b }
         func.func @main(%x, %v, %w) {
           %b = nd.call @main.layer(%x, %v)   %d = nd.call @main.layer(%b, %w)   func.return %d }

Afterwards the passes up to `outline-kernels` see one of the equal sequences. `inline-layers` then
inlines the calls: by that time each is a few launches. A sequence begins and ends where no later
pass would merge ops, so that kernels are those of the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.dialects.nd.calls import CallOp
from stepwell.dialects.types import UNKNOWN, fuse_locations
from stepwell.transforms.graph.outline_layers.boundaries import Boundaries
from stepwell.transforms.graph.outline_layers.instances import Instance
from stepwell.transforms.graph.outline_layers.sequence import Sequences
from stepwell.transforms.passes import Pass, remark

LAYER_OF = "nd.layer_of"
"""The attribute of an outlined function: the name of the function that calls it."""
MIN_SAVED = 64
"""The number of ops from which it pays not to lower them again. From here to kernels an op takes
0.5 ms, finding and outlining layers 10 ms (BERT, measured on a Zen 4)."""


@dataclass(frozen=True)
class OutlineLayers(Pass):
    """Put equal sequences of ops into a private function, and call it.

    min_saved : the least number of ops that must be saved

    Before:
        %b = nd.dot_general %x, %v ...  %c = nd.exp %b
        %d = nd.dot_general %c, %w ...  %e = nd.exp %d
    After:
        %c = nd.call @main.layer(%x, %v)
        %e = nd.call @main.layer(%c, %w)
    Afterwards: long equal sequences between which no ops can be merged are calls of one function.
    """

    name = "outline-layers"
    one_block = True
    expects_work = False

    min_saved: int = MIN_SAVED

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline the layers of each function, the largest first."""
        for function in list(op.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                number = 0
                while found := _layers(function.body.block, self.min_saved):
                    _outline(function, found, number)
                    number += 1


def named_after(function: func.FuncOp) -> str:
    """Return the name of a function, of an outlined layer that of its caller."""
    caller = function.attributes.get(LAYER_OF)
    return caller.data if isinstance(caller, StringAttr) else function.sym_name.data


def _layers(block: Block, saved: int) -> Sequence[Instance]:
    """Return equal instances of a sequence that saves enough ops, () if there is none."""
    sequences = Sequences.of(block, saved)
    for run in sequences.runs():
        for starts in run.rotations(sequences.ops) if run.saved >= saved else ():
            found = Boundaries(sequences, starts, run.period).equal_instances()
            if (len(found) - 1) * run.period >= saved:
                return found
    return ()


def _outline(function: func.FuncOp, instances: Sequence[Instance], number: int) -> None:
    """Write the function of ``instances`` before ``function``, and call it for each."""
    base = function.sym_name.data
    name = f"{base}.layer_{number}" if number else f"{base}.layer"
    layer = _function(name, instances)
    layer.attributes[LAYER_OF] = StringAttr(base)
    assert function.parent is not None
    function.parent.insert_op_before(layer, function)
    remark(
        layer, f"{len(instances)} equal sequences of {len(instances[0].ops)} ops are lowered once"
    )
    called: dict[SSAValue, SSAValue] = {}
    for instance in instances:
        _call(name, instance, called)
    for op in reversed(list(instances[0].sequences.copied)):
        if op.results[0].first_use is None:
            op.detach()
            op.erase()


def _function(name: str, instances: Sequence[Instance]) -> func.FuncOp:
    first, *others = instances
    inputs = list(first.inputs)
    block = Block(arg_types=[v.type for v in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for old, new in zip(inputs, block.args, strict=True):
        new.name_hint = old.name_hint

    def add(op: Operation) -> Operation:
        for value in op.operands:
            if value not in values and isinstance(value.owner, Operation):
                add(value.owner)
        copy = op.clone(values)
        block.add_op(copy)
        return copy

    for k, op in enumerate(first.ops):
        add(op).location = fuse_locations([op.location, *(o.ops[k].location for o in others)])
    returned = [values[v] for v in first.outputs]
    block.add_op(func.ReturnOp(*returned))
    kind = FunctionType.from_lists([v.type for v in inputs], [v.type for v in returned])
    layer = func.FuncOp(name, kind, Region(block), "private")
    layer.location = fuse_locations(op.location for op in block.ops)
    return layer


def _call(name: str, instance: Instance, called: dict[SSAValue, SSAValue]) -> None:
    """Replace an instance by a call, after all that it reads.

    called : the results of earlier calls, by the values that they replace
    """
    last = instance.ops[-1]
    assert last.parent is not None
    inputs = [called.get(v, v) for v in instance.inputs]
    call = CallOp(name, inputs, [v.type for v in instance.outputs])
    call.location = UNKNOWN
    last.parent.insert_op_before(call, last)
    for old, new in zip(instance.outputs, call.outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
        called[old] = new
    for op in reversed(instance.ops):
        op.detach()
        op.erase()
