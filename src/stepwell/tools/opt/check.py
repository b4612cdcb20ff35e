"""--check: run the module in the reference interpreters before and after every pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import SSAValue

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.rules import MissingRule
from stepwell.dialects.calling import RESOURCE, call, random_inputs
from stepwell.dialects.interpreter import Exhausted, Interpreter
from stepwell.dialects.nd import creation
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.readings import Array
from stepwell.dialects.types import dtype, place_of
from stepwell.dialects.upstream.scalar import element_of
from stepwell.pass_pipeline import Step
from stepwell.transforms.passes import Pass

SIZES = (0, 1, 7, 33)
"""What every `?` is in turn: empty, one, a prime, more than two vectors."""

FUEL = 2_000_000
"""Ops one call may evaluate before the check gives up on it."""

TOLERANCE = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
"""What a reassociating or approximating pass may change, against the largest result."""


@dataclass
class _Trial:
    entry: str
    what: str
    inputs: Sequence[Array]
    results: Sequence[Array]
    exhausted: bool = False
    """Whether it has run too long: lower floors only take longer."""


@dataclass
class Checker:
    """Remembers what each function returns and compares after each pass."""

    module: ModuleOp
    tell: Callable[[str], None]
    _trials: list[_Trial] = field(default_factory=list[_Trial], init=False)
    _weights: dict[str, Array] = field(default_factory=dict[str, Array], init=False)

    def __post_init__(self) -> None:
        self._weights = _random_weights(self.module)
        for op in self.module.ops:
            if isinstance(op, func.FuncOp) and op.body.blocks and _is_public(op):
                self._begin(op)

    def _begin(self, function: func.FuncOp) -> None:
        name = function.sym_name.data
        dynamic = "?" in str(function.function_type)
        reason = "it takes arguments that are not tensors"
        made = 0
        for size in SIZES if dynamic else (0,):
            for extreme in (False, True):
                random = np.random.default_rng([size, extreme])
                what = f"{'boundary' if extreme else 'random'} inputs"
                what += f", ? = {size}" if dynamic else ""
                try:
                    inputs = random_inputs(function, size, extreme, random)
                    results = self._call(self.module, name, inputs)
                except (AssertionError, KeyError):
                    break
                except (ValueError, IndexError, MissingRule, LookupError, Exhausted) as error:
                    reason = str(error)
                    continue
                made += 1
                self._trials.append(_Trial(name, what, inputs, results))
        if not made:
            self.tell(f"@{name} is not checked: {reason}")

    def _call(self, module: ModuleOp, entry: str, inputs: Sequence[Array]) -> Sequence[Array]:
        return call(Interpreter(module, self._weights, fuel=FUEL), entry, inputs)

    def compare(self, module: ModuleOp, step: Step) -> None:
        """Run every trial again; raise `CompileError` at the first element that differs."""
        numerics = step.pass_.numerics if isinstance(step.pass_, Pass) else "bit-exact"
        for trial in self._trials:
            if trial.exhausted:
                continue
            function = next(
                (
                    op
                    for op in module.ops
                    if isinstance(op, func.FuncOp) and op.sym_name.data == trial.entry
                ),
                None,
            )
            if function is None:
                raise CompileError(
                    Diagnostic("error", f"pass '{step}' removed the function @{trial.entry}")
                )
            try:
                results = self._call(module, trial.entry, trial.inputs)
            except Exhausted:
                about = f"@{trial.entry} is not checked with {trial.what} after '{step}' and later"
                self.tell(f"{about}: it runs too long")
                trial.exhausted = True
                continue
            except Exception as error:
                message = f"after pass '{step}' @{trial.entry} cannot be run ({trial.what}): "
                said = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise CompileError(
                    Diagnostic("error", message + said, place_of(function))
                ) from error
            difference = _first_difference(trial.results, results, numerics != "bit-exact")
            if difference:
                message = f"pass '{step}' changes the result of @{trial.entry}: {difference}"
                error = Diagnostic("error", message, place_of(function))
                raise CompileError(error.with_note(f"found with {trial.what}"))
            trial.results = results


def _random_weights(module: ModuleOp) -> dict[str, Array]:
    """Return an array for each named weight; any numbers will do, the same for every pass."""
    found: dict[str, Array] = {}
    for op in module.walk():
        if isinstance(op, creation.ConstantOp) and isinstance(op.value, creation.ResourceAttr):
            _add_weight(found, op.value.key.data, op.results[0])
        elif isinstance(op, func.FuncOp):
            for argument, each in zip(op.args, op.arg_attrs or (), strict=False):
                named = isinstance(name := each.data.get(RESOURCE), StringAttr)
                if named and isinstance(argument.type, TensorType):
                    _add_weight(found, name.data, argument)
    return found


def _add_weight(found: dict[str, Array], name: str, value: SSAValue) -> None:
    kind = dtype(element_of(value.type))
    random = np.random.default_rng(len(found))
    values = random.integers(0, 2, shape_of(value))
    if kind.kind == "float":
        values = random.standard_normal(values.shape)
    found.setdefault(name, kind.round(values.astype(kind.numpy)))


def _is_public(function: func.FuncOp) -> bool:
    private = function.sym_visibility is not None and function.sym_visibility.data == "private"
    return not private and "." not in function.sym_name.data


def _first_difference(before: Sequence[Array], after: Sequence[Array], loose: bool) -> str:
    """Describe the first element that differs; nothing where none does."""
    if len(before) != len(after):
        return f"it returned {len(before)} results, now {len(after)}"
    for number, (was, now) in enumerate(zip(before, after, strict=True)):
        was, now = np.asarray(was), np.asarray(now)
        if was.dtype.kind == "u" and now.dtype.kind == "i":
            now = np.ascontiguousarray(now).view(was.dtype).reshape(now.shape)
        if was.shape != now.shape:
            return f"result {number} had shape {list(was.shape)}, now {list(now.shape)}"
        wrong = ~_equal(was, now, loose)
        if wrong.any():
            at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
            place = f" at {list(at)}" if at else ""
            return f"result {number}{place} is {now[at]}, was {was[at]}"
    return ""


def _equal(was: Array, now: Array, loose: bool) -> Array:
    with np.errstate(all="ignore"):
        same = was == now
        if was.dtype.kind != "f":
            return same
        same |= np.isnan(was) & np.isnan(now)
        if not loose:
            return same
        finite = np.abs(was[np.isfinite(was)])
        scale = float(finite.max()) if finite.size else 1.0
        close = np.abs(was.astype(np.float64) - now) <= TOLERANCE[was.dtype.name] * max(scale, 1.0)
        return same | close | (~np.isfinite(was) & ~np.isfinite(now))
