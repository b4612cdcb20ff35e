"""Count the copies that `bufferize` leaves in the programs and workloads of `bench/`: note 072.

`python bench/copies.py [PATTERNS]`, the names separated by commas. A row has the copies of a
module, those of them in loops, and the elements that one run of each copy moves; a size that is
known only at run time counts as one. To compare two commits, run it in both checkouts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from math import prod

from compile_times import program as workload
from programs import NAMES, program
from workloads import WORKLOADS

import stepwell as sw


def modules(patterns: str) -> Iterator[tuple[str, str]]:
    """Yield the programs and workloads whose names match, as text on buffers."""
    wanted = [p for p in patterns.split(",") if p]
    for name in (*NAMES, *WORKLOADS):
        if any(fnmatchcase(name, p) for p in wanted):
            if name in WORKLOADS:
                function, arguments = workload(name)
            else:
                asked = program(name)
                function = sw.jit(asked.function, static_argnames=asked.static)
                arguments = list(asked.inputs(True))
            yield name, function.trace(*arguments).lower("buffers").text


def counted(text: str) -> tuple[int, int, int]:
    """Return the copies of a module, those in loops, and the elements they move."""
    copies = repeated = elements = 0
    loops: list[bool] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("}") and loops:
            loops.pop()
        if line.endswith("{"):
            loops.append(" scf.for " in f" {line}" or " scf.while " in f" {line}" or " do " in line)
        if "memref.copy" in line:
            copies, repeated = copies + 1, repeated + any(loops)
            sizes = re.findall(r"memref<((?:[0-9?]+x)*)", line)[-1].split("x")[:-1]
            elements += prod(1 if n == "?" else int(n) for n in sizes)
    return copies, repeated, elements


def main() -> None:
    """Print a row for each module that has copies, and the sum."""
    print(f"{'':32} {'copies':>8} {'in loops':>8} {'elements':>10}")
    total = (0, 0, 0)
    for name, text in modules(sys.argv[1] if len(sys.argv) > 1 else "*"):
        row = counted(text)
        total = (total[0] + row[0], total[1] + row[1], total[2] + row[2])
        if row[0]:
            print(f"{name:32} {row[0]:8} {row[1]:8} {row[2]:10}", flush=True)
    print(f"{'all':32} {total[0]:8} {total[1]:8} {total[2]:10}")


if __name__ == "__main__":
    main()
