"""Shared by every test: lit's files are collected as tests, run in this process where faithful."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("STEPWELL_VERIFY", "1")

_spec = importlib.util.spec_from_file_location(
    "lit_in_process", Path(__file__).with_name("lit_in_process.py")
)
assert _spec is not None and _spec.loader is not None
_lit = importlib.util.module_from_spec(_spec)
sys.modules["lit_in_process"] = _lit
_spec.loader.exec_module(_lit)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect lit's files."""
    return _lit.collect(file_path, parent)
