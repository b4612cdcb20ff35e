"""`sw.compile` and `sw.load`: from textual IR to a callable; a warm start needs no compiler.

The compiler is imported lazily: a program found in the cache is loaded and run by the runtime
alone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepwell.api.building import Request, load_or_build
from stepwell.api.modules import ModuleText, read_module
from stepwell.core.deep import with_deep_stack
from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.hashing import sha256
from stepwell.core.machine import Machine, thread_limit
from stepwell.core.plugins import named, using
from stepwell.core.signature import Kernel, Signature
from stepwell.core.source import Source
from stepwell.core.targets import machine_for, target_for, target_of
from stepwell.core.tracebacks import entrance
from stepwell.runtime.cache import cache_root, digest
from stepwell.runtime.program import Program, load_program

if TYPE_CHECKING:
    from stepwell.core.placement import Placement

LOG = logging.getLogger("stepwell")

_RESOURCE = re.compile(r'#nd\.resource<"([^"]*)", *"([^"]*)">')


class Compiled:
    """A compiled function, as `compile` and `load` return it: call it with arrays.

    It returns fresh arrays, or fills the arrays of `out=`. Arguments have the dtypes and shapes
    that the module declares; a size `?` accepts any size.

    raises TypeError, ValueError : an argument has another dtype or shape

    >>> import numpy as np, stepwell as sw
    >>> f = sw.compile('''func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
    ...   %y = nd.sqrt %x : tensor<?xf64>
    ...   func.return %y : tensor<?xf64>
    ... }''')
    >>> f(np.array([4.0, 9.0])), [kernel.name for kernel in f.kernels]
    (array([2., 3.]), ['main_sqrt'])
    """

    # __call__ is a slot that holds the program itself, so a call runs no Python code of ours
    __slots__ = ("__call__", "__weakref__", "_program", "_request")

    __call__: Callable[..., Any]

    def __init__(self, program: Program, request: Request | None = None) -> None:
        self._program = program
        self._request = request
        self.__call__ = program.call

    @property
    def signature(self) -> Signature:
        """The names, dtypes and shapes of arguments and results; the arena; the kernels."""
        return self._program.signature

    @property
    def _whole(self) -> Program:
        """The program with code for all sizes, which may have to be compiled."""
        complete = self._program.complete
        return self._program if complete is None else complete()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the program, with the source lines that they implement."""
        return self._program.signature.kernels

    @property
    def source(self) -> str:
        """The program's text in its target's language."""
        return self._whole.source

    @property
    def native(self) -> bool:
        """Whether the program is a library of machine code."""
        return self._program.target.native

    @property
    def dispatched(self) -> bool:
        """Whether a dispatcher can call the program: without Python if it is machine code."""
        return self._program.dispatched

    def update(self, *arguments: Any, donated: Collection[tuple[int, int]] = ()) -> tuple[Any, ...]:
        """Call with one array per argument and update in place the arguments that results replace.

        Returns all results; such a result is the very array passed. If that array is contiguous,
        aligned and aliases no other, the program works in it; else a copy is written back.

        donated : pairs of a result and its argument; if the program cannot work in the argument's
            array, that is left unchanged and the result is a new array
        """
        return self._program.updating.update(arguments, donated)

    @property
    def program(self) -> Any:
        """The object that runs the program; `Dispatcher.add` takes it."""
        return self._program.call

    def text(self, stage: str) -> str:
        """Return the module after ``stage`` ('nd', 'structured', ..., or the target)."""
        if stage == self.signature.target:
            return self.source
        request = self._with_stages()
        return with_deep_stack(lambda: request.stage(stage))

    def texts(self) -> dict[str, str]:
        """Return the module after every stage, by the stage's name; the target's text is last."""
        stages = with_deep_stack(self._with_stages().stages)
        return {**stages, self.signature.target: self.source}

    def profile(self, *arguments: Any, repeat: int = 0, updating: bool = False) -> Any:
        """Call with these arrays ``repeat`` times, or for about a second; return kernels' times.

        updating : call as `update` does, which changes arguments that results replace

        The result prints as a table of kernels, and its `trace()` is for ui.perfetto.dev.
        """
        profiling = import_module("stepwell.runtime.profiling")
        return profiling.profile(self._whole, arguments, repeat, updating)

    @property
    def module_text(self) -> str:
        """The module's text before compilation; "" for a saved program."""
        return self._request.source.text if self._request else ""

    def _with_stages(self) -> Request:
        if self._request is None:
            raise ValueError("a saved program has no stages; its source is in .source")
        return self._request

    def save(self, path: str | Path) -> None:
        """Write the program into the folder ``path``; `sw.load` needs only that folder."""
        self._whole.save(Path(path))

    def __repr__(self) -> str:
        return f"<compiled {self.signature}>"


