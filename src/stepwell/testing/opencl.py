"""Tests that run OpenCL programs: skipped, with the reason, where no device can run them.

A pytest plug-in (``-p stepwell.testing.opencl``). A test that runs OpenCL programs has the mark
``opencl``; ``opencl("cpu")`` if it needs a device of that name. `TARGETS` are the targets to
parametrize a test with. Doctests of `stepwell.frontend.devices` have the mark too.
"""

from __future__ import annotations

from functools import cache

import pytest

from stepwell.core.diagnostics import CompileError
from stepwell.runtime.opencl.device import working_device

TARGETS = ("c", pytest.param("opencl", marks=pytest.mark.opencl))
"""Targets to parametrize a test with that runs programs."""
WITH_DEVICES = "stepwell.frontend.devices."
"""The beginning of the names of doctests that need a device."""


@cache
def no_opencl(device: str = "") -> str:
    """Return the reason why no OpenCL program can run here, "" if one can.

    device : the name of a device, "" for the default one
    """
    try:
        working_device(device)
    except CompileError as error:
        return str(error)
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    about = "runs OpenCL programs, on the device of this name if there is one"
    config.addinivalue_line("markers", f"opencl(device): {about}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the doctests that need a device."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name.startswith(WITH_DEVICES):
            item.add_marker(pytest.mark.opencl("cpu"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a device that is not here or that can run no program."""
    for mark in item.iter_markers("opencl"):
        if reason := no_opencl(*mark.args):
            pytest.skip(f"no OpenCL: {reason}")
