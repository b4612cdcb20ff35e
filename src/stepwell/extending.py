"""The names that packages import which extend the compiler; where each is defined may change.

>>> from stepwell.extending import Extension, Pass, reference
>>> Pass.__module__
'stepwell.transforms.passes'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepwell.core.diagnostics import CompileError
    from stepwell.core.machine import Machine
    from stepwell.core.signature import Signature
    from stepwell.core.targets import Target
    from stepwell.dialects.calling import call
    from stepwell.dialects.interpreter import Interpreter
    from stepwell.dialects.nd.base import FLOAT
    from stepwell.dialects.nd.composing import Composer
    from stepwell.dialects.nd.elementwise import Unary, in_numpy, same_type
    from stepwell.dialects.parsing import parse_module
    from stepwell.dialects.printing import text_of
    from stepwell.dialects.readings import (
        Factor,
        decomposition,
        extents,
        partials,
        reference,
        shape,
        simplify,
    )
    from stepwell.driver.registry import registry
    from stepwell.driver.targets import printing
    from stepwell.driver.universe import Extension
    from stepwell.frontend.building import Builder, Value
    from stepwell.lowering.emit import Writer, emit
    from stepwell.lowering.emit.entry import entries
    from stepwell.lowering.nd_to_linalg.body import Body
    from stepwell.lowering.nd_to_linalg.elementwise import register
    from stepwell.lowering.nd_to_linalg.table import lower
    from stepwell.runtime.entry import Entry
    from stepwell.runtime.python_program import Called
    from stepwell.transforms.passes import Pass, fail
    from stepwell.transforms.rewriting import rewrite

_DEFINED = {
    "stepwell.core.diagnostics": ("CompileError",),
    "stepwell.core.machine": ("Machine",),
    "stepwell.core.signature": ("Signature",),
    "stepwell.core.targets": ("Target",),
    "stepwell.dialects.calling": ("call",),
    "stepwell.dialects.interpreter": ("Interpreter",),
    "stepwell.dialects.nd.base": ("FLOAT",),
    "stepwell.dialects.nd.composing": ("Composer",),
    "stepwell.dialects.nd.elementwise": ("Unary", "in_numpy", "same_type"),
    "stepwell.dialects.parsing": ("parse_module",),
    "stepwell.dialects.printing": ("text_of",),
    "stepwell.dialects.readings": (
        *("Factor", "decomposition", "extents", "partials"),
        *("reference", "shape", "simplify"),
    ),
    "stepwell.driver.registry": ("registry",),
    "stepwell.driver.targets": ("printing",),
    "stepwell.driver.universe": ("Extension",),
    "stepwell.frontend.building": ("Builder", "Value"),
    "stepwell.lowering.emit": ("Writer", "emit"),
    "stepwell.lowering.emit.entry": ("entries",),
    "stepwell.lowering.nd_to_linalg.body": ("Body",),
    "stepwell.lowering.nd_to_linalg.elementwise": ("register",),
    "stepwell.lowering.nd_to_linalg.table": ("lower",),
    "stepwell.runtime.python_program": ("Called",),
    "stepwell.runtime.entry": ("Entry",),
    "stepwell.transforms.passes": ("Pass", "fail"),
    "stepwell.transforms.rewriting": ("rewrite",),
}
"""Modules, and the names that each defines: imported when a name is first asked for."""

_PLACES = {name: module for module, names in _DEFINED.items() for name in names}

__all__ = [
    "FLOAT",
    "Body",
    "Builder",
    "Called",
    "CompileError",
    "Composer",
    "Entry",
    "Extension",
    "Factor",
    "Interpreter",
    "Machine",
    "Pass",
    "Signature",
    "Target",
    "Unary",
    "Value",
    "Writer",
    "call",
    "decomposition",
    "emit",
    "entries",
    "extents",
    "fail",
    "in_numpy",
    "lower",
    "parse_module",
    "partials",
    "printing",
    "reference",
    "register",
    "registry",
    "rewrite",
    "same_type",
    "shape",
    "simplify",
    "text_of",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'stepwell.extending' has no attribute '{name}'")
    globals()[name] = value = getattr(import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
