"""Compare what the cost model predicts with what is measured: `python bench/predicted.py`.

Every kernel of every workload is timed inside of its program, and predicted from its loops, its
schedule and the machine as it was measured. Kernels under a microsecond are listed apart: a look at
the clock takes 20 ns. `--held-out` measures shapes drawn anew, which nothing is tuned by, instead;
`--page` measures both and writes docs/predicted.md; `--threads 2` is for two threads; `--worst 20`
prints what is furthest off; `--speed` counts predictions in a millisecond; `--functions` measures
what `stepwell.analysis.cost.work.SLOTS` has.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SHORT = 1e-6
CLOCK = 15e-9
"""Seconds of the two looks at the clock around a launch, as an empty kernel shows."""
ROUNDS = 3
GOALS = (0.2, 0.5)


@dataclass(frozen=True)
class Kernel:
    """One kernel of a workload: seconds of a launch."""

    workload: str
    name: str
    kind: str
    measured: float
    predicted: float
    bound: str

    @property
    def error(self) -> float:
        """The error of the prediction, relative to the measured time."""
        return self.predicted / self.measured - 1


def kernels_of(workload: Any, rounds: int = ROUNDS) -> Iterator[Kernel]:
    """Compile a workload, time its kernels and predict them."""
    from stepwell.analysis.cost import predict
    from stepwell.analysis.cost.program import Program
    from stepwell.analysis.levels import schedule_of
    from stepwell.dialects import kernel
    from stepwell.dialects.kernel.levels import Schedule
    from stepwell.dialects.parsing import parse_module
    from stepwell.driver.registry import registry
    from stepwell.runtime.measuring import measured_machine

    compiled, arguments = compiled_with(workload)
    machine = measured_machine()
    module = parse_module(registry().context(), compiled.text("buffers"), workload.name)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, kernel.FuncOp)}
    program = Program(module)
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for each in compiled.profile(*arguments).kernels:
            times.setdefault(each.kernel.name, []).append(each.seconds / each.calls)
    for name, seconds in times.items():
        function = functions[name]
        shapes, _ = program.shapes(function)
        idle, unaligned = program.idle.get(name, {}), program.unaligned.get(name, ())
        schedule = schedule_of(function) or Schedule()
        found = predict(function, schedule, machine, shapes, idle, unaligned)
        least = max(min(seconds) - CLOCK, CLOCK)
        yield Kernel(workload.name, name, kind_of(function), least, found.seconds, found.bound)


def compiled_with(workload: Any) -> tuple[Any, list[Any]]:
    """Return a workload compiled, weights being arguments, and what to call it with."""
    from peers.stepwell import StepwellOps
    from workloads import RATE

    import stepwell as sw

    ops = StepwellOps()
    weights, inputs = workload.data()
    if workload.loss is None:
        arguments, n = [*inputs.values(), *weights.values()], len(inputs)
        traced: Any = sw.jit(
            lambda *a: workload.model(ops, dict(zip(weights, a[n:])), dict(zip(inputs, a)))
        )
        return traced.trace(*arguments).compile(), arguments
    arguments, n = [*weights.values(), *inputs.values()], len(weights)

    def loss(*a: Any) -> Any:
        return workload.loss(ops, dict(zip(weights, a)), dict(zip(inputs, a[n:])))

    slopes: Any = sw.value_and_grad(loss, argnums=tuple(range(n)))

    def step(*a: Any) -> Any:
        value, down = slopes(*a)
        return (value, *(w - RATE * d for w, d in zip(a, down)))

    stepped: Any = sw.jit(step)
    return stepped.trace(*arguments).compile(), arguments


def kind_of(function: Any) -> str:
    """Return the class of a kernel that a row of the table is of."""
    from xdsl.dialects.linalg import ops as linalg

    from stepwell.analysis.structured import contracts, indices, is_parallel

    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    sums = [op for op in ops if not all(is_parallel(op))]
    if any(contracts(op) for op in sums):
        windows = any(len(op.iterator_types) - sum(is_parallel(op)) > 1 for op in sums)
        return "convolutions" if windows else "products"
    if any(len(e.used_dims()) > 1 for op in sums for index in indices(op) for e in index):
        return "windows"
    if sums:
        return "reductions"
    if any(len(op.body.block.ops) > 1 for op in ops):
        return "elementwise"
    return "copies" if ops else "fills"


def summary(found: Sequence[Kernel]) -> tuple[float, float, float]:
    """Return the median and the ninth decile of the error, and the its sign."""
    errors = np.array([k.error for k in found])
    return (
        float(np.median(abs(errors))),
        float(np.quantile(abs(errors), 0.9)),
        float(np.median(errors)),
    )


def table(found: Sequence[Kernel]) -> list[str]:
    """Return the lines of a table, a class of kernels each."""
    long = [k for k in found if k.measured >= SHORT]
    rows = [
        "| kernels | | median error | p90 | its sign |",
        "|---|---:|---:|---:|---:|",
    ]
    groups: list[tuple[str, list[Kernel]]] = [("all of 1 us and more", long)]
    groups += [
        (kind, [k for k in long if k.kind == kind]) for kind in sorted({k.kind for k in long})
    ]
    groups.append(("shorter than 1 us", [k for k in found if k.measured < SHORT]))
    for name, group in groups:
        if group:
            median, ninth, signed = summary(group)
            rows.append(f"| {name} | {len(group)} | {median:.0%} | {ninth:.0%} | {signed:+.0%} |")
    return rows


def all_kernels(
    pattern: str = "*", rounds: int = ROUNDS, is_held_out: bool = False
) -> list[Kernel]:
    """Measure and predict the kernels of all workloads of a name like ``pattern``."""
    from workloads import WORKLOADS, held_out

    found: list[Kernel] = []
    for name, workload in (held_out() if is_held_out else WORKLOADS).items():
        if any(fnmatchcase(name, part) for part in pattern.split(",")):
            found += kernels_of(workload, rounds)
    return found


def worst(found: Iterable[Kernel], count: int) -> Iterator[str]:
    """Yield lines about the kernels that are furthest off."""
    ranked = sorted(found, key=lambda k: -abs(np.log(max(k.predicted / k.measured, 1e-9))))
    for k in ranked[:count]:
        yield (
            f"{k.error:+7.0%} {k.workload:32s} {k.name:32s} measured {k.measured * 1e6:10.2f} us "
            f"predicted {k.predicted * 1e6:10.2f} us, bound by {k.bound}"
        )


def functions() -> Iterator[str]:
    """Measure functions of one argument, and yield what `SLOTS` says beside it."""
    import stepwell as sw
    import stepwell.numpy as snp
    from stepwell.analysis.cost.work import SLOTS
    from stepwell.runtime.measuring import measured_machine

    machine, many = measured_machine(), 4096
    named = {"atan": "arctan", "asin": "arcsin", "acos": "arccos", "asinh": "arcsinh"}
    for kind, slots in SLOTS.items():
        name = kind.name.removeprefix("math.")
        function = getattr(snp, named.get(name, name), None)
        if function is None:
            continue
        for column, dtype in enumerate((np.float32, np.float64)):
            x = np.linspace(0.1, 0.9, many).astype(dtype)
            try:
                compiled = sw.jit(function).trace(x).compile()  # pyright: ignore[reportUnknownMemberType]
            except TypeError:  # of two arguments
                continue
            seconds = compiled.profile(x).kernels[0].seconds - CLOCK
            passes = many * np.dtype(dtype).itemsize * 8 / machine.unit_bits
            found = seconds * machine.clock * 1e6 * machine.vector_ports / passes
            yield f"{name:8s} {np.dtype(dtype).name}: {found:6.1f}, the table has {slots[column]}"


def speed() -> float:
    """Return the predictions in a millisecond: blocks of a product of 1024, read once."""
    from workloads import WORKLOADS

    from stepwell.analysis.cost import Predictor
    from stepwell.analysis.levels import kernel_levels
    from stepwell.dialects import kernel
    from stepwell.dialects.parsing import parse_module
    from stepwell.driver.registry import registry
    from stepwell.runtime.measuring import measured_machine
    from stepwell.transforms.kernels.schedule.variants import variants

    compiled, _ = compiled_with(WORKLOADS["gemm_1024"])
    module = parse_module(registry().context(), compiled.text("buffers"), "gemm_1024")
    (function,) = (op for op in module.ops if isinstance(op, kernel.FuncOp))
    machine = measured_machine()
    schedules = [each for some in variants(kernel_levels(function), machine) for each in some]
    predictor, begin = Predictor(function, machine), time.process_time()
    for schedule in schedules:
        predictor.predict(schedule)
    return len(schedules) / (time.process_time() - begin) / 1e3


def about(found: Sequence[Kernel]) -> str:
    """Name the processor and the threads that were measured on."""
    from limits import processor

    from stepwell.core.machine import thread_count

    return (
        f"{date.today()}, {processor()}, {thread_count()} threads, load {os.getloadavg()[0]:.1f}; "
        f"{len(found)} kernels of {len({k.workload for k in found})} workloads."
    )


def main() -> None:
    """Measure, predict, print; write the page where that is asked for."""
    from stepwell.core.machine import this_machine

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", default="*", help="names or patterns, with commas")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--worst", type=int, default=0, help="so many kernels are printed")
    parser.add_argument("--page", action="store_true", help="write docs/predicted.md")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--held-out", action="store_true", help="measure shapes drawn anew")
    parser.add_argument("--threads", type=int, default=1, help="threads of the programs")
    parser.add_argument("--speed", action="store_true", help="count predictions in a millisecond")
    options = parser.parse_args()
    if options.page and options.threads != 1:
        parser.error("docs/predicted.md is about one thread: leave --page out")
    os.environ["STEPWELL_THREADS"] = str(options.threads)
    if options.speed:
        print(f"{speed():.1f} predictions in a millisecond")
        return
    if options.functions:
        for line in functions():
            print(line, flush=True)
        return
    found = all_kernels(options.workloads, options.rounds, options.held_out)
    rows = table(found)
    print(about(found), *rows, *worst(found, options.worst), sep="\n")
    if options.page:
        others = all_kernels(options.workloads, options.rounds, True)
        print(about(others), *table(others), *worst(others, options.worst), sep="\n")
        written = HERE.parent / "docs" / "predicted.md"
        processor = this_machine().name or "another processor"
        written.write_text(page(written.read_text(), processor, found, others))


HEAD = """\
# What the cost model predicts, beside what is measured

`stepwell explain` prints what the model of [note 073](notes/073-one-cost-model.md) predicts;
this page says how far off it is. `python bench/predicted.py --page` measures all kernels of all
workloads, then those of shapes drawn anew, and writes the section of the processor at hand;
`--threads 2` without `--page` prints the figures of two threads.

The error is the difference as a part of what was measured. Goals: median 20 %, ninth decile 50 %.
"""


def page(old: str, processor: str, found: Sequence[Kernel], others: Sequence[Kernel]) -> str:
    """Return docs/predicted.md with the section of a processor written anew.

    ``others`` are kernels that nothing is tuned by.
    """
    sections = {each.partition("\n")[0]: each.rstrip() for each in old.split("\n## ")[1:]}
    section = [
        processor,
        "",
        f"{about(found)} The least of {ROUNDS} profiles.",
        "",
        *table(found),
        "",
        f"Of shapes drawn anew, by which no term was mended: {about(others)}",
        "",
        *table(others),
    ]
    sections[processor] = "\n".join(section)
    return HEAD + "".join(f"\n## {sections[each]}\n" for each in sorted(sections))


if __name__ == "__main__":
    main()
