"""Run random calls: `python -m stepwell.testing.numpy_calls --calls 1000 --seed 1`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter

from stepwell.testing.numpy_calls.checking import Deviation, call, check
from stepwell.testing.numpy_calls.values import Call
from stepwell.testing.user_programs.__main__ import fresh_cache


def main() -> int:
    """Run calls, print those that differ from NumPy, and the number of calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=100, help="calls in one program")
    parser.add_argument("--compiled", type=float, default=0.1, help="the share that is compiled")
    parser.add_argument("--only", default="", help="only calls of this name")
    parser.add_argument("--show", type=int, default=3, help="how many of one kind are printed")
    given = parser.parse_args()
    began = time.perf_counter()
    kinds: Counter[str] = Counter()
    done = batch = 0
    seed = given.seed * 10_000_000
    while done < given.calls:
        calls: list[Call] = []
        while len(calls) < min(given.together, given.calls - done):
            seed += 1
            drawn = call(seed)
            if not given.only or drawn.name == given.only:
                calls.append(drawn)
        batch += 1
        compiled = (batch * given.compiled) % 1 + given.compiled > 1 or given.compiled >= 1
        if compiled:
            fresh_cache()
        for deviation in check(calls, "c" if compiled else "interpreter"):
            kind = _kind(deviation)
            kinds[kind] += 1
            if kinds[kind] <= given.show and deviation.why != "refused":
                print(f"--- {kind}\n{deviation}", flush=True)
        done += len(calls)
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    wrong = sum(n for kind, n in kinds.items() if not kind.startswith("refused"))
    print(
        f"{done} calls, {wrong} deviate, {sum(kinds.values()) - wrong} refused, "
        f"{time.perf_counter() - began:.0f} s"
    )
    return 1 if wrong else 0


def _kind(deviation: Deviation) -> str:
    if deviation.why == "refused":
        said = re.sub(r"\b(u?int|float)\d+\b|\bbool\b", "T", str(deviation.got.error))
        return f"refused {deviation.call.name}: {said[:90]}"
    error = deviation.got.error
    reason = f" {type(error).__name__}: {str(error)[:60]}" if error is not None else ""
    return f"{deviation.call.name}: {deviation.why}{reason}"


if __name__ == "__main__":
    sys.exit(main())