@dataclass(frozen=True)
class Options:
    """The options of `compile`, which documents them."""

    target: str = ""
    device: Any = ""
    resources: Mapping[str, Any] | None = None
    machine: str | Machine = ""
    name: str = ""
    lock: str | Path | None = None
    tune: bool | float = False
    passes: Sequence[str | Placement] = ()
    plugins: Sequence[str] = ()
    check_bounds: bool = True
    threads: int | None = None


@entrance
def compile(
    module: Any,
    entry: str = "main",
    *,
    target: str = "",
    device: Any = "",
    resources: Mapping[str, Any] | None = None,
    machine: str | Machine = "",
    name: str = "",
    lock: str | Path | None = None,
    tune: bool | float = False,
    passes: Sequence[str | Placement] = (),
    plugins: Sequence[str] = (),
    check_bounds: bool = True,
    threads: int | None = None,
) -> Compiled:
    """Compile a module for this machine, or fetch it from the cache.

    module : the text of a module, the Path of a file (its weights in a .npz file beside it), or a
        ModuleOp of xDSL
    entry : the function to call
    target : "c", the default; "opencl", the default if a device is given; or a target of a plug-in
        package (`stepwell targets` lists them)
    device : the device of an OpenCL program, as in "gpu", "gpu:1" or a part of its name
        (`stepwell devices` lists them); the default is STEPWELL_DEVICE, else the best device:
        a GPU before an accelerator before a CPU
    resources : the arrays of the module's `#nd.resource` names
    machine : properties to compile for instead of this machine's, as in 'vector_bits=256'
    name : the module's name in messages and comments, "<string>" if it has no file
    lock : a file of tuned schedules; for a Path, by default `name.lock.json` beside it if it exists
    tune : search for schedules by timing, for this many seconds (True: a minute), if the lock file
        does not exist yet; without ``lock`` the file is kept in the cache
    passes : additional passes and their positions, ``"acme-fuse@before:nd-to-linalg"`` or
        ``AcmeFuse().at("before:nd-to-linalg")``; passes of installed packages need not be named
    plugins : universes of packages that are not installed, ``"module:NAME"``
    check_bounds : whether a module of buffers or loops checks its accesses against the sizes of its
        buffers at run time; a call with an access out of bounds raises `IndexError`. Modules of
        higher dialects are lowered to accesses in bounds and check nothing
    threads : the maximum number of threads of a C program; None for the machine's number, which is
        STEPWELL_THREADS or the number of cores

    raises TypeError, ValueError : ``threads`` is not a valid number of threads
    raises CompileError : the module is invalid, or there is no working C compiler (for OpenCL: no
        pyopencl or no such device)

    >>> import numpy as np, stepwell as sw
    >>> f = sw.compile('''func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
    ...   %y = nd.square %x : tensor<?xf64>
    ...   func.return %y : tensor<?xf64>
    ... }''')
    >>> f(np.array([2.0, 3.0]))
    array([4., 9.])
    """
    options = Options(
        *(target, device, resources, machine, name, lock, tune),
        *(passes, plugins, check_bounds, threads),
    )
    return _compiled(module, entry, options)


@entrance
def compile_for_call(
    module: Any, entry: str, shapes: Sequence[Sequence[int]], **options: Any
) -> Compiled:
    """Compile a module as `compile` does, first only the code that a call runs.

    Of each kernel only the versions that run in a call with arguments of these shapes are compiled.
    A call with sizes that need another version compiles all of them.

    options : as in `compile`
    """
    call = ",".join("x".join(map(str, s)) for s in shapes)
    return _compiled(module, entry, Options(**options), call)


def _compiled(module: Any, entry: str, options: Options, call: str = "") -> Compiled:
    """Return a program.

    call : the shapes of a call's arguments, for which it is compiled first; "" for all sizes
    """
    _check_tune(options.tune)
    thread_limit(options.threads)
    read = _read(module, options.name, options.resources)
    device = _device_of(options.device)
    target = target_for(options.target, device)
    with using(options.plugins):
        machine = target_of(target).limits(machine_for(target, options.machine, device))
        _check_resources(read)
        source = Source(
            *(read.text, read.name, entry, machine),
            passes=_placements(options.passes),
            check_bounds=options.check_bounds,
        )
        request = Request(source, target, named(), device)
        place = _lock_file(module, source, target, options)
        locked = _lock_text(place, request, options.tune)
        if locked:
            request = replace(request, source=replace(source, lock=str(place)))
        return Compiled(load_or_build(request, read, locked, options.threads, call), request)


