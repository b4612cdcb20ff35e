"""Expand math functions on f32 and f64, and integer divisions by constants, to plain arithmetic.

Before:  %y = math.exp %x : vector<16xf32>
After:   %y = func.call @exp_f32x16(%x) : (vector<16xf32>) -> vector<16xf32>
         func.func private @exp_f32x16(%x: vector<16xf32>) -> vector<16xf32> { arith, math.fma }

Afterwards every function with an `expansion` rule, on f32 and vectors of it, or an `expansion_f64`
rule, on f64, is a call of a generated function; the others are left to the C library. The scalar
function uses the same formulas, so an element does not depend on whether it was computed in a
vector or in the tail of a loop. Integer divisions and remainders of vectors by positive constants
are also calls of such functions, made of products and shifts; so are powers by small constants (3,
1.5, -2). Results are within 2 units in the last place of the exact ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, math
from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr, VectorType, f64
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.rewriter import Rewriter

from stepwell.dialects.types import fuse_locations
from stepwell.dialects.upstream.missing import RemFOp
from stepwell.transforms.loops.expand_math import (
    division,
    double,
    double_curves,
    double_powers,
    exponential,
    hyperbolic,
    known_powers,
    logarithm,
    other,
    remainder,
    trigonometric,
)
from stepwell.transforms.loops.expand_math.lanes import (
    DOUBLE,
    SINGLE,
    Body,
    Format,
    Lanes,
    expansion,
    expansion_f64,
)
from stepwell.transforms.passes import Numerics, Pass

SINGLES = (exponential, logarithm, hyperbolic, trigonometric, other, remainder)
RULES = (*SINGLES, double, double_curves, double_powers)
"""The modules that register rules in the tables."""
TABLED = 512
"""The vector length in bits from which a register holds a table of sixteen f32."""
TABLES = ((SINGLE, expansion), (DOUBLE, expansion_f64))


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Expand math functions on floats to polynomials, and divisions by constants to products.

    vector-bits : the machine's vector length; vectors of 16 f32 look up powers of two
    """

    name = "expand-math"
    one_block = True
    expects_work = False
    numerics: ClassVar[Numerics] = "approximating"

    vector_bits: int = 512

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace every function of the module that has a rule."""
        library = _Library(op, self.vector_bits >= TABLED)
        for each in list(_expandable(op)):
            library.replace(each)
        library.locate()


IN_LIBRARY: tuple[type[Operation], ...] = (
    math.ExpOp,
    math.Exp2Op,
    math.ExpM1Op,
    math.LogOp,
    math.Log2Op,
    math.Log10Op,
    math.Log1pOp,
    math.PowFOp,
)
"""Functions of a scalar f64 that C libraries compute by tables, in half the polynomial's time."""


def _expandable(module: ModuleOp) -> Iterator[Operation]:
    for function in module.ops:
        scalar = "kernel.scalar" in function.attributes
        for op in function.walk():
            in_library = scalar and isinstance(op, IN_LIBRARY) and op.results[0].type == f64
            if _by_constant(op) is not None or (not in_library and _is_replaced(op)):
                yield op


def _by_constant(op: Operation) -> tuple[str, Callable[..., Lanes]] | None:
    """Return the name and the formula of a binary function with a constant operand."""
    if isinstance(op, math.PowFOp):
        return known_powers.formula(op) if _formula(op) is not None else None
    return division.formula(op)


def _is_replaced(op: Operation) -> bool:
    function = op.name.startswith("math.") or isinstance(op, RemFOp)
    return bool(function and op.results) and _formula(op) is not None


def _formula(op: Operation) -> Callable[..., Lanes] | None:
    """Return the formula of ``op``, None where it is not expanded."""
    kind = op.results[0].type
    if _width(kind) < 0:
        return None
    element = _element(kind)
    for format, table in TABLES:
        if element == format.float:
            return table.get(type(op))
    return None


def _width(type: Attribute) -> int:
    """Return the lanes of a vector, 0 for a scalar, -1 for other types."""
    if isinstance(type, VectorType):
        lanes = type.get_shape()
        return lanes[0] if len(lanes) == 1 else -1
    return 0


def _element(type: Attribute) -> Attribute:
    """Return the type of one lane."""
    return type.element_type if isinstance(type, VectorType) else type


def _format(type: Attribute) -> Format:
    """Return the float format of a type; for integers any format."""
    element = _element(type)
    return next((format for format, _ in TABLES if element == format.float), SINGLE)


@dataclass
class _Library:
    """The functions generated so far."""

    module: ModuleOp
    tables: bool
    """Whether the machine can look up numbers in a register."""
    written: dict[tuple[str, Attribute], func.FuncOp] = field(
        default_factory=dict[tuple[str, Attribute], func.FuncOp]
    )

    users: dict[func.FuncOp, list[LocationAttr]] = field(
        default_factory=dict[func.FuncOp, list[LocationAttr]]
    )
    """The locations of the calls of each function."""

    def __post_init__(self) -> None:
        names = (op.properties.get("sym_name") for op in self.module.ops)
        self.taken = {name.data for name in names if isinstance(name, StringAttr)}

    def replace(self, op: Operation) -> None:
        """Replace ``op`` by a call of its function."""
        name, formula, operands = op.name.partition(".")[2], _formula(op), op.operands
        if (found := _by_constant(op)) is not None:
            (name, formula), operands = found, operands[:1]
        assert formula is not None
        callee = self._function(name, formula, op.results[0].type, len(operands), op.location)
        call = func.CallOp(callee.sym_name.data, operands, [op.results[0].type])
        call.location = op.location
        call.results[0].name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, call)

    def _function(
        self,
        name: str,
        formula: Callable[..., Lanes],
        type: Attribute,
        operands: int,
        location: LocationAttr,
    ) -> func.FuncOp:
        """Return the function that computes ``formula`` on values of ``type``."""
        key = (name, type)
        function = self.written.get(key)
        if function is None:
            function = self.written[key] = self._write(name, formula, type, operands, location)
        self.users.setdefault(function, []).append(location)
        return function

    def locate(self) -> None:
        """Give each function the fused location of its calls."""
        for function, locations in self.users.items():
            function.location = fuse_locations(locations)

    def _write(
        self,
        name: str,
        formula: Callable[..., Lanes],
        type: Attribute,
        operands: int,
        location: LocationAttr,
    ) -> func.FuncOp:
        width, format = _width(type), _format(type)
        block = Block(arg_types=[type] * operands)
        for arg, hint in zip(block.args, "xy", strict=False):
            arg.name_hint = hint

        def call(name: str, formula: Callable[..., Lanes], given: Sequence[Lanes]) -> Lanes:
            callee = self._function(name, formula, type, len(given), location)
            callee.attributes["kernel.instruction"] = StringAttr(name)
            op = func.CallOp(callee.sym_name.data, [x.value for x in given], [type])
            return Lanes(body.insert(op), body)

        body = Body(block, width, format, location, call, self.tables)
        result = formula(*(Lanes(arg, body) for arg in block.args))
        end = func.ReturnOp(result.value)
        end.location = location
        block.add_op(end)
        name += f"_{_element(type)}" if width == 0 else f"_{_element(type)}x{width}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        function = func.FuncOp(name, ([type] * operands, [type]), Region(block), "private")
        function.location = location
        self.module.body.block.add_op(function)
        return function
