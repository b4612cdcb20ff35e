"""The argument types of a function, declared in advance: `sw.jit(input_signature=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.frontend.calls import Argument, Call
from stepwell.frontend.general import Axis, Sizes
from stepwell.frontend.promotion import as_dtype
from stepwell.frontend.pytree import flatten
from stepwell.frontend.specs import Dim, ShapeDtypeStruct


class InputSignature:
    """The types of a function's array arguments, in order; sizes may be `Dim`."""

    def __init__(self, specs: Sequence[Any]) -> None:
        self.specs: list[ShapeDtypeStruct] = []
        for spec in flatten(tuple(specs))[0]:
            if not isinstance(spec, ShapeDtypeStruct):
                raise TypeError(
                    f"input_signature is of sw.ShapeDtypeStruct(shape, dtype), got {spec!r}"
                )
            self.specs.append(spec)

    def check(self, call: Call) -> Sizes | None:
        """Return the axes of variable size; None if there are none.

        raises TypeError : the call's arguments have other types
        """
        if len(call.arguments) != len(self.specs):
            raise TypeError(
                f"the input_signature is of {len(self.specs)} arrays, got {len(call.arguments)}"
            )
        names: dict[str, int] = {}
        values: dict[str, int] = {}
        axes: list[Axis] = []
        for number, (argument, spec) in enumerate(zip(call.arguments, self.specs, strict=True)):
            _check_type(argument, spec)
            for axis, (size, wanted) in enumerate(zip(argument.shape, spec.shape, strict=True)):
                if not isinstance(wanted, Dim):
                    if size != wanted:
                        raise TypeError(_message(argument, spec, f"axis {axis} has size {size}"))
                    continue
                try:
                    value = wanted.of(size)
                except ValueError as error:
                    raise TypeError(_message(argument, spec, str(error))) from None
                if values.setdefault(wanted.name, value) != value:
                    known = values[wanted.name]
                    what = f"{wanted.name} is {known} already, and {value} by axis {axis}"
                    raise TypeError(_message(argument, spec, what))
                symbol = names.setdefault(wanted.name, len(names))
                axes.append(Axis(number, axis, symbol, wanted.by, wanted.constant))
        return Sizes(tuple(axes), len(names)) if axes else None


def _check_type(argument: Argument, spec: ShapeDtypeStruct) -> None:
    if argument.kind is not as_dtype(spec.dtype):
        raise TypeError(_message(argument, spec, f"it is of {argument.kind.name}"))
    if len(argument.shape) != len(spec.shape):
        raise TypeError(_message(argument, spec, f"it has {len(argument.shape)} axes"))


def _message(argument: Argument, spec: ShapeDtypeStruct, what: str) -> str:
    return f"argument '{argument.path}' is to be {spec!r} by the input_signature: {what}"
