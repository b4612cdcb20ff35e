"""kernel.func, kernel.return and kernel.launch."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    Pure,
    ReturnLike,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.kernel.sharing import (
    check_in_place,
    check_names,
    check_parts,
    check_shared,
    check_shared_loops,
)
from stepwell.dialects.upstream.effects import EndsCall


@irdl_op_definition
class FuncOp(IRDLOperation):
    """One unit of work: arguments for inputs, then for destinations, and a body.

    On tensors a kernel returns one tensor per destination (destination-passing style, as in
    linalg); on buffers it returns nothing and writes into its last arguments.

    * (C1) The entry block's arguments have the function type's input types.
    * (C2) The body ends in kernel.return, whose operands have the function type's result types.
    * (C3) The results correspond to the last arguments, in number and types.
    * (C4) kernel.shared is a number of 0 or more.
    * (C5) The first kernel.shared loops of every linalg.generic are parallel.
    * (C6) A value passed from one linalg.generic to another is read at the same indices of the
      shared loops at which it is written.
    * (C7) An attribute with a name kernel.* is one of those defined for kernels.
    * (C8) kernel.in_place is set by bufferize: a kernel on tensors has none; on buffers it is pairs
      of numbers of arguments that are buffers.
    * (C9) kernel.within of a linalg.generic is arrays of three numbers: a loop, and the inputs, of
      type index, with the bounds of the range outside of which the op changes nothing.
    * (C10) kernel.schedule is a #kernel.schedule. `schedule` and `linalg-to-loops` check whether
      its levels fit the kernel.
    * (C11) kernel.versions is a list of #kernel.version, each with a range of a loop's length and
      levels. The first whose range matches runs, otherwise the kernel's own levels.
      kernel.first_fits, which has no value, states that all ranges match in every launch.
    """

    name = "kernel.func"
    body = region_def("single_block")
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        function_type: FunctionType,
        body: Region,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        properties = {"sym_name": StringAttr(name), "function_type": function_type}
        super().__init__(properties=properties, regions=[body], attributes=attributes or {})

    def set_name(self, name: str) -> None:
        """Rename the kernel to ``name``."""
        self.properties["sym_name"] = StringAttr(name)

    def verify_(self) -> None:
        """Check C1 to C12."""
        inputs, outputs = self.function_type.inputs.data, self.function_type.outputs.data
        if tuple(inputs) != tuple(self.body.block.arg_types):  # kernel_func_c1
            raise VerifyException("arguments must have the types that the kernel's type says")
        last = self.body.block.last_op
        if not isinstance(last, ReturnOp):  # kernel_func_c2
            raise VerifyException("kernel body must end in kernel.return")
        if (got := tuple(last.values.types)) != tuple(outputs):  # kernel_func_c2
            raise VerifyException(
                f"kernel returns ({', '.join(map(str, got))}), "
                f"but its type says ({', '.join(map(str, outputs))})"
            )
        if outputs and tuple(inputs[-len(outputs) :]) != tuple(outputs):  # kernel_func_c3
            raise VerifyException("each result must have a destination among the last arguments")
        check_names(self.attributes)
        check_in_place(self.attributes, inputs, len(outputs))
        check_parts(self.body.block)
        if shared := check_shared(self.attributes, self.body.block):
            check_shared_loops(self.body.block, shared)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        """Parse ``@name(%x: T, ...) -> R attributes {...} { ... }``."""
        name, inputs, outputs, region, extra, arg_attrs, res_attrs = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type")
        )
        type = FunctionType.from_lists(list(inputs), list(outputs))
        op = FuncOp(name, type, region, dict(extra.data) if extra else None)
        op.arg_attrs, op.res_attrs = arg_attrs, res_attrs
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            arg_attrs=self.arg_attrs,
            res_attrs=self.res_attrs,
            reserved_attr_names=("sym_name", "function_type", "arg_attrs", "res_attrs"),
        )


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """End a kernel and return its results, one tensor per destination."""

    name = "kernel.return"
    values = var_operand_def(TensorType)
    traits = traits_def(HasParent(FuncOp), IsTerminator(), ReturnLike(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[list(values)])


class LaunchEffects(MemoryEffect):
    """A launch reads its buffers and writes its destinations; on tensors it accesses no memory.

    A launch of a kernel with a check (`kernel.checks`) may end the call as well.
    """

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Return one read for each buffer and one write for each destination buffer."""
        assert isinstance(op, LaunchOp)
        buffers = [v for v in op.operands if isinstance(v.type, MemRefType)]
        written = [v for v in op.outputs if isinstance(v.type, MemRefType)]
        ends = EndsCall.get_effects(op) if "kernel.checks" in op.attributes else set()
        return {
            *(EffectInstance(MemoryEffectKind.READ, v) for v in buffers),
            *(EffectInstance(MemoryEffectKind.WRITE, v) for v in written),
            *ends,
        }


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel: ``ins`` are read, each of ``outs`` is a destination and has one result.

    * (C1) The callee is a kernel.func of the module.
    * (C2) ins and outs have the types of the kernel's arguments.
    * (C3) On tensors there is one result for each of outs, of its type; on buffers there is none.

    The attribute `kernel.checks` means that the kernel may end the call (`kernel.check`).
    """

    name = "kernel.launch"
    callee = prop_def(SymbolRefAttr)
    inputs = var_operand_def()
    outputs = var_operand_def(TensorType.constr() | MemRefType.constr())
    results_ = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(LaunchEffects())
    assembly_format = (
        "$callee (`ins` `(` $inputs^ `:` type($inputs) `)`)? "
        "(`outs` `(` $outputs^ `:` type($outputs) `)`)? attr-dict "
        "(`->` type($results_)^)?"
    )

    def __init__(
        self, callee: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]
    ) -> None:
        results = [v.type for v in outputs if isinstance(v.type, TensorType)]
        super().__init__(
            operands=[list(inputs), list(outputs)],
            result_types=[results],
            properties={"callee": SymbolRefAttr(callee)},
        )

    def verify_(self) -> None:
        """Check C1 to C3; C1 and C2 only inside a module."""
        if isinstance(self.get_toplevel_object(), ModuleOp):
            kernel_of(self)
        want = [v.type for v in self.outputs if isinstance(v.type, TensorType)]
        if want != list(self.results_.types):  # kernel_launch_c3
            raise VerifyException("each tensor among outs must give one result of its type")


def kernel_of(launch: LaunchOp) -> FuncOp:
    """Return the kernel that ``launch`` runs, checking C1 and C2 of kernel.launch."""
    callee = _find(launch.get_toplevel_object(), launch.callee.string_value())
    if callee is None:  # kernel_launch_c1
        raise VerifyException(f"no kernel.func {launch.callee} in the module")
    if tuple(v.type for v in launch.operands) != callee.function_type.inputs.data:
        raise VerifyException(  # kernel_launch_c2
            f"operands do not have the types of the arguments of {launch.callee}"
        )
    return callee


_kernels: WeakKeyDictionary[ModuleOp, dict[str, FuncOp]] = WeakKeyDictionary()


def _find(root: object, name: str) -> FuncOp | None:
    """Return the kernel ``name``, from a table cached for the module."""
    if not isinstance(root, ModuleOp):
        return None
    known = _kernels.get(root, {}).get(name)
    if known is None or known.parent is not root.body.block or known.sym_name.data != name:
        table = {op.sym_name.data: op for op in root.ops if isinstance(op, FuncOp)}
        _kernels[root] = table
        known = table.get(name)
    return known
