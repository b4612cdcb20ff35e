"""What many tests do with the text of a module: read it, take it down, run it on both floors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from nestings import write_levels
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.printing import text_of
from stepwell.dialects.verification import verify
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.registry import registry
from stepwell.lowering.linalg_to_loops import LinalgToLoops

assert upstream, "imported for its patches of upstream syntax"


def all_dialects() -> Context:
    """Return a context that knows every dialect there is."""
    return registry().context()


def parsed(text: str) -> tuple[Context, ModuleOp]:
    """Parse and verify a module of any dialects."""
    context = all_dialects()
    module = Parser(context, text).parse_module()
    write_levels(module)
    module.verify()
    return context, module


def taken_down(text: str, *pipelines: str) -> list[ModuleOp]:
    """Return the module after each of ``pipelines``, each going on from the one before."""
    known, found = registry(), list[ModuleOp]()
    context = known.context()
    for pipeline in pipelines:
        module = parse_module(context, text, "test")
        for step in parse(pipeline, known.passes):
            step.run(context, module)
        verify(module)
        found.append(module)
        text = text_of(module)
    return found


def same_in_loops(text: str, arrays: Sequence[Any]) -> str:
    """Check that kernel @k leaves the same in its last array once it is loops; return its text."""
    context, module = parsed(text)
    want, got = ([np.array(a) for a in arrays] for _ in range(2))
    Interpreter(module).call("k", want)
    LinalgToLoops().apply(context, module)
    module.verify()
    assert "linalg." not in str(module)
    Interpreter(module).call("k", got)
    np.testing.assert_array_equal(got[-1], want[-1])
    return str(module)
