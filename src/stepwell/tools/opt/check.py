"""--check: run the module in the reference interpreters before and after every pass.

`trials` makes the inputs, `contracts` defines equality, `blame` finds the op at fault. Compared are
results, the contents of buffers passed by the caller, and the effects of ops that only have
effects: calls of declared functions, prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, TensorType
from xdsl.ir import SSAValue

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.guards import is_checked
from stepwell.core.rules import MissingRule
from stepwell.dialects.calling import RESOURCE, ROLE, attributes_of, call
from stepwell.dialects.checks import is_served
from stepwell.dialects.faults import in_words
from stepwell.dialects.interpreter import Exhausted, Interpreter
from stepwell.dialects.nd import creation
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.printing import text_of
from stepwell.dialects.readings import Array
from stepwell.dialects.types import dtype, place_of
from stepwell.dialects.upstream.memory import from_memory
from stepwell.dialects.upstream.scalar import element_of
from stepwell.driver.pass_pipeline import Step
from stepwell.tools.opt.blame import Run, Search, name_of, spelled
from stepwell.tools.opt.contracts import Contract
from stepwell.tools.opt.derivatives import check_derivative
from stepwell.tools.opt.trials import Inputs, as_given, trials
from stepwell.transforms.graph.derive import Derive
from stepwell.transforms.passes import Pass

FUEL = 2_000_000
"""Ops that one call may evaluate before the check gives up on it."""
OPS_AFTER_A_PASS = 200_000
"""Ops that all trials may evaluate after one pass; with more, there are fewer trials."""
OPS_IN_ALL = 1_000_000
"""Ops that all trials may evaluate after all passes. Beyond it, each combination of sizes has one
input; beyond twice as many, none."""
MIN_TRIALS = 2
"""Trials with the same sizes that run regardless of their time."""

_KINDS = {"float16": "f16", "float32": "f32", "float64": "f64"}


@dataclass(frozen=True)
class _Outcome:
    """The observable behaviour of one call."""

    results: Sequence[Array]
    """The results, then the caller's buffers."""
    effects: Sequence[tuple[str, Sequence[Array]]]
    """Names of ops with effects, and their operands."""
    raised: str = ""
    """The exception that a check of the program raised."""


class _Unserved(ValueError):
    """A function says that it does not serve calls of these sizes: its results mean nothing."""


@dataclass(eq=False)
class _Trial:
    entry: str
    inputs: Inputs
    outcome: _Outcome
    kinds: Sequence[str]
    """The dtypes of the results, which lower floors no longer have for all."""
    exhausted: bool = False
    """Whether it has run out of fuel: on lower floors it would again."""


