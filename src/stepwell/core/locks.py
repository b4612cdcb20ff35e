"""Lock files: schedules found by timing, for kernels identified by their content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.escape import quoted
from stepwell.core.files import read_whole, write_whole
from stepwell.core.hashing import sha256
from stepwell.core.machine import Machine
from stepwell.core.schema import Reader, parsed, shown, text, whole, wrong

FORMAT = 2
ABOUT = "schedules that `stepwell compile --tune` found; times are seconds of one launch"


@dataclass(frozen=True)
class Tuned:
    """The tuning result of one kernel.

    schedule : the levels of its loops, as in `kernel.schedule`
    seconds, before : of a launch with this schedule, and with the cost model's
    tried : the number of schedules timed
    """

    name: str
    schedule: str
    seconds: float
    before: float
    tried: int


@dataclass(frozen=True)
class Lock:
    """The content of a lock file: the machine, and tuning results by kernel key."""

    machine: Mapping[str, Any]
    kernels: Mapping[str, Tuned] = field(default_factory=dict[str, Tuned])

    def to_json(self) -> str:
        """Return the text of the file: one line for each kernel's schedule."""
        about = {"format": FORMAT, "about": ABOUT, "machine": dict(self.machine), "kernels": {}}
        kernels = ",".join(
            f"\n  {json.dumps(key)}: {_on_lines(asdict(tuned))}"
            for key, tuned in self.kernels.items()
        )
        return json.dumps(about, indent=1).removesuffix("}\n}") + f"{kernels}\n }}\n}}\n"

    def misfit(self, machine: Machine) -> str:
        """Return the differences from the machine the file was made for, "" if there are none."""
        here = machine_key(machine)
        return ", ".join(
            f"{name} {self.machine.get(name)} there, {value} here"
            for name, value in here.items()
            if self.machine.get(name) != value
        )


def _on_lines(fields: Mapping[str, Any]) -> str:
    """Spell an object with each field on one line."""
    rows = ",".join(f"\n   {json.dumps(key)}: {json.dumps(each)}" for key, each in fields.items())
    return f"{{{rows}\n  }}"


def machine_key(machine: Machine) -> dict[str, Any]:
    """Return the machine properties that schedules depend on."""
    processor = sha256(machine.features.encode()).hexdigest()[:12]
    names = ("vector_bits", "vector_lanes", "vector_registers", "l1", "l2", "l3", "threads")
    return {**{name: getattr(machine, name) for name in names}, "processor": processor}


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lock.to_json())


def read_lock(path: Path) -> Lock:
    """Read a lock file; `CompileError` if it is invalid."""
    try:
        return parse_lock(read_whole(path).decode())
    except OSError as error:
        raise _error(f"cannot read the lock file {path}: {error.strerror}") from None
    except ValueError as error:
        raise _error(f"{path} is no lock file: {error}") from None


def parse_lock(given: str) -> Lock:
    """Read the text of a lock file; ValueError if it is invalid."""
    try:
        found = parsed(given)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if "format" not in found:
        raise ValueError("it has no 'format'")
    if found["format"] != FORMAT:
        raise ValueError(f"it has format {shown(found['format'])}, expected {FORMAT}")
    for name in ("machine", "kernels"):
        if not isinstance(found.get(name), dict):
            raise ValueError(f"'{name}' must be an object")
    kernels = {key: _read_tuned(key, each) for key, each in found["kernels"].items()}
    return Lock(found["machine"], kernels)


def _read_tuned(key: str, found: Any) -> Tuned:
    """Read the tuning result of one kernel."""
    key = quoted(key, 40)
    names = [field.name for field in fields(Tuned)]
    if not isinstance(found, dict) or set(found) != set(names):
        raise ValueError(f"kernel {key} must have {', '.join(names)} and nothing else")
    for name, reader in _READERS.items():
        reader(found[name], f"kernel {key}: '{name}'")
    return Tuned(**found)


def _time(value: Any, place: str) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e9:
        raise wrong(place, "seconds", value)
    return value


_READERS: dict[str, Reader[Any]] = {
    "name": text(),
    "schedule": text(),
    "seconds": _time,
    "before": _time,
    "tried": whole(),
}


def _error(message: str) -> CompileError:
    help = "make it anew with stepwell compile --tune, or leave it away"
    return CompileError(Diagnostic("error", message, help=help))
