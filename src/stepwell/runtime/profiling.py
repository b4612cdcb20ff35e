"""Profile a program: every launch of a kernel, timed in the program itself.

The program is compiled again from its own text with a clock reading before and after every launch;
programs that are not profiled pay nothing.
"""

from __future__ import annotations

import ctypes
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.escape import quoted
from stepwell.core.machine import thread_limit
from stepwell.core.signature import Kernel, Signature, titled
from stepwell.runtime.cache import digest, disk_cache
from stepwell.runtime.entry import Entry
from stepwell.runtime.limits import Limits, machine_limits, measure_again
from stepwell.runtime.program import LIBRARY, SOURCE, Program, load_callee
from stepwell.runtime.timing import KEPT, LAUNCH, Run, Timed
from stepwell.runtime.toolchain import Compiler, ToolchainError, find_compiler

RECORDER = Path(__file__).with_name("recorder.c")
TINY = 512
"""Bytes up to which a copy is shorter than a clock reading: it is counted instead of timed."""
COUNTED = 1 << 12
"""The number of copies that recorder.c counts separately."""
MAX_SECONDS = 1.0
"""Seconds after which no further calls are made: the medians are stable."""
FEWEST, MOST = 5, 1000

_KERNEL = re.compile(
    r"^/\* kernel (?P<name>.*?)(?:, from [^\n]*)? \*/\n"
    r"(?:static )?void (?P<function>\w+)\([^\n]*\) \{\n.*?^\}\n",
    re.MULTILINE | re.DOTALL,
)
_COPY = re.compile(
    r"(?P<copy>__builtin_mem(?:cpy|move)\([^;\n]*, (?P<bytes>[^,;\n]*)\);)  // (?P<line>[^\n]*)$",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^/\* function ", re.MULTILINE)


@dataclass(frozen=True)
class KernelTime:
    """A kernel's number of launches in one call of the program, and their total time."""

    kernel: Kernel
    calls: int
    seconds: float
    least: float | None
    """Seconds at the machine's limit, if the kernel's cost is known."""

    @property
    def flops(self) -> float | None:
        """1e9 operations a second."""
        return self._rate(self.kernel.flops)

    @property
    def bytes(self) -> float | None:
        """1e9 bytes a second."""
        return self._rate(self.kernel.bytes)

    @property
    def of_limit(self) -> float | None:
        """The fraction of the machine's limit that is reached."""
        return self.least / self.seconds if self.least is not None and self.seconds else None

    def _rate(self, each: int | None) -> float | None:
        if each is None or not self.seconds:
            return None
        return each * self.calls / self.seconds / 1e9


@dataclass(frozen=True)
class Profile:
    """The times of one call. Prints as a table; `trace` is for Perfetto."""

    signature: Signature
    threads: int
    calls: int
    """The number of timed calls; the other fields are their median."""
    seconds: float
    plain: float
    """Seconds of a call of the original program, without clock readings."""
    kernels: tuple[KernelTime, ...]
    limits: Limits
    begin: int
    launches: NDArray[Any]
    """Of the median call: begin and end in nanoseconds, kernel or copy, thread."""
    copies: tuple[KernelTime, ...] = ()
    """The copies between kernels that ran."""
    places: tuple[Kernel, ...] = ()
    """All copies in the program's text."""
    inside: float = 0.0
    """Seconds from the first launch or copy of a call to the end of the last one."""
    where: str = ""
    """The device that it ran on, if it is not the host."""

    @property
    def outside(self) -> float:
        """Seconds of a call in which no kernel ran."""
        return max(self.seconds - sum(k.seconds for k in self.kernels), 0.0)

    @property
    def between(self) -> float:
        """Seconds between launches and copies: the program's loops, branches and checks."""
        busy = sum(k.seconds for k in (*self.kernels, *self.copies))
        return max(self.inside - busy, 0.0)

    @property
    def call(self) -> float:
        """Seconds before the first and after the last launch: arguments checked, results made."""
        return max(self.seconds - self.inside, 0.0)

    def __str__(self) -> str:
        return table(self)

    def trace(self) -> str:
        """Return the launches of one call as JSON for chrome://tracing or ui.perfetto.dev."""
        threads = {t: k for k, t in enumerate(dict.fromkeys(self.launches["thread"].tolist()))}
        call = {"name": f"{self.signature}", "ph": "X", "pid": 0, "tid": 0, "ts": 0.0}
        events: list[dict[str, Any]] = [{**call, "dur": self.seconds * 1e6}]
        names = [kernel.name for kernel in self.signature.kernels]
        by_number = {names.index(k.kernel.name): k.kernel for k in self.kernels}
        by_number |= dict(enumerate(self.places, len(names)))
        for begin, end, number, thread in self.launches.tolist():
            kernel = by_number[number]
            about = {"from": spans(kernel.lines), "flops": kernel.flops, "bytes": kernel.bytes}
            place = {"pid": 0, "tid": threads[thread], "ts": (begin - self.begin) / 1e3}
            duration = (end - begin) / 1e3
            events.append({"name": kernel.name, "ph": "X", **place, "dur": duration, "args": about})
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1) + "\n"