def _placements(passes: Sequence[str | Placement]) -> tuple[Placement, ...]:
    """Parse placements; without any, a warm start does not import the parser."""
    return import_module("stepwell.core.placement").parse_placements(passes) if passes else ()


def _device_of(device: Any) -> str:
    """Return a device's name, given the name or an object of `sw.devices`."""
    if device is None:
        return ""
    if not isinstance(device, str) and not hasattr(device, "handle"):
        raise TypeError(f"device must be text or one of sw.devices(), got {device!r}")
    return str(device)


def _check_tune(tune: Any) -> None:
    if not isinstance(tune, bool | int | float):
        raise TypeError(f"tune must be True, False or a number of seconds, got {tune!r}")
    if not isinstance(tune, bool) and not tune > 0:
        help = "give the seconds a search may take, or True for a minute"
        raise CompileError(Diagnostic("error", f"no schedule is found in {tune} s", help=help))


def _lock_file(module: Any, source: Source, target: str, options: Options) -> Path | None:
    """Return the lock file to read, or to write by tuning; None if there is none."""
    if options.lock is not None:
        return Path(options.lock)
    if isinstance(module, Path) and (options.tune or lock_beside(module, target).exists()):
        return lock_beside(module, target)
    if options.tune is False:
        return None
    form = str(import_module("stepwell.core.locks").FORMAT)
    key = digest(source.text, source.entry, target, repr(source.machine), form)
    return cache_root() / "locks" / f"{key}.json"


def lock_beside(module: Path, target: str = "c") -> Path:
    """Return the lock file beside a module's file; each target has its own."""
    return module.with_suffix(".lock.json" if target == "c" else f".{target}.lock.json")


def _lock_text(place: Path | None, request: Request, tune: bool | float) -> str:
    """Return the text of a lock file, tuning first if that was requested; "" if none fits."""
    if place is None:
        return ""
    if not target_of(request.target).timed:
        raise _no_lock(f"schedules for {request.target} cannot be tuned: nothing times its kernels")
    if tune is not False and not place.exists():
        budget = import_module("stepwell.driver.tuning").BUDGET if tune is True else float(tune)
        import_module("stepwell.core.locks").write_lock(place, request.tune(budget))
    return fitting_lock(place, request.source.machine)


def fitting_lock(place: Path, machine: Machine) -> str:
    """Return the text of a lock file; warn and return "" if it does not fit ``machine``."""
    found = import_module("stepwell.core.locks").read_lock(place)
    if differs := found.misfit(machine):
        message = f"the lock file {place} is for another machine and is not used: {differs}"
        if not report(Diagnostic("warning", message, help="tune again on this machine")):
            LOG.warning("%s", message)
        return ""
    return found.to_json() if found.kernels else ""


def _no_lock(message: str) -> CompileError:
    return CompileError(Diagnostic("error", message, help="leave lock and tune away"))


def load(path: str | Path, *, threads: int | None = None, device: Any = "") -> Compiled:
    """Load a program that `Compiled.save` wrote; neither its source nor the compiler is needed.

    path : the folder that `save` wrote
    threads : the maximum number of threads, as in `compile`
    device : the device of an OpenCL program, as in `compile`
    raises CompileError : the folder does not exist, or a file in it is missing, damaged or altered

    >>> import numpy as np, stepwell as sw, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sw.jit(lambda x: x + 1).trace(np.ones(2)).compile().save(folder)
    ...     sw.load(folder)(np.array([1.0, 2.0]))
    array([2., 3.])
    """
    return Compiled(load_program(Path(path), threads=threads, device=_device_of(device)))


def _read(module: Any, name: str, resources: Mapping[str, Any] | None) -> ModuleText:
    """Return ``module``, of any accepted type, as text and weights."""
    if isinstance(module, ModuleText):
        return module
    if isinstance(module, Path):
        read = read_module(module)
        given = read.resources if resources is None else dict(resources)
        return ModuleText(read.text, name or read.name, given)
    if not isinstance(module, str):
        module = import_module("stepwell.dialects.printing").text_of(module, locations=True)
    if module.endswith(".mlir") and "\n" not in module:
        raise CompileError(
            Diagnostic("error", f"'{module}' is no module", help="a file is given as Path(name)")
        )
    return ModuleText(module, name or "<string>", dict(resources or {}))


def _check_resources(module: ModuleText) -> None:
    """Check weights against the hashes in the module."""
    if module.hashed:
        return
    for name, stated in _RESOURCE.findall(module.text) if module.resources else ():
        array = module.resources.get(name)
        if array is None or not stated:
            continue
        found = sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()
        if found != stated:
            message = f"weight '{name}' is not the one the module was made with"
            help = f"its SHA-256 is {found}, the module says {stated}"
            raise CompileError(Diagnostic("error", message, help=help))
