"""Lower a module through the stages of `pipeline`, and translate it to the target's text."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

from stepwell.dialects import upstream  # first: it defers the formats of xDSL's dialects

# isort: split
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, TensorType

from stepwell.analysis.costs import Cost, kernel_costs
from stepwell.analysis.equal_sizes import EqualSizes, equal_sizes
from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean, report
from stepwell.core.machine import Machine
from stepwell.core.placement import elements
from stepwell.core.signature import Kernel, Signature
from stepwell.core.source import Source
from stepwell.core.targets import Target, target_of
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.printing import text_of
from stepwell.dialects.types import place_of
from stepwell.dialects.upstream.constant_places import check_constant_places
from stepwell.dialects.verification import verify
from stepwell.driver.blame import blame
from stepwell.driver.check_lowered import Introduced, is_foreign
from stepwell.driver.floors import LOOPS, first_stage, guard
from stepwell.driver.kernel_batches import KernelBatches
from stepwell.driver.naming import result_names, write_result_names
from stepwell.driver.pass_pipeline import Step, steps_of
from stepwell.driver.pipeline import (
    SCHEDULING,
    STAGE_NAMES,
    STAGES,
    Stage,
    default_stages,
    stages_through,
)
from stepwell.driver.placing import place
from stepwell.driver.registry import Registry, registry
from stepwell.driver.reproducer import write_reproducer
from stepwell.transforms.graph.check_accesses import CheckAccesses
from stepwell.transforms.verifying import checks_all

assert upstream, "imported for its patches of upstream syntax"


@dataclass(frozen=True)
class PlacedPasses:
    """The passes that a module goes through, with those of packages and of the caller."""

    source: Source

    @cached_property
    def known(self) -> Registry:
        """All available dialects, passes and targets."""
        found = registry()
        for placement in self.source.passes:
            if (kind := placement.kind) is not None:
                found.add_pass(kind)
        return found

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages with all passes placed in them."""
        return place(default_stages(), [*self.known.placements, *self.source.passes])

    def steps(self, stage: Stage) -> Iterator[Step]:
        """Return the passes of ``stage``, with the options that `Machine` has too set from it."""
        for step in steps_of(stage, self.known.passes):
            yield (_with_machine_options if is_foreign(step.pass_) else _with_options_once)(
                step, self.source.machine, self.source.lock, self.source.call
            )


def _with_machine_options(step: Step, machine: Machine, lock: str, call: str) -> Step:
    """Return a step with its options set from the machine and the source."""
    return step.with_options(machine.options() | {"lock": lock, "call": call})


_with_options_once = lru_cache(1024)(_with_machine_options)


