"""ONNX Runtime on its CPU provider: plain runs, and runs with inputs and outputs bound once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnxruntime as ort
from ops import Array
from workloads import Arrays, Workload, as_tuple

from peers import Call, Peer, existing_model_file


class Main(Peer):
    """Sessions with all optimizations of the graph."""

    version = ort.__version__

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        return {**inputs, **(weights if workload.loss else {})}

    def compile(self, workload: Workload, data: Arrays) -> Mapping[str, Call]:
        ort.set_default_logger_severity(3)
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        path = str(existing_model_file(workload))
        providers = ["CPUExecutionProvider"]
        session = ort.InferenceSession(path, options, providers=providers)

        def run() -> Any:
            return session.run(None, data)

        return {"run": run} if workload.small else {"run": run, "bound": _bound(session, data, run)}

    def arrays(self, result: Any) -> list[Array]:
        return [r.numpy() if isinstance(r, ort.OrtValue) else r for r in as_tuple(result)]


def _bound(session: Any, data: Arrays, run: Call) -> Call:
    """Return runs whose arrays are bound at the first of them."""
    kept: list[Any] = []

    def bind() -> None:
        binding = session.io_binding()
        given = [ort.OrtValue.ortvalue_from_numpy(v) for v in data.values()]
        results = [ort.OrtValue.ortvalue_from_numpy(r) for r in run()]
        for name, value in zip(data, given):
            binding.bind_ortvalue_input(name, value)
        for output, value in zip(session.get_outputs(), results):
            binding.bind_ortvalue_output(output.name, value)
        kept.extend((binding, results, given))

    def call() -> Any:
        if not kept:
            bind()
        session.run_with_iobinding(kept[0])
        return kept[1]

    return call
