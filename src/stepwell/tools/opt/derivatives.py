"""--check of passes that write derivatives: compare them with finite differences, in f64."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.rules import MissingRule
from stepwell.dialects.calling import call
from stepwell.dialects.differences import backward_off, forward_off
from stepwell.dialects.interpreter import Exhausted, Interpreter
from stepwell.dialects.printing import text_of
from stepwell.dialects.readings import Array
from stepwell.dialects.types import place_of
from stepwell.driver.registry import registry
from stepwell.tools.opt.trials import as_given, trials
from stepwell.transforms.graph.derive import Derive, Vjp

RANGES = ((-0.9, 0.9), (0.1, 0.9), (1.1, 3.0))
"""Ranges of floats; the first in which the function is smooth is used."""
TRIALS = 4
"""The number of arguments to try."""
FUEL = 500_000


def check_derivative(module: ModuleOp, pass_: Derive) -> str:
    """Fail where ``pass_`` wrote a wrong derivative; return why it cannot be checked, else ""."""
    found = _function(module, pass_.function)
    wide = _wide(module)
    if found is None or wide is None:
        return "it turns on a narrow float"
    function = _function(wide, pass_.function)
    assert function is not None
    wrt, of = pass_.numbers(function)
    compared = False
    off_of = backward_off if isinstance(pass_, Vjp) else forward_off
    run = partial(_run, wide, pass_.function)
    derivative = partial(_run, wide, pass_.derived)
    try:
        for arguments in _arguments(wide, function, wrt):
            off = off_of(run, derivative, arguments, wrt, of)
            if off:
                new = _function(module, pass_.derived)
                said = f"pass '{pass_.name}' gives @{pass_.derived} a wrong derivative: {off}"
                place = place_of(new) if new is not None else None
                raise CompileError(Diagnostic("error", said, place))
            compared = compared or off is not None
    except (Exhausted, MissingRule, TypeError, ValueError, IndexError) as error:
        return str(error) or "it runs too long"
    return "" if compared else "it is smooth at none of the arguments that were tried"


def _run(module: ModuleOp, name: str, arguments: Sequence[Array]) -> Sequence[Array]:
    with np.errstate(all="ignore"):
        return call(Interpreter(module, fuel=FUEL), name, list(arguments))


def _arguments(
    module: ModuleOp, function: func.FuncOp, wrt: Sequence[int]
) -> Iterator[Sequence[Array]]:
    random = np.random.default_rng(0)
    for number, inputs in enumerate(trials(module, function)):
        if number == TRIALS:
            return
        given = as_given(inputs, function)
        for low, high in RANGES:
            yield [
                random.uniform(low, high, np.shape(a)) if k in wrt else a
                for k, a in enumerate(given)
            ]


def _wide(module: ModuleOp) -> ModuleOp | None:
    """Return the module with all floats as f64, None if that is not valid."""
    text = re.sub(r"(bf16|f16|f32)(?![a-zA-Z0-9_])", "f64", text_of(module))
    try:
        wide = Parser(registry().context(), text).parse_module()
        wide.verify()
    except (ParseError, VerifyException, CompileError):
        return None
    return wide


def _function(module: ModuleOp, name: str) -> func.FuncOp | None:
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    return None
