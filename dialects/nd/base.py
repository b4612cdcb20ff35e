"""What every op of `nd` shares: it is pure, and its result types follow from its operands."""

from __future__ import annotations

from abc import ABC
from typing import Any, cast

from xdsl.irdl import IRDLOperation, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from stepwell.core.shapes import ShapeError
from stepwell.dialects import readings


class NdOp(IRDLOperation, ABC):
    """An op of `nd`. Results must have exactly the types its `shape` rule infers."""

    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Compare the result types with the inferred ones; families add their own constraints."""
        infer = readings.shape.get(cast(Any, type(self)))
        if infer is None:
            return
        try:
            wanted = infer(self)
        except ShapeError as error:
            raise VerifyException(str(error)) from None
        for result, want in zip(self.results, wanted, strict=True):
            if result.type != want:
                raise VerifyException(f"result must be {want}, got {result.type}")
