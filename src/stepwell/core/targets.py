"""What programs are compiled to: one record for each target, ours and those of packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.machine import VARIABLE, Machine, described_machine, named
from stepwell.core.plugins import Plugin, load, plugins, with_broken

Emit: TypeAlias = Callable[[Any, str], Any]
"""``(module on the floor of loops, entry) -> text``, which has source, header and signature."""
Load: TypeAlias = Callable[[Path, Any, Sequence[Any]], Any]
"""``(file of the text, Entry, constants) -> Callee``, both as in `stepwell.runtime`."""


def _same(machine: Machine) -> Machine:
    return machine


@dataclass(frozen=True)
class Target:
    """All that the compiler, the runtime and the tools must know of a target.

    emit : prints a module on the floor of loops: a function of its type, or ``"module:NAME"``
    load : makes a callable of the text that was printed; none for what is ours to load
    source : the file of the text in a saved program
    about : a line that `stepwell targets` prints
    usual : the machine to compile for, unless told otherwise, of the one we run on
    limits : what of a machine its programs cannot have, whatever is asked for
    native : whether the text is C that the C compiler makes a library of; only such programs can
        be compiled in parts
    timed : ``(program, updating) -> Timed`` (`runtime.timing`), or ``"module:NAME"``, of programs
        that can be profiled and tuned
    in_place : whether its programs take one array for an argument and the result that replaces it
    on_device : ``(device, machine) -> machine``, or ``"module:NAME"``, for programs that run on a
        device: what to compile for where that device is meant, or, of "", the one that would be
        chosen; ``load`` takes the device too, as ``device=``
    device : ``(device) -> object``, or ``"module:NAME"``: what arrays on it have as `device`
    """

    name: str
    emit: str | Emit
    load: str | Load = ""
    source: str = "program.txt"
    about: str = ""
    usual: Callable[[Machine], Machine] = _same
    limits: Callable[[Machine], Machine] = _same
    native: bool = False
    in_place: bool = False
    on_device: str | Callable[[str, Machine], Machine] = ""
    device: str | Callable[[str], Any] = ""
    timed: str | Callable[[Any, bool], Any] = ""

    def emitted(self, module: Any, entry: str) -> Any:
        """Return a module's text, header and signature."""
        return _found(self.emit)(module, entry)

    def loaded(self, text: Path, entry: Any, constants: Sequence[Any], device: str = "") -> Any:
        """Return what runs a program whose text lies in a file."""
        self.check_device(device)
        if not self.on_device:
            return _found(self.load)(text, entry, constants)
        return _found(self.load)(text, entry, constants, device=device)

    def device_named(self, text: str) -> Any:
        """Return the device that is meant; None where programs run on the host."""
        return _found(self.device)(text) if self.device else None

    def timed_program(self, program: Any, updating: bool) -> Any:
        """Return a program with clocks in it."""
        return _found(self.timed)(program, updating)

    def check_device(self, device: str) -> None:
        """Refuse a device where programs run on the host."""
        if device and not self.on_device:
            message = f"a program of target '{self.name}' runs on the host, not on '{device[:60]}'"
            help = "leave the device away, or choose target 'opencl'"
            raise CompileError(Diagnostic("error", message, help=help))

    def machine(self, host: Machine, device: str = "") -> Machine:
        """Return what to compile for on a host, and the device that is meant."""
        self.check_device(device)
        machine = self.usual(host)
        return _found(self.on_device)(device, machine) if self.on_device else machine


def _found(place: Any) -> Any:
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


OPENCL_VECTOR_BITS = 256
OPENCL_LANES = 8
"""The widest vectors of OpenCL programs, so that a truth value of 32 bits for each lane fits too.

PoCL's compiler dies of some operations on wider vectors, and gets others wrong."""


OPENCL_REGISTERS = 16
"""Vectors of 256 bits that registers hold where a compiler does not use AVX-512."""


def _narrow(machine: Machine) -> Machine:
    bits = min(machine.vector_bits, OPENCL_VECTOR_BITS)
    registers = machine.vector_registers if bits == machine.vector_bits else OPENCL_REGISTERS
    return replace(machine, vector_bits=bits, vector_lanes=OPENCL_LANES, vector_registers=registers)


