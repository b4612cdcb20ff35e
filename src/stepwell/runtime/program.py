"""A program on disk: program.c, .h, .so and .json, or program.cl and .json, and constants.bin.

A C program is loaded from program.so as program.json describes it; its source and header are for
people. An OpenCL program is built from its source for the device that it is loaded on. The
description of a saved program has the digests of all files and of itself: all load, or none does.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from stepwell.core.description import Digests, read, written
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.files import replacing, write_whole
from stepwell.core.guards import VALUES
from stepwell.core.machine import this_machine, thread_count, thread_limit
from stepwell.core.signature import Signature
from stepwell.core.targets import OURS, Target, target_of
from stepwell.runtime.cache import CONSTANTS
from stepwell.runtime.constants import (
    at_a_line,
    broken,
    constant,
    given,
    map_constants,
    write_constants,
)
from stepwell.runtime.entry import Array, Entry, numpy_dtype
from stepwell.runtime.extension import Callee, Dispatcher, load_extension
from stepwell.runtime.fallback import CtypesProgram, PythonDispatcher
from stepwell.runtime.private import forbids_code
from stepwell.runtime.sums import digest_of

LOG = logging.getLogger("stepwell")
SOURCE, HEADER, LIBRARY, DESCRIPTION = "program.c", "program.h", "program.so", "program.json"
MAX_DESCRIPTION_BYTES = 1 << 28
"""Descriptions of more bytes are refused: the file may come from anybody."""

_loaded: dict[Path, list[int]] = {}
"""The inodes of the libraries loaded from each path."""
_LOADING = threading.Lock()
_INSTRUCTIONS = re.compile(r"avx|fma|sse|bmi|f16c|amx|sve|asimd|popcnt|abm|adx|vaes|gfni")


@dataclass(frozen=True, eq=False)
class Program:
    """A loaded program. ``call`` takes and returns arrays."""

    folder: Path
    signature: Signature
    constants: tuple[Array, ...]
    call: Callee
    target: Target
    digests: Digests | None = None
    """The digests of its files, if it was loaded from a saved program."""
    threads: int | None = None
    """The maximum number of threads; None for no limit."""
    device: Any = None
    """The device that it runs on; None for the host."""
    complete: Callable[[], Any] | None = None
    """Makes it serve all sizes; None if it does."""

    @cached_property
    def updating(self) -> Entry:
        """An entry that writes results into the arguments that they replace."""
        how: dict[str, Any] = {"device": self.device, "complete": self.complete}
        return Entry(self.signature, self.call, in_place=self.target.in_place, **how)

    def same_constants(self, signature: Signature, make: Any = None) -> tuple[Array, ...]:
        """Return its constants for another program of the same module.

        make : not called; constants are given to `load_program` in this form
        """
        if signature.constants != self.signature.constants:
            raise broken(self.folder, "its weights are laid out in another way for other sizes")
        return self.constants

    @property
    def dispatched(self) -> bool:
        """Whether a dispatcher can call it: it has guards in C."""
        extension = load_extension()
        return extension is not None and type(self.call) is extension.Program

    @property
    def source(self) -> str:
        """The source of the program in its target's language."""
        name = self.target.source
        if self.digests is not None:
            _check_file(self.folder, name, self.digests)
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise broken(self.folder, f"there is no {name} in it") from None

    def save(self, path: Path) -> None:
        """Write all that `load` needs into the folder ``path``; replace a program saved there.

        Raises `CompileError` if files of the program were removed after it was loaded.
        """
        if self.digests is not None and self.folder.resolve() == path.resolve():
            return
        path.mkdir(parents=True, exist_ok=True)
        (path / DESCRIPTION).unlink(missing_ok=True)  # an incomplete folder must not load
        needed = _needed(self.target)
        for name in _files(self.target):
            if name in needed or (self.folder / name).exists():
                if self.digests is not None:
                    _check_file(self.folder, name, self.digests)
                _copy(self.folder, name, path)
            else:
                (path / name).unlink(missing_ok=True)
        if self.constants:
            write_constants(path / CONSTANTS, self.constants)
        else:
            (path / CONSTANTS).unlink(missing_ok=True)
        seal(path, self.signature)


