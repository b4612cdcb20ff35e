"""Shared by every test: lit's files are collected as tests, run in this process where faithful."""

import os
from collections.abc import Generator

import pytest

from stepwell.core.machine import VARIABLE
from stepwell.testing.in_pytest import pytest_collect_file as pytest_collect_file
from stepwell.testing.machines import MACHINES

os.environ.setdefault("STEPWELL_VERIFY", "1")


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
