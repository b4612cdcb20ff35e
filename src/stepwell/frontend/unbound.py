"""Variables without a value on some control path: the objects that stand for them.

A variable that certainly has no value is `Undefined`; one whose state is known at run time only is
a `Maybe`, a value with a flag. Rewritten source reads variables through `reads.Outer`, which checks
for these objects: then the program raises UnboundLocalError, as Python does.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from stepwell.frontend.checks import check, raise_in_branch
from stepwell.frontend.errors import TraceError
from stepwell.frontend.pytree import REGISTERED
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace


class Undefined:
    """Stands for a variable without a value; using it is an error.

    why : why it is unknown whether there is a value: then its use is refused while tracing
    """

    def __init__(self, name: str, why: str = "") -> None:
        self.__dict__["name"] = name
        self.__dict__["why"] = why

    def read(self, *_: Any, **__: Any) -> NoReturn:
        """Raise Python's exception for reading a variable without a value."""
        name, why = self.__dict__["name"], self.__dict__["why"]
        if why:
            raise TraceError(f"'{name}' has no value on each way that leads here; {why}")
        trace = active_trace()
        if trace is not None and trace.branches:
            raise_in_branch(lambda: UnboundLocalError(_unbound_message(name)))
        raise UnboundLocalError(_unbound_message(name))

    __getattr__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __call__ = read
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = read
    __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __mod__ = __floordiv__ = read
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __float__ = __int__ = read
    __array__ = read


ASSIGN = "assign it before the branch or loop"
"""The advice for a variable that is `Undefined`."""


class Maybe:
    """Stands for a variable that has a value only if ``flag`` is true.

    flag : True, False, or a traced boolean without axes
    """

    __slots__ = ("flag", "name", "value")

    def __init__(self, name: str, flag: Any, value: Any) -> None:
        for slot, given in (("name", name), ("flag", flag), ("value", value)):
            object.__setattr__(self, slot, given)

    def read(self) -> Any:
        """Return the value; the program raises UnboundLocalError if there is none."""
        flag: Any = self.flag
        if not isinstance(flag, Tensor):
            return self.value if flag else Undefined(self.name).read()
        if flag.graph.ranges.truth(flag) is not True:
            check(flag, "UnboundLocalError", (_unbound_message(self.name),))
        return self.value

    def __setitem__(self, index: Any, value: Any) -> None:
        self.read()[index] = value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.read(), name, value)


def _in_place(name: str) -> Any:
    of = getattr(operator, name)
    return lambda self, other: of(self.read(), other)


for _name in (
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior"),
    *("ixor", "ilshift", "irshift"),
):
    setattr(Maybe, f"__{_name}__", _in_place(_name))
    setattr(Undefined, f"__{_name}__", _in_place(_name))

REGISTERED[Maybe] = (
    lambda given: ((given.flag, given.value), given.name),
    lambda name, children: Maybe(name, *children),
)
UNSURE = frozenset((Undefined, Maybe))
"""The classes that stand for variables without a certain value."""


def _unbound_message(name: str) -> str:
    return f"cannot access local variable '{name}' where it is not associated with a value"
