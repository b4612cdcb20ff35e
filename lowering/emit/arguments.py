"""Public functions and their arguments, from which the exported functions are generated."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func

from stepwell.core.signature import Signature

ROLES = ("input", "constant", "output", "arena")


@dataclass(frozen=True)
class Argument:
    """One argument of a public function."""

    number: int
    role: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    resource: str = ""
    sha256: str = ""
    created: int | None = None
    into: int | None = None
    """For an output: the number of the input whose array it may share."""

    @property
    def title(self) -> str:
        """Its name in the description of the program."""
        return self.resource or self.name


@dataclass(frozen=True)
class Entry:
    """One public function."""

    op: func.FuncOp
    arguments: tuple[Argument, ...]
    shapes: func.FuncOp | None
    arena: func.FuncOp | None
    signature: Signature

    @property
    def name(self) -> str:
        """Its name in the program."""
        return self.op.sym_name.data

    def of_role(self, *roles: str) -> list[Argument]:
        """Return the arguments of the given roles, in order."""
        return [a for a in self.arguments if a.role in roles]
