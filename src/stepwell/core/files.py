"""Files that are there whole or not at all, whoever reads them meanwhile."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path


@contextmanager
def replacing(path: Path, anew: bool = False) -> Generator[Path]:
    """Give a new file beside ``path`` to be filled, which then takes its place.

    What was there stays as it was where something goes wrong, and for whoever has it open.

    anew : leave what is there by then as it is
    """
    path = path.resolve()
    if path.exists() and not path.is_file():  # a device, as /dev/null, is written to
        yield path
        return
    chance = os.urandom(8).hex()  # nobody can have put a link there
    beside = path.with_name(f".{path.name[:99]}.{chance}.partial")
    try:
        yield beside
        if not anew:
            os.replace(beside, path)
            return
        try:
            os.link(beside, path)
        except FileExistsError:
            pass
        except OSError:  # a disk without links: one that comes at the same moment is replaced
            os.replace(beside, path)
        beside.unlink(missing_ok=True)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")


def remove_folder(folder: Path) -> None:
    """Remove a folder and all in it, as far as that can be."""
    import_module("shutil").rmtree(folder, ignore_errors=True)  # 2 ms that a warm start saves


def find_command(name: str) -> str | None:
    """Return the file that ``name`` runs, as `shutil.which` does on Linux and macOS."""
    if os.path.dirname(name):
        return name if _is_command(name) else None
    folders = os.environ.get("PATH", os.defpath)
    for folder in folders.split(os.pathsep) if folders else ():
        if _is_command(path := os.path.join(folder, name)):
            return path
    return None


def _is_command(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)