@dataclass
class Checker:
    """Runs each function before the first pass, and compares after each pass."""

    module: ModuleOp
    tell: Callable[[str], None]
    _trials: list[_Trial] = field(default_factory=list[_Trial], init=False)
    _weights: dict[str, Array] = field(default_factory=dict[str, Array], init=False)
    _endless: int = field(default=0, init=False)
    """Inputs with which a function ran out of fuel before any pass: less is spent on the next."""
    _spent: int = field(default=0, init=False)
    """The number of ops evaluated after passes."""
    _before: ModuleOp = field(init=False)
    """The module before the pass that runs next."""
    _text: str = field(init=False)
    """Its text: if a pass does not change it, it need not run again."""

    def __post_init__(self) -> None:
        self._weights = _random_weights(self.module)
        for op in self.module.ops:
            if isinstance(op, func.FuncOp) and op.body.blocks and _is_public(op):
                self._begin(op)
        self._before = self.module.clone()
        self._text = text_of(self.module, generic=True)

    def _begin(self, function: func.FuncOp) -> None:
        """Run a function on all of its trial inputs."""
        name, begun, spent = function.sym_name.data, len(self._trials), 0
        reasons: list[str] = []
        odd = ""
        for inputs in _trial_inputs(self.module, function, reasons):
            if spent > OPS_AFTER_A_PASS and inputs.rank >= MIN_TRIALS:
                continue
            fuel = FUEL if self._endless == 0 else OPS_AFTER_A_PASS
            interpreter = Interpreter(self.module, self._weights, fuel=fuel)
            try:
                outcome = self._run(interpreter, name, inputs)
                self._trials.append(_Trial(name, inputs, outcome, _kinds(function)))
            except (ValueError, IndexError, LookupError, MemoryError, Exhausted) as error:
                self._endless += isinstance(error, Exhausted)
                reasons.append(_why_not_run(error))
                if isinstance(error, MissingRule):
                    break
            except (AssertionError, TypeError) as error:  # assumptions of the interpreter
                odd = f"the interpreter fails with {inputs.what} ({in_words(error)})"
            finally:
                spent += fuel - max(interpreter.fuel or 0, 0)
        if len(self._trials) == begun:
            reason = odd or (reasons or ["it has no inputs"])[-1]
            self.tell(f"@{name} is not checked: {reason}")
        elif odd:
            self.tell(f"@{name} is checked with other inputs only: {odd}")

    def _run(self, interpreter: Interpreter, entry: str, inputs: Inputs) -> _Outcome:
        function = _function(interpreter.module, entry)
        assert function is not None
        interpreter.effects = []
        given = as_given(inputs, function)
        if not is_served(function, given):
            raise _Unserved(f"it serves no call with {inputs.what} (nd.served)")
        try:
            results = list(call(interpreter, entry, given))
        except Exception as error:
            if not is_checked(error):
                raise
            return _Outcome([], [], f"{type(error).__name__}: {error}")
        for number, (value, argument) in enumerate(zip(given, function.args, strict=False)):
            is_buffer = isinstance(argument.type, MemRefType)
            if is_buffer and ROLE not in attributes_of(function, number):
                results.append(np.asarray(from_memory(value, argument.type)))
        effects = [(name_of(op), values) for op, values in interpreter.effects]
        return _Outcome(results, effects)

    def compare(self, module: ModuleOp, step: Step) -> None:
        """Run every trial again; raise `CompileError` at the op of the first difference."""
        if (text := text_of(module, generic=True)) == self._text:
            return
        self._text = text
        if isinstance(step.pass_, Derive):
            self._check_derivative(module, step.pass_)
        contract = Contract(step.pass_.numerics if isinstance(step.pass_, Pass) else "bit-exact")
        left = [trial for trial in self._trials if not trial.exhausted]
        spent = 0
        for trial in sorted(left, key=lambda t: t.inputs.rank):
            few = 1 if self._spent > OPS_IN_ALL else MIN_TRIALS
            if trial.inputs.rank >= few and (few < MIN_TRIALS or spent > OPS_AFTER_A_PASS):
                self._trials.remove(trial)
            elif self._spent > 2 * OPS_IN_ALL:
                trial.exhausted = True
            else:
                used = self._compare(module, step, trial, contract)
                spent, self._spent = spent + used, self._spent + used
        for entry, count in Counter(t.entry for t in left if t.exhausted).items():
            total = sum(t.entry == entry for t in self._trials)
            about = f"@{entry} is not checked with {count} of {total} inputs after '{step}'"
            self.tell(f"{about} and later: it runs too long, or needs too much memory")
        self._before = module.clone()

    def _check_derivative(self, module: ModuleOp, pass_: Derive) -> None:
        """Compare a derivative with finite differences; then check it like any function."""
        if reason := check_derivative(module, pass_):
            self.tell(f"@{pass_.derived} is not compared with differences: {reason}")
        function = _function(module, pass_.derived)
        assert function is not None
        before, self.module = self.module, module
        self._begin(function)
        self.module = before

    def _compare(self, module: ModuleOp, step: Step, trial: _Trial, contract: Contract) -> int:
        """Run a trial again; return the number of ops evaluated."""
        function = _function(module, trial.entry)
        if function is None:
            message = f"pass '{step}' removed the function @{trial.entry}"
            raise CompileError(Diagnostic("error", message))
        interpreter = Interpreter(module, self._weights, fuel=FUEL)
        try:
            outcome = self._run(interpreter, trial.entry, trial.inputs)
        except _Unserved:
            self._trials.remove(trial)
            if all(each.entry != trial.entry for each in self._trials):
                said = "serves no sizes of the inputs that it is checked with"
                self.tell(f"@{trial.entry} is not checked after '{step}' and later: it {said}")
            return 0
        except (Exhausted, MemoryError):
            trial.exhausted = True
            return FUEL
        except Exception as error:
            message = f"after pass '{step}' @{trial.entry} cannot be run ({trial.inputs.what}): "
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CompileError(Diagnostic("error", message + said, place_of(function))) from error
        if contract.exact or not trial.inputs.huge:
            found = _other_error(trial.outcome, outcome)
            if not found and not outcome.raised:
                found = contract.difference(
                    trial.outcome.results, outcome.results, trial.kinds
                ) or _other_effects(trial.outcome, outcome, contract)
            if found:
                raise self._difference(module, step, trial, contract, found)
        trial.outcome = outcome
        return FUEL - (interpreter.fuel or 0)

    def _difference(
        self, module: ModuleOp, step: Step, trial: _Trial, contract: Contract, found: str
    ) -> CompileError:
        """Return an error that describes the difference, at the op to blame."""
        function = _function(module, trial.entry)
        message = f"pass '{step}' changes "
        about = "" if found.startswith("effects") else f"the result of @{trial.entry}: "
        at = place_of(function) if function is not None else None
        blamed = self._blamed(module, trial, contract, found)
        note = f"found with {trial.inputs.what}"
        if blamed is not None:
            at = place_of(blamed) or at
            note = f"the first op with another value is {spelled(blamed)}; {note}"
        return CompileError(Diagnostic("error", message + about + found, at).with_note(note))

    def _blamed(self, module: ModuleOp, trial: _Trial, contract: Contract, found: str) -> Any:
        runs: list[Run] = []
        for each in (self._before, module):
            run = Run()
            interpreter = Interpreter(each, self._weights, fuel=FUEL)
            interpreter.watch = run.watch
            self._run(interpreter, trial.entry, trial.inputs)
            runs.append(run)

        def same(a: Array, b: Array) -> bool:
            return bool(contract.same(a, b, _KINDS.get(a.dtype.name, "")).all())

        search = Search(runs[0], runs[1], same)
        words = found.split()
        if words[0] != "result":
            return search.in_order()
        return search.from_result(self._before, module, trial.entry, int(words[1]))


