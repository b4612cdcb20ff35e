"""stepwell explain: which schedule each kernel has, why, and how long it should take."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from os.path import basename

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute

from stepwell.compiled import compile, fitting_lock
from stepwell.core.deep import with_deep_stack
from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.machine import Machine, machine_for
from stepwell.dialects import kernel
from stepwell.dialects.types import places
from stepwell.lowering.schedule.predicting import Rates, predicted
from stepwell.lowering.schedule.reasons import Reasons, reasons_given, spell_bytes
from stepwell.modules import ModuleText, read_module
from stepwell.pipeline import Descent, Source
from stepwell.runtime.limits import machine_limits
from stepwell.runtime.profiling import spans, spell_seconds
from stepwell.tools.locking import lock_of
from stepwell.tools.running import inputs_of
from stepwell.transforms.costs import Cost

NOTHING = "nothing was there to be chosen"


def explain_command(options: argparse.Namespace) -> int:
    """Schedule a module and say of each kernel what was chosen and why."""
    module = read_module(options.file, options.weights)
    machine = machine_for(options.target, options.machine)
    lock = lock_of(options)
    used = str(lock) if lock and fitting_lock(lock, machine) else ""
    source = Source(module.text, module.name, options.entry, machine, used)
    descent, reasons = with_deep_stack(lambda: _scheduled(source))
    kernels = [op for op in descent.module.ops if isinstance(op, kernel.FuncOp)]
    chosen = [op for op in kernels if fnmatchcase(op.sym_name.data, options.kernel)]
    if not chosen and options.kernel != "*":
        names = [op.sym_name.data for op in kernels]
        help = did_you_mean(options.kernel, names) or f"there is {', '.join(names) or 'none'}"
        raise CompileError(Diagnostic("error", f"no kernel '{options.kernel}'", help=help))
    rates = _rates(machine)
    measured = _measured(module, options) if options.measure else {}
    parts = [
        "\n".join(_explained(op, descent.costs, reasons, rates, measured.get(op.sym_name.data)))
        for op in chosen
    ]
    print("\n\n".join(parts) if parts else "the module has no kernels")
    return 0


def _scheduled(source: Source) -> tuple[Descent, Reasons]:
    descent = Descent.of(source)
    with reasons_given() as reasons:
        descent.to("kernels")
    return descent, reasons


def _rates(machine: Machine) -> Rates:
    limits = machine_limits(machine.threads)
    lanes = machine.vector_bits // 32
    vectors = limits.fma * 1e9 / (2 * lanes)
    return Rates(machine.threads, lanes, vectors, lambda bytes: limits.seconds(0, bytes))


def _measured(module: ModuleText, options: argparse.Namespace) -> dict[str, float]:
    """Return the seconds of one launch of each kernel, on arrays made up where none are given."""
    compiled = compile(
        module,
        options.entry,
        target=options.target,
        machine=options.machine,
        lock=lock_of(options),
    )
    if options.random is None and not options.input:
        options.random = 0
    found = compiled.profile(*inputs_of(compiled, options))
    return {each.kernel.name: each.seconds / each.calls for each in found.kernels}


def _explained(
    function: kernel.FuncOp,
    costs: Mapping[str, Cost],
    reasons: Reasons,
    rates: Rates,
    measured: float | None,
) -> Iterator[str]:
    """Yield the lines about one kernel."""
    name = function.sym_name.data
    cost = costs[name].known
    where = {(basename(p.file), p.line) for p in places(function.location)}
    lines = spans([f"{file}:{line}" for file, line in sorted(where)])
    yield f"kernel {name}" + (f", from {lines}" if lines else "")
    yield f"  does       {_spelled(cost)}"
    yield f"  schedule   {_choices(function)}"
    for number, reason in enumerate(reasons.get(name, [NOTHING])):
        yield f"  {'why' if number == 0 else '   '}        {reason}"
    time = predicted(function, cost.bytes, rates)
    yield f"  predicted  {spell_seconds(time) if time is not None else 'depends on the sizes'}"
    if measured is not None:
        yield f"  measured   {spell_seconds(measured)}"


def _spelled(cost: Cost) -> str:
    flops = "operations only the run knows" if cost.flops is None else f"{cost.flops:,} operations"
    bytes = "bytes only the run knows" if cost.bytes is None else spell_bytes(cost.bytes)
    return f"{flops}, {bytes} read and written"


def _choices(function: kernel.FuncOp) -> str:
    """Spell the attributes that are the schedule: of the kernel, then of its ops."""
    said = [
        f"{name.removeprefix('kernel.')} {_value(value)}".rstrip()
        for name, value in function.attributes.items()
        if name.startswith("kernel.")
    ]
    for op in function.body.block.ops:
        loops = op.attributes.get("kernel.loops")
        if isinstance(op, linalg.GenericOp) and isinstance(loops, kernel.LoopsAttr):
            name = next((r.name_hint for r in op.results if r.name_hint), op.name)
            sizes = loops.axis.data, loops.width.data, loops.interleave.data
            said.append("{}: loop {} by {} x {}".format(name, *sizes))
    return ", ".join(said) or "none"


def _value(value: Attribute) -> str:
    if isinstance(value, UnitAttr):
        return ""
    if isinstance(value, DenseArrayBase):  # numbers of arguments
        return ", ".join(str(n) for n in value.get_values())
    numbers: Sequence[Attribute] = value.data if isinstance(value, ArrayAttr) else [value]
    said = [str(n.value.data) if isinstance(n, IntegerAttr) else str(n) for n in numbers]
    return " x ".join(said)
