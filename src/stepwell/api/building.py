"""Programs of requests: fetched from the cache, or compiled, whole or first for one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepwell.api.code_fingerprints import class_stamp, files_stamp, plugins_stamp
from stepwell.api.modules import ModuleText
from stepwell.core.collecting import uncollected
from stepwell.core.deep import with_deep_stack
from stepwell.core.deferred_methods import deferred_methods
from stepwell.core.diagnostics import CompileError
from stepwell.core.machine import thread_count
from stepwell.core.plugins import using
from stepwell.core.source import Source
from stepwell.core.targets import target_of
from stepwell.core.version import VERSION
from stepwell.driver.pipeline import default_stages
from stepwell.runtime.cache import DIGEST, digest, disk_cache
from stepwell.runtime.completing import Completion
from stepwell.runtime.extension import prepare
from stepwell.runtime.program import Program, load_program, write_program
from stepwell.runtime.toolchain import find_compiler
from stepwell.runtime.weights import Weights
from stepwell.transforms.verifying import requested_checks

if TYPE_CHECKING:
    from stepwell.core.signature import Signature
    from stepwell.runtime.parts import Parts
    from stepwell.runtime.toolchain import Compiler

LOG = logging.getLogger("stepwell")
PACKAGE = Path(__file__).parent.parent
"""The package folder: all its source files are part of the cache key."""


@dataclass(frozen=True)
class Request:
    """All inputs of a compilation but the weights, so that it can be repeated for its stages."""

    source: Source
    target: str
    plugins: tuple[str, ...] = ()
    device: str = ""
    """The device to load the program on; "" selects one."""

    def translate(self, part: Callable[[str], None] | None = None) -> Any:
        """Return the program in its target's language, with header and signature.

        part : is called with each part of a large program, which may be compiled concurrently
        """
        with self._showing():
            lowering = import_module("stepwell.driver.lowering")
            return lowering.translate(self.source, self.target, part)

    def stage(self, name: str) -> str:
        """Return the module after a stage."""
        with self._showing():
            return import_module("stepwell.driver.lowering").stage_text(self.source, name)

    def stages(self) -> dict[str, str]:
        """Return the module after each stage, by the stage's name."""
        with self._showing():
            return import_module("stepwell.driver.lowering").stage_texts(self.source)

    def tune(self, budget: float) -> Any:
        """Return schedules for the kernels, searched for ``budget`` seconds."""
        with self._showing(), uncollected():
            tuning = import_module("stepwell.driver.tuning")
            how = {"say": LOG.info, "target": self.target, "device": self.device}
            return with_deep_stack(lambda: tuning.tune(self.source, budget, **how))

    @contextmanager
    def _showing(self) -> Generator[None]:
        """Attach the module's text to an error, which shows the line even if there is no file."""
        try:
            with using(self.plugins):
                yield
        except CompileError as error:
            error.sources[self.source.name] = self.source.text
            raise


def load_or_build(
    request: Request, read: ModuleText, locked: str, threads: int | None, call: str
) -> Program:
    """Return a program from the cache; compile it first if it is missing.

    read : the module with its weights
    locked : the text of the lock file
    call : the shapes of a call's arguments, for which it is compiled first; "" for all sizes
    """
    native = target_of(request.target).native
    if native and prepare() and disk_cache().lacks("program"):
        with uncollected(), deferred_methods():
            import_module("stepwell.driver.lowering")  # load it while compilers run
    compiler = find_compiler() if native else None
    key = digest(
        *(read.text, read.name, request.source.entry, request.target, repr(request.source.machine)),
        *(
            compiler.id if compiler else "",
            VERSION,
            files_stamp(PACKAGE),
            _pipeline_key(request),
            locked,
            repr(request.source.check_bounds),
        ),
    )
    build = _Build(request, read, compiler, key, threads)
    part = build.part(call) if call and native and not disk_cache().has("program", key) else None
    return part or build.whole()


@dataclass(frozen=True)
class _Build:
    """Fetches a program from the cache, or compiles it."""

    request: Request
    read: ModuleText
    compiler: Compiler | None
    key: str
    threads: int | None

    def whole(self, part: Program | None = None) -> Program:
        """Return the program for all sizes.

        part : one for some sizes, whose weights it takes: the user may have changed the arrays
        """
        return self._loaded(*self._fetched(self.key, self.request), None, part)

    def part(self, call: str) -> Program | None:
        """Return a program that serves a call with arguments of these shapes.

        The cache keeps one such program for each whole one. If it is that of another call, return
        None: a second call with other sizes is a reason to compile the whole. One that serves all
        calls is the whole, and is kept as such.
        """
        complete = Completion(self.whole)
        limited = replace(self.request, source=replace(self.request.source, call=call))
        folder, built = self._fetched(digest(self.key, "part"), limited)
        if built is not None and not built.served:
            whole = disk_cache().fetch("program", self.key, partial(_copy_files, folder))
            return self._loaded(whole, built, None)
        part = complete.part = self._loaded(folder, built, complete)
        shapes = [tuple(int(n) for n in each.split("x") if n) for each in call.split(",")]
        return part if part.signature.serves(part.signature.sizes(shapes)) else None

    def _fetched(self, key: str, request: Request) -> tuple[Path, Signature | None]:
        """Return the folder of a program, and its signature if it was compiled just now."""
        built: list[Signature] = []

        def build(folder: Path) -> None:
            if self.compiler is None:
                built.append(_write(folder, request, None))
                return
            parted = import_module("stepwell.runtime.parts").parts_of_program
            with parted(self.compiler, thread_count()) as parts:
                built.append(_write(folder, request, parts))

        folder = disk_cache().fetch("program", key, build)
        return folder, built[-1] if built else None

    def _loaded(
        self,
        folder: Path,
        built: Signature | None,
        complete: Completion | None,
        part: Program | None = None,
    ) -> Program:
        read, compiled = self.read, built is not None
        weights: Any = Weights(folder.name, read.resources, read.traced_weights, compiled)
        if part is not None:
            weights = part.same_constants
        return load_program(
            folder, read.resources, weights, self.threads, self.request.device, complete
        )


def _copy_files(source: Path, folder: Path) -> None:
    """Copy the files of a program in the cache; the cache adds their digest."""
    for file in source.iterdir():
        if file.name != DIGEST:
            (folder / file.name).write_bytes(file.read_bytes())


def _write(folder: Path, request: Request, parts: Parts | None) -> Signature:
    """Translate a request and write the program into ``folder``; return its signature."""
    with uncollected(), deferred_methods():
        translated = with_deep_stack(lambda: request.translate(parts))
    build = parts.link if parts else None
    write_program(folder, translated.text, translated.header, translated.signature, build)
    return translated.signature


def _pipeline_key(request: Request) -> str:
    """Return a fingerprint of the passes that a program goes through, of their code and checks.

    A program that is to be checked must not be fetched if it was made without those checks.
    """
    source = request.source
    stages = [f"{stage.name}: {stage.passes}" for stage in default_stages()]
    classes = [class_stamp(p.kind) for p in source.passes if p.kind is not None]
    with using(request.plugins):
        return digest(
            *(*stages, *map(str, source.passes), *classes),
            *(plugins_stamp(source.text), requested_checks()),
        )
