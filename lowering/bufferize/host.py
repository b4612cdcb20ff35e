"""Write a host function on buffers: launches, insertions, single elements, and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.analysis.levels import schedule_of
from stepwell.analysis.sizes import Size, SizeWriter
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule
from stepwell.dialects.types import locate, tensor_type
from stepwell.lowering.bufferize.assignment import VIEWS, rows_of
from stepwell.lowering.bufferize.coalescing import Coalescing
from stepwell.lowering.bufferize.constants import Constants
from stepwell.lowering.bufferize.control import CONTROL
from stepwell.lowering.bufferize.dead_code import erase_dead_code
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.parallel_copies import Row, write_copies, write_rows
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.lowering.bufferize.views import Steps, join
from stepwell.lowering.bufferize.writer import HostWriter, Rule
from stepwell.transforms.passes import fail

Variant = Callable[[kernel.LaunchOp, Sequence[Attribute], Sequence[Steps]], str]
"""Returns the kernel variant for argument types, and the views of results in one destination."""


def host_on_buffers(
    function: func.FuncOp,
    summary: Callable[[kernel.LaunchOp], KernelSummary],
    variant: Variant,
    constants: Constants,
) -> list[func.FuncOp]:
    """Return ``function`` on buffers, and the function of its results' sizes if any is `?`."""
    analysis = Coalescing(function, summary)

    def launch(writer: HostWriter, op: kernel.LaunchOp) -> None:
        _launch(writer, op, variant)

    writer = HostWriter(function, analysis, constants, {**_RULES, kernel.LaunchOp: launch})
    types = function.function_type
    inputs = _attributes(function.arg_attrs, len(types.inputs))
    outputs = _attributes(function.res_attrs, len(types.outputs))
    roles = [_argument(writer, n, given) for n, given in enumerate(inputs)]
    roles += [_output(writer, n, given) for n, given in enumerate(outputs)]
    _begin_updated(writer, function)
    block = writer.write()
    erase_dead_code(block)
    done = func.FuncOp(
        function.sym_name.data,
        FunctionType.from_lists(list(block.arg_types), []),
        Region(block),
        function.sym_visibility,
        arg_attrs=ArrayAttr(roles),
    )
    done.attributes, done.location = dict(function.attributes), function.location
    wanted = [
        n
        for r in analysis.returned
        for n, known in zip(r.output.sizes, r.output.type.get_shape(), strict=True)
        if known == DYNAMIC_INDEX
    ]
    return [done, _shapes(writer, wanted)] if wanted else [done]


# -- the function


def _attributes(
    given: ArrayAttr[DictionaryAttr] | None, count: int
) -> Sequence[Mapping[str, Attribute]]:
    return [{}] * count if given is None else [each.data for each in given]


def _argument(writer: HostWriter, number: int, given: Mapping[str, Attribute]) -> DictionaryAttr:
    argument = writer.function.body.block.args[number]
    if not isinstance(argument.type, TensorType):
        fail(writer.function, "bufferize wants tensors as arguments and results of a function")
    storage, _ = writer.places.of(argument)
    now = writer.block.insert_arg(storage.type, number)
    now.name_hint, now.location = argument.name_hint, argument.location
    if storage.kind != "updated":
        writer.roots[storage] = now
    role = "constant" if storage.kind == "constant" else "input"
    return DictionaryAttr({**given, "kernel.role": StringAttr(role)})


def _output(writer: HostWriter, number: int, given: Mapping[str, Attribute]) -> DictionaryAttr:
    last = writer.function.body.block.last_op
    assert last is not None
    output = writer.analysis.returned[number].output
    now = writer.block.insert_arg(output.type, len(writer.block.args))
    told = given.get("nd.name")
    name = told.data if isinstance(told, StringAttr) else None
    now.name_hint = name if name and SSAValue.is_valid_name(name) else output.name
    now.name_hint = now.name_hint or last.operands[number].name_hint
    writer.roots[output] = now
    kept = {key: each for key, each in given.items() if key != "nd.name" or name != now.name_hint}
    return DictionaryAttr({**kept, "kernel.role": StringAttr("output")})


def _begin_updated(writer: HostWriter, function: func.FuncOp) -> None:
    """Copy updated arguments into their results: a no-op if a caller passes one array for both."""
    for argument, result in updated_arguments(function).items():
        into = writer.roots[writer.analysis.updated[result]]
        writer.put(memref.CopyOp(writer.block.args[argument], into))


def _shapes(writer: HostWriter, wanted: Sequence[Size]) -> func.FuncOp:
    """Return the function that computes the ``wanted`` sizes from every `?` of the arguments."""
    function, index = writer.function, IndexType()
    block = Block(arg_types=[index] * len(writer.sizes.dims))
    write = SizeWriter(writer.sizes, lambda n: block.args[n], block.add_op)
    for number, argument in enumerate(block.args):
        argument.name_hint = f"d{number}"
    for size in wanted:
        writer.check_known(size)
    block.add_op(func.ReturnOp(*(write(n) for n in wanted)))
    type = FunctionType.from_lists([index] * len(block.args), [index] * len(wanted))
    name = f"{function.sym_name.data}.shapes"
    for other in function.parent.ops if function.parent is not None else ():
        if isinstance(other, func.FuncOp) and other.sym_name.data == name:
            message = f"@{name} is what tells the sizes of the results of @{name[:-7]}"
            fail(other, message, "give this function another name")
    told = func.FuncOp(name, type, Region(block))
    locate(told, function.location)
    return told


# -- its ops


