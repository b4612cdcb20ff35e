"""Run a random program on every floor and compiled; all must agree with the reference on `nd`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Exhausted, Interpreter
from stepwell.dialects.verification import verify
from stepwell.driver.pass_pipeline import Step, parse
from stepwell.driver.pipeline import through
from stepwell.driver.registry import registry
from stepwell.testing.op_rows.run import context, parsed
from stepwell.testing.random_programs.program import Array, Program, Value

FUEL = 30_000
"""Ops that one run on a lower floor may evaluate; longer programs are only run compiled."""
TOLERANCE = {"f64": 1e-9, "f32": 2e-4, "f16": 2e-2, "bf16": 0.15}
"""The allowed difference of inexact numbers, relative to the result's largest."""
SIZES = (2, 5, 1, 0, 9)
"""The dynamic sizes on the floors that are interpreted."""
LONGER = (33, 1, 17, 70)
"""The dynamic sizes of compiled programs."""

Trial = tuple[list[Array], tuple[Array, ...]]


def passes() -> Iterator[Step]:
    """Yield every pass down to the floor of loops."""
    yield from parse(through("loops"), registry().passes)


def _trials(p: Program, module: ModuleOp, lengths: Sequence[int], count: int) -> list[Trial]:
    """Return arguments, with the results of the program on `nd`."""
    created: list[Trial] = []
    for run in range(count if p.unknown else 2):
        sizes = {n: lengths[(run + i) % len(lengths)] for i, n in enumerate(p.unknown)}
        inputs = p.inputs(sizes, run)
        created.append((inputs, call(Interpreter(module), "main", inputs)))
    return created


def check_floors(p: Program, count: int = 3) -> None:
    """Compare results after every pass."""
    module = parsed(p.text)
    trials = _trials(p, module, SIZES, count)
    ctx = context()
    for step in passes():
        step.run(ctx, module)
        verify(module)
        for number, (inputs, wanted) in enumerate(trials):
            try:
                got = call(Interpreter(module, fuel=FUEL), "main", inputs)
            except Exhausted:
                continue
            compare(p, got, wanted, f"after {step}, run {number}")


def check_compiled(p: Program, target: str = "c", machine: str = "") -> None:
    """Compare results of the compiled program, and check that its arguments are unchanged."""
    module = parsed(p.text)
    trials = _trials(p, module, SIZES, len(SIZES)) + _trials(p, module, LONGER, 3)
    program = sw.compile(p.text, target=target, machine=machine)
    for number, (inputs, wanted) in enumerate(trials):
        given = [_outside(a, x) for a, x in zip(p.arguments, inputs, strict=True)]
        kept = [x.copy() for x in given]
        got = program(*given)
        results = got if isinstance(got, tuple) else (got,)
        for before, after in zip(kept, given, strict=True):
            assert before.tobytes() == after.tobytes(), f"run {number} wrote an argument"
        compare(p, results, wanted, f"compiled, run {number}")


def _outside(argument: Value, x: Array) -> Array:
    return x.astype(ml_dtypes.bfloat16) if argument.dtype == "bf16" else x


def compare(p: Program, got: Sequence[Array], wanted: Sequence[Array], what: str) -> None:
    """Fail unless results are equal to those wanted, as exactly as each is known."""
    assert len(got) == len(wanted), what
    for value, have, want in zip(p.results, got, wanted, strict=True):
        have, want = np.asarray(have), np.asarray(want)
        assert have.shape == want.shape, f"%{value.name} {what}: {have.shape} for {want.shape}"
        if value.dtype == "bf16":
            have = have.astype(np.float32)
        if have.dtype != want.dtype and want.dtype.kind == "u":
            have = np.ascontiguousarray(have).view(want.dtype).reshape(want.shape)
        allowed = max(TOLERANCE.get(each, 0.0) for each in (*p.widened, value.dtype))
        off = ~_equal(value, have, want, allowed)
        if off.any():
            at = tuple(int(i) for i in np.argwhere(off)[0])
            raise AssertionError(
                f"%{value.name}{list(at)} {what}: {have[at]!r}, on nd {want[at]!r}\n{p.text}"
            )


def _equal(value: Value, have: Array, want: Array, allowed: float) -> Array:
    with np.errstate(all="ignore"):
        same = np.asarray(have == want)
        if not value.floats:
            return same
        same |= np.isnan(have) & np.isnan(want)
        if value.exact:
            return same
        finite = np.abs(want[np.isfinite(want)]).astype(np.float64)
        scale = max(float(finite.max()) if finite.size else 1.0, 1.0)
        apart = np.abs(have.astype(np.float64) - want.astype(np.float64))
        strange = ~np.isfinite(have) & ~np.isfinite(want)
        return same | strange | (apart <= allowed * scale)
