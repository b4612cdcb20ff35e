"""The lit test format: a file runs in its worker's process if possible, else by lit's shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lit.formats  # pyright: ignore[reportMissingTypeStubs]
import lit.Test  # pyright: ignore[reportMissingTypeStubs]

from stepwell.testing.run_lines import RunFailure, in_process, run_line


class InProcess(lit.formats.ShTest):
    """lit's ShTest, without a process for RUN lines that `run_lines` can run itself."""

    def __init__(self) -> None:
        super().__init__(execute_external=False)

    def execute(self, test: Any, litConfig: Any) -> Any:
        """Run one file."""
        path = Path(test.getSourcePath())
        lines = None if litConfig.maxIndividualTestTime else in_process(path)
        if not lines:
            return super().execute(test, litConfig)
        try:
            for line in lines:
                run_line(line, path)
        except RunFailure as failure:
            return lit.Test.Result(lit.Test.FAIL, str(failure))
        return lit.Test.Result(lit.Test.PASS, "")
