"""Shared by every test: lit's files are collected as tests, run in this process where faithful."""

import os
from pathlib import Path

import pytest

from stepwell.testing.lit import collect

os.environ.setdefault("STEPWELL_VERIFY", "1")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect lit's files."""
    return collect(file_path, parent)
