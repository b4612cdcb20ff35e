"""Let tests here import `run_traced`, and count the calls that are not served in C."""

import sys
from pathlib import Path
from typing import Any

import pytest

from stepwell.frontend.functions import Function

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def misses(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What calls of functions made from here on the dispatcher did not serve."""
    found: list[Any] = []
    miss = Function._miss  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, args: Any, kwargs: Any) -> Any:
        found.append(args)
        return miss(self, args, kwargs)

    monkeypatch.setattr(Function, "_miss", noted)
    return found
