"""The names that packages import which extend the compiler; where each is defined may change.

>>> from stepwell.extending import Extension, Pass, reference
>>> Pass.__module__
'stepwell.transforms.passes'

It has the classes of the ops of `nd` too:

>>> from stepwell.extending import AbsOp
>>> AbsOp.name
'nd.abs'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepwell.core.diagnostics import CompileError
    from stepwell.core.machine import Machine
    from stepwell.core.shapes import ShapeError
    from stepwell.core.signature import Signature
    from stepwell.core.targets import Target
    from stepwell.dialects.calling import call
    from stepwell.dialects.interpreter import Interpreter
    from stepwell.dialects.nd.arithmetic import AbsOp as AbsOp
    from stepwell.dialects.nd.arithmetic import NegOp as NegOp
    from stepwell.dialects.nd.base import FLOAT
    from stepwell.dialects.nd.batching.walk import Batch
    from stepwell.dialects.nd.composing import Composer
    from stepwell.dialects.nd.elementwise import Unary, in_numpy, same_type
    from stepwell.dialects.nd.gradients.forward import Forward
    from stepwell.dialects.nd.gradients.reverse import Reverse
    from stepwell.dialects.parsing import parse_module
    from stepwell.dialects.printing import text_of
    from stepwell.dialects.readings import (
        Factor,
        batching,
        decomposition,
        extents,
        gradient,
        moves,
        partials,
        reference,
        shape,
        simplify,
        tangent,
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
    from stepwell.transforms.passes import Pass, fail, remark
    from stepwell.transforms.rewriting import rewrite

_DEFINED = {
    "stepwell.core.diagnostics": ("CompileError",),
    "stepwell.core.machine": ("Machine",),
    "stepwell.core.shapes": ("ShapeError",),
    "stepwell.core.signature": ("Signature",),
    "stepwell.core.targets": ("Target",),
    "stepwell.dialects.calling": ("call",),
    "stepwell.dialects.interpreter": ("Interpreter",),
    "stepwell.dialects.nd.base": ("FLOAT",),
    "stepwell.dialects.nd.batching.walk": ("Batch",),
    "stepwell.dialects.nd.composing": ("Composer",),
    "stepwell.dialects.nd.gradients.forward": ("Forward",),
    "stepwell.dialects.nd.gradients.reverse": ("Reverse",),
    "stepwell.dialects.nd.elementwise": ("Unary", "in_numpy", "same_type"),
    "stepwell.dialects.parsing": ("parse_module",),
    "stepwell.dialects.printing": ("text_of",),
    "stepwell.dialects.readings": (
        *("Factor", "batching", "decomposition", "extents", "gradient", "moves", "partials"),
        *("reference", "shape", "simplify", "tangent"),
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
    "stepwell.transforms.passes": ("Pass", "fail", "remark"),
    "stepwell.transforms.rewriting": ("rewrite",),
}
"""Modules, and the names that each defines: imported when a name is first asked for."""

_PLACES = {name: module for module, names in _DEFINED.items() for name in names}

__all__ = [
    "FLOAT",
    "Batch",
    "Body",
    "Builder",
    "Called",
    "CompileError",
    "Composer",
    "Entry",
    "Extension",
    "Factor",
    "Forward",
    "Interpreter",
    "Machine",
    "Pass",
    "Reverse",
    "ShapeError",
    "Signature",
    "Target",
    "Unary",
    "Value",
    "Writer",
    "batching",
    "call",
    "decomposition",
    "emit",
    "entries",
    "extents",
    "fail",
    "gradient",
    "in_numpy",
    "lower",
    "moves",
    "parse_module",
    "partials",
    "printing",
    "reference",
    "register",
    "registry",
    "remark",
    "rewrite",
    "same_type",
    "shape",
    "simplify",
    "tangent",
    "text_of",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
    elif name.endswith("Op"):  # an op of nd, as in ``AbsOp``
        ops = import_module("stepwell.dialects.nd").OPS
        value = next((op for op in ops if op.__name__ == name), None)
    else:
        value = None
    if value is None:
        raise AttributeError(f"module 'stepwell.extending' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