def write_program(
    folder: Path,
    source: str,
    header: str,
    signature: Signature,
    build: Callable[[Path, Path], None] | None,
    resources: Mapping[str, Any] | None = None,
) -> None:
    """Write a program into ``folder``, with its weights if ``resources`` are given.

    build : compiles the source of a C program to its library
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / target_of(signature.target).source
    text.write_text(source, encoding="utf-8")
    (folder / DESCRIPTION).write_text(written(signature), encoding="utf-8")
    if build is not None:
        (folder / HEADER).write_text(header, encoding="utf-8")
        build(text, folder / LIBRARY)
    if resources and signature.constants:
        write_constants(folder / CONSTANTS, _constants(folder, signature, resources))


def seal(folder: Path, signature: Signature) -> None:
    """Write the description of a saved program with the digests of its files, as the last file."""
    names = (*_files(target_of(signature.target)), CONSTANTS)
    present = [name for name in names if (folder / name).exists()]
    digests = {name: digest_of(folder / name, thread_count()) for name in present}
    write_whole(folder / DESCRIPTION, written(signature, digests))


def load_program(
    folder: Path,
    resources: Mapping[str, Any] | None = None,
    kept: Callable[[Signature, Callable[[], tuple[Array, ...]]], tuple[Array, ...]] | None = None,
    threads: int | None = None,
    device: str = "",
    complete: Callable[[], Any] | None = None,
) -> Program:
    """Load the program in ``folder``; weights come from ``resources``, else from constants.bin.

    Without ``resources`` it is a saved program, and its files must have the digests that were
    saved. Raises `CompileError` if it cannot be loaded, for any reason.

    kept : returns the program's constants from a cache, or calls its second argument for them
    threads : the maximum number of threads of a C program; None for no limit
    device : the device that a device program runs on; "" for the default
    complete : makes a program serve all sizes that lacks code for some
    """
    thread_limit(threads)
    signature, digests = _read_description(folder)
    target = _target(folder, signature)
    target.check_device(device)
    if target.native:
        _check_machine(signature, folder)
    if resources is None:
        _check_saved(folder, signature, target, digests)
        constants = map_constants(folder / CONSTANTS, signature.constants)
    elif kept is None:
        constants = _constants(folder, signature, resources, device)
    else:
        constants = kept(signature, lambda: _constants(folder, signature, resources, device))
    if threads is not None and not target.native:
        message = f"a limit of threads is for programs of C, not of {signature.target}"
        raise CompileError(Diagnostic("error", message, help="leave threads away"))
    complete = complete if signature.served else None
    callee = load_callee(folder, signature, constants, threads, device, complete)
    where = target.device_named(device)
    return Program(folder, signature, constants, callee, target, digests, threads, where, complete)


def _constants(
    folder: Path, signature: Signature, resources: Mapping[str, Any], device: str = ""
) -> tuple[Array, ...]:
    """Return all constants of the program: the given ones, and those computed from given ones."""
    created: tuple[Array, ...] = ()
    if (maker := signature.maker) is not None:
        # given for this one call only, so no copy guards against later changes by the caller
        arrays = [np.require(given(c, resources), None, ["C", "A"]) for c in maker.constants]
        results = load_callee(folder, maker, arrays, device=device).invoke((), None)
        created = results if isinstance(results, tuple) else (results,)
        created = tuple(at_a_line(array) for array in created)
        for array in created:
            array.flags.writeable = False
    return tuple(
        constant(c, resources) if c.made is None else created[c.made] for c in signature.constants
    )


def make_dispatcher(
    miss: Callable[[tuple[Any, ...], dict[str, Any]], Any], takes_out: bool = True
) -> Dispatcher:
    """Return a callable that tries programs in order and then ``miss(args, kwargs)``.

    takes_out : whether ``out=`` names arrays for the results instead of an argument
    """
    extension = load_extension()
    return (extension.Dispatcher if extension else PythonDispatcher)(miss, takes_out)


def load_callee(
    folder: Path,
    signature: Signature,
    constants: Sequence[Array],
    threads: int | None = None,
    device: str = "",
    complete: Callable[[], Any] | None = None,
) -> Callee:
    """Return the callee of the program in ``folder``; ``threads`` limits its threads."""
    entry = Entry(signature, complete=complete)
    target = _target(folder, signature)
    if target.native:
        return _load_library(folder / LIBRARY, entry, constants, threads)
    source = folder / target.source
    if not source.is_file():
        raise broken(folder, f"there is no {source.name} in it")
    try:
        callee: Callee = target.loaded(source, entry, constants, device)
    except ValueError as error:
        raise broken(folder, str(error)) from None
    entry.callee = callee
    return _guarded(entry, callee) if target.on_device else callee


def _guarded(entry: Entry, callee: Callee) -> Callee:
    """Wrap a device program's callee in guards in C if the extension is available."""
    extension, signature = load_extension(), entry.signature
    if extension is None or signature.checks:
        return callee
    return extension.Program(
        **{"entry": 0, "shapes": 0, "checks": 0, "arena": 0, "static_arena": 0, "heavy": False},
        **_guards(signature),
        constants=(),
        keep=callee,
        miss=entry.miss,
        failed=entry.failed,
        threads=0,
        foreign=callee.invoke,
    )


