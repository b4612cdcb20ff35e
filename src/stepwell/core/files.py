"""Files that are replaced atomically, even while others read them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path


@contextmanager
def replacing(path: Path, anew: bool = False) -> Generator[Path]:
    """Provide a new file beside ``path`` to be filled, which then replaces it.

    On an error the old file stays; processes that have it open keep it.

    anew : keep a file that another process has created meanwhile
    """
    path = path.resolve()
    with _naming(path):
        if path.exists() and not path.is_file():  # a device such as /dev/null is written directly
            yield path
            return
        with _replacing(path, anew) as file:
            yield file


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of writing to a file for which there is no room."""


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Name the file for which there is no room, not the one that was being copied."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def in_words(error: OSError) -> str:
    """Return what failed with which file; a file without a name is the standard output.

    >>> in_words(OSError(errno.ENOSPC, "No space left on device"))
    'cannot write the output: No space left on device'
    >>> in_words(OSError(errno.ENOENT, "No such file or directory", "x.npy"))
    'x.npy: No such file or directory'
    """
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"cannot write the output: {error.strerror}" if error.errno in _FULL else str(error)


@contextmanager
def _replacing(path: Path, anew: bool) -> Generator[Path]:
    chance = os.urandom(8).hex()  # unpredictable, so that nobody can place a link there
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
        except OSError:  # a file system without links: a concurrently created file is replaced
            os.replace(beside, path)
        beside.unlink(missing_ok=True)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


LONGEST = 1 << 26
"""The most bytes that are read of a device, and of a file that a location in a text names."""


def read_whole(path: str | Path) -> bytes:
    """Return the content of a file, pipe or device that the user names.

    A pipe without a writer is waited for, as `cat` does: a writer may come.

    raises OSError : it cannot be read, or is a device that has no end, as /dev/zero
    """
    with open(path, "rb") as file:
        if not stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise OSError(errno.EFBIG, "the device has no end", str(path))
    return data


def is_quickly_read(path: str) -> bool:
    """Whether reading a file that a location names ends soon; it may name a device or a pipe."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size <= LONGEST


def write_whole(path: Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents, ignoring errors."""
    import_module("shutil").rmtree(folder, ignore_errors=True)  # a lazy import saves 2 ms at start


def find_command(name: str) -> str | None:
    """Return the path of command ``name``, as `shutil.which` does on Linux and macOS."""
    if os.path.dirname(name):
        return name if _is_command(name) else None
    folders = os.environ.get("PATH", os.defpath)
    for folder in folders.split(os.pathsep) if folders else ():
        if _is_command(path := os.path.join(folder, name)):
            return path
    return None


def _is_command(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)
