"""The compilation targets: one record for each, built in or from a package."""

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
"""``(module on the floor of loops, entry) -> text``, an object with source, header, signature."""
Load: TypeAlias = Callable[[Path, Any, Sequence[Any]], Any]
"""``(source file, Entry, constants) -> Callee``, both as in `stepwell.runtime`."""


def _same(machine: Machine) -> Machine:
    return machine


@dataclass(frozen=True)
class Target:
    """All properties of a target that the compiler, the runtime and the tools use.

    emit : prints a module on the floor of loops: a function of this type, or ``"module:NAME"``
    load : makes a callable of the printed text; none for targets that the runtime loads itself
    source : the name of the source file in a saved program
    about : a line that `stepwell targets` prints
    usual : returns the default machine to compile for, given the host's or one that a user names
    limits : machine properties that its programs cannot have, even if the user sets them
    native : whether the text is C that the C compiler builds a library from; only such programs
        can be compiled in parts
    timed : ``(program, updating) -> Timed`` (`runtime.timing`), or ``"module:NAME"``, for programs
        that can be profiled and tuned
    in_place : whether its programs accept the same array as argument and as result replacing it
    on_device : ``(device, host) -> machine``, or ``"module:NAME"``, for programs that run on a
        device: the machine to compile for on that device, "" being the default device, given the
        host's; ``load`` then takes the device too, as ``device=``
    device : ``(device) -> object``, or ``"module:NAME"``: the `device` attribute of its arrays;
        raises `CompileError` if the device can run no programs
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
        """Return the text, header and signature of a module."""
        return _resolved(self.emit)(module, entry)

    def loaded(self, text: Path, entry: Any, constants: Sequence[Any], device: str = "") -> Any:
        """Return the callee of a program whose source is in a file."""
        self.check_device(device)
        if not self.on_device:
            return _resolved(self.load)(text, entry, constants)
        return _resolved(self.load)(text, entry, constants, device=device)

    def device_named(self, text: str) -> Any:
        """Return the device object; None if programs run on the host."""
        return _resolved(self.device)(text) if self.device else None

    def timed_program(self, program: Any, updating: bool) -> Any:
        """Return a program with clock readings."""
        return _resolved(self.timed)(program, updating)

    def check_device(self, device: str) -> None:
        """Refuse a device if programs run on the host."""
        if device and not self.on_device:
            message = f"a program of target '{self.name}' runs on the host, not on '{device[:60]}'"
            help = "leave the device away, or choose target 'opencl'"
            raise CompileError(Diagnostic("error", message, help=help))

    def machine(self, host: Machine, device: str = "") -> Machine:
        """Return the machine to compile for, given the host and the device."""
        self.check_device(device)
        if self.on_device:
            return _resolved(self.on_device)(device, host)
        return self.usual(host)


def _resolved(place: Any) -> Any:
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


OPENCL_LANES = 8
"""Maximum lanes of vectors in OpenCL programs, so that 32-bit masks for all lanes fit too, unless
the driver of the device is known to compute longer ones right: some miscompile them, or crash."""


OPENCL_REGISTERS = 16
"""Vector registers, for compilers that do not use AVX-512."""


def with_lanes(machine: Machine, lanes: int = OPENCL_LANES) -> Machine:
    """Return a machine whose vectors have at most ``lanes`` elements, and 32 bits for each."""
    bits = min(machine.vector_bits, 32 * lanes)
    registers = machine.vector_registers if bits == machine.vector_bits else OPENCL_REGISTERS
    return replace(machine, vector_bits=bits, vector_lanes=lanes, vector_registers=registers)


def _of_work_items(machine: Machine) -> Machine:
    """Adapt a machine to work items: no load-time constants, no versions chosen by size.

    A work item of a device has no stack for packed operands; the threads are those of the device.
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
            with_lanes,
            _of_work_items,
            in_place=True,
            on_device="stepwell.runtime.opencl.machines:machine_on",
            device="stepwell.runtime.opencl.device:working_device",
            timed="stepwell.runtime.opencl.profiling:TimedOpenCL",
        ),
    )
}
"""The built-in targets by name."""


def target_of(name: str) -> Target:
    """Return the record of a target with runnable programs; `CompileError` if there is none.

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
    found = record(_load_target(plugin, name))
    if found is None:
        message = f"target '{name}' of {plugin.name} only prints modules: nothing runs its text"
        help = f"print by stepwell-opt -t {name}"
        raise CompileError(Diagnostic("error", message, help=help))
    return found


def _load_target(plugin: Plugin, name: str) -> Any:
    try:
        return load(plugin).all_targets[name]()
    except CompileError:
        raise
    except Exception as error:  # importing a foreign module may raise anything
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        message = f"cannot load the target '{name}' of {plugin.name}: {said}"
        raise CompileError(Diagnostic("error", message)) from error


def target_names() -> list[str]:
    """Return the names of all targets, including those that only print modules."""
    names = dict.fromkeys(OURS)
    for _, universe in _universes():
        names.update(dict.fromkeys(universe.all_targets))
    return list(names)


def record(printing: Any) -> Target | None:
    """Return the record of a printing target; None if it only prints."""
    found = getattr(printing, "record", None)
    return found if isinstance(found, Target) else None


def _plugin_with(name: str) -> Plugin | None:
    """Return the plug-in that has a target; `CompileError` if several have it."""
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
    """Return the machine to compile for: the one that ``target`` uses, changed by ``asked``.

    asked : as `Machine.override` takes it; a machine named in it or in STEPWELL_MACHINE replaces
        the host's and the device's
    device : that programs are to run on; "" for the default
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
    """Return the target: "c" if neither a target nor a device is named.

    >>> target_for("", "gpu"), target_for("", "")
    ('opencl', 'c')
    """
    return target or ("opencl" if device else "c")
