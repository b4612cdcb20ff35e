"""What identifies code on disk, so that no program is served that other code has made.

Files are known by size and time of change, which costs a warm start far less than reading them.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from stepwell.core.plugins import plugins
from stepwell.runtime.cache import digest


def plugins_stamp() -> str:
    """Return a digest of the files of every plug-in in reach; "" where there is none.

    Passes, ops and lowerings of any of them may be in any program.
    """
    found = [
        f"{plugin} {plugin.place} {files_stamp(Path(place))}"
        for plugin in plugins()
        for place in plugin.files()
    ]
    return digest(*found) if found else ""


def class_stamp(kind: type[Any]) -> str:
    """Return what identifies the code of a class: its package's files, or only this process."""
    try:
        spec = find_spec(kind.__module__.partition(".")[0])
    except (ImportError, ValueError):  # `__main__` has no spec
        spec = None
    if spec is not None and spec.submodule_search_locations:
        return files_stamp(Path(next(iter(spec.submodule_search_locations))))
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return files_stamp(Path(file)) if file else _this_process()


@cache
def _this_process() -> str:
    """Return a key that no other process has, for code typed in by hand."""
    return uuid4().hex


@cache
def files_stamp(package: Path) -> str:
    """Return a digest of which files a package consists of: an edited package is another.

    package : a folder, or the file of a module that is no package
    """
    if package.is_file():
        return digest(_stamp(str(package)))
    stamps: list[str] = []
    for folder, folders, files in os.walk(package, followlinks=True):
        folders.sort()
        stamps += [_stamp(os.path.join(folder, n)) for n in sorted(files) if n.endswith(".py")]
    return digest(*stamps)


def _stamp(file: str) -> str:
    stat = os.stat(file)
    return f"{os.path.basename(file)} {stat.st_size} {stat.st_mtime_ns}"