def _guards(signature: Signature) -> dict[str, Any]:
    """Return the guards of arguments and results in the extension's format."""
    return {
        "inputs": tuple((numpy_dtype(a.dtype), a.shape) for a in signature.arguments),
        "outputs": tuple((numpy_dtype(r.dtype), r.shape) for r in signature.results),
        "equal": (
            *((group[0], other) for group in signature.equal for other in group[1:]),
            *((number, -size - 1) for number, size in signature.fixed),
        ),
        "into": signature.into,
    }


def _load_library(
    path: Path, entry: Entry, constants: Sequence[Array], threads: int | None
) -> Callee:
    signature = entry.signature
    if _is_cut_short(path):
        raise broken(path.parent, f"its {path.name} is cut short")
    try:
        library = ctypes.CDLL(_distinct_spelling(path))
    except OSError as error:
        why = f"its library cannot be loaded ({error})"
        if forbids_code(path.parent):
            help = "put it, or STEPWELL_CACHE, on a file system without noexec"
            raise broken(path.parent, why, help) from None
        raise broken(path.parent, why) from None
    name = signature.symbol
    wanted = {
        name: True,
        f"{name}_shapes": signature.sized_by_program,
        f"{name}_arena": signature.arena is None,
        f"{name}_checks": bool(signature.tested),
        f"{name}_fault": bool(signature.guards),
    }
    for function, is_wanted in wanted.items():
        if is_wanted and _address(library, function) == 0:
            raise broken(path.parent, f"its library has no function {function}")
    if signature.guards:
        entry.noted = _fault_reader(getattr(library, f"{name}_fault"))
        if _address(library, f"{name}_host"):
            import_module("stepwell.runtime.host_calls").set_host(library, f"{name}_host")
    extension = load_extension()
    if extension is None:
        entry.callee = CtypesProgram(library, entry, constants, threads)
        return entry.callee
    entry.callee = extension.Program(
        entry=_address(library, name),
        shapes=_address(library, f"{name}_shapes"),
        checks=_address(library, f"{name}_checks") if signature.tested else 0,
        arena=_address(library, f"{name}_arena") if signature.arena is None else 0,
        static_arena=signature.arena or 0,
        heavy=signature.loops,
        **_guards(signature),
        constants=tuple(constants),
        keep=library,
        miss=entry.miss,
        failed=entry.failed,
        threads=0 if threads is None else thread_limit(threads),
        foreign=None,
    )
    return entry.callee


def _fault_reader(function: Any) -> Callable[[], Sequence[int]]:
    """Return a function that reads the numbers of the failed guard from a library."""
    function.restype = ctypes.c_char_p

    def noted() -> Sequence[int]:
        values = (ctypes.c_int64 * VALUES)()
        function(values)
        return tuple(values)

    return noted


