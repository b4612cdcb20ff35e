"""Sorts by integer keys in the required order: short axes by a network, long ones by radix sort.

Both are loop nests whose outermost loop is over tasks that threads share. The one with the lower
predicted time is chosen, which depends on the sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.sorting import ArgsortOp, OrderOp, OrderStatisticsOp, SortOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.types import dtype
from stepwell.lowering.nd_to_linalg.nests import Operands
from stepwell.lowering.nd_to_linalg.sizes import Sizes
from stepwell.lowering.nd_to_linalg.sorting.digits import Parts, Rows, parts
from stepwell.lowering.nd_to_linalg.sorting.keys import Sort
from stepwell.lowering.nd_to_linalg.sorting.network import Network, exchanges
from stepwell.lowering.nd_to_linalg.sorting.selection import Selection, chosen
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

EXCHANGE, TURN = 1.2, 0.6
"""Nanoseconds of an exchange of two cache lines, and of moving an element into and out of scratch,
on an AMD EPYC with AVX-512."""
MOVE, ROW = 1.0, 110.0
"""Nanoseconds to move an element by one digit, and the further time of a digit per row."""
BOTH = 1.5
"""The factor in time for carrying indices beside the keys."""
CHOOSE, FINISH, MOST = 1.2, 600.0, 8
"""Nanoseconds per element of a search for one rank, and for its last step; for more ranks than
``MOST`` in a row, everything is sorted."""
LONGEST = 2048
"""The longest row whose scratch leaves room in the second-level cache."""
ASSUMED_ROWS = 256
"""The number of rows assumed where it is dynamic."""


@lower(SortOp, ArgsortOp)
def _order(lowering: Lowering, op: OrderOp, operands: Operands) -> Operands:
    (x,) = operands
    sort = Sort.of(lowering, op, x)
    if 0 in sort.shape:
        return (Sizes(lowering).empty(sort.extents, sort.result),)
    if sort.n == 1 and sort.places is None:
        return (x,)
    return (_ordered(sort),)


@lower(OrderStatisticsOp)
def _order_statistics(lowering: Lowering, op: OrderStatisticsOp, operands: Operands) -> Operands:
    x, ranks = operands
    sort = Sort(lowering, x, dtype(element(op.x)), op.axis.value.data)
    if 0 in (*sort.shape, *shape_of(op.ranks)):
        return (Sizes(lowering).empty(Sizes(lowering).all_of(ranks), sort.result),)
    n, many = sort.n, _product([shape_of(op.ranks)[sort.axis]])
    if isinstance(n, int) and n <= LONGEST:
        each = n * (MOVE + many * CHOOSE) + many * FINISH
        rows = _product([size for k, size in enumerate(sort.shape) if k != sort.axis])
        network = Network(sort)
        if _is_known(sort) and _by_network(network) <= rows * each:
            return (chosen(lowering, network.write(), ranks, sort.axis),)
    if many > MOST:
        return (chosen(lowering, _ordered(sort), ranks, sort.axis),)
    return (Selection(sort, ranks).write(),)


def _ordered(sort: Sort) -> SSAValue:
    n = sort.n
    if isinstance(n, int) and _is_known(sort):
        network = Network(sort)
        if n <= LONGEST and _by_network(network) <= _by_digits(sort, n):
            return network.write()
    return (Parts if parts(n, sort.rows()) > 1 else Rows)(sort).write()


def _is_known(sort: Sort) -> bool:
    """Whether a network can be written: it collapses adjacent axes."""
    return DYNAMIC not in sort.shape or sort.rank < 3


def _by_network(network: Network) -> float:
    """Return the predicted nanoseconds of a network."""
    sort = network.sort
    rows, outer = 1, 1
    if sort.others:
        shape = sort.shape
        behind = sort.axis + 1 < sort.rank
        inner = shape[sort.axis + 1 :] if behind else shape[: sort.axis]
        rows = _product(inner)
        outer = _product(shape[: sort.axis]) if behind else 1
    blocks = outer * -(-rows // network.lanes)
    each = exchanges(network.n) * EXCHANGE * (2 * BOTH if network.apart else 1)
    return blocks * (each + network.n * network.lanes * TURN)


def _by_digits(sort: Sort, n: int) -> float:
    """Return the predicted nanoseconds of a radix sort."""
    rows = _product([size for k, size in enumerate(sort.shape) if k != sort.axis])
    move = MOVE if sort.places is None else MOVE * BOTH
    return rows * sort.keys.kind.bytes * (n * move + ROW)


def _product(sizes: Sequence[int]) -> int:
    return prod(ASSUMED_ROWS if n == DYNAMIC else n for n in sizes)