def _why_not_run(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return in_words(error)
    if type(error) is KeyError:  # a weight that could not be made
        return f"there is no {error}"
    return str(error) or "it runs too long"


def _trial_inputs(module: ModuleOp, function: func.FuncOp, reasons: list[str]) -> Iterator[Inputs]:
    """Yield the trial inputs of a function; append to ``reasons`` why there are no more."""
    try:
        yield from trials(module, function)
    except (TypeError, ValueError, MemoryError) as error:  # too many axes, or too many elements
        reasons.append(_why_not_run(error))
    except (AssertionError, KeyError):  # an argument's type has no dtype
        reasons.append("it takes arguments that are not arrays")


def _function(module: ModuleOp, name: str) -> func.FuncOp | None:
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    return None


def _kinds(function: func.FuncOp) -> list[str]:
    """Return the dtypes of results, and of the caller's buffers."""
    given = [a.type for n, a in enumerate(function.args) if ROLE not in attributes_of(function, n)]
    outputs = [
        a.type
        for n, a in enumerate(function.args)
        if attributes_of(function, n).get(ROLE) == StringAttr("output")
    ]
    results = [*function.function_type.outputs.data, *outputs]
    types = [*results, *(t for t in given if isinstance(t, MemRefType))]
    return [_kind(type) for type in types]


def _kind(type: Any) -> str:
    return str(element_of(type))


def _other_error(was: _Outcome, now: _Outcome) -> str:
    """Describe the difference of two exceptions of checks."""
    if was.raised == now.raised:
        return ""
    return f"it raises {now.raised or 'nothing'}, it raised {was.raised or 'nothing'} before"


def _other_effects(was: _Outcome, now: _Outcome, contract: Contract) -> str:
    """Describe the difference of effects; "" if ops with effects were lowered to others."""
    before = Counter(name for name, _ in was.effects)
    after = Counter(name for name, _ in now.effects)
    if set(after) - set(before):  # lowered: another op has the effect now
        return ""
    for name in before:
        if before[name] != after[name]:
            return f"effects: {name} took place {before[name]} times, now {after[name]}"
    for (name, given), (other, taken) in zip(was.effects, now.effects, strict=True):
        if name != other:
            return f"effects: {name} took place first, now {other}"
        kinds = [_KINDS.get(np.asarray(each).dtype.name, "") for each in given]
        if said := contract.difference(given, taken, kinds):
            return f"effects: what {name} is given: {said.replace('result', 'operand', 1)}"
    return ""


def _random_weights(module: ModuleOp) -> dict[str, Array]:
    """Return a random array for each named weight, the same for every pass."""
    found: dict[str, Array] = {}
    for op in module.walk():
        if isinstance(op, creation.ConstantOp) and isinstance(op.value, creation.ResourceAttr):
            _add_weight(found, op.value.key.data, op.results[0])
        elif isinstance(op, func.FuncOp) and op.body.blocks:
            for argument, each in zip(op.args, op.arg_attrs or (), strict=False):
                named = isinstance(name := each.data.get(RESOURCE), StringAttr)
                if named and isinstance(argument.type, TensorType):
                    _add_weight(found, name.data, argument)
    return found


def _add_weight(found: dict[str, Array], name: str, value: SSAValue) -> None:
    kind = dtype(element_of(value.type))
    random = np.random.default_rng(len(found))
    try:
        values = random.integers(0, 2, shape_of(value))
        if kind.kind == "float":
            values = random.standard_normal(values.shape)
        found.setdefault(name, kind.round(values.astype(kind.numpy)))
    except (ValueError, MemoryError):  # functions that read it are not checked, as it is missing
        return


def _is_public(function: func.FuncOp) -> bool:
    private = function.sym_visibility is not None and function.sym_visibility.data == "private"
    return not private and "." not in function.sym_name.data
