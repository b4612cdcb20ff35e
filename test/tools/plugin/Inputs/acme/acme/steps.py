"""A target whose programs run: loops as text, taken step by step by the reference interpreter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from stepwell.extending import (
    Called,
    Entry,
    Interpreter,
    Machine,
    Signature,
    Target,
    call,
    entries,
    parse_module,
    registry,
    text_of,
)


@dataclass(frozen=True)
class Text:
    """What `emit` returns of a program."""

    source: str
    signature: Signature
    header: str = ""


def _emit(module: ModuleOp, name: str) -> Text:
    """Return the text of a program, and what its caller must know."""
    entry = next(e for e in entries(module, "acme-steps") if e.name == name)
    return Text(text_of(module), entry.signature)


def _load(text: Path, entry: Entry, constants: Sequence[Any]) -> Called:
    """Return what calls the program in a file."""
    module = parse_module(registry().context(), text.read_text(), text.name)
    weights = {w.name: x for w, x in zip(entry.signature.constants, constants, strict=True)}
    return Called(entry, lambda given: call(Interpreter(module, weights), entry.name, given))


def _usual(machine: Machine) -> Machine:
    """Short vectors are easier to follow."""
    return replace(machine, vector_bits=128)


def _limits(machine: Machine) -> Machine:
    """One step after the other, and nothing before the first call."""
    return replace(machine, threads=1, hoist_constants=0)


STEPS = Target(
    name="acme-steps",
    about="loops as text, run by the reference interpreter",
    emit=_emit,
    load=_load,
    source="program.mlir",
    usual=_usual,
    limits=_limits,
)
