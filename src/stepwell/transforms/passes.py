"""The base of every pass: its declared numerics, its remarks, its failures."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NoReturn, TypeAlias

from xdsl.ir import Operation
from xdsl.passes import ModulePass

from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.placement import Placement, parse_placement
from stepwell.dialects.types import place_of

Numerics: TypeAlias = Literal["bit-exact", "reassociating", "approximating"]


@dataclass(frozen=True)
class Pass(ModulePass, ABC):
    """A pass of ours. Its docstring has Before / After / Afterwards, and tools print it.

    Options are the dataclass fields, as in xDSL.
    """

    numerics: ClassVar[Numerics] = "bit-exact"
    """How the pass may change results; `tools.opt.contracts` defines each word."""

    expects_work: ClassVar[bool] = True
    """Whether a run without any change is worth a warning; False for cleanup passes."""

    one_block: ClassVar[bool] = False
    """Whether functions must have one block: control flow is that of scf, not of cf."""

    dialects: ClassVar[tuple[str, ...]] = ()
    """The dialects of the ops that the pass creates: loaded, with their rules, before it runs."""

    def at(self, *relations: str) -> Placement:
        """Return the placement of this pass in the pipeline, for ``passes`` of `sw.jit`.

        relations : ``before:ANCHOR`` or ``after:ANCHOR``, as in `stepwell.core.placement`
        """
        name, braced, options = str(self.spec()).partition("{")
        read = parse_placement(f"{name}{braced}{options}@{','.join(relations)}")
        return replace(read, kind=type(self))


def fail(op: Operation, message: str, help: str = "") -> NoReturn:
    """Stop the pass with an error at ``op``."""
    raise CompileError(Diagnostic("error", message, place_of(op), help=help))


def check_one_block(root: Operation, name: str) -> None:
    """Fail at a function with several blocks inside ``root``, which pass ``name`` rejects."""
    for region in root.regions:
        for block in region.blocks:
            for op in block.ops:
                first = op.regions[0].first_block if op.regions else None
                if first is not None and first.next_block is not None:
                    said = f"{op.name} has several blocks, which {name} cannot take"
                    fail(op, said, "write branches and loops as scf.if, scf.for and scf.while")


def remark(op: Operation, message: str) -> None:
    """Report a remark at ``op``: a decision, or a missed optimization."""
    report(Diagnostic("remark", message, place_of(op)))
