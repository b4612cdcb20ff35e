"""Compile a program's parts in parallel, while the rest of it is still being emitted."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from stepwell.runtime.toolchain import Compiler


@dataclass
class Parts:
    """The parts of one program; call it with the text of each, then link."""

    compiler: Compiler
    folder: Path
    processors: threading.Semaphore
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    objects: list[Path] = field(default_factory=list[Path])
    failed: bool = False

    def __call__(self, text: str) -> None:
        """Start compiling a part as soon as a processor is free."""
        source = self.folder / f"part{len(self.objects)}.c"
        source.write_text(text, encoding="utf-8")
        self.objects.append(source.with_suffix(".o"))
        thread = threading.Thread(target=self._compile, args=(source,), name="stepwell-part")
        thread.start()
        self.threads.append(thread)

    def _compile(self, source: Path) -> None:
        with self.processors:
            if not self.failed and not self.compiler.build_part(source, source.with_suffix(".o")):
                self.failed = True

    def wait(self) -> None:
        """Wait until all parts have been compiled or have failed."""
        for thread in self.threads:
            thread.join()

    def link(self, source: Path, library: Path) -> None:
        """Build the library of the program in ``source``, from its parts if it has any.

        If a part fails, the whole text is compiled, so that errors refer to a file users can read.
        """
        self.wait()
        if self.objects and not self.failed:
            self.failed = not self.compiler.link_program(source, self.objects, library)
        if self.failed or not self.objects:
            self.compiler.build_program(source, library)


@contextmanager
def parts_of_program(compiler: Compiler, processors: int) -> Generator[Parts]:
    """Provide a folder for a program's parts, and compile ``processors`` of them at a time."""
    with TemporaryDirectory(prefix="stepwell-") as folder:
        parts = Parts(compiler, Path(folder), threading.Semaphore(processors))
        try:
            yield parts
        except BaseException:
            parts.failed = True  # parts that wait for a processor need not start
            raise
        finally:
            parts.wait()
