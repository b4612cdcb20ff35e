"""Fingerprints of code on disk, so that the cache serves no program that other code compiled.

Files are identified by size and modification time: reading them would slow down a warm start.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from stepwell.core.plugins import defined, plugins
from stepwell.runtime.cache import digest


def plugins_stamp(text: str) -> str:
    """Return a digest of the files of plug-ins that may change a program; "" if there are none.

    These are all installed plug-ins, whose passes may be in any program, and the dialects defined
    in this process whose names occur in ``text``.
    """
    found = [
        f"{plugin} {plugin.place} {files_stamp(Path(place))}"
        for plugin in plugins()
        for place in plugin.files()
    ]
    for dialect in defined():
        if f"{dialect.name}." in text:
            found += [f"{dialect.name} {_function_stamp(each)}" for each in dialect.functions]
    return digest(*found) if found else ""


def class_stamp(kind: type[Any]) -> str:
    """Return a fingerprint of a class's code: its package's files, or a unique token."""
    try:
        spec = find_spec(kind.__module__.partition(".")[0])
    except (ImportError, ValueError):  # `__main__` has no spec
        spec = None
    if spec is not None and spec.submodule_search_locations:
        return files_stamp(Path(next(iter(spec.submodule_search_locations))))
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return _token(kind) if file is None else files_stamp(Path(file))


def _function_stamp(function: Any) -> str:
    """Return a fingerprint of a function: its file and the global numbers and texts it reads.

    A function that has no file, or closes over values, has a unique token.
    """
    code, names = function.__code__, function.__globals__
    if function.__closure__ or not Path(code.co_filename).is_file():
        return _token(function)
    read = {n: names[n] for n in code.co_names if isinstance(names.get(n), int | float | str)}
    return f"{files_stamp(Path(code.co_filename))} {function.__qualname__} {read}"


_tokens: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _token(code: Any) -> str:
    """Return a token unique to this object, in this process and all others."""
    return _tokens.setdefault(code, os.urandom(16).hex())


def files_stamp(package: Path) -> str:
    """Return a digest of the files of a package, which changes when a file is edited.

    package : a folder, which is scanned once per process, or the file of a module
    """
    return digest(_stamp(str(package))) if package.is_file() else _folder_stamp(package)


@cache
def _folder_stamp(package: Path) -> str:
    stamps: list[str] = []
    waiting = [str(package)]
    while waiting:
        folders: list[str] = []
        with os.scandir(waiting.pop()) as found:
            for entry in sorted(found, key=_name):
                if entry.name.endswith(".py"):
                    stamps.append(_file_stamp(entry.name, entry.stat()))
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
        waiting += reversed(folders)
    return digest(*stamps)


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _stamp(file: str) -> str:
    return _file_stamp(os.path.basename(file), os.stat(file))


def _file_stamp(name: str, stat: os.stat_result) -> str:
    return f"{name} {stat.st_size} {stat.st_mtime_ns}"
