"""Shared by every test: lit's files are collected as tests, run in this process where faithful."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from machines import MACHINES

from stepwell.core.machine import VARIABLE
from stepwell.testing.lit import collect

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


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect lit's files."""
    return collect(file_path, parent)
