"""Sorts by integer keys that are in the order wanted: short axes by a network, long ones by digits.

Both are loop nests whose outermost loop is over tasks that threads share. What decides between them
is how long each is thought to take, which depends on the sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.sorting import ArgsortOp, OrderOp, SortOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.lowering.nd_to_linalg.nests import Operands
from stepwell.lowering.nd_to_linalg.sorting.digits import Parts, Rows, parts
from stepwell.lowering.nd_to_linalg.sorting.keys import Sort
from stepwell.lowering.nd_to_linalg.sorting.network import Network, exchanges
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

EXCHANGE, TURN = 1.2, 0.6
"""Nanoseconds of an exchange of two lines, and of moving an element into and out of scratch, on an
AMD EPYC with AVX-512."""
MOVE, ROW = 1.0, 110.0
"""Nanoseconds of moving an element by one digit, and what a digit costs a row besides."""
BOTH = 1.5
"""How much longer places beside the keys take."""
LONGEST = 2048
"""Scratch of longer rows leaves no room in the second cache."""
MANY = 256
"""So many rows are thought to be where only the run knows."""


@lower(SortOp, ArgsortOp)
def _order(lowering: Lowering, op: OrderOp, operands: Operands) -> Operands:
    (x,) = operands
    sort = Sort(lowering, op, x)
    if (0 in shape_of(op.x) or sort.n == 1) and sort.places is None:
        return (x,)
    return (_ordered(sort),)


def _ordered(sort: Sort) -> SSAValue:
    n = sort.n
    known = DYNAMIC not in shape_of(sort.op.x) or sort.rank < 3
    if isinstance(n, int) and known:
        network = Network(sort)
        if n <= LONGEST and _by_network(network) <= _by_digits(sort, n):
            return network.write()
    return (Parts if parts(n, sort.rows()) > 1 else Rows)(sort).write()


def _by_network(network: Network) -> float:
    """Return how many nanoseconds a network takes."""
    sort = network.sort
    rows, outer = 1, 1
    if sort.others:
        shape = shape_of(sort.op.x)
        behind = sort.axis + 1 < sort.rank
        inner = shape[sort.axis + 1 :] if behind else shape[: sort.axis]
        rows = _product(inner)
        outer = _product(shape[: sort.axis]) if behind else 1
    blocks = outer * -(-rows // network.lanes)
    each = exchanges(network.n) * EXCHANGE * (2 * BOTH if network.apart else 1)
    return blocks * (each + network.n * network.lanes * TURN)


def _by_digits(sort: Sort, n: int) -> float:
    """Return how many nanoseconds a sort by digits takes."""
    rows = _product([size for k, size in enumerate(shape_of(sort.op.x)) if k != sort.axis])
    move = MOVE if sort.places is None else MOVE * BOTH
    return rows * sort.keys.kind.bytes * (n * move + ROW)


def _product(sizes: Sequence[int]) -> int:
    return prod(MANY if n == DYNAMIC else n for n in sizes)
