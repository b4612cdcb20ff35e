"""The processes of the peers: kept alive, stopped while others run, and each on its own cores."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from peers import PEERS, interpreter

HERE = Path(__file__).parent
START = 180.0
"""Seconds that a peer may take to be imported."""
COUNTS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
"""Libraries that are told the number of threads as NAME_NUM_THREADS."""
_DIE_WITH_PARENT = 1
_LIBC = ctypes.CDLL(None)


class Gone(Exception):
    """A process crashed, did not answer in time, or cannot be started."""


@dataclass(eq=False)
class Process:
    """One peer with so many threads. It is stopped except while it answers."""

    peer: str
    threads: int
    folder: Path
    """Caches and logs of this run."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    pythons: Mapping[str, str] = field(default_factory=dict[str, str])
    script: str = "worker.py"
    """What serves the requests."""
    version: str = ""
    _process: subprocess.Popen[bytes] | None = None
    _answers: int = -1
    _unread: bytes = b""

    @property
    def log(self) -> Path:
        """Where what the peer prints goes."""
        return self.folder / f"{self.peer}-{self.threads}.log"

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None

    def ask(self, patience: float, /, **request: Any) -> dict[str, Any]:
        """Let the process go on until it has answered; start it where it is not there."""
        process = self.start() if self._process is None else self._process
        self._signal(signal.SIGCONT)
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise Gone(self._end("crashed")) from None
        answer = self._read(patience)
        self._signal(signal.SIGSTOP)
        return answer

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process and wait until the peer is imported."""
        python = interpreter(self.peer, self.pythons)
        if not python.exists():
            raise Gone(f"not installed: make bench-peers PEERS={PEERS[self.peer].environment}")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._answers, theirs = os.pipe()
        command = [str(python), self.script, self.peer, str(self.threads), str(theirs)]
        with self.log.open("ab") as log:
            self._process = self._open(command, theirs, log)
        os.close(theirs)
        self._unread = b""
        self.version = self._read(START)["version"]
        self._signal(signal.SIGSTOP)
        return self._process

    def _open(self, command: list[str], answers: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
        cores = sorted(os.sched_getaffinity(0))[: self.threads]

        def prepare() -> None:
            os.sched_setaffinity(0, cores)
            _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)  # also while it is stopped

        return subprocess.Popen(
            command,
            cwd=HERE,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=[answers],
            start_new_session=True,
            preexec_fn=prepare,
        )

    def _environment(self) -> dict[str, str]:
        count = str(self.threads)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return {
            **kept,
            **{f"{name}_NUM_THREADS": count for name in COUNTS},
            "STEPWELL_THREADS": count,
            "STEPWELL_CACHE": str(self.folder / "stepwell"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
            "XDG_CACHE_HOME": str(self.folder / "caches"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **self.variables,
            **PEERS[self.peer].variables,
        }

    def prefer(self, niceness: int) -> None:
        """Give the process another niceness: it needs the right to, where it is less.

        Linux compares whole sessions first, and this process is one.
        """
        assert self._process is not None
        about = Path(f"/proc/{self._process.pid}")
        for thread in (about / "task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
        if (session := about / "autogroup").exists():
            session.write_text(str(niceness))

    def _read(self, seconds: float) -> dict[str, Any]:
        """Return the next line of the answers."""
        until = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = max(until - time.monotonic(), 0)
            if not select.select([self._answers], [], [], left)[0]:
                raise Gone(self._end(f"no answer in {seconds:.0f} s"))
            if not (read := os.read(self._answers, 1 << 16)):
                raise Gone(self._end("crashed"))
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with suppress(OSError):
                os.killpg(self._process.pid, number)

    def _end(self, why: str) -> str:
        self.stop()
        return f"{why}, see {self.log}"

    def stop(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        os.close(self._answers)
        self._process = None
