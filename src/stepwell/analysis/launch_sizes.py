"""The sizes of a kernel's launches, as trees over the `?` of a call's arguments.

The result is a tree over ``d0, d1, ...`` as in `core.host_schedule`, if all launches of the kernel
agree or each runs once per call; in the latter case it is their average.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.constness import entries
from stepwell.analysis.sizes import Dim, Result, Size, Sizes
from stepwell.analysis.structured import indices
from stepwell.core.host_schedule import Tree
from stepwell.dialects import kernel

SIGNS: dict[type[Any], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.DivSIOp: "/",
    arith.RemSIOp: "%",
    arith.FloorDivSIOp: "floor/",
    arith.CeilDivSIOp: "ceil/",
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
    arith.DivUIOp: "u/",
    arith.RemUIOp: "u%",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
}
"""The tree operator of each op of index arithmetic."""


class Launches:
    """The launches of a module's kernels in its entries, and their sizes."""

    def __init__(self, module: ModuleOp) -> None:
        self._of: dict[str, list[tuple[kernel.LaunchOp, Sizes]]] = {}
        for function in entries(module):
            sizes = Sizes(function.args)
            for op in function.walk():
                if isinstance(op, kernel.LaunchOp):
                    self._of.setdefault(op.callee.string_value(), []).append((op, sizes))

    def tree(self, function: kernel.FuncOp, size: Size, inner: Sizes) -> Tree | None:
        """Return ``size`` of a kernel in a call; None if it does not depend on sizes only."""
        launches = self._of.get(function.sym_name.data, [])
        found = [_tree(inner.in_caller(size, op.operands, by), by) for op, by in launches]
        if not found or None in found:
            return None
        if all(each == found[0] for each in found):
            return found[0]
        if not all(isinstance(op.parent_op(), func.FuncOp) for op, _ in launches):
            return None
        total = found[0]
        for each in found[1:]:
            total = ("+", total, each)
        return ("/", total, len(found))


def loop_sizes(op: linalg.GenericOp, sizes: Sizes) -> list[Size | None]:
    """Return the trip count of each loop of ``op``; None if no operand has the loop as an axis."""
    found: list[Size | None] = [None] * len(op.iterator_types)
    for value, index in zip(op.operands, indices(op), strict=True):
        for expr, size in zip(index, sizes.shape(value), strict=True):
            if isinstance(expr, AffineDimExpr) and (
                found[expr.position] is None or size.number is not None
            ):
                found[expr.position] = size
    return found


def _tree(size: Size, sizes: Sizes) -> Tree | None:
    """Return a size of an entry as a tree, None if that is impossible."""
    if (number := size.number) is not None:
        return number
    terms: list[Tree] = []
    for monomial, factor in size.terms:
        term: Tree = factor
        for number in monomial:
            if (atom := _atom(number, sizes)) is None:
                return None
            term = atom if term == 1 else ("*", term, atom)
        terms.append(term)
    total = terms[0]
    for each in terms[1:]:
        total = ("+", total, each)
    return total


def _is_input(argument: SSAValue) -> bool:
    """Whether an argument is an input; below tensors results are arguments of an entry too."""
    assert isinstance(argument, BlockArgument)
    function = argument.owner.parent_op()
    attributes = function.arg_attrs if isinstance(function, func.FuncOp) else None
    role = attributes.data[argument.index].data.get("kernel.role") if attributes else None
    return role is None or role == StringAttr("input")


def _atom(number: int, sizes: Sizes) -> Tree | None:
    match sizes.atoms[number]:
        case Dim(index) if _is_input(sizes.arguments[sizes.dims[index][0]]):
            return f"d{index}"
        case Result(op, _, operands) if op in SIGNS:
            inner = [_tree(each, sizes) for each in operands]
            if op is arith.MinSIOp and inner[0] == inner[1]:
                return inner[0]
            return None if None in inner else (SIGNS[op], *inner)
        case _:
            return None
