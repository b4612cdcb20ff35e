"""Run a function through its trace, in the reference interpreter or compiled."""

from typing import Any

from stepwell.dialects import nd
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.verification import verify
from stepwell.driver.registry import registry
from stepwell.frontend.jit import jit
from stepwell.frontend.pytree import flatten, unflatten

assert nd


def interpreted(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Trace ``function`` for ``args``, verify the module, interpret it."""
    traced = jit(function, **kwargs).trace(*args)
    module = parse_module(registry().context(), traced.module.text, traced.module.name)
    verify(module)
    leaves, _ = flatten(args)
    interpreter = Interpreter(module, resources=traced.module.resources)
    return unflatten(traced.out_tree, interpreter.call(traced.entry, leaves))
