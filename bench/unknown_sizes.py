"""Measure programs with a dynamic size beside the same programs with static sizes.

`make bench-sizes` writes docs/sizes.md. Each program is compiled once with `?` for its size n
(dynamic), and once for each n (static); both are called in turn with the same arrays. Goals: at
most 1.1 of the static program's time from n = 64 on, 1.3 below, and 0.8 of onnxruntime's time,
which runs a model with n symbolic. On a busy machine `--cpu` counts the processor's time on one
thread. `--compile` measures compile times instead; the goal is 1.3.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from gradients import AGAIN, ROUNDS, alternate
from limits import processor
from measuring import geometric_mean, spell_seconds
from processes import Gone, Process

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count

PAGE = Path(__file__).parent.parent / "docs" / "sizes.md"
FEW, FEW_GOAL, GOAL = 64, 1.3, 1.1
"""From how large a size on `?` may cost a tenth; below it may cost more."""
COMPILE_GOAL = 1.3
COMPILE_ROUNDS = 2
"""Processes, with an empty cache each, that compile a program for every size and for any."""
PEER, PEER_GOAL = "onnxruntime", 0.8
PATIENCE = 120.0
"""Seconds that the peer may take for an answer."""
BATCH = 4e-3
"""Seconds of the peer's calls in a round."""
SIZES = (1, 3, 8, 17, 64, 260, 1000)
"""Powers of two and others: 3 and 17 fill no vector, narrow or wide."""
N = "n"
Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Program:
    """A function, the shapes of its arguments where "n" is the size, and which sizes are tried."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    sizes: tuple[int, ...] = SIZES

    def arrays(self, n: int) -> list[Any]:
        """Return arguments for a size."""
        random = np.random.default_rng(n)
        shapes = [tuple(n if size == N else int(size) for size in shape) for shape in self.shapes]
        return [random.standard_normal(shape, np.float32) * np.float32(0.1) for shape in shapes]

    def compiled(self, n: int, dynamic: bool, cpu: bool) -> tuple[Callable[[], Any], str]:
        """Compile for a size, or for any; return a call, the first of which is done.

        Return also what is wrong: a function that depends on a size is traced for each.

        cpu : whether for one thread
        """
        compiled, arrays = self.jitted(n, dynamic, cpu), self.arrays(n)
        compiled(*arrays)
        before = compiled.cache_info().programs
        if dynamic:
            compiled(*self.arrays(n + 1))
        each = compiled.cache_info().programs > before
        return lambda: compiled(*arrays), " compiled for each size" if each else ""

    def jitted(self, n: int, dynamic: bool, cpu: bool) -> Any:
        """Return the function, to be compiled at its first call for a size, or for any."""
        size: Any = sw.Dim("n") if dynamic else n
        shapes: list[Any] = [[size if each == N else each for each in s] for s in self.shapes]
        signature = [sw.ShapeDtypeStruct(tuple(shape), "float32") for shape in shapes]
        options: dict[str, Any] = {"threads": 1} if cpu else {}
        return sw.jit(self.function, input_signature=signature, **options)


def product(x: Any, w: Any) -> Any:
    """Return a product."""
    return x @ w


def chain(x: Any, a: Any, b: Any) -> Any:
    """Return what two layers make of rows."""
    return sw.nn.relu(sw.nn.relu(x @ a) @ b)


def linear_gelu(x: Any, w: Any, b: Any) -> Any:
    """Return a layer of a transformer."""
    return sw.nn.gelu(x @ w + b)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return what queries attend to."""
    scores = q @ snp.matrix_transpose(k) * 0.125
    return sw.nn.softmax(scores, axis=-1) @ v


def encoder(x: Any, qkv: Any, out: Any, up: Any, down: Any, scale: Any) -> Any:
    """Return a layer of an encoder, 12 heads of 64."""
    heads = snp.permute_dims(snp.reshape(x @ qkv, (x.shape[0], 3, 12, 64)), (1, 2, 0, 3))
    seen = snp.permute_dims(attention(heads[0], heads[1], heads[2]), (1, 0, 2))
    y = sw.nn.layer_norm(x + snp.reshape(seen, (x.shape[0], 768)) @ out, scale, scale)
    return sw.nn.layer_norm(y + sw.nn.gelu(y @ up) @ down, scale, scale)


def decode(q: Any, keys: Any, values: Any) -> Any:
    """Return what one token attends to in a cache of n."""
    return attention(q, keys, values)


