"""stepwell explain: the schedule of each kernel, the reasons, and its predicted time."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from os.path import basename

import numpy as np

from stepwell.analysis.constness import entries
from stepwell.analysis.cost import Breakdown, predict
from stepwell.analysis.cost.accesses import ASSUMED
from stepwell.analysis.cost.program import Program
from stepwell.analysis.costs import Cost
from stepwell.analysis.levels import schedule_of
from stepwell.analysis.sizes import Sizes
from stepwell.api.modules import ModuleText
from stepwell.core.deep import with_deep_stack
from stepwell.core.diagnostics import did_you_mean
from stepwell.core.escape import quoted
from stepwell.core.machine import Machine, this_machine
from stepwell.core.source import Source
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule
from stepwell.dialects.kernel.versions import VERSIONS, versions_in
from stepwell.dialects.types import places
from stepwell.driver.lowering import Lowering
from stepwell.runtime import measuring
from stepwell.runtime.profiling import spans, spell_seconds
from stepwell.tools.inputs import fail, inputs_of, module_of, program_of, source_of
from stepwell.tools.launch_conditions import conditions_of
from stepwell.transforms.kernels.schedule.reasons import Reasons, explanations, spell_bytes
from stepwell.transforms.kernels.versions import version

UNCOUNTED = Cost(None, None, 32)
"""The cost of a kernel that is written as loops: its operations are not counted."""
SHOWN = 0.01
"""The fraction of a prediction below which a term is not printed."""
UNSAID = "fixed: this kernel left no choice"


@dataclass(frozen=True)
class Scheduled:
    """A module on the floor of kernels: its schedules and their predicted costs."""

    lowering: Lowering
    reasons: Reasons
    machine: Machine
    sizes: Sequence[int] | None
    """The value of each `?` of the arguments, as far as it is given."""

    @cached_property
    def program(self) -> Program:
        """The launches of the kernels."""
        return Program(self.lowering.module, self.sizes)

    @cached_property
    def conditions(self) -> dict[str, str]:
        """The sizes for which kernels are launched, where the host decides by sizes."""
        return conditions_of(self.lowering.module)

    @property
    def kernels(self) -> list[kernel.FuncOp]:
        """The kernels, in order."""
        return [op for op in self.lowering.module.ops if isinstance(op, kernel.FuncOp)]

    def cost(self, function: kernel.FuncOp) -> Cost:
        """Return the cost of a launch of a kernel."""
        cost = self.lowering.costs.get(function.sym_name.data, UNCOUNTED)
        return cost.known if self.sizes is None else cost.at(self.sizes)

    def predicted(self, function: kernel.FuncOp) -> tuple[Breakdown, bool]:
        """Return the predicted time of a launch by terms, and whether sizes were assumed."""
        shapes, assumed = self.program.shapes(function)
        name, schedule = function.sym_name.data, schedule_of(function) or Schedule()
        idle, unaligned = self.program.idle.get(name, {}), self.program.unaligned.get(name, ())
        found = predict(function, schedule, self.machine, shapes, idle, unaligned)
        return found, bool(assumed)


def explain_command(options: argparse.Namespace) -> int:
    """Schedule a module and print the choices for each kernel, with reasons."""
    module = module_of(options)
    source = source_of(module, options)
    lowering, reasons = with_deep_stack(lambda: _scheduled(source))
    sizes, measured = _sizes_and_times(module, options, lowering)
    found = Scheduled(lowering, reasons, _with_measurements(source.machine), sizes)
    chosen = [op for op in found.kernels if fnmatchcase(op.sym_name.data, options.kernel)]
    if not chosen and options.kernel != "*":
        names = [op.sym_name.data for op in found.kernels]
        help = did_you_mean(options.kernel, names) or f"there is {', '.join(names) or 'none'}"
        fail(f"no kernel '{options.kernel}'", help)
    parts = ["\n".join(_explained(op, found, measured.get(op.sym_name.data))) for op in chosen]
    print("\n\n".join(parts) if parts else "the module has no kernels")
    return 0


def _scheduled(source: Source) -> tuple[Lowering, Reasons]:
    lowering = Lowering.of(source)
    with explanations() as reasons:
        lowering.to("kernels")
    return lowering, reasons


def _with_measurements(machine: Machine) -> Machine:
    """Return a machine with its measured values, if it is this machine."""
    here = this_machine()
    if (machine.name, machine.cores) != (here.name, here.cores):
        return machine
    return replace(machine, **measuring.measured())


def _sizes_and_times(
    module: ModuleText, options: argparse.Namespace, lowering: Lowering
) -> tuple[list[int] | None, dict[str, float]]:
    """Return the value of each `?`, if known, and the measured seconds of launches, if requested.

    Arrays that are not given are random.
    """
    if not options.measure and not options.input:
        (entry,) = (f for f in entries(lowering.module) if f.sym_name.data == lowering.source.entry)
        count = len(Sizes(entry.args).dims)
        return None if options.size is None and count else [options.size or 0] * count, {}
    compiled = program_of(options, module)
    if options.random is None and (options.measure and not options.input):
        options.random = 0
    arrays = inputs_of(compiled, options)
    sizes = compiled.signature.sizes([np.shape(array) for array in arrays])
    if not options.measure:
        return sizes, {}
    kernels = compiled.profile(*arrays).kernels
    return sizes, {each.kernel.name: each.seconds / each.calls for each in kernels}


def _explained(function: kernel.FuncOp, found: Scheduled, measured: float | None) -> Iterator[str]:
    """Yield the lines about one kernel."""
    name = function.sym_name.data
    where = {(quoted(basename(p.file)), p.line) for p in places(function.location)}
    lines = spans([f"{file}:{line}" for file, line in sorted(where)])
    yield f"kernel {quoted(name)}" + (f", from {lines}" if lines else "")
    yield f"  does       {_spelled(found.cost(function))}"
    if name in found.conditions:
        yield f"  launched   for {found.conditions[name]}"
    yield from _choices(function, found.reasons.get(name, [UNSAID]))
    for number, each in enumerate(versions_in(function.attributes.get(VERSIONS))):
        yield f"  version    {each.range}"
        reasons = found.reasons.get(f"{name} {each.range}", [])
        yield from _choices(version(function, number), reasons)
    if not (schedule_of(function) or Schedule()).has_groups:  # the model covers CPUs only
        yield from _times(*found.predicted(function), measured)
    elif measured is not None:
        yield f"  measured   {spell_seconds(measured)}"


def _times(found: Breakdown, assumed: bool, measured: float | None) -> Iterator[str]:
    """Yield the predicted time of a launch by terms, and the measured time."""
    threads = f" on {found.threads} threads" if found.threads > 1 else ""
    sizes = f", where sizes that only the run knows are {ASSUMED}" if assumed else ""
    yield f"  predicted  {spell_seconds(found.seconds)}{threads}, bound by {found.bound}{sizes}"
    parts = [(n, t) for n, t in found.parts() if t >= SHOWN * found.seconds]
    yield f"             {', '.join(f'{name} {spell_seconds(time)}' for name, time in parts)}"
    if measured is not None:
        yield f"  measured   {spell_seconds(measured)}, {measured / found.seconds:.2f} of it"


def _choices(function: kernel.FuncOp, reasons: Sequence[str]) -> Iterator[str]:
    """Yield the lines about the loops of a kernel: how they run, and why."""
    for number, line in enumerate(_schedule(function)):
        yield f"  {'schedule' if number == 0 else '        '}   {line}"
    for number, reason in enumerate(reasons):
        yield f"  {'why' if number == 0 else '   '}        {reason}"


def _spelled(cost: Cost) -> str:
    flops = "operations only the run knows" if cost.flops is None else f"{cost.flops:,} operations"
    bytes = "bytes only the run knows" if cost.bytes is None else spell_bytes(cost.bytes)
    return f"{flops}, {bytes} read and written"


def _schedule(function: kernel.FuncOp) -> Iterator[str]:
    """Yield the levels of a kernel's loops, a line per nest, then the rest of the schedule."""
    found = schedule_of(function) or Schedule()
    if found.levels or not found.ops:
        yield f"[{', '.join(map(str, found.levels))}]" if found.levels else "none"
    for number, levels in found.ops.items():
        yield f"op {number} [{', '.join(map(str, levels))}]"
