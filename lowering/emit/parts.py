"""Print a C program kernel by kernel, and pass it to the C compiler in parts meanwhile.

A part is a translation unit: the kernels written since the last one, with copies of all they use.
Kernels of other parts are declared in it, with hidden visibility. The division into parts depends
on the text alone. All parts linked together are equivalent to the whole text in one file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects import kernel
from stepwell.lowering.emit.c import CText, CUnit, CWriter, finished
from stepwell.lowering.emit.c_spelling import CSpelling
from stepwell.lowering.emit.names import WORD
from stepwell.lowering.emit.unit import Piece

LETTERS = 100_000
"""The size of the text, in characters, that closes a part: 0.2 s for a C compiler."""

ABOUT = "/* part of a program written by Stepwell */"
HIDDEN = '__attribute__((visibility("hidden"))) '


@dataclass
class PartedProgram:
    """A C program that is written while its kernels are lowered to the loops floor."""

    unit: CUnit
    take: Callable[[str], None]
    """Is called with the text of each part as soon as it is written."""
    divisible: bool
    begun: int = 0
    """The number of pieces of the unit that are in parts already."""
    words: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    @classmethod
    def of(cls, module: ModuleOp, take: Callable[[str], None]) -> PartedProgram:
        """Begin the program of a module; `finish` completes it."""
        shared = any(isinstance(op, memref.GlobalOp) and op.constant is None for op in module.ops)
        return cls(CUnit(module, CSpelling(), CWriter), take, divisible=not shared)

    def write(self, lowered: ModuleOp) -> None:
        """Write lowered kernels of the program, with the functions they call."""
        self.unit.adopt(lowered)
        for op in lowered.ops:
            if isinstance(op, kernel.FuncOp):
                self.unit.function(op, op.sym_name.data)
                fresh = self.unit.pieces[self.begun :]
                if self.divisible and _letters(fresh) > LETTERS:
                    self._close(self.begun, len(self.unit.pieces))
                    self.begun = len(self.unit.pieces)

    def finish(self, name: str) -> CText:
        """Write the rest, close the last parts if there were any before, and return the whole."""
        kernels = len(self.unit.pieces)
        whole, exports = finished(self.unit, name)
        if not self.begun:
            return whole
        end = len(self.unit.pieces)
        if _letters(self.unit.pieces[kernels:]) < LETTERS // 2 or kernels == self.begun:
            self._close(self.begun, end, exports)
        else:  # host functions compile as long as kernels do, and the largest are started first
            self._close(kernels, end, exports)
            self._close(self.begun, kernels)
        return whole

    def _close(self, start: int, end: int, exports: Sequence[str] = ()) -> None:
        """Pass on some pieces as a part, with all that they use."""
        own = {p.name for p in self.unit.pieces[start:end] if p.declaration}
        functions = self.unit.spelling.prelude.functions
        known = [*(Piece(name, text) for name, text in functions.items()), *self.unit.globals]
        wanted = set(own)
        for text in exports:
            wanted.update(WORD.findall(text))
        texts = list(exports[::-1])
        for piece in reversed([*known, *self.unit.pieces]):
            if piece.name not in wanted:
                continue
            if piece.declaration and piece.name not in own:
                texts.append(f"{HIDDEN}{piece.declaration};")
                continue
            wanted |= self._words(piece)
            text = piece.text
            texts.append(HIDDEN + text.removeprefix("static ") if piece.declaration else text)
        self.take(self.unit.unit(ABOUT, texts[::-1]))

    def _words(self, piece: Piece) -> frozenset[str]:
        if piece.name not in self.words:
            self.words[piece.name] = frozenset(WORD.findall(piece.text))
        return self.words[piece.name]


def _letters(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.text) for piece in pieces)
