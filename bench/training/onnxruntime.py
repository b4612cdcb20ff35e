"""ONNX Runtime, which has no gradients: the perceptron's step written out, as in `make bench`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
from ops import Unsupported
from peers import existing_model_file
from workloads import WORKLOADS

from training import Arrays, Library, Step, Task


class Main(Library):
    """A session; parameters go in and come out in arrays that are bound once and change places."""

    version = ort.__version__

    def prepare(self, task: Task) -> None:
        if task.name != "mlp_b64":
            raise Unsupported("it has no gradients")
        self.task = task
        self.path = str(existing_model_file(WORKLOADS["mlp_train_b64"]))
        self.session: Any = None

    def _session(self) -> Any:
        ort.set_default_logger_severity(3)
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        return ort.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])

    def restart(self) -> Step:
        parameters, _, batch = self.task.data()
        x = {"x": batch["x"], "shares": np.eye(10, dtype=np.float32)[batch["labels"]]}
        value = ort.OrtValue.ortvalue_from_numpy
        self.given = {k: value(v.copy()) for k, v in parameters.items()}
        created = {k: value(v.copy()) for k, v in parameters.items()}
        batched = {k: value(v) for k, v in x.items()}
        loss = value(np.zeros((), np.float32))
        bound: list[tuple[Any, dict[str, Any]]] = []

        def bind(given: Any, created: Any) -> Any:
            binding = self.session.io_binding()
            for name, each in (batched | given).items():
                binding.bind_ortvalue_input(name, each)
            for output, each in zip(self.session.get_outputs(), (loss, *created.values())):
                binding.bind_ortvalue_output(output.name, each)
            return binding, created

        def step() -> Any:
            if self.session is None:
                self.session = self._session()
            if not bound:
                bound.extend((bind(self.given, created), bind(created, self.given)))
            binding, self.given = bound[0]
            bound.reverse()
            self.session.run_with_iobinding(binding)
            return loss.numpy()

        return step

    def arrays(self) -> Arrays:
        return {k: v.numpy() for k, v in self.given.items()}
