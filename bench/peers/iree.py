"""IREE: the ONNX files through its compiler's CPU backend."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import iree.runtime as iree
import numpy as np
from ops import Array
from workloads import Arrays, Workload, as_tuple

from peers import Call, Peer, existing_model_file

TOOLS = Path(sys.executable).parent
FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
)


class Main(Peer):
    """IREE; one thread is its synchronous device."""

    version = importlib.metadata.version("iree-base-compiler")

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        if threads > 1:
            iree.flags.parse_flags(f"--task_topology_group_count={threads}")
        self.device = iree.get_device("local-sync" if threads == 1 else "local-task")
        self.config = iree.Config(device=self.device)
        self.folder = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.mkdtemp()) / "iree"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept: list[Any] = []

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        given = {**inputs, **(weights if workload.loss else {})}
        return [iree.asdevicearray(self.device, v) for v in given.values()]

    def compile(self, workload: Workload, data: Any) -> Mapping[str, Call]:
        source = self.folder / f"{workload.name}.mlir"
        _run("iree-import-onnx", str(existing_model_file(workload)), "-o", str(source))
        return {"": self._loaded(source, data)}

    def _loaded(self, source: Path, data: Any) -> Call:
        program = source.with_suffix(".vmfb")
        _run("iree-compile", str(source), "-o", str(program), *FLAGS)
        module = iree.VmModule.mmap(self.config.vm_instance, str(program))
        context = iree.SystemContext(vm_modules=[module], config=self.config)
        self.kept.append(context)
        names = [n for n in module.function_names if n != "__init" and not n.endswith("$async")]
        function = getattr(context.modules, module.name)[names[0]]

        def call() -> Any:
            results = as_tuple(function(*data))
            for each in results:
                np.asarray(each)  # maps the buffer, which waits for it
            return results

        return call

    def arrays(self, result: Any) -> list[Array]:
        return [np.array(np.asarray(each)) for each in as_tuple(result)]


def _run(tool: str, *arguments: str) -> None:
    command = [str(TOOLS / tool), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line]
        raise RuntimeError((said or [done.stderr[-200:]])[0][:300])
