"""The table of additional checks, and a check of every op: its number of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from xdsl.dialects.builtin import StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef
from xdsl.utils.exceptions import VerifyException

from stepwell.core.rules import is_again

Check = Callable[[Any], None]
_C = TypeVar("_C", bound=Check)

CHECKS: dict[type[Operation], Check] = {}


def checks(*kinds: type[Operation]) -> Callable[[_C], _C]:
    """Register a function that raises `VerifyException` for an invalid op."""

    def register(function: _C) -> _C:
        for kind in kinds:
            assert kind not in CHECKS or is_again(CHECKS[kind], function), kind
            CHECKS[kind] = function
        return function

    return register


_VISIBILITIES = ("public", "private", "nested")


def check(op: Operation) -> None:
    """Raise `VerifyException` if ``op`` is invalid although xDSL has verified it."""
    given = op.properties or op.attributes
    if given and (visibility := given.get("sym_visibility")) is not None:
        _check_visibility(op, visibility)
    if (function := CHECKS.get(type(op))) is not None:
        function(op)


def _check_visibility(op: Operation, visibility: Attribute) -> None:
    if isinstance(op, UnregisteredOp):
        return
    if not isinstance(visibility, StringAttr) or visibility.data not in _VISIBILITIES:
        known = ", ".join(_VISIBILITIES)
        raise VerifyException(f"sym_visibility is one of {known}, not {visibility}")


def check_counts(op: Operation) -> None:
    """Raise if an op's number of operands, results or regions contradicts its class."""
    counts = _counts(type(op))
    if counts is None:
        return
    for (name, least, most), found in zip(
        counts, (len(op.operands), len(op.results), len(op.regions)), strict=True
    ):
        if found < least or (most is not None and found > most):
            wanted = f"{least}" if least == most else f"{least} or more"
            raise VerifyException(f"it has {found} {name}, there must be {wanted}")


@cache
def _counts(kind: type[Operation]) -> tuple[tuple[str, int, int | None], ...] | None:
    """Return the minimum and maximum numbers of operands, results and regions."""
    if not issubclass(kind, IRDLOperation):
        return None
    definition = kind.get_irdl_definition()
    return (
        ("operands", *_range(definition.operands)),
        ("results", *_range(definition.results)),
        ("regions", *_range(definition.regions)),
    )


def _range(definitions: Sequence[tuple[str, Any]]) -> tuple[int, int | None]:
    several = [each for _, each in definitions if isinstance(each, VariadicDef)]
    least = len(definitions) - len(several)
    if all(isinstance(each, OptionalDef) for each in several):
        return least, len(definitions)
    return least, None
