"""Many texts in a few processes, each with a limit of time and memory that ends only the process."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import random
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from any_text.modes import any_mode, tried
from any_text.mutations import mutated

SECONDS = 30.0
"""Of a processor: a text that takes longer counts as a hang, however busy the machine is."""
PATIENCE = 20
"""So many times as long may pass on the clock."""
BYTES = 6 << 30
"""Of address space for a process."""


@dataclass(frozen=True)
class Fault:
    """What went wrong with one text."""

    number: int
    mode: str
    what: str
    text: str
    said: str


def _work(connection: Connection, texts: Sequence[str], seed: int) -> None:
    """Try one text for each number that comes; answer with a fault, or whether it is taken."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.mlir")
        while True:
            number = connection.recv()
            rng = random.Random(f"{seed}/{number}")
            text, mode = mutated(texts, rng), any_mode(rng)
            connection.send((mode, text))
            try:
                what, answer = tried(mode, text, path)
                said, taken = answer.said or answer.out, answer.code == 0
            except BaseException as error:
                what, said, taken = f"raised {type(error).__name__}", traceback.format_exc(), False
            connection.send(Fault(number, mode, what, text, said[-4000:]) if what else taken)


def _seconds_of(process: int) -> float:
    """Return how long a process has been running on a processor."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:  # it has ended, or there is no such folder: then the clock alone counts
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class _Worker:
    process: Any
    connection: Connection
    number: int = -1
    mode: str = ""
    text: str = ""

    @classmethod
    def begun(cls, texts: Sequence[str], seed: int) -> _Worker:
        """Begin a process."""
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_work, args=(theirs, texts, seed), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def next(self, number: int) -> None:
        """Give the process its next number."""
        self.number, self.mode, self.text = number, "", ""
        self.connection.send(number)

    def outcome(self) -> Fault | bool:
        """Wait for what comes of the number: a fault, or whether the text was taken."""
        try:
            for _ in range(2):
                if self.hangs():
                    return self.fault("hangs")
                found = self.connection.recv()
                if isinstance(found, tuple):
                    self.mode, self.text = found
                    continue
                return found
        except (EOFError, ConnectionError):
            self.process.join()
            return self.fault(f"ended with {self.process.exitcode}")
        return False

    def hangs(self) -> bool:
        """Wait until the process says something; return whether it takes too long."""
        begun, start = _seconds_of(self.process.pid), time.monotonic()
        while not wait([self.connection], 1.0):
            used, passed = _seconds_of(self.process.pid) - begun, time.monotonic() - start
            if used > SECONDS or passed > SECONDS * PATIENCE:
                return True
        return False

    def fault(self, what: str) -> Fault:
        """Return a fault that the process cannot tell."""
        return Fault(self.number, self.mode, what, self.text, "")


def outcomes(texts: Sequence[str], seed: int, numbers: range) -> Iterator[Fault | bool]:
    """Try one text for each of ``numbers``; yield a fault, or whether it was taken or refused."""
    worker = _Worker.begun(texts, seed)
    try:
        for number in numbers:
            worker.next(number)
            found = worker.outcome()
            if isinstance(found, Fault) and found.what.startswith(("hangs", "ended")):
                worker.process.kill()
                worker = _Worker.begun(texts, seed)
            yield found
    finally:
        worker.process.kill()
        worker.process.join()
