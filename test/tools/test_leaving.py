"""Tools end without a search for garbage; until then it is collected as ever."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 1000))
from stepwell.tools.main import main
main(["--version"])
main(["--version"])
print(gc.isenabled(), gc.get_freeze_count())
"""


def test_objects_are_frozen_at_the_end_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[2:] == ["True 0", "True"]
