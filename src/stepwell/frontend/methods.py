"""Methods of arrays that NumPy has not as functions, and methods that are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import fresh
from stepwell.frontend.table import method
from stepwell.frontend.tensor import Tensor


@method("conj")
def _conj(x: Tensor) -> Tensor:
    return fresh(x)


@method("conjugate")
def _conjugate(x: Tensor) -> Tensor:
    return fresh(x)


@method("view")
def _view(x: Tensor, *args: Any, **keywords: Any) -> NoReturn:
    raise TraceError("x.view() reads memory otherwise; use stepwell.numpy.bitcast or astype")
