"""Cache symbols and numbers of blocks while a module is verified and does not change.

xDSL scans all functions for each call, and all blocks for each terminator.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation, Region
from xdsl.ir.core import RegionBlocks
from xdsl.traits import SymbolOpInterface, SymbolTable

_xdsl_lookup: Any = SymbolTable.lookup_symbol
_xdsl_count: Any = RegionBlocks.__len__


@dataclass
class _Found:
    """The cached results for a module."""

    symbols: dict[Operation, dict[str, Operation]] = field(
        default_factory=dict[Operation, dict[str, Operation]]
    )
    blocks: dict[Region, int] = field(default_factory=dict[Region, int])


_found: ContextVar[_Found | None] = ContextVar("found", default=None)


@contextmanager
def unchanged() -> Generator[None]:
    """Declare that no symbol or block is added, removed or renamed inside the context."""
    token = _found.set(_Found())
    try:
        yield
    finally:
        _found.reset(token)


def _lookup(op: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    found = _found.get()
    if found is None or (isinstance(name, SymbolRefAttr) and name.nested_references):
        return _xdsl_lookup(op, name)
    anchor: Operation | None = op
    while anchor is not None and not anchor.has_trait(SymbolTable):
        anchor = anchor.parent_op()
    if anchor is None:
        return _xdsl_lookup(op, name)  # which reports the error
    if (table := found.symbols.get(anchor)) is None:
        table = found.symbols[anchor] = _table(anchor)
    return table.get(_name(name))


def _name(name: str | StringAttr | SymbolRefAttr) -> str:
    if isinstance(name, SymbolRefAttr):
        return name.root_reference.data
    return name.data if isinstance(name, StringAttr) else name


def _table(anchor: Operation) -> dict[str, Operation]:
    """Return the symbols of an op; of duplicates, the first."""
    table: dict[str, Operation] = {}
    for op in anchor.regions[0].block.ops:
        if (trait := op.get_trait(SymbolOpInterface)) is not None:
            name = trait.get_sym_attr_name(op)
            if name is not None:
                table.setdefault(name.data, op)
    return table


def _count(self: RegionBlocks) -> int:
    """Return the number of blocks of a region."""
    found = _found.get()
    if found is None:
        return _xdsl_count(self)
    region: Region = self._region  # pyright: ignore[reportPrivateUsage]
    if (count := found.blocks.get(region)) is None:
        count = found.blocks[region] = _xdsl_count(self)
    return count


SymbolTable.lookup_symbol = staticmethod(_lookup)
RegionBlocks.__len__ = _count
