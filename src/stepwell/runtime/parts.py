"""Compile a program's parts beside each other, and while the rest of it is still being written."""

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
        """Begin to compile a part as soon as a processor is free."""
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
        """Wait until every part is compiled, or one has failed."""
        for thread in self.threads:
            thread.join()

    def link(self, source: Path, library: Path) -> None:
        """Make the library of the program in ``source``, from its parts if it has any.

        Where a part fails the whole text is compiled, to show what is wrong where people can see.
        """
        self.wait()
        if self.objects and not self.failed:
            self.failed = not self.compiler.link_program(source, self.objects, library)
        if self.failed or not self.objects:
            self.compiler.build_program(source, library)


@contextmanager
def parts_of_program(compiler: Compiler, processors: int) -> Generator[Parts]:
    """Give a program's parts a folder while they are compiled, so many at a time."""
    with TemporaryDirectory(prefix="stepwell-") as folder:
        parts = Parts(compiler, Path(folder), threading.Semaphore(processors))
        try:
            yield parts
        except BaseException:
            parts.failed = True  # those that wait for a processor need not begin
            raise
        finally:
            parts.wait()
