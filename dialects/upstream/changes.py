"""The list of all changes that Stepwell makes to xDSL's own classes, with reasons and end dates.

`test_upstream_changes.py` compares the list with the actual differences in xDSL's classes after
Stepwell is imported, and runs `still` of each change with xDSL alone: it fails when the change is
no longer needed. `make docs` writes the list into docs/upstream.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """One change; it preserves the meaning of every program that xDSL alone accepts."""

    file: str
    """The file in this folder that makes the change."""
    members: tuple[str, ...]
    """The members of classes and the functions that it replaces or adds; `*` matches any."""
    what: str
    why: str
    """The defect of xDSL 0.74.0, or the measured cost."""
    still: str
    """Python code that fails with xDSL alone once the defect or the cost is gone."""


_QUICK = (
    "Note 018: 500 operations were translated in 2.57 s, with all of xdsl_patches.py in 2.05 s; "
    "each does by a shorter way what xDSL does, and leaves mistakes to it."
)

CHANGES = (
    Change(
        "xdsl_patches",
        ("class of IR classes",),
        "Classes of the IR have the class Plain, whose isinstance is that of type.",
        f"isinstance of an ABCMeta is a call of Python. {_QUICK}",
        "assert calls(lambda: isinstance(op, Attribute)) >= 1",
    ),
    Change(
        "xdsl_patches",
        tuple(
            f"xdsl.{place}.__{member}__"
            for place in ("ir.core.SSAValue", "ir.core._IRNode", "irdl.operations.IRDLOperation")
            for member in ("eq", "hash")
        ),
        "Values, ops, blocks and regions are hashed and compared by object's own methods.",
        "A look-up by a value takes 306 ns, with this 33. Sets of two values were iterated in the "
        "order of insertion, now by addresses as sets of three and more always were: xDSL's "
        "linalg-to-csl prints what it makes of a set, and xdsl-opt alone prints linalg.min of "
        "three buffers in two orders (7 and 5 of 12 runs); its own test has two buffers.",
        "from xdsl.transforms import linalg_to_csl\n"
        "assert 'set(op.inputs)' in inspect.getsource(linalg_to_csl.ConvertLinalgMinPass)\n"
        "assert calls(lambda: hash(lanes)) >= 1",
    ),
    Change(
        "xdsl_patches",
        (
            "xdsl.ir.core.Operation.__init__",
            "xdsl.ir.core.Block._attach_op",
            "xdsl.ir.core.IRWithName.extract_valid_name",
            "xdsl.ir.core._unknown_loc",
            "xdsl.irdl.operations.IRDLOperation.__init__",
            "xdsl.irdl.operations.IRDLOperation.__post_init__",
        ),
        "Ops are made without asking for each operand, successor and default again.",
        f"62 calls of Python for an arith.addi, with this 45. {_QUICK}",
        "assert calls(lambda: arith.AddiOp(one, one)) > 55",
    ),
    Change(
        "xdsl_patches",
        (
            *(f"xdsl.ir.core.Operation.{name}" for name in ("next_op", "prev_op")),
            *(f"xdsl.ir.core.{value}.owner" for value in ("OpResult", "BlockArgument")),
            *(f"xdsl.ir.core.Block.{name}" for name in ("args", "first_op", "last_op")),
            *(f"xdsl.ir.core.Use.{name}" for name in ("operation", "index")),
            "xdsl.ir.core.SSAValue.type",
            "xdsl.ir.core.IRWithName.name_hint",
        ),
        "Properties that return one member do so without a call of Python.",
        "500 operations read 700,000 of them, 230,000 of them types: 0.03 s.",
        "assert calls(lambda: op.next_op) >= 1",
    ),
    Change(
        "xdsl_patches",
        ("xdsl.ir.core.Operation.get_trait", "xdsl.ir.core.Operation.has_trait"),
        "The trait of a class that answers a question is looked up in a table.",
        "500 operations ask 20,000 times, over all traits of a class each time.",
        "assert calls(lambda: arith.AddiOp.get_trait(type(None))) > 2",
    ),
    Change(
        "xdsl_patches",
        ("xdsl.ir.core.SSAValue.replace_all_uses_with",),
        "All uses of a value are moved to another one by one loop.",
        "20 calls of Python for each use, with this one for all.",
        "two = arith.ConstantOp(IntegerAttr(1, i32)).result\n"
        "def moved():\n"
        "    one.result.replace_all_uses_with(two)\n"
        "    two.replace_all_uses_with(one.result)\n"
        "assert calls(moved) > 20",
    ),
    Change(
        "xdsl_patches",
        (
            "xdsl.irdl.operations.BaseAccessor.__get__",
            "xdsl.irdl.operations.BaseAttrAccessor.__get__",
            "xdsl.irdl.operations.BeforeVariadicSingleAccessor.__get__",
            "xdsl.ir.core.SSAValues.__getitem__",
        ),
        "Operands, results and regions are read by name with one call or two.",
        f"7 calls of Python for op.lhs, with this 2. {_QUICK}",
        "assert calls(lambda: op.lhs) > 4",
    ),
    Change(
        "xdsl_attribute_patches",
        (
            "xdsl.ir.core.Attribute.__post_init__",
            "xdsl.ir.core.ParametrizedAttribute.__init__",
            "xdsl.ir.core.ParametrizedAttribute._verify",
            "xdsl.dialects.builtin.MemRefType.__init__",
            "xdsl.dialects.builtin.TensorType.__init__",
        ),
        "Parameters of an attribute are verified by their classes where that "
        "is all there is to it.",
        f"131 calls of Python for a memref type, with this 8. {_QUICK}",
        "assert calls(lambda: MemRefType(f32, [2, 3])) > 60",
    ),
    Change(
        "xdsl_attribute_patches",
        (
            "xdsl.dialects.builtin.DenseArrayBase.from_list",
            "xdsl.dialects.builtin.MemRefType.get_shape",
            "xdsl.dialects.builtin.TensorType.get_shape",
        ),
        "Sizes and lists of integers are made once for the same numbers.",
        "A step of training of ResNet-18 asks for the sizes of types 230,000 times: a tenth of "
        "its translation is spared.",
        "assert calls(lambda: TensorType(f32, [2, 3]).get_shape()) > 20",
    ),
    Change(
        "xdsl_attribute_patches",
        tuple(
            f"xdsl.{place}.__hash__"
            for place in (
                *(
                    f"dialects.builtin.{name}"
                    for name in (
                        *("AffineMapAttr", "ArrayAttr", "DenseArrayBase"),
                        *("DenseIntOrFPElementsAttr", "FileLineColLoc", "FloatAttr"),
                        *("IntegerAttr", "IntegerType", "MemRefType", "TensorType", "VectorType"),
                    )
                ),
                *("dialects.arith.FastMathFlagsAttr", "dialects.linalg.attrs.IteratorTypeAttr"),
                "ir.affine.affine_map.AffineMap",
            )
        ),
        "The hash of an immutable attribute that has attributes inside is computed once.",
        "Each look-up by such an attribute hashes all that is inside again. 500 operations were "
        "translated in 1.46 s of the processor's time, not 1.50 (note 107).",
        "assert calls(lambda: hash(TensorType(f32, [2, 3]))) > 2",
    ),
    Change(
        "xdsl_patches",
        ("xdsl.dialects.linalg.ops.FillOp.get_hidden_region",),
        "The body of a fill is written without a builder.",
        f"Over 200 calls of Python for the region of a linalg.fill, with this 60. {_QUICK}",
        "assert calls(lambda: linalg.FillOp.get_hidden_region([one.result], [one.result])) > 100",
    ),
    Change(
        "xdsl_patches",
        ("xdsl.ir.core.BlockOps.__iter__", "xdsl.ir.core.BlockOps.__len__"),
        "The ops of a block are counted and listed by one generator.",
        f"Four calls of Python for each op in list(block.ops), with this one. {_QUICK}",
        "assert calls(lambda: list(block.ops)) > 3 * 100",
    ),
    Change(
        "assembly_formats",
        ("xdsl.irdl.declarative_assembly_format.FormatProgram.from_str",),
        "The assembly format of an op is parsed when an op is first parsed or printed by it.",
        "Importing xDSL's dialects parses 146 formats: 0.03 s of the first compilation.",
        "from xdsl.irdl.declarative_assembly_format import FormatProgram\n"
        "definition = arith.AddiOp.get_irdl_definition()\n"
        "made = lambda: FormatProgram.from_str(definition.assembly_format, definition)\n"
        "assert calls(made) > 50",
    ),
    Change(
        "walking",
        tuple(f"xdsl.ir.core.{name}.walk" for name in ("Operation", "Region", "Block")),
        "Ops are walked over by one generator with a list of what is left.",
        "Generators hand each op up through every level: a walk costs ops times depth.",
        "assert calls(lambda: list(deep.walk())) > 20 * 50",
    ),
    Change(
        "unchanged",
        ("xdsl.traits.SymbolTable.lookup_symbol", "xdsl.ir.core.RegionBlocks.__len__"),
        "While a module is verified by Stepwell, symbols are looked up in a "
        "table and the blocks of "
        "a region are counted once. At any other time xDSL's own methods run.",
        "Each call walks over all functions, each terminator over all blocks: "
        "2,000 calls took 22 s, "
        "2,000 blocks 25 s.",
        "assert calls(lambda: len(region.blocks)) > 200",
    ),
    Change(
        "functions",
        tuple(
            f"xdsl.dialects.{module}.{name}_func_op_like"
            for module in ("utils", "utils.format", "func", "*")
            for name in ("parse", "print")
        ),
        "Declarations of functions keep the attributes of arguments and "
        "results, where Stepwell reads "
        "and prints them.",
        "Those of arguments without names are read and dropped, and none is printed.",
        'assert "a.b" not in read("func.func private @f(f32 {a.b})")',
    ),
    Change(
        "literals",
        ("xdsl.parser.attribute_parser.AttrParser._TensorLiteralElement.to_type",),
        "Hex digits in a dense literal of floats are their bits, as in MLIR.",
        "0x7F800000 is read as the number 2139095040, not as infinity.",
        'assert "dense<2.13" in read('
        "'\"test.op\"() {a = dense<0x7F800000> : tensor<2xf32>} : () -> ()')",
    ),
    Change(
        "syntax",
        (
            "xdsl.dialects.scf.ParallelOp.parse",
            "xdsl.dialects.memref.GlobalOp.parse",
            "xdsl.dialects.memref.CopyOp.parse",
            "xdsl.dialects.memref.CastOp.parse",
        ),
        "MLIR's custom syntax of these ops is read; Stepwell's own printer prints it.",
        "xDSL reads and prints them in generic form only.",
        "assert Operation.print is memref.CopyOp.print is memref.CastOp.print",
    ),
    Change(
        "syntax",
        ("xdsl.dialects.linalg.ops.GenericOp.parse",),
        "linalg.generic of several results is read as it is printed, and as MLIR prints it.",
        "What xDSL prints as `-> (t, t)` it cannot read again; a missing map is a KeyError.",
        "assert 'Delimiter.NONE' in inspect.getsource(linalg.GenericOp.parse)",
    ),
    Change(
        "widened",
        tuple(
            f"xdsl.dialects.arith.{name}"
            for name in (
                "CmpiOp.__init__",
                "CmpfOp.__init__",
                "SelectOp.parse",
                "SelectOp.print",
                "CmpiOp: results",
                "CmpfOp: results",
                "SelectOp: operands",
                *(
                    f"{op}Op: {kind}"
                    for op in ("TruncI", "ExtSI", "ExtUI", "IndexCast")
                    for kind in ("operands", "results")
                ),
                *(
                    f"{op}Op: {kind}"
                    for op in ("FPToSI", "FPToUI", "SIToFP", "UIToFP")
                    for kind in ("operands", "results")
                ),
                *(
                    f"{op}Op.verify_"
                    for op in ("Cmpi", "Cmpf", "Select", "TruncI", "ExtSI", "ExtUI", "IndexCast")
                ),
                *(f"{op}Op.verify_" for op in ("FPToSI", "FPToUI", "SIToFP", "UIToFP")),
            )
        ),
        "Comparisons, select and casts work lane by lane on vectors and tensors, as in MLIR.",
        "xDSL verifies, and makes, those of scalars only.",
        "assert refused(lambda: arith.ExtSIOp.create(operands=[lanes], "
        "result_types=[VectorType(i64, [4])]).verify())",
    ),
)
