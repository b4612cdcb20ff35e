"""Set up a lit suite by one line of lit.cfg; tests run in lit's own processes."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from stepwell.testing.requirements import need

PACKAGES = str(Path(__file__).parents[2])
"""The folder of the package, for commands that lit starts."""


def configure(config: Any) -> None:
    """Set up a suite of the .mlir files below the folder of lit.cfg.

    RUN lines have `%stepwell-opt` and `%stepwell`; `REQUIRES: mlir-opt` asks for MLIR's own tool.

        import stepwell.testing.lit
        stepwell.testing.lit.configure(config)

    raises ImportError : lit or filecheck is not installed
    """
    need("lit", "lit's suites")
    need("filecheck", "lit's suites")
    config.name = config.name if config.name != "<unnamed>" else "stepwell"
    config.test_format = import_module("stepwell.testing.lit_format").InProcess()
    config.suffixes = [".mlir"]
    config.excludes = {*config.excludes, "Inputs"}
    tools = os.path.dirname(sys.executable)
    config.environment["PATH"] = os.pathsep.join([tools, os.environ.get("PATH", "")])
    given = filter(None, [PACKAGES, os.environ.get("PYTHONPATH", "")])
    config.environment["PYTHONPATH"] = os.pathsep.join(given)
    config.substitutions.append(("%stepwell-opt", "stepwell-opt"))
    config.substitutions.append(("%stepwell", "stepwell"))
    if shutil.which("mlir-opt-22"):
        config.available_features.add("mlir-opt")