@dataclass
class Lowering:
    """Lowers one module through the stages; ``equal`` then tells which `?` must agree."""

    placed: PlacedPasses
    context: Context
    module: ModuleOp
    careful: bool = True
    """Whether to verify after each stage, for our own bugs: a third of the compile time."""
    equal: EqualSizes = field(default_factory=EqualSizes)
    costs: dict[str, Cost] = field(default_factory=dict[str, Cost])
    """The operations and bytes of each kernel, as far as they are known statically."""
    done: list[Step] = field(default_factory=list[Step])
    first: int = 0
    """The number of the first stage to run: the module is past the earlier ones."""
    introduced: Introduced = field(default_factory=Introduced)
    names: tuple[str, ...] = ()
    """The names of the results in the module."""

    @property
    def source(self) -> Source:
        """The input of the compilation."""
        return self.placed.source

    @classmethod
    def of(cls, source: Source, careful: bool = True) -> Lowering:
        """Parse and verify, and make the entry the only public function."""
        placed = PlacedPasses(source)
        context = placed.known.context()
        module = parse_module(context, source.text, source.name)
        verify(module)
        choose_entry(module, source.entry)
        first = first_stage(module)
        names = result_names(module, source.entry)
        lowering = cls(placed, context, module, careful, first=first, names=names)
        lowering._warn_of_idle()
        if first >= LOOPS:
            check_constant_places(module)
        elif first >= STAGE_NAMES.index("structured"):  # `check-sizes` did not run on these ops
            CheckAccesses().apply(context, module)
        if first > STAGE_NAMES.index("structured"):  # no later stage computes this
            lowering.equal = equal_sizes(module, source.entry)
        if first == LOOPS:  # no later stage counts the costs of kernels
            lowering.costs = kernel_costs(module)
        return lowering

    @classmethod
    def of_lower_floor(cls, source: Source, module: ModuleOp) -> Lowering:
        """Begin with a module that is on a lower floor, for the machine of ``source``."""
        placed = PlacedPasses(source)
        return cls(placed, placed.known.context(), module, careful=False)

    def _warn_of_idle(self) -> None:
        """Warn of requested passes in a stage above the floor of the module."""
        for stage in self.placed.stages[: self.first]:
            for name in {p.name for p in self.source.passes} & {
                e.partition("{")[0] for e in elements(stage.passes)
            }:
                message = f"pass '{name}' stands in stage '{stage.name}' and does not run"
                said = "the module is of loops, which no stage changes"
                if self.first < len(STAGES):
                    said = f"the module begins at stage '{STAGE_NAMES[self.first]}'"
                report(Diagnostic("warning", f"{message}: {said}"))

    def to(self, last: str = STAGES[-1].name) -> None:
        """Run every stage up to and including ``last``."""
        for stage in stages_through(last, self.placed.stages):
            self.run_stage(stage)

    def kernels_outlined(self) -> None:
        """Run the passes that outline the kernels, but not those that schedule them."""
        for stage in self.placed.stages[self.first :]:
            for step in self.placed.steps(stage):
                if step.pass_.name == SCHEDULING:
                    return
                self._run(stage, step, self.module, self.done)
                self.done.append(step)

    def after_scheduling(self) -> None:
        """Run the remaining passes on kernels that are scheduled."""
        steps = [(stage, step) for stage in self.placed.stages for step in self.placed.steps(stage)]
        place = next(k for k, (_, step) in enumerate(steps) if step.pass_.name == SCHEDULING)
        for stage, step in steps[place + 1 :]:
            self._run(stage, step, self.module, self.done)
            self.done.append(step)

    def run_stage(self, stage: Stage) -> None:
        """Run one stage, unless the module is below it; the earlier stages have run."""
        if STAGE_NAMES.index(stage.name) < self.first:
            return
        if stage.name == "buffers":
            write_result_names(self.module, self.source.entry, self.names)
        for step in self.placed.steps(stage):
            self._run(stage, step, self.module, self.done)
            self.done.append(step)
        self._finish(stage)

    def run_in_batches(self, stage: Stage, use: Callable[[ModuleOp], None]) -> None:
        """Run one stage on batches of kernels, and call ``use`` on each when it is lowered."""
        past = STAGE_NAMES.index(stage.name) < self.first
        steps = [] if past else list(self.placed.steps(stage))
        batches = KernelBatches(self.module)
        for some in batches:
            for k, step in enumerate(steps):
                self._run(stage, step, some, [*self.done, *steps[:k]])
            batches.gather(some)
            use(some)
        batches.put_back()
        self.done += steps
        self._finish(stage)

    def guard(self) -> None:
        """Record whether accesses of the module are to be compared with sizes."""
        guard(self.module, self.first if self.source.check_bounds else 0)

    def _finish(self, stage: Stage) -> None:
        if self.careful:
            _verify_own(stage, self.module)
        if stage.name == "structured":
            self.equal = equal_sizes(self.module, self.source.entry)
        if stage.name in ("kernels", "buffers"):  # bufferize adds kernels that copy views
            self.costs = kernel_costs(self.module, self.costs)

    def _run(self, stage: Stage, step: Step, module: ModuleOp, done: Sequence[Step]) -> None:
        try:
            step.run(self.context, module, self.introduced)
        except (CompileError, RecursionError):
            raise
        except Exception as error:
            raise self._fault(stage, step, done, error) from error

    def _fault(
        self, stage: Stage, step: Step, done: Sequence[Step], error: Exception
    ) -> CompileError:
        """Save the module as it was before ``step``, and report how to reproduce the crash."""
        if not self.careful:  # an earlier stage may be at fault: verifying finds out
            Lowering.of(self.source).to(stage.name)
        before = Lowering.of(self.source)
        for earlier in done:
            earlier.run(before.context, before.module)
        path = write_reproducer(None, before.module, [step])
        after = f" after pass '{done[-1]}'" if done else ""
        help = f"reproduce with: stepwell-opt --run-reproducer --debug {path}"
        found = blame(error)
        message = f"compiler bug in stage '{stage.name}', in pass '{step}'{after}"
        if found.package:
            message = f"{found.package} fails in pass '{step}' of stage '{stage.name}'"
        return CompileError(found.diagnostic(message, help))


@dataclass(frozen=True)
class Translation:
    """A program in its target's language, its declaration there, and its signature."""

    text: str
    header: str
    signature: Signature


def translate(
    source: Source, target: str, part: Callable[[str], None] | None = None
) -> Translation:
    """Return the program of ``source`` in the target's language.

    part : is called with each part of a large program of C as soon as it is written; the parts,
        compiled and linked, are equivalent to the program
    """
    record = target_of(target)
    source = replace(source, machine=record.limits(source.machine))
    lowering = Lowering.of(source, careful=checks_all())
    with _blaming_an_earlier_stage(lowering):
        emitted = _emitted(lowering, record) if part is None else _emitted_in_parts(lowering, part)
    signature = replace(
        emitted.signature,
        equal=lowering.equal.groups,
        fixed=lowering.equal.fixed,
        loops=lowering.equal.loops,
        kernels=tuple(_with_cost(k, lowering.costs) for k in emitted.signature.kernels),
        machine=source.machine.features,
    )
    return Translation(emitted.source, emitted.header, signature)


