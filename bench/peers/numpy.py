"""NumPy as it comes, with the BLAS of its wheel."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from reference import NumpyOps
from workloads import Arrays, Workload

from peers import Call, Peer


class Main(Peer):
    """The reference's operations in float32."""

    version = np.__version__

    def compile(self, workload: Workload, data: tuple[Arrays, Arrays]) -> Mapping[str, Call]:
        ops = NumpyOps()
        return {"": lambda: workload.model(ops, *data)}