def _of_work_items(machine: Machine) -> Machine:
    """Programs compute nothing at load, and a kernel's parts are chosen before its sizes.

    A work-item of a device has no stack to pack operands on; its threads are the device's.
    """
    alone = {"l2": 0, "threads": 1} if machine.lanes > 1 else {}
    return replace(machine, hoist_constants=0, versions=0, **alone)


OURS = {
    target.name: target
    for target in (
        Target(
            "c",
            "stepwell.lowering.emit:emit_c",
            source="program.c",
            about="C for this processor, compiled by the C compiler",
            native=True,
            in_place=True,
            timed="stepwell.runtime.profiling:TimedC",
        ),
        Target(
            "opencl",
            "stepwell.lowering.emit.opencl:emit_opencl",
            "stepwell.runtime.opencl:OpenCLProgram",
            "program.cl",
            "OpenCL C for a device, as `stepwell devices` lists them (stepwell[opencl])",
            _narrow,
            _of_work_items,
            in_place=True,
            on_device="stepwell.runtime.opencl.machines:machine_on",
            device="stepwell.runtime.opencl.device:open_device",
            timed="stepwell.runtime.opencl.profiling:TimedOpenCL",
        ),
    )
}
"""The targets that are part of Stepwell, by name."""


def target_of(name: str) -> Target:
    """Return the record of a target whose programs can be run; `CompileError` where there is none.

    >>> target_of("c").source
    'program.c'
    """
    if name in OURS:
        return OURS[name]
    if (plugin := _plugin_with(name)) is None:
        known = target_names()
        help = did_you_mean(name, known) or f"the targets are {', '.join(known)}"
        unknown = Diagnostic("error", f"unknown target '{name}'", help=help)
        raise CompileError(with_broken(unknown))
    found = record(_made(plugin, name))
    if found is None:
        message = f"target '{name}' of {plugin.name} only prints modules: nothing runs its text"
        help = f"print by stepwell-opt -t {name}"
        raise CompileError(Diagnostic("error", message, help=help))
    return found


def _made(plugin: Plugin, name: str) -> Any:
    try:
        return load(plugin).all_targets[name]()
    except CompileError:
        raise
    except Exception as error:  # whatever a stranger's module does when it is imported
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        message = f"cannot load the target '{name}' of {plugin.name}: {said}"
        raise CompileError(Diagnostic("error", message)) from error


def target_names() -> list[str]:
    """Return the name of every target, those that only print modules among them."""
    names = dict.fromkeys(OURS)
    for _, universe in _universes():
        names.update(dict.fromkeys(universe.all_targets))
    return list(names)


def record(printing: Any) -> Target | None:
    """Return the record of what ``-t`` prints by; None where that only prints."""
    found = getattr(printing, "record", None)
    return found if isinstance(found, Target) else None


def _plugin_with(name: str) -> Plugin | None:
    """Return the plug-in that has a target; `CompileError` where several do."""
    having = [plugin for plugin, universe in _universes() if name in universe.all_targets]
    if len(having) > 1:
        message = f"target '{name}' of {having[1].name} is already one of {having[0].name}"
        help = "one of the packages has to choose another name"
        raise CompileError(Diagnostic("error", message, help=help))
    return having[0] if having else None


def _universes() -> list[tuple[Plugin, Any]]:
    found: list[tuple[Plugin, Any]] = []
    for plugin in plugins():
        try:
            found.append((plugin, load(plugin)))
        except CompileError:
            if not plugin.installed:
                raise
    return found


def machine_for(target: str, asked: str | Machine = "", device: str = "") -> Machine:
    """Return what to compile for: the machine as ``target`` sees it, changed as ``asked``.

    asked : as `Machine.override` takes it; a machine that it or STEPWELL_MACHINE names takes the
        place of this one, and of the device
    device : that programs are to run on; "" for the one that would be chosen
    """
    record = target_of(target)
    record.check_device(device)
    if isinstance(asked, Machine):
        return asked
    name, rest = named(asked)
    host = described_machine().override(name)
    is_named = name or named(os.environ.get(VARIABLE, ""))[0]
    machine = record.usual(host) if is_named else record.machine(host, device)
    return machine.override(",".join(rest))


def target_for(target: str, device: str) -> str:
    """Return the target that is meant: "c" where neither it nor a device is named.

    >>> target_for("", "gpu"), target_for("", "")
    ('opencl', 'c')
    """
    return target or ("opencl" if device else "c")
