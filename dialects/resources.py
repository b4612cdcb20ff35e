"""Blobs stored with a module's text: ``{-# dialect_resources: ... #-}``.

xDSL keeps them in its builtin dialect, in one table for all modules of a process, and renames a
blob of a second module with the same key; here each module has its own table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

Resources = Mapping[tuple[str, str], str]
"""Blobs, as hex digits after ``0x``, by dialect and key."""

_WORD = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_OF: WeakKeyDictionary[Operation, Resources] = WeakKeyDictionary()


def keep_resources(module: Operation, resources: Resources) -> None:
    """Store the resources in the text of ``module``."""
    if resources:
        _OF[module] = resources


def resources_of(module: Operation) -> Resources:
    """Return the resources in the text of ``module``."""
    return _OF.get(module, {})


def key_of(name: str) -> str:
    r"""Return a resource's name in syntax: quoted unless it is a plain word.

    >>> print(key_of("w_0.weight"), key_of("layer/0 \"a\""))
    w_0.weight "layer/0 \22a\22"
    """
    return name if _WORD.fullmatch(name) else str(StringAttr(name))


def metadata(resources: Resources, used: Iterable[tuple[str, str]]) -> str:
    """Return the text of the used resources, "" if there are none.

    >>> print(metadata({("builtin", "a"): "0x0400"}, [("builtin", "a"), ("builtin", "b")]))
    <BLANKLINE>
    {-#
      dialect_resources: {
        builtin: {
          a: "0x0400"
        }
      }
    #-}
    """
    dialects: dict[str, list[str]] = {}
    for dialect, key in sorted({*used} & resources.keys()):
        dialects.setdefault(dialect, []).append(f'      {key_of(key)}: "{resources[dialect, key]}"')
    if not dialects:
        return ""
    each = [
        f"    {dialect}: {{\n" + ",\n".join(rows) + "\n    }" for dialect, rows in dialects.items()
    ]
    return "\n{-#\n  dialect_resources: {\n" + ",\n".join(each) + "\n  }\n#-}"
