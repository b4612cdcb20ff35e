"""Shared by every test: lit's files are collected as tests, run in this process where faithful."""

import gc
import os
from collections.abc import Generator
from zlib import crc32

import pytest

from stepwell.core.machine import VARIABLE
from stepwell.core.tracebacks import VARIABLE as TRACEBACK
from stepwell.testing.in_pytest import pytest_collect_file as pytest_collect_file
from stepwell.testing.machines import MACHINES

VERIFIED = 8
"""One test in so many, always the same, verifies after each pass (a quarter of a compile's time);
all do where STEPWELL_VERIFY is 1, as in the slow lane. All prove what bufferize has made."""

_ASKED = "STEPWELL_VERIFY" in os.environ
os.environ.setdefault(TRACEBACK, "full")
ALLOCATED = 20_000
"""Objects made between two searches for garbage; searches after 700 took a twentieth of the time."""


def pytest_collection() -> None:
    """Search for no garbage while modules are imported and tests collected: all of it stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave out of later searches what has been made up to here."""
    gc.freeze()
    gc.set_threshold(ALLOCATED)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the slow lane what is not in the sample of a test that is marked ``sampled``."""
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and crc32(item.nodeid.encode()) % mark.args[0]:
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not _ASKED:
        chosen = crc32(item.nodeid.encode()) % VERIFIED == 0
        os.environ["STEPWELL_VERIFY"] = "1" if chosen else "buffers"


@pytest.fixture(autouse=True)
def stated_machine(request: pytest.FixtureRequest) -> Generator[None]:
    """Let a test see the machine that its mark names, whatever the host is."""
    mark = request.node.get_closest_marker("machine")
    if mark is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, MACHINES[mark.args[0]].text)
        yield