def _launch(writer: HostWriter, op: kernel.LaunchOp, variant: Variant) -> None:
    """Write a launch, with the results' buffers as destinations."""
    summary = writer.analysis.summary(op)
    write_copies(writer, op, "update")
    inputs = [_operand(writer, v) for v in op.inputs]
    stack, rows = _stacked(writer, op, summary)
    results = op.results if stack is None else stack.results
    outputs = [writer.cast_for_kernel(writer.place(r), tensor_type(r)) for r in results]
    outputs += [writer.memory(s) for s in writer.analysis.extras[op]]
    name = variant(op, [v.type for v in (*inputs, *outputs)], rows)
    new = kernel.LaunchOp(name, inputs, outputs)
    new.attributes = dict(op.attributes)
    writer.put(new)


def _stacked(
    writer: HostWriter, op: kernel.LaunchOp, summary: KernelSummary
) -> tuple[kernel.StackOp | None, Sequence[Steps]]:
    """Return the stack whose parts are all results of a launch, and the row of each, if any.

    The launch then gets the stack as its one destination, and the kernel variant takes the rows.
    """
    use = op.results[0].first_use if len(op.results) > 1 else None
    stack = use.operation if use is not None else None
    levels = schedule_of(summary.function) or Schedule()
    past = any(level.action("nontemporal") for level in levels.all_levels())
    if not isinstance(stack, kernel.StackOp) or past or any(summary.reads_destination):
        return None, ()
    if tuple(stack.parts) != tuple(op.results) or stack.length is not None:
        return None, ()  # a kernel does not know where rows of a length known at run time begin
    storage, steps = writer.places.of(stack.result)
    rows = [(row, *seen) for row, seen in rows_of(writer.sizes, stack.parts)]
    places = [(storage, join(steps, row)) for row in rows]
    inputs = [writer.places.of(v)[0] for v in op.inputs if isinstance(v.type, TensorType)]
    if storage in inputs or places != [writer.places.of(part) for part in op.results]:
        return None, ()
    return stack, rows


def _operand(writer: HostWriter, value: SSAValue) -> SSAValue:
    if not isinstance(value.type, TensorType):
        return writer.values[value]
    return writer.cast_for_kernel(writer.place(value), tensor_type(value))


def _insert_slice(writer: HostWriter, op: tensor.InsertSliceOp) -> None:
    """Write the remaining copies of an insertion: none if both tensors are in place."""
    write_copies(writer, op, "update")
    write_copies(writer, op, "insert")


def _insert(writer: HostWriter, op: tensor.InsertOp) -> None:
    write_copies(writer, op, "update")
    indices = [writer.values[v] for v in op.indices]
    writer.put(memref.StoreOp.get(writer.values[op.scalar], writer.place(op.result), indices))


def _extract(writer: HostWriter, op: tensor.ExtractOp) -> None:
    indices = [writer.values[v] for v in op.indices]
    new = writer.put(memref.LoadOp.get(writer.place(op.tensor), indices))
    new.results[0].name_hint = op.result.name_hint
    writer.values[op.result] = new.results[0]


def _dim(writer: HostWriter, op: tensor.DimOp) -> None:
    writer.values[op.result] = writer.index(writer.sizes.of(op.result))


def _constant(writer: HostWriter, op: arith.ConstantOp) -> None:
    """Clone a scalar constant; a tensor is a global, read where it is used."""
    if not isinstance(op.result.type, TensorType):
        writer.scalar(op)


def _from_elements(writer: HostWriter, op: tensor.FromElementsOp | tensor.SplatOp) -> None:
    """Store scalars one by one."""
    places = list(product(*map(range, tensor_type(op.result).get_shape())))
    if len(places) != len(op.operands):
        fail(op, "bufferize takes tensor.splat of one element only on the host")
    into = writer.place(op.result)
    for element, place in zip(op.operands, places, strict=True):
        at = [writer.index(Size.of(n)) for n in place]
        writer.put(memref.StoreOp.get(writer.values[element], into, at))


def _callback(writer: HostWriter, op: kernel.CallbackOp) -> None:
    """Write a callback on the tensors' buffers, of any layout."""
    inputs = [writer.place(v) for v in op.inputs]
    writer.put(kernel.CallbackOp(op.function.data, inputs, [writer.place(r) for r in op.results]))


def _return(writer: HostWriter, op: func.ReturnOp) -> None:
    """Copy the results that are not in their outputs yet, and return nothing."""
    rows = [
        Row(value, place, (returned.output, ()), returned.why)
        for value, returned in zip(op.operands, writer.analysis.returned, strict=True)
        if (place := writer.places.of(value)) != (returned.output, ())
        and value not in writer.analysis.undefined
    ]
    write_rows(writer, rows, "arguments take each other's memory")
    writer.put(func.ReturnOp())


def _view(writer: HostWriter, op: Operation) -> None:
    """Write the copy that a view needs, if any."""
    write_copies(writer, op, "slice")


_RULES: Mapping[type[Operation], Rule] = {
    **CONTROL,
    **dict.fromkeys(VIEWS, _view),
    tensor.EmptyOp: lambda writer, op: None,
    tensor.InsertSliceOp: _insert_slice,
    kernel.StackOp: lambda writer, op: write_copies(writer, op, "insert"),
    tensor.InsertOp: _insert,
    tensor.ExtractOp: _extract,
    tensor.DimOp: _dim,
    tensor.FromElementsOp: _from_elements,
    tensor.SplatOp: _from_elements,
    arith.ConstantOp: _constant,
    kernel.CallbackOp: _callback,
    func.ReturnOp: _return,
}
