"""The sizes of a kernel's launches, as trees over the `?` of a call's arguments.

The result is a tree over ``d0, d1, ...`` as in `core.host_schedule`, if all launches of the kernel
agree or each runs once per call; in the latter case it is their average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.constness import entries
from stepwell.analysis.sizes import Dim, Result, Size, Sizes
from stepwell.analysis.structured import indices
from stepwell.core.host_schedule import Tree, in_call
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


COMPARISONS: dict[int, Callable[[int, int], bool]] = dict(enumerate((eq, ne, lt, le, gt, ge)))
"""The comparison of each predicate of `arith.cmpi` on signed numbers."""
SPELLED = ("==", "!=", "<", "<=", ">", ">=")
"""The tree operator of each of them."""


@dataclass(frozen=True)
class Condition:
    """A comparison of sizes on the host that decides a branch, and which side is asked for."""

    left: Tree
    right: Tree
    predicate: int
    wanted: bool
    """Whether it is the side that is taken where the comparison is true."""
    names: tuple[str, ...]
    """The sizes that it depends on, as in `x.shape[0]`."""
    count: int
    """The number of `?` of the arguments."""

    def holds(self, sizes: Sequence[int]) -> bool:
        """Whether the side is taken in a call in which the `?` are ``sizes``."""
        left, right = (in_call(each, sizes) for each in (self.left, self.right))
        assert left is not None and right is not None
        return COMPARISONS[self.predicate](left, right) is self.wanted

    @property
    def tree(self) -> Tree:
        """The condition on which the side is taken."""
        compared = SPELLED[self.predicate], self.left, self.right
        return compared if self.wanted else ("not", compared)


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

    def trees(self, function: kernel.FuncOp, size: Size, inner: Sizes) -> list[Tree] | None:
        """Return ``size`` in each launch of a kernel; None if one does not depend on sizes only."""
        launches = self._of.get(function.sym_name.data, [])
        found = [_tree(inner.in_caller(size, op.operands, by), by) for op, by in launches]
        return None if None in found else list(dict.fromkeys(found))

    def condition(self, function: kernel.FuncOp) -> Condition | None:
        """Return the comparison of sizes that decides whether all launches of a kernel happen."""
        launches = self._of.get(function.sym_name.data, [])
        found = {_condition(op, sizes) for op, sizes in launches}
        return found.pop() if len(found) == 1 else None


def _condition(op: kernel.LaunchOp, sizes: Sizes) -> Condition | None:
    """Return the comparison of sizes of the branch that a launch is in."""
    branch = op.parent_op()
    if not isinstance(branch, scf.IfOp):
        return None
    found = condition_of(branch, sizes)
    first = op.parent is branch.true_region.block
    return found if found is None or first else replace(found, wanted=False)


def condition_of(branch: scf.IfOp, sizes: Sizes) -> Condition | None:
    """Return the condition of a branch's first side; None if more than sizes decides it."""
    compare = branch.cond.owner
    if not isinstance(compare, arith.CmpiOp):
        return None
    left, right = sizes.of(compare.lhs), sizes.of(compare.rhs)
    trees, predicate = (_tree(left, sizes), _tree(right, sizes)), compare.predicate.value.data
    if None in trees or predicate not in COMPARISONS or not (left - right).terms:
        return None
    used = sorted({n for size in (left, right) for n in _dims_in(size, sizes)})
    names = [_named(sizes.arguments[a], axis) for a, axis in (sizes.dims[n] for n in used)]
    return Condition(*trees, predicate, True, tuple(names), len(sizes.dims)) if names else None


def _dims_in(size: Size, sizes: Sizes) -> Iterator[int]:
    """Yield the numbers of the `?` of arguments in a formula."""
    for number in {n for monomial, _ in size.terms for n in monomial}:
        match sizes.atoms[number]:
            case Dim(index):
                yield index
            case Result(operands=operands):
                for each in operands:
                    yield from _dims_in(each, sizes)
            case _:
                pass


def _named(argument: SSAValue, axis: int) -> str:
    number = argument.index if isinstance(argument, BlockArgument) else 0
    return f"{argument.name_hint or f'input{number}'}.shape[{axis}]"


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
