"""Whether passes verify their results, in addition to the verifier of the IR."""

from __future__ import annotations

import os
from contextvars import ContextVar

VARIABLE = "STEPWELL_VERIFY"
"""Nothing or 0: no checks; buffers: passes check the buffers they create; 1: all checks."""

verify_each: ContextVar[bool] = ContextVar("verify_each", default=False)
"""Whether a tool was asked to verify after each pass."""


def checks_buffers() -> bool:
    """Whether the results of passes on buffers are proved."""
    return verify_each.get() or requested_checks() != "0"


def checks_all() -> bool:
    """Whether the module is verified after each stage."""
    return requested_checks() == "1"


def requested_checks() -> str:
    """Return which checks the environment asks for: 0, buffers or 1."""
    given = os.environ.get(VARIABLE) or "0"
    return given if given in ("0", "buffers") else "1"
