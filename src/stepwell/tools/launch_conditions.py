"""For which sizes of a call a kernel is launched, where a branch on the host decides that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from xdsl.dialects.builtin import ModuleOp

from stepwell.analysis.launch_sizes import Condition, Launches
from stepwell.dialects import kernel

LARGEST = 1024
"""The size up to which a condition is evaluated, which is that of a large image."""


def conditions_of(module: ModuleOp) -> dict[str, str]:
    """Return the sizes for which kernels are launched, as text, by name.

    Sizes that a condition depends on together are evaluated as equal.
    """
    launches, found = Launches(module), dict[str, str]()
    for op in module.ops:
        if isinstance(op, kernel.FuncOp) and (condition := launches.condition(op)) is not None:
            found[op.sym_name.data] = _spelled(condition)
    return found


def _spelled(condition: Condition) -> str:
    holds = [condition.holds([n] * condition.count) for n in range(LARGEST + 1)]
    ranges: list[str] = []
    for taken, group in groupby(range(LARGEST + 1), key=lambda n: holds[n]):
        if taken:
            ranges.append(_range(list(group)))
    return f"{' = '.join(condition.names)} {' and '.join(ranges) or 'in no case'}"


def _range(sizes: Sequence[int]) -> str:
    first, last = sizes[0], sizes[-1]
    if last == LARGEST:
        return f"from {first} on"
    return f"{first}" if first == last else f"from {first} to {last}"
