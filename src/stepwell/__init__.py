"""Stepwell: a tensor compiler whose every step is text one can read, test and extend."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepwell.core.version import VERSION

if TYPE_CHECKING:
    from stepwell.compiled import Compiled, compile, load
    from stepwell.core.diagnostics import CompileError

__version__ = VERSION

_PUBLIC = {
    "CompileError": "stepwell.core.diagnostics",
    "Compiled": "stepwell.compiled",
    "compile": "stepwell.compiled",
    "load": "stepwell.compiled",
}
"""Public names and where they are defined; each is imported when it is first asked for."""

__all__ = ["CompileError", "Compiled", "compile", "load"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'stepwell' has no attribute '{name}'")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
