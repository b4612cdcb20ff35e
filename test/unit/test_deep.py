"""Deep recursion while callers are interrupted."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED = """
import _thread, sys, threading, time
from stepwell.core.deep import with_deep_stack

limit, running, together = sys.getrecursionlimit(), [], []

def first():
    running.append(1)
    _thread.interrupt_main()
    time.sleep(0.5)
    depth(5000)
    running.pop()

def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)

def second():
    together.extend(running)
    return depth(5000)

try:
    with_deep_stack(first)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", bool(running))
print(with_deep_stack(second), together, sys.getrecursionlimit() == limit)
"""

FORKED = """
import os, threading, time
from stepwell.core.deep import with_deep_stack

begun = threading.Event()
def slow():
    begun.set()
    time.sleep(1)
threading.Thread(target=lambda: with_deep_stack(slow), daemon=True).start()
begun.wait()
if child := os.fork():
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status))
else:
    os._exit(with_deep_stack(lambda: 7))
"""


def _run(script: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_next_call_waits_for_one_that_was_interrupted() -> None:
    """The interrupted caller returns at once; its function keeps its depth and runs alone."""
    assert _run(INTERRUPTED).splitlines() == ["interrupted True", "5000 [] True"]


def test_a_forked_process_does_not_wait_for_a_thread_that_it_lacks() -> None:
    assert _run(FORKED) == "7\n"
