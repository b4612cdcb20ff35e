"""OpenVINO's CPU plug-in, tuned for latency, in float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import openvino
from ops import Array
from workloads import Arrays, Workload

from peers import Call, Peer, existing_model_file


class Main(Peer):
    """One stream with so many threads."""

    version = openvino.__version__.partition("-")[0]

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        self.core = openvino.Core()

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        return {**inputs, **(weights if workload.loss else {})}

    def compile(self, workload: Workload, data: Arrays) -> Mapping[str, Call]:
        path = existing_model_file(workload)
        properties = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": str(self.threads),
            "NUM_STREAMS": "1",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        compiled = self.core.compile_model(self.core.read_model(path), "CPU", properties)
        request = compiled.create_infer_request()

        def call() -> Any:
            request.infer(data, share_inputs=True, share_outputs=True)
            return [request.get_output_tensor(k).data for k in range(len(compiled.outputs))]

        return {"": call}

    def arrays(self, result: Any) -> list[Array]:
        return [np.array(r) for r in result]