def convolution(x: Any, w: Any) -> Any:
    """Convolve images."""
    return sw.nn.relu(sw.nn.conv(x, w, padding=w.shape[-1] // 2))


def depthwise(x: Any, w: Any) -> Any:
    """Convolve each feature alone."""
    return sw.nn.relu(sw.nn.conv(x, w, padding=1, groups=64))


def pooled(x: Any) -> Any:
    """Return the greatest of windows."""
    return sw.nn.max_pool(x, 3, stride=2, padding=1)


def recurrence(xs: Any, w: Any) -> Any:
    """Run a network over a sequence."""

    def step(h: Any, x: Any) -> Any:
        h = snp.tanh(h @ w + x)
        return h, h

    return sw.lax.scan(step, snp.zeros_like(xs[0]), xs)[1]


SQUARE: tuple[Shape, ...] = ((N, N), (N, N))
IMAGES = (8, 17, 24, 64, 112)
PROGRAMS = (
    Program("product, all sizes", product, SQUARE),
    Program("product, rows", product, ((N, 768), (768, 768))),
    Program("product, depth", product, ((512, N), (N, 512))),
    Program("product, columns", product, ((512, 768), (768, N))),
    Program("two layers, rows", chain, ((N, 784), (784, 512), (512, 256))),
    Program("linear and gelu, rows", linear_gelu, ((N, 768), (768, 3072), (3072,))),
    Program("linear and gelu, 1 x n", linear_gelu, ((1, N, 768), (768, 3072), (3072,))),
    Program("attention, length", attention, ((12, N, 64),) * 3),
    Program("attention, keys", attention, ((12, 64, 64), (12, N, 64), (12, N, 64))),
    Program(
        "encoder layer, length",
        encoder,
        ((N, 768), (768, 2304), (768, 768), (768, 3072), (3072, 768), (768,)),
        (1, 3, 8, 64, 260),
    ),
    Program("one token, cache", decode, ((12, 1, 64), (12, N, 64), (12, N, 64))),
    Program("convolution, batch", convolution, ((N, 32, 28, 28), (32, 32, 3, 3)), (1, 8, 64)),
    Program("convolution 3x3, image", convolution, ((1, 32, N, N), (32, 32, 3, 3)), IMAGES),
    Program("convolution 1x1, image", convolution, ((1, 64, N, N), (64, 64, 1, 1)), IMAGES),
    Program("depthwise, image", depthwise, ((1, 64, N, N), (64, 1, 3, 3)), IMAGES),
    Program("max pool, image", pooled, ((1, 64, N, N),), IMAGES),
    Program("scan, length", recurrence, ((N, 8, 128), (128, 128)), (1, 8, 64, 260)),
    Program("scan, batch", recurrence, ((50, N, 128), (128, 128)), (1, 8, 64, 260)),
    Program("softmax, rows", lambda x: sw.nn.softmax(x, axis=-1), ((N, 1000),)),
    Program("softmax, columns", lambda x: sw.nn.softmax(x, axis=-1), ((1000, N),)),
    Program("layer norm, rows", sw.nn.layer_norm, ((N, 768), (768,), (768,))),
    Program("sum, rows", lambda x: snp.sum(x, axis=0), ((N, 768),)),
    Program("argmax, columns", lambda x: snp.argmax(x, axis=1), ((1000, N),)),
    Program("elementwise", lambda x, y: snp.tanh(x * y + x), SQUARE),
)


@dataclass(frozen=True)
class Row:
    """A program at a size: seconds of the static and of the dynamic program."""

    name: str
    n: int
    static: float
    dynamic: float
    problem: str = ""
    peer: float = 0.0
    """Seconds of onnxruntime; 0 where it was not measured."""

    @property
    def ratio(self) -> float:
        """The dynamic program's time as a multiple of the static one's."""
        return self.dynamic / self.static

    @property
    def goal(self) -> float:
        """The largest ratio that meets the goal."""
        return GOAL if self.n >= FEW else FEW_GOAL


@dataclass
class Peer:
    """onnxruntime in a process of its own, which is stopped while others run."""

    process: Process
    folder: Path

    def times(self, program: Program, n: int, right: Any) -> float:
        """Return the least time of a call at a size; 0 where it cannot run the program."""
        asked = {"program": program.name, "shapes": program.shapes, "n": n}
        result = self.folder / "peer.npy"
        answer = self.process.ask(PATIENCE, **asked, result=str(result))
        if answer["problem"]:
            print(f"{PEER}: {answer['problem']}")
            return 0.0
        assert np.allclose(np.load(result), right, rtol=1e-3, atol=1e-4), program.name
        rounds = range(ROUNDS)
        return min(self.process.ask(PATIENCE, seconds=BATCH)["seconds"] for _ in rounds)


def started(folder: Path, cpu: bool) -> Peer | None:
    """Start the peer, where it is installed."""
    process = Process(PEER, 1 if cpu else thread_count(), folder / "peer", script="sizes_worker.py")
    try:
        process.start()
    except Gone as gone:
        print(f"{PEER}: {gone}")
        return None
    return Peer(process, folder)


def measured(program: Program, peer: Peer | None, cpu: bool) -> list[Row]:
    """Time a program at its sizes."""
    rows: list[Row] = []
    clock = time.process_time if cpu else time.perf_counter
    for n in program.sizes:
        (static, _), (dynamic, problem) = (program.compiled(n, b, cpu) for b in (False, True))
        calls = [static, dynamic]
        one, other = (np.asarray(call()) for call in calls)
        if not np.allclose(other, one, rtol=1e-3, atol=1e-4):
            problem = " WRONG"
        row = _row(program, n, calls, clock, problem)
        for _ in range(AGAIN if row.ratio > row.goal else 0):
            again = _row(program, n, calls, clock, problem)
            row = min(row, again, key=lambda each: each.ratio)
        if peer is not None:
            row = replace(row, peer=peer.times(program, n, one))
        rows.append(row)
        print(spelled(row), flush=True)
    return rows


def _row(
    program: Program,
    n: int,
    calls: Sequence[Callable[[], Any]],
    clock: Callable[[], float],
    problem: str,
) -> Row:
    static, dynamic = alternate(calls, ROUNDS, clock)
    return Row(program.name, n, static, dynamic, problem)


def spelled(row: Row) -> str:
    """Return a line of the table."""
    times = f"{spell_seconds(row.static)} | {spell_seconds(row.dynamic)}"
    mark = row.problem or (" above" if row.ratio > row.goal else "")
    beside = f"{spell_seconds(row.peer)} | {row.dynamic / row.peer:.2f}" if row.peer else "|"
    return f"| {row.name} | {row.n} | {times} | {row.ratio:.2f}{mark} | {beside} |"


Times = tuple[float, float, float]
"""Seconds of a compilation: on the clock, of Python's processor, and of the C compilers'."""


@dataclass(frozen=True)
class Compiled:
    """Times until the first result: means over all sizes, for the size and for any."""

    name: str
    static: Times
    dynamic: Times

    def ratio(self, cpu: bool) -> float:
        """The dynamic program's compile time, or processor time, as a multiple of the static's."""
        static, dynamic = (
            sum(each[1:]) if cpu else each[0] for each in (self.static, self.dynamic)
        )
        return dynamic / static

    def spelled(self, cpu: bool) -> str:
        """Return a line of the table of compile times."""
        pairs = zip(self.static, self.dynamic, strict=True)
        times = " | ".join(f"{spell_seconds(s)} | {spell_seconds(d)}" for s, d in pairs)
        mark = " above" if self.ratio(cpu) > COMPILE_GOAL else ""
        return f"| {self.name} | {times} | {self.ratio(cpu):.2f}{mark} |"


COMPILE_HEADER = """\
| program | static | dynamic | static, Python | dynamic, Python | static, C | dynamic, C | ratio |
|---|---:|---:|---:|---:|---:|---:|---:|---:|"""


def serve(program: Program, last: bool) -> None:
    """Make the first call of each size, for the size and for any; print the times of each.

    Another program is compiled before. The cache is emptied before each call: programs of several
    sizes may share kernels.

    last : whether for any size last
    """
    Program("first", lambda x: x + 1, ((N,),)).compiled(8, True, False)
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    for n in program.sizes:
        for dynamic in (False, True) if last else (True, False):
            for kind in Path(os.environ["STEPWELL_CACHE"]).iterdir():
                if kind.is_dir():
                    shutil.rmtree(kind)
            function, arrays = program.jitted(n, dynamic, False), program.arrays(n)
            before = _clocks()
            function(*arrays)
            found[dynamic].append([b - a for a, b in zip(before, _clocks(), strict=True)])
    print(json.dumps([*found[False], *found[True]]))


def _clocks() -> list[float]:
    """Return the time, and the processor time of this process and of its children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [time.perf_counter(), *(each.ru_utime + each.ru_stime for each in used)]


def compiling(program: Program) -> Compiled:
    """Compile a program in fresh processes with empty caches; return the least times."""
    rounds: list[list[Times]] = []
    for last in range(COMPILE_ROUNDS):
        with TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "--serve", program.name, str(last % 2)]
            environment = {**os.environ, "STEPWELL_CACHE": cache}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        rounds.append(json.loads(done.stdout.splitlines()[-1]))
    least = [[min(times) for times in zip(*same, strict=True)] for same in zip(*rounds)]
    count = len(program.sizes)
    return Compiled(program.name, _mean(least[:count]), _mean(least[count:]))


def _mean(each: Sequence[Sequence[float]]) -> Times:
    clock, python, compilers = (sum(times) / len(each) for times in zip(*each, strict=True))
    return clock, python, compilers


def page(rows: Sequence[Row], compiled: Sequence[Compiled], cpu: bool) -> str:
    """Return docs/sizes.md."""
    table = "\n".join(map(spelled, rows))
    above = sum(row.ratio > row.goal for row in rows)
    mean = geometric_mean([row.ratio for row in rows])
    parts = [row.dynamic / row.peer for row in rows if row.peer]
    beside = ""
    if parts:
        worse = sum(part > PEER_GOAL for part in parts)
        beside = (
            f"\n\nBeside {PEER}: geometric mean {geometric_mean(parts):.2f} of its time over "
            f"{len(parts)} rows;\n{worse} above {PEER_GOAL}, the goal for the mean, and "
            f"{sum(part > 1 for part in parts)} above 1."
        )
    threads = "1 thread" if cpu else f"{thread_count()} threads"
    busy = " The machine was busy: times are the processor's (`--cpu`)." if cpu else ""
    return f"""\
# Dynamic sizes

`make bench-sizes` measured these: {date.today()}, {processor()}, {threads}.

*static* is the time of a program compiled for the size, *dynamic* that of one compiled for any size
n (`?`). Both were called in turn with the same arrays; times are the least of {ROUNDS}
rounds.{busy}
The last columns are {PEER}'s time, of a model with n symbolic and its weights in it, and the part
of it that *dynamic* takes. Where a row says "compiled for each size", `sw.jit` made no dynamic
program, so both times are static ones.

| program | n | static | dynamic | ratio | {PEER} | part |
|---|---:|---:|---:|---:|---:|---:|
{table}

{len(rows)} rows, {above} above the goal ({GOAL} from n = {FEW} on, {FEW_GOAL} below); geometric
mean {mean:.2f}.{beside}

{compile_part(compiled, cpu)}
"""


def compile_part(compiled: Sequence[Compiled], cpu: bool) -> str:
    """Return the table of compile times, and a summary of it."""
    ratios = [each.ratio(cpu) for each in compiled]
    above = sum(ratio > COMPILE_GOAL for ratio in ratios)
    table = "\n".join(each.spelled(cpu) for each in compiled)
    clock = "processor times" if cpu else "times on the clock"
    return f"""\
## Compile times

The time of the first call, in processes with an empty cache that have compiled another program
(`--compile`): the means over all sizes, of the static programs and of the dynamic one. Then the
parts that are the processor's, in Python and in the C compilers. The ratio is that of {clock}.

{COMPILE_HEADER}
{table}

Geometric mean {geometric_mean(ratios):.2f}; {above} of {len(ratios)} above the goal of \
{COMPILE_GOAL}."""


def main() -> None:
    """Measure all programs and write the page, or some and print."""
    parser = argparse.ArgumentParser(description="Measure dynamic sizes.")
    parser.add_argument(
        "--programs", nargs="+", default=["*"], help="as in 'conv*' 'product, rows' (default all)"
    )
    parser.add_argument("--alone", action="store_true", help=f"without {PEER}")
    parser.add_argument("--cpu", action="store_true", help="processor time of one thread")
    parser.add_argument("--compile", action="store_true", help="compile times only")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, last = options.serve
        return serve(next(p for p in PROGRAMS if p.name == name), last == "1")
    chosen = [p for p in PROGRAMS if any(fnmatchcase(p.name, each) for each in options.programs)]
    rows = [] if options.compile else timed(chosen, options.alone, options.cpu)
    whole = len(chosen) == len(PROGRAMS)
    compiled: list[Compiled] = []
    if whole or options.compile:
        print(COMPILE_HEADER)
        for program in chosen:
            compiled.append(compiling(program))
            print(compiled[-1].spelled(options.cpu), flush=True)
    if whole and rows:
        PAGE.write_text(page(rows, compiled, options.cpu))
        print(f"wrote {PAGE.name}")


def timed(chosen: Sequence[Program], alone: bool, cpu: bool) -> list[Row]:
    """Time calls of programs."""
    rows: list[Row] = []
    with TemporaryDirectory() as cache:
        os.environ["STEPWELL_CACHE"] = cache
        peer = None if alone else started(Path(cache), cpu)
        for program in chosen:
            rows += measured(program, peer, cpu)
        if peer is not None:
            peer.process.stop()
    return rows


if __name__ == "__main__":
    main()
