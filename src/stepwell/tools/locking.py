"""Which lock file a subcommand uses."""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwell.compiled import lock_beside


def lock_of(options: argparse.Namespace) -> Path | None:
    """Return the lock file that is named, or lies beside the module."""
    if options.lock:
        return Path(options.lock)
    beside = lock_beside(Path(options.file))
    return beside if options.target == "c" and beside.exists() else None