def _distinct_spelling(path: Path) -> str:
    """Return a different spelling of ``path`` for each library that has had this path.

    For the same name the loader would return the library that it has loaded before.
    """
    path = path.absolute()
    number = path.stat().st_ino
    with _LOADING:
        known = _loaded.setdefault(path, [])
        if number not in known:
            known.append(number)
        return os.path.join(path.parent, *["."] * known.index(number), path.name)


def _is_cut_short(path: Path) -> bool:
    """Whether a library is truncated, as far as its ELF header tells.

    Loading a truncated library kills the process.
    """
    if not path.is_file():  # opening a pipe would block
        return False
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return False
    (sections,) = struct.unpack_from("<Q", head, 40)
    size, count = struct.unpack_from("<HH", head, 58)
    return path.stat().st_size < sections + size * count


def _address(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function of ``library``, 0 if it has no such function."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _read_description(folder: Path) -> tuple[Signature, Digests | None]:
    file = folder / DESCRIPTION
    try:
        if file.exists() and not file.is_file():
            raise ValueError("it is no plain file")
        if file.stat().st_size > MAX_DESCRIPTION_BYTES:
            raise ValueError(f"it has more than {MAX_DESCRIPTION_BYTES:,} bytes")
        return read(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise broken(folder, f"there is no {DESCRIPTION} in it") from None
    except OSError as error:
        raise broken(folder, f"its {DESCRIPTION} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise broken(folder, f"its {DESCRIPTION} cannot be read ({error})") from None


def _target(folder: Path, signature: Signature) -> Target:
    """Return the target of a program; the package that defines it may be missing."""
    try:
        return target_of(signature.target)
    except CompileError as error:
        help = "install the package that has this target, or name it by --plugin"
        raise broken(folder, error.diagnostic.message, help) from error


def _files(target: Target) -> list[str]:
    """Return all files that a folder may hold besides description and weights, of any target."""
    sources = [each.source for each in OURS.values()]
    return list(dict.fromkeys([target.source, *sources, HEADER, LIBRARY]))


def _needed(target: Target) -> set[str]:
    """Return the files without which a program cannot run, except its weights."""
    return {LIBRARY if target.native else target.source}


def _check_saved(
    folder: Path, signature: Signature, target: Target, digests: Digests | None
) -> None:
    """Check that all files of a saved program have the digests that were saved."""
    if digests is None:
        why = f"its {DESCRIPTION} has no digests of its files, as that of a saved program has"
        raise broken(folder, why)
    needed = _needed(target) | ({CONSTANTS} if signature.constants else set())
    for name in (*_files(target), CONSTANTS):
        if name in needed or (name in digests and (folder / name).exists()):
            _check_file(folder, name, digests)


def _check_file(folder: Path, name: str, digests: Digests) -> None:
    if not (folder / name).exists():
        raise broken(folder, f"there is no {name} in it")
    if name == LIBRARY and _is_cut_short(folder / name):
        raise broken(folder, f"its {name} is cut short")
    try:
        found = digest_of(folder / name, thread_count())
    except OSError as error:
        raise broken(folder, f"its {name} cannot be read ({error.strerror})") from None
    if found != digests.get(name):
        raise broken(folder, f"its {name} is damaged or another's: it is not what was saved")


def _copy(folder: Path, name: str, target: Path) -> None:
    try:
        with replacing(target / name) as file:  # the existing file may be loaded
            import_module("shutil").copyfile(folder / name, file)
    except FileNotFoundError:
        raise broken(folder, f"there is no {name} in it any more") from None


def _check_machine(signature: Signature, folder: Path) -> None:
    """Refuse a program whose instructions this processor may lack: it would be killed."""
    wanted = {f for f in signature.machine.split() if _INSTRUCTIONS.match(f)}
    if lacking := sorted(wanted - set(this_machine().features.split())):
        raise broken(
            folder,
            f"it was compiled for a processor with {', '.join(lacking[:4])}, unlike this one",
        )
