"""Functions whose control flow cannot be traced say why, where they meet some."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import stepwell as sw


def test_a_function_made_by_exec_has_no_source() -> None:
    made: dict[str, Any] = {}
    exec("def sign(x):\n    return 1 if x > 0 else -1", made)
    told = "'sign' has no source (it was made by exec, or typed in), so its control flow"
    with pytest.raises(sw.TraceError, match=re.escape(told)):
        sw.jit(made["sign"])(np.float64(2))


@pytest.mark.parametrize("use", ["range(x)", "complex(x)", "float(x)"])
def test_numbers_in_such_a_function_say_so_too(use: str) -> None:
    """Once only the number was named: python -c of the example in README.md."""
    made: dict[str, Any] = {}
    exec(f"def ranges(x):\n    return {use}", made)
    with pytest.raises(sw.TraceError, match="'ranges' has no source"):
        sw.jit(made["ranges"])(np.int64(2))


def test_a_function_that_cannot_be_rewritten() -> None:
    told = (
        "the source of 'positive' cannot be rewritten, so its control flow is traced as it is: use"
    )
    with pytest.raises(sw.TraceError, match=re.escape(told)):
        sw.jit(lambda x: next(positive(x)))(np.float64(2))


def positive(x: Any) -> Any:
    if x > 0:
        yield x
    yield -x
