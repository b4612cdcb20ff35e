"""NumPy for compiled functions: the same names, meanings, dtypes and defaults.

``import stepwell.numpy as snp``. In a function given to `stepwell.jit` these functions describe a
computation; outside of one they are NumPy's own, and return NumPy's arrays. Functions that NumPy
lacks (``erf``, ``logsumexp``, ``bitcast``, ...) are compiled and run. NumPy's names that are
missing here are refused, with the nearest supported name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.core.deferred_methods import deferred_methods

with deferred_methods():
    from stepwell.frontend import operators
    from stepwell.frontend.array_api import NamespaceInfo
    from stepwell.frontend.facade import NAMES, Submodule, facades
    from stepwell.frontend.naming import refused

assert operators

__array_namespace_info__ = NamespaceInfo
bfloat16 = "bfloat16"
"""The dtype's name; NumPy arrays of it need `ml_dtypes`."""

globals().update({name: getattr(np, name) for name in NAMES})
globals().update(_facades := facades())
linalg = Submodule("linalg")


def __getattr__(name: str) -> Any:
    """Raise for a missing name, with advice on what to write instead."""
    if name == "__all__":
        return sorted(["bfloat16", "linalg", *NAMES, *_facades])
    raise AttributeError(f"module 'stepwell.numpy' has no attribute '{name}'{refused(name)}")


def __dir__() -> list[str]:
    """Return the public names, without imports."""
    return __getattr__("__all__")
