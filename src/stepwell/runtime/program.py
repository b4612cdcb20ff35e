"""A program on disk: program.c, .h, .so and .json, or program.cl and .json, and constants.bin.

A program of C is loaded from program.so as program.json describes it; its text and header are for
people. One of OpenCL is built from its text for the device it is loaded on. In a saved program the
description has the digests of all other files and one of itself: it is loaded whole or not at all.
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
from stepwell.runtime.sums import digest_of

LOG = logging.getLogger("stepwell")
SOURCE, HEADER, LIBRARY, DESCRIPTION = "program.c", "program.h", "program.so", "program.json"
MAX_DESCRIPTION_BYTES = 1 << 28
"""A description of more bytes is refused: anybody could have written it."""

_loaded: dict[Path, list[int]] = {}
"""Which files, by their numbers, were libraries at a path."""
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
    """Of its files, where it was loaded from a saved program."""
    threads: int | None = None
    """How many threads it uses at most; None for all there are."""
    device: Any = None
    """What it runs on, if that is not the host."""

    @cached_property
    def updating(self) -> Entry:
        """What calls it so that arguments which results replace are changed."""
        in_place = self.target.in_place
        return Entry(self.signature, self.call, in_place=in_place, device=self.device)

    @property
    def dispatched(self) -> bool:
        """Whether a dispatcher may call it: it has guards in C."""
        extension = load_extension()
        return extension is not None and type(self.call) is extension.Program

    @property
    def source(self) -> str:
        """Return the text of the program in its target's language."""
        name = self.target.source
        if self.digests is not None:
            _check_file(self.folder, name, self.digests)
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise broken(self.folder, f"there is no {name} in it") from None

    def save(self, path: Path) -> None:
        """Write all that `load` needs into the folder ``path``, in place of what was saved there.

        Raises `CompileError` where files of the program have gone since it was loaded.
        """
        if self.digests is not None and self.folder.resolve() == path.resolve():
            return
        path.mkdir(parents=True, exist_ok=True)
        (path / DESCRIPTION).unlink(missing_ok=True)  # until all is there, there is no program
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
    """Write a program into ``folder``, with its weights if told.

    build : makes the library of a program of C from its source
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
    """Write the description of a saved program, with the digests of its files, last of all."""
    names = (*_files(target_of(signature.target)), CONSTANTS)
    there = [name for name in names if (folder / name).exists()]
    digests = {name: digest_of(folder / name, thread_count()) for name in there}
    write_whole(folder / DESCRIPTION, written(signature, digests))


def load_program(
    folder: Path,
    resources: Mapping[str, Any] | None = None,
    kept: Callable[[Signature, Callable[[], tuple[Array, ...]]], tuple[Array, ...]] | None = None,
    threads: int | None = None,
    device: str = "",
) -> Program:
    """Load the program in ``folder``; weights come from ``resources``, else from constants.bin.

    Without ``resources`` it is a saved program, and its files must be those that were saved
    together. Raises `CompileError` where it cannot be loaded, whatever the reason.

    kept : returns the constants of the program, or calls what makes them of ``resources``
    threads : how many threads a program of C uses at most; None for all there are
    device : what a program for devices runs on; "" for the one that is chosen
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
    callee = load_callee(folder, signature, constants, threads, device)
    where = target.device_named(device)
    return Program(folder, signature, constants, callee, target, digests, threads, where)


def _constants(
    folder: Path, signature: Signature, resources: Mapping[str, Any], device: str = ""
) -> tuple[Array, ...]:
    """Return every constant of the program: those given, and those it makes of given ones."""
    made: tuple[Array, ...] = ()
    if (maker := signature.maker) is not None:
        # given for this one call only, so what the caller may change later need not be copied
        arrays = [np.require(given(c, resources), None, ["C", "A"]) for c in maker.constants]
        results = load_callee(folder, maker, arrays, device=device).invoke((), None)
        made = results if isinstance(results, tuple) else (results,)
        made = tuple(at_a_line(array) for array in made)
        for array in made:
            array.flags.writeable = False
    return tuple(
        constant(c, resources) if c.made is None else made[c.made] for c in signature.constants
    )


def make_dispatcher(
    miss: Callable[[tuple[Any, ...], dict[str, Any]], Any], takes_out: bool = True
) -> Dispatcher:
    """Return a callable that tries programs in order and then ``miss(args, kwargs)``.

    takes_out : whether ``out=`` names arrays for the results, and is no argument
    """
    extension = load_extension()
    return (extension.Dispatcher if extension else PythonDispatcher)(miss, takes_out)


