"""Damage texts and give them to the tools: ``python -m any_text --count 20000 --seed 1``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from any_text.pool import Fault, outcomes
from any_text.texts import texts


def main() -> int:
    """Try as many texts as are asked for; print each fault and the figures."""
    parser = argparse.ArgumentParser("any_text", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="more .mlir files to begin with")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for texts with faults")
    options = parser.parse_args()
    known = texts(options.folders)
    kinds: Counter[str] = Counter()
    start = time.perf_counter()
    taken = 0
    numbers = range(options.first, options.first + options.count)
    for number, found in zip(numbers, outcomes(known, options.seed, numbers), strict=True):
        if number % 1000 == 999:
            print(f"up to {number}: {taken} taken, {sum(kinds.values())} faults", flush=True)
        if not isinstance(found, Fault):
            taken += found
            continue
        kinds[found.what] += 1
        print(
            f"{found.number} [{found.mode}] {found.what}: {found.said.strip()[-300:]}", flush=True
        )
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            said = "".join(f"\n// {row}" for row in found.said.split("\n"))
            body = f"// {found.mode}\n{found.text}\n{said}\n"
            file = options.keep / f"{found.number}.mlir"
            file.write_text(body, encoding="utf-8", errors="replace")
    took = time.perf_counter() - start
    print(
        f"{options.count} mutations of {len(known)} texts in {took:.0f} s:"
        f" {taken} taken, {sum(kinds.values())} faults"
    )
    for what, count in kinds.most_common():
        print(f"  {count:>5} {what}")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
