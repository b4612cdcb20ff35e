"""Explanations of schedules, given by the code that chooses, collected on request.

An explanation is put into words only while someone collects them, so they cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.ir import Operation

from stepwell.dialects import kernel

Reasons = dict[str, list[str]]
"""The explanations of each kernel, by its name."""

_listener: ContextVar[Reasons | None] = ContextVar("reasons", default=None)


def explain_choice(op: Operation, say: Callable[[], str]) -> None:
    """Explain a choice for the kernel that ``op`` is or is part of."""
    if (reasons := _listener.get()) is None:
        return
    found: Operation | None = op
    while found is not None and not isinstance(found, kernel.FuncOp):
        found = found.parent_op()
    if found is not None:
        reasons.setdefault(found.sym_name.data, []).append(say())


def copy_explanation(function: kernel.FuncOp, name: str) -> None:
    """Copy the explanations of the kernel named ``name`` to another kernel."""
    if (reasons := _listener.get()) is not None and name in reasons:
        reasons.setdefault(function.sym_name.data, []).extend(reasons[name])


@contextmanager
def explanations() -> Generator[Reasons]:
    """Collect the explanations that are given inside."""
    reasons: Reasons = {}
    token = _listener.set(reasons)
    try:
        yield reasons
    finally:
        _listener.reset(token)


def spell_bytes(count: int) -> str:
    """Return a size in a readable unit.

    >>> spell_bytes(100), spell_bytes(1 << 18), spell_bytes(2202009)
    ('100 bytes', '256 KB', '2.1 MB')
    """
    if count < 1 << 10:
        return f"{count} bytes"
    if count < 1 << 20:
        return f"{count / (1 << 10):.3g} KB"
    return f"{count / (1 << 20):.3g} MB"
