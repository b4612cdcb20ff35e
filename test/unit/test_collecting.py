"""Collection of garbage after compilations, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


LEAVING = """
import atexit, gc, sys, types
from stepwell.core import collecting

atexit.register(lambda: print(gc.get_freeze_count() > 0))  # runs last
with collecting.uncollected():
    pass
holder = types.SimpleNamespace()
holder.itself = holder
if len(sys.argv) > 1:
    holder.file = open(sys.argv[1], "w")
    holder.file.write("whole")
"""


def test_objects_of_compilations_become_old() -> None:
    """They are not visited at once, do not pile up, and what the user froze stays frozen."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_cycles_at_exit(tmp_path: Path) -> None:
    """A process that compiled does not collect them, unless an object has a finalizer."""
    file = tmp_path / "written"
    for given, frozen in (([], "True\n"), ([str(file)], "False\n")):
        command = [sys.executable, "-c", LEAVING, *given]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == frozen
    assert file.read_text() == "whole"
