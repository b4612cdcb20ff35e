"""What xDSL's and Stepwell's tools find through the entry point; all of it loaded on first use."""

from importlib import import_module
from typing import Any

from stepwell.extending import Extension, printing


def _dialect() -> Any:
    import_module("acme.lowering")  # the rules of the dialect's ops come with the dialect
    return import_module("acme.dialect").ACME


def _pass() -> Any:
    return import_module("acme.passes").SoftsignOfNeg


def _target() -> Any:
    return import_module("acme.targets").OpCounts


def _steps() -> Any:
    return printing(import_module("acme.steps").STEPS)


ACME_UNIVERSE = Extension(
    all_dialects={"acme": _dialect},
    all_passes={"softsign-of-neg": _pass},
    all_targets={"op-counts": _target, "acme-steps": _steps},
    pipeline=["softsign-of-neg@before:decompose"],
)
