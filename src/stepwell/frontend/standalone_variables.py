"""Variables in a standalone trace (`f.trace`): constants or arguments of the program.

A variable that the function only reads is a constant of the program, with its present content. One
that it assigns to is an argument, after all others, and its new content a result. An assigned
variable is discovered when it is assigned to; then the function is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stepwell.core.dtypes import dtype_of
from stepwell.frontend.captures import fresh_head
from stepwell.frontend.outside import Outside
from stepwell.frontend.state.variables import TracedVariable, Variable, array_of
from stepwell.frontend.tensor import Tensor

T = TypeVar("T")


class Assigned(BaseException):
    """Raised at an assignment to an unexpected variable; a user's ``except`` cannot catch it."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable


class Standing:
    """The variables that one trace takes as arguments.

    known : the variables that the function is known to assign to
    """

    def __init__(self, trace: Any, known: Sequence[Variable]) -> None:
        self.trace = trace
        self.variables = list(known)
        self.read: list[Variable] = []
        """The variables that are constants."""
        self.inputs: list[tuple[Tensor, Tensor]] = []
        for variable in self.variables:
            kind = dtype_of(variable.dtype)
            assert kind is not None
            value = trace.argument(_name(variable), kind, variable.shape, of=TracedVariable)
            value.called = _name(variable)
            self.inputs.append((value, fresh_head(value)))

    @property
    def written(self) -> list[Variable]:
        """The variables that the function did assign to."""
        pairs = zip(self.variables, self.inputs, strict=True)
        return [variable for variable, (value, _) in pairs if value.stamp]

    def now(self, variable: Variable, writing: bool) -> Any:
        """Return a variable's traced variable, or its read-only array if it is only read."""
        for known, (value, _) in zip(self.variables, self.inputs, strict=True):
            if known is variable:
                return value
        if writing:
            raise Assigned(variable)
        if not any(known is variable for known in self.read):
            self.read.append(variable)
        array = array_of(variable).view()
        array.flags.writeable = False
        return array

    def outside(self) -> Outside:
        """Return the arguments in the form of the program's captured state."""
        arrays = [array_of(v) for v in self.variables]
        given = zip(self.variables, arrays, strict=True)
        types = tuple((_name(v), a.dtype, a.shape) for v, a in given)
        return Outside(types=types, inputs=tuple(self.inputs), arrays=tuple(arrays))


def _name(variable: Variable) -> str:
    return variable.name or "variable"


class Alone:
    """Retraces a function until it is known which variables it assigns to."""

    def __init__(self) -> None:
        self.assigned: list[Variable] = []
        self.standing: Standing | None = None
        """The variables of the last trace."""
        self.dropped: list[Variable] = []
        """Variables that were arguments but are not assigned to."""

    def begin(self, trace: Any) -> Standing:
        """Return the variables of a new trace."""
        self.standing = Standing(trace, self.assigned)
        return self.standing

    def traced(self, once: Callable[[Alone], T]) -> T:
        """Return the result of ``once``, a trace.

        A failure may be due to a variable that is read as a constant and also written, as by
        ``v[...] += 1``. So all variables that were read become arguments, and the function is
        traced again; the new trace shows which of them it assigns.
        """
        first: Exception | None = None
        while True:
            try:
                found = once(self)
            except Assigned as error:
                self.assigned.append(error.variable)
                continue
            except Exception as error:
                read = [] if self.standing is None else self.standing.read
                read = [v for v in read if not any(v is other for other in self.dropped)]
                if first is not None:
                    raise first from first.__cause__
                if not read:
                    raise
                first = error
                self.assigned += read
                continue
            if self.standing is None or len(self.standing.written) == len(self.assigned):
                return found
            written = self.standing.written
            self.dropped += [v for v in self.assigned if not any(v is w for w in written)]
            self.assigned, first = written, None