def _with_cost(kernel: Kernel, costs: Mapping[str, Cost]) -> Kernel:
    cost = costs.get(kernel.name)
    return kernel if cost is None else replace(kernel, **asdict(cost))


def _emitted(lowering: Lowering, target: Target) -> Any:
    """Lower a module and print it in the target's language."""
    lowering.to()
    lowering.guard()
    with _blaming_packages(f"fails in printing for target '{target.name}'"):
        return target.emitted(lowering.module, lowering.source.entry)


def _emitted_in_parts(lowering: Lowering, part: Callable[[str], None]) -> Any:
    """Lower a module and print it as C, kernel by kernel."""
    *upper, loops = lowering.placed.stages
    for stage in upper:
        lowering.run_stage(stage)
    lowering.guard()
    program = import_module("stepwell.lowering.emit").PartedProgram.of(lowering.module, part)
    with _blaming_packages("fails in printing for target 'c'"):
        lowering.run_in_batches(loops, program.write)
        return program.finish(lowering.source.entry)


@contextmanager
def _blaming_packages(message: str) -> Generator[None]:
    """Report exceptions in the rules of packages; those in our own code pass through as bugs."""
    try:
        yield
    except (CompileError, RecursionError):
        raise
    except Exception as error:
        if not (found := blame(error)).package:
            raise
        raise CompileError(found.diagnostic(f"{found.package} {message}")) from error


@contextmanager
def _blaming_an_earlier_stage(lowering: Lowering) -> Generator[None]:
    """On an exception, verify the earlier stages, which were not verified, and blame them."""
    try:
        yield
    except (CompileError, RecursionError):
        raise
    except Exception:
        if not lowering.careful:
            Lowering.of(lowering.source).to()
        raise


def stage_text(source: Source, stage: str) -> str:
    """Return the module after ``stage``."""
    lowering = Lowering.of(source)
    lowering.to(stage)
    return text_of(lowering.module)


def stage_texts(source: Source) -> dict[str, str]:
    """Return the module after each stage, keyed by the stage's name."""
    lowering = Lowering.of(source)
    texts: dict[str, str] = {}
    for stage in lowering.placed.stages:
        lowering.run_stage(stage)
        texts[stage.name] = text_of(lowering.module)
    return texts


def pipeline_text(source: Source) -> str:
    """Return each stage's passes with all options, as `stepwell-opt -p` takes them."""
    placed = PlacedPasses(source)
    rows = [f"{s.name}: {','.join(map(str, placed.steps(s)))}" for s in placed.stages]
    return "\n".join(rows)


def choose_entry(module: ModuleOp, entry: str) -> None:
    """Make ``entry`` the only public function; `CompileError` if there is no such function."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    names = [f.sym_name.data for f in functions]
    created = any(
        "kernel.computed_constant" in each.data for f in functions for each in f.arg_attrs or ()
    )
    if entry not in names:
        listed = ", ".join(f"@{n}" for n in names)
        help = did_you_mean(entry, names) or (f"there is {listed}" if listed else "")
        raise CompileError(Diagnostic("error", f"no function @{entry} in the module", help=help))
    for function in functions:
        if function.sym_name.data == entry:
            function.properties.pop("sym_visibility", None)
            _check_entry(function)
        elif created and function.sym_name.data == f"{entry}.constants":  # computes the weights
            function.properties.pop("sym_visibility", None)
        elif function.sym_name.data not in (f"{entry}.shapes", f"{entry}.arena"):  # buffer sizes
            function.properties["sym_visibility"] = StringAttr("private")


def _check_entry(function: func.FuncOp) -> None:
    """Fail where an argument or result of the entry is not an array."""
    name, block = function.sym_name.data, function.body.blocks.first
    arguments = list(block.args) if block else []
    found = [(f"argument %{a.name_hint or a.index}", a.type) for a in arguments]
    found += [(f"result {k}", t) for k, t in enumerate(function.function_type.outputs.data)]
    for what, kind in found:
        if not isinstance(kind, TensorType | MemRefType):
            message = f"{what} of @{name} is of type {kind}, but a program takes and gives tensors"
            help = "make it a tensor of one element; a size is known from the arguments' `?`"
            raise CompileError(Diagnostic("error", message, place_of(function), help=help))


def _verify_own(stage: Stage, module: ModuleOp) -> None:
    try:
        verify(module)
    except CompileError as error:
        said = error.diagnostic
        message = f"compiler bug: invalid IR after stage '{stage.name}': {said.message}"
        raise CompileError(
            replace(said, message=message, help="find the pass with stepwell-opt --verify-each")
        ) from None
