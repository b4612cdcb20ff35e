"""Wrong passes as a plug-in: each rewrites the text of the module as its row of the table says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from subtle_rewrites import SUBTLE
from wrong_rewrites import TABLE, Wrong
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.universe import Universe

from stepwell.dialects.parsing import parse_module
from stepwell.dialects.printing import text_of
from stepwell.transforms.passes import Numerics, Pass


def _pass(row: Wrong) -> type[Pass]:
    @dataclass(frozen=True)
    class WrongPass(Pass):
        """Do what a row says."""

        name = row.name
        numerics: ClassVar[Numerics] = row.numerics

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            text = text_of(op, locations=True)
            wrong = re.sub(row.pattern, row.replacement, text)
            assert wrong != text, text
            found = parse_module(ctx, wrong, "wrong.mlir")
            for each in list(op.body.block.ops):
                each.detach()
                each.erase(safe_erase=False)
            for each in list(found.body.block.ops):
                each.detach()
                op.body.block.add_op(each)

    return WrongPass


UNIVERSE = Universe(all_passes={row.name: lambda row=row: _pass(row) for row in (*TABLE, *SUBTLE)})
