"""The programs that are measured: what each is called, installed from and served by."""

from __future__ import annotations

import ctypes.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ops import Array, Unsupported
from workloads import Arrays, Workload, as_tuple, stamp

Call = Callable[[], Any]
"""Computes once and blocks until the result is there."""


class Peer:
    """One library in its own process; ``variant`` says which way of using it."""

    version = ""

    def __init__(self, threads: int, variant: str) -> None:
        self.threads = threads
        self.variant = variant

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        """Return the data as the library keeps it; not timed."""
        return weights, inputs

    def compile(self, workload: Workload, data: Any) -> Mapping[str, Call]:
        """Return ways to compute the workload, of which the fastest will count."""
        raise NotImplementedError

    def arrays(self, result: Any) -> list[Array]:
        """Return what a call gave as NumPy arrays, in the order and layout of the model."""
        return list(as_tuple(result))


@dataclass(frozen=True)
class Entry:
    """A line of the table of peers."""

    environment: str
    """The name of its virtual environment; empty where it is Stepwell's own."""
    module: str
    variant: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    usual: bool = True
    """Whether it is measured unless asked otherwise."""


def _faster_malloc() -> dict[str, str]:
    """Return what PyTorch's own tuning guide advises, where it is installed."""
    library = ctypes.util.find_library("tcmalloc_minimal")
    return {"LD_PRELOAD": library} if library else {}


OURS = ("stepwell", "stepwell-constants")
"""Weights as arguments, and weights as constants of the program."""

PEERS = {
    "stepwell": Entry("", "peers.stepwell"),
    "stepwell-constants": Entry("", "peers.stepwell", "constants"),
    "numpy": Entry("numpy", "peers.numpy"),
    "numba": Entry("numba", "peers.numba"),
    "torch": Entry("torch", "peers.torch", "eager", _faster_malloc()),
    "torch-compile": Entry("torch", "peers.torch", "compile", _faster_malloc()),
    "jax": Entry("jax", "peers.jax"),
    "onnxruntime": Entry("onnxruntime", "peers.onnxruntime"),
    "openvino": Entry("openvino", "peers.openvino"),
    "tensorflow": Entry("tensorflow", "peers.tensorflow", "function", usual=False),
    "tensorflow-xla": Entry("tensorflow", "peers.tensorflow", "xla", usual=False),
    "tinygrad": Entry("tinygrad", "peers.tinygrad", usual=False),
    "iree": Entry("iree", "peers.iree", usual=False),
}

PACKAGES: Mapping[str, Sequence[str]] = {
    "numpy": ("numpy==2.4.6",),
    "numba": ("numba==0.68.1", "numpy==2.4.6", "scipy==1.17.1"),
    "torch": ("torch==2.13.0", "numpy"),
    "jax": ("jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"),
    "onnxruntime": ("onnxruntime", "onnx"),
    "openvino": ("openvino",),
    "tensorflow": ("tensorflow-cpu",),
    "tinygrad": ("tinygrad", "numpy"),
    "iree": ("iree-base-compiler[onnx]", "iree-base-runtime"),
}
"""What each virtual environment holds. Later builds of torch may bring gigabytes of CUDA."""

USUAL = tuple(dict.fromkeys(e.environment for e in PEERS.values() if e.environment and e.usual))
"""The environments that are installed unless asked otherwise."""


def state() -> Path:
    """Return where environments, references and records lie: $STEPWELL_BENCH, or in ~/.cache."""
    asked = os.environ.get("STEPWELL_BENCH")
    return Path(asked or "~/.cache/stepwell-bench").expanduser().absolute()


def model_file(workload: Workload) -> Path:
    """Return where the ONNX file of a workload lies, once `peers.onnx_model` has written it."""
    return state() / "onnx" / stamp() / f"{workload.name}.onnx"


def existing_model_file(workload: Workload) -> Path:
    """Return the ONNX file of a workload."""
    if not (path := model_file(workload)).exists():
        raise Unsupported("no ONNX file: the environment onnxruntime makes them")
    return path


def interpreter(peer: str, given: Mapping[str, str] | None = None) -> Path:
    """Return the Python of a peer; ``given`` names others by environment."""
    environment = PEERS[peer].environment
    if given and environment in given:
        return Path(given[environment])
    if not environment:
        return Path(sys.executable)
    return state() / "environments" / environment / "bin" / "python"