def load_callee(
    folder: Path,
    signature: Signature,
    constants: Sequence[Array],
    threads: int | None = None,
    device: str = "",
) -> Callee:
    """Return what runs the program in ``folder``, with at most ``threads`` threads if told."""
    entry = Entry(signature)
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
    """Return what calls a program for a device behind guards in C, where there is an extension."""
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
    """Return what arguments and results must be, as the extension takes it."""
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
        library = ctypes.CDLL(_distinct(path))
    except OSError as error:
        raise broken(path.parent, f"its library cannot be loaded ({error})") from None
    name = signature.symbol
    wanted = {
        name: True,
        f"{name}_shapes": signature.sized_by_program,
        f"{name}_arena": signature.arena is None,
        f"{name}_checks": bool(signature.checks),
        f"{name}_fault": bool(signature.guards),
    }
    for function, is_wanted in wanted.items():
        if is_wanted and _address(library, function) == 0:
            raise broken(path.parent, f"its library has no function {function}")
    if signature.guards:
        entry.noted = _noted(getattr(library, f"{name}_fault"))
        if _address(library, f"{name}_host"):
            import_module("stepwell.runtime.host_calls").set_host(library, f"{name}_host")
    extension = load_extension()
    if extension is None:
        entry.callee = CtypesProgram(library, entry, constants, threads)
        return entry.callee
    entry.callee = extension.Program(
        entry=_address(library, name),
        shapes=_address(library, f"{name}_shapes"),
        checks=_address(library, f"{name}_checks") if signature.checks else 0,
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


def _noted(function: Any) -> Callable[[], Sequence[int]]:
    """Return what asks a library for the numbers of the guard that failed."""
    function.restype = ctypes.c_char_p

    def noted() -> Sequence[int]:
        values = (ctypes.c_int64 * VALUES)()
        function(values)
        return tuple(values)

    return noted


def _distinct(path: Path) -> str:
    """Spell ``path`` in another way for each library that has been there.

    By the name alone the system would take one that was replaced for the one it has loaded.
    """
    path = path.absolute()
    number = path.stat().st_ino
    with _LOADING:
        known = _loaded.setdefault(path, [])
        if number not in known:
            known.append(number)
        return os.path.join(path.parent, *["."] * known.index(number), path.name)


def _is_cut_short(path: Path) -> bool:
    """Whether the end of a library is missing, where the format of the file tells.

    To load one that is kills the process.
    """
    if not path.is_file():  # to open a pipe would be to wait
        return False
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":  # 64 bits, least byte first
        return False
    (sections,) = struct.unpack_from("<Q", head, 40)
    size, count = struct.unpack_from("<HH", head, 58)
    return path.stat().st_size < sections + size * count


def _address(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function of ``library``, 0 where it has none of that name."""
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
    """Return what a program was compiled to; it may be the target of a package that is missing."""
    try:
        return target_of(signature.target)
    except CompileError as error:
        help = "install the package that has this target, or name it by --plugin"
        raise broken(folder, error.diagnostic.message, help) from error


def _files(target: Target) -> list[str]:
    """Return what may be in a folder beside description and weights, of other targets too."""
    sources = [each.source for each in OURS.values()]
    return list(dict.fromkeys([target.source, *sources, HEADER, LIBRARY]))


def _needed(target: Target) -> set[str]:
    """Return the files without which a program cannot run, its weights aside."""
    return {LIBRARY if target.native else target.source}


def _check_saved(
    folder: Path, signature: Signature, target: Target, digests: Digests | None
) -> None:
    """Check that all files of a saved program are those that were saved together."""
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
        with replacing(target / name) as file:  # the one there may be loaded
            import_module("shutil").copyfile(folder / name, file)
    except FileNotFoundError:
        raise broken(folder, f"there is no {name} in it any more") from None


def _check_machine(signature: Signature, folder: Path) -> None:
    """Refuse a program whose instructions this processor may lack, instead of dying of one."""
    wanted = {f for f in signature.machine.split() if _INSTRUCTIONS.match(f)}
    if lacking := sorted(wanted - set(this_machine().features.split())):
        raise broken(
            folder,
            f"it was compiled for a processor with {', '.join(lacking[:4])}, unlike this one",
        )
