"""Programs of buffers and loops with other numbers in them, run with sanitizers and interpreted.

    python test/guarded_programs.py --count 100 --seed 3 [--target opencl] [--verbose]

takes what the compiler makes of rows of ops on the floors of buffers and loops, and texts written
by hand, and alters numbers, sizes, arithmetic and operands. What verifies and compiles is run, in C
and interpreted: both must end with results that agree, or both say that something is not there.
A sanitizer that finds something ends the process (`sanitizing.py` says how one is started).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from op_rows import FAMILIES

import stepwell as sw
from stepwell.core.checks import UnfitSizes
from stepwell.core.guards import OutOfBounds
from stepwell.core.shapes import DYNAMIC
from stepwell.core.source import Source
from stepwell.core.targets import machine_for, target_of
from stepwell.dialects.interpreter import Exhausted, Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.upstream import memory
from stepwell.driver.lowering import choose_entry, stage_text
from stepwell.driver.registry import registry
from stepwell.testing.op_rows.row import Row

FUEL = 60_000
"""Ops that the interpreter may run: what runs longer is left out."""
SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64)
ODD = (-1, -2, -8, 100, 1000, 1 << 31, 1 << 40, (1 << 62) + 1, -(1 << 62), (1 << 63) - 1)
TEXTS = Path(__file__).parent / "guarded"
_NUMBER = re.compile(r"(?<![\w.%@\"-])-?\d+(?=[\s,\]x)>:]|$)(?!\.\d)")
_OPERAND = re.compile(r"%[A-Za-z_]\w*")
_PROMISE = re.compile(r' attributes \{kernel\.instruction = "\w+"\}')
"""That a function means what an instruction does: what it does when altered, nobody says."""
_SWAPS = (
    ("arith.addi", "arith.muli", "arith.subi", "arith.minsi", "arith.maxsi", "arith.ceildivsi"),
    ("memref.load", "memref.load"),
    ("ult", "slt", "sle", "eq", "sgt"),
)


def texts(target: str) -> Iterator[str]:
    """Yield programs to alter: those written by hand, then what rows of ops become."""
    yield from (path.read_text() for path in sorted(TEXTS.glob("*.mlir")))
    rows: list[tuple[Row, str]] = []
    for family in FAMILIES:
        rows += [(row, row.dtypes[0]) for row in family.ROWS]
    random.Random(5).shuffle(rows)
    machine = target_of(target).limits(machine_for(target, "threads=2"))
    for row, dtype in rows:
        source = Source(row.module(dtype), "row.mlir", "main", machine)
        for stage in ("loops", "buffers"):
            try:
                yield _PROMISE.sub("", stage_text(source, stage))
            except sw.CompileError:
                break


def altered(text: str, draw: random.Random) -> str:
    """Return a program with one to three things altered."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        what = draw.randrange(4)
        if what < 2:
            text = _replaced(text, _NUMBER, lambda old: _number(int(old), draw), draw)
        elif what == 2:
            names = _OPERAND.findall(text)
            text = _replaced(text, _OPERAND, lambda old, n=names: draw.choice(n or [old]), draw)
        else:
            group = draw.choice(_SWAPS)
            pattern = re.compile("|".join(rf"\b{re.escape(each)}\b" for each in group))
            text = _replaced(text, pattern, lambda old, g=group: draw.choice(g), draw)
    return text


