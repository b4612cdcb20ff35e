"""A target: how often each op occurs."""

from collections import Counter
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target


@dataclass(frozen=True)
class OpCounts(Target):
    """Write how often each op occurs, most frequent first."""

    name = "op-counts"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write a line for each op."""
        counts = Counter(op.name for op in module.walk())
        for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            output.write(f"{count:>6} {name}\n")