def profile(
    program: Program, arguments: Sequence[Any], repeat: int = 0, updating: bool = False
) -> Profile:
    """Call a program ``repeat`` times, or for a second, and return the times.

    updating : whether results overwrite the arguments they replace, as under `sw.jit`
    """
    if repeat < 0:
        raise ValueError(f"repeat must be 0 or more, got {repeat}")
    signature = program.signature
    if not program.target.timed:
        raise CompileError(
            Diagnostic(
                "error",
                f"programs of {signature.target} cannot be profiled: nothing times their kernels",
                help="compile it with target 'c' or 'opencl'",
            )
        )
    timed: Timed = program.target.timed_program(program, updating)
    timed.plain(arguments)
    plain = median(_seconds(timed.plain, arguments) for _ in range(FEWEST))
    timed.call(arguments)
    calls = min(max(int(MAX_SECONDS / max(plain, 1e-9)), FEWEST), MOST)
    runs = [timed.run(arguments) for _ in range(repeat or calls)]
    middle = sorted(runs, key=lambda run: run.end - run.begin)[len(runs) // 2]
    limits = timed.limits()
    sizes = signature.sizes([np.shape(argument) for argument in arguments])
    kernels = dict(enumerate(kernel.in_call(sizes) for kernel in signature.kernels))
    times = _times(kernels, runs, limits)
    if any((each.of_limit or 0) > 1 for each in times):  # the limits are from a busy machine
        limits = timed.limits(again=True)
        times = _times(kernels, runs, limits)
    copies = dict(enumerate(timed.copies, len(kernels)))
    return Profile(
        signature,
        limits.threads,
        len(runs),
        median(run.end - run.begin for run in runs) / 1e9,
        plain,
        tuple(sorted(times, key=lambda k: -k.seconds)),
        limits,
        middle.begin,
        middle.launches,
        (*_times(copies, runs, limits), *_counted(timed.copies, middle.tiny)),
        timed.copies,
        median(run.inside for run in runs) / 1e9,
        timed.where,
    )


class TimedC:
    """A C program compiled with clock readings."""

    where = ""

    def __init__(self, program: Program, updating: bool) -> None:
        self._threads = thread_limit(program.threads)
        self._plain: Any = program.updating.update if updating else lambda a: program.call(*a)
        text, self.copies = instrumented(program.source, program.signature.kernels)
        compiler = _compiler()

        def build(folder: Path) -> None:
            (folder / SOURCE).write_text(text, encoding="utf-8")
            compiler.build_program(folder / SOURCE, folder / LIBRARY)

        folder = disk_cache().fetch("profiled", digest(text, compiler.id), build)
        call = load_callee(folder, program.signature, program.constants, program.threads)
        entry = Entry(program.signature, call, in_place=True)
        self._call: Any = entry.update if updating else lambda arguments: call(*arguments)
        library = ctypes.CDLL(str(folder / LIBRARY))
        size = 8 + KEPT * LAUNCH.itemsize
        record: Any = (ctypes.c_char * size).in_dll(library, "stepwell_launches")
        self.count: NDArray[Any] = np.frombuffer(record, np.int64, 1)
        self.launches: NDArray[Any] = np.frombuffer(record, LAUNCH, KEPT, 8)
        counts: Any = (ctypes.c_int64 * COUNTED).in_dll(library, "stepwell_counts")
        self.counts: NDArray[Any] = np.frombuffer(counts, np.int64)
        self.library = library

    def plain(self, arguments: Sequence[Any]) -> None:
        """Call the original program."""
        self._plain(arguments)

    def call(self, arguments: Sequence[Any]) -> None:
        """Call the program with clock readings."""
        self._call(arguments)

    def limits(self, again: bool = False) -> Limits:
        """Return the measured limits of this machine."""
        return measure_again(self._threads) if again else machine_limits(self._threads)

    def run(self, arguments: Sequence[Any]) -> Run:
        """Make one call and return its records."""
        ctypes.memset(self.count.ctypes.data, 0, 8)
        ctypes.memset(self.counts.ctypes.data, 0, 8 * COUNTED)
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._call(arguments)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        launches = self.launches[: min(int(self.count[0]), KEPT)].copy()
        return Run(begin, end, launches, self.counts[: len(self.copies)].copy())


def instrumented(source: str, kernels: Sequence[Kernel]) -> tuple[str, tuple[Kernel, ...]]:
    """Return a program's text with clock readings around every launch, and its copies.

    Copies are numbered after the kernels.
    """
    numbers = {titled(kernel.name): k for k, kernel in enumerate(kernels)}
    parts: list[str] = []
    done = 0
    for found in _KERNEL.finditer(source):
        if (number := numbers.get(found["name"])) is None:
            continue
        if not parts:
            parts += [source[: found.start()], RECORDER.read_text(), "\n"]
            done = found.start()
        # a macro does not expand in its own body, so it can have the name of the function it wraps
        function = found["function"]
        timed = f"{{ const int64_t sw_begin = sw_stamp(); {function}(__VA_ARGS__); "
        wrapped = f"#define {function}(...) do {timed}sw_note({number}, sw_begin); }} while (0)\n"
        parts += [source[done : found.end()], wrapped]
        done = found.end()
    rest, copies = _copies_timed(source[done:], len(kernels))
    if not parts:
        first = _FUNCTION.search(rest) if copies else None
        at = first.start() if first else 0
        parts = [rest[:at], RECORDER.read_text() if copies else RECORDER_OF_NOTHING, "\n"]
        rest = rest[at:]
    return "".join([*parts, rest]), copies


def copies_of(source: str, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return the distinct copies between the kernels of a C program."""
    return instrumented(source, kernels)[1]


def _copies_timed(host: str, first: int) -> tuple[str, tuple[Kernel, ...]]:
    """Return the functions that launch kernels, with their copies timed, and those copies."""
    copies: dict[Kernel, int] = {}

    def timed(found: re.Match[str]) -> str:
        size = found["bytes"].strip()
        known = int(size) if size.isdecimal() else None
        name = f"copy of {known:,} bytes" if known is not None else "copy"
        line = found["line"] if re.fullmatch(r".+:\d+", found["line"]) else ""
        copy = Kernel(name, (line,) if line else (), None, None if known is None else 2 * known)
        number = first + copies.setdefault(copy, len(copies))
        if known is not None and known < TINY:
            return f"{{ sw_count({number - first}); {found['copy']} }}  // {found['line']}"
        begin = "{ const int64_t sw_begin = sw_stamp();"
        return f"{begin} {found['copy']} sw_note({number}, sw_begin); }}  // {found['line']}"

    return _COPY.sub(timed, host), tuple(copies)


def _compiler() -> Compiler:
    """Return a compiler, or raise an error with its purpose: saved programs run without one."""
    try:
        return find_compiler()
    except ToolchainError as error:
        said = error.diagnostic
        why = "to be profiled, a program is compiled once more with clocks in it"
        raise CompileError(replace(said, message=f"{why}: {said.message}")) from None


RECORDER_OF_NOTHING = (
    "struct { long long count; char launches[1 << 21]; } stepwell_launches;\n"
    "long long stepwell_counts[1 << 12];\n"
)


def _seconds(call: Any, arguments: Sequence[Any]) -> float:
    start = time.perf_counter()
    call(arguments)
    return time.perf_counter() - start


def _times(kernels: Mapping[int, Kernel], runs: Sequence[Run], limits: Limits) -> list[KernelTime]:
    """Return the kernels or copies that ran, with their times."""
    found: list[KernelTime] = []
    for number, kernel in kernels.items():
        chosen = [run.launches[run.launches["kernel"] == number] for run in runs]
        if calls := len(chosen[-1]):
            seconds = median(int((c["end"] - c["begin"]).sum()) for c in chosen) / 1e9
            found.append(KernelTime(kernel, calls, seconds, _least(kernel, calls, limits)))
    return found


def _counted(copies: Sequence[Kernel], counts: NDArray[Any]) -> Iterator[KernelTime]:
    """Yield the copies that were only counted; their time belongs to that between launches."""
    for copy, calls in zip(copies, counts.tolist(), strict=True):
        if calls:
            yield KernelTime(copy, calls, 0.0, None)


def _least(kernel: Kernel, calls: int, limits: Limits) -> float | None:
    if kernel.flops is None or kernel.bytes is None:
        return None
    return calls * limits.seconds(kernel.flops, kernel.bytes, kernel.bits)


def table(profile: Profile) -> str:
    """Return a profile as a table."""
    head = ("kernel", "calls", "time", "share", "GFLOP/s", "GB/s", "of limit", "from")
    rows = [head, *(_row(each, profile, quoted(each.kernel.name)) for each in profile.kernels)]
    rows.append(_rest("outside of kernels", profile.outside, profile))
    rows += [_row(each, profile, f"  {each.kernel.name}") for each in profile.copies]
    if profile.inside:
        rows.append(_rest("  between them: small copies, checks", profile.between, profile))
        rows.append(_rest("  the call: arguments, results", profile.call, profile))
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if k in (0, len(head) - 1) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    threads = "1 thread" if profile.threads == 1 else f"{profile.threads} threads"
    about = (
        f"{profile.signature}\n{profile.where or threads}, "
        f"{profile.calls} calls of {spell_seconds(profile.seconds)}"
        f" ({spell_seconds(profile.plain)} without the clocks)"
    )
    limits = profile.limits
    known = f"limits: {limits.fma:.0f} GFLOP/s, memory {limits.bandwidth(1 << 62):.0f} GB/s"
    if len(profile.launches) == KEPT:
        known += f"\nonly the first {KEPT:,} launches of a call are shown"
    return "\n".join([about, *lines, known])


def _row(each: KernelTime, profile: Profile, name: str) -> tuple[str, ...]:
    return (
        name,
        str(each.calls),
        spell_seconds(each.seconds) if each.seconds else "",
        f"{each.seconds / profile.seconds:.0%}" if each.seconds else "",
        _number(each.flops, ".1f"),
        _number(each.bytes, ".1f"),
        _number(each.of_limit, ".2f"),
        spans(each.kernel.lines),
    )


def _rest(name: str, seconds: float, profile: Profile) -> tuple[str, ...]:
    share = f"{seconds / profile.seconds:.0%}"
    return (name, "", spell_seconds(seconds), share, "", "", "", "")


def spell_seconds(seconds: float) -> str:
    """Spell a time with three digits.

    >>> spell_seconds(1.5e-7), spell_seconds(0.0123)
    ('0.15 us', '12.3 ms')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def spans(lines: Sequence[str]) -> str:
    """Spell source lines, with consecutive lines as a range.

    >>> spans(("a.py:3", "a.py:4", "a.py:5", "a.py:9", "b.py:1"))
    'a.py:3-5, 9, b.py:1'
    """
    found: list[tuple[str, int, int]] = []
    for each in lines:
        file, _, text = each.rpartition(":")
        line = int(text)
        if found and found[-1][0] == file and found[-1][2] + 1 == line:
            found[-1] = (file, found[-1][1], line)
        else:
            found.append((file, line, line))
    said: list[str] = []
    before = None
    for file, first, last in found:
        span = f"{first}" if first == last else f"{first}-{last}"
        said.append(span if file == before else f"{file}:{span}")
        before = file
    return ", ".join(said)