def _number(old: int, draw: random.Random) -> str:
    near = (old + 1, old - 1, old * 2, -old, old // 2)
    return str(draw.choice((*near, *near, draw.choice(SMALL), draw.choice(ODD))))


def _replaced(text: str, pattern: re.Pattern[str], new: Any, draw: random.Random) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    at = draw.choice(found)
    return text[: at.start()] + new(at[0]) + text[at.end() :]


def _zeros(type: Any, sizes: Any) -> Any:
    """Return what compiled programs find in memory they allocate."""
    found = iter(sizes)
    shape = [int(next(found)) if n == DYNAMIC else n for n in type.get_shape()]
    return np.zeros(shape, memory.numpy_type(type.element_type))


def interpreted(text: str, signature: Any, arrays: Sequence[Any]) -> list[Any]:
    """Return what the interpreter makes of a program on zero memory."""
    module = parse_module(registry().context(), text, "altered.mlir")
    choose_entry(module, "main")
    machine = Interpreter(module, fuel=FUEL)
    sizes = [np.int64(n) for n in signature.sizes([a.shape for a in arrays])]
    names = {op.sym_name.data for op in module.ops if hasattr(op, "sym_name")}  # pyright: ignore
    found = iter(machine.call("main.shapes", sizes) if "main.shapes" in names else ())
    results: list[Any] = []
    for spec in signature.results:
        shape = [int(next(found)) if n == DYNAMIC else n for n in spec.shape]
        if min(shape, default=0) < 0:
            raise OutOfBounds("a result of a negative size")
        if np.prod([float(n) for n in shape]) > 1 << 24:
            raise MemoryError
        results.append(np.zeros(shape, _stored(spec.dtype)))
    bytes = signature.arena
    if "main.arena" in names:
        (bytes,) = machine.call("main.arena", sizes)
    if bytes is not None and int(bytes) < 0:
        raise OutOfBounds("an arena of a negative size")
    if bytes is not None and int(bytes) > 1 << 24:
        raise MemoryError
    room = np.zeros(int(bytes or 0) + 64, np.int8)
    start = -room.ctypes.data % 64
    arena = [room[start : start + int(bytes or 0)]] if _takes_arena(module) else []
    machine.call("main", [*(_memory(a) for a in arrays), *results, *arena])
    return results


def _takes_arena(module: Any) -> bool:
    entry = next(
        op for op in module.ops if getattr(op, "sym_name", None) and op.sym_name.data == "main"
    )
    return any("arena" in str(each.data.get("kernel.role")) for each in entry.arg_attrs or ())


def _stored(dtype: str) -> Any:
    return np.uint16 if dtype == "bf16" else np.dtype(sw.runtime.entry.numpy_dtype(dtype))


def _memory(array: Any) -> Any:
    array = np.array(array, order="C")
    if array.dtype.name == "bfloat16":
        return array.view(np.uint16)
    return array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array


def inputs(signature: Any, draw: random.Random) -> list[Any]:
    """Return small arrays for the arguments of a program."""
    make = np.random.default_rng(draw.randrange(1 << 30))
    size = draw.choice((0, 1, 3, 8, 20))
    found: list[Any] = []
    for spec in signature.arguments:
        shape = tuple(size if n == DYNAMIC else n for n in spec.shape)
        if np.prod([float(n) for n in shape]) > 1 << 22:
            raise MemoryError
        kind = sw.runtime.entry.numpy_dtype(spec.dtype)
        found.append(make.integers(0, 2 if kind.kind == "b" else 9, shape).astype(kind))
    return found


class Tally:
    """Runs programs, and counts what became of them."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.counts: Counter[str] = Counter()
        self.wrong = 0

    def note(self, text: str, what: str) -> None:
        """Note a finding."""
        self.wrong += 1
        print(f"==== {what}\n{text}\n{traceback.format_exc()}", flush=True)

    def run(self, text: str, draw: random.Random) -> None:
        """Compile a program, run it and interpret it."""
        try:
            compiled = sw.compile(text, target=self.target, name="altered.mlir")
        except sw.CompileError as error:
            said = str(error)
            self.counts["refused"] += 1
            if "compiler bug" in said or "cannot compile" in said:
                self.counts["refused by the C compiler"] += 1
            return
        except MemoryError:
            self.counts["too long"] += 1
            return
        try:
            arrays = inputs(compiled.signature, draw)
            reference = self._interpret(text, compiled.signature, arrays)
        except (Exhausted, MemoryError):
            self.counts["too long"] += 1
            return
        except Exception:
            self.note(text, "the interpreter fails")
            return
        self._compare(text, compiled, arrays, reference)

    def _compare(self, text: str, compiled: Any, arrays: Sequence[Any], reference: Any) -> None:
        """Run a program, and hold what it does against what it should."""
        try:
            got = compiled(*arrays)
        except (OutOfBounds, UnfitSizes) as error:
            self.counts["ended"] += 1
            if reference is not None:
                self.note(text, f"only the compiled program ends: {error}")
            return
        except (MemoryError, ValueError):
            self.counts["ended"] += 1
            return
        self.counts["ran"] += 1
        if reference is None:
            self.note(text, "only the interpreter ends")
            return
        for x, y in zip(got if isinstance(got, tuple) else (got,), reference, strict=True):
            x = _memory(x)
            if not np.allclose(x, y.view(x.dtype), 2e-2, 2e-2, equal_nan=True):
                self.note(text, f"results differ: {x} {y}")
                return

    def _interpret(self, text: str, signature: Any, arrays: Sequence[Any]) -> Any:
        """Return results; None where something is not there."""
        try:
            return interpreted(text, signature, [np.copy(a) for a in arrays])
        except (OutOfBounds, UnfitSizes):
            return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description="run altered programs of buffers and loops")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="c")
    parser.add_argument("--programs", type=int, default=40, help="how many are altered")
    parser.add_argument("--verbose", action="store_true", help="print each before it runs")
    options = parser.parse_args(argv)
    memory.uninitialised = _zeros  # pyright: ignore[reportPrivateImportUsage]
    draw, tally, found = random.Random(options.seed), Tally(options.target), list[str]()
    for text in texts(options.target):
        found.append(text)
        if len(found) >= options.programs:
            break
    for _ in range(options.count):
        text = altered(draw.choice(found), draw)
        if options.verbose:
            print(f"////\n{text}", flush=True)
        tally.run(text, draw)
    print(f"{options.count} altered programs: {dict(tally.counts)}, {tally.wrong} wrong")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
