"""Collection of garbage after compilations, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc
from stepwell.core import collecting

def left(objects):
    with collecting.uncollected():
        for _ in range(objects):
            cycle = []
            cycle.append(cycle)
    return gc.get_count()[0], len(gc.get_objects(generation=2))

gc.collect()
young, before = left(5_000)
assert young < 1_000, young
assert before >= 5_000
collecting.LEFT = 5_000
young, after = left(5_000)
assert after < before, (before, after)
gc.freeze()
frozen = gc.get_freeze_count()
left(2_000)
assert gc.get_freeze_count() == frozen
gc.get_freeze_count = None  # frozen objects are counted once, one by one
left(10)
"""


def test_objects_of_compilations_become_old() -> None:
    """They are not visited at once, do not pile up, and what the user froze stays frozen."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
